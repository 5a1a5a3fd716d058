"""How fast refsim simulates, with every check on, next to Numba's own simulator on the same kernels.

``python benchmarks/simulator.py`` prints a table, ``--json`` the same rows as JSON. Both simulators run on this
machine in one call: the incumbent (``NUMBA_ENABLE_CUDASIM=1``) in a subprocess, on sizes that it can finish.
The exit status is 1 when a figure misses its demand.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import tracemalloc
from dataclasses import asdict, dataclass

import numpy as np
import simulated_kernels as kernels
from peer_kernels import WORKLOADS

SCHEMA = 1
REPEATS = 7


@dataclass(frozen=True)
class Row:
    """One measured figure; ``demand`` is a lower limit (``>=``), an upper one (``<=``), or none."""

    name: str
    value: float
    unit: str
    demand: str = ""

    @property
    def met(self) -> bool:
        if not self.demand:
            return True
        relation, limit = self.demand.split()
        return self.value >= float(limit) if relation == ">=" else self.value <= float(limit)


# ---- the incumbent, in a process of its own -----------------------------------------------------------------------


def incumbent_rates():
    """Work per second of Numba's simulator: runs only under NUMBA_ENABLE_CUDASIM=1."""
    from numba import cuda

    def rate(kernel, grid, block, arguments, work):
        start = time.perf_counter()
        cuda.jit(kernel)[grid, block](*arguments)
        seconds = time.perf_counter() - start
        return (work if work is not None else int(arguments[0].sum())) / seconds

    return {
        "gemm": rate(kernels.gemm, *kernels.gemm_launch(48)),
        "saxpy": rate(kernels.saxpy, *kernels.saxpy_launch(4096)),
        "saxpy_grid_stride": rate(kernels.saxpy_grid_stride, *kernels.saxpy_grid_stride_launch(1 << 16)),
        "mandelbrot": rate(kernels.mandelbrot, *kernels.mandelbrot_launch(48, 200)),
    }


def in_subprocess(part, **environment):
    """Run one part of this script in a fresh interpreter and return what it printed as JSON."""
    done = subprocess.run(
        [sys.executable, __file__, "--part", part],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


# ---- refsim -------------------------------------------------------------------------------------------------------


def checked_launch(kernel, grid, block, arguments):
    import refsim

    report = refsim.launch(kernel, grid, block, *arguments)
    if report.findings:
        raise SystemExit(f"{kernel.__name__}: a benchmark kernel must have no finding: {report.findings[0]}")


def rate(kernel, grid, block, arguments, work):
    """Work per second, the best of a few launches after one that translates the kernel."""
    checked_launch(kernel, grid, block, arguments)
    if work is None:
        work = int(arguments[0].sum())
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        checked_launch(kernel, grid, block, arguments)
        seconds.append(time.perf_counter() - start)
    return work / min(seconds)


def verified_gemm_rate(n):
    grid, block, arguments, work = kernels.gemm_launch(n)
    result = rate(kernels.gemm, grid, block, arguments, work)
    a, b, out = arguments
    if not np.array_equal(out, a @ b):
        raise SystemExit(f"gemm {n}: wrong result")
    return result


def first_launches():
    """Milliseconds of importing the simulator, of the first launch of a process (saxpy), and of the GEMM's first."""
    start = time.perf_counter()
    from refsim import simulator  # noqa: F401  the package itself loads its engine on first use

    times = {"import": 1e3 * (time.perf_counter() - start)}
    for name, (kernel, launch) in {
        "saxpy": (kernels.saxpy, kernels.saxpy_launch(64)),
        "gemm": (kernels.gemm, kernels.gemm_launch(16)),
    }.items():
        grid, _, arguments, _ = launch
        block = 64 if name == "saxpy" else launch[1]
        start = time.perf_counter()
        checked_launch(kernel, grid, block, arguments)
        times[name] = 1e3 * (time.perf_counter() - start)
    return times


def small_launch_ms():
    """Milliseconds of one translated launch of one block of 64 threads, the median of many."""
    _, _, arguments, _ = kernels.saxpy_launch(64)
    checked_launch(kernels.saxpy, 1, 64, arguments)
    seconds = []
    for _ in range(300):
        start = time.perf_counter()
        checked_launch(kernels.saxpy, 1, 64, arguments)
        seconds.append(time.perf_counter() - start)
    return 1e3 * statistics.median(seconds)


def peak_bytes(kernel, grid, block, arguments):
    """The most memory that was allocated at one time during a launch, beyond the arguments."""
    checked_launch(kernel, grid, block, arguments)
    tracemalloc.start()
    try:
        checked_launch(kernel, grid, block, arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def memory_rows():
    """Peak memory against the size of the arrays, and against the length of the kernel."""
    rows = []
    for exponent in (20, 22, 24):
        grid, block, arguments, _ = kernels.saxpy_launch(1 << exponent)
        array_bytes = sum(a.nbytes for a in arguments[1:])
        ratio = peak_bytes(kernels.saxpy, grid, block, arguments) / array_bytes
        rows.append(Row(f"peak memory ÷ arrays, saxpy 2^{exponent}", ratio, "×"))
    peaks = []
    for rounds in (50, 1000):
        x, out = np.ones(4096, np.float32), np.zeros(1 << 16, np.float32)
        peaks.append(peak_bytes(kernels.long_loop, 512, 128, (x, out, rounds)))
    growth = max(row.value for row in rows) / rows[0].value
    rows.append(Row("peak memory ÷ arrays, largest ÷ smallest array", growth, "×", "<= 1.5"))
    rows.append(Row("peak memory, 1000 rounds of a loop ÷ 50 rounds", peaks[1] / peaks[0], "×", "<= 1.5"))
    return rows


def process_rows():
    """Two processes against one, turn by turn, on kernels whose blocks do not meet; needs two idle cores."""
    import refsim

    launches = {"GEMM 512": (kernels.gemm, kernels.gemm_launch(512))}
    launches |= {w.kernel.__name__: (w.kernel, w.arguments(w.size)) for w in WORKLOADS if w.opencl == "softmax"}
    rows = []
    for name, (kernel, (grid, block, arguments, _)) in launches.items():
        for checks, said in (("all", "checked"), ("none", "unchecked")):
            best = {1: float("inf"), 2: float("inf")}
            for count in (1, 2) * REPEATS:
                start = time.perf_counter()
                report = refsim.launch(kernel, grid, block, *arguments, checks=checks, processes=count)
                best[count] = min(best[count], time.perf_counter() - start)
                if report.processes != count or report.findings:
                    raise SystemExit(f"{name}: {report.processes} processes: {report.why_one_process} {report}")
            rows.append(Row(f"{name}, {said}, 2 processes ÷ 1", best[1] / best[2], "×"))
    return rows


def measure(progress):
    """All figures, as rows."""
    progress("Numba's simulator (a minute or so)")
    old = in_subprocess("incumbent", NUMBA_ENABLE_CUDASIM="1")
    progress("refsim, rates")
    new = {
        "gemm": verified_gemm_rate(256),
        "saxpy": rate(kernels.saxpy, *kernels.saxpy_launch(1 << 21)),
        "saxpy_grid_stride": rate(kernels.saxpy_grid_stride, *kernels.saxpy_grid_stride_launch(1 << 21)),
        "mandelbrot": rate(kernels.mandelbrot, *kernels.mandelbrot_launch(512, 200)),
    }
    ragged = verified_gemm_rate(250)
    progress("refsim, latency")
    first = [in_subprocess("first-launch") for _ in range(3)]
    rows = [
        Row("GEMM 48, Numba's simulator", old["gemm"], "multiply-adds/s"),
        Row("GEMM 256, refsim", new["gemm"], "multiply-adds/s"),
        Row("GEMM 250, refsim", ragged, "multiply-adds/s"),
        Row("GEMM, refsim ÷ Numba's simulator", new["gemm"] / old["gemm"], "×", ">= 5000"),
        Row("GEMM 250 ÷ GEMM 256", ragged / new["gemm"], "×", ">= 0.333"),
    ]
    for name in ("saxpy", "saxpy_grid_stride", "mandelbrot"):
        unit = "steps/s" if name == "mandelbrot" else "elements/s"
        title = name.replace("_", " ")
        rows.append(Row(f"{title}, Numba's simulator", old[name], unit))
        rows.append(Row(f"{title}, refsim", new[name], unit))
        rows.append(Row(f"{title}, refsim ÷ Numba's simulator", new[name] / old[name], "×", ">= 200"))
    rows += [
        Row("launch of 64 threads, translated", small_launch_ms(), "ms", "<= 0.5"),
        Row("import of the simulator", min(t["import"] for t in first), "ms"),
        Row("first launch of a process, saxpy", min(t["saxpy"] for t in first), "ms", "<= 60"),
        Row("first launch of the GEMM", min(t["gemm"] for t in first), "ms", "<= 60"),
    ]
    progress("refsim, memory")
    rows += memory_rows()
    progress("refsim, processes")
    return rows + process_rows()


def print_table(rows):
    width = max(len(row.name) for row in rows)
    for row in rows:
        mark = "" if not row.demand else f"  demanded {row.demand}: {'met' if row.met else 'MISSED'}"
        print(f"{row.name:<{width}}  {row.value:>12.4g} {row.unit:<16}{mark}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--part", choices=["incumbent", "first-launch"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(incumbent_rates() if options.part == "incumbent" else first_launches()))
        return 0
    rows = measure(lambda text: print(f"... {text}", file=sys.stderr))
    if options.json:
        host = {"python": platform.python_version(), "numpy": np.__version__, "cpus": os.cpu_count()}
        figures = [asdict(row) | {"met": row.met} for row in rows]
        print(json.dumps({"schema": SCHEMA, "host": host, "rows": figures}, indent=2))
    else:
        print_table(rows)
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
