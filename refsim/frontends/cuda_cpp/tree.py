"""clang's syntax tree as light nodes: children, parents, declarations by id, and places."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from refsim.dialect import Place
from refsim.errors import UnsupportedError
from refsim.frontends.cuda_cpp.source import Preprocessed

SCOPES = frozenset(
    {
        "TranslationUnitDecl", "NamespaceDecl", "LinkageSpecDecl", "CXXRecordDecl", "ClassTemplateDecl",
        "ClassTemplateSpecializationDecl", "ClassTemplatePartialSpecializationDecl", "FunctionTemplateDecl",
        "EnumDecl", "VarTemplateDecl",
    }
)  # fmt: skip
FUNCTIONS = frozenset({"FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl", "CXXConversionDecl", "CXXDestructorDecl"})
PATTERNS = frozenset({"ClassTemplateDecl", "FunctionTemplateDecl"})
DEEP_STACK = 512 * 1024 * 1024


@dataclass(frozen=True)
class Shape:
    """What a function's body does: how it returns, which variables it may change, of which it takes the address."""

    returns: int
    ends_in_return: bool
    changed: frozenset[str]
    addressed: frozenset[str]


class Node:
    """One node of the tree: a view of clang's dictionary."""

    __slots__ = ("_inner", "data", "kind", "parent")

    def __init__(self, data: dict[str, Any], parent: Node | None) -> None:
        self.data = data
        self.kind: str = data.get("kind", "")
        self.parent = parent
        self._inner: list[Node] | None = None

    @property
    def inner(self) -> list[Node]:
        """Children; an absent one has no kind. With an array filler, the filler comes first."""
        if self._inner is None:
            children = self.data.get("inner") or self.data.get("array_filler") or ()
            self._inner = [Node(child, self) for child in children]
        return self._inner

    @property
    def id(self) -> str:
        """clang's name of a declaration."""
        return str(self.data.get("id", ""))

    @property
    def name(self) -> str:
        """Declared name, or the empty string."""
        return str(self.data.get("name", ""))

    def get(self, key: str, default: Any = None) -> Any:
        """A property as clang wrote it."""
        return self.data.get(key, default)

    @property
    def type_text(self) -> str:
        """The type as clang prints it, without an outer alias."""
        kind = self.data.get("type") or {}
        return str(kind.get("desugaredQualType") or kind.get("qualType") or "")

    @property
    def offset(self) -> int | None:
        """Byte at which the node begins, if it has one."""
        for key in ("range", "loc"):
            found = self.data.get(key) or {}
            found = found.get("begin", found) if key == "range" else found
            found = found.get("expansionLoc", found)
            if "offset" in found:
                return int(found["offset"])
        return None

    @property
    def end(self) -> int | None:
        """Byte after the node's last token."""
        found = (self.data.get("range") or {}).get("end") or {}
        found = found.get("expansionLoc", found)
        return int(found["offset"]) + int(found.get("tokLen", 1)) if "offset" in found else None

    def children(self, *kinds: str) -> list[Node]:
        """Children of the given kinds."""
        return [child for child in self.inner if child.kind in kinds]

    def has(self, *kinds: str) -> bool:
        """True if a child has one of the kinds."""
        return any(child.kind in kinds for child in self.inner)

    def walk(self) -> Iterator[Node]:
        """This node and all nodes below it."""
        yield self
        for child in self.inner:
            yield from child.walk()

    def ancestors(self) -> Iterator[Node]:
        """The nodes that this one lies in, innermost first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def __repr__(self) -> str:
        return f"Node({self.kind} {self.name})"


class Tree:
    """The whole tree, with every declaration outside of function bodies indexed by id."""

    def __init__(self, text: bytes, source: Preprocessed) -> None:
        self.source = source
        self.root = Node(_decode(text), None)
        self.declarations: dict[str, Node] = {}
        self.type_names: dict[str, list[Node]] = {}
        self.shapes: dict[str, Shape] = {}
        self._definitions: dict[str, Node] = {}
        self._first: dict[str, str] = {}
        self._addressed: list[Node] | None = None
        self._index(self.root, False)

    def _index(self, node: Node, pattern: bool) -> None:
        for number, child in enumerate(node.inner):
            if not child.kind.endswith("Decl"):
                continue
            inside = pattern
            if node.kind in PATTERNS and child.kind in ("CXXRecordDecl", *FUNCTIONS):
                inside = pattern or _is_pattern(node, number)
            if child.kind == "ClassTemplatePartialSpecializationDecl":
                inside = True
            self._declare(child, inside)
            if child.kind in SCOPES:
                self._index(child, inside)

    def _declare(self, node: Node, pattern: bool) -> None:
        self.declarations[node.id] = node
        previous = node.get("previousDecl")
        if previous:
            self._first[node.id] = self._first.get(previous, previous)
        if node.kind in FUNCTIONS and node.has("CompoundStmt"):
            self._definitions[self._first.get(node.id, node.id)] = node
        if not pattern:
            self.add_type(node)

    def add_type(self, node: Node) -> None:
        """Make a declared type findable by name."""
        if node.get("isImplicit") and node.name and node.kind == "CXXRecordDecl":
            return
        if node.kind in ("TypedefDecl", "TypeAliasDecl", "TypeAliasTemplateDecl", "EnumDecl") or (
            node.kind in ("CXXRecordDecl", "ClassTemplateSpecializationDecl") and node.get("completeDefinition")
        ):
            self.declarations[node.id] = node
            known = self.type_names.setdefault(node.name or self.location_name(node), [])
            if not any(other.id == node.id for other in known):
                known.append(node)

    def location_name(self, node: Node) -> str:
        """What stands for the name of a type without one: ``at file:line:column``."""
        offset = self._location(node)
        place = self.source.place(offset)
        return f"at {place.file}:{place.line}:{self.source.column(offset)}"

    @staticmethod
    def _location(node: Node) -> int:
        found = node.get("loc") or {}
        found = found.get("expansionLoc", found)
        return int(found.get("offset", node.offset or 0))

    def declaration(self, identity: str) -> Node | None:
        """The declaration with an id, if it lies outside of function bodies or was made known."""
        return self.declarations.get(identity)

    def definition(self, node: Node) -> Node | None:
        """The declaration of the same function that has its body."""
        return self._definitions.get(self._first.get(node.id, node.id))

    def addressed_functions(self) -> list[Node]:
        """Functions of which the source takes the address anywhere."""
        if self._addressed is None:
            found: dict[str, Node] = {}
            for node in self.root.walk():
                declared = node.get("referencedDecl") or {} if node.kind == "DeclRefExpr" else {}
                if declared.get("kind") in FUNCTIONS and not _is_called(node):
                    function = self.declaration(declared["id"])
                    if function is not None and function.name != "__invoke":
                        found[function.id] = function
            self._addressed = list(found.values())
        return self._addressed

    def redeclarations(self, node: Node) -> list[Node]:
        """Other declarations of the same function."""
        first = self._first.get(node.id, node.id)
        same = [other for key, other in self.declarations.items() if self._first.get(key, key) == first]
        return [other for other in same if other is not node]

    def add_function(self, node: Node) -> None:
        """Make a function found inside a body known, with all functions of a record."""
        self._declare(node, True)
        if node.kind in SCOPES:
            self._index(node, True)

    def place(self, node: Node | None) -> Place | None:
        """File and line of a node, or of the nearest one around it that has them."""
        while node is not None:
            offset = node.offset
            if offset is not None:
                return self.source.place(offset)
            node = node.parent
        return None

    def unsupported(self, what: str, node: Node | None) -> UnsupportedError:
        """The error for a construct that is not translated."""
        return UnsupportedError(what, self.place(node))


def _is_called(node: Node) -> bool:
    """True for the name of a function in a call of it."""
    child, parent = node, node.parent
    while parent is not None and parent.kind in ("ImplicitCastExpr", "ParenExpr"):
        child, parent = parent, parent.parent
    calls = ("CallExpr", "CXXOperatorCallExpr", "UserDefinedLiteral")
    return parent is not None and parent.kind in calls and parent.inner[0] is child


def _is_pattern(template: Node, number: int) -> bool:
    """True for the templated declaration itself, which comes before its instantiations."""
    return not any(child.kind in ("CXXRecordDecl", *FUNCTIONS) for child in template.inner[:number])


def _decode(text: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(text))
    except RecursionError:
        return _decode_deep(text)


def _decode_deep(text: bytes) -> dict[str, Any]:
    """Decode a deeply nested tree in a thread with a large stack."""
    result: dict[str, Any] = {}
    limit, size = sys.getrecursionlimit(), threading.stack_size(DEEP_STACK)
    try:
        sys.setrecursionlimit(1_000_000)
        thread = threading.Thread(target=lambda: result.update(json.loads(text)))
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    return result
