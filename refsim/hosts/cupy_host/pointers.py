"""``cupy.cuda.MemoryPointer``: a place in simulated device memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from refsim.hosts.missing import NotSimulatedError

Array = np.ndarray[Any, Any]


class MemoryPointer:
    """An address, with the memory that it points into.

    Parameters
    ----------
    memory
        Bytes, with one axis.
    offset
        Of the address, in bytes.
    """

    device_id = 0

    def __init__(self, memory: Array, offset: int = 0) -> None:
        self._memory = memory
        self._offset = offset

    @classmethod
    def of(cls, array: Array) -> MemoryPointer:
        """Address of the first element of an array."""
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return cls(owner.reshape(-1, order="A").view(np.uint8), array.ctypes.data - owner.ctypes.data)

    @property
    def ptr(self) -> int:
        """The address."""
        return int(self._memory.ctypes.data) + self._offset

    def __int__(self) -> int:
        return self.ptr

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self._memory, self._offset + offset)

    __radd__ = __add__

    def view(self, shape: Any, dtype: Any, strides: Any = None, order: Any = "C") -> Array:
        """The array that lies here.

        Raises
        ------
        TypeError
            If it reaches beyond the memory.
        """
        return np.ndarray(shape, dtype, self._memory, self._offset, strides, order)

    def memset(self, value: int, size: int) -> None:
        """Set so many bytes."""
        self.view((size,), np.uint8)[...] = value

    def copy_from_device(self, src: MemoryPointer, size: int) -> None:
        """Copy so many bytes from another place."""
        self.view((size,), np.uint8)[...] = src.view((size,), np.uint8)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSimulatedError(f"cupy.cuda.MemoryPointer.{name}")
