"""The base model as it came: it reads from left to right, and so it writes (Tables 1, 2, 4, 5 and 10, Figure 5).

It fills a blank by going on from what stands to the left; what stands to the right, it never sees. Everything but the
mask is as in MAGNET's own infilling: the same choice of tokens, the same lengths, the same meaning of a sentence's end.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedTokenizerBase

from magnet_lab.attention import causal
from magnet_lab.baselines.embedding import encode_causal, encode_words_causal
from magnet_lab.blanks import Template, template
from magnet_lab.decoder import decode_after, position_ids, span_mask
from magnet_lab.infilling import Candidate, Infill, Span
from magnet_lab.model import Magnet
from magnet_lab.scoring import check_length
from magnet_lab.spans import Sampling, forbidden_tokens, write_token


class Unidirectional:
    """The base model under the causal mask."""

    name = "unidirectional"

    def __init__(self, lab: Magnet):
        self.lab = lab.use(None)

    def generate(self, text: str, **decoding) -> str:
        """Go on with a text: `Magnet.generate`."""
        return self.lab.generate(text, **decoding)

    def infill(self, text: str, **sampling) -> Infill:
        """Fill the blanks of a text from left to right, each from what stands to its left, earlier fills included.

        A blank for a sentence gets one sentence, or what there is of it at the blank's greatest length. Any other blank
        gets its greatest length: nothing to the left tells where the right side begins.

        Args:
            text: with blanks, see `magnet_lab.blanks`.
            **sampling: temperature, top_p, top_k, seed, as in `Magnet.infill`.

        Returns:
            An `Infill` of one candidate.

        Raises:
            ValueError: for a text without blanks, settings out of range, or a text too long for the model.
        """
        sampling = Sampling(**sampling)
        rest, spans = template(self.lab.tokenizer, text), []
        check_length(self.lab.model, rest, [blank.longest for blank in rest.blanks])
        while rest.blanks:
            blank = rest.blanks[0]

            def is_enough(written: str, length: int, blank=blank) -> bool:
                return blank.is_sentence and length >= blank.shortest and blank.ends(written)

            left = list(rest.ids[: rest.anchors[0] + 1])
            span = write_on(self.lab, left, blank.longest, sampling, is_enough, begins_word=blank.after_space)
            spans.append(in_blank(rest, 0, span))
            rest = rest.with_first(spans[-1].text, span.ids)
        return Infill((Candidate(rest.fill([]), tuple(spans)),))

    def encode(self, texts: Sequence[str], **options) -> Tensor:
        """One vector for each text, `(n, hidden)`: see `encode_causal`."""
        return encode_causal(self.lab, texts, **options)

    def encode_words(self, sentences: Sequence[Sequence[str]], **options) -> list[Tensor]:
        """For each sentence, a list of words, one vector a word `(words, hidden)`: see `encode_words_causal`."""
        return encode_words_causal(self.lab, sentences, **options)


@torch.no_grad()
def write_on(
    lab: Magnet,
    ids: list[int],
    longest: int,
    sampling: Sampling,
    is_enough: Callable[[str, int], bool],
    *,
    begins_word: bool = False,
) -> Span:
    """What a model writes after some tokens under the causal mask.

    Args:
        ids: the tokens to go on from, at least one.
        longest: how many tokens are written at most.
        is_enough: given the text written so far and its length in tokens, whether to stop there.
        begins_word: the first token has to begin a word, as after a space.

    Returns:
        What was written, its tokens and their log-probabilities (nats).
    """
    input_ids = torch.tensor([ids], device=lab.device)
    span_ids = causal(torch.ones_like(input_ids))
    cache = DynamicCache()
    scores = lab.model(
        input_ids=input_ids,
        attention_mask=span_mask(lab.model, span_ids),
        position_ids=position_ids(span_ids),
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=1,
    ).logits[:, -1]
    not_text, not_word_start = forbidden_tokens(lab.tokenizer, scores)
    forbidden = not_text | not_word_start if begins_word else not_text
    generator = sampling.generator(lab.device)
    written, log_probs = [], []
    while True:
        all_log_probs = scores.float().log_softmax(dim=-1)
        token = sampling.draw(all_log_probs.masked_fill(forbidden, -torch.inf), generator)
        written.append(int(token))
        log_probs.append(float(all_log_probs[0, token]))
        span = as_span(lab.tokenizer, ids, written, log_probs)
        if len(written) == longest or is_enough(span.text, len(written)):
            return span
        forbidden = not_text
        scores = write_token(lab.model, cache, token, torch.tensor([len(ids) + len(written) - 1], device=lab.device))


def in_blank(plan: Template, number: int, span: Span) -> Span:
    """What was written for a blank, without the whitespace that would stand twice there, or at the text's start."""
    text = span.text.rstrip() if plan.blanks[number].before_space else span.text
    return replace(span, text=text if number or plan.segments[0] else text.lstrip())


def as_span(
    tokenizer: PreTrainedTokenizerBase, before: list[int], ids: Sequence[int], log_probs: Sequence[float]
) -> Span:
    """Tokens as the text that they are after the tokens `before`."""
    ids = list(ids)
    tokens = [decode_after(tokenizer, before + ids[:place], [token]) for place, token in enumerate(ids)]
    return Span(decode_after(tokenizer, before, ids), tuple(ids), tuple(tokens), tuple(log_probs))
