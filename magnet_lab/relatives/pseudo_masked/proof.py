"""The document's central claim: one pass gives the probabilities of separately built instances, and leaks nothing.

Nothing is trained here. Weights are drawn at random, wide enough that the probabilities differ by orders of magnitude
and a leak shows; what holds for any weights holds for trained ones.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import BoolTensor, Tensor
from tqdm import tqdm

from magnet_lab.paraphrase import sentences
from magnet_lab.relatives.pseudo_masked import cloze
from magnet_lab.relatives.pseudo_masked.intervals import interval
from magnet_lab.relatives.pseudo_masked.layout import GIVEN, Layout, one_pass
from magnet_lab.relatives.pseudo_masked.masking import Order, blockwise_masking, one_by_one
from magnet_lab.relatives.pseudo_masked.model import Encoder, Shape, new_model
from magnet_lab.relatives.pseudo_masked.objectives import log_probs
from magnet_lab.relatives.pseudo_masked.vocabulary import SPECIAL, join, word_tokenizer
from magnet_lab.views import NO_LABEL

SHAPE = Shape(vocabulary=1000, layers=3, spread=0.2)
LENGTH, DOCUMENT_LENGTH = 30, 512  # tokens of a text


@torch.no_grad()
def one_pass_is_many(stories: list[str], seeds: int = 5, texts: int = 8) -> dict:
    """Log-probabilities of every hidden token, from the one pass and from instances of their own (Table 1).

    Args:
        stories: see `openings`.
        seeds: random models, each with texts and orders of its own.
        texts: for each model.

    Returns:
        For AE, AR and PAR: how many probabilities were compared, the largest difference of their logarithms (nats) and
        the range that these span; and how far the instances are from the same instances as BERT would read them.
    """
    ids = openings(stories)
    found: dict[str, list[tuple[Tensor, Tensor, Tensor]]] = {"AE": [], "AR": [], "PAR": []}
    for seed in tqdm(range(seeds), desc="one pass is many", leave=False):
        generator = torch.Generator().manual_seed(seed)
        model = new_model(SHAPE, seed).eval()
        for place in torch.randint(len(ids), (texts,), generator=generator).tolist():
            blocks = blockwise_masking([token >= len(SPECIAL) for token in ids[place]], generator)
            for name, order in (("AE", blocks), ("AR", one_by_one(blocks, generator)), ("PAR", blocks)):
                found[name].append(both_ways(model, ids[place], order, name))
    figures = {}
    for name, values in found.items():
        together, apart, as_bert = (torch.cat(of_one_kind) for of_one_kind in zip(*values, strict=True))
        figures[name] = {
            "compared": len(together),
            "largest difference": float((together - apart).abs().max()),
            "range": [float(together.min()), float(together.max())],
            "as BERT, up to": float((together - as_bert).abs().max()),
        }
    return figures


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


def tokens(texts: int = 20, seed: int = 0) -> dict:
    """Tokens that a Transformer has to read for AE and PAR (or AR) of one text: in one pass, and as instances.

    Returns:
        For the length of a toy text and of the document's, means with 95 % intervals over texts.
    """
    generator = torch.Generator().manual_seed(seed)
    found: dict = {}
    for length in (LENGTH, DOCUMENT_LENGTH):
        counts: dict[str, list[tuple[int, int]]] = {"AE + PAR": [], "AE + AR": []}
        for _ in tqdm(range(texts), desc=f"counting tokens of texts of {length}", leave=False):
            text, blocks = random_text(length, generator)
            for name, order in (("AE + PAR", blocks), ("AE + AR", one_by_one(blocks, generator))):
                together = one_pass([text], [order]).input_ids.numel()
                steps = [len(cloze.par_row(text, order, step)) for step in range(len(order))]
                counts[name].append((together, len(cloze.ae_row(text, order)) + sum(steps)))
        found[f"texts of {length} tokens"] = {
            name: {
                "in one pass": interval([together for together, _ in pairs]),
                "as instances": interval([apart for _, apart in pairs]),
                "times as many": interval([apart / together for together, apart in pairs]),
            }
            for name, pairs in counts.items()
        }
    return found


@torch.no_grad()
def leaks(seeds: int = 5, layers: tuple[int, ...] = (1, 2, 3, 4)) -> dict:
    """Change a hidden token: how much changes at its own pseudo mask, and wherever else it must not be known?

    Returns:
        For the right layout and three wrong ones, and each number of layers, the largest change of any log-probability
        (nats) over all hidden tokens of one text a seed.
    """
    ways: dict[str, Callable[[Layout], Layout]] = {
        "as in Figure 5": lambda layout: layout,
        "explicit leakage: a pseudo mask sees its own token": pseudo_masks_see_their_tokens,
        "implicit leakage: the context sees the tokens": context_sees_the_told,
        "80/10/10: a conventional mask shows its token": conventional_masks_show_their_tokens,
    }
    found: dict = {way: {} for way in ways}
    for count in tqdm(layers, desc="leaks", leave=False):
        for way, change in ways.items():
            at_its_mask = anywhere = 0.0
            for seed in range(seeds):
                generator = torch.Generator().manual_seed(seed)
                text, order = random_text(LENGTH, generator)
                model = new_model(replace(SHAPE, layers=count), seed).eval()
                changes, own, barred = change_each(model, text, order, change)
                at_its_mask = max(at_its_mask, float(changes[own].max()))
                anywhere = max(anywhere, float(changes[barred].max()))
            found[way][f"{count} layers"] = {"at its own pseudo mask": at_its_mask, "where it must not be": anywhere}
    return found


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
