"""Write refsim/frontends/numba_types.json: numba-cuda's typing rules, asked of its own typing context.

The typing context resolves an operation on types without a GPU, a driver or NVVM. Every question that the front end may
ask is asked once here, of all combinations of the twelve scalar types, and the answers are frozen, so that refsim types
a kernel as numba-cuda does without importing numba.

    python tools/freeze_numba_types.py            # rewrite the table
    python tools/freeze_numba_types.py --check    # exit 1 if the table differs from the installed numba-cuda
"""

from __future__ import annotations

import argparse
import builtins
import cmath
import itertools
import json
import math
import operator
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock


def words(text: str) -> list[str]:
    return text.split()


TABLE = Path(__file__).resolve().parents[1] / "refsim" / "frontends" / "numba_types.json"

TYPES = words(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 complex64 complex128"
)
BINARY = {
    "+": (operator.add, operator.iadd), "-": (operator.sub, operator.isub), "*": (operator.mul, operator.imul),
    "/": (operator.truediv, operator.itruediv), "//": (operator.floordiv, operator.ifloordiv),
    "%": (operator.mod, operator.imod), "**": (operator.pow, operator.ipow),
    "<<": (operator.lshift, operator.ilshift), ">>": (operator.rshift, operator.irshift),
    "&": (operator.and_, operator.iand), "|": (operator.or_, operator.ior), "^": (operator.xor, operator.ixor),
    "==": (operator.eq, None), "!=": (operator.ne, None), "<": (operator.lt, None), "<=": (operator.le, None),
    ">": (operator.gt, None), ">=": (operator.ge, None),
}  # fmt: skip
UNARY = {"+": operator.pos, "-": operator.neg, "~": operator.invert, "not": operator.not_}

MATH_UNARY = words(
    "acos acosh asin asinh atan atanh ceil cos cosh degrees erf erfc exp exp2 expm1 fabs floor frexp gamma isfinite"
    " isinf isnan lgamma log log10 log1p log2 modf radians sin sinh sqrt tan tanh trunc"
)
MATH_BINARY = words("atan2 copysign fmod hypot ldexp nextafter pow remainder")
CMATH_UNARY = words(
    "acos acosh asin asinh atan atanh cos cosh exp isfinite isinf isnan log log10 phase polar sin sinh sqrt tan tanh"
)
NUMPY_UNARY = words(
    "abs absolute arccos arccosh arcsin arcsinh arctan arctanh ceil cos cosh deg2rad degrees exp exp2 expm1 fabs floor"
    " isfinite isinf isnan log log10 log1p log2 negative rad2deg radians reciprocal rint sign sin sinh sqrt square tan"
    " tanh trunc invert logical_not conjugate"
)
NUMPY_BINARY = words(
    "arctan2 copysign fmax fmin fmod hypot maximum minimum power greater greater_equal less less_equal equal not_equal"
    " logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift divide"
)
ATOMICS = words("add sub max min nanmax nanmin and_ or_ xor inc dec exch cas compare_and_swap")
SHUFFLES = words("shfl_sync shfl_up_sync shfl_down_sync shfl_xor_sync")
VOTES = words("all_sync any_sync eq_sync ballot_sync")

# arity -> names of calls whose every argument is a scalar
CALLS: dict[int, list[str]] = {
    1: [
        *(f"math.{name}" for name in MATH_UNARY),
        *(f"np.{name}" for name in NUMPY_UNARY),
        *(f"cmath.{name}" for name in CMATH_UNARY),
        *words("abs round int float bool complex cuda.popc cuda.brev cuda.clz cuda.ffs cuda.cbrt"),
        *words("cuda.syncthreads_count cuda.syncthreads_and cuda.syncthreads_or cuda.syncwarp cuda.nanosleep"),
    ],
    2: [
        *(f"math.{name}" for name in MATH_BINARY),
        *(f"np.{name}" for name in NUMPY_BINARY),
        *words("cmath.log cmath.rect complex"),
        *(f"cuda.{name}" for name in VOTES),
        *words("round pow divmod cuda.match_any_sync cuda.match_all_sync"),
    ],
    3: ["cuda.fma", "cuda.selp", *(f"cuda.{name}" for name in SHUFFLES)],
}
NO_ARGUMENT_CALLS = words(
    "cuda.activemask cuda.lanemask_lt cuda.syncthreads cuda.syncwarp cuda.threadfence cuda.threadfence_block"
    " cuda.threadfence_system"
)
SYMBOLS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
LITERALS = (-1, 0, 2, 2**40)

Encoded = dict[str, Any]


class Live:
    """numba-cuda's typing context, spoken to with type names."""

    def __init__(self) -> None:
        import numpy as np
        from numba import cuda
        from numba.cuda import types
        from numba.cuda.descriptor import cuda_target

        self.context = cuda_target.typing_context
        self.context.refresh()
        cuda_target.target_context.refresh()
        self.types = types
        self.roots = {"math": math, "cmath": cmath, "np": np, "cuda": cuda}
        self.by_name = {name: getattr(types, "bool_" if name == "bool" else name) for name in TYPES}

    @contextmanager
    def active(self) -> Iterator[None]:
        """Resolve for the CUDA target, as if a device of compute capability 9.0 were present.

        Float16 overloads of math functions are typed by compiling their one-line bodies, which asks for the device.
        """
        from numba.core.target_extension import target_override
        from numba.cuda import dispatcher

        device = SimpleNamespace(compute_capability=(9, 0))
        with (
            warnings.catch_warnings(),
            target_override("cuda"),
            mock.patch.object(dispatcher, "get_current_device", return_value=device),
            mock.patch("numba.core.types.functions._ResolutionFailures.format", return_value=""),  # slow, unread
        ):
            warnings.simplefilter("ignore")
            yield

    def function(self, name: str) -> Any:
        """Numba type of a function, found as a kernel finds it: attribute by attribute from its module."""
        head, *rest = name.split(".")
        if not rest:
            return self.context.resolve_value_type(getattr(builtins, head))
        found = self.types.Module(self.roots[head])
        for part in rest:
            found = self.context.resolve_getattr(found, part)
        return found

    def compiles(self, name: str) -> bool:
        """False for a NumPy function that is typed but that numba-cuda has no code for."""
        from numba.cuda.ufuncs import ufunc_db

        return not name.startswith("np.") or getattr(self.roots["np"], name.removeprefix("np.")) in ufunc_db()

    def resolve(self, function: Any, arguments: Iterable[Any]) -> Any | None:
        """Signature of a call on Numba types, or None where numba-cuda refuses it."""
        from numba.core.errors import NumbaError
        from numba.cuda.core.errors import NumbaError as CudaNumbaError

        template = function if isinstance(function, self.types.Type) else self.context.resolve_value_type(function)
        try:
            return self.context.resolve_function_type(template, tuple(arguments), {})
        except (NumbaError, CudaNumbaError, NotImplementedError, TypeError, ValueError, RecursionError):
            return None

    def unified(self, a: Any, b: Any) -> Any | None:
        """Type of a variable that holds both, or None."""
        from numba.core.errors import NumbaError

        try:
            return self.context.unify_pairs(a, b)
        except (NumbaError, RecursionError):  # bfloat16 has no NumPy dtype to ask; with a float it asks itself for ever
            return None

    def name(self, numba_type: Any) -> str:
        """Our name of a Numba type: a scalar name, `none`, or `(a, b)` for a tuple."""
        numba_type = self.types.unliteral(numba_type)
        if isinstance(numba_type, self.types.BaseTuple):
            return "(" + ", ".join(self.name(item) for item in numba_type) + ")"
        if isinstance(numba_type, self.types.NoneType):
            return "none"
        text = str(numba_type).replace("__nv_bfloat16", "bfloat16")
        if text not in TYPES:
            raise KeyError(text)
        return text

    def signature(self, function: Any, arguments: Iterable[Any]) -> tuple[str, ...] | None:
        """`(result, argument, ...)` by name, or None where numba-cuda refuses the call or leaves the scalar types."""
        found = self.resolve(function, arguments)
        if found is None:
            return None
        try:
            return (self.name(found.return_type), *(self.name(argument) for argument in found.args))
        except KeyError:
            return None


def encode(arity: int, answers: Sequence[tuple[str, ...] | None]) -> Encoded:
    """Answers for all type combinations in order, as one letter each; `=` stands for an argument taken as it comes."""
    given = list(itertools.product(TYPES, repeat=arity))
    plain: list[str | None] = []
    relative: list[str | None] = []
    for types, answer in zip(given, answers, strict=True):
        if answer is None:
            plain.append(None)
            relative.append(None)
            continue
        result, *arguments = answer
        plain.append(f"{result} <- {' '.join(arguments)}")
        marked = ("=" if a == t else a for a, t in zip(arguments, types, strict=True))
        relative.append(f"{result} <- {' '.join(marked)}")
    rows = min(plain, relative, key=lambda column: len(set(column)))
    signatures = sorted({row for row in rows if row is not None})
    if len(signatures) > len(SYMBOLS):
        raise ValueError(f"{len(signatures)} signatures do not fit {len(SYMBOLS)} symbols")
    symbol = {signature: SYMBOLS[i] for i, signature in enumerate(signatures)}
    return {"signatures": signatures, "table": "".join("." if row is None else symbol[row] for row in rows)}


def grouped(tables: dict[str, Encoded]) -> dict[str, Encoded]:
    """Names with equal tables share one entry, keyed by the names separated by a space."""
    by_content: dict[str, tuple[list[str], Encoded]] = {}
    for name, table in tables.items():
        by_content.setdefault(json.dumps(table), ([], table))[0].append(name)
    return {" ".join(names): table for names, table in by_content.values()}


def check_literals(live: Live) -> None:
    """A literal operand must type as its plain type does; the front end counts on it."""
    literal = live.types.literal
    for name, (function, _) in BINARY.items():
        for type_name, value in itertools.product(TYPES, LITERALS):
            numba_type = live.by_name[type_name]
            for flip in (False, True):
                plain = (numba_type, live.types.int64)[:: -1 if flip else 1]
                typed = (numba_type, literal(value))[:: -1 if flip else 1]
                if live.signature(function, plain) != live.signature(function, typed):
                    raise ValueError(f"numba treats the literal {value} specially in {typed[0]} {name} {typed[1]}")
    for type_name, value in itertools.product(TYPES, LITERALS):
        numba_type = live.by_name[type_name]
        if live.unified(literal(value), numba_type) != live.unified(live.types.int64, numba_type):
            raise ValueError(f"numba unifies the literal {value} with {type_name} specially")


def freeze() -> dict[str, Any]:
    """Ask the installed numba-cuda everything; returns the content of the table."""
    live = Live()
    scalars = [live.by_name[name] for name in TYPES]
    pairs = list(itertools.product(scalars, repeat=2))
    with live.active():
        check_literals(live)
        binary: dict[str, Encoded] = {}
        for name, (function, in_place) in BINARY.items():
            binary[name] = encode(2, [live.signature(function, pair) for pair in pairs])
            if in_place is not None:
                binary[f"{name}="] = encode(2, [live.signature(in_place, pair) for pair in pairs])
        unary = {name: encode(1, [live.signature(f, (a,)) for a in scalars]) for name, f in UNARY.items()}
        calls: dict[str, dict[str, Encoded]] = {}
        for arity, candidates in CALLS.items():
            names = [name for name in candidates if live.compiles(name)]
            combinations = list(itertools.product(scalars, repeat=arity))
            tables = {}
            for name in names:
                function = live.function(name)
                answers = [live.signature(function, types) for types in combinations]
                if not any(answers):
                    raise ValueError(f"numba-cuda types {name} for no combination of {arity} scalars")
                tables[name] = encode(arity, answers)
            calls[str(arity)] = grouped(tables)
        no_argument_calls = {}
        for name in NO_ARGUMENT_CALLS:
            resolved = live.resolve(live.function(name), ())
            assert resolved is not None
            no_argument_calls[name] = live.name(resolved.return_type)
        unified = [live.unified(*pair) for pair in pairs]
        return {
            "numba_cuda": version("numba-cuda"),
            "types": TYPES,
            "binary": grouped(binary),
            "unary": grouped(unary),
            "unify": letters(None if found is None else live.name(found) for found in unified),
            "calls": calls,
            "no_argument_calls": no_argument_calls,
            "range_items": range_items(live),
            "index": index_types(live),
            "setitem": setitem_types(live),
            "atomics": atomic_types(live),
            "declared": declared_types(live),
            "convertible": convertible_types(live),
            "special": special_types(live),
            "attributes": attribute_types(live),
        }


def letters(names: Iterable[str | None]) -> str:
    """One letter per type name, a dot for None."""
    return "".join("." if name is None else SYMBOLS[TYPES.index(name)] for name in names)


def range_items(live: Live) -> dict[str, str]:
    """Item type of `range(...)`, one letter per combination, for one, two and three arguments."""
    found: dict[str, str] = {}
    for arity in (1, 2, 3):
        combinations = itertools.product(live.by_name.values(), repeat=arity)
        answers = (live.resolve(range, types) for types in combinations)
        found[str(arity)] = letters(None if each is None else live.name(each.return_type.dtype) for each in answers)
    return found


def index_types(live: Live) -> dict[str, str]:
    """Type that a scalar index is converted to in `array[index]`; absent where it is refused."""
    array = live.types.Array(live.types.float32, 1, "C")
    found = {}
    for name in TYPES:
        resolved = live.resolve(operator.getitem, (array, live.by_name[name]))
        if resolved is not None:
            found[name] = live.name(resolved.args[1])
    return found


def setitem_types(live: Live) -> dict[str, list[str]]:
    """Array dtype -> scalar types that `array[index] = value` accepts."""
    found = {}
    for dtype in TYPES:
        array = live.types.Array(live.by_name[dtype], 1, "C")
        arguments = ((array, live.types.int64, live.by_name[value]) for value in TYPES)
        answers = [live.resolve(operator.setitem, each) for each in arguments]
        found[dtype] = [value for value, answer in zip(TYPES, answers, strict=True) if answer is not None]
    return found


def atomic_types(live: Live) -> dict[str, list[str]]:
    """Atomic operation -> array dtypes it accepts; index, value and result types follow from the dtype."""
    found = {}
    for name in ATOMICS:
        function = live.function(f"cuda.atomic.{name}")
        accepted = []
        for dtype in TYPES:
            array = live.types.Array(live.by_name[dtype], 1, "C")
            scalar = live.by_name[dtype]
            index = live.types.int64
            arguments = {"cas": (array, index, scalar, scalar), "compare_and_swap": (array, scalar, scalar)}
            resolved = live.resolve(function, arguments.get(name, (array, index, scalar)))
            if resolved is None:
                continue
            values = resolved.args[1:] if name == "compare_and_swap" else resolved.args[2:]
            if {resolved.return_type, *values} != {scalar}:
                raise ValueError(f"cuda.atomic.{name} on {dtype} is typed {resolved}: the table cannot hold that")
            accepted.append(dtype)
        found[name] = accepted
    return found


def declared_types(live: Live) -> dict[str, dict[str, str]]:
    """Module -> signature -> names of the functions that have this one signature; any type that converts is taken."""
    from numba import cuda
    from numba.cuda import bf16, fp16, libdevice, libdevicefuncs

    exported = {"cuda.libdevice": dir(libdevice), "cuda.fp16": fp16.__all__, "cuda.bf16": bf16.__all__}
    found: dict[str, dict[str, list[str]]] = {"cuda.libdevice": {}, "cuda.fp16": {}, "cuda.bf16": {}}
    names = [f"cuda.libdevice.{name.removeprefix('__nv_')}" for name in libdevicefuncs.functions]
    names += [f"cuda.{module.__name__.rpartition('.')[2]}.{name}" for module in (fp16, bf16) for name in module.__all__]
    for name in names:
        module, _, last = name.rpartition(".")
        if last.endswith("registry") or last in ("__half", "bfloat16", "atomicAdd"):
            continue
        (case,) = (case for template in live.function(name).templates for case in template.cases)
        text = f"{live.name(case.return_type)} <- {' '.join(live.name(each) for each in case.args)}"
        found[module].setdefault(text, []).append(last)
        own_name = getattr(getattr(getattr(cuda, module.rpartition(".")[2]), last), "__name__", last)
        if own_name not in (last, *exported[module]):  # a kernel may have captured the function itself
            found[module][text].append(own_name)
    return {module: {text: " ".join(each) for text, each in signatures.items()} for module, signatures in found.items()}


def convertible_types(live: Live) -> dict[str, str]:
    """Type -> types that an argument of it is converted to where a function is declared with one of those."""
    found = {}
    for source, numba_type in live.by_name.items():
        targets = [name for name, to in live.by_name.items() if live.context.can_convert(numba_type, to) is not None]
        found[source] = " ".join(targets)
    return found


def special_types(live: Live) -> dict[str, str]:
    """Types of the index registers, of grid functions and of array attributes."""
    module = live.types.Module(live.roots["cuda"])
    found = {}
    for name in ("threadIdx", "blockIdx", "blockDim", "gridDim"):
        dim3 = live.context.resolve_getattr(module, name)
        for axis in "xyz":
            found[f"cuda.{name}.{axis}"] = live.name(live.context.resolve_getattr(dim3, axis))
    for name in ("laneid", "warpsize"):
        found[f"cuda.{name}"] = live.name(live.context.resolve_getattr(module, name))
    for name, rank in itertools.product(("grid", "gridsize"), (1, 2, 3)):
        resolved = live.resolve(live.function(f"cuda.{name}"), (live.types.literal(rank),))
        assert resolved is not None
        found[f"cuda.{name}({rank})"] = live.name(resolved.return_type)
    array = live.types.Array(live.types.float32, 1, "C")
    for name in ("size", "ndim", "itemsize", "nbytes"):
        found[f"array.{name}"] = live.name(live.context.resolve_getattr(array, name))
    for name in ("shape", "strides"):
        found[f"array.{name}[i]"] = live.name(live.context.resolve_getattr(array, name).dtype)
    resolved = live.resolve(len, (array,))
    assert resolved is not None
    found["len"] = live.name(resolved.return_type)
    return found


def attribute_types(live: Live) -> dict[str, str]:
    """Attribute or method of a number -> type of it or of its result, one letter per type of the number."""
    found = {}
    for name in ("real", "imag", "conjugate", "bit_count", "item"):
        answers: list[str | None] = []
        for numba_type in live.by_name.values():
            attribute = live.context.resolve_getattr(numba_type, name)
            if isinstance(attribute, live.types.BoundFunction):
                attribute = live.context.resolve_function_type(attribute, (), {}).return_type
            answers.append(None if attribute is None else live.name(attribute))
        found[name] = letters(answers)
    return found


def text(table: dict[str, Any]) -> str:
    """The table as the file holds it."""
    return json.dumps(table, indent=1) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check: bool = parser.parse_args().check
    new = text(freeze())
    if not check:
        TABLE.write_text(new)
        return 0
    if TABLE.read_text() == new:
        return 0
    print(f"{TABLE} differs from the installed numba-cuda; rewrite it with: python {Path(__file__).name}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
