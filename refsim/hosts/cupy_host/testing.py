"""``cupy.testing``: comparisons of arrays, wherever they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from refsim.hosts.memory import device_view


def _host(value: Any) -> Any:
    view = device_view(value)
    return value if view is None else view


def assert_allclose(
    actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 0, err_msg: str = "", verbose: bool = True
) -> None:
    """Raise `AssertionError` unless both agree within the tolerances."""
    np.testing.assert_allclose(_host(actual), _host(desired), rtol, atol, err_msg=err_msg, verbose=verbose)


def assert_array_equal(x: Any, y: Any, err_msg: str = "", verbose: bool = True) -> None:
    """Raise `AssertionError` unless both are equal."""
    np.testing.assert_array_equal(_host(x), _host(y), err_msg, verbose)


def assert_array_almost_equal(x: Any, y: Any, decimal: int = 6, err_msg: str = "", verbose: bool = True) -> None:
    """Raise `AssertionError` unless both agree to so many decimals."""
    np.testing.assert_array_almost_equal(_host(x), _host(y), decimal, err_msg, verbose)


def assert_array_less(x: Any, y: Any, err_msg: str = "", verbose: bool = True) -> None:
    """Raise `AssertionError` unless every element of the first is less."""
    np.testing.assert_array_less(_host(x), _host(y), err_msg, verbose)


TESTING = {
    function.__name__: function
    for function in (assert_allclose, assert_array_equal, assert_array_almost_equal, assert_array_less)
}
