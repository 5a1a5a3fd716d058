"""Refusals: what an `ErrorBounded` array does not do, in words that name the way round."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.error.registry import REFUSED, UnsupportedOperationError

REFUSED_METHODS = frozenset({"astype", "item", "tolist", "view", "sort", "argsort", "round", "tobytes"})
"""Methods of NumPy arrays that would lose the error."""


def reduce_options(ufunc: np.ufunc, options: dict[str, Any]) -> dict[str, Any]:
    """The options of ``ufunc.reduce`` as those of the NumPy function; what it does not know is refused."""
    allowed = {name: options[name] for name in ("axis", "keepdims", "initial") if options.get(name) is not None}
    if "axis" not in options:
        allowed["axis"] = 0
    rest = {
        name
        for name, item in options.items()
        if name not in ("axis", "keepdims", "initial") and item not in (None, True)
    }
    if rest:
        raise UnsupportedOperationError(
            f"np.{ufunc.__name__}.reduce with {', '.join(sorted(rest))}= has no error rule."
        )
    return allowed


def unsupported(label: str) -> str:
    """The message for an operation without a rule, with what to write instead where it is refused on purpose."""
    hint = REFUSED.get(label.rpartition(".")[2].removesuffix("()"))
    if hint:
        return f"{label} is refused on an ErrorBounded array: {hint}"
    return (
        f"{label} has no error rule for ErrorBounded arrays; write it with functions that have one "
        "(they are listed in the docstring of oracle.error)."
    )


def holds(key: Any, kind: type) -> bool:
    """Whether an index is, or has among its parts, an object of `kind`."""
    return isinstance(key, kind) or (isinstance(key, tuple) and any(isinstance(part, kind) for part in key))
