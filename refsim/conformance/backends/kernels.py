"""Backend over a list of kernels that are launched on a simulated device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import refsim
from oracle.numerics import Numerics
from refsim.conformance.backends.backend import Capability, Refused, RunResult, UsageError, promised, usual_numerics
from refsim.library import Kernel, SimulatedLauncher


class KernelBackend:
    """Runs `refsim.library.Kernel` records.

    Parameters
    ----------
    name : str
        The backend's name in reports.
    kernels : iterable of Kernel
        In the order of the report.
    device : str
        A simulated device such as ``sim:sm_90``.

    Raises
    ------
    UsageError
        Two kernels have the same name.
    """

    def __init__(self, name: str, kernels: Iterable[Kernel], device: str = "sim:sm_90") -> None:
        self.name = name
        self.kernels: dict[str, Kernel] = {}
        for kernel in kernels:
            if self.kernels.setdefault(kernel.name, kernel) is not kernel:
                raise UsageError(f"{name} has two kernels called {kernel.name!r}; give each a name of its own")
        self.device = device

    def on(self, device: str) -> KernelBackend:
        """The same kernels on another device."""
        return KernelBackend(self.name, self.kernels.values(), device)

    def capabilities(self) -> list[Capability]:
        """Every operator and dtype of every kernel."""
        return [
            Capability(operator, kernel.name, dtype)
            for kernel in self.kernels.values()
            for operator in kernel.operators
            for dtype in kernel.dtypes
        ]

    def numerics(self, operator: str, kernel: str, dtype: str) -> Numerics:
        """What the kernel promises; the usual numerics of the dtype where it says nothing."""
        return promised(self.kernels[kernel].numerics.get(dtype, usual_numerics(dtype)))

    def run(
        self,
        operator: str,
        kernel: str,
        inputs: Mapping[str, np.ndarray[Any, Any] | None],
        params: Mapping[str, Any],
    ) -> RunResult:
        """Launch the kernel on fresh outputs, with every check on.

        Raises
        ------
        Refused
            The kernel does not accept the inputs, or the simulator does not support what it does.
        """
        record = self.kernels[kernel]
        reason = record.accepts(dict(inputs), dict(params))
        if reason is not None:
            raise Refused(reason)
        launcher = SimulatedLauncher(self.device)
        try:
            outputs = record.run(launcher, dict(inputs), dict(params))
        except refsim.UnsupportedError as error:
            raise Refused(str(error)) from error
        return RunResult([_on_host(launcher, output) for output in _as_sequence(outputs)], tuple(launcher.findings))


def _as_sequence(outputs: Any) -> tuple[Any, ...]:
    return tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)


def _on_host(launcher: SimulatedLauncher, output: Any) -> Any:
    """Arrays come back from the device; anything else is for the judge to refuse."""
    return launcher.host(output) if isinstance(output, np.ndarray) else output
