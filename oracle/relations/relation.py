"""The Relation record: what must hold between two runs of an operator, without any tolerance."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.signature import Array

Run = Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[Array, ...]]
Holds = Callable[[Run, dict[str, Any], dict[str, Any], np.random.Generator], "str | None"]


@dataclass(frozen=True)
class Relation:
    """One relation.

    Attributes
    ----------
    name : str
        Its own, unique.
    operators : tuple of str
        Where it applies.
    statement : str
        What must hold, in one sentence.
    holds : function
        ``holds(run, inputs, params, rng)`` is None, or in one sentence how it was broken. ``run(inputs, params)``
        gives the outputs of the implementation; the inputs are those of a case. It returns None, too, where the
        relation says nothing about these inputs.
    """

    name: str
    operators: tuple[str, ...]
    statement: str
    holds: Holds


RELATIONS: dict[str, Relation] = {}
"""Every relation by name."""


def relation(*operators: str) -> Callable[[Holds], Holds]:
    """Register a function as a relation of these operators; the first line of its docstring is the statement."""

    def register(function: Holds) -> Holds:
        name = function.__name__.strip("_")
        if name in RELATIONS:
            raise ValueError(f"relation {name} is registered twice")
        statement = inspect.cleandoc(function.__doc__ or "").partition("\n")[0]
        RELATIONS[name] = Relation(name, operators, statement, function)
        return function

    return register


def relations_of(operator: str) -> list[Relation]:
    """The relations of one operator, in the order in which they were written."""
    import oracle.relations.families  # noqa: F401  registers every family

    return [found for found in RELATIONS.values() if operator in found.operators]


def difference(got: Array, want: Array, what: str) -> str | None:
    """None if two arrays agree bit for bit, but for the payload of NaNs; else where they differ first."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{what}: {got.dtype} {got.shape} in place of {want.dtype} {want.shape}"
    with np.errstate(all="ignore"):
        same = (got == want) | ((got != got) & (want != want))
    if same.all():
        return None
    at = tuple(int(axis) for axis in np.unravel_index(int(np.argmin(same)), same.shape))
    return f"{what}: {got[at]} in place of {want[at]} at {list(at)} ({int((~same).sum())} of {same.size} elements)"
