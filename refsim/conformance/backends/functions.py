"""Backend over one function of a user's module: plain NumPy, or host code that launches ``cuda.jit`` kernels.

A plain function takes the operator's inputs by position, in the operator's order, and those of the parameters that it
names by keyword; it returns the output, or a tuple of them in the operator's order::

    def my_rmsnorm(x, weight, eps=1e-6):
        ...

Host code is the same with ``launcher`` as its first argument, a `refsim.library.Launcher`; arrays that it hands to
``launcher.launch`` are the device's::

    def my_rmsnorm(launcher, x, weight, eps=1e-6):
        out = launcher.empty(x.shape, x.dtype)
        launcher.launch(my_kernel, x.shape[0], 128, launcher.array(x), launcher.array(weight), eps, out)
        return out

Cases with a parameter off its default, or with an optional input, that the function does not take are refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracle.numerics import Numerics
from oracle.operator import Operator
from refsim.conformance.backends.backend import (
    Capability,
    Refused,
    RunResult,
    UsageError,
    promised,
    usual_numerics,
)
from refsim.conformance.backends.kernels import KernelBackend
from refsim.library import Kernel

DTYPES = ("float16", "float32", "float64")


class FunctionBackend:
    """Judges a plain NumPy function as one operator.

    Parameters
    ----------
    function : callable
        NumPy arrays in, NumPy arrays out.
    operator : Operator
        What it claims to be.
    name : str
        The backend's name in reports.

    Raises
    ------
    UsageError
        The function cannot take the operator's inputs by position.
    """

    device = "host"

    def __init__(self, function: Callable[..., Any], operator: Operator, name: str) -> None:
        self.name = name
        self.operator = operator
        self.kernel = getattr(function, "__name__", type(function).__name__)
        self.call = Call(function, operator)

    def capabilities(self) -> list[Capability]:
        """The one operator, in each of its dtypes; bfloat16 only runs where it is asked for."""
        return [Capability(self.operator.name, self.kernel, dtype) for dtype in self.operator.dtypes]

    def numerics(self, operator: str, kernel: str, dtype: str) -> Numerics:
        """The usual numerics of the dtype."""
        return promised(usual_numerics(dtype))

    def run(
        self,
        operator: str,
        kernel: str,
        inputs: Mapping[str, np.ndarray[Any, Any] | None],
        params: Mapping[str, Any],
    ) -> RunResult:
        """Call the function. Raises Refused where it does not take what the case has."""
        reason = self.call.refuses(inputs, params)
        if reason:
            raise Refused(reason)
        result = self.call(inputs, params)
        return RunResult(result if isinstance(result, tuple | list) else (result,))


class Call:
    """How a function takes an operator's inputs and parameters; ``leading`` arguments come before the inputs."""

    def __init__(self, function: Callable[..., Any], operator: Operator, leading: int = 0) -> None:
        self.function = function
        self.operator = operator
        try:
            arguments = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError) as error:
            raise UsageError(f"{function!r} has no signature that can be read; wrap it in a plain function") from error
        self.takes_any = any(argument.kind is argument.VAR_KEYWORD for argument in arguments)
        self.names = {argument.name for argument in arguments if argument.kind is not argument.POSITIONAL_ONLY}
        positional = [
            argument
            for argument in arguments
            if argument.kind in (argument.POSITIONAL_ONLY, argument.POSITIONAL_OR_KEYWORD)
            and (argument.name not in operator.params)
        ][leading:]
        any_count = any(argument.kind is argument.VAR_POSITIONAL for argument in arguments)
        self.places = len(operator.inputs) if any_count else min(len(positional), len(operator.inputs))
        required = [name for name, spec in operator.inputs.items() if not spec.optional]
        extra = [argument for argument in positional[self.places :] if argument.default is argument.empty]
        if self.places < len(required) or extra:
            shown = f"{getattr(function, '__name__', function)}({', '.join(argument.name for argument in arguments)})"
            wanted = ", ".join(list(("launcher",) * leading) + list(operator.inputs))
            raise UsageError(
                f"{shown} cannot be judged as {operator.name}: it must take {wanted} by position, in this order"
            )

    def refuses(self, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> str | None:
        """Why the function cannot be given this case, or None."""
        for name in list(self.operator.inputs)[self.places :]:
            if inputs.get(name) is not None:
                return f"the function takes no {name}"
        for name, value in params.items():
            if not self._takes(name) and value != self.operator.params[name].default:
                return f"the function takes no {name}, so it cannot be asked for {name}={value!r}"
        return None

    def __call__(self, inputs: Mapping[str, Any], params: Mapping[str, Any], *leading: Any) -> Any:
        arrays = [inputs.get(name) for name in list(self.operator.inputs)[: self.places]]
        keywords = {name: value for name, value in params.items() if self._takes(name)}
        return self.function(*leading, *arrays, **keywords)

    def _takes(self, name: str) -> bool:
        return self.takes_any or name in self.names


def takes_launcher(function: Callable[..., Any]) -> bool:
    """Whether a function is host code: its first argument is called ``launcher``."""
    try:
        arguments = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return False
    return arguments[:1] == ["launcher"]


def launched(function: Callable[..., Any], operator: Operator, name: str, device: str) -> KernelBackend:
    """A backend over host code that launches kernels through its first argument."""
    call = Call(function, operator, leading=1)
    kernel = Kernel(
        name=getattr(function, "__name__", type(function).__name__),
        operators=(operator.name,),
        dtypes=tuple(dtype for dtype in operator.dtypes if dtype in DTYPES) or operator.dtypes,
        run=lambda launcher, inputs, params: call(inputs, params, launcher),
        accepts=call.refuses,
        doc=inspect.getdoc(function) or "",
    )
    return KernelBackend(name, [kernel], device)
