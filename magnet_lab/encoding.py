"""Sentence and word vectors: the decoder read under a bidirectional mask (Sections 4.1 and 4.2).

A sentence is read from its last token, an end-of-text token put after it: that position has no next token to predict,
so training leaves it free to stand for the whole. A word is read one token to the left, because a decoder's output at
position l speaks of the token at l + 1.
"""

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.functional import normalize
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from magnet_lab.attention import bidirectional, causal
from magnet_lab.decoder import continuation_ids, hidden_states, max_length, pad, start_ids, text_ids

POOLINGS = ("last", "mean", "echo")

DEFAULT_INSTRUCTION = "Given the sentence, find its representation"  # of training, Section 3.2.2
ECHO_FIRST, ECHO_SECOND = "Rewrite the sentence:", "\nThe rewritten sentence:"

TOKENS_PER_BATCH = 2048  # padding included; larger batches are no faster on a CPU and need more memory everywhere


def encode(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    instruction: str | None = None,
    pooling: str = "last",
    truncate: bool = False,
    progress: bool = False,
) -> Tensor:
    """One vector for each text.

    Args:
        texts: the texts; a text may be of any length up to the model's.
        instruction: what the vectors are for, put before every text as "instruction: text" (Table 8 lists the
            paper's); None for the one used in training, "" for none. "echo" pooling takes none.
        pooling: "last": the state of an end-of-text token put after the text (the paper's choice); "mean": the mean
            over the text's own tokens, without the instruction's; "echo": the text twice under a *causal* mask, the
            mean over the second copy, whose tokens have all seen the first (Echo embeddings).
        truncate: cut a text that is too long instead of refusing it.
        progress: show a progress bar.

    Returns:
        `(len(texts), hidden)`, float32 on the CPU, not normalised.

    Raises:
        ValueError: for an unknown pooling, an empty text, or one too long for the model.
    """
    if isinstance(texts, str):
        raise ValueError("encode takes a list of texts; put the text in a list: encode([text])")
    if pooling not in POOLINGS:
        raise ValueError(f"pooling {pooling!r} is not known; choose one of {', '.join(POOLINGS)}")
    instruction = DEFAULT_INSTRUCTION if instruction is None else instruction
    limit = max_length(model)
    rows, pooled = [], []
    for number, text in enumerate(texts):
        ids, start, stop = sentence_ids(tokenizer, text, instruction, pooling)
        if start == stop:
            raise ValueError(f"text {number} is empty; a vector needs at least one word")
        if len(ids) > limit and not truncate:
            raise ValueError(
                f"text {number} has {len(ids):,} tokens with its instruction, more than the {limit:,} that the model "
                "can read; shorten it, split it, or pass truncate=True"
            )
        if len(ids) > limit:
            too_many, copies = len(ids) - limit, 2 if pooling == "echo" else 1
            cut = -(-too_many // copies)  # rounded up
            ids, start, stop = sentence_ids(tokenizer, text, instruction, pooling, cut=cut)
            if start == stop:
                raise ValueError(f"the instruction leaves text {number} no room in the model's {limit:,} tokens")
        rows.append(ids)
        pooled.append((start, stop))

    span_ids_of = causal if pooling == "echo" else bidirectional
    vectors = torch.empty(len(rows), model.config.get_text_config().hidden_size)
    for batch, states in batched_states(model, rows, span_ids_of, progress):
        for index, row_states in zip(batch, states, strict=True):
            start, stop = pooled[index]
            # The mean in float32 also for a bfloat16 model: summing in bfloat16 loses what the model computed.
            vectors[index] = row_states[start:stop].float().mean(dim=0)
    return vectors


def encode_words(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[Sequence[str]],
    *,
    progress: bool = False,
) -> list[Tensor]:
    """One vector for each word: the mean over the word's tokens of the state at (token - 1), Section 4.1.

    The section's words say so; its printed example for a two-token word also counts the state *of* the word's last
    token, which speaks of the next word. The words are followed here.

    Args:
        sentences: each a list of words; they are joined by single spaces.
        progress: show a progress bar.

    Returns:
        For each sentence `(words, hidden)`, float32 on the CPU.

    Raises:
        ValueError: for an empty word, a sentence given as a string, or one too long for the model.
    """
    limit = max_length(model)
    rows, tokens_of_words = [], []
    for number, words in enumerate(sentences):
        if isinstance(words, str):
            raise ValueError(f"sentence {number} is a string; give its words as a list: {words.split()[:3]}…")
        ids, tokens_of_word = word_ids(tokenizer, words, number)
        if len(ids) > limit:
            raise ValueError(f"sentence {number} has {len(ids):,} tokens, more than the model's {limit:,}; split it")
        rows.append(ids)
        tokens_of_words.append(tokens_of_word)

    vectors: list[Tensor] = [torch.empty(0)] * len(rows)
    for batch, states in batched_states(model, rows, bidirectional, progress):
        for index, row_states in zip(batch, states, strict=True):
            before = [[token - 1 for token in tokens] for tokens in tokens_of_words[index]]
            words = [row_states[tokens].float().mean(dim=0) for tokens in before]
            vectors[index] = torch.stack(words).cpu() if words else torch.empty(0, row_states.shape[-1])
    return vectors


def similarity(a: Tensor, b: Tensor) -> Tensor:
    """Cosine similarity of every row of `a` `(n, hidden)` with every row of `b` `(m, hidden)`: `(n, m)`."""
    return normalize(a, dim=-1) @ normalize(b, dim=-1).T


def alignment(anchors: Tensor, positives: Tensor) -> float:
    """How far pairs that mean the same lie apart: the mean squared distance of their directions, 0 at best (Wang &
    Isola, 2020). Both `(n, hidden)`.
    """
    return float((normalize(anchors.float(), dim=-1) - normalize(positives.float(), dim=-1)).square().sum(-1).mean())


def uniformity(vectors: Tensor) -> float:
    """How evenly directions fill the sphere: the log of the mean over all pairs of exp(-2 · squared distance), 0 where
    all are one point, the lower the better (Wang & Isola, 2020). `(n, hidden)`.
    """
    return float(torch.pdist(normalize(vectors.float(), dim=-1)).square().mul(-2).exp().mean().log())


def sentence_ids(
    tokenizer: PreTrainedTokenizerBase, text: str, instruction: str, pooling: str, cut: int = 0
) -> tuple[list[int], int, int]:
    """The ids of one input and the stretch of positions whose mean is its vector, the text `cut` tokens shorter."""
    if not text.strip():
        return [], 0, 0
    if pooling == "echo":
        first = continuation_ids(tokenizer, " " + text)
        first = first[: max(0, len(first) - cut)]
        before = start_ids(tokenizer) + text_ids(tokenizer, ECHO_FIRST)
        between = continuation_ids(tokenizer, ECHO_SECOND)
        return before + first + between + first, len(before + first + between), len(before + first + between + first)

    opening = start_ids(tokenizer)
    if instruction:
        opening = opening + text_ids(tokenizer, instruction if instruction[-1] in ":.?!" else f"{instruction}:")
        body = continuation_ids(tokenizer, " " + text)
    else:
        body = text_ids(tokenizer, text)
    body = body[: max(0, len(body) - cut)]
    if not body:
        return [], 0, 0
    if pooling == "mean":
        return opening + body, len(opening), len(opening + body)
    ids = opening + body + [tokenizer.eos_token_id]
    return ids, len(ids) - 1, len(ids)


def word_ids(
    tokenizer: PreTrainedTokenizerBase, words: Sequence[str], number: int
) -> tuple[list[int], list[list[int]]]:
    """The ids of a sentence behind an opening token, and for each word the positions of its tokens."""
    ends, length = [], -1
    for position, word in enumerate(words):
        if not word.strip():
            raise ValueError(f"word {position} of sentence {number} is empty; take it out or write it")
        length += 1 + len(word)
        ends.append(length)
    opening = start_ids(tokenizer, required=True)
    encoded = tokenizer(" ".join(words), add_special_tokens=False, return_offsets_mapping=True)
    tokens_of_word: list[list[int]] = [[] for _ in words]
    word = 0
    for token, (_, stop) in enumerate(encoded["offset_mapping"], start=len(opening)):
        while word + 1 < len(words) and stop > ends[word]:
            word += 1
        tokens_of_word[word].append(token)
    for position, tokens in enumerate(tokens_of_word):
        if not tokens:
            raise ValueError(
                f"the tokenizer has no token for word {position} of sentence {number}, {words[position]!r}"
            )
    return opening + encoded["input_ids"], tokens_of_word


@torch.no_grad()
def batched_states(
    model: PreTrainedModel, rows: list[list[int]], span_ids_of, progress: bool
) -> Iterator[tuple[list[int], Iterable[Tensor]]]:
    """The hidden states of many rows: batches of indices into `rows`, with `(length, hidden)` for each row of a batch.

    Rows of like length go together, as many as fit a budget of tokens: little padding, even batches.
    """
    batches, batch = [], []
    for index in sorted(range(len(rows)), key=lambda index: len(rows[index])):
        if batch and len(rows[index]) * (len(batch) + 1) > TOKENS_PER_BATCH:
            batches.append(batch)
            batch = []
        batch.append(index)
    if batch:
        batches.append(batch)

    with tqdm(total=len(rows), disable=not progress, unit="text") as bar:
        for batch in reversed(batches):  # the longest first: too little memory shows at once, not at the end
            input_ids, tokens = pad([rows[index] for index in batch])
            span_ids = span_ids_of(tokens)
            yield batch, hidden_states(model, input_ids.to(model.device), span_ids.to(model.device))
            bar.update(len(batch))
