"""Declarations: local and global variables, shared and constant memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from refsim.dialect import (
    ITEM_BYTES,
    Const,
    Expr,
    Var,
)
from refsim.frontends.cuda_cpp.core import Frame, ModuleVariable
from refsim.frontends.cuda_cpp.initialisers import Initialisers, characters
from refsim.frontends.cuda_cpp.places import CONSTRUCTIONS, TRANSPARENT
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.type_names import constant_value
from refsim.frontends.cuda_cpp.types import Array, BitField, CType, Pointer, Record, Reference, Scalar, Void, pointer_to
from refsim.frontends.cuda_cpp.values import Aggregate, InMemory, InObject, LValue, Object, Value

IGNORED = frozenset(
    {
        "StaticAssertDecl", "UsingDecl", "UsingDirectiveDecl", "UsingShadowDecl", "EmptyDecl", "NamespaceAliasDecl",
        "UsingEnumDecl", "FunctionDecl", "ClassTemplateDecl", "PragmaCommentDecl", "LifetimeExtendedTemporaryDecl",
    }
)  # fmt: skip
TYPES = frozenset({"CXXRecordDecl", "TypedefDecl", "TypeAliasDecl", "EnumDecl"})
NO_VALUE = ("Attr", "Comment", "Decl", "TemplateArgument")
INDICES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
ATTRIBUTES = frozenset(
    {
        "CUDASharedAttr", "CUDAConstantAttr", "CUDADeviceAttr", "CUDAHostAttr", "AlignedAttr", "UnusedAttr", "UsedAttr",
        "HIPManagedAttr",
    }
)  # fmt: skip


class Declarations(Initialisers):
    """Declarations of a translation."""

    def declare(self, node: Node) -> None:
        """A declaration inside a function."""
        if node.kind in IGNORED:
            return
        if node.kind in TYPES:
            self.tree.add_type(node)
            if node.kind in ("CXXRecordDecl", "EnumDecl"):
                self.tree.add_function(node)
                for inner in node.inner:
                    if inner.kind in TYPES:
                        self.tree.add_type(inner)
            return
        if node.kind == "DecompositionDecl":
            bound = [child for child in node.children("BindingDecl") if child.inner]
            self.bindings.update({child.id: child.inner[-1] for child in bound})
            self._declare_variable(node)
            for child in bound:  # of a tuple: a variable for each element
                for holder in child.children("VarDecl"):
                    self._declare_variable(holder)
            return
        if node.kind != "VarDecl":
            raise self.unsupported(f"declaration {node.kind} is not supported", node)
        self._declare_variable(node)

    def _declare_variable(self, node: Node) -> None:
        self.kinds_of_attributes(node)
        if node.has("CUDASharedAttr"):
            self.variables[node.id] = self.shared(node)
            return
        initial = initialiser(node)
        if initial is not None and "(lambda" in node.type_text:
            self.add_closures(initial)
            if initial.kind not in ("InitListExpr", *CONSTRUCTIONS) and node.type_text.endswith(")"):
                # closures of one place in several instantiations have one name: the value tells which it is
                value = self.rvalue(initial)
                if isinstance(value, Aggregate):
                    self.variables[node.id] = self.bound(value, value.type, node.name, node.id, node)
                    self.own(self.variables[node.id], node)
                    return
        kind = self.type_of(node)
        storage = node.get("storageClass")
        if storage == "static" and not node.get("constexpr") and not _is_const(node):
            # it lives as long as the module, like a __device__ variable
            self.variables[node.id] = self.global_variable(node)
            return
        if storage == "extern":
            raise self.unsupported(f"extern variable {node.name!r} is not supported", node)
        if isinstance(kind, Reference):
            assert initial is not None
            self.variables[node.id] = self.frozen(self.lvalue(initial))
            return
        if isinstance(kind, (Scalar, Pointer)) and initial is not None and initial.kind != "InitListExpr":
            value = self.rvalue(initial)
            self.variables[node.id] = self.bound(
                self.no_text(value, node), kind, node.name, node.id, node, _is_const(node)
            )
            return
        if node.get("nrvo") and isinstance(kind, Record):
            self.results.add(node.id)
        place = self.make(kind, node.name or "unnamed", node.id, node)
        self.variables[node.id] = place
        if initial is not None:
            self.initialise(place, initial)
        self.own(place, node)

    def kinds_of_attributes(self, node: Node) -> None:
        """Refuse attributes of a variable that are not known."""
        for child in node.inner:
            if child.kind.endswith("Attr") and child.kind not in ATTRIBUTES:
                raise self.unsupported(f"attribute {child.kind.removesuffix('Attr')} is not supported", node)

    # -------------------------------------------------------------------------------------------- globals

    def shared(self, node: Node) -> LValue:
        """A shared variable: one per name, whatever the number of times its function is inlined."""
        key = node.get("mangledName") or node.id
        if key not in self.globals:
            kind = self.type_of(node)
            if node.get("storageClass") == "extern":
                element = kind.element if isinstance(kind, Array) else kind
                place = self.allocate(Array(element, 0), node.name, "shared", node, dynamic=True)
                self.globals[key] = InMemory(place.pointer, 0, kind)
            else:
                initial = initialiser(node)
                if initial is not None and initial.kind not in CONSTRUCTIONS:
                    raise self.unsupported(f"shared variable {node.name!r} with an initial value", node)
                self.refuse_destructor(kind, f"shared variable {node.name!r}", node)
                self.globals[key] = self.allocate(kind, node.name, "shared", node)
        return self.globals[key]

    def global_variable(self, node: Node) -> LValue:
        """A variable declared outside of functions."""
        if node.name in INDICES:
            return self._index(node)
        if node.name == "warpSize":
            kind = Scalar("int", "int32")
            return InObject(Object(kind, "", {0: Const(self.device.warp_size, type="int32")}), 0, kind)
        if node.has("CUDASharedAttr"):
            return self.shared(node)
        key = node.get("mangledName") or node.id
        if key not in self.globals:
            self.kinds.scopes.append(node)
            try:
                self.globals[key] = self._constant_variable(node)
            finally:
                self.kinds.scopes.pop()
        return self.globals[key]

    def _index(self, node: Node) -> LValue:
        if node.name not in self.globals:
            kind = self.type_of(node)
            leaves: dict[int, Expr] = {}
            for number, axis in enumerate("xyz"):
                name = f"{node.name}.{axis}"
                self.stable.add(name)
                leaves[4 * number] = Var(name, type="uint32")
            self.globals[node.name] = InObject(Object(kind, "", leaves), 0, kind)
        return self.globals[node.name]

    def _constant_variable(self, node: Node) -> LValue:
        """A constant of the program, or ``__constant__`` memory."""
        kind = self.type_of(node)
        initial = initialiser(node)
        explicit = any(not child.get("implicit") for child in node.children("CUDAConstantAttr"))
        if isinstance(kind, Reference):
            raise self.unsupported(f"reference {node.name!r} outside of a function", node)
        values: dict[int, Expr] = {}
        if initial is not None:
            values = self._evaluate(kind, initial, node)
        is_static = node.parent is not None and node.parent.kind == "DeclStmt"
        in_device = not _is_const(node) and (is_static or node.has("CUDADeviceAttr", "HIPManagedAttr"))
        if explicit or in_device:
            return self._module_variable(kind, values, explicit, node)
        if not _is_const(node):
            raise self.unsupported(f"variable {node.name!r} of the host is not supported", node)
        if isinstance(kind, Scalar) and initial is not None:
            return InObject(Object(kind, "", {0: values[0]}), 0, kind)
        place = self.allocate(kind, node.name, "constant", node)
        assert isinstance(place.pointer, Var)
        dtype, shape = self.shape_of(kind)
        self.constants[place.pointer.name] = self._image(kind, values, dtype, shape)
        return place

    def _module_variable(self, kind: CType, values: dict[int, Expr], constant: bool, node: Node) -> LValue:
        """A variable of the module, which keeps its value between launches: a hidden parameter of the kernel."""
        dtype, shape = self.ask(self.shape_of, kind, node=node)
        name = self.fresh(node.name)
        self.stable.add(name)
        image = self._image(kind, values, dtype, shape)
        self.module_variables[name] = ModuleVariable(node.name, dtype, image, constant)
        return InMemory(Var(name, type=pointer_to(dtype)), 0, kind)

    def _evaluate(self, kind: CType, initial: Node, node: Node) -> dict[int, Expr]:
        """Values of the leaves of a constant, which must be known."""
        frame = Frame(node, self.place(node), Void())
        self.frames.append(frame)
        try:
            statements, values = self.aside(lambda: self._leaf_values(kind, 0, initial))
        finally:
            self.frames.pop()
        if statements or any(not isinstance(value, Const) for value in values.values()):
            raise self.unsupported(f"the value of {node.name!r} is not known at translation", node)
        return dict(values)

    def _leaf_values(self, kind: CType, offset: int, node: Node) -> dict[int, Expr]:
        while node.kind in TRANSPARENT or node.kind in ("ConstantExpr", "ExprWithCleanups"):
            node = node.inner[-1]
        result: dict[int, Expr] = {}
        if node.kind == "InitListExpr" and isinstance(kind, (Array, Record)):
            for part, at, operand in self.items(kind, node):
                if isinstance(part, BitField):
                    raise self.unsupported("a constant with bit-fields", node)
                result.update(self._leaf_values(part, offset + at, operand))
            return result
        if node.kind == "StringLiteral" and isinstance(kind, Array):
            for position, code in enumerate(characters(node, kind)):
                result[offset + position] = Const(code, type="int8")
            return result
        value = self.rvalue(node)
        if isinstance(value, Aggregate):
            return {offset + at: leaf for at, leaf in value.leaves.items()}
        return {offset: self.expression(value, node)}

    def _image(self, kind: CType, values: dict[int, Expr], dtype: str, shape: tuple[int, ...]) -> Any:
        """The bytes of a constant as an array."""
        image = np.zeros(self.kinds.bytes(kind), np.uint8)
        for offset, value in values.items():
            assert isinstance(value, Const)
            data = np.array(value.value, _numpy_dtype(str(value.type)))
            image[offset : offset + data.itemsize] = np.frombuffer(data.tobytes(), np.uint8)
        return image.view(_numpy_dtype(dtype)).reshape(shape)

    def _enumerator(self, node: Node, declared: dict[str, Any]) -> Value:
        found = self.tree.declaration(declared["id"])
        if found is None or found.parent is None:
            raise self.unsupported(f"enumerator {declared.get('name')!r} is not known", node)
        value = -1
        for constant in found.parent.children("EnumConstantDecl"):
            written = constant_value(constant)
            value = value + 1 if written is None else written
            if constant.id == found.id:
                break
        kind = self.type_of(node)
        assert isinstance(kind, Scalar)
        return self.constant(value, kind)


def initialiser(node: Node) -> Node | None:
    """The initial value of a variable."""
    if "init" not in node.data:
        return None
    return next((child for child in node.inner if not child.kind.endswith(NO_VALUE)), None)


def _is_const(node: Node) -> bool:
    """True for a variable that is itself constant."""
    written = str((node.get("type") or {}).get("qualType", ""))
    full = node.type_text
    for text in (written, full):
        if text.startswith("const ") and "*" not in text and "&" not in text:
            return True
        if text.rstrip().endswith(("*const", "*const __restrict")):
            return True
    return bool(node.get("constexpr"))


def _numpy_dtype(name: str) -> Any:
    import ml_dtypes

    assert name in ITEM_BYTES
    return np.dtype(getattr(ml_dtypes, name, name))
