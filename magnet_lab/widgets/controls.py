"""A picture with controls: a pure function, its picture first, and sliders under it where somebody can move them."""

from collections.abc import Callable

import ipywidgets
from IPython import get_ipython
from IPython.display import display

from magnet_lab.viz.picture import Picture

LAYOUT = {"style": {"description_width": "12em"}, "layout": {"width": "42em"}}


def has_front_end() -> bool:
    """Whether somebody can move a control: in a notebook, where it is not a program that runs the cells."""
    shell = get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return False
    # A front end says with each cell whether somebody is there to be asked for input.
    return bool(shell.kernel.get_parent("shell").get("content", {}).get("allow_stdin"))


class Explorer:
    """A picture and the controls that it is a function of; the last line of a cell shows both.

    Attributes:
        controls: name -> control; setting a `value` draws anew.
        picture: what is shown now.
        message: one sentence where the values of the controls make no picture; the last picture stays.
    """

    def __init__(self, function: Callable[..., Picture], controls: dict[str, ipywidgets.Widget]):
        self.function, self.controls, self.message = function, controls, ipywidgets.Label()
        self.picture = function(**self.values)
        self._shown = None
        for control in controls.values():
            control.observe(self._draw, "value")

    @property
    def values(self) -> dict:
        return {name: control.value for name, control in self.controls.items()}

    def _draw(self, _change=None) -> None:
        try:
            self.picture, self.message.value = self.function(**self.values), ""
        except ValueError as error:  # of what was typed in; all others are ours
            self.message.value = str(error)
        if self._shown is not None:
            self._shown.update(self.picture)

    def _ipython_display_(self) -> None:
        self._shown = display(self.picture, display_id=True)
        if has_front_end():
            display(ipywidgets.VBox([*self.controls.values(), self.message]))

    def __repr__(self) -> str:
        return repr(self.picture)


def explore(function: Callable[..., Picture], **controls) -> Explorer:
    """A picture with controls.

    Args:
        function: takes the controls' values by name and returns a picture, as `viz.show` makes it. It should depend on
            nothing else, so that a value always shows the same.
        **controls: a control of ipywidgets for each argument; its first value gives the first picture.

    Raises:
        ValueError: if the first values make no picture.
    """
    return Explorer(function, controls)


def slider(words: str, value, low, high, step=1, *, live: bool = False):
    """A slider for whole or other numbers, labelled; it reports when it is let go, or while it moves (`live`)."""
    whole = all(isinstance(number, int) for number in (value, low, high, step))
    kind = ipywidgets.IntSlider if whole else ipywidgets.FloatSlider
    return kind(value=value, min=low, max=high, step=step, description=words, continuous_update=live, **LAYOUT)


def choice(words: str, options, value):
    """A list to choose from, labelled; options are values, or label -> value."""
    return ipywidgets.Dropdown(options=options, value=value, description=words, **LAYOUT)


def writing(words: str, value: str):
    """A field for text, labelled; it reports when it is left."""
    return ipywidgets.Textarea(value=value, description=words, continuous_update=False, **LAYOUT)
