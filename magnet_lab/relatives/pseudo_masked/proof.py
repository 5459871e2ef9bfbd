"""The document's central claim: one pass gives the probabilities of separately built instances, and leaks nothing.

Nothing is trained here. Weights are drawn at random, wide enough that the probabilities differ by orders of magnitude
and a leak shows; what holds for any weights holds for trained ones.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import torch
from torch import BoolTensor, Tensor

from magnet_lab.paraphrase import sentences
from magnet_lab.relatives.pseudo_masked import cloze
from magnet_lab.relatives.pseudo_masked.layout import GIVEN, Layout, one_pass
from magnet_lab.relatives.pseudo_masked.masking import Order, blockwise_masking, one_by_one
from magnet_lab.relatives.pseudo_masked.model import Encoder, Shape, new_model
from magnet_lab.relatives.pseudo_masked.objectives import log_probs
from magnet_lab.relatives.pseudo_masked.vocabulary import SPECIAL, join, word_tokenizer
from magnet_lab.views import NO_LABEL

SHAPE = Shape(vocabulary=1000, layers=3, spread=0.2)
LENGTH, DOCUMENT_LENGTH = 30, 512  # tokens of a text


@torch.no_grad()
def one_pass_is_many(
    stories: list[str], name: str, seeds: Iterable[int] = range(5), texts: int = 8
) -> dict[str, float]:
    """Log-probabilities of every hidden token, from the one pass and from instances of their own (Table 1).

    Args:
        stories: see `openings`.
        name: "AE", "AR" or "PAR".
        seeds: random models, each with texts and orders of its own.
        texts: for each model.

    Returns:
        How many probabilities were compared, how many nats lie between the least and the most likely, the largest
        difference of two logarithms (nats), and the largest to the same instances as BERT would read them.
    """
    ids = openings(stories)
    found = []
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        model = new_model(SHAPE, seed).eval()
        for place in torch.randint(len(ids), (texts,), generator=generator).tolist():
            order = blockwise_masking([token >= len(SPECIAL) for token in ids[place]], generator)
            if name == "AR":
                order = one_by_one(order, generator)
            found.append(both_ways(model, ids[place], order, name))
    together, apart, as_bert = (torch.cat(of_one_kind) for of_one_kind in zip(*found, strict=True))
    return {
        "compared": len(together),
        "range (nats)": float(together.max() - together.min()),
        "largest difference (nats)": float((together - apart).abs().max()),
        "to BERT's reading (nats)": float((together - as_bert).abs().max()),
    }


def both_ways(model: Encoder, text: list[int], order: Order, name: str) -> tuple[Tensor, Tensor, Tensor]:
    """log p (nats) of the hidden tokens by AE, AR or PAR, `(hidden tokens,)` each: from the one pass, from the
    instances, and from the instances as BERT would read them."""
    labels = "ae_labels" if name == "AE" else "par_labels"

    def read(layouts: list[Layout]) -> Tensor:
        return torch.cat([log_probs(model, layout, getattr(layout, labels)) for layout in layouts])

    rows = [cloze.ae_row(text, order)]  # all tokens given: whichever way it is read, everyone sees everyone
    if name != "AE":
        rows = [cloze.par_row(text, order, step) for step in range(len(order))]
    instances = [cloze.instances([row]) for row in rows]
    as_bert = [cloze.everyone_sees_everyone(instance) for instance in instances]
    return read([one_pass([text], [order])]), read(instances), read(as_bert)


def tokens(length: int, name: str, texts: int = 20, seed: int = 0) -> dict[str, list[float]]:
    """Tokens that a Transformer has to read for one text's losses, in one pass and as instances; for each text.

    Args:
        length: of the texts, in tokens.
        name: "AE + PAR" or "AE + AR".
    """
    generator = torch.Generator().manual_seed(seed)
    found: dict[str, list[float]] = {"in one pass": [], "as instances": [], "times as many": []}
    for _ in range(texts):
        text, order = random_text(length, generator)
        if name == "AE + AR":
            order = one_by_one(order, generator)
        together = one_pass([text], [order]).input_ids.numel()
        apart = len(cloze.ae_row(text, order)) + sum(len(cloze.par_row(text, order, i)) for i in range(len(order)))
        for column, count in zip(found, (together, apart, apart / together), strict=True):
            found[column].append(count)
    return found


@torch.no_grad()
def leaks(change: Callable[[Layout], Layout], layers: int, seeds: Iterable[int] = range(5)) -> tuple[float, float]:
    """Exchange a hidden token: how much changes at its own pseudo mask, and wherever else it must not be known?

    Args:
        change: spoils the layout; one of `WAYS`.
        layers: of the model.

    Returns:
        The largest change of any log-probability (nats) at the token's own pseudo mask, and at any place where nothing
        may be known of it, over all hidden tokens of one text a seed.
    """
    at_its_mask = anywhere = 0.0
    for seed in seeds:
        text, order = random_text(LENGTH, torch.Generator().manual_seed(seed))
        model = new_model(replace(SHAPE, layers=layers), seed).eval()
        changes, own, barred = change_each(model, text, order, change)
        at_its_mask = max(at_its_mask, float(changes[own].max()))
        anywhere = max(anywhere, float(changes[barred].max()))
    return at_its_mask, anywhere


def change_each(
    model: Encoder, text: list[int], order: Order, way: Callable[[Layout], Layout]
) -> tuple[Tensor, BoolTensor, BoolTensor]:
    """Put another word in the place of each hidden token in turn, and see what changes; `way` may spoil the layout.

    Returns:
        All `(hidden tokens, width)`: the largest change of any log-probability at each place of the row, the places
        of the token's own pseudo mask, and the places at which nothing may be known of the token: all that is given,
        all pseudo masks up to its own step, all true tokens of earlier steps.
    """
    hidden = [(position, number) for number, step in enumerate(order, start=1) for position in step]
    others = [
        [another_word(token) if place == position else token for place, token in enumerate(text)]
        for position, _ in hidden
    ]
    orders = [order] * len(hidden)
    layout = one_pass([text] * len(hidden), orders)
    before, after = (
        model.vocabulary_scores(model(way(read))).log_softmax(dim=-1) for read in (layout, one_pass(others, orders))
    )
    position, step = torch.tensor(hidden)[:, :, None].unbind(dim=1)
    own = (layout.position_ids == position) & layout.pseudo
    barred = (layout.steps < step) | ((layout.steps == step) & layout.pseudo)
    return (after - before).abs().amax(dim=-1), own, barred


def pseudo_masks_see_their_tokens(layout: Layout) -> Layout:
    """Wrong: a pseudo mask sees the true token that it is to predict."""
    same = (layout.position_ids[:, None, :] == layout.position_ids[:, :, None]) & (layout.steps[:, None, :] > GIVEN)
    return replace(layout, mask=layout.mask | (same & layout.pseudo[:, :, None])[:, None])


def context_sees_the_told(layout: Layout) -> Layout:
    """Wrong: what is given sees the true tokens that are told later ("x6 has access to x4")."""
    told = (layout.steps > GIVEN) & ~layout.pseudo
    return replace(layout, mask=layout.mask | ((layout.steps == GIVEN)[:, :, None] & told[:, None, :])[:, None])


def conventional_masks_show_their_tokens(layout: Layout) -> Layout:
    """Wrong for PAR, though Section 4.1 has it so for one in ten: see `masking.eighty_ten_ten`."""
    return replace(layout, input_ids=torch.where(layout.ae_labels == NO_LABEL, layout.input_ids, layout.ae_labels))


WAYS: dict[str, Callable[[Layout], Layout]] = {
    "as in Figure 5": lambda layout: layout,
    "explicit: a pseudo mask sees its own token": pseudo_masks_see_their_tokens,
    "implicit: the context sees what is told": context_sees_the_told,
    "80/10/10: a conventional mask shows its token": conventional_masks_show_their_tokens,
}


def openings(stories: list[str]) -> list[list[int]]:
    """The first two sentences of each story as a text of two segments, where they fit the model's positions.

    Raises:
        ValueError: if no story has such sentences.
    """
    tokenizer = word_tokenizer(stories, SHAPE.vocabulary)
    pairs = [sentences(story, shortest=1, longest=SHAPE.positions)[:2] for story in stories]
    ids = [join(*(tokenizer.encode(sentence).ids for sentence in pair)) for pair in pairs if len(pair) == 2]
    if not (fitting := [text for text in ids if len(text) <= SHAPE.positions]):
        raise ValueError(f"none of the {len(stories)} stories opens with two short sentences; give others, one a line")
    return fitting


def random_text(length: int, generator: torch.Generator) -> tuple[list[int], Order]:
    """Random words, `[SOS] S1 [EOS] S2 [EOS]` of `length` tokens, and a blockwise order for them."""
    words = torch.randint(len(SPECIAL), SHAPE.vocabulary, (length - 3,), generator=generator).tolist()
    text = join(words[: len(words) // 2], words[len(words) // 2 :])
    return text, blockwise_masking([token >= len(SPECIAL) for token in text], generator)


def another_word(token: int) -> int:
    """The word with the next id; the first word after the last."""
    return len(SPECIAL) + (token + 1 - len(SPECIAL)) % (SHAPE.vocabulary - len(SPECIAL))
