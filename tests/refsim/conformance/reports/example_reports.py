"""Real reports in which every kind of row appears: right, wrong by value and by finding, raising, refusing."""

from functools import cache

import numpy as np
from numba import cuda, float32

from oracle.operator import find_operator
from refsim.conformance import FunctionBackend, Refused, check
from refsim.conformance.backends.functions import launched


def norm(x, weight, eps=1e-6):
    wide = x.astype(np.float64)
    return (wide / np.sqrt(np.mean(wide * wide, axis=-1, keepdims=True) + eps) * weight).astype(x.dtype)


def norm_without_eps(x, weight, eps=1e-6):
    return norm(x, weight, 0.0)


def sum_of_nans(x, axis=None):
    return np.full(np.sum(x, axis=axis).shape, np.nan, x.dtype)


def raising(x, weight):
    raise RuntimeError("</script><b>no luck</b>")


def refusing(x, weight, eps=1e-6):
    raise Refused("never on a Monday")


@cuda.jit
def racing_rows(x, weight, eps, out):
    total = cuda.shared.array(1, float32)
    total[0] = 0.0
    cuda.syncthreads()
    total[0] += x[cuda.blockIdx.x, cuda.threadIdx.x]  # every thread at once
    out[cuda.blockIdx.x, cuda.threadIdx.x] = total[0]


def racing(launcher, x, weight, eps=1e-6):
    out = launcher.empty(x.shape, x.dtype)
    if x.size:
        threads = min(x.shape[-1], 64)
        launcher.launch(racing_rows, x.shape[0], threads, launcher.array(x), launcher.array(weight), eps, out)
    return out


def judged(function, operator, dtypes, count=8):
    """A report of one function."""
    record = find_operator(operator)
    if function is racing:
        backend = launched(function, record, "mine.py:racing", "sim:sm_90")
    else:
        backend = FunctionBackend(function, record, f"mine.py:{function.__name__}")
    return check(backend, [operator], dtypes, count=count)


@cache
def all_kinds():
    """Reports of every function above."""
    return (
        judged(norm, "rmsnorm", ["float32", "float16"]),
        judged(norm_without_eps, "rmsnorm", ["float32", "float16"], count=24),
        judged(raising, "rmsnorm", ["float32"]),
        judged(refusing, "rmsnorm", ["float32"]),
        judged(racing, "rmsnorm", ["float32"], count=4),
        judged(sum_of_nans, "sum", ["float32"], count=4),
    )
