"""Relations of the matrix products: signs and powers of two pass through, rows do not meet."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.formats import format_of
from oracle.relations.relation import Run, difference, relation
from oracle.signature import Array

PRODUCTS = (
    "matmul",
    "batched_matmul",
    "grouped_matmul",
    "matmul_a8w8",
    "matmul_a8w8_block_scaled",
    "matmul_a4w4_mxfp4",
    "matmul_a4w4_nvfp4",
    "matmul_w4a16",
    "matmul_mx",
    "matmul_a8w8_preshuffled",
)


def _times(array: Array, factor: float) -> Array:
    """An array times a power of two or -1, in its own dtype; packed e2m1 codes times -1."""
    if array.dtype == np.uint8:
        return array ^ np.uint8(0x88)
    return (array.astype(np.float64) * factor).astype(array.dtype)


def _copies(inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs row-major, so that two runs that are compared find them alike in memory; int8 without -128."""
    copies = {name: None if array is None else np.ascontiguousarray(array) for name, array in inputs.items()}
    return {
        name: np.maximum(array, -127) if array is not None and array.dtype == np.int8 else array
        for name, array in copies.items()
    }


def _products_are_normal(inputs: dict[str, Any]) -> bool:
    """Whether a product of two elements with their scales cannot lie below the normal range, unless it is 0."""
    least, wide = 1.0, False
    for name in ("a", "b", "a_scale", "b_scale"):
        array = inputs.get(name)
        if array is None or array.dtype.kind in "iu":  # whole numbers, or packed codes from 0.5 on
            continue
        wide |= array.dtype == np.float64
        size = np.abs(array.astype(np.float64))
        least *= float(size[size > 0].min(initial=1.0))
    return least >= format_of("float64" if wide else "float32").min_normal


@relation(*PRODUCTS)
def negation_of_a_factor(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """With a and what is added negated, the result is the negative one bit for bit."""
    inputs = _copies(inputs)
    (straight,) = run(inputs, params)
    negated = {
        name: _times(array, -1.0) for name, array in inputs.items() if name in ("a", "bias") and array is not None
    }
    (turned,) = run({**inputs, **negated}, params)
    return difference(-turned, straight, "with a and the bias negated, and the result negated")


@relation(*PRODUCTS)
def doubling_of_a_factor(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """With a (or its scales) and what is added doubled, the result doubles bit for bit, within the normal range.

    Products below that range lose digits that twice the product has.
    """
    inputs = _copies(inputs)
    if not _products_are_normal(inputs):
        return None
    (straight,) = run(inputs, params)
    doubled = {
        name: _times(array, 2.0)
        for name, array in inputs.items()
        if name in ("a_scale" if "a_scale" in inputs else "a", "bias") and array is not None
    }
    (double,) = run({**inputs, **doubled}, params)
    number_format = format_of(straight.dtype)
    size = np.abs(straight.astype(np.float64))
    inside = (size >= number_format.min_normal) & (size <= number_format.max / 4)
    return difference(np.where(inside, double, 0), np.where(inside, straight * straight.dtype.type(2), 0), "a doubled")


@relation(*PRODUCTS, "gemm_epilogue")
def other_rows_do_not_matter(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A row of the result is the same bits when the first row of a, and only that, is negated; in a batch, a matrix."""
    inputs = _copies(inputs)
    a = inputs["a"]
    if a.size == 0:
        return None
    (straight,) = run(inputs, params)
    other = a.copy()
    first = (slice(None), 0) if params.get("transpose_a") else (0,)
    other[first] = _times(other[first], -1.0)
    (changed,) = run({**inputs, "a": other}, params)
    return difference(changed[1:], straight[1:], "with another first row")
