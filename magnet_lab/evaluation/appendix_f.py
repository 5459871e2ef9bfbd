"""Appendix F: what the adaptation costs the model as a plain writer: perplexity of text read from left to right."""

import torch
from tqdm import tqdm

from magnet_lab.attention import causal
from magnet_lab.decoder import logits, start_ids, text_ids
from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Setting, bootstrap
from magnet_lab.evaluation.infilling import perplexity
from magnet_lab.evaluation.verdicts import at_most
from magnet_lab.model import Magnet


@torch.no_grad()
def log_probs(lab: Magnet, text: str, most: int = 1024) -> torch.Tensor:
    """Log-probabilities (nats) of a text's tokens but the first, under the causal mask."""
    ids = torch.tensor([(start_ids(lab.tokenizer) + text_ids(lab.tokenizer, text))[:most]]).to(lab.model.device)
    scores = logits(lab.model, ids, causal(torch.ones_like(ids)))[0, :-1].float().log_softmax(dim=-1)
    return scores.gather(1, ids[0, 1:, None])[:, 0].cpu()


def _row(adapter: str | None):
    def measure(setting: Setting) -> dict[str, Figure]:
        lab, figures = setting.lab(adapter), {}
        texts = {
            "perplexity": setting.data.passages(setting.some(100, 4)),
            "perplexity of stories": setting.data.stories(setting.some(100, 4)),
        }
        for column, some in texts.items():
            found = [log_probs(lab, text) for text in tqdm(some, desc=column, leave=False)]
            figures[column] = bootstrap(found, perplexity, draws=300)
        return figures

    return measure


EXPERIMENT = Experiment(
    id="appF",
    title="Perplexity of Wikitext, from left to right",
    rows={"base": _row(None), "LLM2Vec": _row("llm2vec"), "MAGNET": _row("magnet")},
    claims=[
        Claim(
            "MAGNET costs a plain writer a little: perplexity 6.4 becomes 7.6, a fifth more at most",
            lambda rows: at_most(rows, "MAGNET", 1.2, "base", "perplexity"),
        )
    ],
)
