"""Objects: making them, reading and writing them, in program variables or in memory."""

from __future__ import annotations

from refsim.dialect import (
    Align,
    Allocation,
    Const,
    Expr,
    Intrinsic,
    LoadAt,
    NullPointer,
    PointerType,
    StoreAt,
    Var,
    walk_expressions,
)
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.bit_fields import BitFields
from refsim.frontends.cuda_cpp.layout import is_function
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.types import (
    Array,
    BitField,
    CType,
    Function,
    Leaf,
    Pointer,
    Record,
    Reference,
    Scalar,
    Void,
    describe,
    pointer_to,
)
from refsim.frontends.cuda_cpp.values import (
    AddressOf,
    Aggregate,
    FunctionName,
    InMemory,
    InObject,
    LValue,
    Object,
    Value,
)

MOST_LEAVES = 4096
MOST_VARIABLES = 64


class Objects(BitFields):
    """Objects of a translation."""

    # --------------------------------------------------------------------------------------------- making

    def make(self, kind: CType, name: str, key: str, node: Node | None, aligned: int = 0) -> LValue:
        """A new object without a value."""
        if isinstance(kind, Void) or (isinstance(kind, Array) and kind.count is None):
            raise self.unsupported(f"a variable of type {describe(kind)}", node)
        leaves = self.ask(self.kinds.leaves, kind, node=node) if not isinstance(kind, Array) else ()
        if (
            key in self.in_memory
            or isinstance(kind, Array)
            or len(leaves) > MOST_VARIABLES
            or self.kinds.overlaps(kind)
            or any("[" in leaf.path for leaf in leaves)
        ):
            place = self.allocate(kind, name, "local", node)
            self.clear_words(place, kind, node)
            return place
        holder = Object(kind, key)
        for leaf in leaves:
            if not isinstance(leaf.type, Reference):
                holder.leaves[leaf.offset] = self.variable(f"{name}{leaf.path}", self.kinds.dialect(leaf.type))
        self.clear_words(InObject(holder, 0, kind), kind, node)
        return InObject(holder, 0, kind)

    def allocate(self, kind: CType, name: str, space: str, node: Node | None, dynamic: bool = False) -> InMemory:
        """A new object in memory."""
        unique = self.fresh(name)
        dtype, shape = self.ask(self.shape_of, kind, node=node)
        self.allocations[unique] = Allocation(unique, space, dtype, shape, dynamic, raw=True)
        self.stable.add(unique)
        return InMemory(Var(unique, type=pointer_to(dtype)), 0, kind)

    def shape_of(self, kind: CType) -> tuple[str, tuple[int, ...]]:
        """Scalar type and shape of the allocation for an object."""
        extents: list[int] = []
        element = kind
        while isinstance(element, Array):
            extents.append(element.count or 0)
            element = element.element
        if isinstance(element, Scalar):
            return element.dtype, tuple(extents) or (1,)
        dtype = self.kinds.main_dtype(element)
        size, item = self.kinds.bytes(element), self.kinds.bytes(Scalar("", dtype))
        if size % item:
            dtype, item = "uint8", 1
        count = size // item
        return dtype, (*extents, count) if count > 1 or not extents else tuple(extents)

    def bound(
        self, value: Value, kind: CType, name: str, key: str, node: Node | None, constant: bool = False
    ) -> LValue:
        """A new object with a value; a constant one whose value cannot change needs no variable."""
        if isinstance(value, FunctionName):
            value = self.expression(value, node)
        if (
            constant
            and isinstance(value, Expr)
            and key not in self.in_memory
            and isinstance(value, (Const, NullPointer, Var))
            and self.is_stable(value)
        ):
            return InObject(Object(kind, key, {0: value}), 0, kind)
        target = self.make(kind, name, key, node)
        self.store(target, value, node)
        return target

    # ------------------------------------------------------------------------------------------ addresses

    def address(self, place: LValue, node: Node | None) -> Value:
        """Pointer to an object, or to a function."""
        if isinstance(place.type, Function):
            return self.load(place, node)
        if isinstance(place.type, BitField):
            raise self.unsupported("a bit-field in place of an object that has an address", node)
        if isinstance(place, InObject):
            return AddressOf(place, Pointer(place.type))
        return self.pointer_to(place)

    def pointer_to(self, place: InMemory) -> Expr:
        """Pointer to an object in memory."""
        kind = pointer_to(self.kinds.main_dtype(place.type))
        return folding.advance(place.pointer, place.offset, kind) if place.offset else place.pointer

    def memory(self, place: LValue, node: Node | None) -> InMemory:
        """The place, which must be in memory."""
        if isinstance(place, InMemory):
            return place
        self.demand_memory(place.object, node)
        return InMemory(NullPointer(type=pointer_to(self.kinds.main_dtype(place.type))), 0, place.type)

    def dereference(self, pointer: Value, kind: CType, node: Node | None) -> LValue:
        """The object that a pointer points to."""
        if isinstance(kind, Function):
            return InObject(Object(kind, "", {0: self.expression(pointer, node)}), 0, kind)
        if isinstance(pointer, AddressOf):
            if pointer.place.type == kind:
                return pointer.place
            fitting = self.refit(pointer.place, kind, node)
            if fitting is not None:
                return fitting
        return InMemory(self.expression(pointer, node), 0, kind)

    def refit(self, place: InObject, kind: CType, node: Node | None) -> InObject | None:
        """A part of an object seen as another type with the same leaves, such as a base class; None if it is none."""
        have = {leaf.offset: leaf.type for leaf in self.ask(self.kinds.leaves, place.object.type, node=node)}
        wanted: tuple[Leaf, ...] = self.ask(self.kinds.leaves, kind, node=node)
        if all(have.get(place.offset + leaf.offset) == leaf.type for leaf in wanted):
            return InObject(place.object, place.offset, kind)
        return None

    # ------------------------------------------------------------------------------------ reading, writing

    def load(self, place: LValue, node: Node | None) -> Value:
        """Value of an object."""
        kind = place.type
        if isinstance(kind, Record):
            return self._load_record(place, node)
        if isinstance(kind, BitField):
            return self.load_bits(place, kind, node)
        if isinstance(place, InObject):
            leaf = place.object.leaves.get(place.offset)
            if leaf is None:
                raise self.unsupported(f"this part of an object of type {describe(place.object.type)}", node)
            return leaf
        return self._load_leaf(place, kind, node)

    def through_reference(self, place: LValue, node: Node | None) -> LValue:
        """What a reference inside an object is bound to; in memory it is kept as a pointer."""
        kind = place.type
        assert isinstance(kind, Reference)
        if isinstance(place, InObject):
            if place.offset not in place.object.references:
                raise self.unsupported("a reference that is not bound", node)
            return place.object.references[place.offset]
        return InMemory(self.temporary(self._load_leaf(place, Pointer(kind.target), node)), 0, kind.target)

    def bind(self, place: LValue, target: LValue, node: Node | None) -> None:
        """Bind a reference inside an object."""
        target = self.frozen(target)
        if isinstance(place, InMemory):
            self.store(place, self.address(target, node), node)
            return
        known = place.object.references.setdefault(place.offset, target)
        if not _is_same_place(known, target):
            # which of them it is may depend on the path taken: a pointer in memory tells
            self.demand_memory(place.object, node)

    def _load_leaf(self, place: InMemory, kind: CType, node: Node | None) -> Expr:
        if isinstance(kind, Pointer) and not is_function(kind):
            bits = LoadAt(self.pointer_to(place), self.place(node), type="uint64")
            return Intrinsic("bits_to_pointer", "uint64", (bits,), type=self.kinds.dialect(kind))
        dtype = self.ask(self.kinds.dialect, kind, node=node)
        return LoadAt(self.pointer_to(place), self.place(node), volatile=place.volatile, type=dtype)

    def _load_record(self, place: LValue, node: Node | None) -> Aggregate:
        kind = place.type
        leaves = self._leaves(kind, node)
        if isinstance(place, InObject):
            inside = {leaf.offset for leaf in leaves}
            values = {
                leaf.offset: place.object.leaves[place.offset + leaf.offset]
                for leaf in leaves
                if not isinstance(leaf.type, Reference)
            }
            references = {
                offset - place.offset: bound
                for offset, bound in place.object.references.items()
                if offset - place.offset in inside
            }
            return Aggregate(kind, values, references)
        place = self._one_access(place, kind, leaves, node)
        parts = {leaf.offset: InMemory(place.pointer, place.offset + leaf.offset, leaf.type) for leaf in leaves}
        bound = {o: self.through_reference(p, node) for o, p in parts.items() if isinstance(p.type, Reference)}
        numbers = {o: self._load_leaf(p, p.type, node) for o, p in parts.items() if o not in bound}
        return Aggregate(kind, numbers, bound)

    def _leaves(self, kind: CType, node: Node | None) -> tuple[Leaf, ...]:
        """Leaves of a record; those of a union are its largest member's bytes."""
        if self.ask(self.kinds.overlaps, kind, node=node):
            size = self.kinds.bytes(kind)
            item = min(self.kinds.align(kind), 8)
            word = Scalar("", {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}[item])
            return tuple(Leaf(offset, word, "") for offset in range(0, size, item))
        leaves: tuple[Leaf, ...] = self.ask(self.kinds.leaves, kind, node=node)
        if len(leaves) > MOST_LEAVES:
            raise self.unsupported(f"a copy of {len(leaves)} numbers at once", node)
        return leaves

    def _one_access(self, place: InMemory, kind: CType, leaves: tuple[Leaf, ...], node: Node | None) -> InMemory:
        """A place that is accessed leaf by leaf, its alignment checked where that of the whole is stricter."""
        if len(leaves) > 1:
            place = InMemory(self.temporary(self.pointer_to(place)), 0, kind)
        align = self.kinds.align(kind)
        if leaves and align > max(self.kinds.bytes(leaf.type) for leaf in leaves):
            self.out.append(Align(self.pointer_to(place), align, self.place(node)))
        return place

    def store(self, place: LValue, value: Value, node: Node | None) -> None:
        """Give an object a value of its own type."""
        if isinstance(place.type, BitField):
            self.store_bits(place, place.type, value, node)
            return
        if isinstance(value, Aggregate):
            self._store_record(place, value, node)
            return
        if isinstance(place, InObject):
            leaf = place.object.leaves.get(place.offset)
            if not isinstance(leaf, Var):
                raise self.unsupported(f"a write to part of an object of type {describe(place.object.type)}", node)
            self.assign(leaf, self.expression(value, node), node)
            return
        expression = self.expression(value, node)
        if isinstance(expression.type, PointerType):
            expression = Intrinsic("pointer_to_bits", "pointer", (expression,), type="uint64")
        self.out.append(StoreAt(self.pointer_to(place), expression, self.place(node), place.volatile))

    def _store_record(self, place: LValue, value: Aggregate, node: Node | None) -> None:
        if isinstance(place, InObject):
            for offset, bound in value.references.items():
                self.bind(InObject(place.object, place.offset + offset, Reference(bound.type)), bound, node)
            several = len(value.leaves) > 1
            values = {o: self._apart(leaf, place) if several else leaf for o, leaf in value.leaves.items()}
            for offset, leaf in values.items():
                target = place.object.leaves.get(place.offset + offset)
                if not isinstance(target, Var):
                    raise self.unsupported(f"a write to part of an object of type {describe(place.object.type)}", node)
                if target != leaf:
                    self.assign(target, leaf)
            return
        leaves = self._leaves(place.type, node)
        frozen = {offset: self.frozen(leaf) for offset, leaf in value.leaves.items()}
        place = self._one_access(place, place.type, leaves, node)
        for offset, leaf in frozen.items():
            self.store(InMemory(place.pointer, place.offset + offset, place.type), leaf, node)
        for offset, bound in value.references.items():
            self.bind(InMemory(place.pointer, place.offset + offset, Reference(bound.type)), bound, node)

    def _apart(self, leaf: Expr, place: InObject) -> Expr:
        """A leaf's value that does not depend on the object it goes to."""
        targets = {target.name for target in place.object.leaves.values() if isinstance(target, Var)}
        return self.frozen(leaf) if depends_on(leaf, targets) else leaf

    # -------------------------------------------------------------------------------------------- zeroing

    def zero(self, kind: CType, node: Node | None) -> Value:
        """Value of an object initialised with ``{}``."""
        if isinstance(kind, Scalar):
            return folding.convert(Const(0, type="int32"), kind.dtype)
        if is_function(kind):
            return Const(0, type="uint64")
        if isinstance(kind, Pointer):
            return NullPointer(type=self.ask(self.kinds.dialect, kind, node=node))
        leaves: dict[int, Expr] = {}
        for leaf in self._leaves(kind, node):
            value = self.zero(leaf.type, node)
            assert isinstance(value, Expr)
            leaves[leaf.offset] = value
        return Aggregate(kind, leaves)


def _is_same_place(one: LValue, other: LValue) -> bool:
    """True if two places are known to be one."""
    if isinstance(one, InObject) or isinstance(other, InObject):
        return (
            isinstance(one, InObject)
            and isinstance(other, InObject)
            and one.object is other.object
            and one.offset == other.offset
        )
    return one.pointer == other.pointer and one.offset == other.offset


def depends_on(value: Expr, names: set[str]) -> bool:
    """True if an expression reads one of the variables, or memory."""
    parts = [value, *walk_expressions(value)]
    return any(isinstance(part, LoadAt) or (isinstance(part, Var) and part.name in names) for part in parts)
