"""Device memory of a simulated script: host arrays, known by address so that libraries can share them.

An object of one library reaches another through ``__cuda_array_interface__``, which carries an address. Only
addresses inside memory that was allocated here are believed.
"""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from refsim.engine import buffers

Array = np.ndarray[Any, Any]

# A buffer counts as uninitialised until its elements differ from a pattern. One byte matches by chance too often.
TRACKED = frozenset(["float16", "float32", "float64", "int32", "uint32", "int64", "uint64"])

POISON = 0xFF  # bytes of other uninitialised memory: NaN, -1 or the largest number

_owners: dict[int, weakref.ref[Array]] = {}


def uninitialized(shape: Any, dtype: Any, order: str = "C") -> Array:
    """Fresh device memory: reads before writes are findings, for element types of which a pattern can tell.

    Memory of other types is poisoned.

    Parameters
    ----------
    shape, dtype
        As in `numpy.empty`.
    order
        ``"C"`` or ``"F"``.
    """
    kind = np.dtype(dtype)
    extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if kind.name not in TRACKED:
        array = np.empty(extents, kind, order="F" if order == "F" else "C")
        array.reshape(-1, order="A").view(np.uint8)[...] = POISON if kind.kind != "b" else 1
        return allocated(array)
    if order == "F":
        return allocated(buffers.empty(tuple(reversed(extents)), kind)).transpose()
    return allocated(buffers.empty(extents, kind))


def allocated(array: Array) -> Array:
    """The same array, remembered as device memory."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if owner.size:
        address = owner.ctypes.data
        _owners[address] = weakref.ref(owner, lambda _dead: _owners.pop(address, None))
    return array


def memory_at(address: int) -> Array | None:
    """The bytes of device memory from an address to the end of its allocation; None where there is none."""
    for start, reference in list(_owners.items()):
        owner = reference()
        if owner is not None and start <= address < start + owner.nbytes:
            return owner.reshape(-1, order="A").view(np.uint8)[address - start :]
    return None


def device_view(value: Any) -> Array | None:
    """The host array behind a device array of any library; None if it is not a device array.

    Raises
    ------
    ValueError
        If an object offers ``__cuda_array_interface__`` with memory that is not simulated.
    """
    known: Array | None = getattr(value, "__refsim_array__", None)
    if known is not None:
        return known
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is None:
        return None
    if getattr(value, "__cuda_ndarray__", False):  # the interface leaves out strides of zero
        interface = {**interface, "strides": value.strides}
    return _view_of_interface(value, interface)


def interface_of(array: Array) -> dict[str, Any]:
    """``__cuda_array_interface__`` of device memory: version 3, with strides only where they are needed."""
    allocated(array)
    return {
        "shape": array.shape,
        "typestr": array.dtype.str,
        "descr": array.dtype.descr,
        "data": (array.ctypes.data, not array.flags.writeable),
        "strides": None if array.flags.c_contiguous else array.strides,
        "stream": 1,
        "version": 3,
    }


def owner_at(address: int) -> Array | None:
    """The array whose memory holds an address; None if no simulated device memory does."""
    exact = _owners.get(address)
    candidates = list(_owners.values()) if exact is None else [exact]
    for reference in candidates:
        owner = reference()
        if owner is not None and owner.ctypes.data <= address < owner.ctypes.data + owner.nbytes:
            return owner
    return None


def _view_of_interface(value: Any, interface: dict[str, Any]) -> Array:
    if interface.get("mask") is not None:
        raise NotImplementedError("a masked __cuda_array_interface__ is not supported")
    address, read_only = interface["data"]
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    if dtype.kind == "V" and isinstance(getattr(value, "dtype", None), np.dtype):
        dtype = value.dtype  # the interface does not say what the fields of a record are
    if not math.prod(shape):
        return np.empty(shape, dtype)
    owner = owner_at(address)
    if owner is not None:
        raw = owner.reshape(-1, order="A").view(np.uint8)
        view = np.ndarray(shape, dtype, raw, address - owner.ctypes.data, interface.get("strides"))
        view.flags.writeable = not read_only
        return view
    raise ValueError(
        f"the __cuda_array_interface__ of {type(value).__name__} has address {address:#x}, which is no simulated "
        "device memory; refsim run simulates arrays of numba.cuda and cupy"
    )
