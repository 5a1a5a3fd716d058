"""Sums, honest and wrong."""

import numpy as np

from implementations.arithmetic import blocked, narrow, running, truncated, wide


def _over(reduce_last):
    """An implementation from a reduction of the last axis that gets the compute type."""

    def implementation(x, axis=None):
        rows = x.reshape(-1) if axis is None else np.moveaxis(x, axis, -1)
        return np.asarray(reduce_last(rows.astype(wide(x.dtype)))).astype(x.dtype)

    return implementation


def _shuffled(x):
    return running(x[..., np.random.default_rng(0).permutation(x.shape[-1])])


def _halving(x):
    while x.shape[-1] > 1:
        if x.shape[-1] % 2:
            x = np.concatenate([x, np.zeros_like(x[..., :1])], axis=-1)
        x = x[..., ::2] + x[..., 1::2]
    return np.sum(x, axis=-1)


HONEST = {
    "in_order": _over(running),
    "reversed": _over(lambda x: running(x[..., ::-1])),
    "blocks_of_32": _over(blocked),
    "pairwise": _over(lambda x: np.sum(x, axis=-1)),
    "tree": _over(_halving),
    "shuffled": _over(_shuffled),
    "float64_inside": _over(lambda x: np.sum(x.astype(np.float64), axis=-1)),
    "strided_threads": _over(lambda x: running(np.stack([running(x[..., t::8]) for t in range(8)], axis=-1))),
}


def _narrow_accumulator(x):
    total = np.zeros(x.shape[:-1], x.dtype)
    for at in range(x.shape[-1]):
        total = narrow(total + x[..., at])
    return total


def _first_twice(x):
    return running(x) + (x[..., 0] if x.shape[-1] > 1 else 0)


def _truncating_store(x, axis=None):
    return np.asarray(truncated(np.sum(x.astype(np.longdouble), axis=axis), x.dtype))


def _other_axis(x, axis=None):
    """Sums over the axis before the right one, in an array of the right shape."""
    out = HONEST["pairwise"](x, None if axis is None else (axis - 1) % x.ndim)
    return out if axis is None else np.resize(out, np.delete(x.shape, axis))


def _saturates(x, axis=None):
    """A float16 sum that stops at the largest number."""
    out = HONEST["pairwise"](x, axis)
    return np.where(np.isinf(out), np.copysign(np.finfo(x.dtype).max, out), out).astype(x.dtype)


WRONG = {
    "nan_to_zero": lambda x, axis=None: HONEST["pairwise"](np.nan_to_num(x, posinf=np.inf, neginf=-np.inf), axis),
    "saturates": _saturates,
    "first_2048": _over(lambda x: running(x[..., :2048])),
    "drops_last": _over(lambda x: running(x[..., :-1])),
    "drops_tail_of_32": _over(lambda x: running(x[..., : x.shape[-1] // 32 * 32])),
    "first_twice": _over(_first_twice),
    "starts_at_one": _over(lambda x: running(x) + 1),
    "mean": _over(lambda x: running(x) / max(x.shape[-1], 1)),
    "sum_of_magnitudes": _over(lambda x: running(np.abs(x))),
    "narrow_accumulator": _over(_narrow_accumulator),
    "narrow_inputs": _over(lambda x: running(narrow(x))),
    "truncating_store": _truncating_store,
    "other_axis": _other_axis,
}
# A value cut off at the end of the compute type's own significand is one rounding more, which the bound has room for.
UNSEEN = {("truncating_store", "float64")}
