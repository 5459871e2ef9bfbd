"""Masked next-token prediction on text that was not trained on: how often is the likeliest token the hidden one?"""

import torch
from tqdm import tqdm

from magnet_lab import views
from magnet_lab.decoder import hidden_states, pad, start_ids, text_ids, vocabulary_scores
from magnet_lab.model import Magnet


@torch.no_grad()
def accuracy(
    lab: Magnet, texts: list[str], *, share: float = 0.2, own_place: bool = False, batch: int = 16, seed: int = 0
) -> float:
    """Percentage of the hidden tokens that are found, with the whole text in view (no spans), Section 3.2.1.

    Args:
        share: of a text's tokens that are hidden.
        own_place: read each from its own position, as masked token prediction does (Appendix E), and not from the one
            before it.
    """
    right = asked = 0
    generator = torch.Generator().manual_seed(seed)
    for start in tqdm(range(0, len(texts), batch), desc="masked tokens", leave=False):
        rows = [start_ids(lab.tokenizer) + text_ids(lab.tokenizer, text) for text in texts[start : start + batch]]
        input_ids, tokens = pad([row[: lab.max_length] for row in rows])
        made = views.make_views(
            input_ids, tokens, tokenizer=lab.tokenizer, generator=generator, mask_share=share, max_spans=0
        )
        labels = views.same_token_labels(input_ids, made.selected) if own_place else made.mntp_labels
        places = labels != views.NO_LABEL
        states = hidden_states(lab.model, made.input_ids.to(lab.model.device), made.span_ids.to(lab.model.device))
        found = vocabulary_scores(lab.model, states[places.to(lab.model.device)]).argmax(dim=-1).cpu()
        right += int((found == labels[places]).sum())
        asked += len(found)
    return 100 * right / max(1, asked)
