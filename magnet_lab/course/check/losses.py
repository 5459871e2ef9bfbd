"""What is minimised: InfoNCE, the total of three losses; and perplexity, what is reported."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax, normalize

from magnet_lab import objectives
from magnet_lab.course.check.examine import Mistake, compare, examine
from magnet_lab.course.check.verdict import Verdict
from magnet_lab.evaluation import infilling
from magnet_lab.views import NO_LABEL


def info_nce(function) -> Verdict:
    """The contrastive loss (Equation 3): `info_nce(anchors, candidates, temperature)`.

    Each anchor has to find its own candidate, the one of the same index, among all of them, by cosine similarity
    divided by the temperature. The loss is the mean over anchors of -log of its own candidate's share.

    Args of your function:
        anchors: `(n, hidden)`.
        candidates: `(m, hidden)`, m >= n: more candidates than anchors are extra negatives.
        temperature: τ.

    It returns one number (nats).

        anchors [[1, 0], [0, 1]], candidates the same, τ = 1  ->  log(e + 1) - 1 = 0.3133
    """
    generator = torch.Generator().manual_seed(0)

    def vectors(count: int, hidden: int) -> Tensor:
        return (torch.randn(count, hidden, generator=generator) * 3).round(decimals=1)

    cases = [
        (torch.eye(2), torch.eye(2), 1.0),
        (torch.tensor([[2.0, 0.0], [1.0, 1.0]]), torch.tensor([[1.0, 0.0], [0.0, 3.0]]), 0.5),
        (vectors(3, 4), vectors(3, 4), 0.1),
        (vectors(4, 8), vectors(6, 8), 0.5),
        (vectors(8, 16) * 5, vectors(8, 16), 0.05),
    ]

    def scores(anchors, candidates, temperature):
        return normalize(anchors, dim=-1) @ normalize(candidates, dim=-1).T / temperature

    def others_only(anchors, candidates, temperature):
        all_scores = scores(anchors, candidates, temperature)
        own = torch.eye(*all_scores.shape, dtype=torch.bool)
        return (all_scores.masked_fill(own, -torch.inf).logsumexp(1) - all_scores[own]).mean()

    def loss(all_scores, reduction="mean"):
        return cross_entropy(all_scores, torch.arange(len(all_scores)), reduction=reduction)

    right = objectives.info_nce
    judge = compare(
        cases,
        lambda anchors, candidates, temperature: float(right(anchors, candidates, temperature=temperature)),
        mistakes=[
            Mistake(
                "the vectors are not brought to length 1: these are dot products, and a long vector wins whatever it "
                "means; cosine similarity is wanted",
                lambda a, c, t: float(loss(a @ c.T / t)),
            ),
            Mistake(
                "the temperature is not used: divide the cosines by it", lambda a, c, t: float(loss(scores(a, c, 1)))
            ),
            Mistake(
                "the cosines are multiplied by the temperature: divide by it; a small τ makes differences large",
                lambda a, c, t: float(loss(scores(a, c, 1 / t))),
            ),
            Mistake(
                "the sum below the line leaves out the anchor's own candidate: it belongs there as well, or the loss "
                "has no lower bound at 0",
                lambda a, c, t: float(others_only(a, c, t)),
            ),
            Mistake("the sign is missing: the loss is *minus* the log", lambda a, c, t: -float(loss(scores(a, c, t)))),
            Mistake(
                "this is the sum over anchors: the mean is wanted", lambda a, c, t: float(loss(scores(a, c, t), "sum"))
            ),
            Mistake(
                "softmax runs over the anchors (dim 0): each anchor chooses among the candidates, so over dim 1",
                lambda a, c, t: -float(log_softmax(scores(a, c, t), dim=0).diagonal().mean()),
            ),
            Mistake(
                "the logarithm is missing: this is the mean probability of the own candidate",
                lambda a, c, t: float(scores(a, c, t).softmax(1).diagonal().mean()),
            ),
            Mistake(
                "the logarithm is missing: this is the mean probability of the own candidate",
                lambda a, c, t: -float(scores(a, c, t).softmax(1).diagonal().mean()),
            ),
            Mistake(
                "softmax is taken twice: cross_entropy takes raw scores and does it itself",
                lambda a, c, t: float(loss(scores(a, c, t).softmax(dim=1))),
            ),
            Mistake(
                "softmax is taken twice: cross_entropy takes raw scores and does it itself",
                lambda a, c, t: float(loss(scores(a, c, t).log_softmax(dim=1).exp())),
            ),
            Mistake(
                "both directions are averaged (as in CLIP): here only the anchors look for candidates",
                lambda a, c, t: float((loss(scores(a, c, t)) + loss(scores(c, a, t))) / 2),
            ),
            Mistake(
                "the extra candidates are left out: those without an anchor are negatives too",
                lambda a, c, t: float(loss(scores(a, c[: len(a)], t))),
            ),
            Mistake(
                "normalised over the batch (dim 0): every vector by itself must have length 1, so dim=-1",
                lambda a, c, t: float(loss(normalize(a, dim=0) @ normalize(c, dim=0).T / t)),
            ),
            Mistake(
                "the anchors are compared with each other: negatives are the other anchors' candidates",
                lambda a, c, t: float(loss(scores(a, a, t))),
            ),
            Mistake(
                "the logarithm is to base 2: nats are wanted, the natural logarithm",
                lambda a, c, t: float(loss(scores(a, c, t)) / torch.tensor(2.0).log()),
            ),
        ],
        explain=lambda arguments, expected, got: (
            "the loss is below 0: a probability is at most 1, so -log of it is at least 0" if got < 0 else None
        ),
    )
    praise = "Vectors of any length, temperatures from 0.05 to 1, and extra negatives."
    return examine(function, "info_nce(anchors, candidates, temperature)", judge, praise)


def total_loss(function) -> Verdict:
    """The three losses together (Equation 5): `total_loss(logits, mntp_labels, msg_labels, sscl, weights)`.

    λ₁ MNTP + λ₂ SSCL + λ₃ MSG. MNTP and MSG are cross entropies of the same logits, each a mean over its own targets.

    Args of your function:
        logits: `(batch, length, vocabulary)`; those at l speak of the token at l + 1.
        mntp_labels, msg_labels: `(batch, length)`, already at the place that predicts them; -100 where none is asked.
        sscl: the contrastive loss, a number.
        weights: (λ₁, λ₂, λ₃), in the order of the sum: MNTP, SSCL, MSG.

    It returns one number (nats). A batch without a target of one kind adds 0 for it, and not NaN.
    """
    generator = torch.Generator().manual_seed(0)

    def case(batch, length, asked, missing, sscl, weights):
        logits = torch.randn(batch, length, 7, generator=generator).round(decimals=1)
        labels = torch.randint(7, (batch, length), generator=generator)
        place = torch.arange(batch * length).view(batch, length)
        mntp = labels.masked_fill(~torch.isin(place, torch.tensor(asked)), NO_LABEL)
        msg = labels.masked_fill(~torch.isin(place, torch.tensor(missing)), NO_LABEL)
        return logits, mntp, msg, sscl, weights

    cases = [
        case(1, 4, [0], [2], 0.0, (1.0, 0.0, 1.0)),
        case(1, 6, [0], [2, 3, 4], 0.5, (1.0, 9.0, 1.0)),
        case(2, 6, [0, 7, 9], [2, 3, 4, 10], 2.0, (1.0, 2.0, 3.0)),
        case(2, 5, [1, 6], [], 1.0, (1.0, 9.0, 1.0)),
    ]

    def right(logits, mntp_labels, msg_labels, sscl, weights):
        mntp, msg = objectives.mntp_loss(logits, mntp_labels), objectives.msg_loss(logits, msg_labels)
        return float(weights[0] * mntp + weights[1] * sscl + weights[2] * msg)

    def by(divide):
        """The same with another denominator of the two cross entropies."""

        def answer(logits, mntp, msg, sscl, weights):
            parts = [
                objectives.mntp_loss(logits, labels, divide_by=divide(mntp, msg, labels)) for labels in (mntp, msg)
            ]
            return float(weights[0] * parts[0] + weights[1] * sscl + weights[2] * parts[1])

        return answer

    def shifted_again(logits, mntp, msg, sscl, weights):
        mntp, msg = (torch.cat([x[:, 1:], torch.full_like(x[:, :1], NO_LABEL)], dim=1) for x in (mntp, msg))
        return right(logits, mntp, msg, sscl, weights)

    def or_nan(logits, mntp, msg, sscl, weights):
        mntp, msg = (cross_entropy(logits.flatten(0, 1), labels.flatten()) for labels in (mntp, msg))
        return float(weights[0] * mntp + weights[1] * sscl + weights[2] * msg)

    judge = compare(
        cases,
        right,
        mistakes=[
            Mistake(
                "a batch without a target of one kind gives NaN: the mean of nothing is 0 divided by 0; let it add 0, "
                "or one such batch ends the training",
                or_nan,
            ),
            Mistake(
                "λ₂ and λ₃ are swapped: the order is MNTP, SSCL, MSG",
                lambda logits, mntp, msg, sscl, w: right(logits, mntp, msg, sscl, (w[0], w[2], w[1])),
            ),
            Mistake(
                "the weights are not used: this is the plain sum of the three losses",
                lambda logits, mntp, msg, sscl, w: right(logits, mntp, msg, sscl, (1, 1, 1)),
            ),
            Mistake(
                "the two cross entropies are sums: each is a mean over its own targets, or long spans drown the rest",
                by(lambda mntp, msg, own: 1),
            ),
            Mistake(
                "the mean is taken over all positions, also those without a target: divide by the number of labels, or "
                "the fewer tokens are hidden, the less they count",
                by(lambda mntp, msg, own: own.numel()),
            ),
            Mistake(
                "one mean over the targets of both kinds: each objective is a mean over its own, or the one with more "
                "targets has the larger weight whatever λ says",
                by(lambda mntp, msg, own: int((mntp != NO_LABEL).sum() + (msg != NO_LABEL).sum())),
            ),
            Mistake(
                "the mean is over texts: divide by the number of labels, not by the batch",
                by(lambda mntp, msg, own: len(own)),
            ),
            Mistake(
                "the labels are shifted a second time: they come already at the place that predicts them",
                shifted_again,
            ),
            Mistake(
                "the contrastive loss is left out",
                lambda logits, mntp, msg, sscl, w: right(logits, mntp, msg, 0.0, w),
            ),
            Mistake(
                "the weighted sum is divided by the sum of the weights: Equation 5 is a sum, not an average",
                lambda logits, mntp, msg, sscl, w: right(logits, mntp, msg, sscl, w) / sum(w),
            ),
        ],
    )
    praise = "Several weights, unequal numbers of targets, and a batch without any of one kind."
    return examine(function, "total_loss(logits, mntp_labels, msg_labels, sscl, weights)", judge, praise)


def perplexity(function) -> Verdict:
    """Perplexity over several texts (Table 4): `perplexity(log_probs)`.

    exp of minus the mean log-probability, over all tokens of all texts together.

    Args of your function:
        log_probs: a list of tensors, `(tokens,)` a text: natural logarithms of each token's probability.

    It returns one number: between how many equally likely tokens the model wavers.

        log_probs [log 1/2, log 1/2, log 1/8]  ->  (2 · 2 · 8) ** (1/3) = 3.1748
    """
    texts = [
        [[0.5, 0.5, 0.125]],
        [[0.25]],
        [[0.5], [0.1, 0.2, 0.4]],
        [[0.9, 0.8], [0.01], [0.3, 0.2, 0.1, 0.6, 0.05]],
    ]
    cases = [([torch.tensor(text).log() for text in case],) for case in texts]

    def each(log_probs):
        return [infilling.perplexity([text]) for text in log_probs]

    def together(log_probs):
        return torch.cat(log_probs)

    judge = compare(
        cases,
        infilling.perplexity,
        mistakes=[
            Mistake(
                "this is the mean of every text's own perplexity: one hard text of a single token would count as much "
                "as a long one; take the mean over all tokens first",
                lambda log_probs: sum(each(log_probs)) / len(log_probs),
            ),
            Mistake(
                "every text counts alike: the mean of the texts' means; all tokens must count alike, so put them "
                "together first",
                lambda log_probs: float(torch.stack([text.mean() for text in log_probs]).mean().neg().exp()),
            ),
            Mistake(
                "the minus is missing: log-probabilities are negative, so this is 1 / perplexity, a number below 1",
                lambda log_probs: float(together(log_probs).mean().exp()),
            ),
            Mistake(
                "the exp is missing: this is the mean loss in nats",
                lambda log_probs: -float(together(log_probs).mean()),
            ),
            Mistake(
                "the sum stands in the exponent: it grows with the number of tokens; take their mean",
                lambda log_probs: float(together(log_probs).sum().neg().exp()),
            ),
            Mistake(
                "2 is raised to a loss in nats: natural logarithms need exp; 2 ** is for logarithms to base 2",
                lambda log_probs: 2 ** -float(together(log_probs).mean()),
            ),
            Mistake(
                "probabilities are averaged, not their logarithms: perplexity is a geometric mean",
                lambda log_probs: float(1 / together(log_probs).exp().mean()),
            ),
            Mistake(
                "the inverse probabilities are averaged: perplexity is a geometric mean, so average the logarithms",
                lambda log_probs: float(together(log_probs).neg().exp().mean()),
            ),
            Mistake(
                "the median stands for the mean: every token counts",
                lambda log_probs: float(together(log_probs).median().neg().exp()),
            ),
            Mistake(
                "the sum over all tokens is divided by the number of texts: divide by the number of tokens",
                lambda log_probs: float((-together(log_probs).sum() / len(log_probs)).exp()),
            ),
            Mistake("only the first text is counted", lambda log_probs: infilling.perplexity(log_probs[:1])),
        ],
    )
    praise = "One text and several, long and short ones: every token counts alike."
    return examine(function, "perplexity(log_probs)", judge, praise)
