"""The Variant record: an implementation in NumPy that is known to be honest, or known to be wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Variant:
    """One implementation of an operator, to try the judge on.

    Attributes
    ----------
    operator, name : str
        What it implements, and its own name, unique per operator.
    function : function
        Called like the operator, ``function(*inputs, **params)``; returns one output or a tuple, in their dtypes.
    wrong : bool
        Whether it is a mutant: some value class, or a relation, must refuse it. A control must never be refused.
    flaw : str
        What is wrong with it, or for a control what it does its own way; one sentence.
    dtypes : tuple of str
        Dtypes it is tried in; none for all of the operator's.
    numerics : str
        Key in ``oracle.numerics.NUMERICS`` of the arithmetic that it keeps (a mutant: claims to keep).
    relation : str
        For a mutant that no value class can refuse: the name of the relation that does.
    """

    operator: str
    name: str
    function: Callable[..., Any]
    wrong: bool
    flaw: str
    dtypes: tuple[str, ...] = ()
    numerics: str = "float32"
    relation: str = ""

    def run(self, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
        """The outputs, in the operator's order."""
        result = self.function(*inputs.values(), **params)
        return result if isinstance(result, tuple) else (result,)


VARIANTS: dict[tuple[str, str], Variant] = {}
"""Every variant by operator and name."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def control(operator: str, **facts: Any) -> Decorator:
    """Register a function as an honest variant of an operator; its docstring says what it does its own way."""
    return _registered(operator, False, facts)


def mutant(operator: str, **facts: Any) -> Decorator:
    """Register a function as a wrong variant of an operator; its docstring says what is wrong."""
    return _registered(operator, True, facts)


def _registered(operator: str, wrong: bool, facts: dict[str, Any]) -> Decorator:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        name = facts.pop("name", function.__name__.strip("_").removeprefix(f"{operator}_"))
        flaw = inspect.cleandoc(function.__doc__ or "").partition("\n")[0]
        if not flaw:
            raise TypeError(f"variant {name} of {operator} needs a docstring that says what it does")
        if (operator, name) in VARIANTS:
            raise ValueError(f"variant {name} of {operator} is registered twice")
        VARIANTS[operator, name] = Variant(operator, name, function, wrong, flaw, **facts)
        return function

    return register


def variants_of(operator: str) -> list[Variant]:
    """Controls, then mutants of one operator, in the order in which they were written."""
    import oracle.variants.families  # noqa: F401  registers every family

    found = [variant for (owner, _), variant in VARIANTS.items() if owner == operator]
    return sorted(found, key=lambda variant: variant.wrong)
