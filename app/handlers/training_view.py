"""What somebody sees of a training: losses and samples, as a picture and in plain characters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import magnet_lab as ml

from . import infill

if TYPE_CHECKING:
    from magnet_lab.viz.picture import Picture

OBJECTIVES = {"mntp": "MNTP", "sscl": "SSCL", "msg": "MSG"}  # as the paper orders and writes them


@dataclass(frozen=True)
class View:
    """A training as it stands.

    Attributes:
        sentence: what is going on.
        history: the losses (nats) of each step, by objective.
        samples: the step after which the story was filled, 0 before the first, and the story in pieces.
        going: whether there is more to come.
        can_go_on: whether there are steps left to make.
        adapter: the PEFT folder as a zip file, once it has stopped.
    """

    sentence: str
    history: list[dict[str, float]] = field(default_factory=list)
    samples: list[tuple[int, list[infill.Piece]]] = field(default_factory=list)
    going: bool = True
    can_go_on: bool = False
    adapter: bytes | None = None


def picture(history: Sequence[Mapping[str, float]]) -> "Picture | None":
    """The losses so far, a line for each objective; None before the first step."""
    if not history:
        return None
    runs = {name: [step[key] for step in history] for key, name in OBJECTIVES.items() if key in history[0]}
    return ml.viz.show("losses", runs)


def as_text(view: View) -> str:
    """Losses and samples in plain characters, what was written in brackets."""
    drawn = picture(view.history)
    parts = [drawn.text] if drawn else []
    for step, pieces in view.samples:
        story = "".join(piece.text if piece.kind == "context" else f"[{piece.text}]" for piece in pieces)
        parts.append(f"{sample_name(step)}\n{story}")
    return "\n\n".join(parts)


def sample_name(step: int) -> str:
    return f"After step {step}" if step else "Before the first step"
