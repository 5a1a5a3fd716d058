"""Numba CUDA loops to the kernel dialect: translated until the types at their head are stable."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from refsim.dialect import (
    ArrayType,
    Assign,
    Binary,
    Block,
    Break,
    Compare,
    Const,
    Expr,
    If,
    Loop,
    Stmt,
    Type,
    Var,
)
from refsim.frontends import numba_types
from refsim.frontends.numba_scopes import Conflict, Exit
from refsim.frontends.numba_statements import Statements
from refsim.frontends.numba_values import (
    Environment,
    Iteration,
    Static,
    TupleValue,
    Value,
    assigned_names,
    to_expression,
)


class Loops(Statements):
    """The loop part of the translator."""

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
        if isinstance(items, Iteration):
            zero, one = Const(0, type="int64"), Const(1, type="int64")
            self._counted(node, zero, items.length, one, "int64", items.item)
            return
        start, stop, step, kind = items
        self._counted(node, start, stop, step, kind, lambda counter: counter)

    def _counted(
        self, node: ast.For, start: Expr, stop: Expr, step: Expr, kind: str, item: Callable[[Expr], Value]
    ) -> None:
        place = self.place()
        counter = Var(self.fresh("i"), type=kind)
        self.types[counter.name] = kind
        stop, step = self.temporary(stop), self.temporary(step)
        self.out.append(Assign(counter.name, start, line=place))
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
        advance: list[Stmt] = [Assign(counter.name, Binary("+", counter, step, type=kind), line=place)]

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
        wanted: dict[str, Type | None] = {}
        outer, loop_names = self.out, self.loop_names
        for _ in range(16):
            self.out = []
            label, skip = self.fresh("loop"), self.fresh("next")
            breaks: list[Exit] = []
            scope.loops.append((label, skip, breaks, []))
            self.loop_names = [*loop_names, changing]
            self.environment = self._head(entry, changing, wanted)
            head = dict(self.environment)
            loop, leaving = make(label)
            scope.loops.pop()
            back = self.environment
            if not self._widen(head, back, breaks, wanted, changing):
                break
        self.loop_names = loop_names
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

    def _head(self, entry: Environment, changing: set[str], wanted: dict[str, Type | None]) -> Environment:
        """Environment at a loop's head: variables that the loop changes live in storage of the wanted type."""
        head = dict(entry)
        for name in changing:
            if name in wanted and wanted[name] is None:
                head[name] = Static(Conflict(name))
            elif name in head:
                head[name] = self._to_storage(name, head[name], wanted)
            elif name in wanted:
                kind = wanted[name] or "int64"
                head[name] = Var(self.storage(name, kind), type=kind)
        return head

    def _to_storage(self, name: str, value: Value, wanted: dict[str, Type | None]) -> Value:
        if isinstance(value, TupleValue):
            return value.having(self._to_storage(f"{name}.{i}", item, wanted) for i, item in enumerate(value.items))
        expression = to_expression(value)
        if expression is None:
            return value
        kind = wanted.get(name) or expression.type
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
        wanted: dict[str, Type | None],
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
                wanted[name.split(".")[0]] = None  # no type: only an error if the next trip reads it
                again = True
                return
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
