"""How much a model repeats itself when it writes on and on, Figures 5 and 6: Rep-Sen and Rep-n (Equation 6)."""

import torch
from transformers import GenerationConfig

from magnet_lab.decoder import start_ids, text_ids
from magnet_lab.model import Magnet
from magnet_lab.paraphrase import sentences


def rep_sen(text: str) -> float:
    """Share of a text's sentences that it has said before; 0 for a text without any."""
    found = [sentence.strip().lower() for sentence in sentences(text, shortest=1, longest=1000)]
    return 1 - len(set(found)) / len(found) if found else 0.0


def rep_n(text: str, n: int = 4) -> float:
    """Share of a text's n-word runs that it has said before; 0 for a text too short to have any."""
    words = text.lower().split()
    runs = [tuple(words[start : start + n]) for start in range(len(words) - n + 1)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


@torch.no_grad()
def continuations(lab: Magnet, prefixes: list[str], *, new_tokens: int = 128, batch: int = 32) -> list[str]:
    """What a model goes on to write after each prefix, taking always the likeliest token."""
    written = []
    settings = GenerationConfig(
        max_new_tokens=new_tokens,
        do_sample=False,
        eos_token_id=lab.tokenizer.eos_token_id,
        pad_token_id=lab.tokenizer.eos_token_id,
    )
    for start in range(0, len(prefixes), batch):
        rows = [start_ids(lab.tokenizer) + text_ids(lab.tokenizer, text) for text in prefixes[start : start + batch]]
        longest = max(map(len, rows))
        # Generation goes on at the right, so the padding stands on the left.
        ids = torch.tensor([[lab.tokenizer.eos_token_id] * (longest - len(row)) + row for row in rows])
        tokens = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
        device = lab.model.device
        made = lab.model.generate(ids.to(device), attention_mask=tokens.to(device), generation_config=settings)
        written += lab.tokenizer.batch_decode(made[:, longest:], skip_special_tokens=True)
    return written
