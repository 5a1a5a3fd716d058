"""What a backend says of itself and gives back, held against the interface: what is judged may answer anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np

from oracle.numerics import Numerics
from refsim.checks.findings import Finding
from refsim.conformance.backends.backend import Backend, Capability, RunResult, UsageError
from refsim.errors import brief

# Attributes that a backend may have beside those of the interface, and what each has to be.
OPTIONAL: dict[str, tuple[type | tuple[type, ...], str]] = {
    "facts": (Mapping, "a dict of texts by name"),
    "absent": (Mapping, "a dict of reasons by operator"),
    "options": ((list, tuple), "a tuple of words"),
    "layouts": ((list, tuple), "a list of names of layouts"),
}


def capabilities_of(backend: Backend) -> list[Capability]:
    """The rows of ``backend.capabilities()``.

    Raises
    ------
    UsageError
        The call raises or returns anything else, or an attribute is not what it has to be; the message names it.
    """
    for name in ("name", "device"):
        _require(backend, name, str, "a text")
    for name, (kind, wanted) in OPTIONAL.items():
        _require(backend, name, kind, wanted, {} if kind is Mapping else ())
    wanted = "a list of refsim.conformance.Capability, whose operator, kernel and dtype are texts"
    rows = _asked(backend, "capabilities", (), wanted)
    if not isinstance(rows, list | tuple):
        raise UsageError(f"{_shown(backend)}: capabilities() returned {_kind(rows)}; it must return {wanted}")
    for row in rows:
        if not isinstance(row, Capability) or not all(isinstance(text, str) for text in astuple(row)):
            raise UsageError(f"{_shown(backend)}: capabilities() lists {_repr(row)}; it must return {wanted}")
    return list(rows)


def numerics_of(backend: Backend, row: Capability) -> Numerics:
    """The arithmetic that ``backend.numerics()`` promises for a row.

    Raises
    ------
    UsageError
        The call raises or returns anything else.
    """
    wanted = "a Numerics, such as refsim.conformance.promised('float32')"
    found = _asked(backend, "numerics", (row.operator, row.kernel, row.dtype), wanted)
    if not isinstance(found, Numerics):
        call = f"numerics({row.operator!r}, {row.kernel!r}, {row.dtype!r})"
        raise UsageError(f"{_shown(backend)}: {call} returned {_kind(found)}; it must return {wanted}")
    return found


def run_of(
    backend: Backend, operator: str, kernel: str, inputs: Mapping[str, Any], params: Mapping[str, Any]
) -> RunResult:
    """What ``backend.run()`` returns. Raises what it raises, and TypeError where that is no proper RunResult."""
    result: Any = backend.run(operator, kernel, dict(inputs), dict(params))
    if not isinstance(result, RunResult):
        raise TypeError(f"run() returned {_kind(result)}; it must return a refsim.conformance.RunResult")
    if not isinstance(result.outputs, list | tuple):
        raise TypeError(f"run() returned outputs of type {type(result.outputs).__name__}; give a list or tuple of them")
    findings: Any = result.findings
    if not isinstance(findings, list | tuple) or not all(isinstance(one, Finding) for one in findings):
        raise TypeError(f"run() returned findings {_repr(findings)}; give a list or tuple of refsim.Finding")
    if not isinstance(result.deterministic, bool | np.bool_):
        raise TypeError(f"run() returned deterministic={_repr(result.deterministic)}; give True or False")
    misconduct: Any = result.misconduct
    if misconduct is not None and not (_texts(misconduct) and len(misconduct) == 2):
        raise TypeError(f"run() returned misconduct {_repr(misconduct)}; give None, or its reason and message")
    return result


def _require(backend: Backend, name: str, kind: Any, wanted: str, absent: Any = None) -> None:
    try:
        value = getattr(backend, name, absent)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too
        raise UsageError(f"backend of class {type(backend).__name__}: {name} raised {brief(error)}") from error
    members = [*value, *value.values()] if isinstance(value, Mapping) else value
    shown = "None" if value is None else f"{_repr(value)}, {_kind(value)}"
    if not isinstance(value, kind) or not (isinstance(value, str) or _texts(members)):
        raise UsageError(f"backend of class {type(backend).__name__}: {name} is {shown}; it must be {wanted}")


def _asked(backend: Backend, method: str, arguments: tuple[str, ...], wanted: str) -> Any:
    try:
        return getattr(backend, method)(*arguments)
    except (UsageError, KeyboardInterrupt):
        raise
    except BaseException as error:  # SystemExit too
        call = f"{method}({', '.join(map(repr, arguments))})"
        raise UsageError(f"{_shown(backend)}: {call} raised {brief(error)}; it must return {wanted}") from error


def _texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def _shown(backend: Backend) -> str:
    return f"backend {backend.name!r}"


def _kind(value: Any) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _repr(value: Any) -> str:
    """What a value looks like, cut; its type where it cannot say."""
    try:
        return f"{value!r:.100}"
    except KeyboardInterrupt:
        raise
    except BaseException:  # SystemExit too
        return _kind(value)
