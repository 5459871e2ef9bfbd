"""The special tokens, and an uncased vocabulary of a corpus's own.

The document splits words into pieces (WordPiece). Whole words serve a small corpus as well, and a vocabulary of them
comes out the same every time, which that of the WordPiece trainer at hand does not.
"""

from collections import Counter
from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

SPECIAL = ("[PAD]", "[UNK]", "[SOS]", "[EOS]", "[M]", "[P]")  # the first ids of every vocabulary here
PAD, UNK, SOS, EOS, MASK, PSEUDO = range(len(SPECIAL))


def word_tokenizer(texts: Iterable[str], size: int) -> Tokenizer:
    """A tokenizer of the special tokens and the corpus's most frequent words and marks, at most `size` in all.

    A special token cannot be written in a text: "[M]" there is a bracket, a letter and a bracket.
    """
    normalizer, splitter = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    words = Counter(
        word for text in texts for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text))
    ).most_common(size - len(SPECIAL))
    ids = {token: number for number, token in enumerate([*SPECIAL, *(word for word, _ in words)])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=SPECIAL[UNK]))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    tokenizer.decoder = decoders.WordPiece()  # puts marks back to the words before them
    return tokenizer


def join(*segments: list[int]) -> list[int]:
    """`[SOS] S1 [EOS] S2 [EOS]`, or `[SOS] S1 [EOS]`, as ids (Section 2.2)."""
    return [SOS, *(token for segment in segments for token in [*segment, EOS])]
