"""A model that loads in the background, so that every page opens at once."""

import sys
import threading
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from . import machine

if TYPE_CHECKING:
    from magnet_lab.model import Magnet


class Loading:
    """A model on its way, and the libraries that it needs: whoever asks for something waits until it is there.

    Two threads that import transformers at the same time can each get half of it, so handlers wait for `libraries()`
    before they use `magnet_lab`.
    """

    def __init__(self, name: str):
        self.name = name
        self._lab: Magnet | None = None
        self._problem: Exception | None = None
        self._imported = threading.Event()
        self._done = threading.Event()

    def start(self, after: "Loading | None" = None) -> None:
        """Begin, once the libraries are there that another one is waiting for."""
        threading.Thread(target=self._load, args=[after], name=f"loading {self.name}", daemon=True).start()

    def libraries(self) -> None:
        """Wait until `magnet_lab` can be used."""
        self._imported.wait()

    def lab(self) -> "Magnet":
        """The model, as soon as it is there.

        Raises:
            ValueError: with the reason and what to do, if it cannot be had.
        """
        self._done.wait()
        if self._problem is not None:
            raise ValueError(str(self._problem)) from self._problem
        return self._lab

    @property
    def has_libraries(self) -> bool:
        return self._imported.is_set()

    @property
    def lab_now(self) -> "Magnet | None":
        """The model if it is there already."""
        return self._lab

    def tokenizer(self):
        """The model's tokenizer; without the model, or until it is there, the one that comes with the package."""
        self.libraries()
        return self._lab.tokenizer if self._lab is not None else _bundled_tokenizer()

    def notes(self) -> Iterator[str]:
        """What there is to say about the model, now and once it is there."""
        if not self._done.is_set():
            yield f"Loading {self.name}… Masks can be drawn already; what needs the model waits for it."
            self._done.wait()
        if self._problem is not None:
            yield f"{self.name} could not be loaded. {self._problem}"
        elif self._lab.adapter is None:
            yield (
                f"Model: {self.name}, the base model, not adapted: it infills badly, and its vectors are crude. "
                "That is part of the lesson: no one has taught it to look both ways yet."
            )
        else:
            yield f"Model: {self.name} with the adapter {self._lab.adapter}."

    def _load(self, after: "Loading | None") -> None:
        try:
            if after is not None:
                after.libraries()
            from transformers.utils import logging

            from magnet_lab import viz
            from magnet_lab.model import Magnet

            logging.disable_progress_bar()  # the terminal shows the address, and nothing over it
            viz.mask_figure, viz.map_figure  # noqa: B018 - reading them imports them
            self._imported.set()
            machine.check_fits(self.name)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # a missing adapter is said on the pages
                self._lab = Magnet.from_pretrained(self.name)
        except Exception as problem:  # whatever it is, the pages say it, and those without the model go on
            self._problem = problem
            print(f"{self.name} could not be loaded. {problem}", file=sys.stderr, flush=True)
        finally:
            self._imported.set()
            self._done.set()


def _bundled_tokenizer():
    from magnet_lab import zoo

    return zoo.load_tokenizer(zoo.resolve("tiny"))
