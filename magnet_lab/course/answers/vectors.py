"""Answers to the checks of vectors."""

import torch
import torch.nn.functional as F

from magnet_lab.course.answers import right, wrong

# sentence_vector(states, tokens, pooling)


@right("sentence_vector")
def sentence_by_loops(states, tokens, pooling):
    vectors = []
    for row, is_token in zip(states, tokens, strict=True):
        kept = row[is_token]
        vectors.append(kept[-1] if pooling == "last" else kept.mean(dim=0))
    return torch.stack(vectors)


@right("sentence_vector")
def sentence_by_sums(states, tokens, pooling):
    if pooling == "mean":
        return (states * tokens[..., None]).sum(1) / tokens.sum(1, keepdim=True)
    last = (tokens * torch.arange(tokens.shape[1])).argmax(dim=1)
    return states[torch.arange(len(states)), last]


@wrong("sentence_vector", "[:, -1] is taken")
def sentence_minus_one(states, tokens, pooling):
    if pooling == "last":
        return states[:, -1]
    return (states * tokens[..., None]).sum(1) / tokens.sum(1, keepdim=True)


@wrong("sentence_vector", "the mean runs over padding as well")
def sentence_mean_of_all(states, tokens, pooling):
    return states.mean(dim=1) if pooling == "mean" else sentence_by_loops(states, tokens, "last")


@wrong("sentence_vector", "found by counting tokens")
def sentence_last_by_count(states, tokens, pooling):
    if pooling == "mean":
        return sentence_by_loops(states, tokens, "mean")
    return states[range(len(states)), tokens.sum(dim=1) - 1]


@wrong("sentence_vector", "divided by the padded length")
def sentence_divided_by_length(states, tokens, pooling):
    if pooling == "last":
        return sentence_by_loops(states, tokens, "last")
    return (states * tokens.unsqueeze(-1)).mean(dim=1)


@wrong("sentence_vector", "the sum over the tokens and no mean")
def sentence_sum(states, tokens, pooling):
    if pooling == "last":
        return sentence_by_loops(states, tokens, "last")
    return torch.einsum("blh,bl->bh", states, tokens.float())


@wrong("sentence_vector", "the first token is taken")
def sentence_first_token(states, tokens, pooling):
    return states[:, 0] if pooling == "last" else sentence_by_loops(states, tokens, "mean")


@wrong("sentence_vector", "the pooling is not used")
def sentence_always_mean(states, tokens, pooling):
    return sentence_by_loops(states, tokens, "mean")


# word_vectors(states, tokens_of_words)


@right("word_vectors")
def words_by_loops(states, tokens_of_words):
    vectors = []
    for tokens in tokens_of_words:
        total = 0
        for token in tokens:
            total = total + states[token - 1]
        vectors.append(total / len(tokens))
    return torch.stack(vectors)


@right("word_vectors")
def words_by_shifting(states, tokens_of_words):
    shifted = states.roll(1, dims=0)
    return torch.stack([shifted[tokens].mean(0) for tokens in tokens_of_words])


@wrong("word_vectors", "the state *at* each token")
def words_at_their_tokens(states, tokens_of_words):
    return torch.stack([states[tokens].mean(dim=0) for tokens in tokens_of_words])


@wrong("word_vectors", "the state *after* each token")
def words_wrong_way(states, tokens_of_words):
    padded = torch.cat([states, states[:1]])
    return torch.stack([padded[[token + 1 for token in tokens]].mean(dim=0) for tokens in tokens_of_words])


@wrong("word_vectors", "only the position before the word's first token")
def words_before_the_first(states, tokens_of_words):
    return torch.stack([states[tokens[0] - 1] for tokens in tokens_of_words])


@wrong("word_vectors", "only the word's last token is read, at its own place")
def words_last_token(states, tokens_of_words):
    return states[[tokens[-1] for tokens in tokens_of_words]]


@wrong("word_vectors", "as in the section's printed example")
def words_as_printed(states, tokens_of_words):
    return torch.stack([states[tokens[0] - 1 : tokens[-1] + 1].mean(dim=0) for tokens in tokens_of_words])


@wrong("word_vectors", "the states are added up")
def words_summed(states, tokens_of_words):
    return torch.stack([sum(states[token - 1] for token in tokens) for tokens in tokens_of_words])


@wrong("word_vectors", "one vector for each token")
def words_not_pooled(states, tokens_of_words):
    return torch.stack([states[token - 1] for tokens in tokens_of_words for token in tokens])


# alignment_uniformity(anchors, positives)


@right("alignment_uniformity")
def spread_by_loops(anchors, positives):
    anchors = [anchor / anchor.norm() for anchor in anchors]
    positives = [positive / positive.norm() for positive in positives]
    count = len(anchors)
    near = sum(((a - p) ** 2).sum().item() for a, p in zip(anchors, positives, strict=True)) / count
    total, pairs = torch.tensor(0.0), 0
    for i in range(count):
        for j in range(i + 1, count):
            total += torch.exp(-2 * ((anchors[i] - anchors[j]) ** 2).sum())
            pairs += 1
    return near, torch.log(total / pairs).item()


@right("alignment_uniformity")
def spread_by_cosines(anchors, positives):
    a, p = F.normalize(anchors, dim=1), F.normalize(positives, dim=1)
    distances = 2 - 2 * a @ a.T
    upper = torch.triu_indices(len(a), len(a), offset=1)
    return (2 - 2 * (a * p).sum(1)).mean(), torch.exp(-2 * distances[upper[0], upper[1]]).mean().log()


@wrong("alignment_uniformity", "not brought to length 1")
def spread_without_length(anchors, positives):
    near = (anchors - positives).norm(dim=1).pow(2).mean()
    return near, torch.pdist(anchors).pow(2).mul(-2).exp().mean().log()


@wrong("alignment_uniformity", "paired with itself")
def spread_with_itself(anchors, positives):
    a, p = F.normalize(anchors, dim=1), F.normalize(positives, dim=1)
    return (a - p).pow(2).sum(1).mean(), torch.exp(-2 * (2 - 2 * a @ a.T)).mean().log()


@wrong("alignment_uniformity", "not squared in the alignment")
def spread_of_distances(anchors, positives):
    a, p = F.normalize(anchors, dim=1), F.normalize(positives, dim=1)
    return (a - p).norm(dim=1).mean(), torch.pdist(a).pow(2).mul(-2).exp().mean().log()


@wrong("alignment_uniformity", "not squared in the uniformity")
def spread_of_plain_distances(anchors, positives):
    a, p = F.normalize(anchors, dim=1), F.normalize(positives, dim=1)
    return (a - p).pow(2).sum(1).mean(), torch.pdist(a).mul(-2).exp().mean().log()


@wrong("alignment_uniformity", "the logarithm is missing")
def spread_without_log(anchors, positives):
    a, p = F.normalize(anchors, dim=1), F.normalize(positives, dim=1)
    return (a - p).pow(2).sum(1).mean(), torch.pdist(a).pow(2).mul(-2).exp().mean()


@wrong("alignment_uniformity", "the mean runs over dimensions")
def spread_over_dimensions(anchors, positives):
    a, p = F.normalize(anchors, dim=1), F.normalize(positives, dim=1)
    return F.mse_loss(a, p), torch.pdist(a).pow(2).mul(-2).exp().mean().log()


@wrong("alignment_uniformity", "the two numbers are swapped")
def spread_swapped(anchors, positives):
    a, p = F.normalize(anchors, dim=1), F.normalize(positives, dim=1)
    return torch.pdist(a).pow(2).mul(-2).exp().mean().log(), (a - p).pow(2).sum(1).mean()


@wrong("alignment_uniformity", "is a squared distance, 2 - 2 cosine")
def spread_of_cosines(anchors, positives):
    a = F.normalize(anchors, dim=1)
    return F.cosine_similarity(anchors, positives).mean(), torch.pdist(a).pow(2).mul(-2).exp().mean().log()
