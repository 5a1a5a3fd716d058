"""float16 functions (``cuda.fp16``): computed wider and rounded once to float16."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refsim.engine.intrinsics.conversion import Lane
from refsim.engine.intrinsics.elementary import fmax, fmin

Function = Callable[..., Lane]


def _rounded(function: Function) -> Function:
    """Computed in float64, rounded once to float16."""

    def half(*values: Lane) -> Lane:
        return function(*(np.asarray(value, np.float64) for value in values)).astype(np.float16)

    return half


def hfma(a: Lane, b: Lane, c: Lane) -> Lane:
    """``a * b + c`` rounded once.

    The product of two float16 is exact in float64. Where the sum is not, one term is more than 2**20 times the other
    and the larger one is c, a float16: too far from a rounding boundary for the second rounding to matter.
    """
    return (np.asarray(a, np.float64) * np.asarray(b, np.float64) + np.asarray(c, np.float64)).astype(np.float16)


def not_equal(a: Lane, b: Lane) -> Lane:
    """``hne``: False where an operand is NaN, unlike the operator ``!=``."""
    return (a < b) | (a > b)


EXACT: dict[str, Function] = {
    "habs": np.abs, "hneg": np.negative, "hceil": np.ceil, "hfloor": np.floor, "htrunc": np.trunc, "hrint": np.rint,
    "hmax": fmax, "hmin": fmin, "heq": np.equal, "hne": not_equal, "hge": np.greater_equal, "hgt": np.greater,
    "hle": np.less_equal, "hlt": np.less,
}  # fmt: skip

ROUNDED_ONCE: dict[str, Function] = {
    "hadd": np.add, "hsub": np.subtract, "hmul": np.multiply, "hdiv": np.divide, "hfma": hfma,
    "hsqrt": _rounded(np.sqrt), "hrcp": _rounded(lambda x: 1.0 / x),
}  # fmt: skip
"""Correctly rounded. NumPy adds, multiplies and divides in float32 and rounds; float32 has twice 11 bits and two more,
so that the second rounding never matters."""

NEARLY_ROUNDED: dict[str, Function] = {
    "hrsqrt": _rounded(lambda x: 1.0 / np.sqrt(x)), "hsin": _rounded(np.sin), "hcos": _rounded(np.cos),
    "htanh": _rounded(np.tanh), "hexp": _rounded(np.exp), "hexp2": _rounded(np.exp2),
    "hexp10": _rounded(lambda x: np.power(10.0, x)), "hlog": _rounded(np.log), "hlog2": _rounded(np.log2),
    "hlog10": _rounded(np.log10),
}  # fmt: skip
"""The float64 result, itself within an ulp or two of float64, rounded to float16."""

MATH_NAMES = {
    "ceil": "hceil", "floor": "hfloor", "trunc": "htrunc", "fabs": "habs", "abs": "habs", "rint": "hrint",
    "sqrt": "hsqrt", "sin": "hsin", "cos": "hcos", "tanh": "htanh", "exp": "hexp", "exp2": "hexp2", "log": "hlog",
    "log2": "hlog2", "log10": "hlog10", "/": "hdiv",
}  # fmt: skip
"""Functions of ``math`` on a float16, and what numba-cuda makes of them."""
