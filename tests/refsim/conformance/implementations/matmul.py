"""Matrix products, honest and wrong."""

import numpy as np

from implementations.arithmetic import narrow, tf32, truncated, wide


def _over(product, add_bias=True, store=None):
    """An implementation from a product of two matrices in the compute type."""

    def implementation(a, b, bias=None, transpose_a=False, transpose_b=False):
        left, right = (a.T if transpose_a else a), (b.T if transpose_b else b)
        compute = wide(a.dtype)
        out = product(left.astype(compute), right.astype(compute))
        if bias is not None and add_bias:
            out = out + bias.astype(compute)
        return out.astype(a.dtype)

    return implementation


def _by_step(order=lambda k: range(k), keep=lambda total: total):
    def product(a, b):
        total = np.zeros((a.shape[0], b.shape[1]), a.dtype)
        for at in order(a.shape[1]):
            total = keep(total + a[:, at, np.newaxis] * b[at])
        return total

    return product


def _by_blocks(width, upto=lambda k: k):
    def product(a, b):
        total = np.zeros((a.shape[0], b.shape[1]), a.dtype)
        for start in range(0, upto(a.shape[1]), width):
            total = total + a[:, start : start + width] @ b[start : start + width]
        return total

    return product


def _split(a, b):
    half = a.shape[1] // 2
    return _by_step()(a[:, :half], b[:half]) + _by_step()(a[:, half:], b[half:])


def _bias_first(a, b, bias=None, transpose_a=False, transpose_b=False):
    left, right = (a.T if transpose_a else a), (b.T if transpose_b else b)
    compute = wide(a.dtype)
    total = np.zeros((left.shape[0], right.shape[1]), compute)
    if bias is not None:
        total = total + bias.astype(compute)
    for at in range(left.shape[1]):
        total = total + left[:, at, np.newaxis].astype(compute) * right[at].astype(compute)
    return total.astype(a.dtype)


HONEST = {
    "in_order": _over(_by_step()),
    "reversed": _over(_by_step(order=lambda k: range(k)[::-1])),
    "blas": _over(np.matmul),
    "blocks_of_16": _over(_by_blocks(16)),
    "split_k": _over(_split),
    "transposed_product": _over(lambda a, b: (b.T @ a.T).T),
    "bias_first": _bias_first,
    "float64_inside": _over(lambda a, b: a.astype(np.float64) @ b.astype(np.float64)),
}


def _first_twice(a, b):
    return a @ b + (a[:, :1] @ b[:1] if a.shape[1] > 1 else 0)


def _bias_on_rows(a, b, bias=None, transpose_a=False, transpose_b=False):
    out = HONEST["blas"](a, b, None, transpose_a, transpose_b)
    if bias is None:
        return out
    return (out.astype(wide(a.dtype)) + np.resize(bias, (len(out), 1)).astype(wide(a.dtype))).astype(a.dtype)


def _truncating_store(a, b, bias=None, transpose_a=False, transpose_b=False):
    left, right = (a.T if transpose_a else a), (b.T if transpose_b else b)
    out = left.astype(np.longdouble) @ right.astype(np.longdouble)
    return truncated(out if bias is None else out + bias.astype(np.longdouble), a.dtype)


def _ignores_transpose(a, b, bias=None, transpose_a=False, transpose_b=False):
    """Reads the transposed factor as if its memory were row-major."""
    left = a.reshape(a.shape[::-1]) if transpose_a else a
    right = b.reshape(b.shape[::-1]) if transpose_b else b
    return HONEST["blas"](left, right, bias)


def _last_row_stale(a, b):
    out = a @ b
    out[-1:] = 0
    return out


WRONG = {
    "drops_last_k": _over(lambda a, b: a[:, :-1] @ b[:-1]),
    "drops_last_tile": _over(_by_blocks(16, upto=lambda k: k // 16 * 16)),
    "first_k_twice": _over(_first_twice),
    "last_row_stale": _over(_last_row_stale),
    "ignores_bias": _over(np.matmul, add_bias=False),
    "bias_on_rows": _bias_on_rows,
    "ignores_transpose": _ignores_transpose,
    "tf32_inputs": _over(lambda a, b: tf32(a) @ tf32(b)),
    "narrow_accumulator": _over(_by_step(keep=narrow)),
    "narrow_partials": _over(lambda a, b: narrow(a[:, ::2] @ b[::2]) + narrow(a[:, 1::2] @ b[1::2])),
    "magnitudes": _over(lambda a, b: np.abs(a) @ b),
    "truncating_store": _truncating_store,
}
# A value cut off at the end of the compute type's own significand is one rounding more, which the bound has room for;
# TF32 has float16's ten significand bits and more range, so it holds float16 exactly.
UNSEEN = {("truncating_store", "float64"), ("tf32_inputs", "float16")}
