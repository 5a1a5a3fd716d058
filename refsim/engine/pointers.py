"""Pointers of C++ kernels: a memory object and an offset in bytes, and the accesses through them.

An access first checks alignment and bounds for every lane, then reads or writes through a typed window of the
memory. Shared and local memory is kept in words of the smallest size that the kernel accesses there; a wider
access is one of several words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from refsim.dialect import ITEM_BYTES
from refsim.engine.joins import rejoin_one
from refsim.engine.lane_types import lane_dtype, poison, same_value, to_lane
from refsim.engine.lanes import LaneSet

HOST_ALIGNMENT = 16
UNSIGNED = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}


class Pointer:
    """A pointer whose memory is the same in all lanes; `offset` is a number or a lane value, in bytes."""

    __slots__ = ("memory", "offset")

    def __init__(self, memory: Any, offset: Any) -> None:
        self.memory = memory
        self.offset = offset

    def add(self, offset: Any) -> Pointer:
        """The pointer moved by a number of bytes."""
        return Pointer(self.memory, self.offset + offset)

    @property
    def varies(self) -> bool:
        """True if the offset differs between lanes."""
        return isinstance(self.offset, np.ndarray)

    def parts(self) -> tuple[Any, ...]:
        """The parts that may vary between lanes."""
        return (self.offset,)

    def with_parts(self, parts: tuple[Any, ...]) -> Pointer:
        """The same pointer with another offset."""
        return Pointer(self.memory, parts[0])

    def cut_to(self, lanes: LaneSet) -> Pointer:
        """Cut to a subset of lanes."""
        return Pointer(self.memory, lanes.cut(self.offset))

    def alternatives(self) -> list[tuple[Any, Pointer]]:
        """(condition, pointer) pairs; one with condition True."""
        return [(True, self)]

    def alike(self, pointers: list[Any]) -> list[Any]:
        """The pointers in one form, so that they can be joined part by part."""
        return _alike(pointers)

    def same_as(self, other: Any) -> bool:
        """True if both point to the same byte in every lane."""
        same = isinstance(other, Pointer) and other.memory is self.memory
        return same and same_value(self.offset, other.offset)


class MixedPointer:
    """A pointer into different memories in different lanes: `which` numbers `memories`."""

    def __init__(self, memories: list[Any], which: Any, offset: Any) -> None:
        self.memories = memories
        self.which = which
        self.offset = offset

    @staticmethod
    def of(pointer: Any) -> MixedPointer:
        """Any pointer in this form."""
        if isinstance(pointer, MixedPointer):
            return pointer
        return MixedPointer([pointer.memory], 0, pointer.offset)

    def add(self, offset: Any) -> MixedPointer:
        """The pointer moved by a number of bytes."""
        return MixedPointer(self.memories, self.which, self.offset + offset)

    varies = True

    def parts(self) -> tuple[Any, ...]:
        """The parts that may vary between lanes."""
        return (self.which, self.offset)

    def with_parts(self, parts: tuple[Any, ...]) -> MixedPointer:
        """The same memories with other parts."""
        return MixedPointer(self.memories, *parts)

    def cut_to(self, lanes: LaneSet) -> MixedPointer:
        """Cut to a subset of lanes."""
        return MixedPointer(self.memories, lanes.cut(self.which), lanes.cut(self.offset))

    def same_as(self, other: Any) -> bool:
        """True if both point to the same byte in every lane, by the same list of memories."""
        if not isinstance(other, MixedPointer) or len(other.memories) != len(self.memories):
            return False
        alike = all(a is b for a, b in zip(self.memories, other.memories))
        return alike and all(map(same_value, self.parts(), other.parts()))

    def alternatives(self) -> list[tuple[Any, Pointer]]:
        """(condition, pointer) pairs."""
        return [(self.which == number, Pointer(memory, self.offset)) for number, memory in enumerate(self.memories)]

    def alike(self, pointers: list[Any]) -> list[Any]:
        """The pointers in one form, so that they can be joined part by part."""
        return _alike(pointers)


def _alike(pointers: list[Any]) -> list[Any]:
    first = pointers[0]
    if all(isinstance(pointer, Pointer) and pointer.memory is first.memory for pointer in pointers):
        return pointers
    mixed = [MixedPointer.of(pointer) for pointer in pointers]
    memories: list[Any] = []
    for pointer in mixed:
        memories.extend(m for m in pointer.memories if not any(m is known for known in memories))
    same = []
    for pointer in mixed:
        numbers = np.array([next(i for i, m in enumerate(memories) if m is memory) for memory in pointer.memories])
        which = numbers[pointer.which]
        same.append(MixedPointer(memories, int(which) if np.ndim(which) == 0 else which, pointer.offset))
    return same


class NullMemory:
    """What a null pointer points to: nothing."""

    name = "null"
    space = "null"
    bytes = 0
    word = 0
    address = 0


NULL = Pointer(NullMemory(), 0)


def difference(left: Any, right: Any) -> Any:
    """Bytes from the right pointer to the left one; from the null pointer it is the address."""
    if isinstance(right, Pointer) and right.memory is NULL.memory:
        if isinstance(left, MixedPointer):
            return np.array([memory.address for memory in left.memories])[left.which] + left.offset
        return left.memory.address + left.offset
    return left.offset - right.offset


def compare(op: str, left: Any, right: Any) -> Any:
    """Compare two pointers; pointers into different memories are unequal and ordered by memory."""
    a, b = MixedPointer.of(left), MixedPointer.of(right)
    names_a = np.array([id(memory) for memory in a.memories])[a.which]
    names_b = np.array([id(memory) for memory in b.memories])[b.which]
    same = names_a == names_b
    if op in ("==", "!="):
        equal = same & (np.asarray(a.offset) == b.offset)
        result = equal if op == "==" else ~equal
    else:
        compared = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[op]
        result = np.where(same, compared(a.offset, b.offset), compared(names_a, names_b))
    return bool(result) if np.ndim(result) == 0 else result


# ------------------------------------------------------------------------------------------------- accesses


def load(lanes: LaneSet, site: int, pointer: Any, dtype: str) -> Any:
    """A scalar per lane."""
    return _each(lanes, site, pointer, dtype, (), lambda s, p, _: _read(s, site, p, dtype), poison(dtype))


def store(lanes: LaneSet, site: int, pointer: Any, dtype: str, value: Any) -> None:
    """Write a scalar per lane."""
    _each(lanes, site, pointer, dtype, (value,), lambda s, p, v: _write(s, site, p, dtype, v[0]), None)


def load_element(lanes: LaneSet, site: int, base: Any, index: Any, dtype: str) -> Any:
    """The scalar a number of elements behind a pointer: `load` without going through bytes where that is possible."""
    found = _element(base, index, dtype)
    if found is None:
        return load(lanes, site, base.add(index * ITEM_BYTES[dtype]), dtype)
    view, position = found
    return base.memory.read(lanes, view, position, site)


def load_sum(lanes: LaneSet, site: int, base: Any, fixed: Any, moving: Any, dtype: str) -> Any:
    """`load_element` at the sum of an index that is the same array time after time, and one that is not."""
    view = _window(base, dtype) if type(moving) is int else None
    if view is None:
        return load_element(lanes, site, base, fixed + moving, dtype)
    if isinstance(fixed, np.ndarray) and getattr(base.memory, "unwatched", False):
        least, most = view.span(fixed)
        start = moving + base.offset // ITEM_BYTES[dtype]
        if start >= 0 and least >= 0 and most + start < view.shape[0]:
            return base.memory.read_behind(view, start, fixed)
    key = (id(fixed), base.offset, moving)
    known = view.sums.get(key)
    if known is not None and known[0] is fixed:
        return base.memory.read(lanes, view, known[1], site)
    found = _element(base, fixed + moving, dtype)
    if found is None:
        return load(lanes, site, base.add((fixed + moving) * ITEM_BYTES[dtype]), dtype)
    view.remember(key, fixed, found[1])
    return base.memory.read(lanes, view, found[1], site)


def store_element(lanes: LaneSet, site: int, base: Any, index: Any, dtype: str, value: Any) -> None:
    """Write the scalar a number of elements behind a pointer."""
    found = _element(base, index, dtype)
    if found is None:
        store(lanes, site, base.add(index * ITEM_BYTES[dtype]), dtype, value)
        return
    view, position = found
    base.memory.write(lanes, view, position, value, site)


def _element(base: Any, index: Any, dtype: str) -> tuple[Any, Any] | None:
    """Window and position of an element; None where an access needs the checks of the general way."""
    view = _window(base, dtype)
    if view is None:
        return None
    if base.offset:
        index = index + base.offset // ITEM_BYTES[dtype]
    return None if view.outside(0, index) else (view, index)


def _window(base: Any, dtype: str) -> Any:
    """The memory behind a pointer as elements of a type, if it is one memory in words of that size; else None."""
    size = ITEM_BYTES[dtype]
    if type(base) is not Pointer or type(base.offset) is not int or base.memory.word not in (None, size):
        return None
    return None if base.offset % size else base.memory.window(dtype)


def atomic(lanes: LaneSet, site: int, pointer: Any, dtype: str, op: str, args: tuple[Any, ...], used: bool) -> Any:
    """Atomic read-modify-write of a scalar per lane."""

    def apply(s: LaneSet, p: Pointer, v: tuple[Any, ...]) -> Any:
        view = p.memory.window(dtype)
        return p.memory.atomic(s, view, _scaled(p.offset, ITEM_BYTES[dtype]), op, v, site, used)

    return _each(lanes, site, pointer, dtype, args, apply, poison(dtype) if used else None)


def flag(lanes: LaneSet, site: int, pointer: Any, dtype: str) -> None:
    """Remember a volatile access by which threads wait for each other, after it was made."""

    def note(s: LaneSet, p: Pointer, v: tuple[Any, ...]) -> None:
        batch = s.batch
        batch.log_atomic(batch.run.operation(site), p.memory.window(dtype), s, _scaled(p.offset, ITEM_BYTES[dtype]))

    for condition, single in pointer.alternatives():
        here, _ = lanes.split(condition)
        if here is not None:
            cut = single if here is lanes else single.cut_to(here)
            inside = (cut.offset >= 0) & (cut.offset <= cut.memory.bytes - ITEM_BYTES[dtype])
            good, _ = here.split(inside)
            if good is not None:
                note(good, cut if good is here else cut.cut_to(good), ())


def align(lanes: LaneSet, site: int, pointer: Any, size: int) -> None:
    """Report lanes whose pointer is not a multiple of a size."""
    for condition, single in pointer.alternatives():
        here, _ = lanes.split(condition)
        if here is None:
            continue
        offset = single.offset if here is lanes else here.cut(single.offset)
        # NumPy aligns arrays to 16 bytes only, a device's allocator to 256: what is more counts from the first byte
        wrong = (offset + single.memory.address % HOST_ALIGNMENT) % size != 0
        if np.any(wrong):
            here.batch.report_misaligned(here, single.memory, offset, wrong, size, site)


def _each(
    lanes: LaneSet, site: int, pointer: Any, dtype: str, values: tuple[Any, ...], action: Callable[..., Any], bad: Any
) -> Any:
    """Apply an access to the lanes of each memory that are aligned and inside it; others get `bad`."""
    options = pointer.alternatives()
    if len(options) == 1:
        return _checked(lanes, site, options[0][1], dtype, values, action, bad)
    result, rest = None, lanes
    condition, first = options[0]
    yes, no = lanes.split(condition)
    if yes is not None:
        cut = first if yes is lanes else first.cut_to(yes)
        result = _checked(yes, site, cut, dtype, _cut(yes, lanes, values), action, bad)
    if no is None:
        return result
    remaining = MixedPointer(pointer.memories[1:], pointer.which - 1, pointer.offset)
    if no is not lanes:
        remaining = remaining.cut_to(no)
    rest = _each(no, site, remaining, dtype, _cut(no, lanes, values), action, bad)
    if yes is None or bad is None:
        return rest
    return rejoin_one(lanes, yes, result, no, rest, lane_dtype(dtype))


def _cut(part: LaneSet, whole: LaneSet, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return values if part is whole else tuple(part.cut(value) for value in values)


def _checked(
    lanes: LaneSet,
    site: int,
    pointer: Pointer,
    dtype: str,
    values: tuple[Any, ...],
    action: Callable[..., Any],
    bad: Any,
) -> Any:
    size, memory, offset = ITEM_BYTES[dtype], pointer.memory, pointer.offset
    if type(offset) is int:
        inside: Any = 0 <= offset <= memory.bytes - size and offset & (size - 1) == 0
    else:
        limit = memory.bytes - size
        if limit >= 0 and int(offset.view(np.uint64).max()) <= limit and not (offset & (size - 1)).any():
            inside = True
        else:
            inside = (offset >= 0) & (offset <= limit) & (offset & (size - 1) == 0)
    if inside is True:
        return action(lanes, pointer, values)
    good, outside = lanes.split(inside)
    if outside is not None:
        there = offset if outside is lanes else outside.cut(offset)
        outside.batch.report_bad_pointer(outside, memory, there, dtype, site)
    if good is None:
        return bad
    result = action(good, pointer.cut_to(good) if good is not lanes else pointer, _cut(good, lanes, values))
    if outside is None or bad is None:
        return result
    return rejoin_one(lanes, good, result, outside, bad, lane_dtype(dtype))


def _scaled(offset: Any, size: int) -> Any:
    return offset >> (size.bit_length() - 1)


def _read(lanes: LaneSet, site: int, pointer: Pointer, dtype: str) -> Any:
    memory, size = pointer.memory, ITEM_BYTES[dtype]
    if memory.word is None or memory.word == size:
        return memory.read(lanes, memory.window(dtype), _scaled(pointer.offset, size), site)
    word = UNSIGNED[memory.word]
    first = _scaled(pointer.offset, memory.word)
    window = memory.window(word)
    parts = [memory.read(lanes, window, first + i, site) for i in range(size // memory.word)]
    parts = [lanes.full(part, word) for part in parts]
    return to_lane(np.stack(parts, axis=-1).view(dtype)[..., 0], dtype)


def _write(lanes: LaneSet, site: int, pointer: Pointer, dtype: str, value: Any) -> None:
    memory, size = pointer.memory, ITEM_BYTES[dtype]
    if memory.word is None or memory.word == size:
        memory.write(lanes, memory.window(dtype), _scaled(pointer.offset, size), value, site)
        return
    word = UNSIGNED[memory.word]
    first = _scaled(pointer.offset, memory.word)
    window = memory.window(word)
    raw = lanes.full(value, np.dtype(dtype))[..., None].view(word)
    for i in range(size // memory.word):
        memory.write(lanes, window, first + i, to_lane(raw[..., i], word), site)
