"""Cost of a launch against threads, loop trips and array size, each over three decades; is it linear?

``python benchmarks/scaling.py`` prints a table and the slope of each line on a doubly logarithmic scale (1 is linear);
``--plot FILE.svg`` draws them (needs matplotlib). What can run as machine code is measured as NumPy and as that. The
exit status is 1 where the cost of the largest size is more than
1.3 times what a straight line through a tenth of it would give.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import cuda, float32

import refsim
from refsim.devices import device_named
from refsim.simulator import compiled

BLOCK = 128
REPEATS = 3
MOST = 1.3


def one_element_each(x, out):
    """As many threads as elements."""
    i = cuda.grid(1)
    out[i] = x[i] * float32(2.0) + float32(1.0)


def many_trips(x, out, trips):
    """The same threads, a longer loop."""
    i = cuda.grid(1)
    total = x[i]
    for _ in range(trips):
        total = total * float32(0.5) + x[i]
    out[i] = total


def strides_over(x, out):
    """The same threads, a larger array."""
    total = float32(0.0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i]
    out[cuda.grid(1)] = total


def _threads(n: int) -> Any:
    return one_element_each, n // BLOCK, (np.ones(n, np.float32), np.zeros(n, np.float32))


def _trips(n: int) -> Any:
    return many_trips, 32, (np.ones(4096, np.float32), np.zeros(32 * BLOCK, np.float32), n)


def _array(n: int) -> Any:
    return strides_over, 32, (np.ones(n, np.float32), np.zeros(32 * BLOCK, np.float32))


@dataclass(frozen=True)
class Line:
    """One quantity that grows while the others stay."""

    name: str
    launch: Callable[[int], Any]
    sizes: tuple[int, ...]


LINES = (
    Line("threads", _threads, (1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24)),
    Line("trips of a loop", _trips, (16, 50, 160, 500, 1600, 5000, 16000)),
    Line("elements of an array", _array, (1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26)),
)


def ways(line: Line) -> dict[str, str]:
    """How the loops of a line's kernel can run: what to call it, and what to launch with."""
    kernel, _, arguments = line.launch(line.sizes[0])
    loops = compiled(kernel, arguments, device_named("sim:sm_90")).native_loops
    return {"NumPy": "never", "machine code": "always"} if loops else {"NumPy": "never"}


def seconds(line: Line, size: int, native: str) -> float:
    """The shortest of a few launches, after one that translates the kernel."""
    kernel, grid, arguments = line.launch(size)
    taken = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        report = refsim.launch(kernel, grid, BLOCK, *arguments, native=native)
        taken.append(time.perf_counter() - start)
        if report.findings:
            raise SystemExit(f"{kernel.__name__}: a benchmark kernel must have no finding: {report.findings[0]}")
    return min(taken[1:])


def slope(sizes: tuple[int, ...], costs: list[float]) -> float:
    """Exponent of growth over the last decade, where fixed costs have faded."""
    first = next(i for i, size in enumerate(sizes) if size * 10 >= sizes[-1])
    return float(np.polyfit(np.log(sizes[first:]), np.log(costs[first:]), 1)[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the lines into this file")
    options = parser.parse_args()
    measured: dict[str, dict[str, list[float]]] = {}
    missed = False
    for line in LINES:
        measured[line.name] = {}
        for way, native in ways(line).items():
            costs = measured[line.name][way] = [seconds(line, size, native) for size in line.sizes]
            near = next(i for i, size in enumerate(line.sizes) if size * 16 >= line.sizes[-1])
            growth = costs[-1] / costs[near] / (line.sizes[-1] / line.sizes[near])
            missed |= growth > MOST
            bend = f"slope {slope(line.sizes, costs):.2f}; ÷ line through {line.sizes[near]}: {growth:.2f}"
            print(f"{line.name}, {way}: {bend}")
            for size, cost in zip(line.sizes, costs, strict=True):
                print(f"  {size:>10}  {1e3 * cost:>10.2f} ms  {1e9 * cost / size:>10.1f} ns each")
    if options.plot:
        draw(measured, options.plot)
    return 1 if missed else 0


def draw(measured: dict[str, dict[str, list[float]]], target: Path) -> None:
    """The lines, side by side, with a linear one through the last point of each."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "refsim"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(LINES), figsize=(11, 3.6), sharey=True)
    for axis, line in zip(axes, LINES, strict=True):
        for way, costs in measured[line.name].items():
            axis.loglog(line.sizes, costs, "o-", label=f"as {way}")
        costs = measured[line.name]["NumPy"]
        axis.loglog(line.sizes, [costs[-1] * s / line.sizes[-1] for s in line.sizes], ":", color="gray", label="linear")
        axis.set_xlabel(line.name)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds per launch, every check on")
    axes[-1].legend()
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    sys.exit(main())
