"""One pre-trained model, three uses (Section 3.4): a label for a text, a span in it, another text written for it."""

import torch
from torch import LongTensor, Tensor, nn
from torch.nn.functional import cross_entropy

from magnet_lab.relatives.pseudo_masked.layout import Layout, one_pass
from magnet_lab.relatives.pseudo_masked.masking import left_to_right
from magnet_lab.relatives.pseudo_masked.model import Encoder
from magnet_lab.relatives.pseudo_masked.vocabulary import join
from magnet_lab.views import NO_LABEL

LABEL_SMOOTHING = 0.1  # Appendix D


class Classifier(nn.Module):
    """A softmax classifier on the encoding of [SOS], which stands for the whole text."""

    def __init__(self, encoder: Encoder, classes: int):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(encoder.shape.hidden, classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, layout: Layout) -> Tensor:
        """Scores, `(batch, classes)`; `layout` as `layout.plain` makes it."""
        return self.head(self.encoder(layout)[:, 0])


class SpanFinder(nn.Module):
    """Scores every token as the first and as the last of the answer (Section 4.2)."""

    def __init__(self, encoder: Encoder):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(encoder.shape.hidden, 2)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, layout: Layout) -> Tensor:
        """Scores, `(batch, 2, width)`; those outside the passage, the second segment, are as good as -∞."""
        scores = self.head(self.encoder(layout)).transpose(1, 2)
        outside = layout.segment_ids == 0
        return scores.masked_fill(outside[:, None], torch.finfo(scores.dtype).min)


def span_loss(scores: Tensor, spans: LongTensor) -> Tensor:
    """Mean cross entropy (nats) of first and last tokens; `(batch, 2, width)` and `(batch, 2)`, both inclusive."""
    return cross_entropy(scores.flatten(0, 1), spans.flatten())


def best_spans(scores: Tensor) -> LongTensor:
    """The likeliest first and last token with the last not before the first, `(batch, 2, width)` -> `(batch, 2)`."""
    log_probs = scores.log_softmax(dim=-1)
    pairs = log_probs[:, 0, :, None] + log_probs[:, 1, None, :]  # (batch, first, last)
    width = scores.shape[-1]
    backwards = torch.ones(width, width, dtype=torch.bool).tril(-1)
    best = pairs.masked_fill(backwards, -torch.inf).flatten(1).argmax(dim=1)
    return torch.stack([best // width, best % width], dim=1)


def sequence_to_sequence(sources: list[list[int]], targets: list[list[int]]) -> Layout:
    """`[SOS] SRC [EOS] TGT [EOS]` for one pass: every target token has a pseudo mask, and is told from left to right.

    It is the layout of pre-training with the target, its [EOS] too, as the hidden tokens. There are no conventional
    masks: they would tell how long the target is.
    """
    texts = [join(*pair) for pair in zip(sources, targets, strict=True)]
    orders = [left_to_right(range(len(join(source)), len(text))) for source, text in zip(sources, texts, strict=True)]
    return one_pass(texts, orders, conventional=False)


def sequence_loss(model: Encoder, layout: Layout) -> Tensor:
    """Mean cross entropy of the target's tokens, its labels smoothed as in Appendix D."""
    asked = layout.par_labels != NO_LABEL
    scores = model.vocabulary_scores(model(layout)[asked])
    return cross_entropy(scores, layout.par_labels[asked], label_smoothing=LABEL_SMOOTHING)
