"""Random kernels: the lanes of refsim against plain Python, thread by thread, bit for bit.

A few hundred kernels run by default. Thousands: ``REFSIM_FUZZ_KERNELS=5000 python -m pytest
tests/refsim/test_control_flow_fuzz.py``; another region of seeds: ``REFSIM_FUZZ_SEED=100000``.
"""

import importlib.util
import math
import os
import types

import numpy as np
import pytest
from kernel_generator import MOST_THREADS, OUT_COLUMNS, kernel_source

import refsim

KERNELS = int(os.environ.get("REFSIM_FUZZ_KERNELS", "240"))
FIRST_SEED = int(os.environ.get("REFSIM_FUZZ_SEED", "0"))
CHUNK = 20
LINES = [10, 25, 60]
BATCHES = [65536, 65536, 65536, 1, 50]  # lanes in lockstep: usually all, sometimes one block, sometimes a few
LAUNCHES = [(1, 33), (3, 20), (7, 9), (40, 2), (2, 64)]


class Scalars:
    """An array whose elements read as Python numbers, or as NumPy float32 scalars for a float32 array."""

    def __init__(self, array):
        self.array = array
        self.size = array.size

    def __getitem__(self, index):
        value = self.array[index]
        if isinstance(value, np.ndarray):
            return Scalars(value)
        return value if isinstance(value, np.float32) else value.item()

    def __setitem__(self, index, value):
        self.array[index] = value


class OneThread:
    """What ``cuda`` is for one thread of a sequential run."""

    def __init__(self, block, thread, threads, shared):
        self.blockIdx = types.SimpleNamespace(x=block)
        self.blockDim = types.SimpleNamespace(x=threads)
        self.threadIdx = types.SimpleNamespace(x=thread)
        self.local = types.SimpleNamespace(array=lambda size, dtype: Scalars(np.zeros(size, np.int64)))
        self.shared = types.SimpleNamespace(array=lambda size, dtype: shared)
        self.index = block * threads + thread

    def grid(self, dimensions):
        return self.index

    @staticmethod
    def jit(device):
        return lambda function: function


def arguments(seed, count):
    rng = np.random.default_rng(seed)
    return (
        rng.integers(-50, 50, count),
        rng.integers(-50, 50, 5),
        rng.integers(-50, 50, (3, 4)),
        rng.uniform(-10, 10, count),
        np.zeros((count, OUT_COLUMNS), np.int64),
        np.zeros((count, 2)),
        np.zeros(count, np.float32),
    )


def device_max(a, b):
    """``max``, but of two float32 zeros of different sign +0, as the device has it."""
    return a + b if isinstance(a, np.float32) and isinstance(b, np.float32) and a == b == 0 else max(a, b)


def device_min(a, b):
    """``min``, but of two float32 zeros of different sign -0, as the device has it."""
    return -(-a + -b) if isinstance(a, np.float32) and isinstance(b, np.float32) and a == b == 0 else min(a, b)


def by_plain_python(source, grid, block, arrays):
    """Run the module's kernel once per thread; where a thread meets a barrier, the others catch up."""
    body = source.split("\n", 2)[2]  # without the imports
    body = body.replace("cuda.syncthreads()", "yield") + "    yield\n"
    code = compile(body, "<reference>", "exec")
    views = [Scalars(array) for array in arrays]
    for block_index in range(grid):
        cells = Scalars(np.zeros(MOST_THREADS, np.int64))
        threads = []
        for thread in range(block):
            world = {
                "math": math,
                "cuda": OneThread(block_index, thread, block, cells),
                "float32": np.float32,
                "float64": float,
                "int64": np.int64,
                "max": device_max,
                "min": device_min,
            }
            exec(code, world)
            threads.append(world["kernel"](*views))
        while threads:
            threads = [thread for thread in threads if next(thread, "returned") != "returned"]


def imported(source, path):
    """The module as a file, so that the source can be found the ordinary way."""
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("chunk", range((KERNELS + CHUNK - 1) // CHUNK))
def test_random_kernels_agree_with_plain_python(chunk, tmp_path):
    for seed in range(FIRST_SEED + chunk * CHUNK, FIRST_SEED + min((chunk + 1) * CHUNK, KERNELS)):
        source = kernel_source(seed, budget=LINES[seed % len(LINES)], exchanges=seed % 2 == 1)
        grid, block = LAUNCHES[seed % len(LAUNCHES)]
        expected = arguments(seed, grid * block)
        by_plain_python(source, grid, block, expected)
        got = arguments(seed, grid * block)
        module = imported(source, tmp_path / f"fuzz_{seed}.py")
        report = refsim.launch(module.kernel, grid, block, *got, lanes_per_batch=BATCHES[seed % len(BATCHES)])
        assert not report.findings, f"seed {seed}, ({grid}, {block}): {report.findings[0].message}\n{source}"
        for name, have, want in zip(("out", "fout", "gout"), got[4:], expected[4:]):
            if have.tobytes() != want.tobytes():
                where = np.argwhere((have != want) | (np.signbit(have) != np.signbit(want)))[:5].tolist()
                pytest.fail(f"seed {seed}, ({grid}, {block}): {name} differs at {where}\n{source}")
