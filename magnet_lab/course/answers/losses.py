"""Answers to the checks of losses."""

import math

import torch
import torch.nn.functional as F

from magnet_lab.course.answers import right, wrong

# info_nce(anchors, candidates, temperature)


@right("info_nce")
def nce_by_cross_entropy(anchors, candidates, temperature):
    scores = F.cosine_similarity(anchors[:, None], candidates[None], dim=-1) / temperature
    return F.cross_entropy(scores, torch.arange(len(anchors)))


@right("info_nce")
def nce_by_loops(anchors, candidates, temperature):
    total = 0.0
    for i, anchor in enumerate(anchors):
        scores = []
        for candidate in candidates:
            cosine = (anchor @ candidate) / (anchor.norm() * candidate.norm())
            scores.append(cosine.item() / temperature)
        total += math.log(sum(math.exp(score) for score in scores)) - scores[i]
    return total / len(anchors)


@right("info_nce")
def nce_by_softmax(anchors, candidates, temperature):
    anchors = anchors / anchors.norm(dim=1, keepdim=True)
    candidates = candidates / candidates.norm(dim=1, keepdim=True)
    shares = (anchors @ candidates.T / temperature).softmax(dim=1)
    return -shares.diagonal().log().mean()


@wrong("info_nce", "not brought to length 1")
def nce_of_dot_products(anchors, candidates, temperature):
    return F.cross_entropy(anchors @ candidates.T / temperature, torch.arange(len(anchors)))


@wrong("info_nce", "the temperature is not used")
def nce_without_temperature(anchors, candidates, temperature):
    scores = F.normalize(anchors, dim=1) @ F.normalize(candidates, dim=1).T
    return F.cross_entropy(scores, torch.arange(len(anchors)))


@wrong("info_nce", "multiplied by the temperature")
def nce_times_temperature(anchors, candidates, temperature):
    scores = F.normalize(anchors, dim=1) @ F.normalize(candidates, dim=1).T
    return F.cross_entropy(scores * temperature, torch.arange(len(anchors)))


@wrong("info_nce", "leaves out the anchor's own candidate")
def nce_only_negatives_below(anchors, candidates, temperature):
    scores = torch.exp(F.normalize(anchors, dim=1) @ F.normalize(candidates, dim=1).T / temperature)
    own = scores.diagonal()
    return -torch.log(own / (scores.sum(dim=1) - own)).mean()


@wrong("info_nce", "the sign is missing")
def nce_without_minus(anchors, candidates, temperature):
    scores = F.normalize(anchors, dim=1) @ F.normalize(candidates, dim=1).T / temperature
    return scores.log_softmax(dim=1).diagonal().mean()


@wrong("info_nce", "the sum over anchors")
def nce_sum(anchors, candidates, temperature):
    scores = F.normalize(anchors, dim=1) @ F.normalize(candidates, dim=1).T / temperature
    return -scores.log_softmax(dim=1).diagonal().sum()


@wrong("info_nce", "softmax runs over the anchors")
def nce_wrong_dimension(anchors, candidates, temperature):
    scores = F.normalize(anchors, dim=1) @ F.normalize(candidates, dim=1).T / temperature
    return -scores.softmax(dim=0).diagonal().log().mean()


@wrong("info_nce", "softmax is taken twice")
def nce_two_softmaxes(anchors, candidates, temperature):
    scores = F.normalize(anchors, dim=1) @ F.normalize(candidates, dim=1).T / temperature
    return F.cross_entropy(scores.softmax(dim=1), torch.arange(len(anchors)))


@wrong("info_nce", "the logarithm is missing")
def nce_without_log(anchors, candidates, temperature):
    scores = F.normalize(anchors, dim=1) @ F.normalize(candidates, dim=1).T / temperature
    return -scores.softmax(dim=1).diagonal().mean()


@wrong("info_nce", "the extra candidates are left out")
def nce_square(anchors, candidates, temperature):
    candidates = candidates[: len(anchors)]
    scores = F.normalize(anchors, dim=1) @ F.normalize(candidates, dim=1).T / temperature
    return F.cross_entropy(scores, torch.arange(len(anchors)))


@wrong("info_nce", "normalised over the batch")
def nce_normalised_over_the_batch(anchors, candidates, temperature):
    scores = F.normalize(anchors, dim=0) @ F.normalize(candidates, dim=0).T / temperature
    return F.cross_entropy(scores, torch.arange(len(anchors)))


@wrong("info_nce", "must be one number")
def nce_not_averaged(anchors, candidates, temperature):
    scores = F.normalize(anchors, dim=1) @ F.normalize(candidates, dim=1).T / temperature
    return F.cross_entropy(scores, torch.arange(len(anchors)), reduction="none")


# total_loss(logits, mntp_labels, msg_labels, sscl, weights)


def _entropy(logits, labels, **options):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), **options)


@right("total_loss")
def total_with_a_guard(logits, mntp_labels, msg_labels, sscl, weights):
    parts = []
    for labels in (mntp_labels, msg_labels):
        parts.append(_entropy(logits, labels) if (labels != -100).any() else torch.tensor(0.0))
    return weights[0] * parts[0] + weights[1] * sscl + weights[2] * parts[1]


@right("total_loss")
def total_by_loops(logits, mntp_labels, msg_labels, sscl, weights):
    log_probs, total = logits.log_softmax(dim=-1), weights[1] * sscl
    for weight, labels in ((weights[0], mntp_labels), (weights[2], msg_labels)):
        places = (labels != -100).nonzero().tolist()
        losses = [-log_probs[row, place, labels[row, place]].item() for row, place in places]
        total += weight * sum(losses) / max(1, len(losses))
    return total


@wrong("total_loss", "0 divided by 0")
def total_with_nan(logits, mntp_labels, msg_labels, sscl, weights):
    mntp, msg = _entropy(logits, mntp_labels), _entropy(logits, msg_labels)
    return weights[0] * mntp + weights[1] * sscl + weights[2] * msg


@wrong("total_loss", "λ₂ and λ₃ are swapped")
def total_swapped(logits, mntp_labels, msg_labels, sscl, weights):
    return total_with_a_guard(logits, mntp_labels, msg_labels, sscl, (weights[0], weights[2], weights[1]))


@wrong("total_loss", "the weights are not used")
def total_unweighted(logits, mntp_labels, msg_labels, sscl, weights):
    return total_with_a_guard(logits, mntp_labels, msg_labels, sscl, (1, 1, 1))


@wrong("total_loss", "the two cross entropies are sums")
def total_of_sums(logits, mntp_labels, msg_labels, sscl, weights):
    mntp = _entropy(logits, mntp_labels, reduction="sum")
    msg = _entropy(logits, msg_labels, reduction="sum")
    return weights[0] * mntp + weights[1] * sscl + weights[2] * msg


@wrong("total_loss", "the mean is taken over all positions")
def total_over_all_positions(logits, mntp_labels, msg_labels, sscl, weights):
    mntp = _entropy(logits, mntp_labels, reduction="none").mean()
    msg = _entropy(logits, msg_labels, reduction="none").mean()
    return weights[0] * mntp + weights[1] * sscl + weights[2] * msg


@wrong("total_loss", "one mean over the targets of both kinds")
def total_with_one_mean(logits, mntp_labels, msg_labels, sscl, weights):
    count = ((mntp_labels != -100) | (msg_labels != -100)).sum()
    mntp = _entropy(logits, mntp_labels, reduction="sum") / count
    msg = _entropy(logits, msg_labels, reduction="sum") / count
    return weights[0] * mntp + weights[1] * sscl + weights[2] * msg


@wrong("total_loss", "shifted a second time")
def total_shifted_again(logits, mntp_labels, msg_labels, sscl, weights):
    parts = []
    for labels in (mntp_labels, msg_labels):
        total = _entropy(logits[:, :-1], labels[:, 1:], reduction="sum")
        parts.append(total / max(1, int((labels[:, 1:] != -100).sum())))
    return weights[0] * parts[0] + weights[1] * sscl + weights[2] * parts[1]


# perplexity(log_probs)


@right("perplexity")
def perplexity_of_all(log_probs):
    return torch.exp(-torch.cat(log_probs).mean())


@right("perplexity")
def perplexity_by_loops(log_probs):
    total, count = 0.0, 0
    for text in log_probs:
        for log_prob in text.tolist():
            total += log_prob
            count += 1
    return math.exp(-total / count)


@wrong("perplexity", "mean of every text's own perplexity")
def perplexity_mean_of_perplexities(log_probs):
    return sum(math.exp(-text.mean()) for text in log_probs) / len(log_probs)


@wrong("perplexity", "every text counts alike")
def perplexity_mean_of_means(log_probs):
    return math.exp(-sum(float(text.mean()) for text in log_probs) / len(log_probs))


@wrong("perplexity", "the minus is missing")
def perplexity_without_minus(log_probs):
    return torch.cat(log_probs).mean().exp()


@wrong("perplexity", "the exp is missing")
def perplexity_without_exp(log_probs):
    return -torch.cat(log_probs).mean()


@wrong("perplexity", "the sum stands in the exponent")
def perplexity_of_the_sum(log_probs):
    return torch.exp(-sum(text.sum() for text in log_probs))


@wrong("perplexity", "2 is raised to a loss in nats")
def perplexity_base_two(log_probs):
    return 2 ** -torch.cat(log_probs).mean()


@wrong("perplexity", "probabilities are averaged")
def perplexity_of_mean_probability(log_probs):
    return 1 / torch.cat(log_probs).exp().mean()


@wrong("perplexity", "divided by the number of texts")
def perplexity_by_texts(log_probs):
    return math.exp(-float(torch.cat(log_probs).sum()) / len(log_probs))
