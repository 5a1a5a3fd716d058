"""A module of CuPy: what it has a stand-in for, and an error with the name for the rest."""

from __future__ import annotations

import types
from typing import Any

from refsim.hosts.missing import NotSimulatedError


class HostModule(types.ModuleType):
    """A module object made of a table of names."""

    def __init__(self, name: str, doc: str, members: dict[str, Any], refused: dict[str, str] | None = None) -> None:
        super().__init__(name, doc)
        self.__file__ = __file__
        self.__path__: list[str] = []
        self._refused = refused or {}
        vars(self).update(members)

    def __getattr__(self, name: str) -> Any:
        full = f"{self.__name__}.{name}"
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        raise NotSimulatedError(full, vars(self).get("_refused", {}).get(name, ""))
