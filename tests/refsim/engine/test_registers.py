"""Local arrays that become variables, and those that must stay memory."""

import numpy as np
import pytest
from numba import cuda, float32

import refsim
from refsim.devices import device_named
from refsim.simulator import compiled

ROWS, COLUMNS = 3, 2


def arrays_in_memory(kernel, *args):
    """Names of the local arrays that the lane code still allocates."""
    code = compiled(kernel, args, device_named("sim:sm_90"))
    return {a.name.split("@")[0] for a in code.program.allocations if a.space == "local"}


def products(x, out):
    i = cuda.grid(1)
    sums = cuda.local.array((ROWS, COLUMNS), float32)
    for r in range(ROWS):
        for c in range(COLUMNS):
            sums[r, c] = float32(0.0)
    for k in range(x.shape[1]):
        for r in range(ROWS):
            for c in range(COLUMNS):
                sums[r, c] += x[i, k] * float32(r + 1) - float32(c)
    for r in range(ROWS):
        for c in range(COLUMNS):
            out[i, r, c] = sums[r, c]


def written_by_some(x, out):
    i = cuda.grid(1)
    pair = cuda.local.array(2, float32)
    if x[i] > 0:
        pair[0] = x[i]
        pair[1] = -x[i]
    else:
        pair[0] = float32(1.0)
        pair[1] = float32(2.0)
        if i == 7:
            return
    out[i] = pair[0] + float32(10.0) * pair[1]


def read_before_written(x, out):
    i = cuda.grid(1)
    pair = cuda.local.array(2, float32)
    pair[0] = x[i]
    if x[i] > 2:
        pair[1] = x[i]
    out[i] = pair[0] + pair[1]


def past_the_end(x, out):
    i = cuda.grid(1)
    pair = cuda.local.array(2, float32)
    for k in range(3):
        pair[k] = x[i]
    out[i] = pair[0]


def indexed_by_thread(x, out):
    i = cuda.grid(1)
    pair = cuda.local.array(2, float32)
    pair[0] = x[i]
    pair[1] = -x[i]
    out[i] = pair[i % 2]


def left_early(x, out):
    i = cuda.grid(1)
    seen = cuda.local.array(4, float32)
    for k in range(4):
        seen[k] = float32(0.0)
    for k in range(4):
        if x[i] < k:
            break
        seen[k] = x[i] + k
    out[i] = seen[0] + seen[1] + seen[2] + seen[3]


def run(kernel, x, out):
    report = refsim.launch(kernel, 2, len(x) // 2, x, out)
    return [(f.kind, f.line - kernel.__code__.co_firstlineno) for f in report.findings]


def test_loops_over_a_local_array_leave_no_memory():
    x = np.random.default_rng(0).integers(-4, 5, (8, 5)).astype(np.float32)
    out = np.zeros((8, ROWS, COLUMNS), np.float32)
    assert run(products, x, out) == []
    rows, columns = np.arange(1, ROWS + 1), np.arange(COLUMNS)
    want = x.sum(axis=1)[:, None, None] * rows[:, None] - columns * x.shape[1]
    assert np.array_equal(out, want)
    assert arrays_in_memory(products, x, out) == set()


def test_elements_assigned_on_both_sides_of_a_branch():
    x = np.arange(-4, 4).astype(np.float32)
    out = np.full(8, -1, np.float32)
    assert run(written_by_some, x, out) == []
    want = np.where(x > 0, x - 10 * x, 21)
    assert np.array_equal(out, want)
    assert arrays_in_memory(written_by_some, x, out) == set()


def test_a_read_before_any_write_is_still_found():
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    assert run(read_before_written, x, out) == [("uninitialized_read", 6)]
    assert arrays_in_memory(read_before_written, x, out) == {"pair"}


def test_an_index_past_the_end_is_still_found():
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    assert run(past_the_end, x, out) == [("out_of_bounds", 4)]


def test_an_index_of_the_thread_keeps_the_array():
    x, out = np.arange(1, 9).astype(np.float32), np.zeros(8, np.float32)
    assert run(indexed_by_thread, x, out) == []
    assert np.array_equal(out, np.where(np.arange(8) % 2 == 0, x, -x))
    assert arrays_in_memory(indexed_by_thread, x, out) == {"pair"}


def test_a_loop_that_some_threads_leave():
    x, out = np.arange(8, dtype=np.float32) - 2, np.zeros(8, np.float32)
    assert run(left_early, x, out) == []
    want = [sum(v + k for k in range(4) if v >= k) for v in x]
    assert np.array_equal(out, want)


CPP = r"""
struct Item { float value; int weight; };
extern "C" __global__ void items(const float* x, float* out) {
    Item item[2];
    for (int k = 0; k < 2; ++k) { item[k].value = x[threadIdx.x] + k; item[k].weight = 3 * k + 1; }
    float total = 0;
    for (int k = 0; k < 2; ++k) total += item[k].value * item[k].weight;
    out[threadIdx.x] = total;
}
extern "C" __global__ void bits(const float* x, unsigned* out) {
    union { float f; unsigned u; } cell;
    cell.f = x[threadIdx.x];
    out[threadIdx.x] = cell.u;
}
"""


@pytest.mark.parametrize("name", ["items", "bits"])
def test_structs_and_unions(name):
    x = np.linspace(-2, 2, 32).astype(np.float32)
    out = np.zeros(32, np.float32 if name == "items" else np.uint32)
    report = refsim.launch(refsim.RawKernel(CPP, name), 1, 32, x, out)
    assert not report.findings
    want = x + 4 * (x + np.float32(1)) if name == "items" else x.view(np.uint32)
    assert np.array_equal(out, want)
