"""The Operator record, its stages, and the registry of operators."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from oracle.choices import Choice, is_choice
from oracle.error import ErrorBounded, envelope, exact
from oracle.formats import Format, format_of, round_to
from oracle.numerics import Numerics
from oracle.parts import cut
from oracle.signature import (
    FLOAT_DTYPES,
    Array,
    InputError,
    Output,
    Signature,
    dtype_source,
    outputs_of,
    signature_of,
)
from oracle.suggestions import suggestion

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
    choice : Interval or Selection, optional
        What is right where several integers are; ``value`` then holds the definition's own.
    """

    name: str
    value: Array
    bound: Array
    sigma: Array
    format: Format
    compute: str
    choice: Choice | None = None


@dataclass(frozen=True)
class Stage:
    """One step of an operator: a plain NumPy function, and the outputs that it gives.

    `arrays` are its arguments: inputs of the operator, and outputs of earlier stages. Those it is given as the
    implementation returned them, so that each stage is judged on its own; `params` are the parameters that it takes.
    """

    outputs: tuple[Output, ...]
    function: Callable[..., Any]
    arrays: tuple[str, ...]
    params: tuple[str, ...]

    def run(self, arrays: Mapping[str, Any], params: Mapping[str, Any]) -> tuple[Any, ...]:
        """The outputs, in order, on arrays of either kind."""
        taken = {name: params[name] for name in self.params}
        result = self.function(*(arrays[name] for name in self.arrays), **taken)
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
    separable: tuple[str, ...] = ()

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

    @property
    def staged(self) -> bool:
        """Whether some outputs depend on what the implementation returned for others."""
        return len(self.stages) > 1

    @property
    def carried(self) -> tuple[str, ...]:
        """Names of the outputs that later stages start from."""
        taken = {name for stage in self.stages[1:] for name in stage.arrays}
        return tuple(output.name for output in self.outputs if output.name in taken)

    def stage(self, function: Callable[..., Any]) -> Operator:
        """Add a stage: a decorator of a function that follows the operator's own.

        Its positional arguments are inputs and outputs of earlier stages by name, its keyword arguments parameters;
        its result is annotated like an operator's.
        """
        hints = typing.get_type_hints(function, include_extras=True)
        outputs = outputs_of(self.name, hints.get("return"))
        stage = _stage(self.name, outputs, function)
        known = {*self.inputs, *(output.name for output in self.outputs)}
        for name in stage.arrays:
            if name not in known:
                raise TypeError(f"{self.name}: stage argument {name} is neither an input nor an earlier output")
        sources = {name: dtype_source(hint) for name, hint in hints.items()}
        dtype_arguments = {name: source for name, source in sources.items() if source is not None}
        signature = replace(
            self.signature,
            outputs=(*self.outputs, *outputs),
            dtype_arguments={**self.signature.dtype_arguments, **dtype_arguments},
        )
        object.__setattr__(self, "signature", signature)
        object.__setattr__(self, "stages", (*self.stages, stage))
        return self

    def value(self, inputs: Mapping[str, Array | None], params: Mapping[str, Any]) -> tuple[Array, ...]:
        """Outputs of the definition, in order: float64, and integers where they are. Raises as ``validate`` does."""
        self.validate(inputs, params)
        arrays = self._lifted(inputs, lambda x: x.astype(np.float64, copy=False))
        values = []
        for output, result in self._run(arrays, inputs, params, lambda stored: stored, {}, {}):
            value = result.ids if is_choice(result) else np.asarray(result)
            values.append(value if value.dtype.kind in "iu" else self._whole(value, output, inputs, params))
        return tuple(values)

    def expect(
        self,
        inputs: Mapping[str, Array | None],
        params: Mapping[str, Any],
        numerics: Numerics,
        returned: Mapping[str, Array] | None = None,
        known: dict[Any, tuple[Any, ...]] | None = None,
    ) -> tuple[Expected, ...]:
        """Outputs with the envelope that any implementation keeping ``numerics`` stays in.

        Parameters
        ----------
        returned
            What an implementation gave for outputs that later stages depend on, by name. Those that are left out are
            the definition's own, rounded.
        known
            Results of stages, kept from earlier calls for the same inputs, parameters and numerics, so that a stage
            which starts from the same bits runs once.

        Raises
        ------
        InputError
            As ``validate`` does.
        """
        sizes = self.validate(inputs, params)
        parted = cut(self.signature, inputs, sizes, self.signature.complete(params), self.separable)
        if parted is not None:
            results = [self.expect(part, params, numerics) for part in parted.parts]
            return tuple(_joined(outputs, parted.axis) for outputs in zip(*results, strict=True))
        lift = partial(exact, numerics=numerics)
        arrays = self._lifted(inputs, lift)
        expected = []
        for output, result in self._run(arrays, inputs, params, lift, returned or {}, {} if known is None else known):
            output_format = self.output_format(output, inputs, params)
            name, zero = output.name, np.zeros(())
            if is_choice(result):
                zeros = np.zeros(result.ids.shape)
                expected.append(Expected(name, result.ids, zeros, zeros, output_format, numerics.compute, result))
            elif not isinstance(result, ErrorBounded):  # plain integers
                value = np.asarray(result)
                zeros = zero + np.zeros(value.shape)
                expected.append(Expected(name, value, zeros, zeros, output_format, numerics.compute))
            else:
                settled = envelope(result, output_format)
                parts = settled.value, settled.bound, settled.sigma
                expected.append(Expected(name, *parts, output_format, numerics.compute))
        return tuple(expected)

    def output_format(
        self, output: Output, inputs: Mapping[str, Array | None], params: Mapping[str, Any] | None = None
    ) -> Format:
        """Number format of an output for inputs of given dtypes and given parameters."""
        chosen = self.signature.complete(params or {})[output.chosen_by] if output.chosen_by else None
        name = output.dtype if chosen is None else str(chosen)
        if name is not None:
            return format_of(name)
        assert output.like is not None
        source = inputs[output.like]
        if source is None:
            raise InputError(f"{self.name}: input {output.like} is missing")
        if output.statistic:
            return format_of("float64" if source.dtype == np.float64 else "float32")
        return format_of(source.dtype)

    def _lifted(self, inputs: Mapping[str, Array | None], floats: Callable[[Array], Any]) -> dict[str, Any]:
        """Numbers through ``floats``; indices and absent inputs as they are."""
        lifted: dict[str, Any] = {}
        for name, spec in self.inputs.items():
            array = inputs.get(name)
            lifted[name] = array if array is None or spec.kind == "integer" else floats(array)
        return lifted

    def _whole(
        self, value: Array, output: Output, inputs: Mapping[str, Array | None], params: Mapping[str, Any]
    ) -> Array:
        """Numbers that an output stores as integers, rounded; other numbers as they are."""
        output_format = self.output_format(output, inputs, params)
        return round_to(value, output_format) if output_format.is_integer else value

    def _run(
        self,
        arrays: dict[str, Any],
        inputs: Mapping[str, Array | None],
        params: Mapping[str, Any],
        lift: Callable[[Array], Any],
        returned: Mapping[str, Array],
        known: dict[Any, tuple[Any, ...]],
    ) -> Iterator[tuple[Output, Any]]:
        """Each output with its result; later stages get what was returned, or else the rounded result."""
        complete = {**self.signature.complete(params), **self.signature.dtype_names(inputs)}
        bits: dict[str, bytes] = {}
        for number, stage in enumerate(self.stages):
            key = number, *(bits[name] for name in stage.arrays if name in bits)
            if key not in known:
                with np.errstate(all="ignore"):
                    known[key] = stage.run(arrays, complete)
            results = known[key]
            yield from zip(stage.outputs, results, strict=True)
            if number + 1 == len(self.stages):
                return
            for output, result in zip(stage.outputs, results, strict=True):
                stored = returned.get(output.name)
                if stored is None:
                    value = result.ids if is_choice(result) else getattr(result, "value", result)
                    target = self.output_format(output, inputs, params)
                    stored = value if np.asarray(value).dtype.kind in "iu" else round_to(value, target)
                elif is_choice(result):  # what cannot be right is nothing that a later stage could start from
                    stored = np.where(result.wrong(stored), result.ids, stored)
                elif stored.dtype.kind not in "iu" or format_of(stored.dtype).name == "int8":
                    stored = stored.astype(np.float64)
                bits[output.name] = stored.tobytes()
                arrays[output.name] = stored if stored.dtype.kind in "iu" else lift(stored)


def _joined(parts: tuple[Expected, ...], axis: int) -> Expected:
    """One output of all parts of a large input."""
    value, bound, sigma = (
        np.concatenate([getattr(part, name) for part in parts], axis) for name in ("value", "bound", "sigma")
    )
    return replace(parts[0], value=value, bound=bound, sigma=sigma)


def _stage(operator: str, outputs: tuple[Output, ...], function: Callable[..., Any]) -> Stage:
    """The stage that a function is: its positional arguments are arrays, its keyword arguments parameters."""
    arrays: list[str] = []
    params: list[str] = []
    for argument in inspect.signature(function).parameters.values():
        (params if argument.kind is inspect.Parameter.KEYWORD_ONLY else arrays).append(argument.name)
    return Stage(outputs, function, tuple(arrays), tuple(params))


OPERATORS: dict[str, Operator] = {}


class UnknownOperatorError(LookupError):
    """No operator has the name that was asked for; the message suggests the nearest one."""


def operator(
    family: str,
    check: Check | None = None,
    dtypes: tuple[str, ...] = FLOAT_DTYPES,
    separable: tuple[str, ...] = (),
) -> Callable[[Callable[..., Any]], Operator]:
    """Register a plain NumPy function as an operator.

    Parameters
    ----------
    family : str
        The family that the operator belongs to; one file of ``oracle.ops`` each.
    check : function, optional
        Given the sizes of the named dimensions and the complete parameters, returns what is wrong with their
        combination, or None.
    dtypes : tuple of str
        The dtypes that inputs without one of their own may have; a case has one of them.
    separable : tuple of str
        Dimensions along which a large input is cut before its analysis, see `oracle.parts.cut`; for operators of one
        stage whose outputs are numbers.
    """

    def register(function: Callable[..., Any]) -> Operator:
        name = function.__name__
        if name in OPERATORS:
            raise ValueError(f"operator {name} is registered twice")
        signature = signature_of(name, function, dtypes)
        doc = inspect.cleandoc(function.__doc__ or "")
        record = Operator(
            name, family, signature, (_stage(name, signature.outputs, function),), doc, check, dtypes, separable
        )
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
        hint = suggestion(name, sorted(OPERATORS), "known operators")
        raise UnknownOperatorError(f"unknown operator {name!r}; {hint}")
    return OPERATORS[name]
