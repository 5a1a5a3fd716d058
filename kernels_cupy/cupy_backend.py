"""The backend of this package: its kernels in the simulator, or on a real GPU through CuPy."""

from __future__ import annotations

from kernels_cupy.cupy_launcher import CupyLauncher
from oracle.numerics import Numerics
from refsim.conformance.backends import KernelBackend
from refsim.library import Kernel


class CupyBackend(KernelBackend):
    """Kernels as CuPy compiles them: for CUDA always with ``-ftz=true``, whatever the options say.

    So on a real GPU float32 arithmetic may flush subnormals to zero, and the promise says so there.
    """

    def __init__(self, kernels: list[Kernel], device: str = "sim:sm_90") -> None:
        super().__init__("cupy", kernels, device, real_launcher=CupyLauncher)

    def on(self, device: str) -> CupyBackend:
        """The same kernels on another device."""
        return CupyBackend(list(self.kernels.values()), device)

    def numerics(self, operator: str, kernel: str, dtype: str) -> Numerics:
        """What the kernel promises on the backend's device."""
        numerics = super().numerics(operator, kernel, dtype)
        if self.device.startswith("sim:") or dtype == "float64" or numerics.flush_to_zero:
            return numerics
        return numerics.with_changes(name=f"{numerics.name}, subnormals flushed", flush_to_zero=True)
