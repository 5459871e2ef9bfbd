"""The checks, each named for what a student writes; each takes the student's function and returns a `Verdict`.

A check's docstring says how the function is called, with shapes and a small example: `help(check.mask)`.

    verdict.py examine.py     what a check answers, and how it comes to it
    calling.py                a function that may do anything, called safely
    comparing.py pictures.py  expected and got
    masks.py …                the checks, by topic
"""

import importlib

# Loaded on first use, so that the checks of one notebook do not wait for what those of another import.
_TOPICS = {
    "masks": ("mask", "span_ids", "reach"),
    "prefix": ("prefix_mask",),
    "corruption": ("sample_spans", "corrupt"),
    "labels": ("mntp_labels", "msg_labels", "mtp_labels", "prefix_labels"),
    "losses": ("info_nce", "total_loss", "perplexity"),
    "vectors": ("sentence_vector", "word_vectors", "alignment_uniformity"),
    "infilling": ("infill_step", "rank_candidates"),
    "repetition": ("rep_n", "rep_sen", "copy_rate"),
    "adapters": ("lora",),
    "ablation": ("paired_difference",),
    "unilm": ("pseudo_mask", "factorization_order"),
    "restorable": ("running_sum", "gating"),
}
_TOPIC = {name: topic for topic, names in _TOPICS.items() for name in names}

__all__ = ["Verdict", *_TOPIC]


def __getattr__(name: str):
    if name in _TOPIC:
        return getattr(importlib.import_module(f"magnet_lab.course.check.{_TOPIC[name]}"), name)
    if name == "Verdict":
        return importlib.import_module("magnet_lab.course.check.verdict").Verdict
    raise AttributeError(f"there is no check {name!r}; there are {', '.join(_TOPIC)}")


def __dir__() -> list[str]:
    return sorted(__all__)
