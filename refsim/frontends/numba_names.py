"""What a name in a Numba kernel stands for: device functions, scalar types and mathematical functions by full name.

numba is never imported here. If the kernel's module imported it, its objects are recognised by identity; the
attributes of ``numba.cuda`` are followed by name, so that functions that an installed version or its simulator
lacks still resolve.
"""

from __future__ import annotations

import builtins
import cmath
import math
import sys
import types
from enum import EnumType
from typing import Any

import numpy as np

CUDA_MODULES = ("numba.cuda", "numba_cuda.numba.cuda", "numba.cuda.simulator", "numba_cuda.numba.cuda.simulator")
# modules below numba.cuda, and the path of what they define
SUBMODULES = {
    "libdevice": "cuda.libdevice", "fp16": "cuda.fp16", "bf16": "cuda.bf16", "_internal.cuda_fp16": "cuda.fp16",
    "_internal.cuda_bf16": "cuda.bf16", "_internal.cuda_fp8": "cuda.fp8", "cache_hints": "cuda",
}  # fmt: skip
SCALARS = frozenset(
    [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "bfloat16",
        "complex64",
        "complex128",
    ]
)
_ALIASES = {"bool_": "bool", "boolean": "bool", "intp": "int64", "uintp": "uint64", "float": "float64", "int": "int64",
            "half": "float16", "single": "float32", "double": "float64", "intc": "int32", "uintc": "uint32",
            "byte": "int8", "ubyte": "uint8", "short": "int16", "ushort": "uint16", "__nv_bfloat16": "bfloat16",
            "complex": "complex128"}  # fmt: skip
_BUILTINS = (
    "abs",
    "min",
    "max",
    "round",
    "pow",
    "bool",
    "int",
    "float",
    "complex",
    "len",
    "range",
    "print",
    "divmod",
    "enumerate",
    "zip",
)

CUDA_MEMBERS = (
    "threadIdx", "blockIdx", "blockDim", "gridDim", "laneid", "warpsize", "grid", "gridsize", "shared", "local",
    "const", "shared.array", "local.array", "const.array_like", "syncthreads", "syncthreads_count", "syncthreads_and",
    "syncthreads_or", "threadfence", "threadfence_block", "threadfence_system", "syncwarp", "shfl_sync", "shfl_up_sync",
    "shfl_down_sync", "shfl_xor_sync", "all_sync", "any_sync", "eq_sync", "ballot_sync", "match_any_sync",
    "match_all_sync", "activemask", "lanemask_lt", "popc", "brev", "clz", "ffs", "selp", "fma", "cbrt", "atomic",
    "fp16", "bf16", "libdevice", "nanosleep", "ldca", "ldcg", "ldcs", "ldlu", "ldcv", "stcg", "stcs", "stwb", "stwt",
    *(f"atomic.{op}" for op in ("add", "sub", "max", "min", "nanmax", "nanmin", "and_", "or_", "xor", "inc", "dec",
                                "exch", "cas", "compare_and_swap")),
)  # fmt: skip


class CudaName(str):
    """A dotted path below ``numba.cuda``, such as ``cuda.threadIdx.x``."""


def is_cuda_module(value: Any) -> bool:
    """True for ``numba.cuda`` itself, real or simulated."""
    if isinstance(value, types.ModuleType):
        return value.__name__ in CUDA_MODULES
    return type(value).__name__ == "FakeCUDAModule"


def cuda_name(value: Any) -> CudaName | None:
    """Path of a member of ``numba.cuda`` that a kernel's module imported by itself."""
    if isinstance(value, (types.ModuleType, types.FunctionType, type)) and not isinstance(value, EnumType):
        home = value.__name__ if isinstance(value, types.ModuleType) else value.__module__ or ""
        for package in CUDA_MODULES:
            below = SUBMODULES.get(home.removeprefix(package + "."))
            if below is not None:
                return CudaName(below if isinstance(value, types.ModuleType) else f"{below}.{value.__name__}")
    for module_name in CUDA_MODULES:
        module = sys.modules.get(module_name)
        if module is None:
            continue
        for path in CUDA_MEMBERS:
            found: Any = module
            for part in path.split("."):
                found = getattr(found, part, None)
            if found is not None and found is value:
                return CudaName("cuda." + path)
    return None


def scalar_type(value: Any) -> str | None:
    """Scalar type that a dtype, a NumPy scalar class or a numba type stands for."""
    if isinstance(value, np.dtype):
        return value.name if value.name in SCALARS else None
    if isinstance(value, type) and issubclass(value, np.generic):
        name = np.dtype(value).name
        return name if name in SCALARS else None
    if value is bool:
        return "bool"
    if type(value).__module__.split(".")[0] in ("numba", "numba_cuda"):
        name = str(value)
        name = _ALIASES.get(name, name)
        return name if name in SCALARS else None
    if isinstance(value, str):
        name = _ALIASES.get(value, value)
        return name if name in SCALARS else None
    if value is int:
        return "int64"
    if value is float:
        return "float64"
    return None


def function_name(value: Any) -> str | None:
    """Full name of a function the kernel may call on scalars: ``math.exp``, ``np.sqrt``, ``abs``."""
    name = getattr(value, "__name__", None)
    if not isinstance(name, str):
        return None
    if getattr(math, name, None) is value:
        return f"math.{name}"
    if getattr(cmath, name, None) is value:
        return f"cmath.{name}"
    if name in _BUILTINS and getattr(builtins, name) is value:
        return name
    if getattr(np, name, None) is value and callable(value):
        return f"np.{name}"
    return None


def declared_types(value: Any) -> tuple[tuple[str | None, ...], str | None] | None:
    """Types of arguments and result that a device function declares in ``cuda.jit("int32(float32)", device=True)``.

    A type that is not a scalar is None. None if nothing, or more than one signature is declared.
    """
    overloads = getattr(value, "overloads", None)
    if isinstance(overloads, dict) and getattr(value, "_can_compile", True) is False:
        declared = [getattr(each, "signature", None) for each in overloads.values()]
    else:
        declared = list(getattr(value, "signatures", None) or []) if getattr(value, "device", False) is True else []
    if len(declared) != 1 or declared[0] is None:
        return None
    result = scalar_type(getattr(declared[0], "return_type", None))
    return tuple(scalar_type(kind) for kind in declared[0].args), result


def python_function(value: Any) -> types.FunctionType | None:
    """The Python function behind a ``cuda.jit`` object or a plain function."""
    for attribute in ("py_func", "fn"):
        inner = getattr(value, attribute, None)
        if isinstance(inner, types.FunctionType):
            return inner
    return value if isinstance(value, types.FunctionType) else None
