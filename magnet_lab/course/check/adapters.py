"""What is trained: a low-rank addition to a frozen matrix."""

from collections import OrderedDict

import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn

from magnet_lab.course.check.examine import Mistake, compare, examine
from magnet_lab.course.check.verdict import Verdict


def lora(function) -> Verdict:
    """A linear layer with LoRA (Hu et al., 2021): `lora(x, weight, a, b, alpha)`.

    y = W x + α / r · B A x. The matrix W is frozen, A and B are trained; B starts at 0, so at first nothing changes.

    Args of your function:
        x: `(n, in)`, one vector a row.
        weight: W, `(out, in)`, as in `nn.Linear`: x @ weight.T.
        a: A, `(r, in)`.
        b: B, `(out, r)`.
        alpha: α.

    It returns `(n, out)`. Appendix A has r = 16 and α = 32.
    """
    generator = torch.Generator().manual_seed(0)

    def tensor(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).round(decimals=1)

    cases = [
        (tensor(1, 3), tensor(2, 3), tensor(1, 3), torch.zeros(2, 1), 2.0),
        (tensor(1, 2), tensor(3, 2), tensor(1, 2), tensor(3, 1), 2.0),
        (tensor(4, 3), tensor(5, 3), tensor(2, 3), tensor(5, 2), 8.0),
        (tensor(2, 6), tensor(4, 6), tensor(4, 6), tensor(4, 4), 3.0),
    ]

    def scaled(factor):
        return lambda x, weight, a, b, alpha: x @ weight.T + factor(alpha, len(a)) * (x @ a.T @ b.T)

    judge = compare(
        cases,
        _with_peft,
        mistakes=[
            Mistake(
                "the factor α / r is missing: with it the addition keeps its size when the rank changes",
                scaled(lambda alpha, r: 1),
            ),
            Mistake(
                "the addition is multiplied by α alone: it is α / r, r the number of rows of A",
                scaled(lambda alpha, r: alpha),
            ),
            Mistake("the factor is upside down: it is α / r, not r / α", scaled(lambda alpha, r: r / alpha)),
            Mistake(
                "the addition is divided by the root of r (rsLoRA): here the factor is α / r",
                scaled(lambda alpha, r: alpha / r**0.5),
            ),
            Mistake("the addition is multiplied by r as well: the factor is α / r", scaled(lambda alpha, r: alpha * r)),
            Mistake(
                "the frozen matrix is missing: LoRA is added to W x, it does not take its place",
                lambda x, weight, a, b, alpha: alpha / len(a) * (x @ a.T @ b.T),
            ),
            Mistake(
                "the addition is missing: this is the frozen layer alone",
                lambda x, weight, a, b, alpha: x @ weight.T,
            ),
            Mistake(
                "the factor α / r is applied to the frozen layer as well: only the addition is scaled",
                lambda x, weight, a, b, alpha: alpha / len(a) * (x @ weight.T + x @ a.T @ b.T),
            ),
            Mistake(
                "r is taken from the wrong dimension: it is the number of rows of A, which are as many as columns of B",
                lambda x, weight, a, b, alpha: x @ weight.T + alpha / a.shape[1] * (x @ a.T @ b.T),
            ),
            Mistake(
                "the addition is subtracted",
                lambda x, weight, a, b, alpha: x @ weight.T - alpha / len(a) * (x @ a.T @ b.T),
            ),
            Mistake(
                "the new weight matrix is returned: the layer's output for x is wanted",
                lambda x, weight, a, b, alpha: weight + alpha / len(a) * b @ a,
            ),
        ],
    )
    praise = "Ranks 1, 2 and 4, and B = 0, which must change nothing: the same numbers as PEFT's."
    return examine(function, "lora(x, weight, a, b, alpha)", judge, praise)


@torch.no_grad()
def _with_peft(x: Tensor, weight: Tensor, a: Tensor, b: Tensor, alpha: float) -> Tensor:
    frozen = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    frozen.weight.copy_(weight)
    config = LoraConfig(r=len(a), lora_alpha=alpha, target_modules=["frozen"])
    model = get_peft_model(nn.Sequential(OrderedDict(frozen=frozen)), config)
    layer = model.get_submodule("base_model.model.frozen")
    layer.lora_A["default"].weight.copy_(a)
    layer.lora_B["default"].weight.copy_(b)
    return model(x)
