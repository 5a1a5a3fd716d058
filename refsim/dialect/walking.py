"""Walking over programs: what lies below a statement or an expression."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache
from typing import Any

from refsim.dialect.expressions import (
    Atomic,
    AtomicAt,
    BarrierObject,
    BlockVote,
    Call,
    Expr,
    Load,
    LoadAt,
    Rearranged,
    Slice,
    SliceItem,
    Warp,
)
from refsim.dialect.statements import Assign, Block, If, Loop, MatrixMultiply, Stmt


def _find_expression_fields(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if "Expr" in str(each.type))


_expression_fields: Callable[[Any], tuple[str, ...]] = cache(_find_expression_fields)
"""Names of the fields of a kind of expression or statement that may hold expressions."""


def child_expressions(node: Any) -> Iterator[Expr]:
    """Expressions directly below an expression or statement (not those of nested statement lists)."""
    for name in _expression_fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, Expr):
            yield value
        elif isinstance(value, tuple):
            for item in value:
                if isinstance(item, Expr):
                    yield item
                elif isinstance(item, SliceItem):
                    for part in (item.start, item.stop, item.step):
                        if part is not None:
                            yield part


def walk_expressions(node: Any) -> list[Expr]:
    """All expressions below a node, children first."""
    found: list[Expr] = []
    _collect(node, found)
    return found


def _collect(node: Any, found: list[Expr]) -> None:
    if not _expression_fields(type(node)):
        return
    for child in child_expressions(node):
        _collect(child, found)
        found.append(child)


def walk_statements(body: list[Stmt]) -> Iterator[Stmt]:
    """All statements of a list and of the lists nested in it."""
    for statement in body:
        yield statement
        if isinstance(statement, If):
            yield from walk_statements(statement.then)
            yield from walk_statements(statement.otherwise)
        elif isinstance(statement, Block):
            yield from walk_statements(statement.body)
        elif isinstance(statement, Loop):
            yield from walk_statements(statement.body)
            yield from walk_statements(statement.step)


def assigned_names(statement: Stmt) -> tuple[str, ...]:
    """Variables that a statement itself assigns."""
    if isinstance(statement, Assign):
        return (statement.name,)
    return statement.targets if isinstance(statement, MatrixMultiply) else ()


EFFECTS = (Call, Atomic, AtomicAt, BarrierObject, Warp, BlockVote)


def is_free(expression: Expr) -> bool:
    """True if evaluating the expression in a thread that does not need it changes and touches nothing."""
    guarded = (Load, LoadAt, Slice, Rearranged, *EFFECTS)
    return not isinstance(expression, guarded) and not any(
        isinstance(part, guarded) for part in walk_expressions(expression)
    )
