"""What a real GPU answers for every function of cuda.libdevice, as test data for the simulator.

    python benchmarks/libdevice_on_gpu.py tests/refsim/data/libdevice_h200.json

Arguments are drawn here; the bytes of the results are stored, compressed and in base 64, one text per result. A
function that is not compiled is listed under "failed" with the reason.
"""

from __future__ import annotations

import base64
import itertools
import json
import math
import sys
import zlib
from typing import Any

import numpy as np
from numba import cuda
from numba.cuda import libdevice, libdevicefuncs

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.3, 2.5, -3.7, 1e-5, 12.4, -26.3, 0.999, 1e10, -1e-30, 3.5, 1 / 3, math.inf,
          -math.inf, math.nan, 100.7, -0.75, 0.013, 7.0, 1e-40, 1e-310]  # fmt: skip
INTEGERS = [0, 1, -1, 2, 7, -7, 0x7FFFFFFF, -0x80000000, 0x12345678, -0x1234567, 0x6420, 31]
LONG_INTEGERS = [*INTEGERS, 2**63 - 1, -(2**63), 0x123456789ABCDEF, 2**53 + 1]
SMALL = [0, 1, 2, 3, 5, -1, 10, 31]


def choices(kind: str, count: int) -> list[Any]:
    """Values of one argument of a function with `count` arguments."""
    values = {"int64": LONG_INTEGERS, "int32": INTEGERS, "int16": SMALL}.get(kind, FLOATS)
    return values if count == 1 else values[:20] if count == 2 else values[::3]


def arguments(name: str, kinds: list[str]) -> list[np.ndarray]:
    """Columns of arguments."""
    each = [choices(kind, len(kinds)) for kind in kinds]
    if name in ("jn", "jnf", "yn", "ynf"):
        each[0] = SMALL
    rows = list(itertools.product(*each))
    with np.errstate(over="ignore"):
        return [np.array(column).astype(kind) for column, kind in zip(zip(*rows), kinds)]


def kernel(function: Any, inputs: int, outputs: int) -> Any:
    """A kernel that applies the function to every row."""
    if outputs == 2:

        @cuda.jit
        def one_pair(a, out, other):
            i = cuda.grid(1)
            if i < out.size:
                out[i], other[i] = function(a[i])

        @cuda.jit
        def two_pair(a, b, out, other):
            i = cuda.grid(1)
            if i < out.size:
                out[i], other[i] = function(a[i], b[i])

        return one_pair if inputs == 1 else two_pair

    @cuda.jit
    def one(a, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = function(a[i])

    @cuda.jit
    def two(a, b, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = function(a[i], b[i])

    @cuda.jit
    def three(a, b, c, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = function(a[i], b[i], c[i])

    return (one, two, three)[inputs - 1]


def encoded(array: np.ndarray) -> str:
    """The bytes of an array, compressed, in base 64."""
    return base64.b64encode(zlib.compress(array.tobytes(), 9)).decode()


def decoded(text: str, kind: str) -> np.ndarray:
    """The array that `encoded` was given."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), kind)


def measure(name: str) -> list[str]:
    """The results of one function."""
    result, declared = libdevicefuncs.functions[f"__nv_{name}"]
    signature = libdevicefuncs.create_signature(result, declared)
    kinds = [str(kind) for kind in signature.args]
    returned = signature.return_type
    results = [str(kind) for kind in returned] if hasattr(returned, "__len__") else [str(returned)]
    inputs = arguments(name, kinds)
    outputs = [np.zeros(inputs[0].size, kind) for kind in results]
    kernel(getattr(libdevice, name), len(inputs), len(outputs))[(outputs[0].size + 127) // 128, 128](*inputs, *outputs)
    return [encoded(array) for array in outputs]


def main(path: str) -> None:
    found: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for full_name in libdevicefuncs.functions:
        name = full_name.removeprefix("__nv_")
        try:
            found[name] = measure(name)
        except Exception as error:  # the list of what failed is a result
            failed[name] = f"{type(error).__name__}: {error}"[:200]
    device = cuda.get_current_device()
    data = {"device": device.name.decode() if isinstance(device.name, bytes) else device.name, "failed": failed}
    with open(path, "w") as file:
        json.dump({**data, "functions": found}, file, indent=0)
    print(len(found), "measured,", len(failed), "failed", list(failed.items())[:5])


if __name__ == "__main__":
    main(sys.argv[1])
