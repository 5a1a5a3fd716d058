"""``numba.vectorize`` and ``guvectorize`` with ``target="cuda"``: refused by name, other targets pass."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from refsim.hosts.missing import NotSimulatedError


def refusing(real: Callable[..., Any]) -> Callable[..., Any]:
    """The real decorator, but for ``target="cuda"``."""

    @functools.wraps(real)
    def decorator(*args: Any, **options: Any) -> Any:
        if options.get("target") == "cuda":
            raise NotSimulatedError(f"numba.{real.__name__}(target='cuda')", "write the kernel with cuda.jit")
        return real(*args, **options)

    return decorator
