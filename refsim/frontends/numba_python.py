"""Numba CUDA kernels to the kernel dialect: statements, control flow and the types of variables.

Translation follows the flow of control with an environment: variable name to typed value. A variable that
holds different types on two paths becomes, where they meet, one of the unified type, as in Numba's typed SSA
form; each (name, type) has its own storage, so values of one type need no copy.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import weakref
from types import FunctionType
from typing import Any

from refsim.devices import Device
from refsim.dialect import (
    Allocation,
    Block,
    Break,
    Expr,
    KnownType,
    NamedTupleType,
    Place,
    Program,
    Stmt,
    Type,
    Var,
    walk_statements,
)
from refsim.errors import KernelTypeError, UnsupportedError
from refsim.frontends.numba_recursion import Functions, Recursion, calls_itself
from refsim.frontends.numba_scopes import Exit, Scope, Translation
from refsim.frontends.numba_values import (
    Environment,
    LocalFunction,
    Static,
    TupleValue,
    Value,
    assigned_names,
    is_known,
)

MAX_INLINE_DEPTH = 32


def translate(function: FunctionType, parameters: list[Type | tuple[Any, ...] | None], device: Device) -> Translation:
    """Translate a kernel for arguments of given types.

    Parameters
    ----------
    function
        The Python function of the kernel.
    parameters
        One entry per argument: a scalar type, an `ArrayType`, None for the argument ``None``, or a tuple of these.
    device
        Gives ``cuda.warpsize``.

    Raises
    ------
    UnsupportedError
        For a construct that refsim does not run; names it, with file and line.
    KernelTypeError
        For code that Numba would not compile.
    """
    return Translator(device).kernel(function, parameters)


class Translator(Recursion):
    """Translates one kernel."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.types: dict[str, Type] = {}
        self.allocations: dict[Any, Allocation] = {}
        self.constants: dict[str, Any] = {}
        self.captured: list[tuple[weakref.ref[FunctionType], str, Any]] = []
        self.scopes: list[Scope] = []
        self.out: list[Stmt] = []
        self.environment: Environment | None = {}
        self.counter = 0
        self.node: ast.AST | None = None
        self.incomplete: set[str] = set()
        self.statement_value: ast.expr | None = None
        self.loop_names: list[set[str]] = []
        self.functions = Functions()
        self.open_function = self._open

    def kernel(self, function: FunctionType, parameters: list[Any]) -> Translation:
        """Translate the kernel itself."""
        definition, scope = self._open(function, "", "kernel")
        names = [argument.arg for argument in definition.args.args]
        rest = definition.args.vararg
        if rest is not None and len(parameters) >= len(names):
            parameters = [*parameters[: len(names)], tuple(parameters[len(names) :])]
            names.append(rest.arg)
        if len(names) != len(parameters):
            raise TypeError(
                f"{function.__name__}() takes {len(names)} arguments ({', '.join(names)}), {len(parameters)} were given"
            )
        environment: Environment = {}
        typed: list[tuple[str, Type | None]] = []
        for name, kind in zip(names, parameters, strict=True):
            environment[name] = self._parameter(name, kind, typed)
        self.environment = environment
        self.scopes.append(scope)
        self.node = definition
        place = self.place()
        self.body(definition.body)
        self.scopes.pop()
        allocations = tuple(self.allocations.values())
        program = Program(
            function.__name__, place, tuple(typed), self.out, allocations, self.constants,
            functions=tuple(self.functions.done.values()),
        )  # fmt: skip
        return Translation(program, self.types, self.captured)

    def _parameter(self, name: str, kind: Any, typed: list[tuple[str, Type | None]]) -> Value:
        if kind is None:
            typed.append((name, None))
            return Static(None)
        if isinstance(kind, KnownType):
            typed.append((name, None))
            return Static(kind.value)
        if isinstance(kind, NamedTupleType):
            parts = (
                self._parameter(f"{name}.{part}", k, typed) for part, k in zip(kind.names, kind.items, strict=True)
            )
            return TupleValue(tuple(parts), kind.names)
        if isinstance(kind, tuple):
            items = [self._parameter(f"{name}.{i}", part, typed) for i, part in enumerate(kind)]
            return TupleValue(tuple(items))
        typed.append((name, kind))
        self.types[name] = kind
        return Var(name, type=kind)

    def _open(self, function: FunctionType, prefix: str, label: str) -> tuple[ast.FunctionDef, Scope]:
        try:
            if function.__name__ == "<lambda>":
                return self._open_lambda(function, prefix, label)
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError) as error:
            raise UnsupportedError(
                f"the source of {function.__name__}() is not available (defined in {function.__code__.co_filename}); "
                "kernels must come from a file"
            ) from error
        tree = ast.parse(textwrap.dedent("".join(lines)))
        definition = tree.body[0]
        place = Place(function.__code__.co_filename, first, lines[0])
        if not isinstance(definition, ast.FunctionDef):
            raise UnsupportedError(f"{function.__name__} is not written as a def statement", place)
        if definition.args.kwarg or definition.args.kwonlyargs:
            raise UnsupportedError(f"{function.__name__}() has **kwargs or keyword-only parameters", place)
        return definition, Scope(function, prefix, function.__code__.co_filename, lines, first, label)

    def _open_lambda(self, function: FunctionType, prefix: str, label: str) -> tuple[ast.FunctionDef, Scope]:
        """A lambda as the def statement that does the same; it is found by its line and its parameters."""
        code = function.__code__
        lines, _ = inspect.findsource(function)
        names = code.co_varnames[: code.co_argcount]
        found = [
            node
            for node in ast.walk(ast.parse("".join(lines)))
            if isinstance(node, ast.Lambda)
            and node.lineno == code.co_firstlineno
            and tuple(argument.arg for argument in (*node.args.posonlyargs, *node.args.args)) == names
        ]
        if len(found) != 1 or found[0].args.vararg or found[0].args.kwarg or found[0].args.kwonlyargs:
            place = Place(code.co_filename, code.co_firstlineno, lines[code.co_firstlineno - 1])
            raise UnsupportedError("this lambda is not the only one of its kind in its line; write it as a def", place)
        (node,) = found
        result = ast.copy_location(ast.Return(node.body), node.body)
        definition = ast.FunctionDef("_lambda", node.args, [result], [], None)
        return ast.copy_location(definition, node), Scope(function, prefix, code.co_filename, lines, 1, label)

    def inline(self, function: FunctionType, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """Translate a call of a device function in place; the value is what it returns."""
        if calls_itself(function):
            return self.call_recursive(function, arguments, keywords)
        if any(scope.function is function for scope in self.scopes):
            raise self.unsupported(f"recursive call of device function {function.__name__}()")
        if len(self.scopes) > MAX_INLINE_DEPTH:
            raise self.unsupported(f"device functions nested more than {MAX_INLINE_DEPTH} deep")
        self.counter += 1
        label = f"{function.__name__}{self.counter}"
        definition, scope = self._open(function, f"{label}.", label)
        try:
            bound = inspect.signature(function).bind(*arguments, **keywords)
        except TypeError as error:
            raise KernelTypeError(f"{function.__name__}(): {error}", self.place()) from error
        bound.apply_defaults()
        variable = definition.args.vararg
        values = {
            name: TupleValue(value)
            if variable is not None and name == variable.arg
            else value
            if isinstance(value, (Expr, Static, TupleValue))
            else Static(value)
            for name, value in bound.arguments.items()
        }
        return self._inlined(definition.body, scope, values, {})

    def inline_local(self, function: LocalFunction, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """Translate a call of a function that is defined within the kernel."""
        outer: Scope = function.scope
        name = function.definition.name
        if outer not in self.scopes:
            raise self.unsupported(f"call of {name}() after the function that defines it has returned")
        if len(self.scopes) > MAX_INLINE_DEPTH:
            raise self.unsupported(f"functions nested more than {MAX_INLINE_DEPTH} deep, or a recursive one")
        names = [argument.arg for argument in function.definition.args.args]
        rest = function.definition.args.vararg
        values = dict(zip(names, arguments, strict=False)) | keywords
        for parameter, default in zip(reversed(names), reversed(function.defaults), strict=False):
            values.setdefault(parameter, default)
        if set(values) != set(names) or (len(arguments) > len(names) and rest is None):
            raise self.wrong(f"{name}() takes the arguments ({', '.join(names)})")
        if rest is not None:
            values[rest.arg] = TupleValue(tuple(arguments[len(names) :]))
        self.counter += 1
        label = f"{name}{self.counter}"
        scope = Scope(outer.function, f"{label}.", outer.file, outer.lines, outer.first_line, label)
        own = assigned_names(ast.Module(function.definition.body, [])) | set(values)
        environment = (self.environment or {}) if outer is self.scopes[-1] else outer.environment
        around = {key: value for key, value in environment.items() if key not in own}
        return self._inlined(function.definition.body, scope, values, around)

    def _inlined(
        self, statements: list[ast.stmt], scope: Scope, values: dict[str, Value], around: Environment
    ) -> Value:
        label = scope.return_label
        outer = self.environment
        assert outer is not None
        call_place = self.node
        if self.scopes:
            self.scopes[-1].environment = outer
        self.scopes.append(scope)
        self.environment = dict(around)
        changed = assigned_names(ast.Module(statements, []))
        for name, value in values.items():
            known = name not in changed and is_known(value)  # a constant stays one, such as the shape of an array
            self.environment[name] = value if known else self._bind(name, value)
        before = self.out
        self.out = []
        self.body(statements)
        if self.environment is not None:
            self.environment["return value"] = Static(None)
            scope.returns.append(Exit(self.environment, self.out))
        returned = [
            Exit({k: v for k, v in e.environment.items() if k == "return value"}, e.statements) for e in scope.returns
        ]
        joined = self.join(returned)
        body, self.out = self.out, before
        if any(isinstance(s, Break) and s.label == label for s in walk_statements(body)):
            self.out.append(Block(label, body))
        else:
            self.out.extend(body)
        self.scopes.pop()
        self.node = call_place
        self.environment = None if joined is None else outer
        return Static(None) if joined is None else joined["return value"]
