"""Calls: functions are inlined, by their arguments' values and places."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from refsim.dialect import Block, Break
from refsim.frontends.cuda_cpp.core import Frame
from refsim.frontends.cuda_cpp.dispatch import Dispatch
from refsim.frontends.cuda_cpp.intrinsics import Call, find
from refsim.frontends.cuda_cpp.tree import FUNCTIONS, Node, Shape
from refsim.frontends.cuda_cpp.types import Array, CType, Function, Pointer, Reference, Void
from refsim.frontends.cuda_cpp.values import FunctionName, InMemory, InObject, LValue, Value

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations

DEEPEST = 40


class Calls(Dispatch):
    """Calls of a translation."""

    # ---------------------------------------------------------------------------------------------- calls

    def call(self, node: Node) -> Value | LValue:
        """Value of a call, or the place that it returns a reference to."""
        if node.kind == "CXXMemberCallExpr":
            return self._member_call(node)
        callee = node.inner[0]
        while callee.kind in ("ParenExpr", "ImplicitCastExpr", "ExprWithCleanups"):
            callee = callee.inner[0]
        arguments = node.inner[1:]
        if callee.kind == "MemberExpr":
            found = self.tree.declaration(str(callee.get("referencedMemberDecl")))
            if found is None:
                raise self.unsupported(f"call of {callee.name!r}", node)
            if found.kind in FUNCTIONS:
                return self.call_function(found, None, arguments, node)
        if node.kind == "CXXOperatorCallExpr":
            self._know_closure(arguments[0])
        value = self.rvalue(callee)
        if not isinstance(value, FunctionName):
            return self.call_pointer(value, node, arguments)
        function = value.node
        is_method = function.kind == "CXXMethodDecl" and function.get("storageClass") != "static"
        if node.kind == "CXXOperatorCallExpr" and is_method:
            return self._operator_call(function, arguments, node)
        return self.call_function(function, None, arguments, node)

    def _know_closure(self, node: Node) -> None:
        """Make the call operator of a lambda known that is called where it is written."""
        while node.kind in ("MaterializeTemporaryExpr", "ParenExpr", "ImplicitCastExpr"):
            node = node.inner[0]
        if node.kind == "LambdaExpr":
            self.tree.add_type(node.inner[0])
            self.tree.add_function(node.inner[0])

    def _operator_call(self, function: Node, arguments: list[Node], node: Node) -> Value | LValue:
        if function.name == "operator=" and self.copies(function):
            source, target = self.ordered(lambda: self.rvalue(arguments[1]), lambda: self.lvalue(arguments[0]))
            place: LValue = target if self.unused is node else self.frozen(target)
            self.store(place, source, node)
            return place
        this = self.lvalue(arguments[0])
        return self.call_function(function, this, arguments[1:], node)

    def copies(self, function: Node) -> bool:
        """True for an assignment operator or constructor that copies its argument member by member."""
        if not (function.get("isImplicit") or function.get("explicitlyDefaulted")):
            return False
        record = function.parent
        data = (record.get("definitionData") or {}) if record is not None else {}
        return bool(data.get("isTriviallyCopyable")) or not function.has("CompoundStmt")

    def _member_call(self, node: Node) -> Value | LValue:
        callee = node.inner[0]
        while callee.kind == "ParenExpr":
            callee = callee.inner[0]
        if callee.kind != "MemberExpr":
            raise self.unsupported("a call through a pointer to member is not supported", node)
        self._know_closure(callee.inner[0])
        function = self.tree.declaration(str(callee.get("referencedMemberDecl")))
        if function is None:
            raise self.unsupported(f"member function {callee.name!r} is not known", node)
        operand = callee.inner[0]
        if callee.get("isArrow"):
            kind = self.type_of(operand)
            assert isinstance(kind, Pointer)
            this = self.dereference(self.rvalue(operand), kind.pointee, node)
        else:
            this = self.lvalue(operand)
        if function.name.startswith("~"):
            if self.kinds.is_virtual(function):
                raise self.unsupported("an explicit call of a virtual destructor is not supported", node)
            self.destroy(self.frozen(this), this.type)
            return None
        if self.is_virtual_call(function, callee):
            return self.virtual_call(function, this, node.inner[1:], node)
        return self.call_function(function, this, node.inner[1:], node)

    def call_function(self, function: Node, this: LValue | None, arguments: list[Node], node: Node) -> Value | LValue:
        """Call a function: an intrinsic by its name, any other by inlining its body."""
        definition = self.tree.definition(function)
        if definition is None:
            handler = find(function.name)
            if handler is None:
                if function.name in ("malloc", "free"):
                    raise self.unsupported(f"{function.name}(): memory allocated by a kernel is not supported", node)
                if function.name == "operator=" and this is not None:
                    self.store(this, self.rvalue(arguments[0]), node)
                    return this
                raise self.unsupported(f"function {function.name}() has no body and is not a known intrinsic", node)
            actual = self._defaults(function, arguments, node)
            values = self.ordered(*[self._argument_action(argument, False) for argument in actual])
            return handler(cast("Declarations", self), Call(node, function.name, values, actual, self.type_of(node)))
        return self.inline(definition, this, arguments, node)

    def call_values(
        self, function: Node, this: LValue | None, values: list[Any], arguments: list[Node], node: Node
    ) -> Value | LValue:
        """Call a function with arguments that were evaluated."""
        definition = self.tree.definition(function)
        if definition is not None:
            return self.inline(definition, this, arguments, node, values)
        handler = find(function.name)
        if handler is None:
            raise self.unsupported(f"function {function.name}() has no body and is not a known intrinsic", node)
        return handler(cast("Declarations", self), Call(node, function.name, values, arguments, self.type_of(node)))

    def _defaults(self, function: Node, arguments: list[Node], node: Node) -> list[Node]:
        """Arguments, with the declared default in place of one that is not given."""
        if not any(argument.kind == "CXXDefaultArgExpr" for argument in arguments):
            return arguments
        parameters = function.children("ParmVarDecl")
        result = []
        for number, argument in enumerate(arguments):
            if argument.kind == "CXXDefaultArgExpr":
                operands = argument.inner or self._declared_default(function, parameters[number], number)
                if not operands:
                    raise self.unsupported(f"default argument {number + 1} of {function.name}()", node)
                argument = operands[-1]
            result.append(argument)
        return result

    def _declared_default(self, function: Node, parameter: Node, number: int) -> list[Node]:
        """Default of a parameter, from the template's pattern if the instantiation does not repeat it."""
        found = [child for child in parameter.inner if not child.kind.endswith("Attr")]
        if found or function.parent is None:
            return found
        for other in (*self.tree.redeclarations(function), *function.parent.children(function.kind)):
            same = other.children("ParmVarDecl")
            if number < len(same):
                found = [child for child in same[number].inner if not child.kind.endswith("Attr")]
                if found and "dependent" not in found[-1].type_text:
                    return found
        return []

    def _argument_action(self, argument: Node, by_reference: bool) -> Callable[[], Any]:
        if by_reference:
            return lambda: self.lvalue(argument)
        return lambda: self.rvalue(argument)

    # ------------------------------------------------------------------------------------------- inlining

    def inline(
        self, function: Node, this: LValue | None, arguments: list[Node], node: Node, values: list[Any] | None = None
    ) -> Value | LValue:
        """The body of a function in place of its call; `values` are the arguments where they were evaluated."""
        # a recursion ends if its conditions are known, as in a constexpr function of a constant
        if sum(frame.node.id == function.id for frame in self.frames) > DEEPEST:
            raise self.unsupported(
                f"recursive function {function.name}(): a recursion that only the data ends is not supported", node
            )
        parameters = function.children("ParmVarDecl")
        if len(arguments) != len(parameters):
            raise self.unsupported(f"call of {function.name}() with a variable number of arguments", node)
        if values is None:
            actual = self._defaults(function, arguments, node)
            values = self.ordered(*[self._argument_action(a, _is_reference(p)) for a, p in zip(actual, parameters)])
        self.kinds.scopes.append(function)
        try:
            if "(lambda at" in function.type_text:
                self.add_closures(function)
            signature = self.type_of(function)
            kinds = [self.type_of(parameter) for parameter in parameters]
        finally:
            self.kinds.scopes.pop()
        assert isinstance(signature, Function)
        frame = Frame(function, self.place(node), signature.result, this)
        shape = self._shape(function)
        self.in_memory |= shape.addressed
        bound = [
            self._parameter(parameter, kind, value, shape, node)
            for parameter, kind, value in zip(parameters, kinds, values)
        ]
        for place, parameter in zip(bound, kinds):
            if not isinstance(parameter, Reference):
                self.own(place, node)
        return self._run(frame, parameters, bound, shape, node)

    def _parameter(self, parameter: Node, kind: CType, value: Value | LValue, shape: Shape, node: Node) -> LValue:
        if isinstance(kind, Reference):
            assert isinstance(value, (InObject, InMemory))
            place: LValue = self.frozen(value)
            return place
        assert not isinstance(value, (InObject, InMemory))
        constant = parameter.id not in shape.changed
        if isinstance(kind, Function | Array):
            raise self.unsupported("a function or array passed by value", node)
        return self.bound(value, kind, parameter.name or "argument", parameter.id, node, constant)

    def _run(
        self, frame: Frame, parameters: list[Node], bound: list[LValue], shape: Shape, node: Node
    ) -> Value | LValue:
        function = frame.node
        self.enter(frame)
        repeated = any(outer.node.id == function.id for outer in self.frames)
        variables = dict(self.variables) if repeated else self.variables
        self.variables.update({parameter.id: place for parameter, place in zip(parameters, bound)})
        self.frames.append(frame)
        self.kinds.scopes.append(function)
        outer, self.out = self.out, []
        unused, self.unused = self.unused, None
        try:
            needs_block = shape.returns > (1 if shape.ends_in_return else 0)
            if needs_block:
                frame.label = self.fresh("return")
                frame.target = self.result_place(frame.result, node)
            self.run_initialisers(function, frame.this, node)
            self.statement(function.children("CompoundStmt")[-1])
        finally:
            body, self.out = self.out, outer
            self.unused = unused
            self.kinds.scopes.pop()
            self.frames.pop()
            self.variables = variables
        if not needs_block:
            self.out.extend(body)
            return frame.tail
        self.out.append(Block(frame.label, body))
        return self.taken_result(frame.target, frame.result, node)

    def _shape(self, function: Node) -> Shape:
        if function.id not in self.tree.shapes:
            body = function.children("CompoundStmt")[-1]
            returns, changed, addressed = 0, set(), set()
            todo: list[tuple[Node, bool]] = [(body, False)]
            while todo:
                here, read = todo.pop()
                if here.kind == "ReturnStmt":
                    returns += 1
                elif here.kind == "UnaryOperator" and here.get("opcode") == "&":
                    operand = here.inner[0]
                    if operand.kind == "DeclRefExpr":
                        addressed.add((operand.get("referencedDecl") or {}).get("id", ""))
                elif here.kind == "DeclRefExpr" and not read:
                    changed.add((here.get("referencedDecl") or {}).get("id", ""))
                elif here.kind == "LambdaExpr":
                    changed.update(
                        (part.get("referencedDecl") or {}).get("id", "")
                        for part in here.walk()
                        if part.kind == "DeclRefExpr"
                    )
                    continue
                reads = here.kind == "ImplicitCastExpr" and here.get("castKind") == "LValueToRValue"
                todo.extend((child, reads) for child in here.inner)
            last = body.inner[-1].kind == "ReturnStmt" if body.inner else False
            self.tree.shapes[function.id] = Shape(returns, last, frozenset(changed), frozenset(addressed))
        return self.tree.shapes[function.id]

    def give_back(self, node: Node) -> None:
        """A return statement."""
        frame = self.frames[-1]
        operand = node.inner[0] if node.inner else None
        last = self._is_last(node, frame.node)
        if operand is not None and operand.kind:
            if isinstance(frame.result, Reference):
                value: Value | LValue = self.frozen(self.lvalue(operand))
            elif isinstance(frame.result, Void):
                self.discard(operand)
                value = None
            else:
                named = self._named_result(operand)
                value = self.rvalue(operand) if named is None else self.load(named, node)
                if named is not None:
                    self.disown(named)
            if self.owns():
                value = self.frozen(value)
            if not frame.label:
                frame.tail = value
            elif frame.target is not None:
                if isinstance(value, (InObject, InMemory)):
                    value = self.pointer_to(self.memory(value, node))
                self.store(frame.target, value, node)
        if frame.label and not last:
            self.leave(0)
            self.out.append(Break(frame.label))

    def _named_result(self, node: Node) -> LValue | None:
        """The variable that is the function's result itself, so that it is neither copied nor destroyed."""
        while node.kind in ("ExprWithCleanups", "CXXConstructExpr", "ImplicitCastExpr", "CXXBindTemporaryExpr"):
            if len(node.inner) != 1:
                return None
            node = node.inner[0]
        declared = node.get("referencedDecl") or {}
        is_result = node.kind == "DeclRefExpr" and declared.get("id") in self.results
        return self.variables.get(declared["id"]) if is_result else None

    @staticmethod
    def _is_last(node: Node, function: Node) -> bool:
        """True for a return at the very end of a function, which needs no jump. The kernel's label ends threads."""
        body = function.children("CompoundStmt")[-1]
        return bool(body.inner) and body.inner[-1] is node


def _is_reference(parameter: Node) -> bool:
    """True for a parameter passed by reference; an array's reference ends in brackets."""
    text = re.sub(r" ?(__restrict__|__restrict|const)$", "", parameter.type_text)
    while "<" in text and text != (shorter := re.sub(r"<[^<>]*>", "", text)):
        text = shorter
    return text.endswith("&") or "(&" in text
