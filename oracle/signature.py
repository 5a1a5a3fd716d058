"""Signatures of operators: inputs with named dimensions, parameters with ranges, outputs, and their validation."""

from __future__ import annotations

import inspect
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

FLOAT_DTYPES = ("float16", "bfloat16", "float32", "float64")
INTEGER_DTYPES = ("int32", "int64")


class InputError(ValueError):
    """An input or a parameter lies outside an operator's specification; the message names the value and the fix."""


@dataclass(frozen=True)
class Floats:
    """Annotation of an input of numbers: its dimensions by name, ``...`` for any leading ones.

    ``transposed_by`` names a boolean parameter under which the dimensions arrive in reverse order. ``dtype`` is the
    input's own dtype, or several that it may have; without it the input has the operator's dtype, which all such
    inputs share. Where a parameter says in which of several ways the input is laid out, ``chosen_by`` names it, and
    ``dims`` maps its values to dimensions.
    """

    dims: str | Mapping[str, str]
    transposed_by: str | None = None
    dtype: str | tuple[str, ...] | None = None
    chosen_by: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.dims, str) != (self.chosen_by is None):
            raise TypeError(f"Floats({self.dims!r}): say chosen_by= with several choices of dimensions, and only then")


@dataclass(frozen=True)
class Integers:
    """Annotation of an input of indices, counts or packed codes, which the analysis sees as plain integers.

    Values lie in ``low <= value < below``; ``below`` is a dimension or a product of some (``"blocks*block_size"``), a
    number, or None for no limit. ``dtype`` is the input's own dtype; without it int32 and int64 are taken.
    """

    dims: str
    below: str | int | None = None
    low: int = 0
    dtype: str | None = None


@dataclass(frozen=True)
class Output:
    """Annotation of a result: its name, and where its dtype comes from.

    ``like`` names an input whose dtype it has; a ``statistic`` is float32 instead, and float64 for float64 inputs.
    ``dtype`` is a dtype by name, ``chosen_by`` a parameter that holds one (None there: the dtype of ``like``).
    A result of an integer dtype is an array of plain integers (compared bit for bit), numbers (rounded half to even
    and saturated), or a choice of `oracle.choices`.
    """

    name: str
    like: str | None = None
    statistic: bool = False
    dtype: str | None = None
    chosen_by: str | None = None

    def __post_init__(self) -> None:
        if self.like is None and self.dtype is None and self.chosen_by is None:
            raise TypeError(f"output {self.name}: say like=, dtype= or chosen_by=")


@dataclass(frozen=True)
class DtypeOf:
    """Annotation of a keyword argument that is no parameter: it is given the dtype of an input, by name.

    For rounding points in the middle of a formula, ``round_to_format(x, dtype)``.
    """

    input: str


@dataclass(frozen=True)
class Range:
    """Annotation of a numeric parameter: ``low <= value`` or, where ``open``, ``low < value``."""

    low: float
    open: bool = False


@dataclass(frozen=True)
class Input:
    """One input: its name, its dimensions, ``float`` or ``integer``, and whether it may be left out."""

    name: str
    dims: tuple[str, ...]
    kind: Literal["float", "integer"]
    optional: bool = False
    transposed_by: str | None = None
    below: str | int | None = None
    low: int = 0
    dtypes: tuple[str, ...] = ()
    layouts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    chosen_by: str | None = None

    def order(self, params: Mapping[str, Any]) -> tuple[str, ...]:
        """Dimension names in the order in which the array has them under ``params``."""
        if self.chosen_by is not None:
            return self.layouts[params[self.chosen_by]]
        transposed = self.transposed_by is not None and params[self.transposed_by]
        return self.dims[::-1] if transposed else self.dims


@dataclass(frozen=True)
class Param:
    """One parameter: name, accepted Python types, default, and either choices or a lower limit."""

    name: str
    types: tuple[type, ...]
    default: Any
    choices: tuple[Any, ...] = ()
    range: Range | None = None

    def describe(self) -> str:
        """What the parameter accepts, in words."""
        if self.choices:
            return "one of " + ", ".join(repr(choice) for choice in self.choices)
        names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in self.types)
        if self.range is None:
            return names
        return f"{names} {'>' if self.range.open else '>='} {self.range.low:g}"

    def accepts(self, value: object) -> bool:
        """Whether ``value`` is of an accepted type and in range."""
        if self.choices:
            return value in self.choices
        if isinstance(value, bool) and bool not in self.types:
            return False
        numeric = self.types + ((int,) if float in self.types else ())
        if not isinstance(value, numeric):
            return False
        if value is None or self.range is None or isinstance(value, bool):
            return True
        number = float(typing.cast(float, value))
        inside = number > self.range.low if self.range.open else number >= self.range.low
        return inside and bool(np.isfinite(number))


@dataclass(frozen=True)
class Signature:
    """Inputs, parameters and outputs of an operator, in the order of its arguments and results."""

    operator: str
    inputs: dict[str, Input]
    params: dict[str, Param]
    outputs: tuple[Output, ...]
    dtypes: tuple[str, ...] = FLOAT_DTYPES
    dtype_arguments: Mapping[str, str] = field(default_factory=dict)

    def dtype_names(self, inputs: Mapping[str, Array | None]) -> dict[str, str]:
        """What the arguments are given that take the dtype of an input."""
        present = self.given(inputs)
        return {name: present[source].dtype.name for name, source in self.dtype_arguments.items()}

    def complete(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters, defaults filled in.

        Raises
        ------
        InputError
            A parameter is unknown, of the wrong type, or out of range.
        """
        for name in params:
            if name not in self.params:
                known = ", ".join(self.params) or "none"
                raise InputError(f"{self.operator} has no parameter {name!r}; its parameters: {known}")
        complete = {name: params.get(name, spec.default) for name, spec in self.params.items()}
        for name, value in complete.items():
            if not self.params[name].accepts(value):
                raise InputError(f"{self.operator}: {name}={value!r} must be {self.params[name].describe()}")
        return complete

    def bind(self, inputs: Mapping[str, Array | None], params: Mapping[str, Any]) -> dict[str, int]:
        """Sizes of the named dimensions; leading ``...`` dimensions are named d0, d1, …

        Raises
        ------
        InputError
            An input is missing, unknown, of the wrong rank or dtype, disagrees with another one about a
            dimension, or holds an index out of range.
        """
        for name in inputs:
            if name not in self.inputs:
                raise InputError(f"{self.operator} has no input {name!r}; its inputs: {', '.join(self.inputs)}")
        sizes: dict[str, int] = {}
        origin: dict[str, str] = {}
        for name, array in self.given(inputs).items():
            for dim, size in zip(self._dims_of(name, array, params), array.shape, strict=True):
                if sizes.setdefault(dim, size) != size:
                    raise InputError(
                        f"{self.operator}: dimension {dim} is {size} in {name} of shape {array.shape} "
                        f"but {sizes[dim]} in {origin[dim]}"
                    )
                origin.setdefault(dim, name)
        self._check_dtypes(inputs)
        self._check_indices(inputs, sizes)
        return sizes

    def given(self, inputs: Mapping[str, Array | None]) -> dict[str, Array]:
        """The inputs that are present, in order. A required one that is absent raises InputError."""
        present = {}
        for name, spec in self.inputs.items():
            array = inputs.get(name)
            if array is not None:
                if not isinstance(array, np.ndarray):
                    raise InputError(f"{self.operator}: {name} must be a NumPy array, not {type(array).__name__}")
                present[name] = array
            elif not spec.optional:
                raise InputError(f"{self.operator}: input {name} is missing")
        return present

    def shape_of(self, name: str, sizes: Mapping[str, int], params: Mapping[str, Any]) -> tuple[int, ...]:
        """Shape of input ``name`` where the named dimensions have the given sizes."""
        numbered = sorted((dim for dim in sizes if dim[0] == "d" and dim[1:].isdigit()), key=lambda dim: int(dim[1:]))
        leading = tuple(sizes[dim] for dim in numbered)
        shape: tuple[int, ...] = ()
        for dim in self.inputs[name].order(params):
            shape += leading if dim == "..." else (sizes[dim],)
        return shape

    def _dims_of(self, name: str, array: Array, params: Mapping[str, Any]) -> tuple[str, ...]:
        dims = self.inputs[name].order(params)
        if "..." not in dims:
            if array.ndim != len(dims):
                expected = ", ".join(dims)
                raise InputError(
                    f"{self.operator}: {name} has shape {array.shape}; expected {len(dims)} dimensions ({expected})"
                )
            return dims
        free = array.ndim - len(dims) + 1
        if free < 0:
            raise InputError(
                f"{self.operator}: {name} has shape {array.shape}; expected at least {len(dims) - 1} dimension(s)"
            )
        at = dims.index("...")
        return dims[:at] + tuple(f"d{axis}" for axis in range(free)) + dims[at + 1 :]

    def _check_dtypes(self, inputs: Mapping[str, Array | None]) -> None:
        first: tuple[str, str] | None = None
        for name, array in self.given(inputs).items():
            spec, dtype = self.inputs[name], array.dtype.name
            allowed = spec.dtypes or (self.dtypes if spec.kind == "float" else INTEGER_DTYPES)
            if dtype not in allowed:
                raise InputError(f"{self.operator}: {name} has dtype {dtype}; expected one of {', '.join(allowed)}")
            if spec.kind == "float" and not spec.dtypes:
                first = first or (name, dtype)
                if dtype != first[1]:
                    raise InputError(
                        f"{self.operator}: {name} has dtype {dtype} but {first[0]} has {first[1]}; "
                        "floating-point inputs share one dtype"
                    )

    def _check_indices(self, inputs: Mapping[str, Array | None], sizes: Mapping[str, int]) -> None:
        for name, array in self.given(inputs).items():
            spec = self.inputs[name]
            if spec.kind == "float" or array.size == 0:
                continue
            below = spec.below
            limit = math.prod(sizes[dim] for dim in below.split("*")) if isinstance(below, str) else below
            wrong = (array < spec.low) if limit is None else (array < spec.low) | (array >= limit)
            if wrong.any():
                at = tuple(int(axis[0]) for axis in np.nonzero(wrong))
                named = f"{spec.below} = {limit}" if isinstance(spec.below, str) else str(limit)
                wanted = f"at least {spec.low}" + ("" if limit is None else f" and below {named}")
                where = f"{name}[{', '.join(map(str, at))}]"
                raise InputError(f"{self.operator}: {where} = {array[at]} must be {wanted}")


def signature_of(name: str, function: Callable[..., Any], dtypes: tuple[str, ...] = FLOAT_DTYPES) -> Signature:
    """Read an operator's signature from the annotations of its function; ``dtypes`` are the operator's own.

    Raises
    ------
    TypeError
        An argument or the result lacks an annotation of this module.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    inputs: dict[str, Input] = {}
    params: dict[str, Param] = {}
    dtype_arguments: dict[str, str] = {}
    for argument in inspect.signature(function).parameters.values():
        if argument.name not in hints:
            raise TypeError(f"{name}: argument {argument.name} has no annotation")
        source = dtype_source(hints[argument.name])
        if source is not None:
            dtype_arguments[argument.name] = source
        elif argument.kind is inspect.Parameter.KEYWORD_ONLY:
            params[argument.name] = _param(argument.name, hints[argument.name], argument.default)
        else:
            inputs[argument.name] = _input(name, argument.name, hints[argument.name], argument.default is None)
    return Signature(name, inputs, params, outputs_of(name, hints.get("return")), dtypes, dtype_arguments)


def dtype_source(hint: Any) -> str | None:
    """The input whose dtype an argument is given, if it is annotated so."""
    return next((note.input for note in getattr(hint, "__metadata__", ()) if isinstance(note, DtypeOf)), None)


def _input(operator: str, name: str, hint: Any, optional: bool) -> Input:
    for member in (hint, *typing.get_args(hint)):
        for note in getattr(member, "__metadata__", ()):
            if isinstance(note, Floats):
                own = (note.dtype,) if isinstance(note.dtype, str) else note.dtype or ()
                choices = {"": note.dims} if isinstance(note.dims, str) else note.dims
                layouts = {choice: tuple(dims.split()) for choice, dims in choices.items()}
                dims = next(iter(layouts.values()))
                if note.chosen_by is None:
                    return Input(name, dims, "float", optional, note.transposed_by, dtypes=own)
                return Input(name, dims, "float", optional, dtypes=own, layouts=layouts, chosen_by=note.chosen_by)
            if isinstance(note, Integers):
                own = (note.dtype,) if note.dtype else ()
                dims = tuple(note.dims.split())
                return Input(name, dims, "integer", optional, below=note.below, low=note.low, dtypes=own)
    raise TypeError(f"{operator}: input {name} must be annotated Annotated[Array, Floats(...)] or Integers(...)")


def _param(name: str, hint: Any, default: Any) -> Param:
    limits: Range | None = None
    choices: tuple[Any, ...] = ()
    for note in getattr(hint, "__metadata__", ()):
        limits = note if isinstance(note, Range) else limits
    bare = hint.__origin__ if hasattr(hint, "__metadata__") else hint
    if typing.get_origin(bare) is Literal:
        choices = typing.get_args(bare)
        kinds = [type(choice) for choice in choices]
    elif isinstance(bare, types.UnionType) or typing.get_origin(bare) is typing.Union:
        kinds = list(typing.get_args(bare))
    else:
        kinds = [bare]
    return Param(name, tuple(kinds), default, choices, limits)


def outputs_of(operator: str, hint: Any) -> tuple[Output, ...]:
    """The outputs that an annotated result names, in order."""
    members = typing.get_args(hint) if typing.get_origin(hint) is tuple else (hint,)
    notes = [note for member in members for note in getattr(member, "__metadata__", ())]
    outputs = tuple(note for note in notes if isinstance(note, Output))
    if len(outputs) != len(members):
        raise TypeError(f"{operator}: each result must be annotated Annotated[Array, Output(name, like=...)]")
    return outputs
