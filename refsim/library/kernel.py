"""The Kernel record: one implementation, the operators and dtypes it serves, and the arithmetic it promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from refsim.library.launcher import Launcher

Run = Callable[[Launcher, dict[str, Any], dict[str, Any]], tuple[Any, ...]]
Accepts = Callable[[dict[str, Any], dict[str, Any]], "str | None"]


def accept_all(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    """Refuse nothing."""
    return None


@dataclass(frozen=True)
class Kernel:
    """One compiled-and-launched implementation, with the host code that launches it.

    Attributes
    ----------
    name : str
        Unique in its library: ``matmul_tiled``.
    operators : tuple of str
        Operators it serves.
    dtypes : tuple of str
        Dtypes of the floating-point inputs it takes.
    run : function
        ``run(launcher, inputs, params) -> outputs``: allocates, launches, and returns the outputs in the
        operator's order. ``inputs`` has every input of the operator, None for an optional one that is left out;
        ``params`` has every parameter.
    accepts : function
        ``accepts(inputs, params)`` is None, or why the kernel refuses them, in one sentence.
    numerics : mapping of str to str
        For each dtype the key of ``oracle.numerics.NUMERICS`` that the kernel promises to keep.
    doc : str
        What it does and how, first sentence first.
    deterministic : bool
        Whether two runs on the same inputs give the same bits; not so where atomic additions come in any order.
    """

    name: str
    operators: tuple[str, ...]
    dtypes: tuple[str, ...]
    run: Run
    accepts: Accepts = accept_all
    numerics: Mapping[str, str] = field(default_factory=dict)
    doc: str = ""
    deterministic: bool = True
