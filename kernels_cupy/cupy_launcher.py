"""A real GPU as a kernel's host code sees it, through CuPy: device buffers of any dtype, and launches of raw kernels.

Buffers are bytes, so that element types CuPy lacks work too. An array is copied with the layout that it has on the
host, strides and address modulo 256 included: a kernel meets the same ragged ends on the device as in the simulator.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

ALIGNMENT = 256  # bytes; that of a fresh allocation
POISON = 0xFF  # the byte that an empty buffer is filled with; a NaN in every float format


@dataclass(frozen=True)
class DeviceArray:
    """An array on the device: ``buffer`` holds bytes, the first element begins ``offset`` bytes into it."""

    buffer: Any
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape))

    @property
    def address(self) -> int:
        """Device address of the first element."""
        return int(self.buffer.data.ptr) + self.offset

    def reshape(self, *shape: Any) -> DeviceArray:
        """The same elements, which are contiguous, in another shape."""
        view = np.empty(self.shape, self.dtype).reshape(*shape)
        return DeviceArray(self.buffer, self.offset, view.shape, view.strides, self.dtype)


class CupyLauncher:
    """Launches on a CUDA or ROCm GPU through CuPy, which compiles for CUDA with ``-ftz=true``: subnormals become zero.

    Parameters
    ----------
    device : int
        Number of the device.
    include : tuple of str
        Further folders with headers, for installations where CuPy does not find ``cuda_fp16.h`` and ``cuda_bf16.h``.

    Raises
    ------
    ImportError
        CuPy is not installed.
    """

    def __init__(self, device: int = 0, include: tuple[str, ...] = ()) -> None:
        import cupy

        self._cupy = cupy
        self._device = cupy.cuda.Device(device)
        self._include = tuple(f"-I{folder}" for folder in include)

    def launch(self, kernel: Any, grid: Any, block: Any, *args: Any, shared_bytes: int = 0) -> None:
        """Run a kernel of ``refsim.RawModule`` on ``grid`` blocks of ``block`` threads, and wait for it."""
        with self._device:
            given = tuple(np.uint64(arg.address) if isinstance(arg, DeviceArray) else arg for arg in args)
            self._function(kernel)(_extents(grid), _extents(block), given, shared_mem=shared_bytes)
            self._device.synchronize()

    def empty(self, shape: Any, dtype: Any) -> DeviceArray:
        """A device array full of NaN."""
        return self._filled(shape, dtype, POISON)

    def zeros(self, shape: Any, dtype: Any) -> DeviceArray:
        """A device array of zeros."""
        return self._filled(shape, dtype, 0)

    def array(self, host_array: np.ndarray[Any, Any]) -> DeviceArray:
        """A copy on the device, with the same strides and the same address modulo 256."""
        low, high = np.lib.array_utils.byte_bounds(host_array) if host_array.size else (0, 0)
        lead = low % ALIGNMENT
        content = np.full(lead + high - low, POISON, np.uint8)
        start = lead + (host_array.ctypes.data - low if host_array.size else 0)
        _window(content, start, host_array.shape, host_array.strides, host_array.dtype)[...] = host_array
        with self._device:
            buffer = self._cupy.asarray(content)
        return DeviceArray(buffer, start, host_array.shape, host_array.strides, host_array.dtype)

    def host(self, array: DeviceArray) -> np.ndarray[Any, Any]:
        """A copy on the host."""
        with self._device:
            content = self._cupy.asnumpy(array.buffer)
        return _window(content, array.offset, array.shape, array.strides, array.dtype).copy()

    def _filled(self, shape: Any, dtype: Any, byte: int) -> DeviceArray:
        layout = np.empty(shape, dtype)
        with self._device:
            buffer = self._cupy.full(layout.nbytes, byte, np.uint8)
        return DeviceArray(buffer, 0, layout.shape, layout.strides, layout.dtype)

    def _function(self, kernel: Any) -> Any:
        return _compiled(kernel.code, (*kernel.options, *self._include), kernel.name, self._device.id)


@cache
def _compiled(code: str, options: tuple[str, ...], name: str, device: int) -> Any:
    """A kernel compiled for the current device, which is the one given."""
    import cupy

    return cupy.RawModule(code=code, options=options, name_expressions=(name,)).get_function(name)


def _extents(size: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in size) if isinstance(size, tuple | list) else (int(size),)


def _window(
    content: np.ndarray[Any, Any], offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    """The array that lies in a buffer of bytes."""
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, buffer=content, offset=offset, strides=strides)
