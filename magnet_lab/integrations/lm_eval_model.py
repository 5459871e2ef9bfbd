"""lm-eval, the harness for Table 7, on the model in memory:

    lm_eval.simple_evaluate(model=language_model(lab), tasks=["mmlu"], num_fewshot=5)

lm-eval scores a text by the model's ordinary forward pass, which is causal. `Magnet` gives its masks to single calls
and leaves no mode behind, so the same model can encode before, after and meanwhile.
"""

import copy

from magnet_lab.integrations import needs
from magnet_lab.model import Magnet

with needs("lm_eval"):
    from lm_eval.models.huggingface import HFLM


def language_model(lab: Magnet, *, batch_size: int = 8) -> HFLM:
    """A `Magnet`, with its adapter, as lm-eval takes it; the weights are shared.

    Args:
        batch_size: texts in one forward pass. It is given here, because `simple_evaluate` does not look at its own for
            a model in memory.

    Raises:
        ValueError: for a model that its own config makes bidirectional.
    """
    if getattr(lab.model.config, "is_causal", True) is False:
        raise ValueError(
            f"{lab.name} has is_causal=false in its config, so it is an encoder and its scores would mean nothing; "
            "give the model that it was made from"
        )
    # A copy, since HFLM gives its tokenizer a padding token. And a benchmark's texts are not a user's: in a chat
    # template, <|im_start|> is the control token.
    tokenizer = copy.deepcopy(lab.tokenizer)
    tokenizer.split_special_tokens = False
    return HFLM(
        pretrained=lab.model,
        tokenizer=tokenizer,
        batch_size=batch_size,
        softmax_dtype="float32",  # log-probabilities in bfloat16 have three digits: too few to tell answers apart
    )
