"""What an experiment is, and what comes of it: figures with intervals, rows that are kept as they are measured."""

import json
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

import numpy as np

from magnet_lab.evaluation.data import Data
from magnet_lab.model import Magnet

OWN_MODELS = "relatives"
SHIPPED = Path(__file__).parent / "measured"  # results that come with the project


@dataclass(frozen=True)
class Figure:
    """A measured number with its 95 % interval, over `n` stories, pairs, words …"""

    value: float
    low: float
    high: float
    n: int


def bootstrap(units: list, statistic: Callable[[list], float], *, seed: int = 0, draws: int = 1000) -> Figure:
    """A statistic of some units, and the middle 95 % of what it is on as many units drawn with replacement."""
    generator = np.random.default_rng(seed)
    values = [
        statistic([units[place] for place in generator.integers(len(units), size=len(units))]) for _ in range(draws)
    ]
    low, high = np.percentile(values, [2.5, 97.5])
    return Figure(float(statistic(units)), float(low), float(high), len(units))


class Row(dict[str, Figure]):
    """Column -> figure, and `texts`, given -> written, where a reader should see what the figures were taken from."""

    def __init__(self, figures: Mapping[str, Figure] | Iterable = (), texts: Mapping[str, str] | None = None):
        super().__init__(figures)
        self.texts = dict(texts or {})


Rows = dict[str, dict[str, Figure]]  # row -> column -> figure; what could not be measured is not there


def texts(rows: Rows) -> dict[str, dict[str, str]]:
    """Row -> given -> written, of those rows that have texts."""
    return {row: columns.texts for row, columns in rows.items() if isinstance(columns, Row) and columns.texts}


@dataclass(frozen=True)
class Claim:
    """What the paper says a result shows; `holds` looks at the measured rows, None where they do not tell."""

    text: str
    holds: Callable[[Rows], bool | None]


@dataclass
class Setting:
    """What an experiment runs on.

    Attributes:
        model: name or path.
        quick: few examples, to see that everything runs.
        folder: where a row keeps what it trains; set by `reproduce.run`.
    """

    model: str
    data: Data
    quick: bool = False
    seed: int = 0
    folder: Path = Path("results")
    _base: Magnet | None = field(default=None, repr=False)

    def lab(self, adapter: str | None) -> Magnet:
        """The model with an adapter; the base weights are loaded once for all."""
        if self._base is None:
            self._base = Magnet.from_pretrained(self.model, adapter=None)
        return self._base.use(adapter)

    def some(self, full: int, quick: int) -> int:
        """How many examples to take."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Experiment:
    """One table or figure.

    Attributes:
        id: as in `published.toml`.
        rows: for each row how it is measured: column -> figure; a `Row` where there are texts beside.
        claims: what the paper reads in it.
        shown: how many of its texts the report shows.
        own_models: it trains small models of its own, on texts of its own, whatever the setting's are.
    """

    id: str
    title: str
    rows: dict[str, Callable[[Setting], dict[str, Figure]]]
    claims: list[Claim]
    shown: int = 0
    own_models: bool = False

    def model(self, name: str) -> str:
        """The model that its results are of: that of this name or path, or its own."""
        return OWN_MODELS if self.own_models else Path(name).name


@dataclass
class Result:
    """Rows of an experiment as they were measured, with all that is needed to measure them again."""

    id: str
    model: str
    data: str
    quick: bool
    seed: int
    hardware: str
    versions: dict[str, str]
    commit: str | None
    rows: Rows = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def is_of(self, other: "Result") -> bool:
        """Whether rows of the other belong here: the same model, data, size and seed."""
        return all(getattr(self, key) == getattr(other, key) for key in ("id", "model", "data", "quick", "seed"))

    def save(self, path: Path) -> None:
        """Write it as JSON, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        kept = asdict(self) | ({"texts": found} if (found := texts(self.rows)) else {})
        part.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        part.replace(path)

    @classmethod
    def load(cls, path: Path) -> "Result":
        """Read what `save` wrote.

        Raises:
            ValueError: for a file that is none of ours.
        """
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            written = kept.pop("texts", {})
            made = cls(**kept)
            made.rows = {
                row: Row({column: Figure(**figure) for column, figure in columns.items()}, written.get(row))
                for row, columns in made.rows.items()
            }
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"{path} holds no result of `magnet-lab reproduce`: {error}") from None
        return made


def versions() -> dict[str, str]:
    """Of the packages that figures may depend on."""
    return {package: version(package) for package in ("torch", "transformers", "peft", "magnet-lab")}


def commit() -> str | None:
    """The commit of the project's clone, where it is one."""
    found = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    )
    return found.stdout.strip() or None
