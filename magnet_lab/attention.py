"""Who may look at whom: one rule, from which every mask of the project follows (Section 3.1, Figure 2).

Every token carries a number, its span id: 0 for a context token, k >= 1 for a token of the k-th span, -1 for
padding. Query q may attend to key k when

    k is a context token,  or  q and k are in the same span and k is not after q.

Where the spans are is all that tells one mode from another:

    no span at all              bidirectional: every token sees every token          (Figure 2b, encoding)
    everything is one span      causal: every token sees itself and those before it  (Figure 2a, generation)
    one span at the end         prefix LM: a bidirectional prefix, a causal target
    spans in the middle         MAGNET: context sees context, a span sees the context and its own past
                                                                                     (Figure 2c and 2d, infilling)

A span never sees another span, and the context never sees a span: what the context computes does not depend on what
the spans say, so its keys and values can be computed once and kept while a span is written.
"""

import torch
from torch import BoolTensor, LongTensor, Tensor

CONTEXT = 0
PADDING = -1

MODES = ("causal", "bidirectional", "prefix", "magnet")


def attention_mask(span_ids: LongTensor) -> BoolTensor:
    """The rule as a dense mask.

    Args:
        span_ids: `(batch, length)`; 0 context, k >= 1 the k-th span, -1 padding.

    Returns:
        `(batch, 1, length, length)`, indexed `[batch, head, query, key]`; True where the query may attend to the key.
        Every token sees itself, padding too: a softmax over an empty row would be NaN.

    Raises:
        ValueError: if `span_ids` is not a two-dimensional tensor of integers.
    """
    _check(span_ids)
    query, key = span_ids[:, :, None], span_ids[:, None, :]
    position = torch.arange(span_ids.shape[1], device=span_ids.device)
    not_after = position[None, :] <= position[:, None]
    allowed = (key == CONTEXT) | ((query == key) & (key != PADDING) & not_after)
    itself = position[None, :] == position[:, None]
    return (allowed | itself)[:, None]


def mask_mod(span_ids: LongTensor):
    """The same rule as a FlexAttention `mask_mod(batch, head, query, key)`; shapes and errors as `attention_mask`."""
    _check(span_ids)

    def allowed(batch, head, query, key):
        query_span, key_span = span_ids[batch, query], span_ids[batch, key]
        in_same_span = (query_span == key_span) & (key_span != PADDING) & (key <= query)
        return (key_span == CONTEXT) | in_same_span | (query == key)

    return allowed


def for_backend(mask: BoolTensor, implementation: str, dtype: torch.dtype):
    """The form in which an attention implementation of transformers takes a boolean mask.

    Args:
        mask: `(batch, 1, query, key)`, True where the query may attend to the key.
        implementation: `"sdpa"`, `"eager"` or `"flex_attention"`, as in `attn_implementation=`.
        dtype: of the model's activations; only the additive form depends on it.

    Returns:
        The boolean mask itself for sdpa; a mask to add to the scores, 0 or the lowest number of `dtype`, for eager;
        a `BlockMask` for FlexAttention.

    Raises:
        ValueError: for an implementation that takes no such mask (Flash Attention).
    """
    if implementation == "sdpa":
        return mask
    if implementation == "eager":
        # A boolean mask would be *added* to the scores here: True counts 1, False counts 0, and everything leaks.
        return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, torch.finfo(dtype).min)
    if implementation == "flex_attention":
        from torch.nn.attention.flex_attention import create_block_mask

        batch, _, queries, keys = mask.shape
        return create_block_mask(
            lambda b, h, q, k: mask[b, 0, q, k], B=batch, H=None, Q_LEN=queries, KV_LEN=keys, device=mask.device
        )
    raise ValueError(
        f"attn_implementation={implementation!r} takes no mask of its own; load the model with "
        "attn_implementation='sdpa', 'eager' or 'flex_attention'"
    )


def receptive_field(mask: BoolTensor, layers: int) -> BoolTensor:
    """What a token can be influenced by after `layers` layers of attention, by boolean composition.

    One layer lets a query read its keys; the next lets it read what those keys have read. A mask in which
    `receptive_field(mask, k)` equals `mask` for every k leaks nothing through a third token.

    Args:
        mask: `(..., query, key)`, True where the query may attend to the key.
        layers: how many layers, >= 1.

    Returns:
        A mask of the same shape, True where the input at `key` can change the output at `query`.
    """
    if layers < 1:
        raise ValueError(f"receptive_field needs at least one layer, got {layers}")
    reached = mask
    for _ in range(layers - 1):
        further = (reached.float() @ mask.float()) > 0
        if torch.equal(further, reached):
            break
        reached = further
    return reached


def bidirectional(tokens: Tensor) -> LongTensor:
    """Span ids `(batch, length)` in which every token is context; `tokens` is 1 (True) at a token, 0 at padding."""
    return torch.where(tokens.bool(), CONTEXT, PADDING)


def causal(tokens: Tensor) -> LongTensor:
    """Span ids `(batch, length)` in which everything is one span; `tokens` is 1 (True) at a token, 0 at padding."""
    return torch.where(tokens.bool(), 1, PADDING)


def prefix(tokens: Tensor, prefix_length: int) -> LongTensor:
    """Span ids `(batch, length)` of a prefix LM: a row's first `prefix_length` tokens are context, the rest a span."""
    tokens = tokens.bool()
    target = tokens & (tokens.cumsum(dim=1) > prefix_length)
    return bidirectional(tokens).masked_fill(target, 1)


def magnet(tokens: Tensor, spans: list[list[tuple[int, int]]]) -> LongTensor:
    """Span ids `(batch, length)` with the k-th of a row's `spans`, `(start, stop)` indices, numbered k.

    Any mask can be drawn, also what training never makes: spans that touch, or one at a row's first token.

    Raises:
        ValueError: if a span is empty, leaves the row, covers padding or overlaps another.
    """
    span_ids = bidirectional(tokens)
    for row, row_spans in enumerate(spans):
        for number, (start, stop) in enumerate(row_spans, start=1):
            if not 0 <= start < stop <= span_ids.shape[1]:
                raise ValueError(f"span ({start}, {stop}) of row {row} is not a stretch of 0…{span_ids.shape[1]}")
            if (span_ids[row, start:stop] != CONTEXT).any():
                raise ValueError(f"span ({start}, {stop}) of row {row} covers padding or another span")
            span_ids[row, start:stop] = number
    return span_ids


def _check(span_ids: LongTensor) -> None:
    if span_ids.ndim != 2 or span_ids.is_floating_point() or span_ids.dtype == torch.bool:
        raise ValueError(
            f"span_ids must be integers of shape (batch, length), got {span_ids.dtype} of shape {tuple(span_ids.shape)}"
        )
