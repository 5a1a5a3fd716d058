"""How fast C++ kernels are translated and simulated, with every check on.

``python benchmarks/cpp.py`` prints a table, ``--json`` the same rows as JSON. The 16×16 tiled matrix product runs in
C++ and in Numba's Python, by turns, with tiles filled under an ``if`` and under ``?:``. Each file of ``kernels_cupy``
is translated in a process of its own, with all instantiations that launchers use, then once more there, and then in
another process, which finds the translations on disk. Lane code is made from a translation when its kernel is first
launched, and is not counted; processor time is, clang's too. The exit status is 1 when a figure misses its demand.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict

import numpy as np
import simulated_kernels
from simulator import Row, print_table

import refsim

SCHEMA = 1
REPEATS = 5
SIZES = (256, 250)
DEVICE = "sim:sm_90"

GEMM = r"""
constexpr int TILE = 16;

// One 16×16 tile of the product per block, one element per thread, both operands through shared memory.
extern "C" __global__ void gemm(const float* a, const float* b, float* out, int m, int depth, int n) {
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int column = blockIdx.x * TILE + tx;
    const int row = blockIdx.y * TILE + ty;
    float total = 0;
    for (int k0 = 0; k0 < depth; k0 += TILE) {
        if (row < m && k0 + tx < depth) {
            tile_a[ty][tx] = a[row * depth + k0 + tx];
        } else {
            tile_a[ty][tx] = 0;
        }
        if (k0 + ty < depth && column < n) {
            tile_b[ty][tx] = b[(k0 + ty) * n + column];
        } else {
            tile_b[ty][tx] = 0;
        }
        __syncthreads();  // the tile is complete before it is used
        for (int k = 0; k < TILE; k++) {
            total += tile_a[ty][k] * tile_b[k][tx];
        }
        __syncthreads();  // the tile is used before it is replaced
    }
    if (row < m && column < n) {
        out[row * n + column] = total;
    }
}
"""


GUARDS = {
    "if": GEMM,
    "?:": re.sub(r"if \((.*)\) \{\n +(tile_.*) = (.*);\n +\} else \{\n +.* = 0;\n +\}", r"\2 = \1 ? \3 : 0.f;", GEMM),
}


def seconds_of(kernel, grid, block, arguments):
    """Processor seconds of one launch, which must have no finding and the right product."""
    a, b, out = arguments[:3]
    out[:] = 0
    start = time.process_time()
    report = refsim.launch(kernel, grid, block, *arguments, device=DEVICE)
    seconds = time.process_time() - start
    if report.findings or not np.array_equal(out, a @ b):
        raise SystemExit(f"{kernel!r}: a benchmark kernel must be right and have no finding: {report}")
    return seconds


def gemm_rows(n):
    """The product of two n × n matrices: both front ends by turns, the best of a few launches of each."""
    grid, block, arguments, work = simulated_kernels.gemm_launch(n)
    kernels, extents = {guard: refsim.RawKernel(code, "gemm") for guard, code in GUARDS.items()}, (np.int32(n),) * 3
    seconds = {"Numba": [], **{f"C++ {guard}": [] for guard in GUARDS}}
    for _ in range(1 + REPEATS):  # the first launch translates
        for guard, kernel in kernels.items():
            seconds[f"C++ {guard}"].append(seconds_of(kernel, grid, block, (*arguments, *extents)))
        seconds["Numba"].append(seconds_of(simulated_kernels.gemm, grid, block, arguments))
    best = {name: min(times[1:]) for name, times in seconds.items()}
    ratios = {name: time_ / best["Numba"] for name, time_ in best.items() if name != "Numba"}
    return [
        *(Row(f"GEMM {n}, {name}", work / time_, "multiply-adds/s") for name, time_ in best.items()),
        *(Row(f"GEMM {n}, time of {name} ÷ time of Numba", ratio, "×", "<= 1.3") for name, ratio in ratios.items()),
    ]


def processor_seconds():
    """Of this process, and of those it has waited for."""
    return time.process_time() + sum(os.times()[2:4])


def translation_times(file):
    """Seconds of translating all kernels of a file of kernels_cupy: for the first time in a process, and again."""
    import refsim.raw  # modules are loaded before the clock runs
    from kernels_cupy import SOURCES
    from kernels_cupy.source import OPTIONS
    from refsim.devices import device_named

    (source,) = [source for source in SOURCES if source.file == file]
    code, device = source.code, device_named(DEVICE)
    seconds = []
    for _ in range(2):
        start = processor_seconds()
        module = refsim.RawModule(code=code, options=OPTIONS, name_expressions=source.instantiations)
        for name in source.instantiations:
            module.get_function(name).translation(device)
        seconds.append(processor_seconds() - start)
    return seconds


def in_processes_of_their_own(file):
    """Seconds in a fresh interpreter, there once more, and in another one that finds the translations on disk."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "REFSIM_CACHE_DIR": folder}
        command = [sys.executable, __file__, "--translate", file]
        first, second = (
            json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout)
            for _ in range(2)
        )
    return [*first, second[0]]


def translation_rows():
    """The best of three processes for each file."""
    from kernels_cupy import SOURCES

    rows = []
    for source in SOURCES:
        times = np.min([in_processes_of_their_own(source.file) for _ in range(3)], axis=0)
        title = f"{source.file}, {len(source.instantiations)} kernels"
        rows.append(Row(f"translation of {title}, cold", 1e3 * times[0], "ms", "<= 1500"))
        rows.append(Row(f"translation of {title}, from memory", 1e3 * times[1], "ms", "<= 20"))
        rows.append(Row(f"translation of {title}, from disk", 1e3 * times[2], "ms", "<= 20"))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--translate", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.translate:
        print(json.dumps(translation_times(options.translate)))
        return 0
    rows = [row for n in SIZES for row in gemm_rows(n)] + translation_rows()
    if options.json:
        host = {"python": platform.python_version(), "numpy": np.__version__, "cpus": os.cpu_count()}
        figures = [asdict(row) | {"met": row.met} for row in rows]
        print(json.dumps({"schema": SCHEMA, "host": host, "rows": figures}, indent=2))
    else:
        print_table(rows)
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
