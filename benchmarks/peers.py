"""How fast refsim is next to its peers, on the same kernels, on this machine, in one call.

Peers: Numba's own simulator (``NUMBA_ENABLE_CUDASIM=1``), OpenCL on the CPU (PoCL: Debian's pocl-opencl-icd and PyPI's
pyopencl), and Oclgrind with its data-race and initialisation checks (Debian's oclgrind). A peer that is not installed
is skipped by name. ``python benchmarks/peers.py`` prints a table, ``--json`` the same rows as JSON; ``--only NAME``
runs some of the kernels. The exit status is 1 when a figure misses its demand.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from peer_kernels import WORKLOADS, Workload
from simulator import SCHEMA, Row, print_table

HERE = Path(__file__).resolve()
REPEATS = 5
OCLGRIND_SIZE = {"gemm": 64}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


def chosen(names: list[str]) -> list[Workload]:
    """Workloads by name, all of them if no name is given."""
    return [w for w in WORKLOADS if not names or w.name in names]


def best(action: Any, repeats: int) -> float:
    """The shortest of a few runs, in seconds."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


# ---- each side, in a process of its own ---------------------------------------------------------------------------


def cudasim_rates(names: list[str]) -> dict[str, float]:
    """Units of work per second under Numba's simulator, for the kernels that it can run."""
    from numba import cuda

    rates = {}
    for w in chosen(names):
        if w.small:
            grid, block, arguments, work = w.arguments(w.small)
            rates[w.name] = work / best(partial(cuda.jit(w.kernel)[grid, block], *arguments), 1)
    return rates


def refsim_rates(names: list[str]) -> dict[str, dict[str, float]]:
    """Units of work per second in refsim, with every check and with none; results are compared with NumPy's."""
    import refsim

    rates: dict[str, dict[str, float]] = {}
    for w in chosen(names):
        sizes = {"": w.size, "ragged": 500} if w.name == "gemm" else {"": w.size}
        rates[w.name] = {}
        for label, size in sizes.items():
            for checks in ("all", "none"):
                grid, block, arguments, work = w.arguments(size)
                want = w.expected(*(a.copy() if isinstance(a, np.ndarray) else a for a in arguments))
                report = refsim.launch(w.kernel, grid, block, *arguments, checks=checks)
                got = arguments[w.output]
                same = np.array_equal(got, want) if w.exact else np.allclose(got, want, **TOLERANCE)
                if not same or report.findings:
                    raise SystemExit(f"{w.name}: wrong result or finding: {report}")
                launch = partial(refsim.launch, w.kernel, grid, block, *arguments, checks=checks)
                rates[w.name][f"{label or 'aligned'} {checks}"] = work / best(launch, REPEATS)
                if w.name.startswith("gemm") and not label:
                    both = work / best(partial(launch, processes=2), REPEATS)
                    rates[w.name][f"processes {checks}"] = both
                if checks == "all" and not label:
                    rates[w.name] |= machine_code(launch)
    return rates


def machine_code(launch: Any) -> dict[str, float]:
    """How much faster the loops of a launch run as machine code than as NumPy, and what compiling took, in seconds."""
    from refsim.devices import device_named
    from refsim.engine.native import machine_code, running
    from refsim.simulator import compiled

    spent = {"loops": 0.0, "compiling": 0.0}

    def timed(action: Any, what: str) -> Any:
        def run(*arguments: Any) -> Any:
            start = time.perf_counter()
            try:
                return action(*arguments)
            finally:
                spent[what] += time.perf_counter() - start

        return run

    for loop in compiled(launch.args[0], launch.args[3:], device_named("sim:sm_90")).native_loops:
        loop.variants.clear()
    lane_code = best(partial(launch, native="never"), REPEATS)
    whole, loops = [], []
    with (
        mock.patch.object(running.NativeLoop, "__call__", timed(running.NativeLoop.__call__, "loops")),
        mock.patch.object(machine_code, "compiled", timed(machine_code.compiled, "compiling")),
    ):
        for _ in range(2 * REPEATS):  # the first ones compile
            spent["loops"] = 0.0
            start = time.perf_counter()
            launch()
            whole.append(time.perf_counter() - start)
            loops.append(spent["loops"])
    if not spent["compiling"]:
        return {}
    rest = min(whole) - min(loops)
    return {"machine code": (lane_code - rest) / min(loops), "compiling": spent["compiling"]}


def opencl_rates(names: list[str], sizes: dict[str, int]) -> dict[str, float]:
    """Units of work per second through the first OpenCL platform; sizes replace the workloads' own."""
    import pyopencl as cl

    context = cl.Context(cl.get_platforms()[0].get_devices())
    queue = cl.CommandQueue(context)
    program = cl.Program(context, HERE.with_name("peer_kernels.cl").read_text()).build()
    rates = {}
    for w in chosen(names):
        if not w.opencl or (sizes and w.name not in sizes):
            continue
        grid, block, arguments, work = w.arguments(sizes.get(w.name, w.size))
        want = w.expected(*(a.copy() if isinstance(a, np.ndarray) else a for a in arguments))
        blocks = grid if isinstance(grid, tuple) else (grid,)
        threads = block if isinstance(block, tuple) else (block,)
        total = tuple(g * b for g, b in zip(blocks, threads, strict=True))
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        buffers = [cl.Buffer(context, flags, hostbuf=a) if isinstance(a, np.ndarray) else a for a in arguments]
        longest = next(a for a in arguments if isinstance(a, np.ndarray)).shape[-1]
        kernel = getattr(program, w.opencl)
        kernel.set_args(*buffers, np.int32(longest))

        def run(kernel: Any = kernel, total: Any = total, threads: Any = threads) -> None:
            cl.enqueue_nd_range_kernel(queue, kernel, total, threads)
            queue.finish()

        run()
        got = np.empty_like(arguments[w.output])
        cl.enqueue_copy(queue, got, buffers[w.output])
        if np.mean(np.isclose(got, want, **TOLERANCE)) < 0.97:  # a contracted multiply-add moves some counts
            raise SystemExit(f"{w.name}: the OpenCL kernel is wrong")
        rates[w.name] = work / best(run, 1 if sizes else REPEATS)
    return rates


def part(name: str, names: list[str], *before: str, **environment: str) -> Any:
    """Run one side in a fresh interpreter; None, with a line on stderr, if it cannot run here."""
    command = [*before, sys.executable, str(HERE), "--part", name, *(x for n in names for x in ("--only", n))]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode:
        print(f"... {name} cannot run: {(done.stderr.strip().splitlines() or ['?'])[-1]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


# ---- the table ----------------------------------------------------------------------------------------------------


def opencl_platforms() -> list[str]:
    """Names of the OpenCL platforms, none without pyopencl."""
    try:
        import pyopencl as cl

        return [p.name for p in cl.get_platforms()]
    except Exception as error:  # pyopencl raises its own error where there is no platform
        print(f"... no OpenCL: {error}", file=sys.stderr)
        return []


def measure(names: list[str]) -> list[Row]:
    """All figures, as rows."""
    print("... refsim", file=sys.stderr)
    mine = part("refsim", names)
    if mine is None:
        raise SystemExit("refsim itself failed")
    print("... Numba's simulator", file=sys.stderr)
    numba = part("cudasim", names, NUMBA_ENABLE_CUDASIM="1") or {}
    pocl: dict[str, float] = {}
    grind: dict[str, float] = {}
    if opencl_platforms():
        print("... PoCL", file=sys.stderr)
        pocl = part("pocl", names) or {}
        if shutil.which("oclgrind"):
            print("... Oclgrind", file=sys.stderr)
            grind = part("oclgrind", names, "oclgrind", "--data-races", "--uninitialized") or {}
        else:
            print("... Oclgrind is not installed: skipped", file=sys.stderr)
    else:
        print("... PoCL is not installed: skipped", file=sys.stderr)
    rows = []
    for w in chosen(names):
        rates = mine[w.name]
        checked, unchecked = rates["aligned all"], rates["aligned none"]
        rows.append(Row(f"{w.name}, checked", checked, f"{w.unit}/s"))
        rows.append(Row(f"{w.name}, unchecked", unchecked, f"{w.unit}/s"))
        if w.name in numba:
            demand = ">= 15000" if w.name == "gemm" else ">= 5000" if w.barriers else ">= 300"
            rows.append(Row(f"{w.name}, checked ÷ Numba's simulator", checked / numba[w.name], "×", demand))
        if w.name in grind:
            rows.append(Row(f"{w.name}, checked ÷ Oclgrind", checked / grind[w.name], "×", ">= 3000"))
        if w.name in pocl:
            share = {"gemm": ">= 0.333", "gemm_registers": ">= 0.667"}.get(w.name, ">= 0.1")
            rows.append(Row(f"{w.name}, checked ÷ PoCL", checked / pocl[w.name], "×", share))
            if w.name.startswith("gemm"):
                rows.append(Row(f"{w.name}, unchecked ÷ PoCL", unchecked / pocl[w.name], "×", ">= 0.5"))
                both = max(unchecked, rates["processes none"]) / pocl[w.name]
                rows.append(Row(f"{w.name}, unchecked in 1 or 2 processes ÷ PoCL", both, "×", ">= 1"))
        if "machine code" in rates:
            rows.append(Row(f"{w.name}, loops in NumPy ÷ in machine code", rates["machine code"], "×", ">= 3"))
            rows.append(Row(f"{w.name}, compiling them", rates["compiling"], "s"))
        if "ragged all" in rates:
            rows.append(Row(f"{w.name}, time per element n = 500 ÷ 512", checked / rates["ragged all"], "×", "<= 1.7"))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a kernel; may be repeated")
    parser.add_argument("--part", choices=["refsim", "cudasim", "pocl", "oclgrind"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.only) - {w.name for w in WORKLOADS}
    if unknown:
        parser.error(f"no kernel {', '.join(sorted(unknown))}; there are {', '.join(w.name for w in WORKLOADS)}")
    if options.part:
        rates = {
            "refsim": lambda: refsim_rates(options.only),
            "cudasim": lambda: cudasim_rates(options.only),
            "pocl": lambda: opencl_rates(options.only, {}),
            "oclgrind": lambda: opencl_rates(options.only, OCLGRIND_SIZE),
        }[options.part]()
        print(json.dumps(rates))
        return 0
    rows = measure(options.only)
    if options.json:
        print(json.dumps({"schema": SCHEMA, "rows": [vars(row) | {"met": row.met} for row in rows]}, indent=2))
    else:
        print_table(rows)
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
