"""Arithmetic on error fields, where None stands for 0 everywhere, and the rounding to the compute format."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oracle.formats import round_to
from oracle.numerics import Numerics

Array: TypeAlias = NDArray[np.float64]
Errors: TypeAlias = "Array | None"
Pending: TypeAlias = "bool | NDArray[np.bool_]"


ROOT_THIRD = 3.0**-0.5
"""Standard deviation of an error spread evenly over ±1."""

SMALLEST = math.ulp(0.0)
"""The smallest positive float64."""


def round_exactly(value: Array, numerics: Numerics) -> Array:
    """fl(value) in the compute format, as float64."""
    if numerics.is_float64:
        return value
    quick = _QUICK.get(numerics.compute)
    if quick is not None:
        with np.errstate(all="ignore"):
            return value.astype(quick).astype(np.float64)
    return round_to(value, numerics.format)


_QUICK: dict[str, type[np.floating[Any]]] = {"float32": np.float32, "float16": np.float16}


def plus(a: Errors, b: Errors) -> Errors:
    """a + b, None = 0."""
    if a is None:
        return b
    return a if b is None else a + b


def plus_zero(errors: Errors) -> Any:
    """The errors, 0.0 for None."""
    return 0.0 if errors is None else errors


def root_sum(a: Errors, b: Errors) -> Errors:
    """sqrt(a² + b²), None = 0."""
    if a is None:
        return b
    if b is None:
        return a
    total = np.asarray(a * a + b * b)
    return np.sqrt(total, out=total)


def times(size: Array, errors: Errors) -> Errors:
    """size · errors, where 0 · infinity is 0 if the error is 0 and infinity if the size is.

    The product of two positive numbers stays positive: an error that underflows is still one.
    """
    if errors is None:
        return None
    product = size * errors
    if product.size and not product.min() > 0.0:
        if np.isnan(product.min()):
            product = np.where(np.isnan(product), np.where(errors == 0.0, 0.0, np.inf), product)
        vanished = (product == 0.0) & (size > 0.0) & (errors > 0.0)
        if vanished.any():
            product = np.where(vanished, SMALLEST, product)
    return product


def over(errors: Errors, size: Array) -> Errors:
    """errors / size, where 0 / 0 is 0 and a positive error stays one."""
    if errors is None:
        return None
    quotient = np.asarray(errors / size)
    if quotient.size and not quotient.min() > 0.0:
        quotient = np.where(errors == 0.0, 0.0, np.maximum(quotient, SMALLEST))
    return quotient


def ulp_share(size: Array) -> Array:
    """The power of two below a magnitude, over the magnitude: 2u times it is what an ulp is worth there."""
    significand = np.frexp(size)[0]
    return np.divide(0.5, significand, out=np.ones_like(significand), where=(significand > 0) & np.isfinite(size))


def full(errors: Errors, shape: tuple[int, ...]) -> Errors:
    """Errors in the shape of a result."""
    return errors if errors is None or errors.shape == shape else np.array(np.broadcast_to(errors, shape))
