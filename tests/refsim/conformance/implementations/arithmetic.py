"""Arithmetic of simulated kernels: the compute type, narrower ones, and stores."""

import ml_dtypes
import numpy as np

from oracle.formats import cast


def wide(dtype):
    """The compute type of an honest kernel."""
    return np.float64 if dtype == np.float64 else np.float32


def narrow(x):
    """Values rounded to what a kernel must not compute in: bfloat16, for float64 kernels float32."""
    return x.astype(np.float32 if x.dtype == np.float64 else ml_dtypes.bfloat16).astype(x.dtype)


def tf32(x):
    """Values truncated to TF32's ten significand bits; for float64 kernels to float32's."""
    if x.dtype == np.float64:
        return x.astype(np.float32).astype(np.float64)
    return (x.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def truncated(x, dtype):
    """A store that cuts bits off instead of rounding, from one step beyond the compute type."""
    return cast(x.astype(np.float64), dtype, rounding="toward_zero")


def running(x, axis=-1):
    """Sum in the order of the elements, one addition after the other, in x's type."""
    if x.shape[axis] == 0:
        return np.sum(x, axis=axis)
    return np.take(np.add.accumulate(x, axis=axis), -1, axis=axis)


def blocked(x, width=32):
    """Sum of the last axis as partial sums of `width` elements each."""
    starts = range(0, x.shape[-1], width)
    if not starts:
        return np.sum(x, axis=-1)
    return running(np.stack([running(x[..., start : start + width]) for start in starts], axis=-1))
