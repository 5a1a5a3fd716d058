"""Functions, methods and attributes that a module gave to numba-cuda with ``@overload``: Python to be translated.

numba-cuda's own registry is read if the kernel's module imported it; numba is never imported here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

from refsim.dialect import ArrayType, Expr, RecordType
from refsim.frontends.numba_values import LocalFunction, Static, TupleValue, Value, to_expression

if TYPE_CHECKING:
    from refsim.frontends.numba_expressions import Expressions

PACKAGE = "numba.cuda"
TARGETS = ("cuda", "generic")  # what is written for CUDA comes before what is written for any target


def function_overload(t: Expressions, function: Any, arguments: list[Value], keywords: dict[str, Value]) -> Any:
    """The Python function that implements an overloaded function for these arguments; None if nothing does."""
    registry = _registry()
    if registry is None:
        return None
    found = [kind for key, kind in registry.globals if key is function]
    templates = [template for kind in found for template in getattr(kind, "templates", ())]
    return _implementation(t, templates, arguments, keywords)


def is_overloaded(function: Any) -> bool:
    """Whether numba-cuda's registry has anything for a function."""
    registry = _registry()
    return registry is not None and any(key is function for key, _ in registry.globals)


def member_overload(t: Expressions, owner: Value, name: str, arguments: list[Value], keywords: dict[str, Value]) -> Any:
    """The Python function behind an overloaded method or attribute of a value; it takes the value first."""
    registry = _registry()
    kind = numba_type(t, owner)
    if registry is None or kind is None:
        return None
    templates = [
        template
        for template in registry.attributes
        if getattr(template, "_attr", None) == name and _is_of(kind, getattr(template, "key", None))
    ]
    return _implementation(t, templates, [owner, *arguments], keywords)


def is_method(t: Expressions, owner: Value, name: str) -> bool | None:
    """Whether an overloaded member of a value is a method, or an attribute; None if there is none."""
    registry = _registry()
    kind = numba_type(t, owner)
    if registry is None or kind is None:
        return None
    for template in registry.attributes:
        if getattr(template, "_attr", None) == name and _is_of(kind, getattr(template, "key", None)):
            return "Method" in template.__mro__[1].__name__
    return None


def _is_of(kind: Any, key: Any) -> bool:
    return kind == key or (isinstance(key, type) and isinstance(kind, key))


def _registry() -> Any:
    return getattr(sys.modules.get(f"{PACKAGE}.typing.templates"), "builtin_registry", None)


def _implementation(t: Expressions, templates: list[Any], arguments: list[Value], keywords: dict[str, Value]) -> Any:
    for template in _by_target(templates):
        overload = getattr(template, "_overload_func", None)
        if not isinstance(overload, FunctionType):
            continue
        literal = bool(getattr(template, "prefer_literal", False))
        for literally in (literal, not literal):
            kinds = [numba_type(t, value, literally) for value in arguments]
            named = {name: numba_type(t, value, literally) for name, value in keywords.items()}
            if None in kinds or None in named.values():
                return None
            try:
                found = overload(*kinds, **named)
            except Exception as error:
                if type(error).__name__ in ("TypingError", "RequireLiteralValue", "NumbaTypeError", "NumbaValueError"):
                    continue
                raise
            found = found[1] if isinstance(found, tuple) else found
            found = getattr(found, "py_func", found)
            if isinstance(found, FunctionType):
                return found
    return None


def _by_target(templates: list[Any]) -> Iterator[Any]:
    for target in TARGETS:
        for template in reversed(templates):
            if getattr(template, "metadata", {}).get("target", "cuda") == target:
                yield template


def numba_type(t: Expressions, value: Value, literally: bool = False) -> Any:
    """numba's type object of a value; None if it has none here."""
    types = sys.modules.get(f"{PACKAGE}.types")
    if types is None:
        return None
    if isinstance(value, Static) and (value.value is None or isinstance(value.value, (str, bool, int))):
        if value.value is None:
            return types.none
        if literally or isinstance(value.value, str):
            return types.literal(value.value)
    if isinstance(value, TupleValue):
        if value.vector:
            return None
        items = [numba_type(t, item, literally) for item in value.items]
        return None if None in items else types.Tuple(items)
    expression = to_expression(value)
    if expression is not None:
        return _expression_type(types, expression)
    if isinstance(value, Static) and (callable(value.value) or isinstance(value.value, LocalFunction)):
        return types.pyobject
    return None


def _expression_type(types: Any, expression: Expr) -> Any:
    kind = expression.type
    if isinstance(kind, ArrayType):
        if isinstance(kind.dtype, RecordType):
            support = sys.modules.get(f"{PACKAGE}.np.numpy_support")
            element = None if support is None else support.from_dtype(kind.dtype.dtype)
            return element if kind.ndim == 0 or element is None else types.Array(element, kind.ndim, "C")
        element = _scalar(types, kind.dtype)
        return None if element is None else types.Array(element, kind.ndim, "C")
    return _scalar(types, str(kind))


def _scalar(types: Any, name: str) -> Any:
    return types.boolean if name == "bool" else getattr(types, name, None)
