"""What a check answers: right or not yet, and why."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Verdict:
    """Whether an answer is right, in words and perhaps as a picture.

    `assert check.mask(my_mask)` works as well as a bare `check.mask(my_mask)` at the end of a notebook's cell, which
    shows the message and, where there is one, the picture under it.

    Attributes:
        passed: True if every case came out as it should.
        message: the sentences, with what was called, expected and got.
        draw: makes the picture; None where the message says it all.
    """

    passed: bool
    message: str
    draw: "Callable[[], Figure] | None" = None

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return self.message

    def _repr_png_(self) -> bytes | None:
        if self.draw is None:
            return None
        from magnet_lab.viz.picture import Picture

        return Picture(self.draw(), self.message).png()

    def _ipython_display_(self) -> None:
        # A front end that finds a picture and a text shows the picture alone; here both are wanted.
        from IPython.display import Image, display

        print(self.message)
        if self.draw is not None:
            display(Image(data=self._repr_png_()))
