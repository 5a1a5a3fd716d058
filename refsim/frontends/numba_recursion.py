"""Device functions that call themselves: functions of their own in the program, of numbers only."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from refsim.dialect import (
    ArrayType,
    Atomic,
    Barrier,
    Block,
    BlockVote,
    Break,
    Call,
    Effect,
    Expr,
    Function,
    Load,
    Slice,
    Stmt,
    Store,
    Type,
    Var,
    Warp,
    WarpBarrier,
    walk_expressions,
    walk_statements,
)
from refsim.frontends import numba_types
from refsim.frontends.numba_loops import Loops
from refsim.frontends.numba_names import python_function
from refsim.frontends.numba_scopes import Exit, Scope, lookup
from refsim.frontends.numba_values import Static, Value, to_expression

MOST_PASSES = 8


@dataclass
class Pending:
    """A function under translation: its scope so far, and the type that its calls of itself were given."""

    name: str
    scope: Scope
    result: str | None = None
    guessed: bool = False


@dataclass
class Functions:
    """Functions of a program by the Python function and the types of its arguments."""

    done: dict[Any, Function] = field(default_factory=dict)
    pending: dict[Any, Pending] = field(default_factory=dict)


def calls_itself(function: FunctionType) -> bool:
    """True if a name in the function stands for the function."""
    names = {*function.__code__.co_names, *function.__code__.co_freevars}
    return any(python_function(lookup(function, name)) is function for name in names)


class Recursion(Loops):
    """Translates calls of functions that call themselves."""

    functions: Functions
    open_function: Callable[[FunctionType, str, str], tuple[ast.FunctionDef, Scope]]

    def call_recursive(self, function: FunctionType, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """A call of a function that calls itself."""
        try:
            bound = inspect.signature(function).bind(*arguments, **keywords)
        except TypeError as error:
            raise self.wrong(f"{function.__name__}(): {error}") from error
        bound.apply_defaults()
        values: list[Expr] = []
        for name, value in bound.arguments.items():
            given = to_expression(
                value if isinstance(value, Expr) else value if isinstance(value, Static) else Static(value)
            )
            if given is None or isinstance(given.type, ArrayType):
                raise self.unsupported(f"recursive device function {function.__name__}(): {name} must be a number")
            values.append(given)
        kinds = tuple(str(value.type) for value in values)
        key = (function, kinds)
        pending = self.functions.pending.get(key)
        if pending is not None:
            result = pending.result or self._returned_so_far(pending.scope)
            if result is None:
                raise self.wrong(
                    f"the type of {function.__name__}() is not known where it calls itself: return something before"
                )
            pending.result, pending.guessed = result, True
            return self.temporary(Call(pending.name, tuple(values), type=result))
        if key not in self.functions.done:
            self.functions.done[key] = self._translated(function, list(bound.arguments), kinds, key)
        found = self.functions.done[key]
        return self.temporary(Call(found.name, tuple(values), type=found.result.type))

    @staticmethod
    def _returned_so_far(scope: Scope) -> str | None:
        values = [to_expression(e.environment["return value"]) for e in scope.returns]
        kinds = [str(value.type) for value in values if value is not None and not isinstance(value.type, ArrayType)]
        return numba_types.unify(*kinds) if kinds else None

    def _translated(self, function: FunctionType, names: list[str], kinds: tuple[str, ...], key: Any) -> Function:
        result: str | None = None
        for _ in range(MOST_PASSES):
            self.counter += 1
            label = f"{function.__name__}{self.counter}"
            definition, scope = self.open_function(function, f"{label}.", label)
            pending = self.functions.pending[key] = Pending(label, scope, result)
            found = self._body_of(definition.body, pending, names, kinds)
            del self.functions.pending[key]
            if not pending.guessed or pending.result == found.result.type:
                return found
            result = str(found.result.type)
        raise self.wrong(f"return type of recursive function {function.__name__}() does not converge")

    def _body_of(
        self, statements: list[ast.stmt], pending: Pending, names: list[str], kinds: tuple[str, ...]
    ) -> Function:
        outer = self.environment, self.out, self.node, self.loop_names
        scope, place = pending.scope, self.place()
        self.scopes.append(scope)
        self.environment, self.out, self.loop_names = {}, [], []
        parameters: list[tuple[str, Type | None]] = []
        for name, kind in zip(names, kinds, strict=True):
            parameter = f"{scope.prefix}{name}@given"
            parameters.append((parameter, kind))
            self.environment[name] = self._bind(name, Var(parameter, type=kind))
        start, self.out = self.out, []
        self.body(statements)
        if self.environment is not None:
            raise self.unsupported(f"recursive device function {scope.function.__name__}() that may return nothing")
        returned = [Exit({"return value": e.environment["return value"]}, e.statements) for e in scope.returns]
        joined = self.join(returned)
        result = None if joined is None else to_expression(joined["return value"])
        if not isinstance(result, Var) or isinstance(result.type, ArrayType):
            raise self.unsupported(f"recursive device function {scope.function.__name__}() must return a number")
        body: list[Stmt] = [*start, Block(scope.return_label, self.out), Effect(result)]
        self.scopes.pop()
        self.environment, self.out, self.node, self.loop_names = outer
        self._check_pure(body, scope.function.__name__)
        return Function(pending.name, place, tuple(parameters), body, result)

    def _check_pure(self, body: list[Stmt], name: str) -> None:
        """Functions that call themselves take no part in what threads do together."""
        for statement in walk_statements(body):
            if isinstance(statement, Break) and statement.label == "kernel":
                raise self.unsupported(f"raise in recursive device function {name}()")
            parts = [statement, *walk_expressions(statement)]
            if any(isinstance(p, (Store, Barrier, WarpBarrier, Load, Slice, Atomic, Warp, BlockVote)) for p in parts):
                raise self.unsupported(
                    f"recursive device function {name}() that uses memory or waits for other threads"
                )
