"""What scripts ask a device: the numbers of its model, and of one product with that architecture."""

from __future__ import annotations

import re
from dataclasses import dataclass

from refsim.devices import Device

# Multiprocessors (CUDA) or compute units (HIP) of one product, by the makers' data sheets: V100, T4, A100, A10, L4,
# H100, B200, RTX PRO 6000; MI250X (one die), MI300X, MI355X, RX 7900 XTX. Scripts size their grids by this number.
MULTIPROCESSORS = {
    "sm_70": 80, "sm_75": 40, "sm_80": 108, "sm_86": 72, "sm_89": 58, "sm_90": 132, "sm_100": 148, "sm_120": 188,
    "gfx90a": 110, "gfx942": 304, "gfx950": 256, "gfx1100": 96, "warp16": 4,
}  # fmt: skip
# Resident threads and blocks of a multiprocessor: CUDA C++ Programming Guide, "Technical specifications per compute
# capability"; AMD's compute units are taken to hold as many as the largest.
RESIDENT = {"sm_75": (1024, 16), "sm_86": (1536, 16), "sm_89": (1536, 24), "sm_120": (1536, 24)}
MOST_RESIDENT = (2048, 32)
RESERVED_SHARED = 1024  # bytes of shared memory that the system takes for every block
DEVICE_MEMORY = 16 * 2**30
CUDA_VERSION = 12080


@dataclass(frozen=True)
class Facts:
    """A device model as a host program sees it."""

    model: Device

    @property
    def name(self) -> str:
        """The product name that a script prints."""
        return f"refsim {self.model.name}"

    @property
    def is_hip(self) -> bool:
        """Whether the device is AMD's."""
        return self.model.name.startswith("gfx")

    @property
    def compute_capability(self) -> tuple[int, int]:
        """Major and minor number; of a HIP device those of its architecture, as ROCm reports them."""
        digits = re.sub(r"\D", "", self.model.name.removesuffix("a"))
        if self.model.name.startswith("sm_"):
            return int(digits[:-1]), int(digits[-1])
        if self.is_hip:
            return (int(digits[:-2]), int(digits[-2])) if len(digits) > 2 else (int(digits[0]), int(digits[1:]))
        return 9, 0

    @property
    def multiprocessors(self) -> int:
        """Number of multiprocessors or compute units."""
        return MULTIPROCESSORS.get(self.model.name, 1)

    def resident_blocks(self, threads: int, shared_bytes: int) -> int:
        """Blocks of a size that fit a multiprocessor at the same time, if registers are no limit."""
        most_threads, most_blocks = RESIDENT.get(self.model.name, MOST_RESIDENT)
        warp = self.model.warp_size
        whole_warps = -(-threads // warp) * warp
        shared = self.model.shared_bytes_per_block + RESERVED_SHARED
        return min(most_blocks, most_threads // whole_warps, shared // (shared_bytes + RESERVED_SHARED))
