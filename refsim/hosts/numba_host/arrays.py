"""Allocation of arrays whose element type is remembered, so that a read before a write is a finding.

Everything else about device arrays is numba's own code, on the simulated driver.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refsim.hosts.memory import device_view
from refsim.hosts.numba_host.driver import elements_of


def device_array(shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: Any = 0) -> Any:
    """An uninitialised device array: a kernel that reads an element before it is written gets a finding."""
    from numba.cuda.api_util import prepare_shape_strides_dtype
    from numba.cuda.cudadrv import devicearray

    shape, strides, kind = prepare_shape_strides_dtype(shape, strides, dtype, order)
    with elements_of(kind):
        return devicearray.DeviceNDArray(shape=shape, strides=strides, dtype=kind, stream=stream)


def typed(allocate: Any) -> Any:
    """One of numba's allocating functions, with the element type remembered."""

    def allocating(shape: Any, dtype: Any = np.float64, *args: Any, **options: Any) -> Any:
        with elements_of(np.dtype(dtype)):
            return allocate(shape, dtype, *args, **options)

    allocating.__name__, allocating.__doc__ = allocate.__name__, allocate.__doc__
    return allocating


class Assignment:
    """What ``device_array[key] = value`` launches: a copy, done by the host."""

    def __init__(self, ndim: int) -> None:
        self.ndim = ndim

    def forall(self, ntasks: int, stream: Any = 0) -> Any:
        """The copy, to be called with the target and the source."""

        def assign(target: Any, source: Any) -> None:
            to, given = device_view(target), device_view(source)
            if to is not None and given is not None and to.size:
                np.copyto(to, given, casting="unsafe")

        return assign
