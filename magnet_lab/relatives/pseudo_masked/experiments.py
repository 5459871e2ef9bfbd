"""Table 6 in miniature: which pre-training objective serves later tasks best (Section 4.6)?

One small model is pre-trained by each objective on the same stories of a little world, with the same tokens hidden, and
then fine-tuned on three tasks of that world:

    label     a headline and two facts: of which is it?         accuracy from [SOS]          (as MNLI)
    answer    a question and two facts: where is the answer?    exact match of the span      (as SQuAD)
    ask       an answer and two facts: what was the question?   exact match by beam search   (as question generation)

A seed decides a run's first weights, its stories, its hidden tokens and its tasks, and all objectives share the seeds.
`evaluation/unilmv2_table6.py` makes the table of the runs.

All models but one have the relative position bias, where the document's have none in this comparison: without it a
small model spends the few steps that it is given here on finding its neighbours.
"""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from magnet_lab.relatives.pseudo_masked import little_world
from magnet_lab.relatives.pseudo_masked.decoding import beam_search
from magnet_lab.relatives.pseudo_masked.finetuning import (
    Classifier,
    SpanFinder,
    best_spans,
    sequence_loss,
    sequence_to_sequence,
    span_loss,
)
from magnet_lab.relatives.pseudo_masked.layout import Layout, one_pass, plain
from magnet_lab.relatives.pseudo_masked.masking import blockwise_masking, one_by_one
from magnet_lab.relatives.pseudo_masked.model import Encoder, Shape, new_model
from magnet_lab.relatives.pseudo_masked.objectives import losses
from magnet_lab.relatives.pseudo_masked.training import train
from magnet_lab.relatives.pseudo_masked.vocabulary import SPECIAL, join, word_tokenizer
from magnet_lab.training.recipe import Optimizer


@dataclass(frozen=True)
class Objective:
    """What a model is pre-trained by.

    Attributes:
        ae, par: the losses; neither for a model that is not pre-trained.
        blocks: a block is told in one step; without, every token has a step of its own, and PAR is AR.
        relative: the model has the relative position bias.
    """

    ae: bool = False
    par: bool = False
    blocks: bool = True
    relative: bool = True


OBJECTIVES = {
    "AE+PAR": Objective(ae=True, par=True),
    "AE+AR": Objective(ae=True, par=True, blocks=False),
    "AE": Objective(ae=True),
    "PAR": Objective(par=True),
    "AR": Objective(par=True, blocks=False),
    "AE+PAR, no relative bias": Objective(ae=True, par=True, relative=False),
    "no pre-training": Objective(),
}


@dataclass(frozen=True)
class Settings:
    """The miniature as data.

    Attributes:
        hidden, layers, spread: of the model, see `Shape`.
        stories, steps, batch, pretraining: stories to pre-train on, gradient steps, stories in each, and the course of
            the learning rate. Adam as in Table 7; the rate is higher, as small models like it, and there is no dropout.
        examples, tuning_steps, tuning: the same for each task.
        tested: new examples that a task is tested on; `ask`, which is written token by token, on a tenth of them.
        beam, alpha: of beam search, see `decoding`.
    """

    hidden: int = 64
    layers: int = 2
    spread: float = 0.1
    stories: int = 6000
    steps: int = 700
    batch: int = 16
    pretraining: Optimizer = field(
        default_factory=lambda: Optimizer(
            lr=4e-3, warmup=35, schedule="linear", betas=[0.9, 0.98], eps=1e-6, weight_decay=0.01
        )
    )
    examples: int = 500
    tuning_steps: int = 150
    tuning: Optimizer = field(
        default_factory=lambda: Optimizer(lr=1e-3, warmup=15, schedule="linear", weight_decay=0.01)
    )
    tested: int = 1000
    beam: int = 5
    alpha: float = 1.3  # Table 10, question generation


TOKENIZER = word_tokenizer(little_world.words(), size=200)


def run(name: str, seed: int, settings: Settings) -> dict[str, float]:
    """Pre-train by one objective, then fine-tune a copy of the model on each task: what each came to, in %."""
    model = pretrain(OBJECTIVES[name], seed, settings)
    return {task.__name__: task(copy.deepcopy(model), seed, settings) for task in (label, answer, ask)}


def pretrain(objective: Objective, seed: int, settings: Settings) -> Encoder:
    """A new model, trained on stories (Equation 7)."""
    shape = Shape(
        vocabulary=TOKENIZER.get_vocab_size(),
        hidden=settings.hidden,
        layers=settings.layers,
        inner=4 * settings.hidden,
        relative=objective.relative,
        spread=settings.spread,
    )
    model, generator = new_model(shape, seed), torch.Generator().manual_seed(seed)
    stories = [join(*map(ids, little_world.story(generator))) for _ in range(settings.stories)]

    def loss(step: int) -> Tensor:
        # A generator of the step's own: what one objective draws more than another changes nothing in the next step.
        generator = torch.Generator().manual_seed(1_000_000 * (seed + 1) + step)
        places = torch.randint(len(stories), (settings.batch,), generator=generator).tolist()
        layout = hide([stories[place] for place in places], objective, generator)
        return sum(losses(model, layout).values())

    if objective.ae or objective.par:
        train(model, loss, settings.steps, settings.pretraining)
    return model


def hide(texts: list[list[int]], objective: Objective, generator: torch.Generator) -> Layout:
    """Hide tokens of texts, the same for every objective, and lay them out for its losses."""
    orders = [blockwise_masking([token >= len(SPECIAL) for token in text], generator) for text in texts]
    if not objective.blocks:
        orders = [one_by_one(order, generator) for order in orders]
    return one_pass(texts, orders, conventional=objective.ae, pseudo=objective.par)


def label(model: Encoder, seed: int, settings: Settings) -> float:
    """Accuracy (%) in telling whether a headline is that of the first fact, of the second or of neither."""
    known, tested = _examples(little_world.headline, seed, settings)
    texts = [join(ids(headline), ids(facts)) for headline, facts, _ in known]
    labels = torch.tensor([label for _, _, label in known])
    classifier = Classifier(model, classes=3)
    _tune(classifier, lambda at: cross_entropy(classifier(plain([texts[i] for i in at])), labels[at]), seed, settings)
    with torch.no_grad():
        found = classifier(plain([join(ids(headline), ids(facts)) for headline, facts, _ in tested])).argmax(dim=-1)
    return _percent(one == label for one, (_, _, label) in zip(found.tolist(), tested, strict=True))


def answer(model: Encoder, seed: int, settings: Settings) -> float:
    """Exact match (%) of answers that are a span of the facts."""
    known, tested = (
        [_span(*question) for question in part] for part in _examples(little_world.question, seed, settings)
    )
    finder = SpanFinder(model)
    spans = torch.tensor([span for _, span in known])
    _tune(finder, lambda at: span_loss(finder(plain([known[i][0] for i in at])), spans[at]), seed, settings)
    with torch.no_grad():
        found = best_spans(finder(plain([text for text, _ in tested])))
    return _percent(tuple(one) == span for one, (_, span) in zip(found.tolist(), tested, strict=True))


def ask(model: Encoder, seed: int, settings: Settings) -> float:
    """Exact match (%) of questions that beam search writes for facts and an answer."""
    known, tested = (
        [(ids(f"{answer} : {facts}"), ids(question)) for question, facts, answer in part]
        for part in _examples(little_world.question, seed, settings)
    )
    _tune(
        model,
        lambda at: sequence_loss(model, sequence_to_sequence(*zip(*(known[i] for i in at), strict=True))),
        seed,
        settings,
    )
    options = {"beam": settings.beam, "alpha": settings.alpha, "max_length": max(len(target) for _, target in known)}
    return _percent(
        beam_search(model, source, **options)[0].tokens == target for source, target in tested[: settings.tested // 10]
    )


def ids(text: str) -> list[int]:
    """A text of the little world as ids."""
    return TOKENIZER.encode(text).ids


def _examples(make, seed: int, settings: Settings) -> tuple[list, list]:
    """Examples of a task to learn from, and others to be tested on."""
    generator = torch.Generator().manual_seed(1000 + seed)  # not that of the stories to pre-train on
    made = [make(generator) for _ in range(settings.examples + settings.tested)]
    return made[: settings.examples], made[settings.examples :]


def _tune(model: nn.Module, loss: Callable[[list[int]], Tensor], seed: int, settings: Settings) -> None:
    """Fine-tune on batches of the examples; `loss` takes their indices."""
    generator = torch.Generator().manual_seed(seed)

    def of_step(step: int) -> Tensor:
        return loss(torch.randint(settings.examples, (settings.batch,), generator=generator).tolist())

    train(model, of_step, settings.tuning_steps, settings.tuning)


def _span(question: str, facts: str, answer: str) -> tuple[list[int], tuple[int, int]]:
    """`[SOS] question [EOS] facts [EOS]`, and the places of the answer's first and last token in it."""
    told, wanted = ids(facts), ids(answer)
    start = next(place for place in range(len(told)) if told[place : place + len(wanted)] == wanted)
    first = len(join(ids(question))) + start
    return join(ids(question), told), (first, first + len(wanted) - 1)


def _percent(right: Iterable[bool]) -> float:
    right = list(right)
    return 100 * sum(right) / len(right)
