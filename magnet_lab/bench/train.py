"""Training by the paper's recipe: speed, memory, and the share of the processor's measured matrix-multiply rate.

On a GPU the shape is that of LLaMA-2-7B with random weights, which take as long as real ones. On a CPU it is that of
`small`, with batches that fit; there the ratios are what matters: one joint pass against two separate ones, and the
head over the vocabulary on labelled positions against all of them.
"""

import dataclasses
import math
import os
import tempfile
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from magnet_lab import Magnet, decoder, zoo
from magnet_lab.bench._report import parser, publish, side_by_side
from magnet_lab.data.rows import Corpus
from magnet_lab.model import best_device
from magnet_lab.objectives import mntp_loss
from magnet_lab.training.loop import Trainer
from magnet_lab.training.plan import SHAPES, matrix_rate
from magnet_lab.training.recipe import Contrast, Phase, Recipe, Spans


def random_lab(shape: str, dtype: torch.dtype, device: torch.device) -> Magnet:
    """A model of a known shape with random weights; the bundled tokenizer serves any vocabulary that is larger."""
    config = LlamaConfig(**SHAPES[shape])
    default = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    with torch.device(device):
        model = LlamaForCausalLM(config)
    torch.set_default_dtype(default)
    return Magnet(model, zoo.load_tokenizer(zoo.resolve("tiny")), name=shape)


def recipe_for(folder: Path, shape: str, options) -> Recipe:
    """The paper's recipe over invented text: 32 rows of 512 tokens, 64 pairs of up to 128 tokens."""
    words = ["the", "small", "dog", "saw", "a", "red", "house", "and", "ran", "into", "his", "garden"]
    generator = torch.Generator().manual_seed(0)

    def text(count: int) -> str:
        return " ".join(words[i] for i in torch.randint(len(words), (count,), generator=generator))

    (folder / "corpus.txt").write_text("\n".join(text(400) for _ in range(8 * options.batch)))
    (folder / "pairs.tsv").write_text("\n".join(f"{text(30)}\t{text(30)}" for _ in range(4 * options.pairs)))
    return Recipe(
        model=shape,
        corpus=Corpus([str(folder / "corpus.txt")]),
        phases=[Phase(1, mntp=1, msg=1), Phase(10_000, mntp=1, sscl=9, msg=1)],
        spans=Spans(longest=min(128, options.length // 2)),
        contrast=Contrast(positives="pairs", paths=[str(folder / "pairs.tsv")], batch=options.pairs),
        batch=options.batch,
        length=options.length,
        micro_batch=options.micro_batch,
        activation_checkpointing=options.activation_checkpointing,
        precision=options.dtype,
    )


def work(lab: Magnet, tokens: int, length: int) -> float:
    """Floating-point operations of a forward and a backward pass that leaves the base weights as they are.

    Two for each weight and token forwards, two backwards through the states (a full training has two more for the
    weights' own gradients), and the attention's two products, which grow with the length.
    """
    config = lab.model.config
    linear = sum(
        m.weight.numel() for n, m in lab.model.named_modules() if isinstance(m, torch.nn.Linear) and "layers" in n
    )
    attention = 2 * config.num_hidden_layers * config.hidden_size * length
    return (4 * linear + 3 * 2 * attention) * tokens


def main() -> None:
    device = best_device()
    on_gpu = device.type == "cuda"
    options = parser(__doc__)
    options.set_defaults(model="llama-2-7b" if on_gpu else "small", dtype="bfloat16" if on_gpu else "float32")
    options.add_argument("--batch", type=int, default=32 if on_gpu else 4)
    options.add_argument("--length", type=int, default=512 if on_gpu else 128)
    options.add_argument("--pairs", type=int, default=64 if on_gpu else 8)
    options.add_argument("--micro-batch", type=int, default=16 if on_gpu else None)
    options.add_argument("--activation-checkpointing", action="store_true")
    options = options.parse_args()
    dtype = getattr(torch, options.dtype)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MAGNET_LAB_CACHE"] = folder  # rows of invented text are not worth keeping
        recipe = recipe_for(Path(folder), options.model, options)
        lab = random_lab(options.model, dtype, device)
        trainer = Trainer(recipe, Path(folder) / "run", lab=lab)
        rate = matrix_rate(device, dtype)
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
        seconds = side_by_side(options.repeats, phase_1=lambda: trainer.step(0), phase_2=lambda: trainer.step(1))
        tokens = options.batch * options.length
        figures = {
            "rows": options.batch,
            "length": options.length,
            "pairs": options.pairs,
            "seconds a step, phase 1": seconds["phase_1"],
            "seconds a step, phase 2": seconds["phase_2"],
            "tokens a second, phase 1": tokens / seconds["phase_1"],
            "TFLOP/s at best": rate / 1e12,
            "share of it, phase 1": work(lab, tokens, options.length) / seconds["phase_1"] / rate,
            "whole recipe, hours": (3400 * seconds["phase_1"] + 800 * seconds["phase_2"]) / 3600,
        }
        if on_gpu:
            figures["peak memory, GB"] = torch.cuda.max_memory_allocated() / 1e9
        else:
            figures |= ratios(trainer, options)
    publish("train", options, figures)


def ratios(trainer: Trainer, options) -> dict[str, float]:
    """What one pass for both objectives, and the head on labels alone, save."""
    alone = [Phase(1, mntp=1), Phase(1, msg=1)]
    phases = trainer.recipe.phases

    def step(phase: Phase):
        trainer.recipe = dataclasses.replace(trainer.recipe, phases=[phase])
        trainer.step(0)

    input_ids, tokens = trainer.rows.batch(0, options.batch, 0)
    made = trainer.views(input_ids, tokens, 0)
    labels = torch.where(made.mntp_labels >= 0, made.mntp_labels, made.msg_labels)
    states = torch.randn(*labels.shape, trainer.lab.model.config.hidden_size, requires_grad=True)

    def head(asked):
        scores = decoder.vocabulary_scores(trainer.lab.model, states[asked])
        mntp_loss(scores, labels[asked]).backward()

    seconds = side_by_side(
        options.repeats,
        joint=lambda: step(phases[0]),
        separate=lambda: [step(phase) for phase in alone],
        on_labels=lambda: head(labels >= 0),
        everywhere=lambda: head(torch.ones_like(labels, dtype=torch.bool)),
    )
    return {
        "two passes / joint pass": seconds["separate"] / seconds["joint"],
        "head everywhere / on labels, time": seconds["everywhere"] / seconds["on_labels"],
        "head everywhere / on labels, memory": math.prod(labels.shape) / int((labels >= 0).sum()),
    }


if __name__ == "__main__":
    main()
