"""C++ statements: branches, loops, switches, returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from refsim.dialect import Assign, Block, Break, Const, Expr, If, Loop, Stmt, walk_statements
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.assembly import translate as translate_assembly
from refsim.frontends.cuda_cpp.core import Jump
from refsim.frontends.cuda_cpp.declarations import Declarations
from refsim.frontends.cuda_cpp.tree import Node


@dataclass
class Segment:
    """The statements of a switch that follow one group of labels."""

    values: list[int | None] = field(default_factory=list)
    statements: list[Node] = field(default_factory=list)


class Statements(Declarations):
    """Statements of a translation."""

    def statement(self, node: Node) -> None:
        """Translate one statement."""
        outer, self.current = self.current, node
        self._statement(node)
        self.current = outer

    def _statement(self, node: Node) -> None:
        handler: Callable[[Node], None] | None = getattr(self, f"_s_{node.kind.lower()}", None)
        if handler is not None:
            handler(node)
        elif node.kind in ("GotoStmt", "LabelStmt", "IndirectGotoStmt"):
            raise self.unsupported("goto is not supported: use loops, break and return", node)
        elif node.kind.endswith("Stmt"):
            raise self.unsupported(f"statement {node.kind.removesuffix('Stmt')} is not supported", node)
        elif node.kind:
            self.discard(node)

    def body(self, node: Node) -> list[Stmt]:
        """Statements of a nested statement."""
        return self.aside(lambda: self.statement(node))[0]

    def _s_compoundstmt(self, node: Node) -> None:
        with self.scope():
            for child in node.inner:
                self.statement(child)

    def _s_declstmt(self, node: Node) -> None:
        for child in node.inner:
            self.declare(child)

    def _s_nullstmt(self, node: Node) -> None:
        pass

    def _s_attributedstmt(self, node: Node) -> None:
        self.statement(node.inner[-1])

    def _s_returnstmt(self, node: Node) -> None:
        self.give_back(node)

    def _s_gccasmstmt(self, node: Node) -> None:
        translate_assembly(self, node)

    def _s_ifstmt(self, node: Node) -> None:
        with self.scope():
            self._if(node, list(node.inner))

    def _if(self, node: Node, parts: list[Node]) -> None:
        if node.get("hasInit"):
            self.statement(parts.pop(0))
        if node.get("hasVar"):
            self.statement(parts.pop(0))
        condition = self.condition(parts[0])
        if isinstance(condition, Const):
            chosen = 1 if condition.value else 2
            if chosen < len(parts):
                self.statement(parts[chosen])
            return
        then = self.body(parts[1])
        otherwise = self.body(parts[2]) if len(parts) > 2 else []
        self.branch(condition, then, otherwise)

    # ---------------------------------------------------------------------------------------------- loops

    def _s_forstmt(self, node: Node) -> None:
        initial, variable, condition, step, body = node.inner
        with self.scope():
            if initial.kind:
                self.statement(initial)
            self._loop(node, variable, condition, step, body)

    def _s_whilestmt(self, node: Node) -> None:
        parts = list(node.inner)
        variable = parts.pop(0) if node.get("hasVar") else None
        self._loop(node, variable, parts[0], None, parts[1])

    def _loop(self, node: Node, variable: Node | None, condition: Node, step: Node | None, body: Node) -> None:
        label, skip = self.fresh("loop"), self.fresh("next")
        test, head = self.aside(lambda: self._test(variable, condition))
        if isinstance(head, Const) and not test:
            if not head.value:
                return
            head = None
        if head is not None and test:
            test.append(If(head, [], [Break(label)]))
            head = None
        inner = self._loop_body(body, label, skip)
        advance = self.aside(lambda: self.discard(step))[0] if step is not None and step.kind else []
        self.out.append(Loop(label, head, [*test, *inner], advance, self.place(node)))

    def _test(self, variable: Node | None, condition: Node) -> Expr | None:
        if variable is not None and variable.kind:
            with self.scope() as scope:
                self.statement(variable)
                if scope.owned:
                    raise self.unsupported("a condition variable with a destructor that does something", variable)
        return self.condition(condition) if condition.kind else None

    def _loop_body(self, body: Node, label: str, skip: str, outside: int | None = None) -> list[Stmt]:
        frame = self.frames[-1]
        depth = len(frame.scopes)
        frame.jumps.append(Jump(label, skip, depth if outside is None else outside, depth))
        inner = self.body(body)
        frame.jumps.pop()
        return [Block(skip, inner)] if breaks_to(inner, skip) else inner

    def _s_dostmt(self, node: Node) -> None:
        body, condition = node.inner
        label, skip = self.fresh("loop"), self.fresh("next")
        inner = self._loop_body(body, label, skip)
        test, again = self.aside(lambda: self.condition(condition))
        if isinstance(again, Const) and not again.value and not breaks_to(inner, label):
            self.out.extend(inner)
            return
        ending: list[Stmt] = [*test]
        if isinstance(again, Const):
            ending += [] if again.value else [Break(label)]
        else:
            ending.append(If(again, [], [Break(label)]))
        self.out.append(Loop(label, None, [*inner, *ending], [], self.place(node)))

    def _s_cxxforrangestmt(self, node: Node) -> None:
        with self.scope():
            for part in node.inner[:4]:
                if part.kind:
                    self.statement(part)
            self._range_loop(node, *node.inner[4:])

    def _range_loop(self, node: Node, condition: Node, step: Node, variable: Node, body: Node) -> None:
        label, skip = self.fresh("loop"), self.fresh("next")
        test, head = self.aside(lambda: self.condition(condition))
        if test:
            test.append(If(head, [], [Break(label)]))
            head = None
        inner, _ = self.aside(lambda: self._with_variable(variable, body, label, skip))
        advance = self.aside(lambda: self.discard(step))[0]
        self.out.append(Loop(label, head, [*test, *inner], advance, self.place(node)))

    def _with_variable(self, variable: Node, body: Node, label: str, skip: str) -> None:
        """One pass of a range-for loop, whose variable lives that long."""
        outside = len(self.frames[-1].scopes)
        with self.scope():
            self.statement(variable)
            self.out.extend(self._loop_body(body, label, skip, outside))

    def _s_breakstmt(self, node: Node) -> None:
        jump = self.frames[-1].jumps[-1]
        self.leave(jump.outside)
        self.out.append(Break(jump.label))

    def _s_continuestmt(self, node: Node) -> None:
        jump = next(jump for jump in reversed(self.frames[-1].jumps) if jump.skip)
        self.leave(jump.inside)
        self.out.append(Break(jump.skip))

    # -------------------------------------------------------------------------------------------- switch

    def _s_switchstmt(self, node: Node) -> None:
        with self.scope():
            self._switch(node, list(node.inner))

    def _switch(self, node: Node, parts: list[Node]) -> None:
        if node.get("hasInit"):
            self.statement(parts.pop(0))
        if node.get("hasVar"):
            self.statement(parts.pop(0))
        selector = self.temporary(self.number(parts[0]))
        segments = self._segments(parts[1])
        label = self.fresh("switch")
        frame = self.frames[-1]
        depth = len(frame.scopes)
        frame.jumps.append(Jump(label, "", depth, depth))
        bodies = [self.aside(lambda part=part: self._all(part.statements))[0] for part in segments]  # type: ignore[misc]
        frame.jumps.pop()
        conditions = self._conditions(segments, selector)
        inner = self._chain(bodies, conditions, label)
        self.out.extend([Block(label, inner)] if breaks_to(inner, label) else inner)

    def _all(self, nodes: list[Node]) -> None:
        with self.scope() as scope:
            for node in nodes:
                self.statement(node)
            if scope.owned:
                raise self.unsupported("a variable with a destructor directly below a case label: use braces", nodes[0])

    def _segments(self, body: Node) -> list[Segment]:
        segments: list[Segment] = []
        for child in body.inner if body.kind == "CompoundStmt" else [body]:
            if child.kind in ("CaseStmt", "DefaultStmt"):
                segments.append(Segment())
                while child.kind in ("CaseStmt", "DefaultStmt"):
                    segments[-1].values.append(self._case_value(child))
                    child = child.inner[-1]
            if not segments:
                if child.kind == "DeclStmt":
                    self.statement(child)
                    continue
                raise self.unsupported("a statement before the first case of a switch", child)
            segments[-1].statements.append(child)
        return segments

    def _case_value(self, node: Node) -> int | None:
        if node.kind == "DefaultStmt":
            return None
        if node.get("isGNURange"):
            raise self.unsupported("a range of case values is not supported", node)
        value = self.number(node.inner[0])
        if not isinstance(value, Const):
            raise self.unsupported("a case value that is not known", node)
        return int(value.value)

    def _s_casestmt(self, node: Node) -> None:
        raise self.unsupported("a case label inside another statement of a switch is not supported", node)

    _s_defaultstmt = _s_casestmt

    def _conditions(self, segments: list[Segment], selector: Expr) -> list[Expr]:
        """When each group of labels is jumped to; default is where no other label fits."""

        def fits(values: list[int]) -> Expr:
            result: Expr = Const(False, type="bool")
            for value in values:
                test = folding.compare("==", selector, folding.integer(value, str(selector.type)))
                result = folding.binary("or", result, test)
            return result

        named = [[value for value in segment.values if value is not None] for segment in segments]
        result = []
        for number, segment in enumerate(segments):
            if None in segment.values:
                others = [value for i, values in enumerate(named) if i != number for value in values]
                result.append(folding.not_(fits(others)))
            else:
                result.append(fits(named[number]))
        return result

    def _chain(self, bodies: list[list[Stmt]], conditions: list[Expr], label: str) -> list[Stmt]:
        """Segments that do not fall through are an if-else chain; others remember that they were entered."""
        falls = any(not _ends_in_jump(body) for body in bodies[:-1])
        if not falls:
            chain: list[Stmt] = []
            for body, condition in reversed(list(zip(bodies, conditions))):
                trimmed = body[:-1] if body and isinstance(body[-1], Break) and body[-1].label == label else body
                if isinstance(condition, Const):
                    chain = trimmed if condition.value else chain
                else:
                    chain = [If(condition, trimmed, chain)]
            return chain
        active = self.variable("entered@", "bool")
        result: list[Stmt] = [Assign(active.name, Const(False, type="bool"))]
        for body, condition in zip(bodies, conditions):
            result.append(Assign(active.name, folding.binary("or", active, condition)))
            result.append(If(active, body, []))
        return result


def breaks_to(body: list[Stmt], label: str) -> bool:
    """True if a statement list jumps to a label."""
    return any(isinstance(statement, Break) and statement.label == label for statement in walk_statements(body))


def _ends_in_jump(body: list[Stmt]) -> bool:
    return bool(body) and isinstance(body[-1], Break)
