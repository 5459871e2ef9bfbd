"""Figure 4 on a text of one's own: its three views, what the model makes of them, and the three losses."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import magnet_lab as ml

from .. import limits
from . import adapters
from .masks import Token

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import LongTensor, Tensor

    from magnet_lab.model import Magnet
    from magnet_lab.views import Views as MadeViews

TOP = 5  # tokens shown of what the model finds likely


@dataclass(frozen=True)
class Position(Token):
    """A token of a view, and what is asked of its position: `predicts` by `objective`; nothing where both are empty."""

    predicts: str = ""
    objective: str = ""


@dataclass(frozen=True)
class Views:
    """The views of a text: the tokens of x, x⁺ and xᵐ, what there is to say, and all of them in plain text."""

    text: list[Position]
    paraphrase: list[Position]
    masked: list[Position]
    about_paraphrase: str
    about_masked: list[str]  # what is missing, what is hidden, and about the position looked at
    twin: str


@dataclass(frozen=True)
class Pictures:
    """The masks of x, x⁺ and xᵐ, and what each position of xᵐ reads and predicts."""

    masks: list["Figure"]
    predicts: "Figure"


@dataclass(frozen=True)
class Prediction:
    """What the model says at a position, beside the token that comes next; `rank` 1 is the likeliest."""

    position: int
    reads: str
    objective: str
    true: str
    probability: float
    rank: int
    top: list[tuple[str, float]]


@dataclass(frozen=True)
class Predictions:
    """All predictions of a text, the two losses in nats (None where nothing is asked), and everything in text."""

    rows: list[Prediction]
    mntp: float | None
    msg: float | None
    sentence: str
    twin: str


@dataclass(frozen=True)
class Pairs:
    """Sentences, their paraphrases, and the vectors of both, `(n, hidden)` each."""

    sentences: list[str]
    paraphrases: list[str]
    anchors: "Tensor"
    candidates: "Tensor"


@dataclass(frozen=True)
class Contrast:
    """Sentences against paraphrases: the loss in nats, a sentence, and the similarities and one softmax in text."""

    loss: float
    sentence: str
    twin: str


# --- views


def check_text(tokenizer, text: str) -> None:
    """Raise a ValueError if a text cannot be walked through."""
    limits.check_text("the text", text, limits.MASK_CHARACTERS)
    if (length := len(ml.decoder.text_ids(tokenizer, text))) > limits.OBJECTIVE_TOKENS:
        raise ValueError(f"the text has {length:,} tokens; at most {limits.OBJECTIVE_TOKENS} fit here, so shorten it")


def make(tokenizer, text: str, seed: int) -> "tuple[LongTensor, MadeViews]":
    """A text's ids, `(1, length)`, and its view xᵐ as training makes it; another seed is another draw."""
    import torch

    check_text(tokenizer, text)
    limits.check_number("the seed", seed, 0, 2**31 - 1, whole=True)
    input_ids = torch.tensor([ml.decoder.start_ids(tokenizer) + ml.decoder.text_ids(tokenizer, text)])
    generator = torch.Generator().manual_seed(int(seed))
    tokens = torch.ones_like(input_ids)
    return input_ids, ml.views.make_views(input_ids, tokens, tokenizer=tokenizer, generator=generator)


def sentence_tokens(tokenizer, text: str) -> list[str]:
    """What each token says of a text as it is read for its vector, with instruction and end."""
    from magnet_lab.viz.views import id_texts

    ids, *_ = ml.encoding.sentence_ids(tokenizer, text, ml.encoding.DEFAULT_INSTRUCTION, "last")
    return id_texts(tokenizer, ids)


def in_other_words(text: str, seed: int = 0) -> str:
    """The text's paraphrase by rule, x⁺."""
    import torch

    from magnet_lab.paraphrase import paraphrase

    return paraphrase(text, torch.Generator().manual_seed(int(seed)))


def draw_views(tokenizer, text: str, seed: int, position: float | None = None) -> Views:
    """The three views of a text (Figure 4), and in words what one position of xᵐ reads, sees and is to predict."""
    from magnet_lab.viz import views as pictures

    input_ids, made = make(tokenizer, text, seed)
    other = in_other_words(text, seed)
    tokens, read = (pictures.id_texts(tokenizer, row[0].tolist()) for row in (input_ids, made.input_ids))
    position = _place(position, len(tokens))
    strip = _masked_strip(tokenizer, input_ids, made, tokens, read, position)
    if position is None:
        about = ["Pick a token to see what its position predicts."]
    else:
        about = _about_position(strip[position], position, ml.attention.attention_mask(made.span_ids)[0, 0, position])
    masked = ml.viz.strip_text(read, made.span_ids[0].tolist(), made.selected[0].nonzero()[:, 0].tolist())
    return Views(
        _sentence_strip(sentence_tokens(tokenizer, text)),
        _sentence_strip(sentence_tokens(tokenizer, other)),
        strip,
        f"Said in other words by rule: “{other}”" if other != text else _UNCHANGED,
        [*_about_view(tokenizer, input_ids, made, tokens), *about],
        f"x   {text}\nx⁺  {other}\nxᵐ  {masked}\n\n{pictures.views_text(tokens, read, made)}",
    )


def draw_pictures(tokenizer, text: str, seed: int, position: float | None = None) -> Pictures:
    """The same views as pictures."""
    import torch

    from magnet_lab.viz import views as pictures

    input_ids, made = make(tokenizer, text, seed)
    tokens, read = (pictures.id_texts(tokenizer, row[0].tolist()) for row in (input_ids, made.input_ids))
    masks = []
    for words in (text, in_other_words(text, seed)):
        said = sentence_tokens(tokenizer, words)
        mask = ml.attention.attention_mask(ml.attention.bidirectional(torch.ones(1, len(said))))[0, 0]
        masks.append(ml.viz.mask_figure(mask, said))
    mask, spans = ml.attention.attention_mask(made.span_ids)[0, 0], made.span_ids[0].tolist()
    masks.append(ml.viz.mask_figure(mask, read, spans, token=_place(position, len(tokens))))
    return Pictures(masks, pictures.views_figure(tokens, read, made))


def _place(position: float | None, length: int) -> int | None:
    return int(position) if isinstance(position, int | float) and position in range(length) else None


def _sentence_strip(said: list[str]) -> list[Position]:
    strip = [Position(text, "context", f"{place} · sees every token") for place, text in enumerate(said)]
    last = f"{strip[-1].words} · its state is the sentence's vector"
    return [*strip[:-1], replace(strip[-1], words=last, predicts="vector", objective="SSCL")]


def _masked_strip(tokenizer, input_ids: "LongTensor", made: "MadeViews", tokens, read, picked) -> list[Position]:
    from magnet_lab.viz import views as pictures

    strip = []
    rows = zip(read, pictures.kinds(made), pictures.targets(made), made.span_ids[0].tolist(), strict=True)
    for place, (text, kind, objective, span) in enumerate(rows):
        state = {"context": "context", "span": f"span {span}"}.get(
            kind
        ) or f"hidden, {_fate(tokenizer, input_ids, made, place)}"
        predicts = tokens[place + 1] if objective else ""
        task = f"predicts {place + 1}, {_said(predicts)}, {objective}" if objective else "nothing is asked"
        strip.append(Position(text, kind, f"{place} · {state} · {task}", place == picked, predicts, objective))
    return strip


_UNCHANGED = (
    "No rule says this text in other words, so it is its own paraphrase here: try “big”, “did not” or “One day”."
)
_WHY = {
    "MNTP": "That token is hidden, and what stands around it has to do",
    "MSG": "That token is a span's, written from the context on both sides and the span so far",
}


def _fate(tokenizer, input_ids: "LongTensor", made: "MadeViews", place: int) -> str:
    """What became of a token that was chosen to be hidden."""
    stands = int(made.input_ids[0, place])
    if stands == ml.views.mask_token_id(tokenizer):
        return "the mask token stands there"
    return "and left as it is" if stands == int(input_ids[0, place]) else "a random token stands there"


def _about_view(tokenizer, input_ids: "LongTensor", made: "MadeViews", tokens: list[str]) -> list[str]:
    spans = made.span_ids[0]
    stretches = [ml.viz.ranges((spans == number).nonzero()[:, 0].tolist()) for number in range(1, int(spans.max()) + 1)]
    hidden = [
        f"{place} {_said(tokens[place])} ({_fate(tokenizer, input_ids, made, place)})"
        for place in made.selected[0].nonzero()[:, 0].tolist()
    ]
    return [
        f"Missing, for MSG to write: {' and '.join(stretches)}."
        if stretches
        else "Too short a text for a missing span.",
        f"Hidden, for MNTP to find: {', '.join(hidden)}." if hidden else "Too short a text to hide a token of it.",
    ]


def _about_position(here: Position, position: int, seen: "Tensor") -> list[str]:
    reads = f"Position {position} reads {_said(here.text)}"
    if not here.objective:
        return [f"{reads}. Nothing is asked of it.", _sees(seen)]
    return [
        f"{reads} and is to predict token {position + 1}, {_said(here.predicts)}: {here.objective}.",
        f"{_WHY[here.objective]}. {_sees(seen)}",
    ]


def _sees(seen: "Tensor") -> str:
    return f"It sees {ml.viz.ranges(seen.nonzero()[:, 0].tolist())}."


def _said(text: str) -> str:
    return f"“{ml.viz.visible(text).strip() or '␣'}”"


# --- predictions


def predict(lab: "Magnet", text: str, seed: int, adapter: str) -> Predictions:
    """One forward pass over xᵐ: what the model says where something is asked, and the losses MNTP and MSG."""
    import torch

    from magnet_lab.viz import views as pictures

    lab = adapters.use(lab, adapter)
    input_ids, made = make(lab.tokenizer, text, seed)
    with torch.inference_mode():
        logits = ml.decoder.logits(lab.model, made.input_ids.to(lab.device), made.span_ids.to(lab.device)).cpu().float()
    read_ids, true_ids = made.input_ids[0].tolist(), input_ids[0].tolist()
    tokens, read = (pictures.id_texts(lab.tokenizer, ids) for ids in (true_ids, read_ids))
    rows = []
    for position, objective in enumerate(pictures.targets(made)):
        if not objective:
            continue
        shares = logits[0, position].softmax(dim=-1)
        own = shares[true_ids[position + 1]]
        best = shares.topk(TOP)
        likeliest = [
            (pictures.id_texts(lab.tokenizer, [found], read_ids[: position + 1])[0], float(share))
            for found, share in zip(best.indices.tolist(), best.values, strict=True)
        ]
        rank = int((shares > own).sum()) + 1
        rows.append(Prediction(position, read[position], objective, tokens[position + 1], float(own), rank, likeliest))
    mntp, msg = (
        float(loss(logits, labels)) if (labels != ml.views.NO_LABEL).any() else None
        for loss, labels in (
            (ml.objectives.mntp_loss, made.mntp_labels),
            (ml.objectives.msg_loss, made.msg_labels),
        )
    )
    right = sum(row.rank == 1 for row in rows)
    sentence = (
        f"{adapters.NAMES[adapter]}: the likeliest token is the true one at {right} of {len(rows)} positions. "
        "A loss is the mean of -log p(true) over its positions: 0 is certain."
        if rows
        else "This text is too short: nothing is hidden and nothing missing. Write a longer one."
    )
    return Predictions(rows, mntp, msg, sentence, _predictions_text(rows))


def _predictions_text(rows: list[Prediction]) -> str:
    lines = []
    for row in rows:
        likeliest = ", ".join(f"{_said(text)} {share:.3f}" for text, share in row.top)
        lines.append(
            f"{row.position} {_said(row.reads)} → {row.position + 1} {_said(row.true)} ({row.objective}): "
            f"p {row.probability:.4f}, place {row.rank}; likeliest {likeliest}"
        )
    return "\n".join(lines)


# --- contrast


def read_pairs(text: str) -> list[tuple[str, str]]:
    """Sentences, one a line, each with what follows a `|` as its paraphrase, or an empty one; a ValueError if wrong."""
    limits.check_text("the list of sentences", text, limits.SENTENCE_PAIRS * 2 * (limits.SENTENCE_CHARACTERS + 2))
    lines = [line.partition("|") for line in text.splitlines() if line.strip()]
    if not 2 <= len(lines) <= limits.SENTENCE_PAIRS:
        raise ValueError(f"{len(lines)} sentence(s) came, one a line; give 2 to {limits.SENTENCE_PAIRS} to tell apart")
    pairs = [(sentence.strip(), other.strip()) for sentence, _, other in lines]
    for number, (sentence, other) in enumerate(pairs, start=1):
        limits.check_text(f"sentence {number}", sentence, limits.SENTENCE_CHARACTERS)
        if other:
            limits.check_text(f"the paraphrase of sentence {number}", other, limits.SENTENCE_CHARACTERS)
    return pairs


def encode_pairs(lab: "Magnet", text: str, adapter: str) -> Pairs:
    """The vectors of sentences and of their paraphrases, written or made by rule."""
    pairs = [(sentence, other or in_other_words(sentence)) for sentence, other in read_pairs(text)]
    sentences, paraphrases = (list(side) for side in zip(*pairs, strict=True))
    lab = adapters.use(lab, adapter)
    return Pairs(sentences, paraphrases, lab.encode(sentences), lab.encode(paraphrases))


def contrast(pairs: Pairs, temperature: float, number: int = 1) -> Contrast:
    """How well each sentence finds its own paraphrase (Equation 3); asks no model."""
    from magnet_lab.viz.views import contrast_text

    similarity = ml.encoding.similarity(pairs.anchors, pairs.candidates)
    shown = _shown(pairs, temperature, number)
    loss = float(ml.objectives.info_nce(pairs.anchors, pairs.candidates, temperature=temperature))
    found = sum(int(best) == place for place, best in enumerate(similarity.argmax(dim=1)))
    return Contrast(
        loss,
        f"{found} of {len(pairs.sentences)} sentences are closest to their own paraphrase. SSCL is {loss:.4g} nats at "
        f"τ = {temperature:g}: a small τ makes much of small differences, a large one levels them.",
        f"{ml.viz.similarity_text(similarity, pairs.sentences, pairs.paraphrases)}\n\n"
        f"{contrast_text(similarity, pairs.paraphrases, **shown)}",
    )


def draw_heatmap(pairs: Pairs) -> "Figure":
    """The similarity of every sentence with every paraphrase."""
    similarity = ml.encoding.similarity(pairs.anchors, pairs.candidates)
    return ml.viz.similarity_figure(similarity, pairs.sentences, pairs.paraphrases)


def draw_row(pairs: Pairs, temperature: float, number: int = 1) -> "Figure":
    """One sentence's softmax over the paraphrases."""
    from magnet_lab.viz.views import contrast_figure

    similarity = ml.encoding.similarity(pairs.anchors, pairs.candidates)
    return contrast_figure(similarity, pairs.paraphrases, **_shown(pairs, temperature, number))


def _shown(pairs: Pairs, temperature: float, number: int) -> dict:
    """Which row is looked at, and at which temperature; the last one where there are not as many."""
    limits.check_number("τ", temperature, limits.LOWEST_TAU, 1)
    limits.check_number("the sentence looked at", number, 1, limits.SENTENCE_PAIRS, whole=True)
    return {"row": min(int(number), len(pairs.sentences)) - 1, "temperature": temperature}


# --- total


def total(mntp=None, sscl=None, msg=None, lambda_1=1.0, lambda_2=9.0, lambda_3=1.0) -> str:
    """The total loss (Equation 5) as a sum written out; a loss that is not there yet, None, counts nothing."""
    losses = {"MNTP": (mntp, lambda_1, "λ₁"), "SSCL": (sscl, lambda_2, "λ₂"), "MSG": (msg, lambda_3, "λ₃")}
    terms, whole, missing = [], 0.0, []
    for name, (loss, weight, symbol) in losses.items():
        limits.check_number(symbol, weight, 0, limits.LAMBDA)
        if loss is None:
            missing.append(name)
            continue
        limits.check_number(name, loss, 0, 1e6)
        terms.append(f"{weight:g} · {loss:.3f} ({name})")
        whole += weight * loss
    if not terms:
        return "No loss is known yet: ask the model above."
    not_yet = f" Not known yet: {' and '.join(missing)}." if missing else ""
    return f"Total = {' + '.join(terms)} = {whole:.3f} nats.{not_yet}"
