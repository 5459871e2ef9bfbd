"""Is an answer of the right form, and is it the right answer?"""

import math
from numbers import Number

import torch
from torch import Tensor

from magnet_lab.course.check.calling import a

TOLERANCE = 1e-4  # relative and absolute: float32 sums in another order differ by less


def misformed(expected, got, name: str = "the answer") -> str | None:
    """What is wrong with the form of an answer, in one sentence; None if it can be compared with the expected one."""
    if isinstance(expected, tuple):
        if not isinstance(got, tuple | list) or len(got) != len(expected):
            found = f"{len(got)} of them" if isinstance(got, tuple | list) else a(got)
            return f"{name} must be {len(expected)} things, as in `return one, other`; it is {found}"
        parts = enumerate(zip(expected, got, strict=True), start=1)
        return next((said for n, (e, g) in parts if (said := misformed(e, g, f"thing {n} of {name}"))), None)
    if isinstance(expected, list):
        if isinstance(got, Tensor) and got.ndim == 1:
            return None
        return None if isinstance(got, list | tuple) else f"{name} must be a list; it is {a(got)}"
    if isinstance(expected, Tensor):
        return _misformed_tensor(expected, got, name)
    if isinstance(expected, Number):
        if isinstance(got, Tensor) and got.numel() != 1:
            return f"{name} must be one number; it is a tensor of shape {tuple(got.shape)}: take its mean, or its sum"
        if not isinstance(got, Number | Tensor) and not hasattr(got, "item"):
            return f"{name} must be a number; it is {a(got)}"
        if not math.isfinite(number := got.item() if hasattr(got, "item") else got):
            return f"{name} is {number}; {_NAN}"
    return None


def same(expected, got) -> bool:
    """Whether two answers are equal, floating-point numbers nearly so; also in type and shape."""
    if isinstance(expected, Tensor):
        if not isinstance(got, Tensor) or expected.shape != got.shape:
            return False
        if expected.dtype.is_floating_point and got.dtype.is_floating_point:
            got, expected = got.detach().double(), expected.detach().double()
            return torch.allclose(expected, got, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
        return expected.dtype == got.dtype and torch.equal(expected, got)
    if isinstance(expected, list | tuple):
        if isinstance(got, Tensor):
            got = got.tolist()
        if not isinstance(got, list | tuple) or len(expected) != len(got):
            return False
        return all(same(one, other) for one, other in zip(expected, got, strict=True))
    if isinstance(expected, Number) and (isinstance(got, Number) or hasattr(got, "item")):
        try:
            got = float(got.item() if hasattr(got, "item") else got)
        except (ValueError, RuntimeError, TypeError):
            return False
        both_nan = math.isnan(expected) and math.isnan(got)
        return both_nan or math.isclose(expected, got, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(expected) is type(got) and expected == got


def first_difference(expected: Tensor, got: Tensor) -> tuple[int, ...]:
    """The index of the first place where two tensors of one shape differ."""
    if expected.dtype.is_floating_point:
        expected, got = expected.detach().double(), got.detach().double()
        different = ~torch.isclose(expected, got, rtol=TOLERANCE, atol=TOLERANCE)
    else:
        different = expected != got
    return tuple(different.nonzero()[0].tolist())


_NAN = "somewhere 0 is divided by 0, log is taken of 0, or softmax of a row where nothing is allowed"
_KINDS = {torch.bool: "booleans", torch.long: "integers (torch.long)"}


def _misformed_tensor(expected: Tensor, got, name: str) -> str | None:
    wanted = _KINDS.get(expected.dtype, "floating-point numbers")
    if not isinstance(got, Tensor):
        return f"{name} must be a tensor of {wanted}, of shape {tuple(expected.shape)}; it is {a(got)}"
    if got.shape != expected.shape:
        return f"{name} has shape {tuple(got.shape)}; {tuple(expected.shape)} is wanted"
    if expected.dtype.is_floating_point != got.dtype.is_floating_point or (
        not expected.dtype.is_floating_point and expected.dtype != got.dtype
    ):
        return f"{name} holds {got.dtype}; {wanted} are wanted"
    if got.dtype.is_floating_point and not got.isfinite().all() and expected.isfinite().all():
        bad = tuple((~got.isfinite()).nonzero()[0].tolist())
        return f"{name} is {float(got[bad])} at {list(bad)}; {_NAN}"
    return None
