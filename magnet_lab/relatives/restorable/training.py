"""Three trainings, all with the optimizer of Table 6: masked words, restoration (Equation 6) and passage retrieval.

The first stands in for the pre-training of T5, which the paper starts from. The last is Section 4.4 in miniature.
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from magnet_lab import objectives, views
from magnet_lab.attention import bidirectional
from magnet_lab.data.rows import place
from magnet_lab.encoding import similarity
from magnet_lab.relatives.restorable.decoders import Decoder, labels
from magnet_lab.relatives.restorable.encoder import Encoder
from magnet_lab.relatives.restorable.metrics import rouge
from magnet_lab.relatives.restorable.search import beam_search
from magnet_lab.relatives.restorable.texts import Texts
from magnet_lab.training.loop import course
from magnet_lab.training.recipe import Optimizer

Encode = Callable[[list[int]], Tensor]  # places of some texts -> their vectors, (texts, d_repr)


def fit(
    modules: Iterable[nn.Module],
    loss: Callable[[list[int]], Tensor],
    *,
    count: int,
    steps: int,
    batch: int,
    lr: float,
    seed: int,
) -> None:
    """AdamW as in Table 6, its learning rate rising over a tenth of the steps and falling to 0 over the rest.

    Args:
        modules: what is trained, but for what they hold frozen.
        loss: places of a step's texts, out of `count`, to the loss on them.
        batch: texts a step.
        lr: the highest learning rate. The paper's is 1e-3; models this small, trained this shortly, want more.
        seed: of the order of the texts, each of which comes once before any comes twice.
    """
    settings = Optimizer(lr=lr, warmup=max(1, steps // 10), schedule="linear", weight_decay=1e-2)
    parameters = [parameter for parameter in nn.ModuleList(modules).parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, eps=settings.eps, weight_decay=settings.weight_decay, fused=True)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = settings.lr * course(step, steps, settings)
        optimizer.zero_grad()
        loss([place(step * batch + offset, count, seed) for offset in range(batch)]).backward()
        nn.utils.clip_grad_norm_(parameters, settings.clip)
        optimizer.step()


def pretrain(encoder: Encoder, texts: Texts, tokenizer: PreTrainedTokenizerFast, *, seed: int, **training) -> None:
    """Train an encoder to find the fifth of a text's tokens that is hidden from it."""
    generator = torch.Generator().manual_seed(seed)

    def loss(places: list[int]) -> Tensor:
        input_ids, tokens = texts.rows(places)
        hidden, selected = views.corrupt(input_ids, bidirectional(tokens), tokenizer=tokenizer, generator=generator)
        scores = encoder.words.scores(encoder.states(hidden, tokens)[selected])
        return objectives.mtp_loss(scores, input_ids[selected])

    fit([encoder], loss, count=len(texts), seed=seed, **training)


def train_to_restore(
    modules: Iterable[nn.Module], encode: Encode, decoder: Decoder, texts: Texts, end_id: int, **training
) -> None:
    """Train a decoder to write a text from the vector that `encode` makes of it, and with it `modules`."""

    def loss(places: list[int]) -> Tensor:
        input_ids, tokens = texts.rows(places)
        return objectives.msg_loss(decoder(encode(places), input_ids, tokens), labels(input_ids, tokens, end_id))

    fit([*modules, decoder], loss, count=len(texts), **training)


@torch.no_grad()
def restore(decoder: Decoder, vectors: Tensor, end_id: int, longest: int, *, beams: int = 4) -> list[list[int]]:
    """The text of each vector `(texts, d_repr)`, as ids, by beam search."""
    vectors = vectors.repeat_interleave(beams, dim=0)

    def next_log_probs(ids: Tensor) -> Tensor:
        return decoder(vectors, ids, torch.ones_like(ids, dtype=torch.bool))[:, -1].log_softmax(dim=-1)

    return beam_search(next_log_probs, len(vectors) // beams, end=end_id, longest=longest, beams=beams)


@torch.no_grad()
def measure(
    encode: Encode, decoder: Decoder, texts: Texts, tokenizer: PreTrainedTokenizerFast
) -> tuple[dict[str, float], list[str]]:
    """How well texts come back: PPL of the true text given its vector, and R-1, R-2, R-L of the restored one.

    Returns:
        The figures, under their names in Table 2, and the restored texts.
    """
    every = list(range(len(texts)))
    vectors, (input_ids, tokens) = encode(every), texts.rows(every)
    loss = objectives.msg_loss(decoder(vectors, input_ids, tokens), labels(input_ids, tokens, tokenizer.eos_token_id))
    ids = restore(decoder, vectors, tokenizer.eos_token_id, longest=tokens.shape[1] + 8)
    restored = tokenizer.batch_decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return {"PPL": float(loss.exp()), **rouge(texts.texts, restored)}, restored


def train_to_retrieve(questions: Encoder, passages: Encoder, asked: Texts, answers: Texts, **training) -> None:
    """Two encoders that bring a question and its passage together; the batch's other passages are the negatives.

    The paper compares vectors by their product and adds one hard negative a question; here it is their cosine, and
    the negatives are the batch's alone.
    """

    def loss(places: list[int]) -> Tensor:
        return objectives.info_nce(questions(*asked.rows(places)), passages(*answers.rows(places)))

    fit([questions, passages], loss, count=len(asked), **training)


@torch.no_grad()
def recall(questions: Encoder, passages: Encoder, asked: Texts, answers: Texts, at: Iterable[int]) -> dict[str, float]:
    """Percentage of questions whose passage is among the k nearest of all passages, for every k in `at`."""
    every = list(range(len(asked)))
    cosines = similarity(questions(*asked.rows(every)), passages(*answers.rows(every)))
    nearer = (cosines > cosines.diagonal()[:, None]).sum(dim=1)
    return {f"R@{k}": 100 * float((nearer < k).float().mean()) for k in at}
