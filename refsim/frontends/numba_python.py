"""Numba CUDA kernels to the kernel dialect: statements, control flow and the types of variables.

Translation follows the flow of control with an environment: variable name to typed value. A variable that
holds different types on two paths becomes, where they meet, one of the unified type, as in Numba's typed SSA
form; each (name, type) has its own storage, so values of one type need no copy.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from refsim.devices import Device
from refsim.dialect import (
    Allocation,
    ArrayType,
    Assert,
    Assign,
    Binary,
    Block,
    Break,
    Compare,
    Const,
    Convert,
    Dim,
    Effect,
    Expr,
    If,
    Load,
    Loop,
    Place,
    Program,
    Stmt,
    Store,
    Type,
    Var,
    walk_statements,
)
from refsim.errors import KernelTypeError, UnsupportedError
from refsim.frontends import numba_types
from refsim.frontends.numba_expressions import BINARY, Expressions
from refsim.frontends.numba_values import (
    Environment,
    Static,
    TupleValue,
    Value,
    assigned_names,
    to_expression,
)

MAX_INLINE_DEPTH = 32


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
    loops: list[tuple[str, str, list[Exit], list[Exit]]] = field(default_factory=list)


@dataclass
class Translation:
    """A translated kernel: the program, variable types, and the outside values it took as constants."""

    program: Program
    types: dict[str, Type]
    captured: list[tuple[FunctionType, str, Any]]

    def is_current(self) -> bool:
        """True while every captured global and closure value is still what it was."""
        return all(_same_capture(lookup(function, name), value) for function, name, value in self.captured)


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


MISSING = object()


def _same_capture(now: Any, then: Any) -> bool:
    if now is then:
        return not isinstance(now, np.ndarray)
    if isinstance(now, np.ndarray) and isinstance(then, np.ndarray):
        return now.dtype == then.dtype and now.shape == then.shape and now.tobytes() == then.tobytes()
    return isinstance(now, (int, float, str, bool, tuple, np.generic)) and type(now) is type(then) and bool(now == then)


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


class Translator(Expressions):
    """Translates one kernel."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.types: dict[str, Type] = {}
        self.allocations: dict[Any, Allocation] = {}
        self.constants: dict[str, Any] = {}
        self.captured: list[tuple[FunctionType, str, Any]] = []
        self.scopes: list[Scope] = []
        self.out: list[Stmt] = []
        self.environment: Environment | None = {}
        self.counter = 0
        self.node: ast.AST | None = None
        self.incomplete: set[str] = set()
        self.statement_value: ast.expr | None = None
        self._loop_names: list[set[str]] = []

    # ----------------------------------------------------------------------------------------- functions

    def kernel(self, function: FunctionType, parameters: list[Any]) -> Translation:
        """Translate the kernel itself."""
        definition, scope = self._open(function, "", "kernel")
        names = [argument.arg for argument in definition.args.args]
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
        program = Program(function.__name__, place, tuple(typed), self.out, allocations, self.constants)
        return Translation(program, self.types, self.captured)

    def _parameter(self, name: str, kind: Any, typed: list[tuple[str, Type | None]]) -> Value:
        if kind is None:
            typed.append((name, None))
            return Static(None)
        if isinstance(kind, tuple):
            items = [self._parameter(f"{name}.{i}", part, typed) for i, part in enumerate(kind)]
            return TupleValue(tuple(items))
        typed.append((name, kind))
        self.types[name] = kind
        return Var(name, type=kind)

    def _open(self, function: FunctionType, prefix: str, label: str) -> tuple[ast.FunctionDef, Scope]:
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError) as error:
            raise UnsupportedError(
                f"the source of {function.__name__}() is not available (defined in {function.__code__.co_filename}); "
                "kernels must come from a file"
            ) from error
        tree = ast.parse(textwrap.dedent("".join(lines)))
        definition = tree.body[0]
        if not isinstance(definition, ast.FunctionDef):
            raise UnsupportedError(f"{function.__name__} is not written as a def statement")
        if definition.args.vararg or definition.args.kwarg or definition.args.kwonlyargs:
            raise UnsupportedError(f"{function.__name__}() has *args, **kwargs or keyword-only parameters")
        return definition, Scope(function, prefix, function.__code__.co_filename, lines, first, label)

    def inline(self, function: FunctionType, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """Translate a call of a device function in place; the value is what it returns."""
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
        outer = self.environment
        assert outer is not None
        call_place = self.node
        self.scopes.append(scope)
        self.environment = {}
        for name, value in bound.arguments.items():
            given = value if isinstance(value, (Expr, Static, TupleValue)) else Static(value)
            self.environment[name] = self._bind(name, given)
        before = self.out
        self.out = []
        self.body(definition.body)
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

    # ------------------------------------------------------------------------------------------- places

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

    # ---------------------------------------------------------------------------------------- variables

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
            if any(name in pending for pending in self._loop_names):
                return Const(0, type="int64")
            raise self.wrong(f"variable {name!r} is used before it is assigned")
        value = lookup(scope.function, name)
        if value is MISSING:
            raise self.wrong(f"name {name!r} is not defined")
        self.captured.append((scope.function, name, value.copy() if isinstance(value, np.ndarray) else value))
        return Static(value)

    def _bind(self, name: str, value: Value) -> Value:
        """Give a source variable a value; emits the assignment it takes."""
        if isinstance(value, TupleValue):
            return TupleValue(tuple(self._bind(f"{name}.{i}", item) for i, item in enumerate(value.items)))
        if isinstance(value, Static):
            constant = to_expression(value)
            if constant is None or isinstance(constant.type, ArrayType):
                return value
            value = constant
        if isinstance(value.type, ArrayType) and isinstance(value, Var) and value.name in self._fixed_arrays():
            return value
        target = self.storage(name, value.type)
        if not (isinstance(value, Var) and value.name == target):
            self.out.append(Assign(target, value))
        return Var(target, type=value.type)

    def _fixed_arrays(self) -> set[str]:
        return {allocation.name for allocation in self.allocations.values()}

    def convert(self, value: Expr, kind: str) -> Expr:
        """A scalar converted to a type."""
        if value.type == kind:
            return value
        if isinstance(value.type, ArrayType):
            raise self.wrong(f"an array is used where a {kind} is needed")
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

    # -------------------------------------------------------------------------------------------- joins

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
                return TupleValue(
                    tuple(
                        self._join_name(f"{name}.{i}", [(value.items[i], statements) for value, statements in tuples])
                        for i in range(len(tuples[0][0].items))
                    )
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

    # --------------------------------------------------------------------------------------- statements

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
            return TupleValue(tuple(self._settled(item) for item in value.items))
        if isinstance(value, Expr) and not isinstance(value, Const):
            return self.temporary(value)
        return value

    def _assign_to(self, target: ast.expr, value: Value) -> None:
        assert self.environment is not None
        if isinstance(target, ast.Name):
            self.environment[target.id] = self._bind(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            items = self.unpack(value, len(target.elts))
            for part, item in zip(target.elts, items, strict=True):
                self._assign_to(part, item)
        elif isinstance(target, ast.Subscript):
            array, index = self.element(target)
            self._store(array, index, value)
        else:
            raise self.unsupported(f"assignment to {ast.unparse(target)}")

    def _store(self, array: Expr, index: tuple[Expr, ...], value: Value) -> None:
        assert isinstance(array.type, ArrayType)
        expression = to_expression(value)
        if expression is None or isinstance(expression.type, ArrayType):
            raise self.wrong("only a scalar can be stored in an array element")
        kind = self.typed(numba_types.setitem, array.type.dtype, str(expression.type))
        self.out.append(Store(array, index, self.convert(expression, kind), self.place()))

    def _s_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign_to(node.target, self.value(node.value))

    def _s_augassign(self, node: ast.AugAssign) -> None:
        operator = BINARY[type(node.op)]
        if isinstance(node.target, ast.Name):
            left = self.read_name(node.target.id)
            self._assign_to(node.target, self.arithmetic(operator, left, self.value(node.value), inplace=True))
        elif isinstance(node.target, ast.Subscript):
            array, index = self.element(node.target)
            assert isinstance(array.type, ArrayType)
            index = tuple(self.temporary(i) for i in index)
            old = self.temporary(Load(array, index, self.place(), type=array.type.dtype))
            self._store(array, index, self.arithmetic(operator, old, self.value(node.value), inplace=True))
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
        self.out.append(Assert(Const(False, type="bool"), what, self.place()))
        self.out.append(Break("kernel"))
        self.environment = None

    def _s_assert(self, node: ast.Assert) -> None:
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            condition = Const(condition, type="bool")
        text = ast.unparse(node.test)
        if isinstance(node.msg, ast.Constant):
            text = f"{text}: {node.msg.value!s}"
        self.out.append(Assert(condition, text, self.place()))

    def _s_if(self, node: ast.If) -> None:
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            self.body(node.body if condition else node.orelse)
            return
        assert self.environment is not None
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
        self.out.append(If(condition, sides[0], sides[1]))

    # -------------------------------------------------------------------------------------------- loops

    def _s_while(self, node: ast.While) -> None:
        place = self.place()

        def make(label: str) -> tuple[Loop, Environment | None]:
            before = self.out
            self.out = []
            condition = self.condition(node.test)
            test, self.out = self.out, before
            if condition is False:
                return Loop(label, Const(False, type="bool"), [], [], place), None
            head = None if condition is True else condition
            body = test
            if test and head is not None:
                test.append(If(head, [], [Break(label)]))
                head = None
            leaving = None if condition is True else dict(self.environment or {})
            inner = self._loop_body(node.body, label, [])
            return Loop(label, head, body + inner, [], place), leaving

        self._loop(node, node.orelse, make)

    def _s_for(self, node: ast.For) -> None:
        items = self.iterable(node.iter)
        if isinstance(items, TupleValue):
            self._unrolled(node, items)
            return
        if isinstance(items, Expr):
            self._over_array(node, items)
            return
        start, stop, step, kind = items
        self._counted(node, start, stop, step, kind, lambda counter: counter)

    def _over_array(self, node: ast.For, array: Expr) -> None:
        assert isinstance(array.type, ArrayType)
        if array.type.ndim != 1:
            raise self.unsupported("iteration over an array of more than one dimension")
        dtype, place = array.type.dtype, self.place()
        zero, one = Const(0, type="int64"), Const(1, type="int64")
        length = Dim(array, 0, type="int64")
        self._counted(node, zero, length, one, "int64", lambda counter: Load(array, (counter,), place, type=dtype))

    def _counted(
        self, node: ast.For, start: Expr, stop: Expr, step: Expr, kind: str, item: Callable[[Expr], Expr]
    ) -> None:
        place = self.place()
        counter = Var(self.fresh("i"), type=kind)
        self.types[counter.name] = kind
        stop, step = self.temporary(stop), self.temporary(step)
        self.out.append(Assign(counter.name, start))
        if isinstance(step, Const):
            if step.value == 0:
                raise self.wrong("range() step must not be zero")
            condition: Expr = Compare("<" if step.value > 0 else ">", counter, stop, type="bool")
        else:
            zero = Const(0, type=kind)
            up = Binary(
                "and", Compare(">", step, zero, type="bool"), Compare("<", counter, stop, type="bool"), type="bool"
            )
            down = Binary(
                "and", Compare("<", step, zero, type="bool"), Compare(">", counter, stop, type="bool"), type="bool"
            )
            condition = Binary("or", up, down, type="bool")
        advance: list[Stmt] = [Assign(counter.name, Binary("+", counter, step, type=kind))]

        def make(label: str) -> tuple[Loop, Environment | None]:
            leaving = dict(self.environment or {})
            first = [(node.target, lambda: item(counter))]
            body = self._loop_body(node.body, label, first)
            return Loop(label, condition, body, advance, place), leaving

        self._loop(node, node.orelse, make)

    def _loop_body(
        self, statements: list[ast.stmt], label: str, first: Sequence[tuple[ast.expr, Callable[[], Value]]]
    ) -> list[Stmt]:
        """The body of a loop, a block of its own if it contains ``continue``."""
        before = self.out
        self.out = []
        for target, value in first:
            self._assign_to(target, value())
        self.body(statements)
        body, self.out = self.out, before
        _, skip, _, continues = self.scopes[-1].loops[-1]
        if continues:
            if self.environment is not None:
                continues.append(Exit(self.environment, body))
            self.environment = self.join(continues)
            return [Block(skip, body)]
        return body

    def _loop(
        self,
        node: ast.For | ast.While,
        otherwise: list[ast.stmt],
        make: Callable[[str], tuple[Loop, Environment | None]],
    ) -> None:
        """Translate a loop, again with wider types until those at its head are those that come back."""
        assert self.environment is not None
        scope = self.scopes[-1]
        changing = assigned_names(node)
        entry = dict(self.environment)
        wanted: dict[str, Type] = {}
        outer, loop_names = self.out, self._loop_names
        for _ in range(16):
            self.out = []
            label, skip = self.fresh("loop"), self.fresh("next")
            breaks: list[Exit] = []
            scope.loops.append((label, skip, breaks, []))
            self._loop_names = [*loop_names, changing]
            self.environment = self._head(entry, changing, wanted)
            head = dict(self.environment)
            loop, leaving = make(label)
            scope.loops.pop()
            back = self.environment
            if not self._widen(head, back, breaks, wanted, changing):
                break
        self._loop_names = loop_names
        preparation = self.out
        self.out = outer
        self.out.extend(preparation)
        if back is not None:
            self._return_to_head(head, back, loop)
        end_label = None
        if otherwise:
            end_label = self.fresh("end")
            for each in breaks:
                last = each.statements[-1]
                assert isinstance(last, Break)
                last.label = end_label
        after: list[Exit] = []
        if leaving is not None:
            for name in changing:
                if back is not None and name not in leaving and name in back:
                    leaving[name] = back[name]
            after.append(Exit(leaving, []))
        if end_label is not None:
            inner = [loop]
            self.out, saved = inner, self.out  # type: ignore[assignment]
            self.environment = leaving
            if leaving is not None:
                self.body(otherwise)
                after = [Exit(self.environment, self.out)] if self.environment is not None else []
            self.out = saved
            self.environment = self.join(after + breaks)
            self.out.append(Block(end_label, inner))  # type: ignore[arg-type]
            return
        self.environment = self.join(after + breaks)
        self.out.append(loop)

    def _head(self, entry: Environment, changing: set[str], wanted: dict[str, Type]) -> Environment:
        """Environment at a loop's head: variables that the loop changes live in storage of the wanted type."""
        head = dict(entry)
        for name in changing:
            if name in head:
                head[name] = self._to_storage(name, head[name], wanted)
            elif name in wanted:
                head[name] = Var(self.storage(name, wanted[name]), type=wanted[name])
        return head

    def _to_storage(self, name: str, value: Value, wanted: dict[str, Type]) -> Value:
        if isinstance(value, TupleValue):
            return TupleValue(
                tuple(self._to_storage(f"{name}.{i}", item, wanted) for i, item in enumerate(value.items))
            )
        expression = to_expression(value)
        if expression is None:
            return value
        kind = wanted.get(name, expression.type)
        target = self.storage(name, kind)
        if not (isinstance(expression, Var) and expression.name == target):
            converted = expression if isinstance(kind, ArrayType) else self.convert(expression, str(kind))
            self.out.append(Assign(target, converted))
        return Var(target, type=kind)

    def _widen(
        self,
        head: Environment,
        back: Environment | None,
        breaks: list[Exit],
        wanted: dict[str, Type],
        changing: set[str],
    ) -> bool:
        """Note the types that come back to the head; True if the loop must be translated again."""
        again = False

        def visit(name: str, at_head: Value | None, coming: Value) -> None:
            nonlocal again
            if isinstance(coming, TupleValue):
                parts = at_head.items if isinstance(at_head, TupleValue) else (None,) * len(coming.items)
                for i, (a, b) in enumerate(zip(parts, coming.items, strict=False)):
                    visit(f"{name}.{i}", a, b)
                return
            new = to_expression(coming)
            if new is None:
                return
            if at_head is None:
                if name in self.incomplete and name not in wanted:
                    wanted[name] = new.type
                    again = True
                return
            old = to_expression(at_head)
            if old is None or old.type == new.type:
                return
            if isinstance(old.type, ArrayType) or isinstance(new.type, ArrayType):
                raise self.wrong(f"variable {name!r} is {old.type} before the loop and {new.type} in it")
            kind = numba_types.unify(str(old.type), str(new.type))
            if kind != old.type:
                wanted[name] = kind
                again = True

        for environment in ([back] if back is not None else []) + [e.environment for e in breaks]:
            for name in changing:
                if name in environment:
                    visit(name, head.get(name), environment[name])
        return again

    def _return_to_head(self, head: Environment, back: Environment, loop: Loop) -> None:
        """Conversions at the end of a trip, back to what the head expects."""

        def visit(expected: Value, coming: Value) -> None:
            if isinstance(expected, TupleValue) and isinstance(coming, TupleValue):
                for a, b in zip(expected.items, coming.items, strict=True):
                    visit(a, b)
                return
            value = to_expression(coming)
            if not isinstance(expected, Var) or value is None or value == expected:
                return
            converted = value if isinstance(expected.type, ArrayType) else self.convert(value, str(expected.type))
            loop.body.append(Assign(expected.name, converted))

        for name, expected in head.items():
            if name in back:
                visit(expected, back[name])

    def _unrolled(self, node: ast.For, items: TupleValue) -> None:
        """A loop over a tuple: one copy of the body per item."""
        scope = self.scopes[-1]
        label = self.fresh("loop")
        breaks: list[Exit] = []
        before = self.out
        self.out = []
        for item in items.items:
            if self.environment is None:
                break
            skip = self.fresh("next")
            scope.loops.append((label, skip, breaks, []))
            body = self._loop_body(node.body, label, [(node.target, lambda item=item: item)])  # type: ignore[misc]
            scope.loops.pop()
            self.out.extend(body)
        if self.environment is not None and node.orelse:
            self.body(node.orelse)
        body, self.out = self.out, before
        if breaks:
            if self.environment is not None:
                breaks.append(Exit(self.environment, body))
            self.environment = self.join(breaks)
            self.out.append(Block(label, body))
        else:
            self.out.extend(body)

    def _s_break(self, node: ast.Break) -> None:
        label, _, breaks, _ = self.scopes[-1].loops[-1]
        self._jump(label, breaks)

    def _s_continue(self, node: ast.Continue) -> None:
        _, skip, _, continues = self.scopes[-1].loops[-1]
        self._jump(skip, continues)

    def _jump(self, label: str, exits: list[Exit]) -> None:
        assert self.environment is not None
        self.out.append(Break(label))
        exits.append(Exit(self.environment, self.out))
        self.environment = None


@dataclass(frozen=True)
class Conflict:
    """A name that stands for different things on two paths; an error where it is used."""

    name: str


__all__ = ["Translation", "translate"]
