"""Who may look at whom in the chapter's three modes, and the mask as the chapter's code makes it."""

from torch import BoolTensor, LongTensor, Tensor

from magnet_lab.attention import CONTEXT, PADDING, attention_mask, bidirectional, causal, prefix

MODES = ("bidirectional", "unidirectional", "prefix")


def mode_span_ids(mode: str, tokens: Tensor, prefix_length: int | LongTensor | None = None) -> LongTensor:
    """Span ids `(batch, length)` of a mode; `attention.attention_mask` makes the mask of them.

    Args:
        mode: one of `MODES`.
        tokens: `(batch, length)`, 1 (True) at a token, 0 at padding.
        prefix_length: in the mode "prefix", tokens of the prefix: a number, or one for each row as `(batch, 1)`.

    Raises:
        ValueError: for an unknown mode, or "prefix" without a length.
    """
    if mode == "bidirectional":
        return bidirectional(tokens)
    if mode == "unidirectional":
        return causal(tokens)
    if mode != "prefix":
        raise ValueError(f"there is no mode {mode!r}; choose one of {', '.join(MODES)}")
    if prefix_length is None:
        raise ValueError("the mode 'prefix' needs prefix_length: how many tokens the prefix has")
    return prefix(tokens, prefix_length)


def printed_mask(span_ids: LongTensor) -> BoolTensor:
    """The mask of the chapter's `create_prefix_lm_mask`: as `attention_mask`, but a prefix token sees the target too.

    For six tokens, three of them prefix, 33 pairs may attend in place of 24. The chapter's equation and most of its
    text give the prefix its own tokens alone; its code blocks the future in the rows of the target only, and in one
    place the text says the same. It is an easy slip, and with a single layer a harmless one. With two, a target token
    reads from the prefix what the prefix has read of the tokens to come: the loss falls below what can be known, and
    in writing, where those tokens are not there yet, the model misses what it learned to rely on.

    On the chapter's own text of 216 characters no harm is to be seen, since that can be learnt by heart. Where rows are
    fresh it is (`experiments.leak`).
    """
    prefix_row = (span_ids == CONTEXT)[:, None, :, None]
    a_token = (span_ids != PADDING)[:, None, None, :]
    return attention_mask(span_ids) | (prefix_row & a_token)
