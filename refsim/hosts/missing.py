"""Names of ``numba.cuda`` and ``cupy`` that have no stand-in: an error that says which."""

from __future__ import annotations

from typing import Any

from refsim.errors import UnsupportedError


class NotSimulatedError(UnsupportedError, AttributeError):
    """A name that exists on a GPU's host but has no stand-in; also an `AttributeError`, so `hasattr` says False."""

    def __init__(self, name: str, hint: str = "") -> None:
        message = f"{name} is not simulated by refsim run"
        super().__init__(f"{message}: {hint}" if hint else message)


class NotSimulatedImportError(UnsupportedError, ImportError):
    """A module without a stand-in; also an `ImportError`, so that optional imports stay optional."""

    def __init__(self, name: str) -> None:
        super().__init__(f"module {name} is not simulated by refsim run")


def refuse(name: str, hint: str = "") -> Any:
    """A callable that refuses to be called."""

    def refused(*_args: Any, **_options: Any) -> Any:
        raise NotSimulatedError(name, hint)

    refused.__name__ = refused.__qualname__ = name.rpartition(".")[2]
    return refused


def only(name: str, given: dict[str, Any], allowed: tuple[str, ...]) -> None:
    """Refuse keyword arguments beyond those that the stand-in knows."""
    for keyword in given:
        if keyword not in allowed:
            raise NotSimulatedError(f"argument {keyword!r} of {name}()")
