"""Infilling with the context's keys and values kept, against running the whole text anew for every token."""

import torch

from magnet_lab import decoder
from magnet_lab.bench._report import load, parser, publish, side_by_side
from magnet_lab.blanks import Blank, Template
from magnet_lab.spans import Sampling, decode


def blank_in_the_middle(lab, context: int, span: int) -> Template:
    """Random tokens with one blank in their middle: what they say makes no difference to the time."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(100, len(lab.tokenizer), (context,), generator=generator).tolist()
    return Template(("", ""), (Blank(span, span, False, False, False, False),), tuple(ids), (context // 2,))


def written_with_the_cache(lab, plan: Template) -> list[int]:
    """The tokens that the library writes into the blank."""
    for rows in decode(lab.model, lab.tokenizer, plan, [0], 1, Sampling()):
        written = rows.tokens[0]
    return written


@torch.no_grad()
def written_anew(lab, plan: Template, span: int) -> list[int]:
    """As many tokens, each by a forward pass over everything there is so far."""
    left, right = plan.ids[: plan.anchors[0] + 1], plan.ids[plan.anchors[0] + 1 :]
    written: list[int] = []
    for _ in range(span):
        ids = torch.tensor([[*left, *written, *right]], device=lab.device)
        span_ids = torch.zeros_like(ids)
        span_ids[:, len(left) : len(left) + len(written)] = 1
        last = torch.tensor([len(left) + len(written) - 1], device=lab.device)
        written.append(int(decoder.logits(lab.model, ids, span_ids, at=last).argmax()))
    return written


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--context", type=int, default=480, help="tokens around the blank")
    options.add_argument("--span", type=int, default=32, help="tokens written into it")
    options = options.parse_args()
    lab = load(options)
    plan = blank_in_the_middle(lab, options.context, options.span)
    seconds = side_by_side(
        options.repeats,
        cached=lambda: written_with_the_cache(lab, plan),
        anew=lambda: written_anew(lab, plan, options.span),
    )
    publish(
        "infill",
        options,
        {
            "context": options.context,
            "span": options.span,
            "seconds cached": seconds["cached"],
            "seconds anew": seconds["anew"],
            "times faster": seconds["anew"] / seconds["cached"],
        },
    )


if __name__ == "__main__":
    main()
