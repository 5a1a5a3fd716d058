"""Root-mean-square normalisation, honest and wrong."""

import numpy as np

from implementations.arithmetic import blocked, narrow, running, truncated, wide


def _over(rows):
    """An implementation from the formula on rows in the compute type."""

    def implementation(x, weight, eps=1e-6):
        compute = wide(x.dtype)
        return rows(x.astype(compute), weight.astype(compute), compute(eps)).astype(x.dtype)

    return implementation


def _mean_square(x, total=running):
    return (total(x * x) / x.dtype.type(x.shape[-1]))[..., np.newaxis]


HONEST = {
    "divided": _over(lambda x, w, eps: x / np.sqrt(_mean_square(x) + eps) * w),
    "reciprocal_root": _over(lambda x, w, eps: x * (1 / np.sqrt(_mean_square(x) + eps)) * w),
    "weight_first": _over(lambda x, w, eps: x * w * (1 / np.sqrt(_mean_square(x) + eps))),
    "weight_times_root": _over(lambda x, w, eps: x * (w * (1 / np.sqrt(_mean_square(x) + eps)))),
    "blocks_of_32": _over(lambda x, w, eps: x / np.sqrt(_mean_square(x, blocked) + eps) * w),
    "pairwise": _over(lambda x, w, eps: x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * w),
    "reversed": _over(lambda x, w, eps: x / np.sqrt(_mean_square(x[:, ::-1]) + eps) * w),
    "float64_inside": _over(
        lambda x, w, eps: x / np.sqrt(np.mean(x.astype(np.float64) ** 2, axis=-1, keepdims=True) + eps) * w
    ),
}


def _narrow_sum(squares):
    total = np.zeros(squares.shape[:-1], squares.dtype)
    for at in range(squares.shape[-1]):
        total = narrow(total + squares[:, at])
    return total


def _rounds_before_weight(x, weight, eps=1e-6):
    compute = wide(x.dtype)
    y = narrow(HONEST["divided"](x.astype(compute), np.ones_like(weight, compute), eps))
    return (y * weight.astype(compute)).astype(x.dtype)


def _truncating_store(x, weight, eps=1e-6):
    x_wide = x.astype(np.longdouble)
    return truncated(x_wide / np.sqrt(_mean_square(x_wide) + eps) * weight.astype(np.longdouble), x.dtype)


def _centred(x, w, eps):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(_mean_square(centred) + eps) * w


def _unbiased(x, w, eps):
    return x / np.sqrt(running(x * x)[:, np.newaxis] / max(x.shape[-1] - 1, 1) + eps) * w


WRONG = {
    "eps_outside_root": _over(lambda x, w, eps: x / (np.sqrt(_mean_square(x)) + eps) * w),
    "no_eps": _over(lambda x, w, eps: x / np.sqrt(_mean_square(x)) * w),
    "fixed_eps": _over(lambda x, w, eps: x / np.sqrt(_mean_square(x) + x.dtype.type(1e-6)) * w),
    "no_root": _over(lambda x, w, eps: x / (_mean_square(x) + eps) * w),
    "centred": _over(_centred),
    "one_column_fewer": _over(_unbiased),
    "mean_without_last": _over(lambda x, w, eps: x / np.sqrt(_mean_square(x, lambda s: running(s[:, :-1])) + eps) * w),
    "weight_plus_one": _over(lambda x, w, eps: x / np.sqrt(_mean_square(x) + eps) * (w + 1)),
    "ignores_weight": _over(lambda x, w, eps: x / np.sqrt(_mean_square(x) + eps)),
    "narrow_accumulator": _over(lambda x, w, eps: x / np.sqrt(_mean_square(x, _narrow_sum) + eps) * w),
    "rounds_before_weight": _rounds_before_weight,
    "truncating_store": _truncating_store,
}
# A value cut off at the end of the compute type's own significand is one rounding more, which the bound has room for.
UNSEEN = {("truncating_store", "float32"), ("truncating_store", "float64")}
