"""Formats and their roundings, choices, and tensors as arrays, with NumPy alone.

An exported reference carries along those that it uses (`standalone.py`), so that it runs where refsim is not installed.
What each means is said in `oracle.formats` and `oracle.choices`.
"""

from __future__ import annotations

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


def format_of(name: str | Format) -> Format:
    return name if isinstance(name, Format) else FORMATS[name]


def round_to(x: Any, name: str | Format, rounding: str = "nearest_even", saturate: bool | None = None) -> Any:
    """Round float64 numbers once to a format, to nearest even or toward zero; the result stays float64."""
    target = format_of(name)
    x = np.asarray(x, np.float64)
    if target.is_integer:
        whole = np.trunc(x) if rounding == "toward_zero" else np.rint(x)
        return np.clip(whole, target.lowest, target.max) + 0.0
    if target.name != "float64":
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


def Selection(ids: Any, *what_else_is_right: Any) -> Any:
    """The definition's own choice."""
    return ids


def Interval(ids: Any, *what_else_is_right: Any) -> Any:
    """The definition's own choice."""
    return ids


def Span(ids: Any, *what_else_is_right: Any) -> Any:
    """The definition's own choice."""
    return ids


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
