"""Launchers: what a kernel's host code asks of a device, and the simulated one."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

import refsim
from refsim.counters.totals import Totals


class Launcher(Protocol):
    """A device as a kernel's host code sees it. Arrays are the device's own; ``host`` brings one back."""

    def launch(self, kernel: Any, grid: Any, block: Any, *args: Any, shared_bytes: int = 0) -> None:
        """Run ``kernel`` on ``grid`` blocks of ``block`` threads."""

    def empty(self, shape: Any, dtype: Any) -> Any:
        """A device array that holds nothing yet."""

    def zeros(self, shape: Any, dtype: Any) -> Any:
        """A device array of zeros."""

    def array(self, host_array: np.ndarray[Any, Any]) -> Any:
        """A host array on the device."""

    def host(self, array: Any) -> np.ndarray[Any, Any]:
        """A device array on the host."""


class SimulatedLauncher:
    """Launches on a simulated device and collects what the checks find.

    Parameters
    ----------
    device : str
        A simulated device such as ``sim:sm_90``.
    checks : str or tuple of str
        As for `refsim.launch`.
    totals : refsim.counters.totals.Totals, optional
        Where counters of the launches are added up; without it they do not count.

    Attributes
    ----------
    findings : list of refsim.Finding
        Findings of all launches so far, in order.
    """

    def __init__(self, device: str = "sim:sm_90", checks: Any = "all", totals: Totals | None = None) -> None:
        self.device = device
        self.totals = totals
        self.checks = checks
        self.findings: list[Any] = []

    def launch(self, kernel: Any, grid: Any, block: Any, *args: Any, shared_bytes: int = 0) -> None:
        """Run ``kernel`` in the simulator; NumPy arrays among ``args`` are changed in place."""
        report = refsim.launch(
            kernel,
            grid,
            block,
            *args,
            device=self.device,
            checks=self.checks,
            shared_bytes=shared_bytes,
            counters=self.totals is not None,
        )
        if self.totals is not None:
            self.totals.add(report)
        self.findings.extend(report.findings)

    def empty(self, shape: Any, dtype: Any) -> Any:
        """An array marked uninitialised: reading a cell before it is written is a finding."""
        return refsim.empty(shape, dtype)

    def zeros(self, shape: Any, dtype: Any) -> Any:
        """An array of zeros."""
        return np.zeros(shape, dtype)

    def array(self, host_array: np.ndarray[Any, Any]) -> Any:
        """The array itself, strides and all: simulated memory is host memory."""
        return host_array

    def host(self, array: Any) -> np.ndarray[Any, Any]:
        """The array as a plain NumPy array."""
        return np.asarray(array)
