"""A real GPU as a kernel's host code sees it, through numba-cuda: device buffers, and launches of jitted kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

POISON = 0xFF  # the byte that an empty buffer is filled with; a NaN in every float format


class NumbaLauncher:
    """Launches on a CUDA GPU through numba-cuda.

    Parameters
    ----------
    device : int
        Number of the device.

    Raises
    ------
    RuntimeError
        numba-cuda finds no such device.
    """

    def __init__(self, device: int = 0) -> None:
        from numba import cuda

        if not cuda.is_available():
            raise RuntimeError("numba-cuda finds no CUDA driver or device")
        count = len(cuda.gpus)
        if device >= count:
            raise RuntimeError(f"there {'is' if count == 1 else 'are'} {count} CUDA device{'s' * (count != 1)}")
        cuda.select_device(device)
        self._cuda = cuda

    def launch(self, kernel: Any, grid: Any, block: Any, *args: Any, shared_bytes: int = 0) -> None:
        """Run a ``numba.cuda.jit`` kernel on ``grid`` blocks of ``block`` threads, and wait for it."""
        kernel[grid, block, 0, shared_bytes](*args)
        self._cuda.synchronize()

    def empty(self, shape: Any, dtype: Any) -> Any:
        """A device array full of NaN."""
        host = np.empty(shape, dtype)
        host.reshape(-1).view(np.uint8)[...] = POISON
        return self._cuda.to_device(host)

    def zeros(self, shape: Any, dtype: Any) -> Any:
        """A device array of zeros."""
        return self._cuda.to_device(np.zeros(shape, dtype))

    def array(self, host_array: np.ndarray[Any, Any]) -> Any:
        """A copy on the device with the same strides, unless one is negative: numba-cuda does not take those.

        numba-cuda copies contiguous arrays only, so others travel as the bytes that they span.
        """
        if any(stride < 0 for stride in host_array.strides):
            host_array = np.array(host_array, order="C", copy=True)
        if not host_array.size or host_array.flags.c_contiguous:
            return self._cuda.to_device(host_array)
        low, high = np.lib.array_utils.byte_bounds(host_array)
        content = np.full(high - low, POISON, np.uint8)
        window = np.ndarray(host_array.shape, host_array.dtype, content, 0, host_array.strides)
        window[...] = host_array
        return self._cuda.as_cuda_array(_Strided(self._cuda.to_device(content), window))

    def host(self, array: Any) -> np.ndarray[Any, Any]:
        """A copy on the host; what lies there already as it is."""
        return array if isinstance(array, np.ndarray) else np.asarray(array.copy_to_host())


class _Strided:
    """Bytes on the device, seen as an array with strides, by CUDA's array interface."""

    def __init__(self, content: Any, window: np.ndarray[Any, Any]) -> None:
        self.content = content  # keeps the memory alive
        self.__cuda_array_interface__ = {
            "shape": window.shape,
            "strides": window.strides,
            "typestr": window.dtype.str,
            "data": (content.__cuda_array_interface__["data"][0], False),
            "version": 3,
        }
