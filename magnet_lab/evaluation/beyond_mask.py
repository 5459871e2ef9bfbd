"""The hybrid mask against a fully bidirectional one, for the same adapter and the same missing sentences.

Under the MAGNET mask the context never sees the span, so one pass tells the likelihood of all its tokens. If everybody
may look at everybody, each token of the span needs a pass of its own in which it and what follows it in the span are
out of sight: left out, their places kept, or hidden behind mask tokens as BERT has it. All three give the probability
of the same words in the same order from the same context, so their perplexities compare.
"""

import torch
from torch import Tensor
from tqdm import tqdm

from magnet_lab.blanks import template
from magnet_lab.decoder import backend_mask, vocabulary_scores
from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Setting, bootstrap
from magnet_lab.evaluation.infilling import Missing, perplexity, remove_sentences
from magnet_lab.evaluation.infilling import log_probs as hybrid_log_probs
from magnet_lab.evaluation.verdicts import above
from magnet_lab.model import Magnet
from magnet_lab.scoring import ids_of_fill
from magnet_lab.views import mask_token_id

PERPLEXITY, RATIO = "perplexity of missing sentences", "times that of the MAGNET mask"
HYBRID, UNSEEN, MASKED = "MAGNET mask", "bidirectional, the rest left out", "bidirectional, the rest masked"


@torch.no_grad()
def bidirectional_log_probs(lab: Magnet, missing: Missing, *, masked: bool) -> Tensor:
    """Log-probabilities (nats) of a text's one missing stretch, `(tokens,)`, where all that is there sees all of it.

    Args:
        masked: put mask tokens where the stretch is not written yet; else nothing is seen there.
    """
    plan = template(lab.tokenizer, missing.text)
    fill = ids_of_fill(lab.tokenizer, plan, 0, missing.fills[0])
    start = plan.anchors[0] + 1
    ids = torch.tensor([*plan.ids[:start], *fill, *plan.ids[start:]])
    places = torch.arange(len(ids))
    steps = torch.arange(len(fill))[:, None]
    rest = (places >= start + steps) & (places < start + len(fill))  # (tokens of the fill, length): not written yet
    rows = ids.expand(len(fill), -1)
    if masked:
        rows, seen = rows.masked_fill(rest, mask_token_id(lab.tokenizer)), torch.ones_like(rest)[:, None, :]
    else:
        seen = ~rest[:, None, :]
    mask = (seen | torch.eye(len(ids), dtype=torch.bool))[:, None]  # (tokens of the fill, 1, length, length)
    states = lab.model.get_decoder()(
        input_ids=rows.to(lab.device),
        attention_mask=backend_mask(lab.model, mask.to(lab.device)),
        position_ids=places.expand(len(fill), -1).to(lab.device),
        use_cache=False,
    ).last_hidden_state
    before = states[torch.arange(len(fill)), start + torch.arange(len(fill)) - 1]
    scores = vocabulary_scores(lab.model, before).float().log_softmax(dim=-1).cpu()
    return scores.gather(1, torch.tensor(fill)[:, None])[:, 0]


def _row(masked: bool | None):
    def measure(setting: Setting) -> dict[str, Figure]:
        lab = setting.lab("magnet")
        texts = remove_sentences(setting.data.stories(setting.some(60, 4)), seed=setting.seed)
        hybrid = hybrid_log_probs(lab, texts, mode="infill")
        if masked is None:
            return {PERPLEXITY: bootstrap(hybrid, perplexity)}
        found = [bidirectional_log_probs(lab, missing, masked=masked) for missing in tqdm(texts, leave=False)]
        pairs = list(zip(found, hybrid, strict=True))
        return {PERPLEXITY: bootstrap(found, perplexity), RATIO: bootstrap(pairs, ratio)}

    return measure


def ratio(pairs: list[tuple[Tensor, Tensor]]) -> float:
    """Of the perplexities of two ways to read the same texts."""
    one, other = zip(*pairs, strict=True)
    return perplexity(list(one)) / perplexity(list(other))


def _less_likely(row: str):
    return lambda rows: above(rows.get(row, {}).get(RATIO), 1)


EXPERIMENT = Experiment(
    id="beyond-mask",
    title="The hybrid mask against a fully bidirectional one, same adapter",
    rows={HYBRID: _row(None), UNSEEN: _row(False), MASKED: _row(True)},
    claims=[
        Claim(
            "A context that may look at what is written of the span makes the words less likely than MAGNET's, which "
            "may not",
            _less_likely(UNSEEN),
        ),
        Claim(
            "So does a bidirectional mask with mask tokens for what is not written yet, as in BERT",
            _less_likely(MASKED),
        ),
    ],
)
