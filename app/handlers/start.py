"""One sentence under the masks of the three modes."""

from typing import TYPE_CHECKING

import magnet_lab as ml

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Tokens of a sentence, so that the pictures need no model.
TOKENS = ("The", " cat", " sat", " on", " the", " mat", ".")
SPAN = (2, 5)  # start and stop


def three_masks() -> tuple[list["Figure"], str]:
    """The masks in which the model generates, encodes and infills: their pictures, and all three as text."""
    import torch

    tokens = torch.ones(1, len(TOKENS), dtype=torch.long)
    modes = {
        "generate: causal": ml.attention.causal(tokens),
        "encode: bidirectional": ml.attention.bidirectional(tokens),
        "infill: MAGNET": ml.attention.magnet(tokens, [[SPAN]]),
    }
    figures, texts = [], []
    for name, span_ids in modes.items():
        mask = ml.attention.attention_mask(span_ids)[0, 0]
        # Labels show the missing span alone; that a causal text is one single span is for the page of masks to say.
        marked = span_ids[0].tolist() if "MAGNET" in name else None
        figures.append(ml.viz.mask_figure(mask, TOKENS, marked))
        texts.append(f"{name}\n{ml.viz.mask_text(mask, TOKENS, marked)}")
    return figures, "\n\n".join(texts)
