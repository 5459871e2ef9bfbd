"""Vectors of sentences and words by the methods that MAGNET is compared with, each read as its own paper reads it.

base model   causal      last token; a word from its own tokens             (Tables 1 and 2)
Echo         causal      the text twice, the mean over the second copy      (Springer et al., 2024)
LLM2Vec      bidirectional, its own adapter; the mean over the text         (BehnamGhader et al., 2024)
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from magnet_lab.attention import causal
from magnet_lab.encoding import DEFAULT_INSTRUCTION, batched_states, sentence_ids, word_ids
from magnet_lab.model import Magnet

CAUSAL_POOLINGS = ("last", "mean")


class LLM2Vec:
    """A decoder made bidirectional by masked next-token prediction and then SimCSE.

    Args:
        adapter: "llm2vec"; "mntp" for LLM2Vec [MNTP], as it is before SimCSE; or the folder of such an adapter.
    """

    def __init__(self, lab: Magnet, adapter: str = "llm2vec"):
        self.name = "LLM2Vec [MNTP]" if adapter == "mntp" else "LLM2Vec"
        self.lab = lab.use(adapter)

    def encode(self, texts: Sequence[str], *, pooling: str = "mean", **options) -> Tensor:
        """One vector for each text, `(n, hidden)`: `Magnet.encode` with the pooling that LLM2Vec was trained with."""
        return self.lab.encode(texts, pooling=pooling, **options)

    def encode_words(self, sentences: Sequence[Sequence[str]], **options) -> list[Tensor]:
        """One vector a word, read at the token before as in MNTP: `Magnet.encode_words`."""
        return self.lab.encode_words(sentences, **options)

    def generate(self, text: str, **decoding) -> str:
        """Go on with a text under the causal mask, which its training never used (Figure 5): `Magnet.generate`."""
        return self.lab.generate(text, **decoding)


class Echo:
    """Echo embeddings: the base model reads the text twice, so that the second copy's tokens have seen all of it."""

    name = "Echo"

    def __init__(self, lab: Magnet):
        self.lab = lab.use(None)

    def encode(self, texts: Sequence[str], **options) -> Tensor:
        """One vector for each text, `(n, hidden)`: `Magnet.encode`; an instruction has no place in its prompt."""
        return self.lab.encode(texts, pooling="echo", **options)


def encode_causal(
    lab: Magnet,
    texts: Sequence[str],
    *,
    instruction: str | None = None,
    pooling: str = "last",
    progress: bool = False,
) -> Tensor:
    """One vector for each text under the causal mask; arguments, result and errors as `Magnet.encode`.

    "mean" is under this mask a mean of states most of which have not seen the text's end.
    """
    if pooling not in CAUSAL_POOLINGS:
        raise ValueError(f"pooling {pooling!r} is not known here; choose one of {', '.join(CAUSAL_POOLINGS)}")
    instruction = DEFAULT_INSTRUCTION if instruction is None else instruction
    inputs = [sentence_ids(lab.tokenizer, text, instruction, pooling) for text in texts]
    for number, (ids, start, stop) in enumerate(inputs):
        if start == stop:
            raise ValueError(f"text {number} is empty; a vector needs at least one word")
        if len(ids) > lab.max_length:
            raise ValueError(
                f"text {number} has {len(ids):,} tokens, more than the model's {lab.max_length:,}; split it"
            )
    vectors = torch.empty(len(inputs), lab.model.config.get_text_config().hidden_size)
    for batch, states in batched_states(lab.model, [ids for ids, _, _ in inputs], causal, progress):
        for index, row_states in zip(batch, states, strict=True):
            _, start, stop = inputs[index]
            vectors[index] = row_states[start:stop].float().mean(dim=0)
    return vectors


def encode_words_causal(lab: Magnet, sentences: Sequence[Sequence[str]], *, progress: bool = False) -> list[Tensor]:
    """One vector a word under the causal mask: the mean over the word's own tokens; otherwise as `Magnet.encode_words`.

    Not at (token - 1) as after MNTP: under this mask, the token before has not seen the word at all.
    """
    rows = [word_ids(lab.tokenizer, words, number) for number, words in enumerate(sentences)]
    for number, (ids, _) in enumerate(rows):
        if len(ids) > lab.max_length:
            raise ValueError(f"sentence {number} has {len(ids):,} tokens, more than the model's {lab.max_length:,}")
    vectors: list[Tensor] = [torch.empty(0)] * len(rows)
    for batch, states in batched_states(lab.model, [ids for ids, _ in rows], causal, progress):
        for index, row_states in zip(batch, states, strict=True):
            words = [row_states[tokens].float().mean(dim=0).cpu() for tokens in rows[index][1]]
            vectors[index] = torch.stack(words) if words else torch.empty(0, row_states.shape[-1])
    return vectors
