"""What MAGNET is compared with, behind the calls of `Magnet`: a baseline is made from a lab and shares its weights.

    BASELINES["five-shot"](lab).infill("John was at the gym. [blank] He couldn't get the barbell off his chest.").text

Each has those of the verbs `infill`, `encode`, `encode_words` and `generate` that it can do, and a `name`, the one that
it has in `BASELINES` and in tables.
"""

from collections.abc import Callable
from functools import partial

from magnet_lab.baselines.embedding import Echo, LLM2Vec
from magnet_lab.baselines.mask_filling import MaskFilling
from magnet_lab.baselines.prompting import DEFAULT_PROMPT, PROMPTS, FiveShot, ZeroShot
from magnet_lab.baselines.unidirectional import Unidirectional

BASELINES: dict[str, Callable] = {
    "unidirectional": Unidirectional,
    "zero-shot": ZeroShot,
    **{f"zero-shot, {prompt}": partial(ZeroShot, prompt=prompt) for prompt in PROMPTS if prompt != DEFAULT_PROMPT},
    "five-shot": FiveShot,
    "mask filling": MaskFilling,
    "LLM2Vec": LLM2Vec,
    "LLM2Vec [MNTP]": partial(LLM2Vec, adapter="mntp"),
    "Echo": Echo,
}

__all__ = ["BASELINES", "Echo", "FiveShot", "LLM2Vec", "MaskFilling", "Unidirectional", "ZeroShot"]
