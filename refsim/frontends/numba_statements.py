"""Numba CUDA statements to the kernel dialect: variables, branches, and joins of their types."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from refsim.dialect import (
    COMPLEX,
    ArrayType,
    Assert,
    Assign,
    Break,
    Const,
    Convert,
    Effect,
    Expr,
    If,
    Place,
    Stmt,
    Type,
    Var,
)
from refsim.errors import KernelTypeError, UnsupportedError
from refsim.frontends import numba_fp8, numba_types
from refsim.frontends.numba_expressions import Expressions
from refsim.frontends.numba_operators import BINARY
from refsim.frontends.numba_scopes import MISSING, Conflict, Exit, Scope, lookup
from refsim.frontends.numba_values import (
    Environment,
    LocalFunction,
    Static,
    TupleValue,
    Value,
    as_tuple,
    to_expression,
)


class Statements(Expressions):
    """The statement part of the translator, except loops.

    `incomplete` holds variables that a loop reads before its first trip assigns them, `loop_names` the
    variables that each enclosing loop assigns.
    """

    scopes: list[Scope]
    captured: list[tuple[weakref.ref[FunctionType], str, Any]]
    counter: int
    incomplete: set[str]
    loop_names: list[set[str]]

    def place(self) -> Place:
        """Where the construct being translated stands."""
        scope = self.scopes[-1]
        offset = getattr(self.node, "lineno", 1) - 1
        text = scope.lines[offset].rstrip("\n") if 0 <= offset < len(scope.lines) else ""
        return Place(scope.file, scope.first_line + offset, text)

    def unsupported(self, what: str) -> UnsupportedError:
        """An error for a construct that is not run."""
        return UnsupportedError(what, self.place())

    def wrong(self, what: str) -> KernelTypeError:
        """An error for code that Numba would reject."""
        return KernelTypeError(what, self.place())

    def fresh(self, prefix: str) -> str:
        """A new name that no source can contain."""
        self.counter += 1
        return f"{prefix}${self.counter}"

    def storage(self, name: str, kind: Type) -> str:
        """Program variable that holds a source variable while it has a type."""
        base = self.scopes[-1].prefix + name
        candidate = base if self.types.get(base, kind) == kind else f"{base}@{kind}"
        self.types[candidate] = kind
        return candidate

    def read_name(self, name: str) -> Value:
        """Value of a name: local variable, else a captured constant."""
        assert self.environment is not None
        if name in self.environment:
            return self.environment[name]
        scope = self.scopes[-1]
        if name in scope.function.__code__.co_varnames or name in scope.function.__code__.co_cellvars:
            self.incomplete.add(name)
            if any(name in pending for pending in self.loop_names):
                return Const(0, type="int64")
            unbound = f"variable {name!r} is used before it is assigned"
            self.out.append(Assert(Const(False, type="bool"), unbound, self.place()))
            return Const(0, type="int64")
        value = lookup(scope.function, name)
        if value is MISSING:
            raise self.wrong(f"name {name!r} is not defined")
        self.captured.append(
            (weakref.ref(scope.function), name, value.copy() if isinstance(value, np.ndarray) else value)
        )
        return Static(value)

    def _bind(self, name: str, value: Value) -> Value:
        """Give a source variable a value; emits the assignment it takes."""
        if isinstance(value, TupleValue):
            return value.having(self._bind(f"{name}.{i}", item) for i, item in enumerate(value.items))
        if isinstance(value, Static):
            constant = to_expression(value)
            if constant is None or isinstance(constant.type, ArrayType):
                return value
            value = constant
        if isinstance(value.type, ArrayType) and isinstance(value, Var) and value.name in self._fixed_arrays():
            return value
        target = self.storage(name, value.type)
        if not (isinstance(value, Var) and value.name == target):
            self.out.append(Assign(target, value, line=self.place()))
        return Var(target, type=value.type)

    def _fixed_arrays(self) -> set[str]:
        return {allocation.name for allocation in self.allocations.values()}

    def convert(self, value: Expr, kind: str) -> Expr:
        """A scalar converted to a type."""
        if value.type == kind:
            return value
        if isinstance(value.type, ArrayType):
            raise self.wrong(f"an array is used where a {kind} is needed")
        if numba_fp8.is_eight_bits(value):
            return numba_fp8.from_eight_bits(self, value, kind)
        if value.type in COMPLEX:
            self.typed(numba_types.cast, kind, str(value.type))
        if (
            isinstance(value, Const)
            and kind in ("int64", "float64", "float32")
            and value.type in ("int64", "float64", "bool")
        ):
            if kind == "float32":
                return Const(np.float32(value.value), type=kind)
            if not (kind == "int64" and value.type == "float64"):
                return Const(int(value.value) if kind == "int64" else float(value.value), type=kind)
        return Convert(value, type=kind)

    def join(self, exits: list[Exit]) -> Environment | None:
        """Environment where several paths meet; conversions are added at the end of each path."""
        if not exits:
            return None
        if len(exits) == 1:
            return exits[0].environment
        joined: Environment = {}
        names = dict.fromkeys(name for e in exits for name in e.environment)
        for name in names:
            joined[name] = self._join_name(
                name, [(e.environment[name], e.statements) for e in exits if name in e.environment]
            )
        return joined

    def _join_name(self, name: str, values: list[tuple[Value, list[Stmt]]]) -> Value:
        first = values[0][0]
        if all(value == first or value is first for value, _ in values):
            return first
        if all(isinstance(value, TupleValue) for value, _ in values):
            tuples = [(value, statements) for value, statements in values if isinstance(value, TupleValue)]
            if len({len(value.items) for value, _ in tuples}) == 1:
                return tuples[0][0].having(
                    self._join_name(f"{name}.{i}", [(value.items[i], statements) for value, statements in tuples])
                    for i in range(len(tuples[0][0].items))
                )
        typed = [(to_expression(value), statements) for value, statements in values]
        kinds = {expression.type for expression, _ in typed if expression is not None}
        if any(expression is None for expression, _ in typed) or (
            len(kinds) > 1 and any(isinstance(kind, ArrayType) for kind in kinds)
        ):
            return Static(Conflict(name))
        kind: Type
        if len(kinds) == 1:
            kind = next(iter(kinds))
        else:
            kind = numba_types.unify(*(str(k) for k in kinds))
        target = self.storage(name, kind)
        for expression, statements in typed:
            assert expression is not None
            if isinstance(expression, Var) and expression.name == target:
                continue
            value = expression if isinstance(kind, ArrayType) else self.convert(expression, str(kind))
            at = len(statements) - 1 if statements and isinstance(statements[-1], Break) else len(statements)
            statements.insert(at, Assign(target, value))
        return Var(target, type=kind)

    def body(self, statements: list[ast.stmt]) -> None:
        """Translate statements in order; what follows a return, break or continue is dropped."""
        for statement in statements:
            if self.environment is None:
                return
            self.node = statement
            handler: Callable[[Any], None] | None = getattr(self, "_s_" + type(statement).__name__.lower(), None)
            if handler is None:
                raise self.unsupported(f"statement {type(statement).__name__.lower()!r} in a kernel")
            handler(statement)

    def _s_functiondef(self, node: ast.FunctionDef) -> None:
        assert self.environment is not None
        arguments = node.args
        if arguments.kwarg or arguments.kwonlyargs or node.decorator_list:
            raise self.unsupported(f"{node.name}() within a kernel with **kwargs, keyword-only names or a decorator")
        defaults = tuple(self.value(default) for default in arguments.defaults)
        self.environment[node.name] = Static(LocalFunction(node, defaults, self.scopes[-1]))

    def _x_lambda(self, node: ast.Lambda) -> Value:
        result = ast.copy_location(ast.Return(node.body), node.body)
        definition = ast.copy_location(ast.FunctionDef("_lambda", node.args, [result], [], None), node)
        defaults = tuple(self.value(default) for default in node.args.defaults)
        return Static(LocalFunction(definition, defaults, self.scopes[-1]))

    def _s_match(self, node: ast.Match) -> None:
        raise self.unsupported("a match statement, which numba-cuda does not compile; write if and elif")

    def _s_try(self, node: ast.Try) -> None:
        raise self.unsupported("try in a kernel: an exception ends the kernel, it is not caught there")

    def _s_with(self, node: ast.With) -> None:
        raise self.unsupported("a with statement in a kernel")

    def _s_delete(self, node: ast.Delete) -> None:
        assert self.environment is not None
        for target in node.targets:
            if not isinstance(target, ast.Name) or target.id not in self.environment:
                raise self.unsupported(f"{ast.unparse(node)} in a kernel")
            del self.environment[target.id]

    def _s_pass(self, node: ast.Pass) -> None:
        pass

    def _s_expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        self.statement_value = node.value
        value = self.value(node.value)
        self.statement_value = None
        if isinstance(value, Expr) and not isinstance(value, (Var, Const)):
            self.out.append(Effect(value))

    def _s_assign(self, node: ast.Assign) -> None:
        hint = node.targets[0].id if isinstance(node.targets[0], ast.Name) else None
        value = self.value(node.value, hint)
        if len(node.targets) > 1 or isinstance(node.targets[0], (ast.Tuple, ast.List)):
            value = self._settled(value)
        for target in node.targets:
            self._assign_to(target, value)

    def _settled(self, value: Value) -> Value:
        """The value held in temporaries, so that later assignments do not change it."""
        if isinstance(value, TupleValue):
            return value.having(self._settled(item) for item in value.items)
        if isinstance(value, Expr) and not isinstance(value, Const):
            return self.temporary(value)
        return value

    def _assign_to(self, target: ast.expr, value: Value) -> None:
        assert self.environment is not None
        if isinstance(target, ast.Name):
            self.environment[target.id] = self._bind(target.id, value)
        elif isinstance(target, ast.Starred):
            self._assign_to(target.value, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            items = self._unpacked(target, value)
            for part, item in zip(target.elts, items, strict=True):
                self._assign_to(part, item)
        elif isinstance(target, (ast.Subscript, ast.Attribute)):
            self.assign_view(self.target(target), value)
        else:
            raise self.unsupported(f"assignment to {ast.unparse(target)}")

    def _unpacked(self, target: ast.Tuple | ast.List, value: Value) -> tuple[Value, ...]:
        """One value per target; a starred one gets a tuple."""
        starred = [i for i, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
        items = as_tuple(value)
        if not starred or items is None:
            return self.unpack(value, len(target.elts))
        (at,), more = starred, len(items.items) - len(target.elts) + 1
        if more < 0:
            raise self.wrong(f"{len(items.items)} values are unpacked into {len(target.elts)} names")
        middle = TupleValue(items.items[at : at + more])
        return (*items.items[:at], middle, *items.items[at + more :])

    def _x_namedexpr(self, node: ast.NamedExpr) -> Value:
        self._assign_to(node.target, self._settled(self.value(node.value)))
        return self.read_name(node.target.id)

    def _s_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign_to(node.target, self.value(node.value))

    def _s_augassign(self, node: ast.AugAssign) -> None:
        operator = BINARY[type(node.op)]
        if isinstance(node.target, ast.Name):
            left = self.read_name(node.target.id)
            self._assign_to(node.target, self.arithmetic(operator, left, self.value(node.value), inplace=True))
        elif isinstance(node.target, (ast.Subscript, ast.Attribute)):
            target = self.target(node.target)
            value = self.value(node.value) if isinstance(target.type, ArrayType) and target.type.ndim else None

            def combine(old: Expr, given: Value) -> Value:
                return self.arithmetic(operator, old, given, inplace=True)

            def update(old: Expr, _: Value) -> Value:
                return combine(old, self.value(node.value))

            if value is None:
                self.assign_view(target, Static(0), update)
            else:
                self.assign_view(target, value, combine)
        else:
            raise self.unsupported(f"assignment to {ast.unparse(node.target)}")

    def _s_return(self, node: ast.Return) -> None:
        scope = self.scopes[-1]
        assert self.environment is not None
        value = Static(None) if node.value is None else self.value(node.value)
        if len(self.scopes) == 1:
            if not (isinstance(value, Static) and value.value is None):
                raise self.wrong("a kernel cannot return a value; write it to an array")
            self.out.append(Break("kernel"))
        else:
            self.environment["return value"] = self._bind("return value", value)
            self.out.append(Break(scope.return_label))
            scope.returns.append(Exit(self.environment, self.out))
        self.environment = None

    def _s_raise(self, node: ast.Raise) -> None:
        what = "raise" if node.exc is None else f"raise {ast.unparse(node.exc)}"
        failed = Const(False, type="bool")
        self.out.append(Assert(failed, what, self.place(), self._exception(node.exc)))
        self.out.append(Break("kernel"))
        self.environment = None

    def _exception(self, node: ast.expr | None) -> tuple[Any, tuple[Any, ...]] | None:
        """The class and the arguments of what is raised, where they are known; numba demands that of the arguments."""
        call = node if isinstance(node, ast.Call) else None
        held = None if node is None else self.value(node if call is None else call.func)
        kind = held.value if isinstance(held, Static) else None
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            return (type(kind), kind.args) if isinstance(kind, BaseException) else None
        values = [self.value(argument) for argument in call.args] if call is not None else []
        return kind, tuple(v.value for v in values if isinstance(v, (Static, Const)))

    def _s_assert(self, node: ast.Assert) -> None:
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            condition = Const(condition, type="bool")
        text = ast.unparse(node.test)
        if isinstance(node.msg, ast.Constant):
            text = f"{text}: {node.msg.value!s}"
        arguments = (node.msg.value,) if isinstance(node.msg, ast.Constant) else ()
        self.out.append(Assert(condition, text, self.place(), (AssertionError, arguments)))

    def _s_if(self, node: ast.If) -> None:
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            self.body(node.body if condition else node.orelse)
            return
        assert self.environment is not None
        line = self.place()
        outer, start = self.out, self.environment
        ends: list[Exit] = []
        sides: list[list[Stmt]] = []
        for statements in (node.body, node.orelse):
            self.out, self.environment = [], dict(start)
            self.body(statements)
            sides.append(self.out)
            if self.environment is not None:
                ends.append(Exit(self.environment, self.out))
        self.out = outer
        self.environment = self.join(ends)
        self.out.append(If(condition, sides[0], sides[1], line))
