"""Backend over an installed library of array functions: a table of which of them serves which operator.

Each entry is a plain function of the library's own arrays, bound as `FunctionBackend` binds one: the operator's inputs
by position, parameters by name. What it does not name is refused off its default; what it serves only in part is data::

    table = Table()

    @table.serves("argmax", "jax.numpy.argmax", only={"ties": ("lowest",)})
    def argmax(x):
        return jnp.argmax(x, axis=-1).astype("int32")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from oracle.cases import LAYOUTS
from oracle.numerics import NUMERICS, Numerics
from oracle.operator import OPERATORS, find_operator
from refsim.conformance.backends.backend import Capability, Refused, RunResult, UsageError, promised, usual_numerics
from refsim.conformance.backends.functions import Call

FLOATS = ("float16", "bfloat16", "float32", "float64")
UNKNOWN = "its adapter knows no function for it"
NO_GRAPH = "its steps depend on values, so it is no one graph"
DEVICES = ("cpu", "cuda")
CONTIGUOUS = ("contiguous", "misaligned")
Function = TypeVar("Function", bound=Callable[..., Any])
Inputs = Mapping[str, np.ndarray[Any, Any] | None]


def in_dtype(dtype: str) -> Numerics:
    """Every intermediate result is rounded to the arrays' dtype: code made of several of a library's functions."""
    if dtype in NUMERICS:
        return NUMERICS[dtype]
    return NUMERICS["float16"].with_changes(name=dtype, compute=dtype)


def usual(dtype: str) -> Numerics:
    """float64 in float64, float32 inside for everything else: one function that says nothing of its inside."""
    return promised(usual_numerics(dtype))


def term_by_term(dtype: str) -> Numerics:
    """As `usual`, with means and variances that are updated with each term (Welford)."""
    numerics = usual(dtype)
    return numerics.with_changes(name=f"{numerics.name}_welford", welford=True)


def weights_in_dtype(dtype: str, rest: Callable[[str], Numerics] = usual) -> Numerics:
    """As ``rest``, with softmax weights of 16-bit inputs rounded to their dtype before they meet v."""
    numerics = rest(dtype)
    if dtype not in ("float16", "bfloat16"):
        return numerics
    return numerics.with_changes(name=f"{numerics.name}, {dtype} weights", probability_format=dtype)


@dataclass(frozen=True)
class Served:
    """One function of a library that serves an operator.

    Attributes
    ----------
    function : str
        The library's name of it; the kernel of the report.
    call : callable
        The library's arrays in, its arrays out.
    dtypes : tuple of str
        Of the floating-point inputs.
    only : mapping
        Values of parameters that are served, where not all are; the function need not take these parameters.
    layouts : tuple of str
        Layouts that are served.
    numerics : function
        The arithmetic that is promised, of the dtype.
    refuses : function, optional
        Why arrays and parameters are not served, or None.
    devices : tuple of str
        Kinds of devices that the function has kernels for, of ``cpu`` and ``cuda``.
    on_gpu : function, optional
        The arithmetic that is promised on a GPU, of the dtype, where it is another one.
    compiles : bool
        Whether it can be compiled as a whole: none of its steps depends on an array's values.
    """

    operator: str
    function: str
    call: Callable[..., Any]
    dtypes: tuple[str, ...]
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    layouts: tuple[str, ...] = tuple(LAYOUTS)
    numerics: Callable[[str], Numerics] = usual
    refuses: Callable[[Inputs, Mapping[str, Any]], str | None] | None = None
    devices: tuple[str, ...] = DEVICES
    on_gpu: Callable[[str], Numerics] | None = None
    compiles: bool = True

    def limits(self) -> dict[str, Any]:
        """Layouts, devices, and values of parameters where not all are served, as JSON values."""
        only = {name: list(values) for name, values in self.only.items()}
        return {"layouts": list(self.layouts), "devices": list(self.devices), "only": only}

    def refusal(self, inputs: Inputs, params: Mapping[str, Any]) -> str | None:
        """Why a case is not served, or None."""
        for name, values in self.only.items():
            if params[name] not in values:
                return f"{self.function} has {name}={' or '.join(map(repr, values))} only, not {params[name]!r}"
        if self.layouts == CONTIGUOUS:
            for name, array in inputs.items():
                if array is not None and not array.flags.c_contiguous:
                    return f"{self.function} takes contiguous arrays only, and {name} has strides {array.strides}"
        return self.refuses(inputs, params) if self.refuses else None


class Table:
    """What a library serves, in the order of the report.

    Parameters
    ----------
    numerics : function
        What a function promises that says nothing else, of the dtype.
    dtypes : tuple of str, optional
        Of the operator's own dtypes, those that a function serves that says nothing else; all of them if not given.
    """

    def __init__(self, numerics: Callable[[str], Numerics] = usual, dtypes: tuple[str, ...] | None = None) -> None:
        self.rows: list[Served] = []
        self.usual = numerics
        self.dtypes = dtypes

    def serves(
        self, operator: str, function: str, dtypes: tuple[str, ...] | None = None, **more: Any
    ) -> Callable[[Function], Function]:
        """Register the decorated function as what serves ``operator``; ``more`` as in `Served`."""

        def add(call: Function) -> Function:
            own = find_operator(operator).dtypes
            here = own if self.dtypes is None else tuple(dtype for dtype in own if dtype in self.dtypes)
            details = {"numerics": self.usual, **more}
            self.rows.append(Served(operator, function, call, here if dtypes is None else dtypes, **details))
            return call

        return add


class Arrays(Protocol):
    """How NumPy arrays become a library's and back, on one of its devices."""

    device: str

    def on(self, device: str) -> Arrays:
        """The same on another device. Raises UsageError where there is none of that name."""

    def scope(self, inputs: Inputs) -> AbstractContextManager[Any]:
        """What a run on these inputs happens within."""

    def load(self, array: np.ndarray[Any, Any]) -> Any:
        """The library's array of the same values."""

    def store(self, output: Any) -> Any:
        """The NumPy array of a result; anything else as it is, for the judge to refuse."""


class HostArrays:
    """NumPy's own arrays, on the CPU: for libraries whose functions take and give them."""

    device = "cpu"

    def on(self, device: str) -> HostArrays:
        """No other device. Raises UsageError."""
        raise UsageError(f"the backend runs on the CPU only, not on {device}; leave out --device {device}")

    def scope(self, inputs: Inputs) -> AbstractContextManager[Any]:
        """Nothing around a run."""
        return nullcontext()

    def load(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The array itself."""
        return array

    def store(self, output: Any) -> Any:
        """The output itself."""
        return output


class LibraryBackend:
    """Judges an installed library.

    Parameters
    ----------
    name : str
        The backend's name in reports.
    arrays : Arrays
        Its arrays.
    rows : iterable of Served
        What it serves.
    absent : mapping of str to str
        Why it serves no operator of that name; what is neither served nor named gets a reason that says no more.
    deterministic : bool
        Whether a second run is promised to give the same bits.
    """

    def __init__(
        self,
        name: str,
        arrays: Arrays,
        rows: Iterable[Served],
        absent: Mapping[str, str],
        deterministic: bool = True,
    ) -> None:
        self.name = name
        self.arrays = arrays
        self.device = arrays.device
        self.rows: dict[tuple[str, str], Served] = {(row.operator, row.function): row for row in rows}
        served = {row.operator for row in self.rows.values()}
        others = {name: UNKNOWN for name in OPERATORS if name not in served}
        self.absent = {**others, **absent}
        self.deterministic = deterministic
        self.calls = {key: Call(row.call, find_operator(row.operator)) for key, row in self.rows.items()}

    def on(self, device: str) -> LibraryBackend:
        """The same on a real device such as ``cuda:0``; where a simulated one is named, on the library's own."""
        if device.startswith("sim:"):
            return self
        return LibraryBackend(self.name, self.arrays.on(device), self.rows.values(), self.absent, self.deterministic)

    def variant(self, name: str, word: str, change: Callable[[Served], Callable[..., Any]]) -> LibraryBackend:
        """The same functions after a ``change``, those that compile; ``word`` stands before their names."""
        rows = [
            replace(row, function=f"{word} {row.function}", call=change(row))
            for row in self.rows.values()
            if row.compiles
        ]
        whole = {row.operator for row in rows}
        apart = {row.operator: NO_GRAPH for row in self.rows.values() if row.operator not in whole}
        return LibraryBackend(name, self.arrays, rows, {**self.absent, **apart}, self.deterministic)

    def capabilities(self) -> list[Capability]:
        """Every operator, function and dtype on this kind of device."""
        kind = self.device.partition(":")[0]
        return [
            Capability(row.operator, row.function, dtype)
            for row in self.rows.values()
            if kind in row.devices
            for dtype in row.dtypes
        ]

    def numerics(self, operator: str, kernel: str, dtype: str) -> Numerics:
        """What the function promises."""
        row = self.rows[operator, kernel]
        return row.on_gpu(dtype) if row.on_gpu and self.device != "cpu" else row.numerics(dtype)

    def run(self, operator: str, kernel: str, inputs: Inputs, params: Mapping[str, Any]) -> RunResult:
        """Run one case. Raises Refused where the function does not serve it."""
        row, call = self.rows[operator, kernel], self.calls[operator, kernel]
        unlimited = {name: value for name, value in params.items() if name not in row.only}
        reason = row.refusal(inputs, params) or call.refuses(inputs, unlimited)
        if reason:
            raise Refused(reason)
        with self.arrays.scope(inputs):
            taken = {name: None if array is None else self.arrays.load(array) for name, array in inputs.items()}
            result = call(taken, params)
            outputs = result if isinstance(result, tuple | list) else (result,)
            return RunResult([self.arrays.store(output) for output in outputs], deterministic=self.deterministic)


def by_operator(reasons: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Why each operator is not served, of the operators of each reason. Raises ValueError where one has two reasons."""
    pairs = [(operator, reason) for reason, operators in reasons.items() for operator in operators]
    names = [operator for operator, _ in pairs]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"more than one reason for {', '.join(twice)}; leave one")
    return dict(pairs)


def not_installed(library: str, command: str, error: ImportError) -> UsageError:
    """The error of an adapter whose library, or something that it needs, cannot be imported."""
    return UsageError(f"{library} is not installed, or not in full: {error}; install it with: {command}")
