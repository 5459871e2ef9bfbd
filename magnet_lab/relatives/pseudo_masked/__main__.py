"""The proof, the leaks and Table 6 in miniature, as `python -m magnet_lab.relatives.pseudo_masked`."""

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from magnet_lab.data.rows import Corpus, texts
from magnet_lab.relatives.pseudo_masked import experiments, proof


def main(arguments: list[str] | None = None) -> None:
    """Run everything, print the figures, and write them where `--json` says."""
    parser = argparse.ArgumentParser(prog="python -m magnet_lab.relatives.pseudo_masked", description=__doc__)
    parser.add_argument("--corpus", default="stories.txt", help="texts for the proof, one a line (%(default)s)")
    parser.add_argument("--seeds", type=int, default=experiments.Settings.seeds, help="runs of each (%(default)s)")
    parser.add_argument("--steps", type=int, default=experiments.Settings.steps, help="of pre-training (%(default)s)")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    options = parser.parse_args(arguments)
    try:
        stories = list(texts(Corpus([options.corpus])))
        settings = replace(experiments.Settings(), seeds=options.seeds, steps=options.steps)
        figures = {
            "one pass is many": proof.one_pass_is_many(stories, options.seeds),
            "tokens": proof.tokens(),
            "leaks": proof.leaks(options.seeds),
            "table 6": experiments.table_6(settings),
        }
    except ValueError as error:
        parser.error(str(error))
    print("\n".join(report(figures)))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def report(figures: dict) -> Iterator[str]:
    """The figures as lines of text."""
    yield "Log-probabilities (nats) from one pass and from instances of their own"
    for name, found in figures["one pass is many"].items():
        yield (
            f"  {name:3}  {found['compared']} compared; they differ by at most {found['largest difference']:.1e}; "
            f"from instances as BERT reads them by up to {found['as BERT, up to']:.2g}"
        )
    yield "Tokens to read"
    for length, found in figures["tokens"].items():
        for name, counts in found.items():
            numbers = "; ".join(f"{way} {_interval(count)}" for way, count in counts.items())
            yield f"  {length}, {name}: {numbers}"
    yield "Largest change of a log-probability (nats) when a hidden token is exchanged"
    for name, found in figures["leaks"].items():
        for layers, changes in found.items():
            yield f"  {name}, {layers}: " + "; ".join(f"{place} {change:.2g}" for place, change in changes.items())
    yield "Table 6 in miniature (%)"
    for name, tasks in figures["table 6"]["rows"].items():
        yield f"  {name:24}" + "  ".join(f"{task} {_interval(score)}" for task, score in tasks.items())
    yield "What the document says of it"
    for claim in figures["table 6"]["claims"]:
        yield f"  {claim['claim']}, {claim['task']}: {_interval(claim)}, {claim['verdict']}"


def _interval(figure: dict) -> str:
    """A mean with its 95 % interval."""
    if figure["low"] is None:
        return f"{figure['mean']:.1f}"
    return f"{figure['mean']:.1f} [{figure['low']:.1f}, {figure['high']:.1f}]"


if __name__ == "__main__":
    main()
