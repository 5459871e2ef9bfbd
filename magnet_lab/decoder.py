"""One forward pass of a stock decoder, under any mask.

The model is never changed: the mask goes in as an explicit four-dimensional `attention_mask`, and positions as explicit
`position_ids`. So any decoder of transformers with rotary positions works, and two threads can use one model in two
modes at once.
"""

import torch
from torch import LongTensor, Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from magnet_lab.attention import PADDING, attention_mask, for_backend, mask_mod


def position_ids(span_ids: LongTensor) -> LongTensor:
    """A token's place in its text, `(batch, length)`, counted without padding, on whichever side that stands."""
    return ((span_ids != PADDING).cumsum(dim=1) - 1).clamp(min=0)


def backend_mask(model: PreTrainedModel, mask: torch.BoolTensor):
    """A boolean `(batch, 1, query, key)` mask in the form that this model's attention implementation takes."""
    return for_backend(mask, model.config._attn_implementation, model.dtype)


def span_mask(model: PreTrainedModel, span_ids: LongTensor):
    """The rule for a batch in the model's form. FlexAttention takes the rule itself: no dense mask is ever made."""
    if model.config._attn_implementation == "flex_attention":
        from torch.nn.attention.flex_attention import create_block_mask

        batch, length = span_ids.shape
        return create_block_mask(mask_mod(span_ids), batch, None, length, length, device=span_ids.device)
    return backend_mask(model, attention_mask(span_ids))


def hidden_states(model: PreTrainedModel, input_ids: LongTensor, span_ids: LongTensor) -> Tensor:
    """The last hidden states, after the final norm: `(batch, length, hidden)`.

    Args:
        model: a causal language model of transformers.
        input_ids: `(batch, length)`.
        span_ids: `(batch, length)`, see `magnet_lab.attention`; they alone decide the mode.
    """
    outputs = model.get_decoder()(
        input_ids=input_ids,
        attention_mask=span_mask(model, span_ids),
        position_ids=position_ids(span_ids),
        use_cache=False,
    )
    return outputs.last_hidden_state


def logits(model: PreTrainedModel, input_ids: LongTensor, span_ids: LongTensor, at: LongTensor | None = None) -> Tensor:
    """Next-token scores: the row at index l scores the token at l + 1, in every mode.

    Args:
        model, input_ids, span_ids: as in `hidden_states`.
        at: `(n,)` indices along the length at which scores are wanted; all by default. The head over the vocabulary
            is a large part of the work, so ask only for what is needed.

    Returns:
        `(batch, length, vocabulary)`, or `(batch, n, vocabulary)` with `at`.
    """
    return model(
        input_ids=input_ids,
        attention_mask=span_mask(model, span_ids),
        position_ids=position_ids(span_ids),
        logits_to_keep=0 if at is None else at,
        use_cache=False,
    ).logits


def vocabulary_scores(model: PreTrainedModel, states: Tensor) -> Tensor:
    """The head over the vocabulary on chosen hidden states, `(n, hidden)` -> `(n, vocabulary)`."""
    scores = model.get_output_embeddings()(states)
    cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
    return cap * torch.tanh(scores / cap) if cap else scores


def pad(rows: list[list[int]]) -> tuple[LongTensor, torch.BoolTensor]:
    """Rows of ids as one batch padded on the right: the ids and where there are tokens, `(rows, longest)` each."""
    input_ids = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    tokens = torch.zeros_like(input_ids, dtype=torch.bool)
    for row, ids in enumerate(rows):
        input_ids[row, : len(ids)] = torch.tensor(ids)
        tokens[row, : len(ids)] = True
    return input_ids, tokens


def max_length(model: PreTrainedModel) -> int:
    """The longest text in tokens that the model can read under a mask of ours.

    A layer with a sliding window would look no further than the window; our masks look at the whole text, which is the
    same thing only up to the window's length.
    """
    config = model.config.get_text_config()
    limit = config.max_position_embeddings
    uses_window = "sliding_attention" in (getattr(config, "layer_types", None) or ["sliding_attention"])
    window = getattr(config, "sliding_window", None)
    return min(limit, window) if window and uses_window else limit


def start_ids(tokenizer: PreTrainedTokenizerBase, *, required: bool = False) -> list[int]:
    """The ids that open a text: the tokenizer's BOS where it is used to one.

    With `required`, a text gets an opening token from any tokenizer (BOS, or EOS where there is none): the first word's
    vector and a blank at the very start are read from the token before them.
    """
    first = tokenizer("a")["input_ids"][0]
    opening = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    return [opening] if opening is not None and (required or first == tokenizer.bos_token_id) else []


def text_ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """The ids of a text alone, without any special token; empty for an empty text."""
    return tokenizer(text, add_special_tokens=False)["input_ids"] if text else []


def continuation_ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """The ids of a text that goes on from other text: no marker for a start of text is put before it.

    SentencePiece tokenizers put a space before whatever they are given; a line break before it, taken off again, keeps
    them from doing so here.
    """
    line_break = text_ids(tokenizer, "\n")
    ids = text_ids(tokenizer, "\n" + text)
    return ids[len(line_break) :] if ids[: len(line_break)] == line_break else text_ids(tokenizer, text)


def decode_after(tokenizer: PreTrainedTokenizerBase, before: list[int], ids: list[int]) -> str:
    """The text of `ids` as it reads after the tokens `before`, with its own leading space kept."""
    before = before[-8:]  # enough for what a decoder looks back at
    options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
    return tokenizer.decode(before + ids, **options)[len(tokenizer.decode(before, **options)) :]
