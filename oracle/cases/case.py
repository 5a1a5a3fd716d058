"""The Case record: structure from which a run's inputs are drawn, and its JSON form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from oracle.cases.layouts import LAYOUTS, SPARSE_LAYOUTS
from oracle.cases.recipes import recipe_of
from oracle.formats import cast, format_of
from oracle.operator import Operator, find_operator
from oracle.signature import Array, Input, InputError

# What the fields are in JSON; what the values must be is checked when the case is made.
FIELDS: tuple[tuple[str, Any, str], ...] = (
    ("operator", str, "a name"),
    ("dims", Mapping, "an object of sizes"),
    ("params", Mapping, "an object of parameters"),
    ("absent", list | tuple, "a list of names"),
)


@dataclass(frozen=True)
class Case:
    """One run of an operator, as structure: a few lines of JSON from which the same arrays are drawn bit for bit.

    Attributes
    ----------
    operator, dtype : str
        What runs, and the dtype of its floating-point inputs.
    dims : mapping of str to int
        Sizes of the named dimensions; leading ``...`` dimensions are d0, d1, …
    params : mapping
        Parameters that are not at their default.
    value_class : str
        Family of numbers the inputs are drawn from (``oracle.cases.values`` and the operator's recipe).
    layout : str
        Where the elements lie in memory (``oracle.cases.layouts``).
    seed : int
        Seed of the generator.
    absent : tuple of str
        Optional inputs that are left out.
    """

    operator: str
    dtype: str
    dims: Mapping[str, int]
    params: Mapping[str, Any] = field(default_factory=dict)
    value_class: str = "normal"
    layout: str = "contiguous"
    seed: int = 0
    absent: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        record = find_operator(self.operator)
        classes = recipe_of(self.operator).classes
        _require("dtype", self.dtype, record.dtypes)
        params = record.signature.complete(self.params)
        _check_sizes(record, self.dims, params)
        _require("value_class", self.value_class, tuple(classes))
        _require("layout", self.layout, (*LAYOUTS, *SPARSE_LAYOUTS))
        for name in self.absent:
            _require("absent input", name, tuple(name for name, spec in record.inputs.items() if spec.optional))
        if not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"seed {self.seed!r} must be an integer of at least 0")

    def inputs(self) -> dict[str, Array | None]:
        """The input arrays, in the operator's order; None for those left out. Every call draws fresh, equal arrays."""
        signature = find_operator(self.operator).signature
        recipe = recipe_of(self.operator)
        params = signature.complete(self.params)
        number_format = format_of(self.dtype)
        shapes = {
            name: signature.shape_of(name, self.dims, params) for name in signature.inputs if name not in self.absent
        }
        rng = np.random.default_rng(self.seed)
        drawn = recipe.classes[self.value_class](rng, shapes, params, number_format)
        place = (LAYOUTS | SPARSE_LAYOUTS)[self.layout]
        return {
            name: None if name in self.absent else place(_stored(drawn[name], spec, self.dtype))
            for name, spec in signature.inputs.items()
        }

    def to_json(self) -> dict[str, Any]:
        """The case as JSON values; fields at their default are left out."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        values["dims"], values["params"], values["absent"] = dict(self.dims), dict(self.params), list(self.absent)
        return {name: value for name, value in values.items() if name != "absent" or value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | str) -> Case:
        """The case that ``to_json`` described, given as JSON values or as text.

        Raises
        ------
        InputError
            Naming the field that is missing, unknown or invalid.
        """
        values = json.loads(data) if isinstance(data, str) else data
        if not isinstance(values, Mapping):
            raise InputError(f"a case is a JSON object, not {type(values).__name__}")
        known = {entry.name for entry in fields(cls)}
        for name in ("operator", "dtype", "dims"):
            if name not in values:
                raise InputError(f"the case has no field {name!r}")
        for name, kind, what in FIELDS:
            if name in values and not isinstance(values[name], kind):
                raise InputError(f"field {name!r} of a case must be {what}, not {values[name]!r}")
        for name in values:
            if name not in known:
                raise InputError(f"a case has no field {name!r}; its fields: {', '.join(sorted(known))}")
        return cls(**{**values, "absent": tuple(values.get("absent", ()))})

    def __str__(self) -> str:
        shape = " ".join(f"{name}={size}" for name, size in self.dims.items())
        params = "".join(f" {name}={value!r}" for name, value in self.params.items())
        absent = "".join(f" without {name}" for name in self.absent)
        drawn = f"{self.value_class} · {self.layout} · seed {self.seed}"
        return f"{self.operator} {self.dtype} {shape}{params}{absent} · {drawn}"


def _check_sizes(record: Operator, dims: Mapping[str, int], params: Mapping[str, Any]) -> None:
    """Each named dimension has a size, and nothing else has."""
    named = {dim for spec in record.inputs.values() for dim in spec.order(params)}
    leading = [f"d{axis}" for axis in range(len(dims))] if "..." in named else []
    named.discard("...")
    for name in sorted(named):
        if name not in dims:
            raise InputError(f"{record.name}: the case gives no size for dimension {name!r}")
    for name in dims:
        _require("dimension", name, (*sorted(named), *leading))
    for name, size in dims.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise InputError(f"{record.name}: size {size!r} of dimension {name!r} must be an integer of at least 0")


def _require(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{what} {value!r} is unknown; known: {', '.join(allowed)}")


def _stored(values: Array, spec: Input, dtype: str) -> Array:
    """What was drawn in the input's dtype: indices as they are, numbers rounded; only what was infinite is so.

    An input that may have several dtypes of its own is drawn in one of them.
    """
    if spec.kind == "integer":
        return values.astype(spec.dtypes[0]) if spec.dtypes else values
    if spec.dtypes:
        drawn = values.dtype.name
        dtype = drawn if drawn in spec.dtypes and drawn != "float64" else spec.dtypes[0]
    target = format_of(dtype)
    stored = cast(values.astype(np.float64), target, saturate=True)
    if target.has_infinity:
        infinite = np.isinf(values.astype(np.float64))
        stored[infinite] = values[infinite]
    return stored
