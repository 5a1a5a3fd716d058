"""Functions under translation, the paths that leave them, and the values they capture."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from refsim.dialect import (
    Program,
    Stmt,
    Type,
)
from refsim.frontends.numba_values import (
    Environment,
)


@dataclass
class Exit:
    """A path that leaves a labelled statement: its environment, and the statements that end in the break."""

    environment: Environment
    statements: list[Stmt]


@dataclass
class Scope:
    """One function being translated: the kernel, or a device function inlined into it."""

    function: FunctionType
    prefix: str
    file: str
    lines: list[str]
    first_line: int
    return_label: str
    returns: list[Exit] = field(default_factory=list)
    environment: Environment = field(default_factory=dict)  # as it was when the function last called another
    loops: list[tuple[str, str, list[Exit], list[Exit]]] = field(default_factory=list)


@dataclass
class Translation:
    """A translated kernel: the program, variable types, and the outside values it took as constants."""

    program: Program
    types: dict[str, Type]
    captured: list[tuple[weakref.ref[FunctionType], str, Any]]

    def is_current(self) -> bool:
        """True while every captured global and closure value is still what it was."""
        return all(_is_captured(function(), name, value) for function, name, value in self.captured)


MISSING = object()


def lookup(function: FunctionType, name: str) -> Any:
    """Value of a free name of a function: closure, then globals, then builtins; `MISSING` if there is none."""
    if function.__closure__ and name in function.__code__.co_freevars:
        try:
            return function.__closure__[function.__code__.co_freevars.index(name)].cell_contents
        except ValueError:
            return MISSING
    if name in function.__globals__:
        return function.__globals__[name]
    source = function.__globals__.get("__builtins__", {})
    members = source if isinstance(source, dict) else vars(source)
    return members.get(name, MISSING)


def _is_captured(function: FunctionType | None, name: str, value: Any) -> bool:
    return function is not None and _same_capture(lookup(function, name), value)


def _same_capture(now: Any, then: Any) -> bool:
    if now is then:
        return not isinstance(now, np.ndarray)
    if isinstance(now, np.ndarray) and isinstance(then, np.ndarray):
        return now.dtype == then.dtype and now.shape == then.shape and now.tobytes() == then.tobytes()
    return isinstance(now, (int, float, str, bool, tuple, np.generic)) and type(now) is type(then) and bool(now == then)


@dataclass(frozen=True)
class Conflict:
    """A name that stands for different things on two paths; an error where it is used."""

    name: str
