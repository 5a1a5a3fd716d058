"""Calls whose target is found at run time: virtual functions by the class of an object, function pointers by value."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from refsim.dialect import Assert, Break, Const, Expr, If, PointerType, Stmt
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.lambdas import Lambdas
from refsim.frontends.cuda_cpp.polymorphism import tag_of
from refsim.frontends.cuda_cpp.tree import FUNCTIONS, Node
from refsim.frontends.cuda_cpp.types import TABLE, CType, Function, Pointer, Record, Reference, Void
from refsim.frontends.cuda_cpp.values import InMemory, InObject, LValue, Object, Value

DEEPEST = 4


class Dispatch(Lambdas):
    """Dispatch of a translation."""

    def choose_call(
        self, tag: Expr, options: list[tuple[list[int], Callable[[], Value | LValue]]], result: CType, what: str,
        node: Node,
    ) -> Value | LValue:  # fmt: skip
        """Call the function that a number stands for, of those that it can be."""
        target = self.result_place(result, node)
        chain = self._ending(what, node)
        for tags, action in reversed(options):
            test: Expr = Const(False, type="bool")
            for one in tags:
                test = folding.binary("or", test, folding.compare("==", tag, folding.integer(one, "uint64")))
            body, _ = self.aside(lambda action=action: self._keep(action(), target, node))  # type: ignore[misc]
            chain = [If(test, body, chain)]
        self.out.extend(chain)
        return self.taken_result(target, result, node)

    def _ending(self, what: str, node: Node) -> list[Stmt]:
        """The end of threads that cannot go on, with a finding."""
        return [Assert(Const(False, type="bool"), what, self.place(node)), Break("kernel")]

    def _call_again(
        self, function: Node, this: LValue | None, values: list[Any], arguments: list[Node], node: Node
    ) -> Value | LValue:
        """Call one of the functions that a call may mean; one that is running is entered a few times at most."""
        if sum(frame.node.id == function.id for frame in self.frames) < DEEPEST:
            return self.call_values(function, this, values, arguments, node)
        what = f"{function.name}() calls itself through a pointer or virtual call more than {DEEPEST} deep"
        self.out.extend(self._ending(what, node))
        return None

    def _keep(self, value: Value | LValue, target: LValue | None, node: Node) -> None:
        if target is None or value is None:
            return
        if isinstance(value, (InObject, InMemory)):
            value = self.pointer_to(self.memory(value, node))
        self.store(target, value, node)

    def result_place(self, kind: CType, node: Node) -> LValue | None:
        """Where a call with several possible ends leaves its result."""
        if isinstance(kind, Void):
            return None
        if isinstance(kind, Reference):
            pointer = self.variable("result@", PointerType(self.kinds.main_dtype(kind.target)))
            return InObject(Object(Pointer(kind.target), "", {0: pointer}), 0, Pointer(kind.target))
        return self.make(kind, "result@", f"{node.id}:result", node)

    def taken_result(self, target: LValue | None, kind: CType, node: Node) -> Value | LValue:
        """The result that was left there."""
        if target is None:
            return None
        if isinstance(kind, Reference):
            return InMemory(self.expression(self.load(target, node), node), 0, kind.target)
        return self.load(target, node)

    def argument_values(self, signature: Function, arguments: list[Node]) -> list[Any]:
        """Arguments for any function of a type, evaluated once."""
        actions = [
            (lambda a=a: self.lvalue(a)) if isinstance(kind, Reference) else (lambda a=a: self.rvalue(a))
            for a, kind in zip(arguments, signature.parameters)
        ]  # fmt: skip
        return [self.frozen(value) for value in self.ordered(*actions)]

    # ------------------------------------------------------------------------------------ function pointers

    def call_pointer(self, value: Value, node: Node, arguments: list[Node]) -> Value | LValue:
        """Call the function that a pointer points to."""
        kind = self.type_of(node.inner[0])
        signature = kind.pointee if isinstance(kind, Pointer) else kind
        if not isinstance(signature, Function):
            raise self.unsupported("a call through something that is no function pointer", node)
        tag = self.expression(value, node)
        if isinstance(tag, Const) and tag.value in self.functions:
            return self.call_function(self.functions[tag.value], None, arguments, node)
        tag = self.temporary(tag)
        values = self.argument_values(signature, arguments)
        options: list[tuple[list[int], Callable[[], Value | LValue]]] = []
        for function in self._candidates(signature):
            options.append(([tag_of(function)], partial(self._call_again, function, None, values, arguments, node)))
        if not options:
            raise self.unsupported("a call through a function pointer that no function of the source fits", node)
        return self.choose_call(
            tag, options, signature.result, "a call through a pointer that points to no function", node
        )

    def _candidates(self, signature: Function) -> list[Node]:
        """Functions of a type of which the source takes the address somewhere."""
        found = {}
        for function in (*self.tree.addressed_functions(), *self.functions.values()):
            definition = self.tree.definition(function)
            if definition is None or function.has("CUDAGlobalAttr") or id(function) in found:
                continue
            self.kinds.scopes.append(function)
            try:
                if self.kinds.of(function) == signature:
                    found[tag_of(function)] = function
            except Exception:  # a template's own pattern has no readable type
                continue
            finally:
                self.kinds.scopes.pop()
        return list(found.values())

    # -------------------------------------------------------------------------------------------- virtual

    def virtual_call(self, function: Node, this: LValue, arguments: list[Node], node: Node) -> Value | LValue:
        """Call a virtual function of the class that an object has."""
        assert isinstance(this.type, Record)
        known = self._known_class(this)
        if known is not None:
            target, place = self._overrider(function, this, *known, node)
            return self.call_function(target, place, arguments, node)
        static = this.type
        this = self.frozen(this)
        tag = self.temporary(self.expression(self.load(self.part(this, 0, TABLE), node), node))
        signature = self._signature(function)
        values = self.argument_values(signature, arguments)
        by_target: dict[tuple[str, int], tuple[list[int], Callable[[], Value | LValue]]] = {}
        for kind, offset in self.kinds.derived_from(static):
            target, place = self._overrider(function, this, kind, offset, node)
            if target.get("pure"):
                continue
            key = (target.id, place.offset)
            if key not in by_target:
                by_target[key] = ([], partial(self._call_again, target, place, values, arguments, node))
            by_target[key][0].append(self.kinds.table_tag(kind, offset))
        what = f"virtual function {function.name}() called on something that is no object of its class"
        return self.choose_call(tag, list(by_target.values()), signature.result, what, node)

    def _signature(self, function: Node) -> Function:
        self.kinds.scopes.append(function)
        try:
            signature = self.type_of(function)
        finally:
            self.kinds.scopes.pop()
        assert isinstance(signature, Function)
        return signature

    def _known_class(self, this: LValue) -> tuple[Record, int] | None:
        """Class of an object in program variables, and where in it the place lies; None while it is being made."""
        making = ("CXXConstructorDecl", "CXXDestructorDecl")
        if not isinstance(this, InObject) or any(frame.node.kind in making for frame in self.frames):
            return None
        kind, offset = this.object.type, this.offset
        while isinstance(kind, Record):
            if (offset, this.type) in self.kinds.subobjects(kind):
                return kind, offset
            inside = [
                (part, start)
                for _, start, part in self.kinds.layout(kind).members
                if start <= offset < start + self.kinds.bytes(part)
            ]
            if not inside:
                return None
            kind, offset = inside[0][0], offset - inside[0][1]
        return None

    def _overrider(self, function: Node, this: LValue, kind: Record, offset: int, node: Node) -> tuple[Node, LValue]:
        """The function that a class has for a virtual one, and its object."""
        found = self.ask(self.kinds.overrider, kind, function, node=node)
        if found is None:
            raise self.unsupported(f"virtual function {function.name!r} of {kind.name}", node)
        target, owner, start = found
        return target, self.part(this, start - offset, owner)

    def is_virtual_call(self, function: Node, callee: Node) -> bool:
        """True for a call of a virtual function that does not name its class, as in ``Base::f()``."""
        if function.kind not in FUNCTIONS or not self.kinds.is_virtual(function):
            return False
        begin, end = callee.offset, callee.end
        text = self.tree.source.between(begin, end) if begin is not None and end is not None else ""
        return not re.search(rf"::\s*{re.escape(function.name)}\s*$", text)
