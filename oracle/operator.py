"""The Operator record, its stages, and the registry of operators."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from oracle.error import envelope, exact
from oracle.formats import Format, format_of
from oracle.numerics import Numerics
from oracle.signature import FLOAT_DTYPES, Array, InputError, Output, Signature, signature_of

Check = Callable[[Mapping[str, int], Mapping[str, Any]], "str | None"]


@dataclass(frozen=True)
class Expected:
    """What one output must be.

    Attributes
    ----------
    name : str
        Output name.
    value : float64 array
        The value of the definition.
    bound : float64 array
        How far any honest implementation may lie from it before its last rounding; 0 means bitwise.
    sigma : float64 array
        Standard deviation of an honest implementation around ``value``.
    format : Format
        The output's number format; the acceptance rule rounds to it.
    compute : str
        Name of the format in which the implementation promised to compute.
    """

    name: str
    value: Array
    bound: Array
    sigma: Array
    format: Format
    compute: str


@dataclass(frozen=True)
class Stage:
    """One step of an operator: a plain NumPy function and the outputs that it gives."""

    outputs: tuple[Output, ...]
    function: Callable[..., Any]

    def run(self, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> tuple[Any, ...]:
        """The outputs, in order, on arrays of either kind."""
        result = self.function(*inputs.values(), **params)
        return result if isinstance(result, tuple) else (result,)


@dataclass(frozen=True)
class Operator:
    """What to compute: a name, a signature, and plain NumPy code that runs on float64 and on error-bounded arrays.

    Calling an operator validates its arguments and returns the float64 value of its definition: one array, or a
    tuple where it has several outputs.
    """

    name: str
    family: str
    signature: Signature
    stages: tuple[Stage, ...]
    doc: str
    check: Check | None = None
    dtypes: tuple[str, ...] = field(default=FLOAT_DTYPES)

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Input specifications by name, in the order of the arguments."""
        return MappingProxyType(self.signature.inputs)

    @property
    def params(self) -> Mapping[str, Any]:
        """Parameter specifications by name."""
        return MappingProxyType(self.signature.params)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Output specifications in the order of the results."""
        return self.signature.outputs

    @property
    def summary(self) -> str:
        """First sentence of the documentation."""
        return self.doc.partition("\n")[0]

    def __call__(self, *arrays: Array | None, **keywords: Any) -> Any:
        if len(arrays) > len(self.inputs):
            names = ", ".join(self.inputs)
            raise InputError(f"{self.name} takes {len(self.inputs)} arrays ({names}), not {len(arrays)}")
        inputs = dict(zip(self.inputs, arrays, strict=False))
        inputs.update({name: keywords.pop(name) for name in list(keywords) if name in self.inputs})
        values = self.value(inputs, keywords)
        return values if len(values) > 1 else values[0]

    def validate(self, inputs: Mapping[str, Array | None], params: Mapping[str, Any]) -> dict[str, int]:
        """Check inputs and parameters against the specification and return the sizes of the named dimensions.

        Raises
        ------
        InputError
            Naming the offending value and what was expected.
        """
        complete = self.signature.complete(params)
        sizes = self.signature.bind(inputs, complete)
        problem = self.check(sizes, complete) if self.check else None
        if problem:
            raise InputError(f"{self.name}: {problem}")
        return sizes

    def value(self, inputs: Mapping[str, Array | None], params: Mapping[str, Any]) -> tuple[Array, ...]:
        """Outputs of the definition in float64, in order. Raises InputError as ``validate`` does."""
        self.validate(inputs, params)
        lifted = {name: _lift(array, lambda x: x.astype(np.float64)) for name, array in self._arguments(inputs)}
        return tuple(np.asarray(value) for value in self._run(lifted, params))

    def expect(
        self, inputs: Mapping[str, Array | None], params: Mapping[str, Any], numerics: Numerics
    ) -> tuple[Expected, ...]:
        """Outputs with the envelope that any implementation keeping ``numerics`` stays in.

        Raises
        ------
        InputError
            As ``validate`` does.
        """
        self.validate(inputs, params)
        lifted = {name: _lift(array, lambda x: exact(x, numerics)) for name, array in self._arguments(inputs)}
        expected = []
        for output, result in zip(self.outputs, self._run(lifted, params), strict=True):
            output_format = self.output_format(output, inputs)
            settled = envelope(result, output_format)
            expected.append(
                Expected(output.name, settled.value, settled.bound, settled.sigma, output_format, numerics.compute)
            )
        return tuple(expected)

    def output_format(self, output: Output, inputs: Mapping[str, Array | None]) -> Format:
        """Number format of an output for inputs of given dtypes."""
        source = inputs[output.like]
        if source is None:
            raise InputError(f"{self.name}: input {output.like} is missing")
        if output.statistic:
            return format_of("float64" if source.dtype == np.float64 else "float32")
        return format_of(source.dtype)

    def _arguments(self, inputs: Mapping[str, Array | None]) -> Iterator[tuple[str, Array | None]]:
        return ((name, inputs.get(name)) for name in self.inputs)

    def _run(self, lifted: Mapping[str, Any], params: Mapping[str, Any]) -> tuple[Any, ...]:
        complete = self.signature.complete(params)
        with np.errstate(all="ignore"):
            return tuple(value for stage in self.stages for value in stage.run(lifted, complete))


def _lift(array: Array | None, floats: Callable[[Array], Any]) -> Any:
    """Floating-point arrays through ``floats``; indices and absent inputs as they are."""
    return array if array is None or array.dtype.kind in "iu" else floats(array)


OPERATORS: dict[str, Operator] = {}


class UnknownOperatorError(LookupError):
    """No operator has the name that was asked for; the message suggests the nearest one."""


def operator(family: str, check: Check | None = None) -> Callable[[Callable[..., Any]], Operator]:
    """Register a plain NumPy function as an operator.

    Parameters
    ----------
    family : str
        The family that the operator belongs to; one file of ``oracle.ops`` each.
    check : function, optional
        Given the sizes of the named dimensions and the complete parameters, returns what is wrong with their
        combination, or None.
    """

    def register(function: Callable[..., Any]) -> Operator:
        name = function.__name__
        if name in OPERATORS:
            raise ValueError(f"operator {name} is registered twice")
        signature = signature_of(name, function)
        doc = inspect.cleandoc(function.__doc__ or "")
        record = Operator(name, family, signature, (Stage(signature.outputs, function),), doc, check)
        object.__setattr__(record, "__doc__", function.__doc__)
        OPERATORS[name] = record
        return record

    return register


def find_operator(name: str) -> Operator:
    """The operator called ``name``.

    Raises
    ------
    UnknownOperatorError
        With the nearest names.
    """
    import oracle.ops  # noqa: F401  registers every family

    if name not in OPERATORS:
        near = difflib.get_close_matches(name, OPERATORS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known operators: {', '.join(sorted(OPERATORS))}"
        raise UnknownOperatorError(f"unknown operator {name!r}; {hint}")
    return OPERATORS[name]
