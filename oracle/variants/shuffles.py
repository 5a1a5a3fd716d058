"""Variants of shuffles: the same permutation found in other ways, and other permutations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oracle.signature import Array
from oracle.variants.variant import control, mutant

Order = Callable[[Array, tuple[int, ...], tuple[int, ...]], Array]


def _transposed(x: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    return x.reshape(shape).transpose(axes).reshape(x.shape)


def _gathered(x: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    source = np.arange(x.size).reshape(shape).transpose(axes).reshape(-1)
    return x.reshape(-1)[source].reshape(x.shape)


def _scattered(x: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    out = np.empty_like(x, shape=x.size)
    out[np.arange(x.size).reshape(shape).transpose(axes).reshape(-1).argsort()] = x.reshape(-1)
    return out.reshape(x.shape)


def _by_strides(x: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """The place of each element worked out from its subscripts."""
    strides = np.cumprod((1, *shape[:0:-1]))[::-1]
    new = [shape[axis] for axis in axes]
    rest, source = np.arange(x.size), np.zeros(x.size, np.int64)
    for axis, size in zip(reversed(axes), reversed(new), strict=True):
        source += rest % max(size, 1) * strides[axis]
        rest = rest // max(size, 1)
    return x.reshape(-1)[source].reshape(x.shape)


def _first_axis_apart(x: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """Each part of the first axis on its own."""
    rest = tuple(axis - 1 for axis in axes[1:])
    parts = [part.transpose(rest).reshape(-1) for part in x.reshape(shape)]
    return np.concatenate([np.empty_like(x, shape=0), *parts]).reshape(x.shape)


def _two_axes_at_a_time(x: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    view, order = x.reshape(shape), list(range(len(shape)))
    for place, axis in enumerate(axes):
        other = order.index(axis)
        view = view.swapaxes(place, other)
        order[place], order[other] = order[other], order[place]
    return view.reshape(x.shape)


WAYS: tuple[tuple[str, str, Order], ...] = (
    ("transposed", "One transposition.", _transposed),
    ("gathered", "Each place looks for its element.", _gathered),
    ("scattered", "Each element looks for its place.", _scattered),
    ("by_strides", "Places are worked out from subscripts.", _by_strides),
    ("first_axis_apart", "One part after another.", _first_axis_apart),
    ("two_axes_at_a_time", "Two axes are exchanged at a time.", _two_axes_at_a_time),
)


def _other_axes(change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Order:
    return lambda x, shape, axes: _transposed(x, shape, change(axes))


ELSEWHERE: tuple[tuple[str, str, Order], ...] = (
    ("as_it_was", "Nothing is moved.", lambda x, shape, axes: x.copy()),
    ("turned_back", "The inverse permutation.", _other_axes(lambda axes: tuple(int(a) for a in np.argsort(axes)))),
    ("middle_exchanged", "Two axes are exchanged.", _other_axes(lambda a: (*a[:1], a[2], a[1], *a[3:]))),
    ("last_exchanged", "The last two axes are exchanged.", _other_axes(lambda a: (*a[:-2], a[-1], a[-2]))),
    ("middle_reversed", "Three axes come in reverse order.", _other_axes(lambda a: (*a[:1], *a[3:0:-1], *a[4:]))),
    ("last_missed", "The last elements stay.", lambda x, shape, axes: _last_stay(x, _transposed(x, shape, axes))),
    ("turned_over", "Rows come in reverse order.", lambda x, shape, axes: _transposed(x, shape, axes)[::-1]),
)


def _last_stay(x: Array, new: Array) -> Array:
    return np.concatenate([new.reshape(-1)[: new.size - 40], x.reshape(-1)[max(new.size - 40, 0) :]]).reshape(x.shape)


def _padded_and(scale: Array, layout: str, padding: str, order: Order) -> Array:
    """Scales filled up, then in another order."""
    rows, groups = scale.shape
    high, wide = {"aiter": (256, 8), "cublas": (128, 4)}[layout]
    m, g = -(-rows // high) * high, -(-groups // wide) * wide
    padded = np.full((m, g), 1.0 if padding == "one" else 2.0, scale.dtype)
    if padding == "zero":
        padded = np.zeros((m, g), np.uint8).view(scale.dtype)
    padded[:rows, :groups] = scale
    if layout == "aiter":
        return order(padded, (m // 32, 2, 16, g // 8, 2, 4), (0, 3, 5, 2, 4, 1))
    return order(padded, (m // 128, 4, 32, g // 4, 4), (0, 3, 2, 1, 4))


def _register(kind: Callable[..., Any], name: str, flaw: str, order: Order) -> None:
    def shuffle_weight(weight: Array, *, inner: int, vector: int) -> Array:
        n, k = weight.shape
        shape = n // 16, 16, k // (2 * inner), 2 * inner // vector, vector
        return order(np.ascontiguousarray(weight), shape, (0, 2, 3, 1, 4))

    def shuffle_scale(scale: Array, *, layout: str, padding: str) -> Array:
        return _padded_and(scale, layout, padding, order)

    for operator, function in (("shuffle_weight", shuffle_weight), ("shuffle_scale", shuffle_scale)):
        function.__doc__ = flaw
        kind(operator, name=name)(function)


for _name, _flaw, _order in WAYS:
    _register(control, _name, _flaw, _order)
for _name, _flaw, _order in ELSEWHERE:
    _register(mutant, _name, _flaw, _order)


@mutant("shuffle_scale")
def quarters_apart(scale: Array, *, layout: str, padding: str) -> Array:
    """In cuBLAS's tiles, rows i, i + 32, i + 64 and i + 96 do not lie side by side."""
    if layout == "aiter":
        return _padded_and(scale, layout, padding, _transposed)
    return _padded_and(scale, layout, padding, lambda x, shape, axes: _transposed(x, shape, (0, 3, 1, 2, 4)))


@mutant("shuffle_scale")
def padding_of_twos(scale: Array, *, layout: str, padding: str) -> Array:
    """Whatever padding is asked for, it is filled with 2."""
    return _padded_and(scale, layout, "twos", _transposed)
