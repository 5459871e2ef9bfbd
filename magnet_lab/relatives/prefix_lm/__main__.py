"""Runs the experiments, or those that are named, and prints what they found."""

import argparse
from pathlib import Path

from magnet_lab.relatives.prefix_lm import experiments
from magnet_lab.relatives.prefix_lm.report import lines, save

TRAINED = ("chapter", "leak", "sorting", "unified")
NAMES = ("masks", *TRAINED)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m magnet_lab.relatives.prefix_lm", description=__doc__)
    parser.add_argument("experiments", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)} (all)")
    parser.add_argument("--seeds", type=int, default=5, help="how often each model is trained (%(default)s)")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    options = parser.parse_args(arguments)
    if unknown := set(options.experiments) - set(NAMES):
        parser.error(f"there is no experiment {min(unknown)!r}; choose from {', '.join(NAMES)}")
    if options.seeds < 1:
        parser.error(f"--seeds {options.seeds}: a model is trained once at least")
    found = {}
    for name in options.experiments or NAMES:
        run = getattr(experiments, name)
        found[name] = run(range(options.seeds)) if name in TRAINED else run()
        print("\n".join(["", name, *(f"  {line}" for line in lines(found[name]))]))
        if options.json:  # after each, so that a run that is stopped leaves what it has
            save(options.json, "prefix LM", found)


if __name__ == "__main__":
    main()
