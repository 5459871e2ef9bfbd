"""Runs all experiments, prints what they found and what the document's claims come to."""

import argparse
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import torch
from tqdm import tqdm

from magnet_lab.data.rows import Corpus, texts
from magnet_lab.relatives.prefix_lm.report import lines, save
from magnet_lab.relatives.restorable import experiments
from magnet_lab.relatives.restorable.experiments import Setting
from magnet_lab.relatives.restorable.tables import TASKS, Results, figures, verdicts


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m magnet_lab.relatives.restorable", description=__doc__)
    parser.add_argument("--corpus", default="stories.txt", metavar="FILE", help="to train on, a story a line (our own)")
    parser.add_argument("--held-out", default="stories-held-out.txt", metavar="FILE", help="stories to measure on")
    parser.add_argument("--model", default=Setting.model, help="restore from this model's vectors (%(default)s)")
    parser.add_argument("--steps", type=int, default=Setting.steps, help="of every restoration (%(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="how often each model is trained (%(default)s)")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    options = parser.parse_args(arguments)
    for name in ("steps", "seeds"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} {getattr(options, name)}: at least 1 is needed")
    try:
        train, held_out = (tuple(texts(Corpus([name]))) for name in (options.corpus, options.held_out))
    except ValueError as error:
        parser.error(str(error))
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting(train, held_out, Path(folder), model=options.model, steps=options.steps)
        results = run(setting, range(options.seeds))
    found = {**figures(results), "claims": verdicts(results), "restored": samples(results)}
    print("\n".join(lines(found)))
    if options.json:
        save(options.json, "restorable embeddings", found)


def run(setting: Setting, seeds: Sequence[int]) -> Results:
    """Every experiment with every seed, on all cores; a run itself takes one, so that cores do not change figures."""
    experiments.data(setting, 1)  # makes the tokenizer, before several processes want to
    stages = [
        [("pretrain", seed) for seed in seeds] + [("embed",)],
        [(*task, seed) for task in TASKS for seed in seeds if task[0] != "retrieval"],
        [(*task, seed) for task in TASKS for seed in seeds if task[0] == "retrieval"],
    ]
    made = {}
    with (
        ProcessPoolExecutor(os.cpu_count(), get_context("spawn"), torch.set_num_threads, (1,)) as pool,
        tqdm(total=sum(map(len, stages)), desc="trainings") as bar,
    ):
        for stage in stages:
            futures = {pool.submit(getattr(experiments, job[0]), setting, *job[1:]): job for job in stage}
            for future in as_completed(futures):
                made[futures[future]] = future.result()
                bar.update()
    return {task: [made[(*task, seed)] for seed in seeds] for task in TASKS}


def samples(results: Results) -> dict[str, dict[str, str]]:
    """For each kind of restoration a few held-out texts and what came back, of the first seed."""
    return {
        " ".join(map(str, task)): dict(results[task][0]["samples"]) for task in TASKS if "samples" in results[task][0]
    }


if __name__ == "__main__":
    main()
