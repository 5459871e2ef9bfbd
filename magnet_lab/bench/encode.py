"""Encoding many texts of mixed length, against a plain loop over padded batches of 32 in the order they come in."""

import torch

from magnet_lab import attention, decoder
from magnet_lab.bench._report import load, parser, publish, side_by_side


def mixed_texts(count: int) -> list[str]:
    """Texts of 3 to 120 words, most of them short, as sentences in a corpus are."""
    words = ["the", "small", "dog", "house", "and", "went", "over", "river", "slowly", "who", "never", "garden"]
    generator = torch.Generator().manual_seed(0)
    lengths = torch.empty(count).log_normal_(2.8, 0.8, generator=generator).clamp(3, 120).long().tolist()
    return [" ".join(words[i] for i in torch.randint(len(words), (n,), generator=generator)) for n in lengths]


@torch.no_grad()
def plain_loop(lab, texts: list[str], instruction: str) -> torch.Tensor:
    """What one would write first: batches in order, each padded to its longest text."""
    tokenizer, vectors = lab.tokenizer, []
    for start in range(0, len(texts), 32):
        rows = [
            tokenizer(instruction + text)["input_ids"] + [tokenizer.eos_token_id] for text in texts[start : start + 32]
        ]
        length = max(map(len, rows))
        ids = torch.tensor([row + [0] * (length - len(row)) for row in rows], device=lab.device)
        lengths = torch.tensor([len(row) for row in rows], device=lab.device)
        tokens = torch.arange(length, device=lab.device)[None] < lengths[:, None]
        states = decoder.hidden_states(lab.model, ids, attention.bidirectional(tokens))
        vectors.append(states[torch.arange(len(rows)), lengths - 1])
    return torch.cat(vectors)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--texts", type=int, default=1000)
    options = options.parse_args()
    lab = load(options)
    texts = mixed_texts(options.texts)
    opening = "Given the sentence, find its representation: "
    difference = (plain_loop(lab, texts[:64], opening).float().cpu() - lab.encode(texts[:64])).abs().max()
    seconds = side_by_side(
        options.repeats, encode=lambda: lab.encode(texts), plain=lambda: plain_loop(lab, texts, opening)
    )
    publish(
        "encode",
        options,
        {
            "texts": options.texts,
            "texts a second, plain": options.texts / seconds["plain"],
            "texts a second, encode": options.texts / seconds["encode"],
            "times faster": seconds["plain"] / seconds["encode"],
            "largest difference": float(difference),
        },
    )


if __name__ == "__main__":
    main()
