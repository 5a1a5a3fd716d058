"""Evenly spaced lanes read and write a window of the array: values and findings are those of each lane's address."""

import importlib.util
import random

import numpy as np
import pytest
from numba import cuda

import refsim
from refsim.engine import views
from refsim.engine.views import View

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


def sliced_by_thread(x, out):
    t, b = cuda.threadIdx.x, cuda.blockIdx.x
    part = x[t % 2 :, 3:]
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
    (sliced_by_thread, numbers("float32", 81, 1027), 40, 64, False),
]


def launched(kernel, x, grid, block):
    shape = (40, 64) if kernel in (sliced, sliced_by_thread) else x.shape
    out = np.zeros(shape, x.dtype)
    report = refsim.launch(kernel, grid, block, x, out)
    assert not report.findings
    return out


@pytest.mark.parametrize(("kernel", "x", "grid", "block", "even"), CASES)
def test_windows_hold_what_addresses_do(kernel, x, grid, block, even, monkeypatch):
    find = View._window2
    found = []
    monkeypatch.setattr(View, "_window2", lambda *args: found.append(find(*args)) or found[-1])
    monkeypatch.setattr(views, "MANY_LANES", 1)
    got = launched(kernel, x, grid, block)
    assert all(window is not None for window in found) == even
    assert any(window is not None for window in found)
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


# ---- findings -----------------------------------------------------------------------------------------------------

PROGRAMS = 250
INDICES = [
    "b, t",
    "b, t",
    "t, b",
    "b, (t + 1) % 32",
    "(b + 1) % 32, t",
    "b // 2, t",
    "t // 2, b",
    "t, t",
    "b, 3",
    "b, x[i]",
]
VALUES = ["5", "t", "b", "i", "x[i]"]
CONDITIONS = ["t == 0", "b < 3", "t % 2 == 0", "x[i] % 3 == 0"]

HEADER = """\
from numba import cuda


def kernel(x, g, h, out):
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    b = cuda.blockIdx.x
    v = 0
"""


def source(seed):
    """A kernel of a few accesses to two matrices in global memory, which may overlap."""
    rng = random.Random(seed)
    lines = []
    for _ in range(rng.randint(2, 9)):
        kind, array, index = rng.random(), rng.choice("gggh"), rng.choice(INDICES)
        if kind < 0.35:
            lines.append(f"v += {array}[{index}]")
        elif kind < 0.75:
            lines.append(f"{array}[{index}] = {rng.choice(VALUES)}")
        elif kind < 0.85:
            lines.append(f"cuda.atomic.add({array}, ({index}), 1)")
        else:
            lines.append("cuda.syncthreads()")
        if kind < 0.85 and rng.random() < 0.25:
            lines[-1] = f"if {rng.choice(CONDITIONS)}:\n        {lines[-1]}"
    return HEADER + "".join(f"    {line}\n" for line in lines) + "    out[b, t] = v\n"


def outcome(path, seed):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    grid, block = [(8, 16), (16, 32), (5, 32), (2, 32)][seed % 4]
    dtype = ["int64", "int32", "float32"][seed % 3]
    x = np.random.default_rng(seed).integers(0, 32, grid * block)
    whole = refsim.empty((64, 32), dtype) if seed % 2 else np.zeros((64, 32), dtype)
    if seed % 7 == 0:
        whole = np.zeros((64, 32), RECORDS.dtype)["b"]
    g, h = whole[5:37], whole[32 * (seed % 3 > 0) :][:32]
    if seed % 11 == 0:
        whole = np.zeros((64, 32), np.int64)
        g, h = whole[5:37], whole.view(np.int32)[:32, 7:39]  # an element of one is two of the other
    out = np.zeros((grid, block), np.int64)
    report = refsim.launch(module.kernel, grid, block, x, g, h, out, lanes_per_batch=[65536, 100][seed % 5 == 0])
    return report.findings, out.tolist(), np.asarray(whole).tobytes()


def test_findings_at_windows_are_those_at_addresses(tmp_path, monkeypatch):
    errors = clean = 0
    for seed in range(PROGRAMS):
        path = tmp_path / f"windows_{seed}.py"
        path.write_text(source(seed))
        monkeypatch.setattr(views, "MANY_LANES", 1)
        at_windows = outcome(path, seed)
        monkeypatch.setattr(views, "MANY_LANES", 1 << 60)
        assert at_windows == outcome(path, seed), f"seed {seed}\n{source(seed)}"
        errors += bool(at_windows[0])
        clean += not at_windows[0]
    assert errors > PROGRAMS // 4
    assert clean > 4
