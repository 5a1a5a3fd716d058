"""Functions that machine code calls NumPy's own loops for: the same bits at every argument and for every width."""

import numpy as np
import pytest
from same_bits import imported, loops_of, same_bits

import refsim
from refsim.engine.native.plans import CALLED

THREADS = 8
SOURCE = """
import math
from numba import cuda, {dtype}, float64


def kernel(x, out):
    cells = cuda.shared.array(8, {dtype})
    t = cuda.threadIdx.x
    cells[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    last, both, steps = {dtype}(0), {dtype}(0), 0.25
    for k in range(8):
        last = math.{name}(cells[(0 - k) + 7])
        both = math.{name}(both * {dtype}(0.5) + last) - last
        steps = float64(math.{name}({dtype}(steps))) + math.{name}(steps) * 0.5
    out[cuda.grid(1), 0] = last
    out[cuda.grid(1), 1] = both
    out[cuda.grid(1), 2] = steps
"""


def awkward(dtype, count):
    """Numbers of all magnitudes and signs, and those where functions have their corners."""
    info = np.finfo(dtype)
    rng = np.random.default_rng(count)
    corners = [
        0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.0, np.nextafter(dtype(1), dtype(2)), -info.eps, info.eps,
        info.smallest_subnormal, -info.smallest_subnormal, info.smallest_normal, info.max, info.min, 0.5, -0.5, 2.0,
        np.log(float(info.max)), np.log2(float(info.smallest_subnormal)), -745.2, 709.79, -103.98, 88.73, 1024, -1075,
    ]  # fmt: skip
    x = (rng.normal(size=count) * 2.0 ** rng.integers(-60, 60, count)).astype(dtype)
    x[rng.random(count) < 0.5] = rng.normal(size=1).astype(dtype)
    chosen = rng.random(count) < 0.5
    x[chosen] = rng.choice(np.array(corners).astype(dtype), int(chosen.sum()))
    return x


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(CALLED))
def test_results_are_numpys_for_every_number_of_blocks(name, dtype, tmp_path):
    kernel = imported(SOURCE.format(name=name, dtype=dtype), tmp_path / f"{name}_{dtype}.py").kernel
    for blocks in (1, 3, 16, 31, 32, 33, 47, 64, 101):
        with np.errstate(all="ignore"):
            x = awkward(np.dtype(dtype).type, blocks * THREADS)
        never, always = np.zeros((x.size, 3)), np.zeros((x.size, 3))
        refsim.launch(kernel, blocks, THREADS, x, never, native="never")
        report = refsim.launch(kernel, blocks, THREADS, x, always, native="always")
        assert not report.findings
        assert same_bits(always, never), blocks
    (loop,) = loops_of(kernel, x, never)
    assert len(loop.variants) == 9
