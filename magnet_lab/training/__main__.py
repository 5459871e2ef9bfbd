"""`magnet-lab train RECIPE`, and the same for several processes: `accelerate launch -m magnet_lab.training RECIPE`."""

import argparse
import dataclasses
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What a run can be told beside its recipe."""
    parser.add_argument("recipe", help="a recipe of the project, such as tiny or paper, or a YAML file")
    parser.add_argument(
        "--like", help="another recipe than the one that stands behind it (for those that are like one)"
    )
    parser.add_argument("--out", type=Path, help="folder of the run (runs/RECIPE); a run found there is continued")
    parser.add_argument("--model", help="another model than the recipe's")
    parser.add_argument("--corpus", nargs="+", metavar="FILE", help="texts to train on: .txt, .jsonl or .parquet")
    parser.add_argument("--pairs", nargs="+", metavar="FILE", help="tab-separated sentences and their paraphrases")
    parser.add_argument("--micro-batch", type=int, help="rows in one forward pass; fewer need less memory")
    parser.add_argument(
        "--compile", action="store_true", help="torch.compile: a slow start, faster steps (C++ compiler)"
    )
    parser.add_argument("--tracker", help="tensorboard, wandb or another tracker of Accelerate")


def changed(recipe, **values):
    """The recipe with those values that are given."""
    return dataclasses.replace(recipe, **{key: value for key, value in values.items() if value is not None})


def run(options: argparse.Namespace) -> None:
    """Train, and say where the adapter is."""
    from magnet_lab.training import recipe as recipes
    from magnet_lab.training.loop import Trainer

    recipe = recipes.load(options.recipe, like=options.like)
    recipe = changed(recipe, model=options.model, micro_batch=options.micro_batch)
    if options.corpus:
        recipe.corpus = dataclasses.replace(recipe.corpus, paths=options.corpus, config=None)
    if options.pairs and recipe.contrast is not None:
        recipe.contrast = dataclasses.replace(recipe.contrast, positives="pairs", paths=options.pairs)
    out = options.out or Path("runs") / Path(options.recipe).stem
    trainer = Trainer(recipe, out, tracker=options.tracker, compiled=options.compile)
    trainer.run()
    if trainer.accelerator.is_main_process:
        print(f"The adapter is in {out}. Use it with --model {recipe.model} --adapter {out}")


def main() -> None:
    from magnet_lab import cli

    sys.exit(cli.main(["train", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
