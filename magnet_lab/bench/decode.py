"""Tokens written into a blank, against transformers' `generate` with the same context, and what bounds both of them.

One token at a time, every weight is read from memory once for each token, so no loop can be faster than the bytes
read for a token divided by the memory's bandwidth. That bound is measured here as well, on the same machine in the
same run: reading as many bytes, in large matrices that one vector is multiplied with. A profile adds what share of the
time goes into matrix products, which do nothing but read weights, and into making room in the cache.
"""

import torch

from magnet_lab.bench._report import load, parser, publish, side_by_side
from magnet_lab.bench.infill import blank_in_the_middle, written_with_the_cache


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--context", type=int, default=480, help="tokens before what is written")
    options.add_argument("--new", type=int, default=33, help="tokens written; the first comes with the context")
    options = options.parse_args()
    lab = load(options)
    context = torch.tensor([blank_in_the_middle(lab, options.context, 1).ids], device=lab.device)

    def generate(new: int):
        return lab.model.generate(
            context, attention_mask=torch.ones_like(context), max_new_tokens=new, min_new_tokens=new, do_sample=False
        )

    config = lab.model.config
    weights = sum(p.numel() * p.element_size() for p in {id(p): p for p in lab.model.parameters()}.values())
    if not config.tie_word_embeddings:  # of the embedding's table only one row is read
        weights -= lab.model.get_input_embeddings().weight.nbytes
    head = config.hidden_size // config.num_attention_heads
    cached = 2 * config.num_hidden_layers * config.num_key_value_heads * head * options.context * lab.dtype.itemsize
    rows = (64 << 20) // (1024 * lab.dtype.itemsize)  # 64 MB a matrix: more than a processor's cache holds
    matrices = torch.randn(max(1, weights // (64 << 20)), rows, 1024).to(context.device, lab.dtype)
    vector = torch.randn(1, 1024).to(context.device, lab.dtype)

    def read():
        for matrix in matrices:
            torch.nn.functional.linear(vector, matrix)

    first, whole = (blank_in_the_middle(lab, options.context, span) for span in (1, options.new))
    seconds = side_by_side(
        options.repeats,
        context=lambda: written_with_the_cache(lab, first),
        infill=lambda: written_with_the_cache(lab, whole),
        generate_first=lambda: generate(1),
        generate=lambda: generate(options.new),
        read=read,
    )
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        written_with_the_cache(lab, whole)
    spent = {event.key: event.self_cpu_time_total for event in profile.key_averages()}

    tokens = options.new - 1
    ours = (seconds["infill"] - seconds["context"]) / tokens
    theirs = (seconds["generate"] - seconds["generate_first"]) / tokens
    bandwidth = matrices.nbytes / seconds["read"]
    bound = (weights + cached) / bandwidth
    publish(
        "decode",
        options,
        {
            "ms a token, generate": 1e3 * theirs,
            "ms a token, infill": 1e3 * ours,
            "times faster": theirs / ours,
            "MB read a token": (weights + cached) / 1e6,
            "memory bandwidth, GB/s": bandwidth / 1e9,
            "ms a token at least": 1e3 * bound,
            "share of the bound": bound / ours,
            "time in matrix products": sum(spent.get(f"aten::{name}", 0) for name in ("mm", "addmm"))
            / sum(spent.values()),
            "time in joining the cache": spent.get("aten::cat", 0) / sum(spent.values()),
        },
    )


if __name__ == "__main__":
    main()
