"""State of a translation: statements written so far, variables, frames of inlined functions, places and errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from refsim.devices import Device
from refsim.dialect import (
    Allocation,
    Assign,
    Const,
    Expr,
    NullPointer,
    Place,
    PointerAdd,
    PointerType,
    Stmt,
    Type,
    Var,
    walk_expressions,
)
from refsim.errors import UnsupportedError
from refsim.frontends.cuda_cpp.options import Options
from refsim.frontends.cuda_cpp.polymorphism import ClassTypes, tag_of
from refsim.frontends.cuda_cpp.source import INCLUDE
from refsim.frontends.cuda_cpp.tree import Node, Tree
from refsim.frontends.cuda_cpp.types import CType, Record, UnknownTypeError, Void, pointer_to
from refsim.frontends.cuda_cpp.values import (
    CONSTANT,
    PURE,
    AddressOf,
    Aggregate,
    FunctionName,
    InMemory,
    InObject,
    LValue,
    Object,
    Value,
)

OWN_FILES = str(INCLUDE)


@dataclass(eq=False)
class Scope:
    """A block or full expression, where it writes its statements, and the objects whose life ends with it."""

    out: list[Stmt]
    full_expression: bool = False
    owned: list[LValue] = field(default_factory=list)


@dataclass(frozen=True)
class Jump:
    """A loop or switch: the labels that break and continue go to, and the scopes that they do not leave."""

    label: str
    skip: str
    outside: int
    inside: int


@dataclass
class Frame:
    """A function that is being translated: the kernel, or one inlined into it."""

    node: Node
    place: Place | None
    result: CType
    this: LValue | None = None
    captures: dict[str, LValue] = field(default_factory=dict)
    label: str = ""
    returns: int = 0
    tail: Value | LValue = None
    target: LValue | None = None
    jumps: list[Jump] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)


@dataclass(frozen=True)
class ModuleVariable:
    """A ``__device__`` or ``__constant__`` variable: name, element type, initial value, and whether it is constant."""

    name: str
    dtype: str
    initial: Any
    constant: bool


class Core:
    """The base of `refsim.frontends.cuda_cpp.translator.Translator`."""

    def __init__(self, tree: Tree, device: Device, options: Options, in_memory: frozenset[str]) -> None:
        self.tree = tree
        self.device = device
        self.options = options
        self.kinds = ClassTypes(tree)
        self.kinds.evaluate = self.known_integer
        self.in_memory = in_memory
        self.wanted: set[str] = set()
        self.types: dict[str, Type] = {}
        self.allocations: dict[str, Allocation] = {}
        self.constants: dict[str, Any] = {}
        self.module_variables: dict[str, ModuleVariable] = {}
        self.variables: dict[str, LValue] = {}
        self.globals: dict[str, LValue] = {}
        self.bindings: dict[str, Node] = {}
        self.lambdas: dict[str, list[tuple[int, str]]] = {}
        self.functions: dict[int, Node] = {}
        self.results: set[str] = set()
        self.frames: list[Frame] = []
        self.out: list[Stmt] = []
        self.stable: set[str] = set()
        self.names: dict[str, int] = {}
        self.unused: Node | None = None
        self.current: Node | None = None  # the statement at hand

    if TYPE_CHECKING:

        def rvalue(self, node: Node) -> Value: ...
        def lvalue(self, node: Node) -> LValue: ...
        def condition(self, node: Node) -> Expr: ...
        def statement(self, node: Node) -> None: ...
        def call(self, node: Node) -> Value | LValue: ...
        def global_variable(self, node: Node) -> LValue: ...
        def declare(self, node: Node) -> None: ...
        def construct(self, node: Node, target: LValue | None = None) -> Value: ...
        def choose_loaded(self, node: Node) -> Value: ...
        def load(self, place: LValue, node: Node | None) -> Value: ...
        def store(self, place: LValue, value: Value, node: Node | None) -> None: ...
        def run_initialisers(self, function: Node, this: LValue | None, node: Node) -> None: ...
        def set_tables(self, place: LValue, kind: CType) -> None: ...
        def inline(
            self,
            function: Node,
            this: LValue | None,
            arguments: list[Node],
            node: Node,
            values: list[Any] | None = None,
        ) -> Value | LValue: ...
        def call_function(
            self, function: Node, this: LValue | None, arguments: list[Node], node: Node
        ) -> Value | LValue: ...
        def call_values(
            self, function: Node, this: LValue | None, values: list[Any], arguments: list[Node], node: Node
        ) -> Value | LValue: ...

    # ------------------------------------------------------------------------------------ errors and places

    def unsupported(self, what: str, node: Node | None) -> UnsupportedError:
        """The error for something that is not translated."""
        return UnsupportedError(what, self.place(node))

    def place(self, node: Node | None) -> Place:
        """File and line of a node; inside our own headers, those of the call that led there."""
        found = self.tree.place(node)
        if found is None or found.file.startswith(OWN_FILES):
            for frame in reversed(self.frames):
                if frame.place is not None and not frame.place.file.startswith(OWN_FILES):
                    return frame.place
        return found or Place("<unknown>", 0, "")

    def known_integer(self, node: Node) -> int | None:
        """Value of an integer expression outside of functions; None if it is not known."""
        self.frames.append(Frame(node, None, Void()))
        try:
            _, value = self.aside(lambda: self.rvalue(node))
        except UnsupportedError:
            return None
        finally:
            self.frames.pop()
        return int(value.value) if isinstance(value, Const) else None

    def add_closures(self, node: Node) -> None:
        """Make the types of the lambdas below a node known."""
        for part in node.walk():
            if part.kind == "LambdaExpr":
                self.tree.add_type(part.inner[0])

    def type_of(self, node: Node) -> CType:
        """The C++ type of a node."""
        try:
            return self.kinds.of(node)
        except UnknownTypeError as error:
            raise self.unsupported(str(error), node) from error

    def read_type(self, text: str, node: Node) -> CType:
        """The C++ type that a text stands for."""
        try:
            return self.kinds.read(text)
        except UnknownTypeError as error:
            raise self.unsupported(str(error), node) from error

    def ask(self, question: Callable[..., Any], *args: Any, node: Node | None) -> Any:
        """Ask about a type; its refusal becomes an error with file and line."""
        try:
            return question(*args)
        except UnknownTypeError as error:
            raise self.unsupported(str(error), node) from error

    # ------------------------------------------------------------------------------------ names and values

    def fresh(self, name: str) -> str:
        """A new program variable, label or allocation; the part before ``@`` is what the source calls it."""
        base = name.removesuffix("@")
        count = self.names.get(base, 0)
        self.names[base] = count + 1
        return f"{base}@{count}" if count or name.endswith("@") else name

    def variable(self, name: str, kind: Type) -> Var:
        """A new program variable."""
        unique = self.fresh(name)
        self.types[unique] = kind
        return Var(unique, type=kind)

    def assign(self, variable: Expr, value: Expr, node: Node | None = None) -> None:
        """Assign a program variable; with a node, an overflow of an int that later indexes memory is reported."""
        assert isinstance(variable, Var)
        place = self.place(node) if node is not None and variable.type == "int32" else None
        self.out.append(Assign(variable.name, value, place, self.place(self.current)))

    def temporary(self, value: Expr) -> Expr:
        """The value in a variable of its own, unless it cannot change."""
        if self.is_stable(value) and not isinstance(value, PURE):
            return value
        variable = self.variable(root_name(value) if isinstance(value.type, PointerType) else "t@", value.type)
        self.stable.add(variable.name)
        self.assign(variable, value)
        return variable

    def is_stable(self, value: Expr) -> bool:
        """True if the expression has the same value wherever it is evaluated."""
        if isinstance(value, CONSTANT):
            return True
        if isinstance(value, Var):
            return value.name in self.stable
        if not isinstance(value, PURE):
            return False
        return all(
            part.name in self.stable if isinstance(part, Var) else isinstance(part, (*PURE, *CONSTANT))
            for part in walk_expressions(value)
        )

    def expression(self, value: Value | LValue, node: Node | None) -> Expr:
        """A value that must be a number or a pointer."""
        if isinstance(value, Expr):
            return value
        if isinstance(value, AddressOf):
            self.demand_memory(value.place.object, node)
            return NullPointer(type=pointer_to(self.kinds.main_dtype(value.place.type)))
        if isinstance(value, FunctionName):
            tag = tag_of(value.node)
            self.functions[tag] = value.node
            return Const(tag, type="uint64")
        raise self.unsupported("a number or pointer is needed here", node)

    def demand_memory(self, holder: Object, node: Node | None) -> None:
        """Ask for a variable to live in memory; the translation is then done again."""
        if not holder.key or holder.key in self.in_memory:
            raise self.unsupported("the address of this object is not supported", node)
        self.wanted.add(holder.key)

    # ------------------------------------------------------------------------------------ order of evaluation

    def aside(self, action: Callable[[], Any]) -> tuple[list[Stmt], Any]:
        """Run an action with its statements collected apart."""
        before, self.out = self.out, []
        try:
            result = action()
            return self.out, result
        finally:
            self.out = before

    def ordered(self, *actions: Callable[[], Any]) -> list[Any]:
        """Run actions in order; what an earlier one gave is kept if a later one has effects."""
        values: list[Any] = []
        for action in actions:
            mark = len(self.out)
            value = action()
            if len(self.out) > mark and values:
                later = self.out[mark:]
                del self.out[mark:]
                values = [self.frozen(earlier) for earlier in values]
                self.out.extend(later)
            values.append(value)
        return values

    def frozen(self, value: Any) -> Any:
        """A value or place whose parts no later statement changes."""
        if isinstance(value, Expr):
            return value if self.is_stable(value) else self.temporary(value)
        if isinstance(value, InMemory):
            return InMemory(self.frozen(value.pointer), value.offset, value.type, value.volatile)
        if isinstance(value, Aggregate):
            leaves = {offset: self.frozen(leaf) for offset, leaf in value.leaves.items()}
            return Aggregate(value.type, leaves, value.references)
        return value

    def is_record(self, kind: CType) -> bool:
        """True for classes, structs, unions and closures."""
        return isinstance(kind, Record)

    @staticmethod
    def part(place: LValue, offset: int, kind: CType) -> LValue:
        """A part of an object at a constant offset."""
        if isinstance(place, InObject):
            return InObject(place.object, place.offset + offset, kind)
        return InMemory(place.pointer, place.offset + offset, kind)


def root_name(value: Expr) -> str:
    """Name of the variable that a pointer was made from."""
    while isinstance(value, PointerAdd):
        value = value.pointer
    return value.name.split("@")[0] or "t@" if isinstance(value, Var) else "t@"
