"""Colours, and what tells things apart where colours do not: three token classes, two mask tones, one scale of weights.

Classes differ in lightness and in shape, so that they hold in grey, in print and for every kind of colour vision. Every
background comes with the text colour to put on it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WEIGHTS = "cividis"  # the colour map for anything measured

INK, FAINT, CARD = "#111111", "#6B6B6B", "#FFFFFF"  # text, axes and paper of a picture, in either theme


@dataclass(frozen=True)
class Pair:
    """A background and the text colour that reads on it."""

    background: str
    text: str


@dataclass(frozen=True)
class TokenClass:
    """How the tokens of one class look.

    Attributes:
        light, dark: colours in the two themes.
        css: the second channel on a page.
        marks: the second channel in plain text, put before and after the tokens.
    """

    name: str
    light: Pair
    dark: Pair
    css: str = ""
    marks: tuple[str, str] = ("", "")


CONTEXT = TokenClass("context", Pair("#D6EAF8", "#111111"), Pair("#16405F", "#F2F2F2"))
SPAN = TokenClass(
    "span",
    Pair("#E69F00", "#111111"),
    Pair("#E69F00", "#111111"),
    css="box-shadow: inset 0 -3px 0 currentColor;",
    marks=("[", "]"),
)
MASKED = TokenClass(
    "masked",
    Pair("#2B2B2B", "#FFFFFF"),
    Pair("#F2F2F2", "#111111"),
    css="outline: 2px dashed currentColor; outline-offset: -3px;",
    marks=("▢", ""),
)
TOKEN_CLASSES = (CONTEXT, SPAN, MASKED)

SEES = Pair(CONTEXT.dark.background, CONTEXT.dark.text)
BLOCKED = Pair("#F3F3F3", FAINT)
REACHED = SPAN.light  # not seen, but heard of through other tokens, after more than one layer


def css(scope: str = "") -> str:
    """The token classes as CSS rules, for elements of the class `token` and of a class of the same name as theirs.

    Args:
        scope: a selector put before every rule; the dark pairs apply under an element of the class `dark`.
    """
    rules = []
    for kind in TOKEN_CLASSES:
        selector = f"{scope} .token.{kind.name}".strip()
        rules.append(f"{selector} {{ background: {kind.light.background}; color: {kind.light.text}; {kind.css} }}")
        rules.append(f".dark {selector} {{ background: {kind.dark.background}; color: {kind.dark.text}; }}")
    return "\n".join(rules)


def card(width: float, height: float) -> "Figure":
    """An empty white figure of this size in inches: it reads on a dark page too, and needs no pyplot, hence no lock."""
    from matplotlib.figure import Figure  # here, so that a page can have the colours without matplotlib

    figure = Figure(figsize=(width, height), dpi=110, facecolor=CARD, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)  # inches
    return figure
