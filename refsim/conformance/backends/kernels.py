"""Backend over a list of kernels that are launched on a simulated device, or on a real one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

import refsim
from oracle.numerics import Numerics
from refsim.conformance.backends.backend import Capability, Refused, RunResult, UsageError, promised, usual_numerics
from refsim.counters.totals import Totals
from refsim.library import Kernel, Launcher, SimulatedLauncher

MOST_BYTES = 1 << 30
RealLauncher = Callable[[int], Launcher]


class KernelBackend:
    """Runs `refsim.library.Kernel` records.

    Parameters
    ----------
    name : str
        The backend's name in reports.
    kernels : iterable of Kernel
        In the order of the report.
    device : str
        A simulated device such as ``sim:sm_90``, or a real one such as ``cuda:0``.
    real_launcher : function, optional
        Makes the launcher of a real device from its number; without it only simulated devices are to be had.

    Attributes
    ----------
    totals : refsim.counters.totals.Totals, optional
        Set it to count what launches on a simulated device do.

    Raises
    ------
    UsageError
        Two kernels have the same name, or the device is a real one that cannot be reached.
    """

    def __init__(
        self,
        name: str,
        kernels: Iterable[Kernel],
        device: str = "sim:sm_90",
        real_launcher: RealLauncher | None = None,
    ) -> None:
        self.name = name
        self.kernels: dict[str, Kernel] = {}
        for kernel in kernels:
            if self.kernels.setdefault(kernel.name, kernel) is not kernel:
                raise UsageError(f"{name} has two kernels called {kernel.name!r}; give each a name of its own")
        self.device = device
        self.real_launcher = real_launcher
        self.totals: Totals | None = None
        if not device.startswith("sim:"):
            self._launcher()  # fails now if there is no such device

    def on(self, device: str) -> KernelBackend:
        """The same kernels on another device."""
        return KernelBackend(self.name, self.kernels.values(), device, self.real_launcher)

    def _launcher(self) -> Launcher:
        """A fresh launcher on the backend's device."""
        if self.device.startswith("sim:"):
            return SimulatedLauncher(self.device, totals=self.totals)
        kind, _, number = self.device.partition(":")
        if kind != "cuda" or not number.isdigit():
            raise UsageError(f"unknown device {self.device!r}; give sim:NAME or cuda:NUMBER, for example cuda:0")
        if self.real_launcher is None:
            raise UsageError(f"backend {self.name} runs on simulated devices only, not on {self.device}")
        try:
            return self.real_launcher(int(number))
        except Exception as error:  # whatever a driver that is not there raises
            raise UsageError(f"device {self.device} cannot be used by backend {self.name}: {error}") from error

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
        if self.device.startswith("sim:"):
            _require_near(inputs)
        launcher = self._launcher()
        try:
            outputs = record.run(launcher, dict(inputs), dict(params))
        except refsim.UnsupportedError as error:
            raise Refused(str(error)) from error
        findings = tuple(launcher.findings) if isinstance(launcher, SimulatedLauncher) else ()
        on_host = [_on_host(launcher, output) for output in _as_sequence(outputs)]
        return RunResult(on_host, findings, record.deterministic)


def _require_near(inputs: Mapping[str, np.ndarray[Any, Any] | None]) -> None:
    """Refuse arrays that span more than the simulator can keep a record of, byte by byte."""
    for name, array in inputs.items():
        low, high = np.lib.array_utils.byte_bounds(array) if array is not None and array.size else (0, 0)
        if high - low > MOST_BYTES:
            raise Refused(
                f"{name} spans {(high - low) / 2**30:.1f} GiB; a simulated device holds {MOST_BYTES >> 30} GiB"
            )


def _as_sequence(outputs: Any) -> tuple[Any, ...]:
    return tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)


def _on_host(launcher: Launcher, output: Any) -> Any:
    """Arrays come back from the device; anything else is for the judge to refuse."""
    return launcher.host(output) if hasattr(output, "shape") else output
