"""Mathematical functions: each on the type of its result, under the engine's name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from refsim.dialect import Const, Expr, Intrinsic
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.intrinsics.table import Call, Handler, numbers
from refsim.frontends.cuda_cpp.types import Pointer, Scalar
from refsim.frontends.cuda_cpp.values import Value

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations

# functions of one and of two floats: C's name to the engine's
ONE = {
    name: name
    for name in (
        "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
        "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "lgamma", "ceil", "floor", "trunc",
    )
} | {"fabs": "abs", "tgamma": "gamma"}  # fmt: skip
TWO = {
    "pow": "pow", "atan2": "atan2", "hypot": "hypot", "fmod": "fmod", "remainder": "remainder", "fmin": "fmin",
    "fmax": "fmax", "copysign": "copysign", "nextafter": "nextafter",
}  # fmt: skip
TESTS = {"isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite"}
CONSTANTS = {
    "__builtin_inff": ("float32", math.inf), "__builtin_huge_valf": ("float32", math.inf),
    "__builtin_nanf": ("float32", math.nan), "nanf": ("float32", math.nan), "__builtin_inf": ("float64", math.inf),
    "__builtin_huge_val": ("float64", math.inf), "__builtin_nan": ("float64", math.nan), "nan": ("float64", math.nan),
}  # fmt: skip
ARITHMETIC = {
    "__fadd_rn": "+", "__fsub_rn": "-", "__fmul_rn": "*", "__fdiv_rn": "/", "__dadd_rn": "+", "__dsub_rn": "-",
    "__dmul_rn": "*", "__ddiv_rn": "/",
}  # fmt: skip
HALVES = ("float16", "bfloat16")


def function(name: str, *args: Expr) -> Expr:
    """An engine function on operands of one type; on half types it is computed in float32 and rounded."""
    kind = str(args[0].type)
    if kind in HALVES:
        return folding.convert(function(name, *(folding.convert(a, "float32") for a in args)), kind)
    return Intrinsic(name, kind, args, type=kind)


def constant(value: float, kind: str) -> Expr:
    """A floating-point constant."""
    return folding.convert(Const(np.float64(value), type="float64"), kind)


def _same(t: Declarations, call: Call, count: int) -> list[Expr]:
    return numbers(t, call, *[call.dtype] * count)


def _plain(engine: str, count: int) -> Handler:
    return lambda t, call: function(engine, *_same(t, call, count))


def _test(engine: str) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        value = t.expression(call.arguments[0], call.node)
        if str(value.type) in HALVES:
            value = folding.convert(value, "float32")
        return folding.convert(Intrinsic(engine, str(value.type), (value,), type="bool"), call.dtype)

    return translate


def _constant(kind: str, value: float) -> Handler:
    return lambda t, call: Const(np.dtype(kind).type(value), type=kind)


def _operator(op: str) -> Handler:
    """An operator that is never fused with another one."""
    apart = {"+": "add_rn", "-": "sub_rn", "*": "mul_rn"}

    def translate(t: Declarations, call: Call) -> Value:
        a, b = _same(t, call, 2)
        if t.options.fmad and op in apart:
            return Intrinsic(apart[op], call.dtype, (a, b), type=call.dtype)
        return folding.binary(op, a, b)

    return translate


def reciprocal_root(x: Expr) -> Expr:
    """``1 / sqrt(x)``."""
    return folding.binary("/", constant(1.0, str(x.type)), function("sqrt", x))


def _rsqrt(t: Declarations, call: Call) -> Value:
    return reciprocal_root(_same(t, call, 1)[0])


def _reciprocal(t: Declarations, call: Call) -> Value:
    return folding.binary("/", constant(1.0, call.dtype), _same(t, call, 1)[0])


def _rcbrt(t: Declarations, call: Call) -> Value:
    return folding.binary("/", constant(1.0, call.dtype), function("cbrt", _same(t, call, 1)[0]))


def _exp10(t: Declarations, call: Call) -> Value:
    return function("pow", constant(10.0, call.dtype), _same(t, call, 1)[0])


def _of_pi(engine: str) -> Handler:
    """``sinpi`` and ``cospi``, in double precision."""

    def translate(t: Declarations, call: Call) -> Value:
        wide = folding.convert(_same(t, call, 1)[0], "float64")
        reduced = function("fmod", wide, constant(2.0, "float64"))
        return folding.convert(function(engine, folding.binary("*", reduced, constant(math.pi, "float64"))), call.dtype)

    return translate


def _normcdf(t: Declarations, call: Call) -> Value:
    x = folding.convert(_same(t, call, 1)[0], "float64")
    inner = folding.binary("*", x, constant(-math.sqrt(0.5), "float64"))
    return folding.convert(folding.binary("*", constant(0.5, "float64"), function("erfc", inner)), call.dtype)


def _fma(t: Declarations, call: Call) -> Value:
    a, b, c = _same(t, call, 3)
    kind = call.dtype
    if kind == "bfloat16":
        wide = [folding.convert(x, "float64") for x in (a, b, c)]
        return folding.convert(Intrinsic("fma", "float64", tuple(wide), type="float64"), kind)
    return Intrinsic("hfma" if kind == "float16" else "fma", kind, (a, b, c), type=kind)


def rint(x: Expr) -> Expr:
    """To the nearest integer, ties to even: adding and subtracting 2 to the number of mantissa bits rounds."""
    kind = str(x.type)
    if kind in HALVES:
        return folding.convert(rint(folding.convert(x, "float32")), kind)
    big = constant(2.0 ** (52 if kind == "float64" else 23), kind)
    size = function("abs", x)
    rounded = folding.binary("-", folding.binary("+", size, big), big)
    return folding.select(folding.compare("<", size, big), function("copysign", rounded, x), x)


def round_away(x: Expr) -> Expr:
    """To the nearest integer, ties away from zero."""
    kind = str(x.type)
    whole = function("trunc", x)
    rest = function("abs", folding.binary("-", x, whole))
    up = folding.binary("+", whole, function("copysign", constant(1.0, kind), x))
    return folding.select(folding.compare(">=", rest, constant(0.5, kind)), up, whole)


def _rounded(action: object) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        source = t.expression(call.arguments[0], call.node)
        return folding.convert(action(t.temporary(source)), call.dtype)  # type: ignore[operator]

    return translate


def _powi(t: Declarations, call: Call) -> Value:
    exponent = t.expression(call.arguments[1], call.node)
    return function("pow", t.scalar(call.arguments[0], call.dtype, call.node), folding.convert(exponent, call.dtype))


def _ldexp(t: Declarations, call: Call) -> Value:
    value, exponent = numbers(t, call, call.dtype, "int64")
    return Intrinsic("ldexp", call.dtype, (value, exponent), type=call.dtype)


def _fdim(t: Declarations, call: Call) -> Value:
    a, b = (t.temporary(x) for x in _same(t, call, 2))
    return folding.select(folding.compare("<=", a, b), constant(0.0, call.dtype), folding.binary("-", a, b))


def _sincos(of_pi: bool) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        pointer = t.type_of(call.nodes[1])
        assert isinstance(pointer, Pointer)
        assert isinstance(pointer.pointee, Scalar)
        kind = pointer.pointee.dtype
        angle = t.temporary(t.scalar(call.arguments[0], kind, call.node))
        if of_pi:
            wide = folding.binary("*", folding.convert(angle, "float64"), constant(math.pi, "float64"))
            angle = t.temporary(folding.convert(wide, kind))
        for engine, target in zip(("sin", "cos"), call.arguments[1:]):
            t.store(t.dereference(target, pointer.pointee, call.node), function(engine, angle), call.node)
        return None

    return translate


def _saturate(t: Declarations, call: Call) -> Value:
    x = function("fmax", _same(t, call, 1)[0], constant(0.0, call.dtype))
    return function("fmin", x, constant(1.0, call.dtype))


def _absolute(t: Declarations, call: Call) -> Value:
    return function("abs", _same(t, call, 1)[0])


def _extreme(engine: str) -> Handler:
    """``min`` and ``max``: on floats they skip a NaN, as ``fmin`` and ``fmax`` do."""

    def translate(t: Declarations, call: Call) -> Value:
        name = engine if "int" in call.dtype else f"f{engine}"
        a, b = _same(t, call, 2)
        return Intrinsic(name, call.dtype, (a, b), type=call.dtype)

    return translate


def _signbit(t: Declarations, call: Call) -> Value:
    value = t.expression(call.arguments[0], call.node)
    kind = str(value.type)
    one = function("copysign", constant(1.0, kind), value)
    return folding.convert(folding.compare("<", one, constant(0.0, kind)), call.dtype)


def _pow(t: Declarations, call: Call) -> Value:
    exponent = t.expression(call.arguments[1], call.node)
    return _powi(t, call) if "int" in str(exponent.type) else function("pow", *_same(t, call, 2))


TABLE: dict[str, Handler] = {
    **{name: _plain(engine, 1) for name, engine in ONE.items()},
    **{f"{name}f": _plain(engine, 1) for name, engine in ONE.items()},
    **{name: _plain(engine, 2) for name, engine in TWO.items()},
    **{f"{name}f": _plain(engine, 2) for name, engine in TWO.items()},
    **{name: _test(engine) for name, engine in TESTS.items()},
    **{f"__builtin_{name}": _test(engine) for name, engine in TESTS.items()},
    **{name: _constant(*value) for name, value in CONSTANTS.items()},
    **{name: _operator(op) for name, op in ARITHMETIC.items()},
    **dict.fromkeys(("rsqrt", "rsqrtf"), _rsqrt),
    "__frsqrt_rn": _plain("rsqrt", 1),
    **dict.fromkeys(("__frcp_rn", "__drcp_rn"), _reciprocal),
    **dict.fromkeys(("rcbrt", "rcbrtf"), _rcbrt),
    **dict.fromkeys(("exp10", "exp10f"), _exp10),
    **dict.fromkeys(("sinpi", "sinpif"), _of_pi("sin")),
    **dict.fromkeys(("cospi", "cospif"), _of_pi("cos")),
    **dict.fromkeys(("normcdf", "normcdff"), _normcdf),
    **dict.fromkeys(("fma", "fmaf", "__fmaf_rn", "__fma_rn", "__refsim_fma"), _fma),
    **dict.fromkeys(("rint", "rintf", "nearbyint", "nearbyintf", "lrint", "lrintf", "llrintf"), _rounded(rint)),
    **dict.fromkeys(("round", "roundf", "lroundf", "lround"), _rounded(round_away)),
    **dict.fromkeys(("ldexp", "ldexpf", "scalbn", "scalbnf"), _ldexp),
    **dict.fromkeys(("fdim", "fdimf"), _fdim),
    **dict.fromkeys(("sincos", "sincosf", "__sincosf"), _sincos(False)),
    "sincospif": _sincos(True),
    **dict.fromkeys(("abs", "labs", "llabs", "__refsim_abs"), _absolute),
    **dict.fromkeys(("min", "umin"), _extreme("min")),
    **dict.fromkeys(("max", "umax"), _extreme("max")),
    "powif": _powi,
    "pow": _pow,
    "signbit": _signbit,
    "__saturatef": _saturate,
    **dict.fromkeys(("__fsqrt_rn", "__dsqrt_rn"), _plain("sqrt", 1)),
}
