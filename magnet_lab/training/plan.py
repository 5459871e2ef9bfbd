"""What a recipe will cost, before it is run: memory, floating-point operations, time.

The recipe's own forward and backward pass is run on tensors that have a shape and no data. What autograd keeps for the
backward pass is counted as it is kept, and operations as they are called; so neither knows formulas of an architecture,
and any decoder can be planned for. A model of seven billion parameters takes a quarter of a minute and no memory.
"""

import dataclasses
import os
import time
from dataclasses import dataclass
from itertools import islice

import torch
from peft import get_peft_model
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig

from magnet_lab import views, zoo
from magnet_lab.attention import bidirectional
from magnet_lab.data import pairs, rows
from magnet_lab.data.rows import Corpus
from magnet_lab.decoder import hidden_states, vocabulary_scores
from magnet_lab.encoding import DEFAULT_INSTRUCTION, sentence_ids
from magnet_lab.model import best_device
from magnet_lab.objectives import ProjectionHead
from magnet_lab.training.recipe import Phase, Recipe


@dataclass(frozen=True)
class Processor:
    """What a run has to work with.

    Attributes:
        memory: GB.
        rate: floating-point operations a second in large matrix products.
        reached: the share of that rate which a training step of this kind reaches.
    """

    memory: float
    rate: float
    reached: float = 0.4


# As their makers state it, for dense products in bfloat16.
PROCESSORS = {
    "l4": Processor(24, 121e12),
    "rtx-4090": Processor(24, 165e12),
    "a100": Processor(80, 312e12),
    "h100": Processor(80, 989e12),
    "h200": Processor(141, 989e12),
}

# Shapes of models whose files need not be here to plan for them.
SHAPES = {
    "llama-2-7b": {
        "vocab_size": 32_000,
        "hidden_size": 4096,
        "intermediate_size": 11_008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "max_position_embeddings": 4096,
    },
    "small": {
        "vocab_size": 49_152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
    },
}


@dataclass(frozen=True)
class Cost:
    """Of one forward and backward pass.

    Attributes:
        kept: bytes of activations that wait for the backward pass.
        operations: floating-point operations, forward and backward together.
        tokens: that go through, padding among them.
    """

    kept: int
    operations: float
    tokens: int


@dataclass(frozen=True)
class Plan:
    """What a recipe needs.

    Attributes:
        weights, trained: bytes of the model's frozen weights; of what is trained, its gradients and the optimizer's two
            averages.
        activations: bytes at the worst moment of a step.
        operations: a step's floating-point operations, one figure a phase.
        tokens: that a step reads, one figure a phase.
    """

    weights: int
    trained: int
    activations: int
    operations: list[float]
    tokens: list[int]

    @property
    def memory(self) -> int:
        """Bytes at the worst moment, without what the processor's own libraries take."""
        return self.weights + self.trained + self.activations


def plan(recipe: Recipe) -> Plan:
    """What a recipe needs, each step in one process."""
    model = _without_data(recipe)
    sizes = {True: 0, False: 0}
    for parameter in model.parameters():
        sizes[parameter.requires_grad] += parameter.numel() * parameter.element_size()
    if recipe.contrast is not None and recipe.contrast.projection:
        with torch.device("meta"):
            head = ProjectionHead(model.config.get_text_config().hidden_size)
        sizes[True] += sum(parameter.nbytes for parameter in head.parameters())
    widths, sentences = _widths(recipe)
    operations, tokens, activations = [], [], 0
    for phase in recipe.phases:
        step = []
        if phase.mntp or phase.msg or phase.mtp:
            size = min(recipe.micro_batch or recipe.batch, recipe.batch)
            part = cost(model, recipe, size, widths, labels=_labels(recipe, phase, size, widths))
            step += [part] * -(-recipe.batch // size)
            activations = max(activations, part.kept)
        if phase.sscl:
            contrast, columns = recipe.contrast, 3 if recipe.contrast.positives == "triplets" else 2
            part = cost(model, recipe, contrast.chunk or columns * contrast.batch, sentences, labels=0)
            parts = -(-columns * contrast.batch // (contrast.chunk or columns * contrast.batch))
            again = 4 / 3 if contrast.chunk else 1  # GradCache runs forward a second time
            step += [dataclasses.replace(part, operations=part.operations * again)] * parts
            activations = max(activations, part.kept)
        operations.append(sum(part.operations for part in step))
        tokens.append(sum(part.tokens for part in step))
    return Plan(sizes[False], sizes[True] * 4, activations, operations, tokens)


def cost(model: nn.Module, recipe: Recipe, count: int, width: int, *, labels: int) -> Cost:
    """Of a pass over `count` rows of `width` tokens with so many labels, by a model without data."""
    config = model.config.get_text_config()
    kept = {}
    with FakeTensorMode(), FlopCounterMode(display=False) as counter:
        tensors = {name: _empty(tensor) for name, tensor in (*model.named_parameters(), *model.named_buffers())}
        own = {tensor.untyped_storage()._cdata for tensor in tensors.values()}

        def keep(tensor):
            storage = tensor.untyped_storage()
            if storage._cdata not in own:
                kept[storage._cdata] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            half = recipe.precision == "bfloat16"
            loss = torch.func.functional_call(_Step(model, half), _named(tensors), (count, width, labels))
        loss.backward()
        operations = counter.get_total_flops()
    # The counter does not know the fused attention: two products forwards, five backwards.
    operations += 7 * 2 * count * width**2 * config.hidden_size * config.num_hidden_layers
    held = sum(kept.values())
    if recipe.activation_checkpointing:  # one block at a time, and every block's input
        inputs = count * width * config.hidden_size * (2 if recipe.precision == "bfloat16" else 4)
        held = held // config.num_hidden_layers + inputs * config.num_hidden_layers
        operations *= 4 / 3
    return Cost(held, operations, count * width)


class _Step(nn.Module):
    """What the loop computes in one pass, for `functional_call`, which lends a module other tensors."""

    def __init__(self, model: nn.Module, half: bool):
        super().__init__()
        self.model, self.half = model, half

    def forward(self, count: int, width: int, labels: int):
        ids = torch.zeros(count, width, dtype=torch.long)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.half):
            states = hidden_states(self.model, ids, bidirectional(torch.ones_like(ids)))
            if not labels:
                return states.float().mean()
            scores = vocabulary_scores(self.model, states.flatten(0, 1)[:labels])
        return nn.functional.cross_entropy(scores.float(), ids.new_zeros(labels))


def _without_data(recipe: Recipe):
    """The recipe's model with its adapter, its weights shapes alone."""
    from magnet_lab.training.loop import lora_config

    folder = zoo.find(recipe.model) if recipe.model != "small" else None
    if folder is not None:
        config = AutoConfig.from_pretrained(folder)
    elif recipe.model in SHAPES:
        config = LlamaConfig(**SHAPES[recipe.model])
    else:
        raise zoo.ModelUnavailable(
            f"the shape of {recipe.model!r} is not known here: fetch the model once, or plan for one of "
            f"{', '.join(['tiny', *SHAPES])}"
        )
    half = recipe.precision == "bfloat16" and recipe.lora is not None
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16 if half else torch.float32)
        if recipe.lora is not None:
            get_peft_model(model, lora_config(recipe.lora))
    return model


def _widths(recipe: Recipe) -> tuple[int, int]:
    """Tokens of a row of the corpus and of a contrastive sentence: as they are in the recipe's files, where these are
    here, else as long as the recipe allows."""
    row, sentence = recipe.length, recipe.contrast.length if recipe.contrast else 0
    folder = zoo.find(recipe.model)
    tokenizer = zoo.load_tokenizer(folder if folder is not None else zoo.find("tiny"))
    files = [path for path in recipe.corpus.paths if rows.local_file(path)]
    if files and not recipe.corpus.pack:
        corpus = dataclasses.replace(recipe.corpus, paths=files)
        lengths = [len(ids) + 1 for ids in tokenizer(list(islice(rows.texts(corpus), 500)))["input_ids"]]
        row = _mean([min(length, recipe.length) for length in lengths])
    contrast = recipe.contrast
    if contrast is not None and all(map(rows.local_file, contrast.paths or recipe.corpus.paths)):
        corpus = Corpus(contrast.paths) if contrast.paths else recipe.corpus
        found = pairs.read(contrast.positives, corpus, shortest=contrast.shortest, most=200)[:200]
        made = [sentence_ids(tokenizer, text, DEFAULT_INSTRUCTION, contrast.pooling) for pair in found for text in pair]
        sentence = _mean([min(len(ids), contrast.length) for ids, _, _ in made])
    return row, sentence


def _labels(recipe: Recipe, phase: Phase, count: int, width: int) -> int:
    """Positions of a micro-batch that the head over the vocabulary is asked for."""
    spans, generator = recipe.spans, torch.Generator().manual_seed(0)
    tokens = torch.ones(count, width, dtype=torch.long)
    span_ids = views.sample_spans(
        tokens,
        generator=generator,
        max_spans=spans.at_most,
        shortest=spans.shortest,
        longest=spans.longest,
        causal_share=spans.causal_share,
    )
    asked = int((span_ids > 0).sum()) if phase.msg else 0
    return asked + round(recipe.mask_share * int((span_ids == 0).sum())) * bool(phase.mntp or phase.mtp)


def _mean(numbers: list[int]) -> int:
    return round(sum(numbers) / len(numbers))


def _empty(tensor):
    return torch.empty(tensor.shape, dtype=tensor.dtype, requires_grad=tensor.requires_grad)


def _named(tensors: dict) -> dict:
    return {f"model.{name}": tensor for name, tensor in tensors.items()}


def processor(name: str, precision: str) -> Processor:
    """A processor by its name; "here" is this machine's, whose rate is measured now.

    Raises:
        ValueError: for a name that is not known.
    """
    if name in PROCESSORS:
        return PROCESSORS[name]
    if name != "here":
        raise ValueError(f"{name!r} is not known: give one of {', '.join(PROCESSORS)}, or here")
    device = best_device()
    if device.type == "cuda":
        memory = torch.cuda.get_device_properties(device).total_memory
    else:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Processor(memory / 1e9, matrix_rate(device, getattr(torch, precision)), reached=0.5)


def matrix_rate(device: torch.device, dtype: torch.dtype) -> float:
    """Floating-point operations a second in large matrix products, measured: what the processor can do at best."""
    size = 8192 if device.type == "cuda" else 2048
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    seconds = []
    for _ in range(8):
        start = time.perf_counter()
        a @ b
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / min(seconds)


def report(made: Plan, recipe: Recipe, processor: Processor, name: str) -> str:
    """The plan in words, a line a figure."""
    lines = [
        f"{recipe.model}, {recipe.steps} steps of {recipe.batch} rows",
        f"  frozen weights                {_gigabytes(made.weights)}",
        f"  trained, with its optimizer   {_gigabytes(made.trained)}",
        f"  activations                   {_gigabytes(made.activations)}",
        f"  in all                        {_gigabytes(made.memory)}",
    ]
    fits = made.memory < 0.93 * processor.memory * 1e9  # the rest is the libraries' and lost between blocks
    lines[-1] += f" of {processor.memory:g} GB on {name}: " + ("fits" if fits else "does not fit")
    if not fits:
        lines.append(
            "  to make it fit: a smaller micro_batch, contrast.chunk, activation_checkpointing, or shard over several"
        )
    total = 0.0
    for number, phase in enumerate(recipe.phases):
        seconds = made.operations[number] / (processor.rate * processor.reached)
        total += seconds * phase.steps
        lines.append(
            f"  phase {number + 1}: {phase.steps} steps of {made.tokens[number]:,} tokens, "
            f"{made.operations[number] / 1e12:.3g} TFLOP, about {_duration(seconds)} each"
        )
    rate = f"{processor.reached:.0%} of {processor.rate / 1e12:.3g} TFLOP/s"
    lines.append(f"  the whole run: about {_duration(total)}, if {rate} is reached")
    return "\n".join(lines)


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:8.2f} GB"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
