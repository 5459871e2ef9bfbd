"""One training in a process of its own: `python -m magnet_lab.app.trainee`, in the folder of the run.

A step of training sets what a process has only once, the random state and the kernels of attention; beside it, in one
process, another visitor's seeded text would come out differently. And a process that ends gives all its memory back.

The folder holds `recipe.yaml` and `sample.txt`, a story with a blank. What happens is told in lines of JSON:

    {"begins": 0}                             the number of steps that are done already
    {"step": 1, "losses": {"mntp": 9.1}}      nats
    {"step": 1, "fills": [" He fell."]}       what was written into the story's blank
    {"seconds": 12.5}                         it has ended, and the adapter lies in `adapter/`
    {"problem": "…"}                          it has ended against its will

Standard input holds nothing. When it is closed, as it also is when the app ends in whatever way, the training stops
after the step that is being made, and leaves a checkpoint to go on from.
"""

import contextlib
import dataclasses
import json
import os
import sys
import threading
import time
from pathlib import Path

SAMPLES = 5  # fillings over a whole training, besides the one before it


def main() -> None:
    tell = _teller()
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
    try:
        _train(tell, stop)
    except Exception as problem:  # whatever it is, the page says it
        tell(problem=str(problem) or type(problem).__name__)
        sys.exit(1)


def _train(tell, stop: threading.Event) -> None:
    import torch

    from magnet_lab.training import recipe as recipes
    from magnet_lab.training.loop import Trainer
    from magnet_lab.training.result import save_adapter

    torch.set_num_threads(1)  # so small a model gains little by more, and the other pages want them
    recipe, story = recipes.load("recipe.yaml"), Path("sample.txt").read_text(encoding="utf-8")
    trainer = Trainer(recipe, ".")
    done = trainer.resume()
    tell(begins=done)
    if done == 0:
        tell(step=0, fills=trainer.lab.infill(story).spans)
    if hasattr(os, "nice"):
        os.nice(5)  # the other pages' answers come first
    start = time.monotonic()
    with contextlib.closing(trainer.steps(done)) as steps:  # closed before its end, it leaves a checkpoint
        for losses in steps:
            done += 1
            tell(step=done, losses=losses)
            if stop.is_set():
                break
            if done % max(1, recipe.steps // SAMPLES) == 0 or done == recipe.steps:
                tell(step=done, fills=trainer.lab.infill(story).spans)
    save_adapter(Path("adapter"), _until(recipe, done), trainer.trained)
    tell(seconds=time.monotonic() - start)


def _until(recipe, done: int):
    """The recipe as far as it was followed, for the adapter's model card."""
    return dataclasses.replace(recipe, phases=[dataclasses.replace(recipe.phases[0], steps=done)])


def _teller():
    """Writes lines of JSON where the app reads; whatever else is printed goes to standard error."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def tell(**what) -> None:
        print(json.dumps(what), file=out, flush=True)

    return tell


if __name__ == "__main__":
    main()
