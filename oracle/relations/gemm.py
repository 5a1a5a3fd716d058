"""Relations of the matrix products: signs and powers of two pass through, rows do not meet."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.formats import format_of
from oracle.relations.relation import Run, difference, relation
from oracle.signature import Array

PLAIN = ("matmul", "batched_matmul", "grouped_matmul")


def _factor(array: Array, values: Array) -> Array:
    """New values in a factor's dtype."""
    return np.ascontiguousarray(values).astype(array.dtype)


def _copies(inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs row-major: two runs that are compared find them alike in memory."""
    return {name: None if array is None else np.ascontiguousarray(array) for name, array in inputs.items()}


@relation(*PLAIN)
def negation_of_a_factor(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """With a and what is added negated, the result is the negative one bit for bit."""
    inputs = _copies(inputs)
    (straight,) = run(inputs, params)
    negated = {
        name: _factor(array, -array) for name, array in inputs.items() if name in ("a", "bias") and array is not None
    }
    (turned,) = run({**inputs, **negated}, params)
    return difference(-turned, straight, "with a and the bias negated, and the result negated")


@relation(*PLAIN)
def doubling_of_a_factor(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """With a and what is added doubled, the result doubles bit for bit, where nothing leaves the normal range."""
    inputs = _copies(inputs)
    (straight,) = run(inputs, params)
    doubled = {
        name: _factor(array, array * array.dtype.type(2))
        for name, array in inputs.items()
        if name in ("a", "bias") and array is not None
    }
    (double,) = run({**inputs, **doubled}, params)
    number_format = format_of(straight.dtype)
    size = np.abs(straight.astype(np.float64))
    inside = (size >= number_format.min_normal) & (size <= number_format.max / 4)
    return difference(np.where(inside, double, 0), np.where(inside, straight * straight.dtype.type(2), 0), "a doubled")


@relation(*PLAIN)
def other_rows_do_not_matter(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A row of the result is the same bits when the first row of a, and only that, is negated; in a batch, a matrix."""
    inputs = _copies(inputs)
    a = inputs["a"]
    if a.size == 0:
        return None
    (straight,) = run(inputs, params)
    other = a.copy()
    first = (slice(None), 0) if params.get("transpose_a") else (0,)
    other[first] = -other[first]
    (changed,) = run({**inputs, "a": other}, params)
    return difference(changed[1:], straight[1:], "with another first row")
