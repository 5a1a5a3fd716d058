"""Between CuPy's arrays and the NumPy arrays underneath, with CuPy's rule that the two never mix."""

from __future__ import annotations

from typing import Any

import numpy as np

from refsim.hosts.memory import device_view

Array = np.ndarray[Any, Any]
SCALARS = (bool, int, float, complex, np.generic)


def lowered(value: Any) -> Any:
    """Arguments of a CuPy function as NumPy takes them: device arrays anywhere in lists and tuples are unwrapped.

    Raises
    ------
    TypeError
        For a NumPy array, which CuPy does not convert implicitly.
    """
    view = device_view(value)
    if view is not None:
        return view
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, (list, tuple)):
        items = [lowered(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value


def holds_device_array(value: Any) -> bool:
    """Whether a device array is among the arguments, or in a list among them."""
    if isinstance(value, (list, tuple)):
        return any(holds_device_array(item) for item in value)
    return device_view(value) is not None


def operand(value: Any) -> Any:
    """An operand of element-wise arithmetic: a device array or a number.

    Raises
    ------
    TypeError
        For anything else, lists and NumPy arrays included.
    """
    view = device_view(value)
    if view is not None:
        return view
    if isinstance(value, SCALARS):
        return value
    raise TypeError(f"Unsupported type {type(value)}")


def raised(value: Any) -> Any:
    """Results of NumPy as CuPy returns them: arrays, of no axes where NumPy has a scalar."""
    from refsim.hosts.cupy_host.array import ndarray

    if isinstance(value, np.ndarray):
        return ndarray.of(value)
    if isinstance(value, (np.generic, bool)):
        return ndarray.of(np.array(value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(raised(item) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(raised(item) for item in value)
    return value
