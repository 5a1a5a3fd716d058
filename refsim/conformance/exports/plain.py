"""The words of operators and the roundings of formats on plain float64 arrays, with math and NumPy alone.

An exported reference carries along those that it uses (`standalone.py`), so that it runs where refsim is not installed.
What each word means, and what else it declares, is said in `oracle.vocabulary` and `oracle.formats`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class InputError(ValueError):
    """Inputs that belong to no result."""


class Format(NamedTuple):
    """A number format: what rounding to it needs to know."""

    name: str
    mantissa_bits: int
    min_normal: float
    max: float
    lowest: float
    is_integer: bool
    has_nan: bool
    has_infinity: bool


def _binary(name: str, mantissa_bits: int, least_exponent: int, largest: float, has_infinity: bool = True) -> Format:
    return Format(name, mantissa_bits, 2.0**least_exponent, largest, -largest, False, True, has_infinity)


FORMATS = {
    "float64": _binary("float64", 52, -1022, (2 - 2.0**-52) * 2.0**1023),
    "float32": _binary("float32", 23, -126, (2 - 2.0**-23) * 2.0**127),
    "float16": _binary("float16", 10, -14, 65504.0),
    "bfloat16": _binary("bfloat16", 7, -126, (2 - 2.0**-7) * 2.0**127),
    "float8_e4m3fn": _binary("float8_e4m3fn", 3, -6, 448.0, has_infinity=False),
    "float8_e5m2": _binary("float8_e5m2", 2, -14, 57344.0),
    "int8": Format("int8", 7, 1.0, 127.0, -128.0, True, False, False),
}


def format_of(name: str) -> Format:
    return FORMATS[name]


def round_to(x: Any, name: str, rounding: str = "nearest_even", saturate: bool | None = None) -> Any:
    """Round float64 numbers once to a format, to nearest even or toward zero; the result stays float64."""
    target = FORMATS[name]
    x = np.asarray(x, np.float64)
    if target.is_integer:
        whole = np.trunc(x) if rounding == "toward_zero" else np.rint(x)
        return np.clip(whole, target.lowest, target.max) + 0.0
    if name != "float64":
        finite = np.where(np.isfinite(x), x, 0.0)
        exponent = np.frexp(np.maximum(np.abs(finite), target.min_normal))[1] - 1
        step = np.ldexp(1.0, exponent - target.mantissa_bits)
        x = np.where(np.isfinite(x), np.copysign(np.rint(finite / step) * step, finite), x)
    if saturate or (saturate is None and not target.has_infinity):
        return np.clip(x, target.lowest, target.max)
    return np.where(np.abs(x) > target.max, np.copysign(np.inf, x), x)


def rounded(x: Any, name: str) -> Any:
    """Numbers rounded to a format; indices and counts as they are."""
    return x if np.asarray(x).dtype.kind in "iu" else round_to(x, name)


def round_to_format(x: Any, name: str) -> Any:
    """A rounding that the definition demands."""
    return round_to(x, name)


def may_round(x: Any, name: str | None = None) -> Any:
    """A kernel may round here; the definition does not."""
    return x


def pivot(x: Any) -> Any:
    """A shift that cancels from the result."""
    return x


def rescaled(x: Any) -> Any:
    """Weights that a kernel may rescale on the way."""
    return x


def hull(x: Any, low: Any, high: Any, terms: int) -> Any:
    """A weighted mean, which lies between low and high."""
    return x


def chain(first: Any, *factors: Any) -> Any:
    """A product, in any order."""
    return math.prod(factors, start=first)


def scaled(product: Any, scale: float) -> Any:
    """A sum of products times a number that a kernel may fold into an operand."""
    return product * scale


def accumulate(total: Any, addend: Any) -> Any:
    """A sum of products plus one more term."""
    return total + addend


def scaled_matmul(a: Any, a_scales: tuple[Any, ...], b: Any, b_scales: tuple[Any, ...]) -> Any:
    """A product of matrices, each with its scales."""
    return math.prod(a_scales, start=a) @ math.prod(b_scales, start=b)


def either(first: Any, *others: Any) -> Any:
    """Formulas that are equal in exact arithmetic."""
    return first


def in_chunks(results: tuple[Any, ...], form: Callable[[int], tuple[Any, ...]], steps: int) -> tuple[Any, ...]:
    """A recurrence, step by step."""
    return results


def moments(x: Any, axis: int | tuple[int, ...] = -1) -> tuple[Any, Any]:
    """Mean and variance along an axis, which stays."""
    mean = np.mean(x, axis=axis, keepdims=True)
    return mean, np.mean(np.square(x - mean), axis=axis, keepdims=True)


def rsqrt(x: Any) -> Any:
    return 1.0 / np.sqrt(x)


def sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def softplus(x: Any) -> Any:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def exact_value(x: Any, *, unflushed: bool = False) -> Any:
    return np.asarray(x, np.float64)


def chosen(scores: Any, count: int, *, ordered: bool = True, lowest_first: bool = True) -> Any:
    """Indices of the largest scores of each row, in falling order; of equal ones the lower index goes first."""
    return np.argsort(-np.asarray(scores, np.float64), axis=-1, kind="stable")[..., :count]


def located(cdf: Any, at: Any, weight: Any = None) -> Any:
    """Index of the first element of each row above a number; else the last one whose weight is above 0."""
    count = np.sum(cdf <= at[..., np.newaxis], axis=-1)
    if weight is None:
        return np.minimum(count, cdf.shape[-1] - 1)
    return np.minimum(count, np.max(np.where(weight > 0, np.arange(weight.shape[-1]), 0), axis=-1))


def stepped(x: Any, step: Callable[[Any], Any], free: Any = None) -> Any:
    """A function with steps."""
    return step(np.asarray(x, np.float64))


def coded(x: Any, name: str, rounding: str = "nearest_even", free: Any = None) -> Any:
    """Numbers of a format, saturated; NaN is 0 where the format has none."""
    known = x if FORMATS[name].has_nan else np.where(np.isnan(x), 0.0, x)
    return round_to(known, name, rounding, saturate=True)


def numbers(x: Any) -> Any:
    """A tensor of PyTorch, or an array, of numbers of any format, as float64."""
    if hasattr(x, "detach"):
        return x.detach().cpu().double().numpy()
    return x.astype(np.float64)


def integers(x: Any) -> Any:
    """A tensor of PyTorch, or an array, of indices or counts, as an array."""
    return x.detach().cpu().numpy() if hasattr(x, "detach") else x


def like(given: Any, x: Any, name: str) -> Any:
    """A result: a tensor of a dtype beside the given one, or, where arrays were given, an array of its numbers."""
    if not hasattr(given, "detach"):
        return np.asarray(x)
    import torch

    return torch.from_numpy(np.array(x, order="C")).to(getattr(torch, name)).to(given.device)
