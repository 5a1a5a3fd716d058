"""Calls: functions are inlined, constructors build objects in place, lambdas carry what they capture."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from refsim.dialect import Block, Break, PointerType
from refsim.frontends.cuda_cpp.core import Frame
from refsim.frontends.cuda_cpp.expressions import Expressions
from refsim.frontends.cuda_cpp.intrinsics import Call, find
from refsim.frontends.cuda_cpp.tree import Node, Shape
from refsim.frontends.cuda_cpp.types import Array, CType, Function, Pointer, Record, Reference, Void, split_list
from refsim.frontends.cuda_cpp.values import Aggregate, FunctionName, InMemory, InObject, LValue, Object, Value

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations

DEEPEST = 40


class Calls(Expressions):
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
            return self.call_function(found, None, arguments, node)
        value = self.rvalue(callee)
        if not isinstance(value, FunctionName):
            raise self.unsupported("a call through a function pointer is not supported", node)
        function = value.node
        is_method = function.kind == "CXXMethodDecl" and function.get("storageClass") != "static"
        if node.kind == "CXXOperatorCallExpr" and is_method:
            return self._operator_call(function, arguments, node)
        return self.call_function(function, None, arguments, node)

    def _operator_call(self, function: Node, arguments: list[Node], node: Node) -> Value | LValue:
        if function.name == "operator=" and self._copies(function):
            source, target = self.ordered(
                lambda: self.rvalue(arguments[1]), lambda: self.lvalue(arguments[0])
            )
            place: LValue = target if self.unused is node else self.frozen(target)
            self.store(place, source, node)
            return place
        this = self.lvalue(arguments[0])
        return self.call_function(function, this, arguments[1:], node)

    def _copies(self, function: Node) -> bool:
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
        function = self.tree.declaration(str(callee.get("referencedMemberDecl")))
        if function is None:
            raise self.unsupported(f"member function {callee.name!r} is not known", node)
        if function.get("virtual"):
            raise self.unsupported(f"virtual function {callee.name!r} is not supported", node)
        operand = callee.inner[0]
        if function.name.startswith("~"):
            raise self.unsupported("an explicit destructor call is not supported", node)
        if callee.get("isArrow"):
            kind = self.type_of(operand)
            assert isinstance(kind, Pointer)
            this = self.dereference(self.rvalue(operand), kind.pointee, node)
        else:
            this = self.lvalue(operand)
        return self.call_function(function, this, node.inner[1:], node)

    def call_function(self, function: Node, this: LValue | None, arguments: list[Node], node: Node) -> Value | LValue:
        """Call a function: an intrinsic by its name, any other by inlining its body."""
        definition = self.tree.definition(function)
        if definition is None:
            handler = find(function.name)
            if handler is None:
                if function.name == "operator=" and this is not None:
                    self.store(this, self.rvalue(arguments[0]), node)
                    return this
                raise self.unsupported(f"function {function.name}() has no body and is not a known intrinsic", node)
            actual = self._defaults(function, arguments, node)
            values = self.ordered(*[self._argument_action(argument, False) for argument in actual])
            return handler(cast("Declarations", self), Call(node, function.name, values, actual, self.type_of(node)))
        return self.inline(definition, this, arguments, node)

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

    def inline(self, function: Node, this: LValue | None, arguments: list[Node], node: Node) -> Value | LValue:
        """The body of a function in place of its call."""
        # a recursion ends if its conditions are known, as in a constexpr function of a constant
        if sum(frame.node.id == function.id for frame in self.frames) > DEEPEST:
            raise self.unsupported(f"recursive function {function.name}() is not supported", node)
        parameters = function.children("ParmVarDecl")
        if len(arguments) != len(parameters):
            raise self.unsupported(f"call of {function.name}() with a variable number of arguments", node)
        actual = self._defaults(function, arguments, node)
        values = self.ordered(*[self._argument_action(a, _is_reference(p)) for a, p in zip(actual, parameters)])
        self.kinds.scopes.append(function)
        try:
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
        self._enter(frame)
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
                frame.target = self._result(frame.result, node)
            self._initialisers(function, frame.this, node)
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
        if frame.target is None:
            return None
        if isinstance(frame.result, Reference):
            pointer = self.load(frame.target, node)
            return InMemory(self.expression(pointer, node), 0, frame.result.target)
        return self.load(frame.target, node)

    def _enter(self, frame: Frame) -> None:
        """What the body of a lambda sees: captured variables, and the captured ``this``."""
        record = frame.node.parent
        while record is not None and record.kind == "FunctionTemplateDecl":
            record = record.parent
        if record is None or record.id not in self.lambdas or frame.this is None:
            return
        closure, frame.this = frame.this, None
        for offset, name in self.lambdas[record.id]:
            field = next(leaf for leaf in record.children("FieldDecl") if self._field_offset(record, leaf) == offset)
            kind = self.type_of(field)
            place = self.part(closure, offset, kind)
            if isinstance(closure, InObject) and closure.offset + offset in closure.object.references:
                place = closure.object.references[closure.offset + offset]
            elif isinstance(kind, Reference):
                place = self.through_reference(place, frame.node)
            if name == "this":
                frame.this = place
            else:
                frame.captures[name] = place

    def _field_offset(self, record: Node, field: Node) -> int:
        layout = self.ask(self.kinds.layout, Record(record.id, self.kinds.record_name(record)), node=record)
        return int(layout.fields[field.id])

    def _result(self, kind: CType, node: Node) -> LValue | None:
        """Where a function that returns from several places leaves its result."""
        if isinstance(kind, Void):
            return None
        if isinstance(kind, Reference):
            pointer = self.variable("result@", PointerType(self.kinds.main_dtype(kind.target)))
            return InObject(Object(Pointer(kind.target), "", {0: pointer}), 0, Pointer(kind.target))
        return self.make(kind, "result@", f"{node.id}:result", node)

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
        if operand is not None and operand.kind:
            if isinstance(frame.result, Reference):
                value: Value | LValue = self.frozen(self.lvalue(operand))
            elif isinstance(frame.result, Void):
                self.discard(operand)
                value = None
            else:
                value = self.rvalue(operand)
            if not frame.label:
                frame.tail = value
            elif frame.target is not None:
                if isinstance(value, (InObject, InMemory)):
                    value = self.pointer_to(self.memory(value, node))
                self.store(frame.target, value, node)
        if frame.label and not self._is_last(node, frame.node):
            self.out.append(Break(frame.label))

    @staticmethod
    def _is_last(node: Node, function: Node) -> bool:
        """True for a return at the very end of a function, which needs no jump. The kernel's label ends threads."""
        body = function.children("CompoundStmt")[-1]
        return bool(body.inner) and body.inner[-1] is node

    # --------------------------------------------------------------------------------------- constructors

    def construct(self, node: Node, target: LValue | None = None) -> Value:
        """Run a constructor on an object; without one, on a temporary whose value is returned."""
        kind = self.type_of(node)
        if isinstance(kind, Array):
            if target is None:
                raise self.unsupported("an array of class objects as a value", node)
            return self._construct_array(node, kind, target)
        if not isinstance(kind, Record):
            raise self.unsupported(f"construction of {node.type_text!r}", node)
        arguments = node.inner
        constructor = self._constructor(kind, node)
        if constructor is None or self._copies(constructor):
            if len(arguments) == 1:
                value = self.rvalue(arguments[0])
                if target is not None:
                    self.store(target, value, node)
                    return None
                return value
            if constructor is None or self.tree.definition(constructor) is None or self._is_trivial_default(kind):
                zeroed = bool(node.get("zeroing")) or target is None
                value = self.zero(kind, node) if zeroed else None
                if target is not None and zeroed:
                    self.store(target, value, node)
                return value
        if node.get("zeroing") and target is not None:
            self.store(target, self.zero(kind, node), node)
        place = target if target is not None else self.make(kind, "temporary", node.id, node)
        definition = self.tree.definition(constructor)
        if definition is None:
            raise self.unsupported(f"constructor {node.get('ctorType', {}).get('qualType')} has no body", node)
        self.inline(definition, place, arguments, node)
        return self.load(place, node) if target is None else None

    def _is_trivial_default(self, kind: Record) -> bool:
        data = self.kinds.record(kind).get("definitionData") or {}
        return bool((data.get("defaultCtor") or {}).get("trivial"))

    def _construct_array(self, node: Node, kind: Array, target: LValue) -> Value:
        element = kind
        while isinstance(element.element, Array):
            element = element.element
        assert isinstance(element.element, Record)
        if self._is_trivial_default(element.element):
            return None
        constructor = self._constructor(element.element, node)
        definition = self.tree.definition(constructor) if constructor is not None else None
        if definition is None:
            raise self.unsupported(f"construction of {node.type_text!r}", node)
        size = self.kinds.bytes(element.element)
        for i in range(self.kinds.bytes(kind) // size):
            self.inline(definition, self.part(target, i * size, element.element), node.inner, node)
        return None

    def _constructor(self, kind: Record, node: Node) -> Node | None:
        """The constructor that an expression calls: that of the record with the expression's constructor type."""
        record = self.kinds.record(kind)
        text = str((node.get("ctorType") or {}).get("qualType", ""))
        found = []
        for child in record.inner:
            candidates = child.children("CXXConstructorDecl") if child.kind == "FunctionTemplateDecl" else [child]
            found += [c for c in candidates if c.kind == "CXXConstructorDecl"]
        same = [c for c in found if c.type_text.replace(" noexcept", "") == text.replace(" noexcept", "")]
        if not same and found and node.inner:
            self.kinds.scopes.append(record)
            try:
                wanted = self.read_type(text, node)
                same = [c for c in found if "type-parameter" not in c.type_text and self._has_type(c, wanted)]
            finally:
                self.kinds.scopes.pop()
        with_body = [c for c in same if self.tree.definition(c) is not None]
        if len({c.id for c in with_body}) > 1:
            raise self.unsupported(f"constructor {text} of {kind.name} is ambiguous", node)
        chosen = with_body or same
        return chosen[0] if chosen else None

    def _has_type(self, constructor: Node, wanted: CType) -> bool:
        try:
            return self.kinds.of(constructor) == wanted
        except Exception:  # a template's own pattern has no readable type
            return False

    def _initialisers(self, function: Node, this: LValue | None, node: Node) -> None:
        """Member and base initialisers of a constructor."""
        for item in function.children("CXXCtorInitializer"):
            assert this is not None
            operand = item.inner[0]
            if "anyInit" in item.data:
                self._initialise_member(this, item.get("anyInit"), operand, node)
            elif "baseInit" in item.data:
                text = item.get("baseInit")
                base = self.read_type(text.get("desugaredQualType") or text["qualType"], function)
                self.initialise(self.base_of(this, base, function), operand)
            else:
                self.initialise(this, operand)

    def _initialise_member(self, this: LValue, field: dict[str, object], operand: Node, node: Node) -> None:
        assert isinstance(this.type, Record)
        layout = self.ask(self.kinds.layout, this.type, node=node)
        offset = layout.fields.get(field["id"])
        if offset is None:
            raise self.unsupported(f"initialiser of {field.get('name')!r}", operand)
        declared = self.tree.declaration(str(field["id"]))
        assert declared is not None
        kind = self.type_of(declared)
        if isinstance(kind, Reference):
            if not isinstance(this, InObject):
                raise self.unsupported("a reference kept in memory", operand)
            this.object.references[this.offset + offset] = self.frozen(self.lvalue(operand))
            return
        self.initialise(self.part(this, offset, kind), operand)

    # -------------------------------------------------------------------------------------------- lambdas

    def _r_lambdaexpr(self, node: Node) -> Value:
        record = node.inner[0]
        self.tree.add_type(record)
        self.tree.add_function(record)
        fields = record.children("FieldDecl")
        initialisers = [child for child in node.inner[1:] if child.kind and child.kind != "CompoundStmt"]
        kind = Record(record.id, "lambda")
        layout = self.ask(self.kinds.layout, kind, node=node)
        names = self._introducer(node)
        closure = Object(kind, node.id)
        captured: list[tuple[int, str]] = []
        for number, (field, operand) in enumerate(zip(fields, initialisers)):
            offset = layout.fields[field.id]
            captured.append((offset, names.get(number) or _captured(operand)))
            self._capture(closure, offset, self.type_of(field), operand)
        self.lambdas[record.id] = captured
        return Aggregate(kind, closure.leaves, closure.references)

    def _capture(self, closure: Object, offset: int, kind: CType, operand: Node) -> None:
        inner = operand
        while inner.kind in ("ImplicitCastExpr", "ParenExpr", "UnaryOperator") and inner.inner:
            inner = inner.inner[0]
        if inner.kind == "CXXThisExpr":
            this = self.frames[-1].this
            if this is None:
                raise self.unsupported("'this' is not supported here", operand)
            closure.references[offset] = this
        elif isinstance(kind, Reference):
            closure.references[offset] = self.frozen(self.lvalue(operand))
        elif isinstance(kind, Array):
            raise self.unsupported("an array captured by copy", operand)
        else:
            value = self.rvalue(operand)
            if isinstance(value, Aggregate):
                closure.leaves.update({offset + at: self.temporary(leaf) for at, leaf in value.leaves.items()})
                closure.references.update({offset + at: bound for at, bound in value.references.items()})
            else:
                closure.leaves[offset] = self.temporary(self.expression(value, operand))

    def _introducer(self, node: Node) -> dict[int, str]:
        """Names of init-captures by position, read from the text: they are not in the tree."""
        begin, end = node.offset, node.end
        if begin is None or end is None:
            return {}
        text = self.tree.source.between(begin, end)
        inside, depth = "", 0
        for position, char in enumerate(text):
            depth += (char == "[") - (char == "]")
            if depth == 0:
                inside = text[1:position]
                break
        items = [item.strip() for item in split_list(inside) if item.strip() not in ("", "=", "&")]
        names: dict[int, str] = {}
        for number, item in enumerate(items):
            name = item.lstrip("&. ")
            for mark in ("=", "{", "("):
                if mark in name:
                    names[number] = "=" + name.split(mark)[0].strip()
                    break
        return names


def _is_reference(parameter: Node) -> bool:
    """True for a parameter passed by reference; an array's reference ends in brackets."""
    text = re.sub(r" ?(__restrict__|__restrict|const)$", "", parameter.type_text)
    while "<" in text and text != (shorter := re.sub(r"<[^<>]*>", "", text)):
        text = shorter
    return text.endswith("&") or "(&" in text


def _captured(operand: Node) -> str:
    """Id of the variable that a capture's initialiser copies or refers to."""
    for part in operand.walk():
        if part.kind == "DeclRefExpr":
            return str((part.get("referencedDecl") or {}).get("id", ""))
        if part.kind == "CXXThisExpr":
            return "this"
    return ""
