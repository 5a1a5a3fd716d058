"""Rules by which test suites and graders accept a result, to be tried beside the judge on the same answers.

Each compares with the definition's value, rounded to the output's format: a better reference than most suites have. All
are read kindly: a NaN is equal to a NaN, an infinity to itself, and shape and dtype are compared first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracle.formats import Format
from oracle.signature import Array

# torch.testing.assert_close: (rtol, atol) by dtype; all other dtypes, integers and float8 among them, are exact.
TORCH_DEFAULTS = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
}
PERCENT = 1e-2
MATCHED = 0.95
COSINE = 0.99
NMSE = 5e-4

Accepts = Callable[[Array, Array, Format], bool]


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes
    ----------
    name, statement : str
        Its own name, and in one sentence what it accepts and who uses it.
    accepts : function
        ``accepts(got, want, format)`` for two float64 arrays of one shape.
    """

    name: str
    statement: str
    accepts: Accepts


RULES: dict[str, Rule] = {}
"""Every rule by name, in the order in which they are shown."""


def _rule(name: str) -> Callable[[Accepts], Accepts]:
    def register(accepts: Accepts) -> Accepts:
        RULES[name] = Rule(name, " ".join((accepts.__doc__ or "").split()), accepts)
        return accepts

    return register


def _error(got: Array, want: Array) -> Array:
    """|got - want|, 0 where both are the same infinity or NaN."""
    with np.errstate(all="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        return np.where(same, 0.0, np.abs(got - want))


def _close(got: Array, want: Array, rtol: float, atol: float) -> bool:
    with np.errstate(all="ignore"):
        limit = atol + rtol * np.where(np.isfinite(want), np.abs(want), 0.0)
        return bool((_error(got, want) <= limit).all())


def _finite(got: Array, want: Array) -> tuple[Array, Array] | None:
    """Both where they are finite; None if they are not so in the same places."""
    kept = np.isfinite(want)
    if not _close(got[~kept], want[~kept], 0.0, 0.0) or not np.isfinite(got[kept]).all():
        return None
    largest = max(float(np.abs(want[kept]).max(initial=0.0)), float(np.abs(got[kept]).max(initial=0.0))) or 1.0
    return got[kept] / largest, want[kept] / largest  # so that no square leaves the range


@_rule("allclose")
def _allclose(got: Array, want: Array, number_format: Format) -> bool:
    """`allclose` with rtol = atol = 1e-2, for every operator and dtype: BackendBench, KernelBench's 16-bit problems."""
    return _close(got, want, PERCENT, PERCENT)


@_rule("assert_close")
def _assert_close(got: Array, want: Array, number_format: Format) -> bool:
    """`torch.testing.assert_close` with PyTorch's own tolerances by dtype; integers and codes must be equal."""
    return _close(got, want, *TORCH_DEFAULTS.get(number_format.name, (0.0, 0.0)))


@_rule("95 %")
def _matched(got: Array, want: Array, number_format: Format) -> bool:
    """95 % of the elements are off by at most 1e-2, or by at most 1 % of the value: flashinfer-bench."""
    with np.errstate(all="ignore"):
        error = _error(got, want)
        near = (error <= PERCENT) | (error <= PERCENT * np.where(np.isfinite(want), np.abs(want), 0.0))
    return not near.size or float(near.mean()) >= MATCHED


@_rule("cosine")
def _cosine(got: Array, want: Array, number_format: Format) -> bool:
    """The cosine of the angle between the two outputs, each as one vector, is over 0.99."""
    finite = _finite(got, want)
    if finite is None:
        return False
    x, y = finite
    norms = float(np.sqrt((x * x).sum() * (y * y).sum()))
    return float((x * y).sum()) > COSINE * norms if norms else not (x.any() or y.any())


@_rule("relative error")
def _relative(got: Array, want: Array, number_format: Format) -> bool:
    """The largest error is at most 1 % of the largest value: scripts beside many kernels."""
    finite = _finite(got, want)
    if finite is None:
        return False
    return float(_error(*finite).max(initial=0.0)) <= PERCENT * float(np.abs(finite[1]).max(initial=0.0))


@_rule("NMSE")
def _nmse(got: Array, want: Array, number_format: Format) -> bool:
    """The squared error is at most 5e-4 of the squared value, both summed: llama.cpp for products and attention."""
    finite = _finite(got, want)
    if finite is None:
        return False
    x, y = finite
    return float(((x - y) ** 2).sum()) <= NMSE * float((y * y).sum())
