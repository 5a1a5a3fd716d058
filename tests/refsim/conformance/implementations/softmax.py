"""Softmax, honest and wrong."""

import numpy as np

from implementations.arithmetic import blocked, narrow, running, truncated, wide

LOG2_E = 1.4426950408889634


def _over(rows):
    """An implementation from a softmax of the last axis in the compute type; empty rows stay empty."""

    def implementation(x):
        if x.size == 0:
            return x.copy()
        return rows(x.astype(wide(x.dtype))).astype(x.dtype)

    return implementation


def _shifted(x, largest):
    return np.exp(x - largest)


def _largest(x):
    return x.max(axis=-1, keepdims=True)


def _shares(e, total):
    return e / total[..., np.newaxis]


def _online(tile, rescale=True, guard=True):
    """By a running maximum. Unguarded, a row that begins with minus infinity is NaN: exp(-inf - -inf)."""

    def rows(x):
        largest = np.full(x.shape[:-1], -np.inf, x.dtype)
        total = np.zeros(x.shape[:-1], x.dtype)
        for start in range(0, x.shape[-1], tile):
            part = x[..., start : start + tile]
            new = np.maximum(largest, part.max(axis=-1))
            level = np.where(np.isneginf(new), 0, new).astype(x.dtype) if guard else new
            if rescale:
                total = total * np.exp(largest - level)
            total = total + running(np.exp(part - level[..., np.newaxis]))
            largest = new
        return _shares(np.exp(x - largest[..., np.newaxis]), total)

    return rows


def _by_exp2(x):
    e = np.exp2((x - _largest(x)) * x.dtype.type(LOG2_E))
    return _shares(e, running(e))


def _by_reciprocal(x):
    e = _shifted(x, _largest(x))
    return e * (1 / running(e))[..., np.newaxis]


def _plain(x, total=running, largest=_largest):
    e = _shifted(x, largest(x))
    return _shares(e, total(e))


HONEST = {
    "in_order": _over(_plain),
    "blocks_of_32": _over(lambda x: _plain(x, blocked)),
    "pairwise": _over(lambda x: _plain(x, lambda e: e.sum(axis=-1))),
    "online_by_element": _over(_online(1)),
    "online_by_16": _over(_online(16)),
    "exp2": _over(_by_exp2),
    "reciprocal": _over(_by_reciprocal),
    "float64_inside": _over(lambda x: _plain(x.astype(np.float64))),
}


def _truncating_store(x):
    if x.size == 0:
        return x.copy()
    return truncated(_plain(x.astype(np.longdouble)), x.dtype)


def _largest_but_last(x):
    return _largest(x[..., : max(x.shape[-1] - 1, 1)])


def _unnormalised(x):
    return _shifted(x, _largest(x))


WRONG = {
    "online_without_guard": _over(_online(1, guard=False)),
    "nan_to_zero": _over(lambda x: np.nan_to_num(_plain(x))),
    "maximum_starts_at_zero": _over(lambda x: _plain(x, largest=lambda x: np.maximum(_largest(x), 0))),
    "no_maximum": _over(lambda x: _plain(x, largest=lambda x: np.zeros_like(_largest(x)))),
    "maximum_of_all_but_last": _over(lambda x: _plain(x, largest=_largest_but_last)),
    "total_without_last": _over(lambda x: _plain(x, lambda e: running(e[..., :-1]) + (e.shape[-1] == 1))),
    "no_rescale": _over(_online(16, rescale=False)),
    "not_normalised": _over(_unnormalised),
    "over_first_axis": _over(lambda x: np.moveaxis(_plain(np.moveaxis(x, 0, -1)), -1, 0)),
    "narrow_exponential": _over(lambda x: _shares(narrow(_unnormalised(x)), running(_unnormalised(x)))),
    "narrow_total": _over(lambda x: _plain(x, lambda e: narrow(running(e)))),
    "narrow_inputs": _over(lambda x: _plain(narrow(x))),
    "base_two": _over(lambda x: _shares(np.exp2(x - _largest(x)), running(np.exp2(x - _largest(x))))),
    "truncating_store": _truncating_store,
}
# A value cut off at the end of the compute type's own significand is one rounding more, which the bound has room for.
UNSEEN = {("truncating_store", "float32"), ("truncating_store", "float64")}
