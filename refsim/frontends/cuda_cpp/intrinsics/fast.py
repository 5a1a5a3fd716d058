"""The fast functions of float32, ``__expf`` and friends, and the functions that they replace under ``-use_fast_math``.

Each is the formula that the CUDA documentation gives, every operation of it rounded correctly. A device computes the
same formula with hardware functions of 1 or 2 ulp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from refsim.dialect import Expr, Intrinsic
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.intrinsics import mathematics
from refsim.frontends.cuda_cpp.intrinsics.mathematics import constant, function
from refsim.frontends.cuda_cpp.intrinsics.table import Call, Handler, numbers
from refsim.frontends.cuda_cpp.types import FLOAT
from refsim.frontends.cuda_cpp.values import LValue, Value

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations

KIND = "float32"
LOG2_E, LOG2_10 = 1.4426950408889634, 3.321928094887362
LN_2, LOG10_2 = 0.6931471805599453, 0.3010299956639812

Formula = Callable[..., Expr]


def divide(x: Expr, y: Expr) -> Expr:
    """``x * (1 / y)``."""
    return Intrinsic("div_approx", KIND, (x, y), type=KIND)


def _times(x: Expr, factor: float) -> Expr:
    return folding.binary("*", x, constant(factor, KIND))


def _log2(x: Expr) -> Expr:
    return function("log2", x)


# name: operands, formula
FORMULAS: dict[str, tuple[int, Formula]] = {
    "__sinf": (1, lambda x: function("sin", x)),
    "__cosf": (1, lambda x: function("cos", x)),
    "__tanf": (1, lambda x: divide(function("sin", x), function("cos", x))),
    "__tanhf": (1, lambda x: function("tanh", x)),
    "__expf": (1, lambda x: function("exp2", _times(x, LOG2_E))),
    "__exp10f": (1, lambda x: function("exp2", _times(x, LOG2_10))),
    "__logf": (1, lambda x: _times(_log2(x), LN_2)),
    "__log2f": (1, _log2),
    "__log10f": (1, lambda x: _times(_log2(x), LOG10_2)),
    "__powf": (2, lambda x, y: function("exp2", folding.binary("*", y, _log2(x)))),
    "__fdividef": (2, divide),
    "fdividef": (2, divide),
}
REPLACED = ("sin", "cos", "tan", "tanh", "exp", "exp10", "log", "log2", "log10", "pow")
"""Functions that become fast ones; CUDA C++ Programming Guide, "Functions affected by -use_fast_math", and NVRTC."""


def _fast(count: int, formula: Formula) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        return formula(*(t.temporary(x) for x in numbers(t, call, *[KIND] * count)))

    return translate


def _either(accurate: Handler, fast: Handler) -> Handler:
    """The fast function where the options ask for it and the result is a float."""

    def translate(t: Declarations, call: Call) -> Value | LValue:
        return (fast if t.options.fast_math and call.result == FLOAT else accurate)(t, call)

    return translate


TABLE: dict[str, Handler] = {name: _fast(*each) for name, each in FORMULAS.items()}
TABLE |= {
    name: _either(mathematics.TABLE[name], TABLE[f"__{stem}f"]) for stem in REPLACED for name in (stem, f"{stem}f")
}
