"""What the mask costs: how much is looked at, and how long a forward pass takes under each mask.

The times are of one run, taken in turns, as multiples of the same pass without any mask of ours, for which
transformers has its own causal attention. A dense mask is looked up for every pair whatever it says, so what a mask
forbids saves no time on a CPU; FlexAttention, on a GPU, leaves out whole blocks.
"""

import time

import numpy as np
import torch

from magnet_lab import attention
from magnet_lab.decoder import hidden_states
from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Setting, bootstrap
from magnet_lab.evaluation.verdicts import above, exact, opposite
from magnet_lab.model import Magnet

LENGTHS = (64, 256)  # tokens
SPANS = ((1 / 4, 3 / 8), (5 / 8, 3 / 4))  # shares of the text: two spans, a quarter of it together


def layout(name: str, length: int) -> torch.LongTensor:
    """Span ids `(1, length)` of a mask by its name."""
    tokens = torch.ones(1, length, dtype=torch.long)
    if name == "MAGNET":
        return attention.magnet(tokens, [[(int(start * length), int(stop * length)) for start, stop in SPANS]])
    return attention.causal(tokens) if name == "causal" else attention.bidirectional(tokens)


@torch.no_grad()
def ratios(lab: Magnet, span_ids: torch.LongTensor, rounds: int) -> list[float]:
    """Seconds of a forward pass under a mask, as multiples of those without one; one number a round."""
    ids = torch.arange(span_ids.shape[1])[None].to(lab.device) + 100
    span_ids = span_ids.to(lab.device)

    def seconds(run) -> float:
        start = time.perf_counter()
        run()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return time.perf_counter() - start

    def plain():
        lab.model.get_decoder()(input_ids=ids, use_cache=False)

    def masked():
        hidden_states(lab.model, ids, span_ids)

    plain(), masked()  # the first call of anything is slower
    found = []
    for number in range(rounds):
        first, second = (plain, masked) if number % 2 else (masked, plain)  # neither always comes first
        times = {first: seconds(first), second: seconds(second)}
        found.append(times[masked] / times[plain])
    return found


def _row(name: str):
    def measure(setting: Setting) -> dict[str, Figure]:
        lab, found = setting.lab(None), {}
        pairs = attention.attention_mask(layout(name, LENGTHS[-1])).float().mean().item()
        found[f"pairs that are seen, {LENGTHS[-1]} tokens (%)"] = exact(100 * pairs)
        for length in LENGTHS:
            times = ratios(lab, layout(name, length), setting.some(40, 4))
            found[f"time, {length} tokens (x no mask)"] = bootstrap(times, lambda some: float(np.median(some)))
        return found

    return measure


EXPERIMENT = Experiment(
    id="beyond-cost",
    title="What the mask costs",
    rows={name: _row(name) for name in ("causal", "bidirectional", "MAGNET")},
    claims=[
        Claim(
            f"A pass of {LENGTHS[-1]} tokens under the MAGNET mask takes at most a quarter longer than without a mask",
            lambda rows: opposite(above(rows.get("MAGNET", {}).get(f"time, {LENGTHS[-1]} tokens (x no mask)"), 1.25)),
        ),
    ],
)
