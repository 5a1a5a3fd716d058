"""``cuda.libdevice``: every function's signature, from numba-cuda's frozen table, and the engine's function behind it.

numba-cuda declares unsigned integers as signed ones, and returns what C functions store through pointers in a tuple.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from refsim.dialect import Intrinsic
from refsim.frontends import numba_types
from refsim.frontends.numba_values import TupleValue, Value

if TYPE_CHECKING:
    from refsim.frontends.numba_expressions import Expressions


@dataclass(frozen=True)
class LibraryFunction:
    """The types that a call takes and gives, and the engine's function with its own."""

    args: tuple[str, ...]
    results: tuple[str, ...]
    engine: str
    operands: tuple[str, ...]
    engine_results: tuple[str, ...]


# the engine's name, where it is not CUDA's (without the f of float32)
_SPELLINGS = {
    "fabs": "abs", "llabs": "abs", "tgamma": "gamma", "nearbyint": "rint", "round": "round_away", "scalbn": "ldexp",
    "llrint": "to_int64_rn", "llround": "round_to_int64", "frsqrt_rn": "rsqrt", "brevll": "brev", "clzll": "clz",
    "ffsll": "ffs", "popcll": "popc", "llmax": "max", "llmin": "min", "umax": "max", "umin": "min", "ullmax": "max",
    "ullmin": "min", "uhadd": "hadd", "urhadd": "rhadd", "umul24": "mul24", "umulhi": "mulhi", "mul64hi": "mulhi",
    "umul64hi": "mulhi", "usad": "sad", "double2hiint": "high_word", "double2loint": "low_word",
    "hiloint2double": "from_words", "double_as_longlong": "as_int64", "longlong_as_double": "as_float64",
    "float_as_int": "as_int32", "int_as_float": "as_float32", "float2half_rn": "to_half_bits",
    "half2float": "from_half_bits", "isnand": "isnan", "isinfd": "isinf", "isfinited": "isfinite", "finite": "isfinite",
    "signbitd": "signbit", "isnanf": "isnan", "isinff": "isinf", "powi": "pow", "saturatef": "saturate",
}  # fmt: skip
_TESTS = frozenset(["isnan", "isinf", "isfinite", "signbit"])
_UNSIGNED = re.compile(r"u(ll)?(max|min|hadd|rhadd|mul24|mulhi|mul64hi|sad|int2|ll2)|byte_perm")
_DIRECTED = re.compile(r"[fd](add|sub|mul|div|rcp|sqrt)_(r[nduz])")
_FUSED = re.compile(r"fmaf?_(r[nduz])")
_CONVERSION = re.compile(r"(?:double|float|int|uint|ll|ull)2(double|float|int|uint|ll|ull)_(r[nduz])")
_CONVERTED = {
    "double": "float64", "float": "float32", "int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64",
}  # fmt: skip


@cache
def functions() -> dict[str, LibraryFunction]:
    """All functions by name."""
    return {name: _function(name, s.args, s.results) for name, s in numba_types.declared("cuda.libdevice").items()}


def _function(name: str, args: tuple[str, ...], results: tuple[str, ...]) -> LibraryFunction:
    operands = args
    if _UNSIGNED.match(name):
        operands = tuple(kind.replace("int", "uint") if "int" in kind else kind for kind in args)
    engine = _engine_name(name, args[0])
    produced = results
    if engine in _TESTS:
        produced = ("bool",)
    elif engine.startswith("to_uint"):
        produced = (engine.split("_")[1],)
    elif name.startswith("powi"):
        operands = produced = ("float64", "float64")
        produced = ("float64",)
    elif operands != args and "float" not in results[0]:
        produced = (operands[0],)
    return LibraryFunction(args, results, engine, operands, produced)


def _engine_name(name: str, operand: str) -> str:
    for pattern, prefix in ((_DIRECTED, None), (_FUSED, "fma")):
        found = pattern.fullmatch(name)
        if found and name != "frsqrt_rn":
            return f"{prefix or found[1]}_{found[found.lastindex or 1]}"
    found = _CONVERSION.fullmatch(name)
    if found:
        return f"to_{_CONVERTED[found[1]]}_{found[2]}"
    if name in ("fast_fdividef", "fast_powf"):
        return name.removeprefix("fast_") if name.endswith("dividef") else "fast_pow"
    name = name.removeprefix("fast_")
    if name in _SPELLINGS:
        return _SPELLINGS[name]
    if name in ("jnf", "ynf"):
        return name
    stem = name.removesuffix("f") if operand == "float32" else name
    return _SPELLINGS.get(stem, stem)


def call(t: Expressions, name: str, values: list[Value]) -> Value:
    """Translate a call of ``cuda.libdevice.name``."""
    function = functions().get(name)
    if function is None:
        raise t.wrong(f"cuda.libdevice has no function {name!r}")
    args = [t.scalar(value) for value in values]
    t.typed(numba_types.call, f"cuda.libdevice.{name}", tuple(str(arg.type) for arg in args))
    operands = []
    for arg, declared, kind in zip(args, function.args, function.operands, strict=True):
        operands.append(t.convert(t.convert(arg, declared), kind))
    if len(function.results) == 1:
        produced = Intrinsic(function.engine, operands[0].type, tuple(operands), type=function.engine_results[0])  # type: ignore[arg-type]
        return t.convert(produced, function.results[0])
    held = tuple(t.temporary(operand) for operand in operands)
    items = []
    for position, (kind, declared) in enumerate(zip(function.engine_results, function.results, strict=True)):
        part = Intrinsic(f"{function.engine}.{position}", str(held[0].type), held, type=kind)
        items.append(t.convert(part, declared))
    return TupleValue(tuple(items))
