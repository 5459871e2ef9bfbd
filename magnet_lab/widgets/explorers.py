"""The course's widgets: each a function of its controls to a picture, computed by what the rest of the project uses."""

from collections.abc import Sequence

import ipywidgets
import torch
from torch.nn.functional import cross_entropy

from magnet_lab import attention, encoding, objectives, viz
from magnet_lab.attention import CONTEXT
from magnet_lab.blanks import parse
from magnet_lab.decoder import logits, pad, start_ids, text_ids
from magnet_lab.infilling import Candidate
from magnet_lab.model import Magnet
from magnet_lab.paraphrase import paraphrase
from magnet_lab.views import make_views
from magnet_lab.viz.overview import Example, example, sentence_kinds, view_kinds
from magnet_lab.viz.picture import Picture
from magnet_lab.viz.views import targets
from magnet_lab.widgets.controls import LAYOUT, Explorer, choice, explore, slider, writing

MODES = {"causal": "causal", "bidirectional": "bidirectional", "prefix LM": "prefix", "MAGNET": "magnet"}


def mask_explorer(tokens: Sequence[str], *, mode: str = "magnet", span: tuple[int, int] = (1, 2)) -> Explorer:
    """Who may look at whom, and what reaches whom through several layers.

    Args:
        tokens: of a text, as `viz.token_texts` gives them; at most 48.
        mode: the first one, of `attention.MODES`.
        span: first and last token of MAGNET's span; the prefix of a prefix LM ends where it starts.
    """
    last = len(tokens) - 1
    if not 1 <= last < 48:
        raise ValueError(f"{len(tokens)} tokens make no good picture of a mask; give 2 to 48")
    ones = torch.ones(1, len(tokens), dtype=torch.long)

    def draw(mode: str, span: tuple[int, int], layers: int, leak: bool, token: int | None) -> Picture:
        first, final = span
        span_ids = {
            "causal": lambda: attention.causal(ones),
            "bidirectional": lambda: attention.bidirectional(ones),
            "prefix": lambda: attention.prefix(ones, first),
            "magnet": lambda: attention.magnet(ones, [[(first, final + 1)]]),
        }[mode]()
        mask = attention.attention_mask(span_ids)[0, 0]
        if leak:
            mask = mask | (span_ids[0] == CONTEXT)[:, None]
        reach, numbers = attention.receptive_field(mask, layers), span_ids[0].tolist()
        text = viz.mask_text(mask, tokens, numbers, reach=reach)
        if token is not None:
            text += f"\ntoken {token} sees {viz.ranges(mask[token].nonzero()[:, 0].tolist())}"
        return Picture(viz.mask_figure(mask, tokens, numbers, reach=reach, token=token), text)

    named = [("none", None), *((f"{number} {viz.visible(token)}", number) for number, token in enumerate(tokens))]
    between = ipywidgets.IntRangeSlider(
        value=span, min=0, max=last, description="span (prefix: before it)", continuous_update=False, **LAYOUT
    )
    return explore(
        draw,
        mode=choice("mode", MODES, mode),
        span=between,
        layers=slider("layers of attention", 1, 1, 8),
        leak=ipywidgets.Checkbox(value=False, description="break the rule: the context sees the span", **LAYOUT),
        token=choice("frame a token", named, None),
    )


def objective_stepper(lab: Magnet, text: str, *, positive: str | None = None, seed: int = 0, k: int = 6) -> Explorer:
    """Step through the three views of a text (Figure 4): what each output is asked for, and what the model expects.

    Args:
        text, positive, seed: as `viz.example` takes them.
        k: likeliest tokens shown.
    """
    made = example(lab.tokenizer, text, seed=seed, positive=positive)
    sentences = {"x": made.x, "x⁺": made.positive}
    scores = {"xᵐ": _scores(lab, made.views.input_ids, made.views.span_ids)}
    for name, sentence in sentences.items():
        ids = torch.tensor([sentence.ids])
        scores[name] = _scores(lab, ids, attention.bidirectional(torch.ones_like(ids)))
    cosine = float(lab.similarity(*lab.encode([made.x.text, made.positive.text]).split(1)))

    def draw(view: str, position: int) -> Picture:
        sentence = sentences.get(view)
        read, kinds = (sentence.pieces, sentence_kinds(sentence)) if sentence else (made.read, view_kinds(made))
        position = min(position, len(read) - 1)
        # The instruction is one piece and many tokens: count from the end.
        row, right = scores[view][position - len(read)].float(), None
        if sentence:
            words = f"output {position}: no loss here; this is what the model would say next"
            if position == len(read) - 1:
                words = f"SSCL reads the vector of this output; cosine of e and e⁺ {cosine:.3f}"
        else:
            words, right = _asked(made, position, row)
        tokens, probabilities = viz.likeliest(lab.tokenizer, row, k=k, right=right)
        # The true token follows the likeliest ones where it is not among them.
        place = None if right is None else min(int((row > row[right]).sum()), k)
        return viz.show("step", read, kinds, position, words, tokens, probabilities, right=place, title=view)

    asked = [position for position, name in enumerate(targets(made.views)) if name]
    longest = max(len(made.read), len(made.x.pieces), len(made.positive.pieces))
    return explore(
        draw,
        view=choice("view", ["x", "x⁺", "xᵐ"], "xᵐ"),
        position=slider("position", asked[0] if asked else 0, 0, longest - 1),
    )


def loss_mixer(lab: Magnet, texts: Sequence[str], *, positives: Sequence[str] | None = None, seed: int = 0) -> Explorer:
    """Equation 5 on a batch, with sliders for λ₁, λ₂, λ₃ and τ.

    Args:
        texts: the batch, at least two; its losses are measured once.
        positives: their paraphrases; by default made by rule.
        seed: of the views and the paraphrases.
    """
    if len(texts) < 2:
        raise ValueError(f"{len(texts)} text has no other to be told from; give at least two")
    generator = torch.Generator().manual_seed(seed)
    positives = positives or [paraphrase(text, generator) for text in texts]
    input_ids, tokens = pad([start_ids(lab.tokenizer) + text_ids(lab.tokenizer, text) for text in texts])
    views = make_views(input_ids, tokens, tokenizer=lab.tokenizer, generator=generator, shortest=2, longest=8)
    with torch.no_grad():
        scores = logits(lab.model, views.input_ids.to(lab.device), views.span_ids.to(lab.device)).cpu()
    mntp = float(objectives.mntp_loss(scores, views.mntp_labels))
    msg = float(objectives.msg_loss(scores, views.msg_labels))
    anchors, candidates = lab.encode(texts), lab.encode(positives)

    def draw(mntp_weight: float, sscl_weight: float, msg_weight: float, temperature: float) -> Picture:
        weights = (mntp_weight, sscl_weight, msg_weight)
        return viz.show("mixing", mntp, msg, anchors, candidates, weights=weights, temperature=temperature)

    return explore(
        draw,
        mntp_weight=slider("λ₁, of MNTP", 1.0, 0.0, 10.0, 0.5, live=True),
        sscl_weight=slider("λ₂, of SSCL", 9.0, 0.0, 10.0, 0.5, live=True),
        msg_weight=slider("λ₃, of MSG", 1.0, 0.0, 10.0, 0.5, live=True),
        temperature=slider("temperature τ", 0.1, 0.01, 1.0, 0.01, live=True),
    )


def infill_playground(lab: Magnet, text: str = "Tom had a red ball. [blank] He was very sad.") -> Explorer:
    """Fill the blanks of a text; every written token is shaded by its probability.

    Args:
        text: the first one, with blanks as `Magnet.infill` takes them.
    """

    def draw(text: str, temperature: float, seed: int, candidate: int) -> Picture:
        made = lab.infill(text, num_candidates=3, temperature=temperature, seed=seed).candidates
        chosen = made[min(candidate, len(made)) - 1]
        picture = viz.show("likelihood", *_shaded(lab, text, chosen), title=f"{chosen.score:.2f} nats a token")
        ranked = "\n".join(f"{number}  {each.score:.2f}  {each.text}" for number, each in enumerate(made, start=1))
        return Picture(picture.figure, f"{picture.text}\n{ranked}")

    return explore(
        draw,
        text=writing("text with [blank]s", text),
        temperature=slider("temperature", 0.0, 0.0, 2.0, 0.1),
        seed=slider("seed, above temperature 0", 0, 0, 99),
        candidate=slider("candidate, best first", 1, 1, 3),
    )


def embedding_map(lab: Magnet, sentences: Sequence[str]) -> Explorer:
    """Sentences as vectors: on a plane, or each two by their cosine similarity; one a line in the field."""

    def draw(sentences: str, pooling: str, picture: str) -> Picture:
        lines = [line.strip() for line in sentences.splitlines() if line.strip()]
        if len(lines) < 2:
            raise ValueError("write at least two sentences, one a line")
        vectors = lab.encode(lines, pooling=pooling)
        return viz.show(picture, encoding.similarity(vectors, vectors) if picture == "similarity" else vectors, lines)

    return explore(
        draw,
        sentences=writing("sentences", "\n".join(sentences)),
        pooling=choice("pooling", encoding.POOLINGS, "last"),
        picture=choice("picture", {"map": "map", "similarities": "similarity"}, "map"),
    )


@torch.no_grad()
def _scores(lab: Magnet, input_ids: torch.Tensor, span_ids: torch.Tensor) -> torch.Tensor:
    """`(batch, length)` of ids -> the scores of the first row, `(length, vocabulary)`."""
    return logits(lab.model, input_ids.to(lab.device), span_ids.to(lab.device))[0].cpu()


def _asked(made: Example, position: int, row: torch.Tensor) -> tuple[str, int | None]:
    """What an output of xᵐ is asked for, in words, and the id of the true token; `row` are its scores."""
    objective = targets(made.views)[position]
    if not objective:
        return f"output {position}: asked for nothing", None
    right = int(made.ids[0, position + 1])
    wanted, loss = viz.visible(made.tokens[position + 1]).strip(), float(cross_entropy(row, torch.tensor(right)))
    return f"{objective}: output {position} is asked for token {position + 1}, “{wanted}”: {loss:.3f} nats", right


def _shaded(lab: Magnet, text: str, candidate: Candidate) -> tuple[list[str], list[float]]:
    """The tokens of a filled text, and the probability of each; NaN for those of the context."""
    first, *others = ([(piece, float("nan")) for piece in viz.token_texts(lab.tokenizer, segment)]
                      for segment in parse(text)[0])  # fmt: skip
    shaded = first
    for span, after in zip(candidate.spans, others, strict=True):
        written = torch.tensor(span.log_probs).exp().tolist()
        shaded += [*zip(span.tokens, written, strict=True), *after]
    return [piece for piece, _ in shaded], [probability for _, probability in shaded]
