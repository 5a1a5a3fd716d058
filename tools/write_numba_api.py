"""Write docs/reference/numba_api.md: what of numba.cuda kernels may call, from the tables that the front end uses.

python tools/write_numba_api.py            # rewrite the page
python tools/write_numba_api.py --check    # exit 1 if the page is not what the tables say
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from refsim.engine.intrinsics import INTRINSICS
from refsim.frontends import numba_api, numba_fp8, numba_libdevice, numba_types

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "numba_api.md"

INTRODUCTION = """# numba.cuda in kernels

What a kernel may use of `numba.cuda`, `math`, `cmath`, NumPy and Python's builtins when it runs in the simulator. Types
are numba-cuda {version}'s own answers, frozen in `refsim/frontends/numba_types.json`. This page is written by
`python tools/write_numba_api.py` from the tables that the front end uses, and a test compares the two.

Scalar types: {types}.
"""
STRUCTURE = """
## Threads, memory, synchronisation

| what | names |
| --- | --- |
| indices | `threadIdx blockIdx blockDim gridDim` (`.x .y .z`), `laneid`, `warpsize`, `grid`, `gridsize` |
| memory | `shared.array` (shape 0 is dynamic shared memory), `local.array`, `const.array_like` |
| barriers | `syncthreads`, `syncthreads_count`, `syncthreads_and`, `syncthreads_or`, `cg.this_grid().sync` |
| fences | `threadfence_block`, `threadfence`, `threadfence_system` |
| warps | {warps} |
| waiting | `nanosleep`: no effect on values |
| loads and stores with a cache hint | {hints}: arrays of integers and floats; no effect on values |

## Atomics

`cuda.atomic.NAME(array, index, value)` on shared and global memory; `cas(array, index, old, value)` and
`compare_and_swap(array, old, value)`. On float16, `fp16.atomicAdd` adds to what a
pointer of cffi points to: `cuda.fp16.atomicAdd(ffi.from_buffer(array[i:]), value)`.

| operation | array types |
| --- | --- |
"""
FUNCTIONS = """
## Functions of numbers

| module | functions |
| --- | --- |
"""
ATTRIBUTES = """
Numbers have `.real`, `.imag`, `.conjugate()` and `.item()`; integers `.bit_count()`. Complex numbers are `complex64`
and `complex128`; their products and quotients are rounded operation by operation.

## cuda.libdevice

All {count} functions. A float64 result differs from the exact one by at most so many units in the last place; a float32
result of a function that is not listed under 0.5 is the float64 result rounded once, or within 2 ulps (`sinf`, `cosf`,
`tanhf`). Bessel functions keep the bound for |x| up to 25, and for `jn` and `yn` for orders up to 128 and |x| up to the
order; beyond, the error is at most 1e-15 in absolute terms. That of `lgamma` does not hold near its zeros below 0.
`fast_powf` is 2 to the power of y times the logarithm, as on the device; the other fast functions are the plain ones.

An NVIDIA H200 gave the same bits for every function listed under 0.5 but `fast_fdividef` (2 ulps), and results within
both errors for the others; `tests/refsim/test_libdevice_on_hardware.py` holds what it answered. Where it differs by
more: `jn` and `jnf` of orders from 2 on are NaN there at 0 and at tiny arguments, `powi` and `powif` multiply
repeatedly and lose up to 2000 ulps for large exponents, the fast sine and cosine are meant for |x| up to pi.

| ulps | functions |
| --- | --- |
"""
HALVES = """
## cuda.fp16 and cuda.bf16

Every function is rounded once from an exact or float64 result. `htanh_approx` is computed as `htanh`; the device's
differs by one unit in the last place at times. Names that begin with two underscores are those of CUDA C++.

| module | functions |
| --- | --- |
"""
REST = """
## 8-bit floats

`numba.cuda._internal.cuda_fp8`: constructors and conversions of {types}; {codes}. Saturation and rounding must be known
when the kernel is translated.

## What is refused

| name | why |
| --- | --- |
| powers of complex numbers | numba-cuda has no device code for them |
| `cvt_bfloat16raw_to_fp8`, `cvt_bfloat16raw_to_e8m0`, `cvt_e8m0_to_bf16raw` | structures of raw bits |
| `fp8x2_*`, `fp8x4_*` | structures of several 8-bit floats |
| atomics on `complex64`, `complex128`, `bfloat16` | numba-cuda has none |

The error names the line of the kernel.
"""


def code(names: Iterable[str]) -> str:
    """Names as one run of code."""
    return " ".join(f"`{name}`" for name in names)


def by_module() -> dict[str, list[str]]:
    """Functions of numbers that the typing table holds, by module; warp operations have a row of their own."""
    found: dict[str, list[str]] = {}
    groups = numba_types._data()["calls"].values()
    for name in sorted({name for names in groups for group in names for name in group.split()}):
        module, _, last = name.rpartition(".")
        if name.endswith("_sync") or name.startswith("cuda.sync") or name == "cuda.nanosleep":
            continue
        found.setdefault(module or "builtins", []).append(last)
    found["builtins"] = sorted([*found["builtins"], "min", "max", "len", "range", "print", "enumerate", "zip", "sum"])
    return found


def libdevice_by_error() -> dict[float, list[str]]:
    """Functions of cuda.libdevice by the label of their error; exact ones count as correctly rounded."""
    found: dict[float, list[str]] = {}
    for name, function in numba_libdevice.functions().items():
        ulps = INTRINSICS[function.engine, function.operands[0]].ulps
        found.setdefault(max(ulps, 0.5), []).append(name)
    return dict(sorted(found.items()))


def page() -> str:
    """The text of the page."""
    data = numba_types._data()
    called = [name for names in data["calls"].values() for group in names for name in group.split()]
    warps = {name.removeprefix("cuda.") for name in called if name.endswith("_sync")}
    warps |= {"syncwarp", "activemask", "lanemask_lt"}
    text = INTRODUCTION.format(version=data["numba_cuda"], types=", ".join(numba_types.SCALAR_TYPES))
    text += STRUCTURE.format(warps=code(sorted(warps)), hints=code(numba_api.CACHE_HINTS))
    text += "".join(f"| `{op}` | {' '.join(kinds)} |\n" for op, kinds in data["atomics"].items())
    text += FUNCTIONS
    text += "".join(f"| `{module}` | {code(names)} |\n" for module, names in sorted(by_module().items()))
    text += ATTRIBUTES.format(count=len(numba_libdevice.functions()))
    text += "".join(f"| {ulps:g} | {code(names)} |\n" for ulps, names in libdevice_by_error().items())
    text += HALVES
    for module in ("fp16", "bf16"):
        names = sorted(numba_types.declared(f"cuda.{module}"))
        text += f"| `{module}` | {code(names)} |\n"
    return text + REST.format(types=code(numba_fp8.TYPES), codes=code(numba_fp8.CODES))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    if not parser.parse_args().check:
        PAGE.write_text(page())
        return 0
    if PAGE.read_text() == page():
        return 0
    print(f"{PAGE} differs from the tables; rewrite it with: python tools/{Path(__file__).name}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
