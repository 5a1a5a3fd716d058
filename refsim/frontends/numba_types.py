"""Types of Numba kernels: what numba-cuda's own type inference answers, from a frozen table, without importing numba.

Types are names: ``bool``, ``int8`` to ``int64``, ``uint8`` to ``uint64``, ``float16`` to ``float64``, ``bfloat16``,
``complex64`` and ``complex128``. A literal has the type of its value: an integer literal is ``int64`` (``uint64`` from
2**63 on), a float literal ``float64``, ``True`` is ``bool``; numba-cuda types an operation on a
literal as on a variable of that type (checked when the table is made).

Every answer is a :class:`Signature`: operands are converted to ``args``, then the operation gives ``result``. Where
numba-cuda types an operator on one pair of types and its code then converts both operands to the result (all integer
arithmetic, shifts, ``/`` of integers, NumPy functions), ``args`` says the result's type. The table is
`numba_types.json`, written by ``tools/freeze_numba_types.py`` and compared with the installed numba-cuda by a test.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import ml_dtypes  # noqa: F401 (makes bfloat16 a NumPy type)
import numpy as np

__all__ = [
    "SCALAR_TYPES", "Signature", "TypingError", "atomic", "attribute", "binary", "call", "cast", "declared",
    "index_type", "inplace", "is_known_call", "literal_type", "min_max_skips_nan", "range_item", "setitem",
    "special", "unary", "unify",
]  # fmt: skip

SCALAR_TYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "bfloat16", "complex64", "complex128",
)  # fmt: skip
_WIDTH = {name: int("".join(filter(str.isdigit, name)) or 0) for name in SCALAR_TYPES}
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_SYMBOLS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


class TypingError(ValueError):
    """numba-cuda does not compile this operation on these types."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Result type of an operation and the types its operands are converted to first.

    Attributes
    ----------
    result : str
        A scalar type, ``"none"``, or a tuple written ``"(float32, int32)"``.
    args : tuple of str
        One type per operand.
    """

    result: str
    args: tuple[str, ...]

    @property
    def results(self) -> tuple[str, ...]:
        """The result types one by one: one entry for a scalar, one per item for a tuple, none for ``"none"``."""
        if self.result == "none":
            return ()
        return tuple(self.result.strip("()").split(", "))


Table = Mapping[tuple[str, ...], Signature]


def binary(op: str, a: str, b: str) -> Signature:
    """Type ``a op b`` for ``+ - * / // % ** << >> & | ^ == != < <= > >=``.

    Examples
    --------
    >>> binary("*", "int32", "int32")
    Signature(result='int64', args=('int64', 'int64'))
    >>> binary("<", "uint64", "int64").args
    ('float64', 'float64')

    Raises
    ------
    TypingError
        If numba-cuda has no such operation on these types.
    """
    return _operator("binary", op, (a, b))


def inplace(op: str, a: str, b: str) -> Signature:
    """Type ``a op= b``; ``op`` is written without the equals sign. The target takes the type of the result."""
    return _operator("binary", op + "=", (a, b))


def unary(op: str, a: str) -> Signature:
    """Type ``op a`` for ``+ - ~ not``."""
    return _operator("unary", op, (a,))


def unify(*types: str) -> str:
    """Type of a variable, or of ``a if p else b`` and ``a and b``, that holds values of all of these types.

    Narrow types are unified first, as numba does.

    Examples
    --------
    >>> unify("int64", "float32"), unify("uint64", "int64")
    ('float64', 'float64')

    Raises
    ------
    TypingError
        If no type is given, or numba cannot unify them.
    """
    if not types:
        raise TypingError("unify needs at least one type")
    pairs = _pairs()
    first, *rest = sorted(types, key=lambda name: _WIDTH[_checked(name)])
    for name in rest:
        found = pairs.get((first, name))
        if found is None:
            raise TypingError(f"numba cannot unify {' and '.join(types)}: {first} and {name} have no common type")
        first = found
    return first


def call(name: str, arg_types: Iterable[str]) -> Signature:
    """Type a call of a function on scalars.

    Parameters
    ----------
    name : str
        Full name: ``"math.exp"``, ``"np.sqrt"``, ``"abs"``, ``"min"``, ``"int"``, ``"cuda.popc"``,
        ``"cuda.fp16.hfma"``, ``"cuda.shfl_down_sync"``, ``"float32"`` or ``"np.float32"``, ...
    arg_types : iterable of str
        Scalar types of the arguments. Atomic operations have :func:`atomic`.

    Raises
    ------
    TypingError
        If the function is unknown, or does not take these types.
    """
    types = tuple(arg_types)
    if name in ("min", "max"):
        return _min_max(name, types)
    scalar = name.removeprefix("np.").removesuffix("_")
    if scalar in _WIDTH and (scalar != "bool" or name != "bool"):
        if len(types) != 1:
            raise TypingError(f"{name}() takes one value, got {len(types)}")
        return cast(scalar, types[0])
    if not types:
        result = _data()["no_argument_calls"].get(name)
        if result is not None:
            return Signature(result, ())
    module, _, last = name.rpartition(".")
    if module in _data()["declared"]:
        return _declared_call(module, last, types)
    arities = _calls()
    if name not in arities:
        if name in _data()["no_argument_calls"]:
            raise TypingError(f"{name}() takes no argument, got ({', '.join(types)})")
        raise TypingError(f"{name} is not a function that numba-cuda kernels can call on scalars")
    if len(types) not in arities[name]:
        takes = " or ".join(str(arity) for arity in sorted(arities[name]))
        raise TypingError(f"{name}() takes {takes} arguments, got {len(types)}: ({', '.join(types)})")
    found = _decoded(name, len(types)).get(types)
    if found is None:
        for each in types:
            _checked(each)
        raise TypingError(f"numba-cuda does not type {name}({', '.join(types)}); convert the arguments first")
    if name.startswith("np."):
        return _loop(name, found)
    if name.startswith("cmath."):
        return _complex_function(name, found)
    return _in_result_type("**", found) if name == "pow" else found


def _loop(name: str, found: Signature) -> Signature:
    """A NumPy function works in the type of its result; ``isnan`` in float32 or float64."""
    if any(kind.startswith("complex") for kind in found.args) and not found.result.startswith("complex"):
        return found
    if name != "np.isnan":
        return Signature(found.result, (found.result,) * len(found.args))
    return Signature("bool", tuple("float32" if kind in ("float16", "float32") else "float64" for kind in found.args))


def _complex_function(name: str, found: Signature) -> Signature:
    """A function of ``cmath`` works in the precision of its result."""
    if found.result == "bool":
        return found
    double = "complex128" in found.result or "float64" in found.result
    real = name == "cmath.rect"
    kind = ("float64" if real else "complex128") if double else ("float32" if real else "complex64")
    return Signature(found.result, (kind,) * len(found.args))


def is_known_call(name: str) -> bool:
    """Whether :func:`call` knows a function of this name for some arguments."""
    scalar = name.removeprefix("np.").removesuffix("_")
    module, _, last = name.rpartition(".")
    if module in _data()["declared"]:
        return last in declared(module)
    return name in ("min", "max") or scalar in _WIDTH or name in _calls() or name in _data()["no_argument_calls"]


def cast(to: str, value: str) -> Signature:
    """Type an explicit conversion such as ``np.float32(x)``: takes the value as it is, but no complex one as a real."""
    if value.startswith("complex") and to != "bool" and not to.startswith("complex"):
        raise TypingError(f"a {value} does not convert to {_checked(to)}; take .real or abs()")
    return Signature(_checked(to), (_checked(value),))


def min_max_skips_nan(arg_types: Iterable[str]) -> bool:
    """Whether ``min`` and ``max`` of these types return the other operand for a NaN.

    numba-cuda lowers two operands of float32 and float64 to ``fmin`` and ``fmax``. Everything else, in particular an
    integer operand (``max(x, 0)``), is compared as in Python, from left to right: ``v if v > best else best`` for max.
    """
    types = tuple(arg_types)
    return len(types) == 2 and all(name in ("float32", "float64") for name in types)


def range_item(types: Iterable[str]) -> str:
    """Type of the loop variable of ``range(...)`` for one to three argument types; the bounds are converted to it."""
    given = tuple(types)
    if not 1 <= len(given) <= 3:
        raise TypingError(f"range() takes 1 to 3 arguments, got {len(given)}")
    found = _ranges().get(given)
    if found is None:
        for name in given:
            _checked(name)
        raise TypingError(f"range() takes integers, got ({', '.join(given)})")
    return found


def special(name: str) -> str:
    """Type of a register, a grid function or an array attribute.

    Parameters
    ----------
    name : str
        ``"cuda.threadIdx.x"`` (also blockIdx, blockDim, gridDim; y, z), ``"cuda.laneid"``, ``"cuda.warpsize"``,
        ``"cuda.grid(1)"`` to ``"cuda.gridsize(3)"`` (tuples above 1), ``"len"``, ``"array.shape[i]"``,
        ``"array.strides[i]"``, ``"array.size"``, ``"array.ndim"``, ``"array.itemsize"``, ``"array.nbytes"``.
    """
    table: dict[str, str] = _data()["special"]
    if name not in table:
        raise TypingError(f"{name!r} has no type; known are {', '.join(table)}")
    return table[name]


def index_type(name: str) -> str:
    """Type that an index of type ``name`` is converted to in ``array[index]``: ``int64`` or ``uint64``."""
    table: dict[str, str] = _data()["index"]
    if name not in table:
        _checked(name)
        raise TypingError(f"an array index must be an integer, got {name}; convert it with int(...)")
    return table[name]


def setitem(dtype: str, value: str) -> str:
    """Type that a value is converted to in ``array[index] = value``: the dtype of the array."""
    if _checked(value) not in _data()["setitem"][_checked(dtype)]:
        raise TypingError(f"a {value} cannot be stored into an array of {dtype}; convert it first")
    return dtype


def atomic(op: str, dtype: str) -> Signature:
    """Type ``cuda.atomic.op(array, index, value...)`` on an array of ``dtype``.

    Parameters
    ----------
    op : str
        ``add sub max min nanmax nanmin and_ or_ xor inc dec exch cas compare_and_swap``.

    Returns
    -------
    Signature
        ``result`` is the old value's type; ``args`` the types of the values (two for cas and compare_and_swap).
    """
    table: dict[str, list[str]] = _data()["atomics"]
    if op not in table:
        raise TypingError(f"cuda.atomic has no {op!r}; it has {', '.join(table)}")
    if _checked(dtype) not in table[op]:
        raise TypingError(f"cuda.atomic.{op} works on arrays of {', '.join(table[op])}, got {dtype}")
    return Signature(dtype, (dtype,) * (2 if op in ("cas", "compare_and_swap") else 1))


@cache
def declared(module: str) -> Mapping[str, Signature]:
    """Functions of ``cuda.libdevice``, ``cuda.fp16`` or ``cuda.bf16``, each declared for one signature."""
    found = {}
    for text, names in _data()["declared"][module].items():
        result, arguments = text.split(" <- ")
        found.update(dict.fromkeys(names.split(), Signature(result, tuple(arguments.split()))))
    return found


def _declared_call(module: str, name: str, types: tuple[str, ...]) -> Signature:
    found = declared(module).get(name)
    if found is None:
        raise TypingError(f"{module} has no function {name!r}")
    if len(types) != len(found.args):
        raise TypingError(f"{module}.{name}() takes {len(found.args)} arguments, got {len(types)}")
    for given, wanted in zip(types, found.args, strict=True):
        if wanted not in _data()["convertible"][_checked(given)].split():
            takes = ", ".join(found.args)
            raise TypingError(f"{module}.{name}() takes ({takes}); a {given} does not convert to {wanted}")
    return found


def attribute(name: str, kind: str) -> str:
    """Type of ``x.real``, ``x.imag``, ``x.conjugate()``, ``x.bit_count()`` and ``x.item()`` of a number."""
    table: dict[str, str] = _data()["attributes"]
    if name not in table:
        raise TypingError(f"a {kind} has no attribute {name!r}; numbers have {', '.join(table)}")
    found = _letters(1, table[name]).get((_checked(kind),))
    if found is None:
        raise TypingError(f"a {kind} has no attribute {name!r}")
    return found


def promoted(*types: str) -> str:
    """Type in which NumPy compares these types."""
    return str(np.result_type(*types).name)


def literal_type(value: bool | int | float | complex) -> str:
    """Type of a Python constant in a kernel: a literal or a captured global."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, float):
        return "float64"
    if isinstance(value, complex):
        return "complex128"
    if -(2**63) <= value < 2**63:
        return "int64"
    if value < 2**64 and value > 0:
        return "uint64"
    raise TypingError(f"the integer {value} does not fit 64 bits")


def _checked(name: str) -> str:
    if name not in _WIDTH:
        raise TypingError(f"{name!r} is not a scalar type; expected one of {', '.join(SCALAR_TYPES)}")
    return name


def _min_max(name: str, types: tuple[str, ...]) -> Signature:
    if len(types) < 2:
        raise TypingError(f"{name}() needs at least two scalars, got {len(types)}")
    if "bool" in types and types != ("bool", "bool"):
        raise TypingError(f"numba-cuda does not type {name}({', '.join(types)}): convert the bool to an integer first")
    result = unify(*types)
    return Signature(result, (result,) * len(types))


def _operator(kind: str, op: str, types: tuple[str, ...]) -> Signature:
    table = _operator_table(kind, op)
    if table is None:
        raise TypingError(f"{op!r} is not a {kind} operator; known are {' '.join(_data()[kind])}")
    found = table.get(types)
    if found is None:
        for name in types:
            _checked(name)
        written = f" {op} ".join(types) if kind == "binary" else f"{op} {types[0]}"
        raise TypingError(f"numba-cuda has no {written}")
    return found


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("numba_types.json").read_text()
    data: dict[str, Any] = json.loads(text)
    if tuple(data["types"]) != SCALAR_TYPES:
        raise RuntimeError("numba_types.json is of another version; run tools/freeze_numba_types.py")
    return data


def _decode(arity: int, encoded: Mapping[str, Any]) -> Table:
    """Undo ``encode`` of the freezing tool: one letter per combination, ``=`` for an argument taken as it comes."""
    parsed = []
    for text in encoded["signatures"]:
        result, arguments = text.split(" <- ")
        parsed.append((result, tuple(arguments.split())))
    table = {}
    combinations = itertools.product(SCALAR_TYPES, repeat=arity)
    for types, letter in zip(combinations, encoded["table"], strict=True):
        if letter != ".":
            result, arguments = parsed[_SYMBOLS.index(letter)]
            args = tuple(t if a == "=" else a for a, t in zip(arguments, types, strict=True))
            table[types] = Signature(result, args)
    return table


@cache
def _operator_table(kind: str, op: str) -> Table | None:
    for names, encoded in _data()[kind].items():
        if op in names.split():
            table = _decode(2 if kind == "binary" else 1, encoded)
            arithmetic = kind == "binary" and op not in _COMPARISONS
            return {t: _in_result_type(op, s) for t, s in table.items()} if arithmetic else table
    return None


def _in_result_type(op: str, found: Signature) -> Signature:
    """Integers are converted to the result before anything is computed; the exponent of a power stays as it is."""
    if not all("int" in name for name in found.args):
        return found
    exponent_or_right = found.args[1] if op.startswith("**") else found.result
    return Signature(found.result, (found.result, exponent_or_right))


@lru_cache(maxsize=1)
def _calls() -> Mapping[str, Mapping[int, Mapping[str, Any]]]:
    """Name -> arity -> encoded table."""
    found: dict[str, dict[int, Mapping[str, Any]]] = {}
    for arity, groups in _data()["calls"].items():
        for names, encoded in groups.items():
            for name in names.split():
                found.setdefault(name, {})[int(arity)] = encoded
    return found


@cache
def _decoded(name: str, arity: int) -> Table:
    return _decode(arity, _calls()[name][arity])


@lru_cache(maxsize=1)
def _pairs() -> Mapping[tuple[str, ...], str]:
    return _letters(2, _data()["unify"])


@lru_cache(maxsize=1)
def _ranges() -> Mapping[tuple[str, ...], str]:
    found: dict[tuple[str, ...], str] = {}
    for arity, letters in _data()["range_items"].items():
        found.update(_letters(int(arity), letters))
    return found


def _letters(arity: int, letters: str) -> dict[tuple[str, ...], str]:
    combinations = itertools.product(SCALAR_TYPES, repeat=arity)
    return {
        types: SCALAR_TYPES[_SYMBOLS.index(letter)]
        for types, letter in zip(combinations, letters, strict=True)
        if letter != "."
    }
