"""The same C++ functions on the host, by g++, and on the simulator: what each gives for many inputs."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import refsim

CPP_TYPES = {
    "bool": "bool", "signed char": "int8", "unsigned char": "uint8", "short": "int16", "unsigned short": "uint16",
    "int": "int32", "unsigned": "uint32", "long": "int64", "unsigned long": "uint64", "float": "float32",
    "double": "float64",
}  # fmt: skip

SOFT_FLOATS = Path(__file__).with_name("soft_floats.h")
HOST_HEADER = f"""
#include "{SOFT_FLOATS.as_posix()}"
#include <cmath>
#include <cstdint>
#include <cstring>
#define __device__
#define __host__
#define __forceinline__ inline
"""


@dataclass(frozen=True)
class Function:
    """A C++ function to be compared: its name, result type and parameter types."""

    name: str
    result: str
    parameters: tuple[str, ...]


def have_compiler() -> bool:
    """True if there is a host compiler."""
    return shutil.which("g++") is not None


def host_results(
    code: str, functions: list[Function], inputs: dict[str, list[np.ndarray]], folder: Path
) -> dict[str, np.ndarray]:
    """Results of g++'s code, without optimisation, contraction or undefined overflow."""
    lines = [HOST_HEADER, code]
    for f in functions:
        parameters = ", ".join(f"const {kind}* p{i}" for i, kind in enumerate(f.parameters))
        call = ", ".join(f"p{i}[i]" for i in range(len(f.parameters)))
        lines.append(
            f'extern "C" void run_{f.name}({parameters}, {f.result}* out, long n) '
            f"{{ for (long i = 0; i < n; ++i) out[i] = {f.name}({call}); }}"
        )
    source, library = folder / "host.cpp", folder / "host.so"
    lines = [line for line in "\n".join(lines).split("\n") if not line.startswith("#include <cuda_")]
    source.write_text("\n".join(lines))
    flags = ["-std=c++17", "-O0", "-fwrapv", "-ffp-contract=off", "-fno-strict-aliasing", "-shared", "-fPIC", "-w"]
    subprocess.run(["g++", *flags, str(source), "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    results = {}
    for f in functions:
        arrays = inputs[f.name]
        out = np.zeros(len(arrays[0]), CPP_TYPES[f.result])
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, out)]
        getattr(loaded, f"run_{f.name}")(*pointers, ctypes.c_long(len(out)))
        results[f.name] = out
    return results


def simulated_results(
    code: str, functions: list[Function], inputs: dict[str, list[np.ndarray]], device: str = "sim:sm_90"
) -> dict[str, np.ndarray]:
    """Results of one thread per input on the simulator, under all checks."""
    lines = [code]
    for f in functions:
        parameters = ", ".join(f"const {kind}* p{i}" for i, kind in enumerate(f.parameters))
        call = ", ".join(f"p{i}[i]" for i in range(len(f.parameters)))
        lines.append(
            f'extern "C" __global__ void run_{f.name}({parameters}, {f.result}* out, int n) '
            f"{{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = {f.name}({call}); }}"
        )
    module = refsim.RawModule(code="\n".join(lines))
    results = {}
    for f in functions:
        arrays = inputs[f.name]
        out = np.zeros(len(arrays[0]), CPP_TYPES[f.result])
        kernel = module.get_function(f"run_{f.name}")
        report = kernel((-(-len(out) // 64),), (64,), (*arrays, out, len(out)), device=device)
        # signed overflow is meant here: the host wraps too
        errors = [found for found in report.findings if "32-bit index" not in found.message]
        assert not errors, f"{f.name}: {report}\n{code}"
        results[f.name] = out
    return results


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two results have the same bits; any two NaN are the same."""
    if a.dtype.kind == "f":
        bits = f"u{a.dtype.itemsize}"
        return (a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))
    return a == b


def difference(code: str, functions: list[Function], inputs: dict[str, list[np.ndarray]], folder: Path) -> str | None:
    """The first input for which simulator and host differ, in words; None if there is none."""
    expected = host_results(code, functions, inputs, folder)
    got = simulated_results(code, functions, inputs)
    for f in functions:
        wrong = np.flatnonzero(~same(got[f.name], expected[f.name]))
        if len(wrong):
            at = int(wrong[0])
            arguments = ", ".join(repr(array[at]) for array in inputs[f.name])
            return (
                f"{f.name}({arguments}) is {expected[f.name][at]!r} on the host and {got[f.name][at]!r} simulated "
                f"({len(wrong)} of {len(got[f.name])} inputs differ)\n{code}"
            )
    return None


def random_inputs(rng: np.random.Generator, kind: str, count: int) -> np.ndarray:
    """Values of a C++ type: small ones, any bits, and the edges of its range."""
    name = CPP_TYPES[kind]
    if name == "bool":
        return rng.integers(0, 2, count).astype(bool)
    dtype = np.dtype(name)
    small = rng.integers(-20 if dtype.kind != "u" else 0, 21, count)
    if dtype.kind == "f":
        wide = rng.standard_normal(count) * 10.0 ** rng.integers(-6, 12, count)
        edges = rng.choice([0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, np.inf, -np.inf, np.nan], count)
    else:
        info = np.iinfo(dtype)
        wide = rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
        edges = rng.choice(np.array([info.min, info.max, 0, 1, info.max // 2], dtype), count)
    choice = rng.integers(0, 3, count)
    return np.where(choice == 0, small.astype(dtype), np.where(choice == 1, wide, edges).astype(dtype)).astype(dtype)
