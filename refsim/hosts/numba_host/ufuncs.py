"""``numba.vectorize`` and ``guvectorize`` with ``target="cuda"``: numba.cuda's own; other targets pass."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def adopting(real: Callable[..., Any]) -> Callable[..., Any]:
    """The real decorator, but numba.cuda's for ``target="cuda"``."""

    @functools.wraps(real)
    def decorator(*args: Any, **options: Any) -> Any:
        if options.get("target") == "cuda":
            from numba.cuda.np.ufunc import decorators

            return getattr(decorators, real.__name__)(*args, **options)
        return real(*args, **options)

    return decorator
