"""Arrays seen otherwise: fields of records, other axes, other extents, other element types of the same bytes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from refsim.dialect import ITEM_BYTES, RecordType, dtype_name
from refsim.engine.lanes import LaneSet
from refsim.engine.views import View
from refsim.errors import UnsupportedError


class RecordMemory:
    """Shared or local records: an array per field, in the order of the records. `word` is None: no bytes are shared.

    `fields` maps a field to the view of all its elements, the extents of one record's part last.
    """

    address = 0
    word = None
    shadow = None

    def __init__(self, name: str, space: str, fields: dict[str, View]) -> None:
        self.name = name
        self.space = space
        self.fields = fields


def field(view: View, name: str) -> View:
    """One field of every record of an array, or part of a complex one; dimensions of an array in a field come last."""
    if view.fields is None:
        view.fields = {}
    if name not in view.fields:
        view.fields[name] = _field(view, name)
    return view.fields[name]


def _part(view: View, name: str) -> View:
    """The real or imaginary part of every element of a complex array."""
    if view.memory.space != "global":
        raise UnsupportedError(f".{name} of a complex array in {view.memory.space} memory; take it of its elements")
    kind = np.dtype(np.float32 if view.dtype == "complex64" else np.float64)
    data = _elements(_bytes_of(view), kind, kind.itemsize)
    offset = view.offset * 2 + (name == "imag")
    strides = tuple(stride * 2 for stride in view.strides)
    return View(view.memory, data, str(kind), offset, view.shape, strides, view.wraps, view.base)


def _field(view: View, name: str) -> View:
    if not isinstance(view.dtype, RecordType):
        return _part(view, name)
    assert isinstance(view.dtype, RecordType)
    kind, start = view.dtype.dtype.fields[name][:2]  # type: ignore[index]
    base, extents = kind.subdtype or (kind, ())
    if isinstance(view.memory, RecordMemory):
        whole = view.memory.fields[name]
        scale, inner = math.prod(extents), whole.strides[1:]
        offset = view.offset * scale if scale != 1 else view.offset
        strides = tuple(stride * scale for stride in view.strides) + inner
        return View(
            whole.memory, whole.data, whole.dtype, offset, view.shape + extents, strides, view.wraps, whole.base
        )
    record, item = view.dtype.dtype.itemsize, base.itemsize
    unit = item if record % item == 0 else math.gcd(record, item)
    data = _elements(_bytes_of(view)[start:], base, unit)
    inner = _contiguous(extents, item // unit)
    strides = tuple(stride * (record // unit) for stride in view.strides) + inner
    first = view.base + start // view.memory.granule
    offset = view.offset * (record // unit)
    return View(view.memory, data, dtype_name(base), offset, view.shape + extents, strides, view.wraps, first)


def _bytes_of(view: View) -> Any:
    """The bytes behind a view's data."""
    data = view.data
    if data.strides[0] == data.itemsize:
        return data.view(np.ndarray).view(np.uint8)
    length = (len(data) - 1) * data.strides[0] + data.itemsize if len(data) else 0
    return np.lib.stride_tricks.as_strided(data.view(np.ndarray)[:1].view(np.uint8), (length,), (1,))


class Unaligned(np.ndarray[Any, Any]):
    """Elements at any multiple of some bytes; `take` does not copy them all first, as NumPy's would."""

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
        """The elements at positions."""
        return self.view(np.ndarray)[np.asarray(indices) % len(self)]


def _elements(raw: Any, dtype: np.dtype[Any], unit: int) -> Any:
    """Elements of a type at every multiple of `unit` bytes of a byte array."""
    item = dtype.itemsize
    count = max(0, (len(raw) - item) // unit + 1)
    if not count:
        return np.empty(0, dtype)
    if unit == item:
        data = raw[: count * item].view(dtype)
    else:
        data = np.lib.stride_tricks.as_strided(raw[:item].view(dtype), (count,), (unit,))
    return data if unit == item and data.flags.aligned else data.view(Unaligned)


def _contiguous(extents: Any, unit: int) -> tuple[int, ...]:
    strides: list[int] = []
    for extent in reversed(extents):
        strides.insert(0, unit)
        unit *= extent
    return tuple(strides)


def transposed(view: View, axes: tuple[int, ...]) -> View:
    """The axes in another order."""
    shape = tuple(view.shape[axis] for axis in axes)
    strides = tuple(view.strides[axis] for axis in axes)
    return View(view.memory, view.data, view.dtype, view.offset, shape, strides, view.wraps, view.base)


def _unit(view: View) -> int:
    """What a step from one element to the next adds to an address."""
    data = view.data
    if isinstance(view.memory, RecordMemory) or data.ndim != 1 or not len(data):
        return 1
    return int(data.itemsize // data.strides[0])


def reshaped(view: View, extents: tuple[Any, ...]) -> View:
    """The same elements, which must be contiguous, with other extents; one of -1 is worked out.

    Raises
    ------
    UnsupportedError
        If the elements are not contiguous or not as many, as numba-cuda refuses it.
    """
    if any(type(n) is not int for n in (*view.shape, *extents)):
        raise UnsupportedError("reshape() of an array whose extents differ between threads, or to such extents")
    count, unit = math.prod(view.shape), _unit(view)
    known = math.prod(n for n in extents if n != -1)
    wanted = tuple(count // known if n == -1 and known else n for n in extents)
    if math.prod(wanted) != count or sum(n == -1 for n in extents) > 1 or any(n < -1 for n in extents):
        raise UnsupportedError(f"reshape() of an array of shape {view.shape} to {extents}: not as many elements")
    plain = _contiguous(view.shape, unit)
    if any(n > 1 and a != b for n, a, b in zip(view.shape, view.strides, plain, strict=True)) and count > 1:
        raise UnsupportedError("reshape() of an array that is not contiguous; copy it on the host first")
    strides = _contiguous(wanted, unit)
    return View(view.memory, view.data, view.dtype, view.offset, wanted, strides, view.wraps, view.base)


def viewed(view: View, dtype: str) -> View:
    """The bytes as elements of another type; the last axis takes the difference in size.

    Raises
    ------
    UnsupportedError
        If the last axis is not contiguous, or its bytes are no whole number of elements.
    """
    old, new = ITEM_BYTES[view.dtype], ITEM_BYTES[dtype]
    if isinstance(view.memory, RecordMemory) or view.memory.word not in (None, new):
        raise UnsupportedError(
            f"view() of {view.memory.space} memory {view.memory.name!r} of {view.dtype} as {dtype}: "
            "only elements of the same size are viewed there"
        )
    if old == new:
        data = view.memory.window(dtype).data if view.memory.space != "global" else view.data.view(np.dtype(dtype))
        return View(view.memory, data, dtype, view.offset, view.shape, view.strides, view.wraps, view.base)
    *outer, last = view.shape
    if not view.strides or np.any(np.asarray(last) * old % new) or view.strides[-1] != _unit(view):
        raise UnsupportedError(f"view() of {view.dtype} as {dtype}: the last axis must be contiguous and divisible")
    unit = min(old // _unit(view), new)
    factor = old // _unit(view) // unit
    strides = (*(stride * factor for stride in view.strides[:-1]), new // unit)
    data = _elements(_bytes_of(view), np.dtype(dtype), unit)
    return View(
        view.memory, data, dtype, view.offset * factor, (*outer, last * old // new), strides, view.wraps, view.base
    )


def rearranged(view: View, lanes: LaneSet, site: int, how: str, dtype: str, extents: tuple[Any, ...]) -> View:
    """A `Rearranged` expression; a refusal gets the place of the site."""
    try:
        if how == "transpose":
            return transposed(view, extents)
        return reshaped(view, extents) if how == "reshape" else viewed(view, dtype)
    except UnsupportedError as error:
        raise UnsupportedError(error.what, lanes.batch.run.sites[site].place) from None


def stride_bytes(view: View, axis: int) -> int:
    """Bytes from one element to the next along an axis."""
    stride = view.strides[axis]
    if isinstance(view.dtype, RecordType):
        return stride * view.dtype.dtype.itemsize
    return stride * ITEM_BYTES[view.dtype] // _unit(view)
