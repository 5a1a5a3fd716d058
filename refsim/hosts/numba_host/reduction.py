"""``cuda.reduce``: a reduction by any binary function. It runs on the host: no code of the script indexes in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from refsim.frontends.numba_names import python_function
from refsim.hosts.memory import device_view


class Reduce:
    """Reduce arrays with one axis by a binary function, pairwise as a tree of threads does.

    Parameters
    ----------
    functor
        Function of two elements; associative and commutative.
    """

    def __init__(self, functor: Callable[[Any, Any], Any]) -> None:
        inner = python_function(functor)
        if inner is None:
            raise TypeError(f"numba.cuda.reduce() takes a Python function, not {functor!r}")
        self._functor = inner

    def __call__(self, arr: Any, size: int | None = None, res: Any = None, init: Any = 0, stream: Any = 0) -> Any:
        """The reduction of ``arr[:size]`` and ``init``; written to ``res[0]`` and not returned if ``res`` is given.

        Raises
        ------
        TypeError
            If the array has more than one axis.
        """
        view = device_view(arr)
        source = np.asarray(arr) if view is None else view
        if source.ndim != 1:
            raise TypeError("only support 1D array")
        kind = source.dtype.type
        first = kind(init)
        values = list(source[:size])
        if not values:
            return first
        while len(values) > 1:
            half = (len(values) + 1) // 2
            pairs = zip(values, values[half:], strict=False)
            with np.errstate(all="ignore"):
                values = [kind(self._functor(a, b)) for a, b in pairs] + values[len(values) - half : half]
        with np.errstate(all="ignore"):
            result = kind(self._functor(values[0], first))
        if res is None:
            return result
        res[0] = result
        return None
