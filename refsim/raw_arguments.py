"""Arguments of C++ kernels: NumPy arrays, numbers and structures as the program's parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from refsim.array_arguments import require_plain_memory
from refsim.dialect import FLOATS, ITEM_BYTES, PointerType, Type
from refsim.frontends.cuda_cpp import Parameter

MEMBER = re.compile(r"\.(\w+)|\[(\d+)\]")
Array = np.ndarray[Any, Any]
Leaf = tuple[str, int, Type]


def leaf_values(parameter: Parameter, value: Any, kernel: str, arrays: Sequence[Array]) -> list[Any]:
    """The program's arguments for one parameter.

    Parameters
    ----------
    arrays
        The launch's arrays: where an address inside a structure may lie.

    Raises
    ------
    TypeError
        For a value that does not fit.
    """
    single = len(parameter.leaves) == 1 and parameter.leaves[0][1] == 0
    wrapped = parameter.leaves[0][0] != parameter.name if single else True  # a structure
    if single and isinstance(parameter.leaves[0][2], PointerType):
        if not (wrapped and isinstance(value, (Mapping, tuple, list))):
            return [_pointer(parameter, value, kernel)]
    elif not wrapped and isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "biuf":
        value = value.reshape(-1)[0]
    data = _raw_bytes(value)
    if data is not None and (not single or len(data) == parameter.bytes):
        return _from_bytes(parameter, data, kernel, arrays)
    if wrapped:
        if isinstance(value, (Mapping, tuple, list)):
            return _from_members(parameter, _members(parameter), value, kernel)
        raise TypeError(
            f"{kernel}: parameter {parameter.name!r} is a structure of {parameter.bytes} bytes: "
            f"pass a structured NumPy scalar or bytes, or a dictionary of its members, not {value!r}"
        )
    return [_number(parameter, str(parameter.leaves[0][2]), value, kernel)]


def _pointer(parameter: Parameter, value: Any, kernel: str) -> Any:
    if value is None:
        return 0
    if isinstance(value, np.ndarray):
        require_plain_memory(value, f"{kernel}: argument {parameter.name!r}")
        return value
    if isinstance(value, (int, np.integer)) and int(value) == 0:
        return 0
    raise TypeError(f"{kernel}: parameter {parameter.name!r} is a pointer: pass a NumPy array or None, not {value!r}")


def _raw_bytes(value: Any) -> bytes | None:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, np.void) or (isinstance(value, np.generic) and value.dtype.kind == "c"):
        return value.tobytes()
    if isinstance(value, np.ndarray) and value.size == 1:
        return value.tobytes()
    return None


def _members(parameter: Parameter) -> dict[str, Any]:
    """The leaves of a structure by member, nested as the source nests them."""
    tree: dict[str, Any] = {}
    for leaf in parameter.leaves:
        path = [name or position for name, position in MEMBER.findall(leaf[0].removeprefix(parameter.name))]
        here = tree
        for step in path[:-1]:
            here = here.setdefault(step, {})
        here[path[-1]] = leaf
    return tree


def _from_members(parameter: Parameter, members: Any, value: Any, kernel: str) -> list[Any]:
    if not isinstance(members, dict):
        name, _, kind = members
        return leaf_values(replace(parameter, name=name, leaves=((name, 0, kind),)), value, kernel, ())
    what = f"{kernel}: parameter {parameter.name!r} has members {', '.join(members)}"
    if isinstance(value, Mapping):
        if set(value) != set(members):
            raise TypeError(f"{what}; those given are {', '.join(map(str, value))}")
        value = [value[name] for name in members]
    if not isinstance(value, (tuple, list)) or len(value) != len(members):
        raise TypeError(f"{what}: pass a dictionary, or one value for each, not {value!r}")
    parts = zip(members.values(), value)
    return [one for inner, part in parts for one in _from_members(parameter, inner, part, kernel)]


def _from_bytes(parameter: Parameter, data: bytes, kernel: str, arrays: Sequence[Array]) -> list[Any]:
    if len(data) != parameter.bytes:
        raise TypeError(f"{kernel}: parameter {parameter.name!r} has {parameter.bytes} bytes, {len(data)} were passed")
    values: list[Any] = []
    for name, offset, kind in parameter.leaves:
        if isinstance(kind, PointerType):
            values.append(_at_address(int.from_bytes(data[offset : offset + 8], "little"), name, kernel, arrays))
            continue
        dtype = np.dtype(getattr(ml_dtypes, str(kind), str(kind)))
        values.append(np.frombuffer(data[offset : offset + dtype.itemsize], dtype)[0])
    return values


def _at_address(address: int, name: str, kernel: str, arrays: Sequence[Array]) -> Any:
    """The memory at an address: one of the launch's arrays, or device memory of a simulated script."""
    from refsim.hosts.memory import memory_at

    if address == 0:
        return 0
    for array in arrays:
        low, high = np.lib.array_utils.byte_bounds(array)
        if low <= address < high and array.flags.c_contiguous:
            return array.reshape(-1).view(np.uint8)[address - low :]
    found = memory_at(address)
    if found is None:
        raise TypeError(
            f"{kernel}: the address {address:#x} in {name!r} is in none of the launch's arrays; pass the structure as "
            "a dictionary of its members, with an array for each pointer"
        )
    return found


def _number(parameter: Parameter, kind: str, value: Any, kernel: str) -> Any:
    """A number of the declared type; one that C++ would misread is refused."""
    what = f"{kernel}: parameter {parameter.name!r} is {kind}"
    if isinstance(value, (bool, np.bool_)):
        return np.bool_(value) if kind == "bool" else int(value)
    if kind in FLOATS:
        given = "float64" if isinstance(value, float) and not isinstance(value, np.generic) else None
        given = value.dtype.name if isinstance(value, np.generic) else given
        if given != kind:
            raise TypeError(f"{what}: pass numpy.{kind}({value!s}), not {value!r} ({given or type(value).__name__})")
        return value
    if not isinstance(value, (int, np.integer)):
        raise TypeError(f"{what}: pass an integer, not {value!r}")
    bits = 8 * ITEM_BYTES[kind]
    number = int(value)
    if not -(1 << bits - 1) <= number < 1 << bits:
        raise TypeError(f"{what}: {number} does not fit")
    if kind == "bool":
        return np.bool_(number != 0)
    low = number & ((1 << bits) - 1)
    return low - (1 << bits) if kind.startswith("int") and low >> (bits - 1) else low


__all__ = ["leaf_values"]
