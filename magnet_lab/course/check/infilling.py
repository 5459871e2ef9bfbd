"""Writing a missing span: positions, what the cache keeps, and which of several lengths is best."""

import functools

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from magnet_lab import spans
from magnet_lab.blanks import Blank, Template
from magnet_lab.course.check.examine import Mistake, compare, examine
from magnet_lab.course.check.verdict import Verdict
from magnet_lab.infilling import Candidate, Span


def infill_step(function) -> Verdict:
    """One step of writing a span (Section 3.2.3): `infill_step(context_length, anchor, span_length, step)`.

    The context is read once, with a gap left for the span, and its keys and values are kept. Token 1 of the span is
    predicted by the anchor, the context token left of the gap. In step i (1, 2, …) token i of the span is fed, at its
    place in the gap, to predict token i + 1.

    Args of your function:
        context_length: context tokens, on both sides of the gap together.
        anchor: index among them of the token left of the gap.
        span_length: tokens of the gap.
        step: i, from 1 to span_length - 1.

    It returns `(context_positions, position, keys)`: the context's position ids, a list of `context_length` numbers;
    the position id of the token that is fed; and how many keys that token sees, its own among them.

        infill_step(5, 1, 3, 1)  ->  ([0, 1, 5, 6, 7], 2, 6)      places 2, 3 and 4 are the gap
    """
    cases = [(5, 1, 3, 1), (5, 1, 3, 2), (4, 0, 2, 1), (6, 5, 4, 3), (9, 3, 5, 1), (9, 3, 5, 4)]

    def with_(positions=None, position=None, keys=None):
        def answer(context_length, anchor, span_length, step):
            found = list(_recorded(context_length, anchor, span_length, step))
            for place, change in enumerate((positions, position, keys)):
                if change is not None:
                    found[place] = change(context_length, anchor, span_length, step)
            return tuple(found)

        return answer

    def gap(shift):
        return lambda n, anchor, m, step: [place + (m + shift if place > anchor else 0) for place in range(n)]

    def no_gap(n, anchor, m, step):
        return list(range(n))

    says_no_gap = (
        "the context's positions leave no gap: what stands right of the blank must be as far away as it will be once "
        "the span is written, so add span_length to every position after the anchor"
    )
    judge = compare(
        cases,
        _recorded,
        mistakes=[
            Mistake(
                says_no_gap + "; and the span's tokens are put behind the whole context",
                with_(no_gap, lambda n, anchor, m, step: n + step - 1),
            ),
            Mistake(says_no_gap, with_(no_gap)),
            Mistake(
                "the span's tokens are put behind the whole context, as when a text is continued: they belong into the "
                "gap, from anchor + 1 on",
                with_(position=lambda n, anchor, m, step: n + step - 1),
            ),
            Mistake(
                "the span's tokens are put behind everything: they belong into the gap, from anchor + 1 on",
                with_(position=lambda n, anchor, m, step: n + m + step - 1),
            ),
            Mistake(
                "the fed token's position is one too small: that is the anchor's own place in step 1; the span begins "
                "at anchor + 1, so token i stands at anchor + i",
                with_(position=lambda n, anchor, m, step: anchor + step - 1),
            ),
            Mistake(
                "the fed token's position is one too large: this is the place of the token to be predicted; the token "
                "that is fed stands at anchor + i",
                with_(position=lambda n, anchor, m, step: anchor + step + 1),
            ),
            Mistake(
                "only what stands left of the span is counted as seen (the causal mask): a span token sees the whole "
                "context, on both sides, and the span so far",
                with_(keys=lambda n, anchor, m, step: anchor + 1 + step),
            ),
            Mistake(
                "the fed token itself is missing among the keys it sees: its own key joins the cache before it looks",
                with_(keys=lambda n, anchor, m, step: n + step - 1),
            ),
            Mistake(
                "the span's own past is missing among the keys: the cache grows by one key with every step",
                with_(keys=lambda n, anchor, m, step: n + 1),
            ),
            Mistake(
                "the span's own past is missing among the keys: the cache grows by one key with every step",
                with_(keys=lambda n, anchor, m, step: n),
            ),
            Mistake(
                "the whole gap counts as seen: a token sees those of the span that are written, not those to come",
                with_(keys=lambda n, anchor, m, step: n + m),
            ),
            Mistake(
                "the span alone counts as seen: the context's keys are kept in the cache, and seen",
                with_(keys=lambda n, anchor, m, step: step),
            ),
            Mistake("the gap is one place too wide: it has span_length places", with_(gap(1))),
            Mistake("the gap is one place too narrow: it has span_length places", with_(gap(-1))),
            Mistake(
                "the anchor itself is moved: it stands left of the gap; only positions after it are shifted",
                with_(lambda n, anchor, m, step: [p + (m if p >= anchor else 0) for p in range(n)]),
            ),
            Mistake(
                "the gap grows with every step: the context is read once, with the whole gap, or what is in the cache "
                "would no longer be right",
                with_(lambda n, anchor, m, step: [p + (step if p > anchor else 0) for p in range(n)]),
            ),
        ],
        explain=lambda arguments, expected, got: next(
            f"{what} must be {one}; {other} came"
            for what, one, other in zip(
                ("the context's positions", "the position", "the keys"), expected, got, strict=True
            )
            if one != other
        ),
        tidy=_as_numbers,
    )
    praise = "Gaps at the left, in the middle and at the end: the context is read once, the cache grows by one a step."
    return examine(function, "infill_step(context_length, anchor, span_length, step)", judge, praise)


def rank_candidates(function) -> Verdict:
    """Which length fits best? `rank_candidates(log_probs)`.

    Where a blank's length is open, several are tried, and candidates of unlike length are compared by the mean
    log-probability of their tokens.

    Args of your function:
        log_probs: a list of tensors, `(tokens,)` a candidate: natural logarithms of each token's probability.

    It returns the candidates' indices, best first: a list of integers.

        log_probs [[-1., -1.], [-0.5, -0.7, -0.6], [-3.]]  ->  [1, 0, 2]
    """
    cases = [
        [[-1.0, -1.0], [-0.5, -0.7, -0.6], [-3.0]],
        [[-0.9], [-0.5, -0.6]],
        [[-0.1, -2.0], [-0.8, -0.9], [-1.2], [-0.4, -0.5, -0.6, -0.7]],
        [[-3.0, -0.1, -0.1, -0.1], [-0.9, -0.9], [-0.05], [-1.5, -1.4, -1.3, -1.2, -1.1]],
    ]
    tensors = [([torch.tensor(candidate) for candidate in case],) for case in cases]

    def ordered(key, reverse=True):
        def answer(log_probs):
            return sorted(range(len(log_probs)), key=lambda place: key(log_probs[place]), reverse=reverse)

        return answer

    def score(log_probs: Tensor) -> float:
        values = tuple(log_probs.tolist())
        return Candidate("", (Span("", (0,) * len(values), ("",) * len(values), values),)).score

    right = ordered(score)
    judge = compare(
        tensors,
        right,
        mistakes=[
            Mistake(
                "candidates are ranked by the *sum* of their log-probabilities: every token makes it lower, so the "
                "shortest wins whatever it says; take the mean",
                ordered(lambda log_probs: float(log_probs.sum())),
            ),
            Mistake(
                "candidates are ranked by the product of their probabilities, in which the shortest wins whatever it "
                "says; take the mean of the logarithms",
                ordered(lambda log_probs: float(log_probs.exp().prod())),
            ),
            Mistake(
                "the order is upside down: the largest mean log-probability, nearest to 0, is the best",
                ordered(score, reverse=False),
            ),
            Mistake(
                "the lowest sum comes first: that is the longest, least likely text",
                ordered(lambda log_probs: float(log_probs.sum()), reverse=False),
            ),
            Mistake(
                "probabilities are averaged, not their logarithms: one hopeless token must be able to spoil a text",
                ordered(lambda log_probs: float(log_probs.exp().mean())),
            ),
            Mistake(
                "only the best token of a candidate counts: the mean is over all of them",
                ordered(lambda log_probs: float(log_probs.max())),
            ),
            Mistake(
                "only the worst token of a candidate counts: the mean is over all of them",
                ordered(lambda log_probs: float(log_probs.min())),
            ),
            Mistake(
                "only the first token of a candidate counts: the mean is over all of them",
                ordered(lambda log_probs: float(log_probs[0])),
            ),
            Mistake("the longest comes first: length says nothing about how well it fits", ordered(len)),
            Mistake(
                "only the best one is returned: the others are wanted as well, best first",
                lambda log_probs: right(log_probs)[:1],
            ),
            Mistake(
                "only the best one is returned, as a number: a list of all is wanted, best first",
                lambda log_probs: right(log_probs)[0],
            ),
            Mistake(
                "these are ranks and not an order: the answer's first number must be the index of the best candidate",
                lambda log_probs: [right(log_probs).index(place) for place in range(len(log_probs))],
            ),
            Mistake(
                "the scores themselves are returned: indices are wanted, sorted by score",
                lambda log_probs: [score(one) for one in log_probs],
            ),
            Mistake(
                "the sorted scores are returned: indices are wanted, sorted by score",
                lambda log_probs: sorted(map(score, log_probs), reverse=True),
            ),
        ],
        details=_means,
        tidy=_as_numbers,
    )
    praise = "Short and long candidates, and one with a single hopeless token."
    return examine(function, "rank_candidates(log_probs)", judge, praise)


@functools.cache
def _recorded(context_length: int, anchor: int, span_length: int, step: int) -> tuple[list[int], int, int]:
    """What the project's own decoding feeds to a model, seen at the model's door."""
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=8,
            hidden_size=4,
            intermediate_size=4,
            num_hidden_layers=1,
            num_attention_heads=1,
            max_position_embeddings=64,
        )
    )
    calls: list[dict] = []
    model.register_forward_pre_hook(lambda module, args, named: calls.append(named), with_kwargs=True)
    blank = Blank(span_length, span_length, False, False, False, False)
    plan = Template(("", ""), (blank,), (0,) * context_length, (anchor,))
    list(spans.decode(model, _Tokenizer(), plan, [0], 1, spans.Sampling()))
    fed = calls[step]
    return calls[0]["position_ids"][0].tolist(), int(fed["position_ids"]), fed["attention_mask"].shape[-1]


class _Tokenizer:
    """What `spans.decode` wants of a tokenizer, and no more."""

    all_special_ids = ()

    def __len__(self) -> int:
        return 8

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return ["a" for _ in ids]


def _as_numbers(got):
    """Tensors as lists and numbers, so that both forms of an answer pass."""
    if isinstance(got, Tensor):
        return got.tolist()
    if isinstance(got, list | tuple | range):
        return type(got)(map(_as_numbers, got)) if not isinstance(got, range) else list(got)
    return got


def _means(arguments: tuple, expected: list, got) -> str:
    scores = ", ".join(f"{float(one.mean()):.3g}" for one in arguments[0])
    return f"means     {scores}\nexpected  {expected}\ngot       {got}"
