"""A training run as data: dataclasses, read from a YAML file whose mistakes are named by their line."""

import dataclasses
import difflib
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from magnet_lab.data.pairs import POSITIVES
from magnet_lab.data.rows import Corpus
from magnet_lab.training.scratch import Architecture

RECIPES = Path(__file__).parent.parent / "recipes"


class RecipeError(ValueError):
    """A mistake in a recipe: the message names the file, the line, what is wrong and what to do."""


class _Invalid(ValueError):
    def __init__(self, keys: str, message: str):
        super().__init__(message)
        self.keys = keys.split()


def _need(condition: bool, keys: str, message: str) -> None:
    """What must hold of the values of some keys; the error names the line of the first of them that is written."""
    if not condition:
        raise _Invalid(keys, message)


@dataclass
class Phase:
    """A stretch of the training with its weights: λ₁, λ₂ and λ₃ of Equation 5, and one for MTP (Appendix E)."""

    steps: int
    mntp: float = 0.0
    sscl: float = 0.0
    msg: float = 0.0
    mtp: float = 0.0

    def __post_init__(self):
        _need(self.steps > 0, "steps", f"a phase of {self.steps} steps; it needs at least 1")
        for name in ("mntp", "sscl", "msg", "mtp"):
            weight = getattr(self, name)
            _need(weight >= 0, name, f"the weight of {name} is {weight}; it cannot be negative")


@dataclass
class Spans:
    """Which stretches become spans: see `views.sample_spans`."""

    at_most: int = 2
    shortest: int = 4
    longest: int = 128
    causal_share: float = 0.0
    sentence_share: float = 0.0

    def __post_init__(self):
        _need(self.at_most >= 0, "at_most", f"{self.at_most} spans a row cannot be")
        _need(self.shortest >= 1, "shortest", f"a span of {self.shortest} tokens; it has at least 1")
        _need(self.longest >= self.shortest, "longest", f"longest {self.longest} is below shortest {self.shortest}")
        for name in ("causal_share", "sentence_share"):
            share = getattr(self, name)
            _need(0 <= share <= 1, name, f"{name} {share} is not a share from 0 to 1")


@dataclass
class Contrast:
    """Pairs for the contrastive objective (SSCL).

    Attributes:
        positives, shortest: see `data.pairs.read`.
        paths: files of pairs, or texts in place of the corpus's own.
        batch, length: pairs in a batch, and tokens of a sentence with its prompt.
        chunk: sentences whose activations are kept at a time; all by default. Smaller ones save memory at the price of
            a second forward pass; the gradient stays the same.
        pooling: "last" or "mean", see `encoding.encode`.
        projection: put a projection head between the vector and the loss.
        attention_dropout: of the attention's weights, for "dropout" positives (LLM2Vec's is 0.3).
    """

    positives: str = "rules"
    paths: list[str] = field(default_factory=list)
    shortest: int = 5
    batch: int = 64
    length: int = 128
    chunk: int | None = None
    temperature: float = 0.1
    pooling: str = "last"
    projection: bool = True
    attention_dropout: float = 0.0

    def __post_init__(self):
        known = ", ".join(POSITIVES)
        _need(self.positives in POSITIVES, "positives", f"positives {self.positives!r} is not one of {known}")
        named = self.positives not in ("pairs", "triplets") or bool(self.paths)
        _need(named, "positives paths", f"{self.positives} need files: name them in paths")
        _need(self.batch >= 2, "batch", f"a batch of {self.batch} has no negatives; it needs at least 2")
        _need(self.temperature > 0, "temperature", f"temperature {self.temperature} is not above 0")
        _need(self.pooling in ("last", "mean"), "pooling", f"pooling {self.pooling!r}: last or mean")


@dataclass
class Lora:
    """PEFT's LoRA on every linear layer of the decoder's blocks. A dropout above 0 serves "dropout" positives."""

    r: int = 16
    alpha: int = 32
    dropout: float = 0.0


@dataclass
class Optimizer:
    """AdamW, anew in every phase: a linear warm-up and then a constant, linear or cosine course.

    Attributes:
        warmup: steps.
        decay: share of a phase, at its end, over which a linear or cosine course falls to zero; until then the rate is
            constant.
    """

    lr: float = 3e-5
    warmup: int = 0
    schedule: str = "constant"
    decay: float = 1.0
    betas: list[float] = field(default_factory=lambda: [0.9, 0.999])
    eps: float = 1e-8
    weight_decay: float = 0.0
    clip: float | None = 1.0

    def __post_init__(self):
        _need(self.lr > 0, "lr", f"learning rate {self.lr} is not above 0")
        _need(0 < self.decay <= 1, "decay", f"decay {self.decay} is not a share above 0, up to 1")
        _need(
            self.schedule in ("constant", "linear", "cosine"),
            "schedule",
            f"schedule {self.schedule!r}: constant, linear or cosine",
        )


@dataclass
class Recipe:
    """A whole run.

    Attributes:
        model: what `Magnet.from_pretrained` takes.
        scratch: train a new model of this shape instead, with a tokenizer of the corpus's own.
        lora: null to train every weight.
        batch, length: rows of a batch and tokens of a row, for MNTP and MSG.
        micro_batch: rows in one forward pass; the gradient is that of the whole batch all the same.
        activation_checkpointing: run every block a second time in the backward pass instead of keeping what is inside
            it: a third more work for a fraction of the memory, so only where memory asks for it.
        shard: share the frozen weights of the blocks out over the processes, for a model that outgrows one GPU (FSDP).
        averaging: "targets": each loss a mean over its own targets; "printed": as Equations 2 and 4 stand in the
            paper, MNTP divided by batch times length and MSG by the batch alone.
        precision: "float32", or "bfloat16" for arithmetic and frozen weights; what is trained stays in float32.
    """

    model: str
    corpus: Corpus
    phases: list[Phase]
    spans: Spans = field(default_factory=Spans)
    contrast: Contrast | None = None
    lora: Lora | None = field(default_factory=Lora)
    scratch: Architecture | None = None
    optimizer: Optimizer = field(default_factory=Optimizer)
    batch: int = 32
    length: int = 512
    micro_batch: int | None = None
    activation_checkpointing: bool = False
    shard: bool = False
    mask_share: float = 0.2
    averaging: str = "targets"
    precision: str = "float32"
    seed: int = 0
    save_every: int = 100
    samples: list[str] = field(default_factory=list)
    samples_every: int = 100

    def __post_init__(self):
        _need(bool(self.phases), "phases", "a recipe needs at least one phase")
        _need(self.batch >= 1, "batch", f"a batch of {self.batch} rows")
        _need(self.length >= 2, "length", f"rows of {self.length} tokens have nothing to predict")
        _need(
            self.spans.shortest * 2 <= self.length or not self.spans.at_most,
            "spans length",
            f"a span of at least {self.spans.shortest} tokens does not fit half a row of {self.length}",
        )
        _need(
            self.spans.longest < self.length or not self.spans.at_most or self.spans.causal_share == 1,
            "spans length",
            f"spans of up to {self.spans.longest} tokens are longer than a row of {self.length}",
        )
        _need(0 <= self.mask_share <= 1, "mask_share", f"mask_share {self.mask_share} is not a share from 0 to 1")
        _need(
            self.averaging in ("targets", "printed"), "averaging", f"averaging {self.averaging!r}: targets or printed"
        )
        known = ("float32", "bfloat16")
        _need(self.precision in known, "precision", f"precision {self.precision!r} is not one of {', '.join(known)}")
        whole = self.scratch is None or self.lora is None
        _need(whole, "lora scratch", "a model from scratch has nothing for LoRA to adapt: say lora: null")
        shared = not self.shard or self.lora is not None
        _need(shared, "shard lora", "shard shares out frozen weights; with lora: null there are none")
        contrastive = any(phase.sscl for phase in self.phases)
        _need(
            not contrastive or self.contrast is not None, "phases", "a phase weighs sscl; say on what, with contrast:"
        )

    @property
    def steps(self) -> int:
        return sum(phase.steps for phase in self.phases)

    def phase(self, step: int) -> tuple[Phase, int]:
        """The phase that a step, counted from 0, belongs to, and the step's number in it."""
        for phase in self.phases:
            if step < phase.steps:
                return phase, step
            step -= phase.steps
        raise IndexError(f"the recipe ends after {self.steps} steps")


def load(name_or_path: str, *, like: str | None = None) -> Recipe:
    """A recipe of the project by its name, or a YAML file.

    A file may begin with `like: NAME`: what it does not say is then as in that recipe.

    Args:
        like: another recipe to stand behind it than the one that the file names.

    Raises:
        RecipeError: for a name that is none, and for a mistake in the file, with its line.
    """
    path = RECIPES / f"{name_or_path}.yaml"
    if not path.is_file():
        path = Path(name_or_path)
    if not path.is_file():
        raise RecipeError(f"there is no recipe {name_or_path!r}: give a YAML file or one of {', '.join(names())}")
    return parse(path.read_text(encoding="utf-8"), path.name, like=like)


def names() -> list[str]:
    """The recipes that come with the project."""
    return sorted(path.stem for path in RECIPES.glob("*.yaml"))


def parse(text: str, source: str = "recipe", *, like: str | None = None) -> Recipe:
    """A recipe from YAML; `like` and errors as in `load`."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise RecipeError(f"{source}, line {line}: this is no YAML: {error.problem}") from None
    if node is None:
        raise RecipeError(f"{source} is empty")
    if isinstance(node, yaml.MappingNode) and node.value and node.value[0][0].value == "like":
        named = _build(str, node.value.pop(0)[1], source)
        like = like or named
    elif like:
        raise RecipeError(f"{source} is whole in itself: it names no recipe that it is like")
    return _build(Recipe, node, source, load(like) if like else None)


def dump(recipe: Recipe) -> str:
    """The recipe as YAML, defaults written out; `parse` reads it back."""
    return yaml.safe_dump(dataclasses.asdict(recipe), sort_keys=False, allow_unicode=True)


def _build(kind, node, source: str, other=None):
    """A value of a type from a YAML node, checked; `other`: the value that stands behind this one, if there is any."""
    where = f"{source}, line {node.start_mark.line + 1}"
    if isinstance(kind, types.UnionType):  # X | None
        if node.tag == "tag:yaml.org,2002:null":
            return None
        kind = next(option for option in typing.get_args(kind) if option is not type(None))
    if typing.get_origin(kind) is list:
        if not isinstance(node, yaml.SequenceNode):
            raise RecipeError(f"{where}: a list is wanted here, its items each after a dash")
        return [_build(typing.get_args(kind)[0], item, source) for item in node.value]
    if dataclasses.is_dataclass(kind):
        return _build_dataclass(kind, node, source, where, other)
    if not isinstance(node, yaml.ScalarNode):
        raise RecipeError(f"{where}: a single value is wanted here")
    value = yaml.SafeLoader("").construct_object(node)
    if kind is float and not isinstance(value, bool):
        try:
            return float(value)  # YAML takes 3e-5 for a string
        except (TypeError, ValueError):
            pass
    elif isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    raise RecipeError(f"{where}: {node.value!r} is no {kind.__name__}")


def _build_dataclass(kind, node, source: str, where: str, other):
    if not isinstance(node, yaml.MappingNode):
        raise RecipeError(f"{where}: a mapping with the keys of {kind.__name__} is wanted here")
    fields = {field.name: field for field in dataclasses.fields(kind)}
    types_of = typing.get_type_hints(kind)
    values, lines = {}, {}
    for key_node, value_node in node.value:
        key, line = key_node.value, key_node.start_mark.line + 1
        if key not in fields:
            close = difflib.get_close_matches(key, fields, n=1)
            mend = f"did you mean {close[0]!r}?" if close else f"the keys are {', '.join(fields)}"
            raise RecipeError(f"{source}, line {line}: there is no key {key!r} here; {mend}")
        if key in values:
            raise RecipeError(f"{source}, line {line}: {key!r} stands here for the second time")
        values[key], lines[key] = _build(types_of[key], value_node, source, getattr(other, key, None)), line
    if other is not None:
        values = {name: getattr(other, name) for name in fields} | values
    for name, definition in fields.items():
        required = definition.default is definition.default_factory is dataclasses.MISSING
        if required and name not in values:
            raise RecipeError(f"{where}: {kind.__name__.lower()} lacks the key {name!r}")
    try:
        return kind(**values)
    except _Invalid as error:
        line = next((lines[key] for key in error.keys if key in lines), node.start_mark.line + 1)
        raise RecipeError(f"{source}, line {line}: {error}") from None
