"""From states to vectors: of a sentence, of words; and how vectors lie (alignment and uniformity)."""

import torch
from torch import Tensor
from torch.nn.functional import normalize, pdist

from magnet_lab.course.check.comparing import first_difference
from magnet_lab.course.check.examine import Mistake, compare, examine
from magnet_lab.course.check.verdict import Verdict


def sentence_vector(function) -> Verdict:
    """One vector for a text: `sentence_vector(states, tokens, pooling)`.

    Args of your function:
        states: `(batch, length, hidden)`, the last hidden states.
        tokens: `(batch, length)` booleans, True at a token, False at padding, which may stand on either side.
        pooling: "last": the state of each text's last token (the paper's choice); "mean": the mean over its tokens.

    It returns `(batch, hidden)`.

        states [[1.], [2.], [9.]], tokens ■ ■ ·  ->  "last" 2., "mean" 1.5
    """
    generator = torch.Generator().manual_seed(0)

    def states(batch: int, length: int, hidden: int) -> Tensor:
        return torch.randn(batch, length, hidden, generator=generator).round(decimals=1)

    batches = [[[1, 1, 1]], [[1, 1, 0]], [[0, 1, 1]], [[1, 1, 1, 1], [1, 1, 0, 0]], [[0, 0, 1, 1, 1], [1, 0, 0, 0, 0]]]
    tensors = [torch.tensor(rows).bool() for rows in batches]
    cases = [
        (states(*tokens.shape, 2 + place), tokens, pooling)
        for place, tokens in enumerate(tensors)
        for pooling in ("last", "mean")
    ]

    def right(states, tokens, pooling):
        # As in encoding.encode: a stretch of positions whose mean is the vector, the last one alone for "last".
        places = [row.nonzero()[:, 0] for row in tokens]
        stretches = [place[-1:] if pooling == "last" else place for place in places]
        return torch.stack([row[stretch].mean(dim=0) for row, stretch in zip(states, stretches, strict=True)])

    def last(of):
        """The same with another idea of "last"."""
        return lambda states, tokens, pooling: (
            of(states, tokens) if pooling == "last" else right(states, tokens, pooling)
        )

    def mean(of):
        return lambda states, tokens, pooling: (
            of(states, tokens) if pooling == "mean" else right(states, tokens, pooling)
        )

    def both(of_last, of_mean):
        return lambda states, tokens, pooling: (of_last if pooling == "last" else of_mean)(states, tokens)

    def minus_one(states, tokens):
        return states[:, -1]

    def at_count(states, tokens):
        return states[torch.arange(len(states)), tokens.sum(dim=1) - 1]

    def over_all(states, tokens):
        return states.mean(dim=1)

    says_minus_one = (
        "[:, -1] is taken, which is padding wherever a shorter text is padded on the right: each text's last *token* "
        "is wanted, so look where tokens is True"
    )
    says_over_all = (
        "the mean runs over padding as well: a text's vector would change with the batch it stands in; multiply by "
        "tokens and divide by their number"
    )
    judge = compare(
        cases,
        right,
        mistakes=[
            Mistake(says_minus_one + "; and the mean runs over padding as well", both(minus_one, over_all)),
            Mistake(says_minus_one, last(minus_one)),
            Mistake(says_over_all, mean(over_all)),
            Mistake(
                "the last token is found by counting tokens, which is its index only if padding stands on the right; "
                "with padding on the left it is elsewhere",
                last(at_count),
            ),
            Mistake(
                "the sum over the tokens is divided by the padded length: divide by the number of tokens",
                mean(lambda states, tokens: (states * tokens[:, :, None]).mean(dim=1)),
            ),
            Mistake(
                "this is the sum over the tokens and no mean: divide by their number",
                mean(lambda states, tokens: (states * tokens[:, :, None]).sum(dim=1)),
            ),
            Mistake(
                "the first token is taken: in a decoder, only the last one has been trained to stand for the whole",
                last(lambda states, tokens: states[:, 0]),
            ),
            Mistake(
                "the token before the last one is taken: -2 is for words, a sentence is read at its last token",
                last(
                    lambda states, tokens: torch.stack(
                        [s[t.nonzero()[:, 0]][-2:][0] for s, t in zip(states, tokens, strict=True)]
                    )
                ),
            ),
            Mistake(
                "the pooling is not used: both give the last token",
                lambda states, tokens, pooling: right(states, tokens, "last"),
            ),
            Mistake(
                "the pooling is not used: both give the mean",
                lambda states, tokens, pooling: right(states, tokens, "mean"),
            ),
            Mistake(
                "the mean is over the batch (dim 0): every text has a vector of its own, so over dim 1",
                mean(lambda states, tokens: states.mean(dim=0)),
            ),
            Mistake(
                "the vectors are brought to length 1: that is for comparing them; here the states are wanted",
                lambda states, tokens, pooling: normalize(right(states, tokens, pooling), dim=-1),
            ),
            Mistake(
                "the maximum is taken instead of the mean",
                mean(lambda states, tokens: states.masked_fill(~tokens[:, :, None], -torch.inf).amax(dim=1)),
            ),
        ],
        explain=lambda arguments, expected, got: (
            f"text {first_difference(expected, got)[0]} comes out wrong with pooling {arguments[2]!r}"
        ),
    )
    praise = "Both poolings, several lengths in a batch, padding on either side."
    return examine(function, "sentence_vector(states, tokens, pooling)", judge, praise)


def word_vectors(function) -> Verdict:
    """One vector for each word (Section 4.1): `word_vectors(states, tokens_of_words)`.

    A decoder's output at position l speaks of the token at l + 1. So a word's vector is the mean, over the word's
    tokens, of the state one position *before* each of them.

    Args of your function:
        states: `(length, hidden)`, the last hidden states of a sentence behind an opening token.
        tokens_of_words: for each word the list of its tokens' positions, at least 1.

    It returns `(words, hidden)`.

        tokens_of_words [[1], [2, 3]]  ->  word 0 is states[0], word 1 the mean of states[1] and states[2]
    """
    generator = torch.Generator().manual_seed(0)

    def states(length: int, hidden: int) -> Tensor:
        return torch.randn(length, hidden, generator=generator).round(decimals=1)

    cases = [
        (states(3, 2), [[1], [2]]),
        (states(4, 2), [[1], [2, 3]]),
        (states(8, 3), [[1, 2, 3], [4], [5, 6], [7]]),
        (states(7, 4), [[2, 3], [4, 5, 6]]),
    ]

    def right(states, tokens_of_words):
        return torch.stack([states[[token - 1 for token in tokens]].mean(dim=0) for tokens in tokens_of_words])

    def of(choose, reduce=lambda rows: rows.mean(dim=0)):
        return lambda states, words: torch.stack([reduce(states[choose(tokens)]) for tokens in words])

    judge = compare(
        cases,
        right,
        mistakes=[
            Mistake(
                "the state *at* each token is taken: it speaks of the token after it; a word is read one position to "
                "the left, at token - 1",
                of(lambda tokens: tokens),
            ),
            Mistake(
                "the state *after* each token is taken: it must be the one before, token - 1",
                lambda states, words: torch.stack([states.roll(-1, 0)[tokens].mean(dim=0) for tokens in words]),
            ),
            Mistake(
                "only the position before the word's first token is read: every token of the word counts, each at its "
                "own token - 1",
                of(lambda tokens: [tokens[0] - 1]),
            ),
            Mistake(
                "only the word's last token is read, from the position before it: the mean is over all its tokens",
                of(lambda tokens: [tokens[-1] - 1]),
            ),
            Mistake(
                "only the word's last token is read, at its own place: the mean is over all its tokens, each at token "
                "- 1",
                of(lambda tokens: [tokens[-1]]),
            ),
            Mistake(
                "only the word's first token is read, at its own place: the mean is over all its tokens, each at token "
                "- 1",
                of(lambda tokens: [tokens[0]]),
            ),
            Mistake(
                "the state *of* the word's last token is counted as well (as in the section's printed example): it "
                "speaks of the next word; only token - 1 of each token",
                of(lambda tokens: [tokens[0] - 1, *tokens]),
            ),
            Mistake(
                "the states are added up: words of several tokens get longer vectors; take the mean",
                of(lambda tokens: [token - 1 for token in tokens], lambda rows: rows.sum(dim=0)),
            ),
            Mistake(
                "the shift is by a whole word: words are read at the tokens of the word before; shift by one token",
                lambda states, words: torch.stack(
                    [states[tokens].mean(dim=0) for tokens in [[words[0][0] - 1], *words[:-1]]]
                ),
            ),
            Mistake(
                "there is one vector for each token: the tokens of a word have to become one vector, their mean",
                lambda states, words: torch.cat([states[[token - 1 for token in tokens]] for tokens in words]),
            ),
        ],
        explain=lambda arguments, expected, got: (
            f"word {first_difference(expected, got)[0]}, of tokens "
            f"{arguments[1][first_difference(expected, got)[0]]}, comes out wrong"
        ),
    )
    praise = "Words of one, two and three tokens, and a sentence with tokens that belong to no word."
    return examine(function, "word_vectors(states, tokens_of_words)", judge, praise)


def alignment_uniformity(function) -> Verdict:
    """How vectors lie (Wang and Isola, 2020): `alignment_uniformity(anchors, positives)`.

    With all vectors brought to length 1:

        alignment  = mean over i of |a_i - p_i|²                         near: pairs lie together
        uniformity = log of the mean over pairs i < j of exp(-2 |a_i - a_j|²)   low: anchors are spread over the sphere

    Args of your function:
        anchors, positives: `(n, hidden)`, n >= 2; the i-th positive means the same as the i-th anchor.

    It returns `(alignment, uniformity)`, two numbers; lower is better for both.

        anchors [[1, 0], [0, 1]], positives [[1, 0], [1, 0]]  ->  (1.0, -4.0)
    """
    generator = torch.Generator().manual_seed(0)

    def vectors(count: int, hidden: int) -> Tensor:
        return (torch.randn(count, hidden, generator=generator) * 2).round(decimals=1)

    cases = [
        (torch.eye(2), torch.tensor([[1.0, 0.0], [1.0, 0.0]])),
        (torch.tensor([[3.0, 0.0], [0.0, 0.5], [-1.0, 1.0]]), torch.tensor([[1.0, 1.0], [0.0, 2.0], [-2.0, 0.0]])),
        (vectors(5, 3), vectors(5, 3)),
        (vectors(8, 6), vectors(8, 6)),
    ]

    def alignment(anchors, positives):
        return float((anchors - positives).square().sum(dim=1).mean())

    def uniformity(anchors):
        return float(pdist(anchors).square().mul(-2).exp().mean().log())

    def with_(align=alignment, uniform=uniformity, length=lambda vectors: normalize(vectors, dim=-1)):
        def answer(anchors, positives):
            anchors, positives = length(anchors), length(positives)
            return align(anchors, positives), uniform(anchors)

        return answer

    def all_pairs(anchors):
        return float(torch.cdist(anchors, anchors).square().mul(-2).exp().mean().log())

    judge = compare(
        cases,
        with_(),
        mistakes=[
            Mistake(
                "the vectors are not brought to length 1: distances must tell directions apart, not lengths",
                with_(length=lambda vectors: vectors),
            ),
            Mistake(
                "every vector is paired with itself as well: its distance 0 says nothing; only pairs i < j count",
                with_(uniform=all_pairs),
            ),
            Mistake(
                "the distances are not squared in the alignment",
                with_(align=lambda a, p: float((a - p).norm(dim=1).mean())),
            ),
            Mistake(
                "the distances are not squared in the uniformity",
                with_(uniform=lambda a: float(pdist(a).mul(-2).exp().mean().log())),
            ),
            Mistake(
                "the logarithm is missing in the uniformity",
                with_(uniform=lambda a: float(pdist(a).square().mul(-2).exp().mean())),
            ),
            Mistake(
                "log and mean change places: the log of each exp is the distance again, so this is only their mean; "
                "first the mean of exp, then log",
                with_(uniform=lambda a: float(pdist(a).square().mul(-2).mean())),
            ),
            Mistake(
                "the 2 is missing in the exponent: exp(-2 |a_i - a_j|²)",
                with_(uniform=lambda a: float(pdist(a).square().neg().exp().mean().log())),
            ),
            Mistake(
                "the sum stands for the mean in the uniformity: it would grow with the number of vectors",
                with_(uniform=lambda a: float(pdist(a).square().mul(-2).exp().sum().log())),
            ),
            Mistake(
                "the mean runs over dimensions as well: the squared distance is a sum over them, the mean is over "
                "pairs",
                with_(align=lambda a, p: float((a - p).square().mean())),
            ),
            Mistake("the two numbers are swapped: first alignment, then uniformity", lambda a, p: with_()(a, p)[::-1]),
            Mistake(
                "this is the cosine of the pairs: alignment is a squared distance, 2 - 2 cosine",
                with_(align=lambda a, p: float((a * p).sum(dim=1).mean())),
            ),
            Mistake(
                "uniformity is measured between anchors and positives: it is about the anchors among themselves",
                lambda a, p: (
                    alignment(normalize(a, dim=-1), normalize(p, dim=-1)),
                    float(torch.cdist(normalize(a, dim=-1), normalize(p, dim=-1)).square().mul(-2).exp().mean().log()),
                ),
            ),
            Mistake(
                "the sign of the exponent is missing: it is exp of *minus* twice the squared distance",
                with_(uniform=lambda a: float(pdist(a).square().mul(2).exp().mean().log())),
            ),
        ],
    )
    praise = "Vectors of any length, pairs i < j alone, both numbers."
    return examine(function, "alignment_uniformity(anchors, positives)", judge, praise)
