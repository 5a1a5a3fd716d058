"""Evenly spaced lanes are read as a window of the array; the values are those of reading each lane's address."""

import numpy as np
import pytest
from numba import cuda

import refsim
from refsim.engine import views
from refsim.engine.memory import GlobalMemory

RNG = np.random.default_rng(3)
RECORDS = np.zeros((40, 300), np.dtype([("a", "i1"), ("b", "f4"), ("c", "i8")], align=True))
RECORDS["b"] = RNG.uniform(-1, 1, RECORDS.shape)
RECORDS["c"] = RNG.integers(-99, 99, RECORDS.shape)


def rows(x, out):
    t, b = cuda.threadIdx.x, cuda.blockIdx.x
    for c in range(t, out.shape[1], cuda.blockDim.x):
        out[b, c] = x[b, c]


def columns(x, out):
    t, b = cuda.threadIdx.x, cuda.blockIdx.x
    for c in range(t, out.shape[0], cuda.blockDim.x):
        out[c, b] = x[c, b]


def tiles(x, out):
    t, u, b, d = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.x, cuda.blockIdx.y
    i, j = 2 * t + u, 5 * d + b
    out[j, i] = x[j, i]


def doubled(x, out):
    t, b = cuda.threadIdx.x, cuda.blockIdx.x
    out[b, t] = x[b // 2, t // 2]


def sliced(x, out):
    t, b = cuda.threadIdx.x, cuda.blockIdx.x
    part = x[1::2, 3:]
    out[b, t] = part[b, t]


def numbers(dtype, *shape):
    return RNG.integers(0, 2 if dtype == "bool" else 99, shape).astype(dtype)


CASES = [
    *((rows, numbers(dtype, 40, 300), 40, 64, True) for dtype in ("float32", "int32", "uint8", "float64", "bool")),
    (rows, numbers("float16", 40, 256), 40, 128, True),
    (rows, numbers("complex64", 40, 1024), 40, 128, True),
    (rows, numbers("int64", 80, 600)[::2, 1::2], 40, 64, True),
    (rows, numbers("float32", 40, 300)[:, ::-1], 40, 64, False),
    (rows, np.asfortranarray(numbers("float32", 40, 300)), 40, 64, True),
    (rows, RECORDS["b"], 40, 64, True),
    (rows, RECORDS["c"], 40, 64, True),
    (columns, numbers("float32", 300, 40), 40, 64, True),
    (columns, numbers("int16", 300, 1024)[:, :40], 40, 64, True),
    (tiles, numbers("float32", 15, 64), (5, 3), (32, 2), True),
    (doubled, numbers("float32", 40, 64), 40, 64, False),
    (sliced, numbers("float32", 81, 1027), 40, 64, True),
]


def launched(kernel, x, grid, block):
    shape = x.shape if kernel is not sliced else (40, 64)
    out = np.zeros(shape, x.dtype)
    report = refsim.launch(kernel, grid, block, x, out)
    assert not report.findings
    return out


@pytest.mark.parametrize(("kernel", "x", "grid", "block", "even"), CASES)
def test_windows_read_what_addresses_do(kernel, x, grid, block, even, monkeypatch):
    read = GlobalMemory.read_window
    calls = []
    monkeypatch.setattr(GlobalMemory, "read_window", lambda *args: calls.append(1) or read(*args))
    monkeypatch.setattr(views, "MANY_LANES", 1)
    got = launched(kernel, x, grid, block)
    assert bool(calls) == even
    monkeypatch.setattr(views, "MANY_LANES", 1 << 60)
    np.testing.assert_array_equal(got, launched(kernel, x, grid, block))
    if kernel in (rows, columns, tiles):
        np.testing.assert_array_equal(got, x)


def past_the_end(x, out):
    t, b = cuda.threadIdx.x, cuda.blockIdx.x
    out[b, t] = x[b, t + 1]


def test_an_index_outside_is_still_found(monkeypatch):
    monkeypatch.setattr(views, "MANY_LANES", 1)
    report = refsim.launch(past_the_end, 40, 64, numbers("float32", 40, 64), np.zeros((40, 64), np.float32))
    assert {(f.kind, f.index) for f in report.findings} == {("out_of_bounds", (0, 64))}
