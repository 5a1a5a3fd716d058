"""The launches whose counters are compared with hardware: every instantiation of kernels_cupy, and access patterns.

`nsight.py` runs them on a GPU under Nsight Compute; tests/refsim/test_counters_hardware.py runs them in the simulator.
Arrays begin at a multiple of 256 bytes, as device allocations do, so that both see the same addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 (makes bfloat16 a NumPy type)
import numpy as np

import kernels_cupy
import refsim
import refsim.counters
from oracle.operator import find_operator

PATTERNS = Path(__file__).parent / "access_patterns.cu"
ALIGNMENT = 256


@dataclass(frozen=True)
class Job:
    """Something to run with a launcher, which launches one kernel or several: `name` is unique."""

    name: str
    run: Callable[[Any], Any]


def aligned(values: Any, dtype: Any = None) -> np.ndarray:
    """A copy that begins at a multiple of 256 bytes, as an allocation of its own."""
    values = np.asarray(values, dtype)
    room = np.empty(values.nbytes + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    own = np.frombuffer(memoryview(room)[start : start + values.nbytes], np.uint8)  # no part of another array
    out = own.view(values.dtype).reshape(values.shape)
    out[...] = values
    return out


def floats(seed: int, dtype: str, *shape: int) -> np.ndarray:
    """Numbers in -1 … 1."""
    return aligned(np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype))


# ------------------------------------------------------------------------------------------------ kernels_cupy


def library_inputs(operator: str, dtype: str) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Name, inputs and parameters of the cases of an operator: whole tiles, and ragged ones."""
    x = floats
    if operator == "sum":
        yield "rows", {"x": x(1, dtype, 2, 4608)}, {"axis": 1}
        yield "ragged rows", {"x": x(2, dtype, 3, 1061)}, {"axis": 1}
        yield "columns", {"x": x(3, dtype, 300, 5)}, {"axis": 0}
    elif operator == "softmax":
        yield "whole", {"x": x(4, dtype, 2, 2048)}, {}
        yield "ragged", {"x": x(5, dtype, 3, 1061)}, {}
    elif operator == "rmsnorm":
        yield "whole", {"x": x(6, dtype, 2, 2048), "weight": x(7, dtype, 2048)}, {}
        yield "ragged", {"x": x(8, dtype, 3, 1061), "weight": x(9, dtype, 1061)}, {}
    elif operator == "matmul":
        yield "whole", {"a": x(10, dtype, 64, 64), "b": x(11, dtype, 64, 128)}, {}
        ragged = {"a": x(12, dtype, 67, 19), "b": x(13, dtype, 19, 70), "bias": x(14, dtype, 70)}
        yield "ragged", ragged, {}
        yield "transposed", {"a": x(15, dtype, 32, 64), "b": x(16, dtype, 64, 32)}, {
            "transpose_a": True, "transpose_b": True,
        }  # fmt: skip
    elif operator == "attention":
        whole = {"q": x(17, dtype, 1, 2, 32, 64), "k": x(18, dtype, 1, 2, 32, 64), "v": x(19, dtype, 1, 2, 32, 64)}
        yield "whole", whole, {}
        ragged = {"q": x(20, dtype, 1, 2, 17, 37), "k": x(21, dtype, 1, 1, 35, 37), "v": x(22, dtype, 1, 1, 35, 67)}
        yield "ragged", ragged, {"causal": "bottom_right"}
    elif operator == "rope":
        for position in ("int32", "int64"):
            for pairing in ("neox", "gptj"):
                for name, half, head_dim in (("whole", 32, 64), ("ragged", 9, 23)):
                    arrays = {
                        "x": x(23, dtype, 3, 2, head_dim),
                        "positions": aligned([2, 0, 5], position),
                        "cos": x(24, dtype, 7, half),
                        "sin": x(25, dtype, 7, half),
                    }
                    yield f"{name} {position} {pairing}", arrays, {"pairing": pairing}
    else:
        raise ValueError(f"no inputs for the operator {operator!r}; add them to benchmarks/measured_launches.py")


def library_jobs() -> Iterator[Job]:
    """Every kernel of kernels_cupy in every dtype."""
    for kernel in kernels_cupy.KERNELS:
        operator = find_operator(kernel.operators[0])
        for dtype in kernel.dtypes:
            for case, given, params in library_inputs(operator.name, dtype):
                inputs = {**({"bias": None} if operator.name == "matmul" else {}), **given}
                complete = operator.signature.complete(params)
                yield Job(
                    f"{kernel.name} {dtype} {case}",
                    lambda launcher, k=kernel, i=inputs, p=complete: k.run(launcher, dict(i), dict(p)),
                )


# ---------------------------------------------------------------------------------------------- access patterns

TYPES = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "Two", 16: "Four"}
LANES = np.arange(32)
SHARED_BYTES = 16384

TABLES: dict[str, Any] = {
    "in order": LANES,
    "reversed": LANES[::-1],
    "one on": LANES + 1,
    "same": 0 * LANES,
    "pairs": LANES // 2,
    "quads": LANES // 4,
    "alternating": LANES % 2,
    "half warps alike": LANES % 16,
    "quarter warps alike": LANES % 8,
    "stride 2": 2 * LANES,
    "stride 3": 3 * LANES,
    "stride 4": 4 * LANES,
    "stride 8": 8 * LANES,
    "stride 16": 16 * LANES,
    "stride 17": 17 * LANES,
    "stride 32": 32 * LANES,
    "stride 33": 33 * LANES,
    "even lanes": np.where(LANES % 2 == 0, LANES, -1),
    "even lanes, dense": np.where(LANES % 2 == 0, LANES // 2, -1),
    "first half": np.where(LANES < 16, LANES, -1),
    "first five": np.where(LANES < 5, LANES, -1),
    "lanes 12 to 19": np.where((LANES >= 12) & (LANES < 20), LANES, -1),
    "one lane": np.where(LANES == 9, 9, -1),
    "swapped neighbours": LANES ^ 1,
    "halves swapped": LANES ^ 16,
    "two of a bank": 32 * (LANES % 2) + LANES // 2,
    "halves of a bank": np.where(LANES < 16, LANES, LANES + 16),
    "alike but for bit 1": LANES & ~2,
    "alike but for bit 2": LANES & ~4,
    "alike but for bit 3": LANES & ~8,
    "alike but for bit 1, apart": 17 * (LANES & ~2),
    "pairs, and quads crosswise": np.where(LANES & 4, LANES & ~2, LANES & ~1),
    "pairs but for the last": np.where(LANES < 30, LANES & ~1, LANES),
    "two of four": np.where(LANES % 4 < 2, LANES, -1),
    "first and third of four": np.where(LANES % 2 == 0, LANES // 4 * 4 + LANES % 4 // 2, -1),
    "two and two": LANES // 16,
    "two of each half": LANES // 8,
    "one of four": np.where(LANES % 4 == 1, LANES // 4, -1),
    "last of four, apart": np.where(LANES % 4 == 3, 5 * LANES, -1),
}


def random_tables() -> dict[str, Any]:
    """Tables of random places: many lanes to few places, few to many, some lanes idle."""
    generator = np.random.default_rng(26)
    tables: dict[str, Any] = {}
    for places in (8, 40, 96, 256):
        for number in range(3):
            table = generator.integers(0, places, 32)
            idle = generator.random(32) < (0, 0.2, 0.6)[number]
            tables[f"random {places} {number}"] = np.where(idle, -1, table)
    return tables


@cache
def pattern(name: str) -> Any:
    """A kernel of access_patterns.cu."""
    code = f'#line 1 "{PATTERNS.as_posix()}"\n{PATTERNS.read_text(encoding="utf-8")}'
    module = refsim.RawModule(code=code, options=("--std=c++17",), name_expressions=tuple(PATTERN_KERNELS))
    return module.get_function(name)


PATTERN_KERNELS = [
    *(f"{kernel}<{kind}>" for kernel in ("load_global", "store_global", "load_shared", "store_shared")
      for kind in TYPES.values()),
    *("transpose<32>", "transpose<33>", "transpose_swizzled"),
    *("add_global", "fetch_and_add_global", "fetch_and_add_shared", "local_array"),
]  # fmt: skip


FEW_TABLES = (
    "in order", "reversed", "one on", "same", "pairs", "stride 2", "stride 3", "stride 8", "stride 33",
    "half warps alike", "quarter warps alike", "even lanes, dense", "first five", "one lane", "halves swapped",
)  # fmt: skip


def pattern_jobs() -> Iterator[Job]:
    """Tables with every size of access, and the kernels that have patterns of their own."""
    drawn = random_tables()
    tables = {**TABLES, **drawn}
    few = {title: tables[title] for title in (*FEW_TABLES, *(name for name in drawn if name.endswith((" 0", " 1"))))}
    for name in ("transpose<32>", "transpose<33>", "transpose_swizzled"):
        yield Job(f"{name} 32×32", lambda launcher, n=name: _transpose(launcher, n))
    yield _job("local_array", "stride 3", TABLES["stride 3"], out=True)
    yield _job("load_global<unsigned>", "40 threads", np.arange(40), array=True, out=True)
    yield _job("load_shared<unsigned>", "40 threads", 2 * np.arange(40), out=True)
    yield _job("load_shared<Four>", "40 threads", np.arange(40), out=True)
    for size in (4, 8, 16, 2, 1):
        kind = TYPES[size]
        for title, table in tables.items():
            if (table.max() + 1) * size <= SHARED_BYTES:
                yield _job(f"load_shared<{kind}>", title, table, out=True)
                yield _job(f"store_shared<{kind}>", title, table, out=True)
    for title, table in few.items():
        for kind in TYPES.values():
            yield _job(f"load_global<{kind}>", title, table, array=True, out=True)
            yield _job(f"store_global<{kind}>", title, table, array=True)
        yield _job("add_global", title, table, cells=True, weight=True)
        yield _job("fetch_and_add_global", title, table, cells=True, weight=True, out=True)
        yield _job("fetch_and_add_shared", title, table, weight=True, out=True)


def _job(
    name: str,
    title: str,
    table: Any,
    array: bool = False,
    cells: bool = False,
    weight: bool = False,
    out: bool = False,
) -> Job:
    threads = len(table)

    def run(launcher: Any) -> None:
        args = []
        if array:
            args.append(launcher.array(aligned(np.zeros(16 * 1200, np.uint8))))
        if cells:
            args.append(launcher.array(aligned(np.zeros(1200, np.uint32))))
        args.append(launcher.array(aligned(table, np.int32)))
        if weight:
            args.append(launcher.array(aligned(np.arange(1, threads + 1), np.uint32)))
        if out:
            args.append(launcher.array(aligned(np.zeros(threads, np.uint32))))
        launcher.launch(pattern(name), 1, threads, *args)

    return Job(f"{name} {title}", run)


def _transpose(launcher: Any, name: str) -> None:
    x, out = aligned(np.arange(1024, dtype=np.float32)), aligned(np.zeros(1024, np.float32))
    launcher.launch(pattern(name), 1, (32, 8), launcher.array(x), launcher.array(out))


SUITES = {"kernels_cupy": library_jobs, "patterns": pattern_jobs}


class Counting:
    """A launcher that launches in the simulator and keeps the counters of each launch."""

    def __init__(self) -> None:
        self.counters: list[refsim.counters.Counters] = []

    def launch(self, kernel: Any, grid: Any, block: Any, *args: Any, shared_bytes: int = 0) -> None:
        """Run and count a kernel."""
        report = refsim.launch(kernel, grid, block, *args, shared_bytes=shared_bytes, checks="none", counters=True)
        assert report.counters is not None
        self.counters.append(report.counters)

    def empty(self, shape: Any, dtype: Any) -> np.ndarray:
        """An array of any content."""
        return aligned(np.zeros(shape, dtype))

    zeros = empty

    def array(self, host_array: np.ndarray) -> np.ndarray:
        """The array itself."""
        return host_array
