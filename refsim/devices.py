"""Device models: the numbers in which devices differ, as one table."""

from __future__ import annotations

import difflib
from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """What a simulated device allows. Sizes in bytes, counts in threads or blocks.

    Attributes
    ----------
    atomic_add_flushes
        Memories in which an atomic addition of float32 takes subnormal numbers for zeros of their sign, and gives
        such zeros.
    """

    name: str
    warp_size: int
    max_threads_per_block: int
    max_block: tuple[int, int, int]
    max_grid: tuple[int, int, int]
    shared_bytes_per_block: int
    shared_banks: int
    atomic_add_flushes: frozenset[str] = frozenset()

    @property
    def full_mask(self) -> int:
        """Mask that names every lane of a warp."""
        return (1 << self.warp_size) - 1


_CUDA_BLOCK = (1024, 1024, 64)
_CUDA_GRID = (2**31 - 1, 65535, 65535)
# PTX ISA, "atom": atom.add.f32 on global memory flushes subnormal inputs and results to sign-preserving zero; on shared
# memory it supports them. AMD's depend on the instruction that the compiler chooses: they are taken to be kept.
_FLUSHES = frozenset({"global"})
_HIP_BLOCK = (1024, 1024, 1024)
_HIP_GRID = (2**31 - 1, 2**31 - 1, 2**31 - 1)


def _cuda(name: str, shared_kib: int) -> Device:
    return Device(name, 32, 1024, _CUDA_BLOCK, _CUDA_GRID, shared_kib * 1024, 32, _FLUSHES)


def _hip(name: str, shared_kib: int, warp_size: int = 64) -> Device:
    return Device(name, warp_size, 1024, _HIP_BLOCK, _HIP_GRID, shared_kib * 1024, 32)


# Largest shared memory of one block, with opt-in where the device asks for it: CUDA C++ Programming Guide,
# table "Technical specifications per compute capability"; LDS sizes from AMD's instruction-set guides.
DEVICES: dict[str, Device] = {
    device.name: device
    for device in (
        _cuda("sm_70", 96),
        _cuda("sm_75", 64),
        _cuda("sm_80", 163),
        _cuda("sm_86", 99),
        _cuda("sm_89", 99),
        _cuda("sm_90", 227),
        _cuda("sm_100", 227),
        _cuda("sm_120", 99),
        _hip("gfx90a", 64),
        _hip("gfx942", 64),
        _hip("gfx950", 160),
        _hip("gfx1100", 64, warp_size=32),
        Device("warp16", 16, 512, (512, 512, 64), _CUDA_GRID, 32 * 1024, 16),
    )
}


def device_named(name: str | Device) -> Device:
    """Find a device model by name: ``sim:sm_90`` or ``sm_90``.

    Raises
    ------
    ValueError
        If no model has that name; the message lists the nearest names.
    """
    if isinstance(name, Device):
        return name
    if not isinstance(name, str):
        raise ValueError(f"device must be a name such as 'sim:sm_90', not {name!r}")
    short = name.removeprefix("sim:")
    if short not in DEVICES:
        near = difflib.get_close_matches(short, DEVICES, n=3) or list(DEVICES)
        raise ValueError(f"unknown device {name!r}; simulated devices are {', '.join('sim:' + n for n in near)}")
    return DEVICES[short]
