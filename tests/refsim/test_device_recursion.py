"""Device functions that call themselves, against the same Python functions."""

import numpy as np
import pytest
from clean_launch import launch_clean
from numba import cuda

import refsim
from refsim.errors import KernelTypeError, UnsupportedError


@cuda.jit(device=True)
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@cuda.jit(device=True)
def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@cuda.jit(device=True)
def halved(x, steps=0):
    if x < 1:
        return x
    total = 0.0
    for k in range(2):
        total += halved(x / 4 + k, steps + 1) if steps < 5 else 0.125
    return total + cuda.threadIdx.x * 0


@cuda.jit
def recursive(n, out):
    i = cuda.grid(1)
    if i < n.size:
        out[i, 0] = fibonacci(n[i])
        if i % 2:
            out[i, 1] = ackermann(i % 3, i)
        out[i, 2] = halved(n[i] * 1.5)


def plain_halved(x, steps=0):
    if x < 1:
        return x
    return sum(plain_halved(x / 4 + k, steps + 1) if steps < 5 else 0.125 for k in range(2))


@pytest.mark.parametrize("lanes", ["auto", "thread"])
def test_each_thread_recurses_as_deep_as_it_must(lanes):
    n = np.array([0, 1, 5, 10, 7, 3, 12, 2])
    out = np.zeros((8, 3))
    launch_clean(recursive, 3, 4, n, out, lanes=lanes)
    for i, x in enumerate(n):
        deep = plain_ackermann(i % 3, i) if i % 2 else 0
        assert out[i].tolist() == [plain_fibonacci(int(x)), deep, plain_halved(x * 1.5)]


def plain_fibonacci(n):
    return n if n < 2 else plain_fibonacci(n - 1) + plain_fibonacci(n - 2)


def plain_ackermann(m, n):
    if m == 0:
        return n + 1
    return plain_ackermann(m - 1, 1 if n == 0 else plain_ackermann(m, n - 1))


@cuda.jit(device=True)
def down(n):
    if n == 0:
        return 0
    return down(n - 1)


@cuda.jit
def deep(out):
    out[0] = down(100000)


@cuda.jit(device=True)
def for_ever(x):
    return for_ever(x)


@cuda.jit(device=True)
def with_memory(x, n):
    if n == 0:
        return x[0]
    return with_memory(x, n - 1)


@cuda.jit
def runaway(out):
    out[0] = for_ever(1)


@cuda.jit
def through_memory(out):
    out[0] = with_memory(out, 2)


def test_what_is_refused_is_named():
    with pytest.raises(KernelTypeError, match="not known where it calls itself"):
        refsim.launch(runaway, 1, 1, np.zeros(1))
    with pytest.raises(UnsupportedError, match="hundreds of times"):
        refsim.launch(deep, 1, 1, np.zeros(1))
    with pytest.raises(UnsupportedError, match="x must be a number"):
        refsim.launch(through_memory, 1, 1, np.zeros(1))
