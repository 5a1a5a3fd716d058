"""Variants of batched and grouped matrix products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracle.signature import Array
from oracle.variants.arithmetic import product, stored, wide
from oracle.variants.gemm import BROKEN, HONEST, WRONG, Product
from oracle.variants.variant import control, mutant

Ranges = list[tuple[int, int]]
FORMS = ("order_sequential", "order_tree", "order_tiles", "fma", "split_k", "blas")
FLAWS = (
    "last_k_missed",
    "tail_missed",
    "stale_row",
    "magnitudes",
    "narrow_accumulator",
    "narrow_partials",
    "nan_skipped",
)


def _batched(form: Product, doc: str) -> Callable[..., Array]:
    def batched_matmul(a: Array, b: Array, bias: Array | None) -> Array:
        out = form(wide(a), wide(b))
        return stored(out if bias is None else out + wide(bias)[:, np.newaxis], a)

    batched_matmul.__doc__ = doc
    return batched_matmul


def _ranges(a: Array, ends: Array) -> Ranges:
    """First row and end of each group."""
    return list(zip([0, *ends.tolist()[:-1]], ends.tolist(), strict=False))


def _grouped(form: Product, doc: str, ranges: Callable[[Array, Array], Ranges] = _ranges) -> Callable[..., Array]:
    def grouped_matmul(a: Array, b: Array, ends: Array, bias: Array | None) -> Array:
        out = np.zeros((len(a), b.shape[-1]), wide(a).dtype)
        for group, (start, end) in enumerate(ranges(a, ends)):
            if end > start:
                part = form(wide(a[start:end]), wide(b[group]))
                out[start:end] = part if bias is None else part + wide(bias[group])
        return stored(out, a)

    grouped_matmul.__doc__ = doc
    return grouped_matmul


for _operator, _made in (("batched_matmul", _batched), ("grouped_matmul", _grouped)):
    for _name in FORMS:
        control(_operator, name=_name)(_made(*HONEST[_name]))
    for _name in FLAWS:
        mutant(_operator, name=_name)(_made(*WRONG[_name]))
    for _name, (_form, _doc, _relation) in BROKEN.items():
        mutant(_operator, name=_name, relation=_relation, dtypes=("float32",))(_made(_form, _doc))


@control("batched_matmul")
def one_by_one(a: Array, b: Array, bias: Array | None) -> Array:
    """Each product on its own, from the last to the first, the bias before the terms."""
    out = np.zeros((*a.shape[:2], b.shape[-1]), wide(a).dtype)
    for at in reversed(range(len(a))):
        total = out[at] if bias is None else out[at] + wide(bias[at])
        for step in range(a.shape[-1]):
            total = total + wide(a[at, :, step, np.newaxis]) * wide(b[at, step])
        out[at] = total
    return stored(out, a)


@mutant("batched_matmul")
def first_weights_for_all(a: Array, b: Array, bias: Array | None) -> Array:
    """All products have the first right factor: its batch stride is taken as 0."""
    return _batched(product, "")(a, np.broadcast_to(b[:1], b.shape) if len(b) else b, bias)


@mutant("batched_matmul")
def bias_of_the_first(a: Array, b: Array, bias: Array | None) -> Array:
    """All products have the first bias."""
    shared = bias if bias is None or not len(bias) else np.broadcast_to(bias[:1], bias.shape)
    return _batched(product, "")(a, b, shared)


@mutant("batched_matmul")
def last_of_the_batch_missed(a: Array, b: Array, bias: Array | None) -> Array:
    """The last product is never formed."""
    out: Array = _batched(product, "")(a, b, bias)
    out[-1:] = 0
    return out


@control("grouped_matmul")
def row_by_row(a: Array, b: Array, ends: Array, bias: Array | None) -> Array:
    """Each row looks up its group on its own."""
    out = np.zeros((len(a), b.shape[-1]), wide(a).dtype)
    for row in range(int(ends[-1]) if len(ends) else 0):
        group = int(np.searchsorted(ends, row, side="right"))
        part = product(wide(a[row : row + 1]), wide(b[group]))[0]
        out[row] = part if bias is None else part + wide(bias[group])
    return stored(out, a)


def _one_row_late(a: Array, ends: Array) -> Ranges:
    return [(start + (start > 0), min(end + 1, len(a))) for start, end in _ranges(a, ends)]


def _to_the_end(a: Array, ends: Array) -> Ranges:
    found = _ranges(a, ends)
    return [*found[:-1], (found[-1][0], len(a))] if found else found


def _empty_skipped(a: Array, ends: Array) -> Ranges:
    return [pair for pair in _ranges(a, ends) if pair[0] < pair[1]]


def _sizes(a: Array, ends: Array) -> Ranges:
    stops = np.minimum(np.cumsum(ends), len(a))
    return _ranges(a, stops)


for _name, _shape, _doc in (
    ("one_row_late", _one_row_late, "Ends are taken as the last row of a group."),
    ("unowned_rows_computed", _to_the_end, "The last group goes on to the last row."),
    ("empty_groups_skipped", _empty_skipped, "Empty groups are left out, and the next one takes their matrix."),
    ("ends_as_sizes", _sizes, "Ends are taken as sizes of groups."),
):
    mutant("grouped_matmul", name=_name)(_grouped(product, _doc, _shape))


@mutant("grouped_matmul")
def masked_by_product(a: Array, b: Array, ends: Array, bias: Array | None) -> Array:
    """Rows of no group are multiplied by 0, which leaves a NaN a NaN."""
    owned = np.arange(len(a)) < (ends[-1] if len(ends) else 0)
    out = _grouped(product, "", _to_the_end)(a, b, ends, bias)
    return np.asarray(out * owned[:, np.newaxis].astype(out.dtype))
