"""C++ types: as clang prints them, resolved by scope, and laid out in bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from refsim.dialect import ITEM_BYTES, PointerType, Type
from refsim.frontends.cuda_cpp.tree import Node, Tree


@dataclass(frozen=True)
class Scalar:
    """A number: its C++ name and its dialect type. Enumerations are numbers too."""

    name: str
    dtype: str


@dataclass(frozen=True)
class Void:
    """No value."""


@dataclass(frozen=True)
class Pointer:
    """A pointer."""

    pointee: CType


@dataclass(frozen=True)
class Reference:
    """A reference, lvalue or rvalue."""

    target: CType


@dataclass(frozen=True)
class Array:
    """An array; `count` is None where the source leaves it open."""

    element: CType
    count: int | None


@dataclass(frozen=True)
class Record:
    """A class, struct, union or closure, by the id of its declaration."""

    id: str
    name: str


@dataclass(frozen=True)
class Function:
    """A function: its result and parameters."""

    result: CType
    parameters: tuple[CType, ...]


CType = Scalar | Void | Pointer | Reference | Array | Record | Function

BUILTIN: dict[str, str] = {
    "bool": "bool", "_Bool": "bool", "char": "int8", "signed char": "int8", "unsigned char": "uint8",
    "char8_t": "uint8", "short": "int16", "unsigned short": "uint16", "char16_t": "uint16", "int": "int32",
    "unsigned int": "uint32", "unsigned": "uint32", "char32_t": "uint32", "wchar_t": "int32", "long": "int64",
    "unsigned long": "uint64", "long long": "int64", "unsigned long long": "uint64", "float": "float32",
    "double": "float64", "_Float16": "float16", "__fp16": "float16", "half": "float16", "__bf16": "bfloat16",
    "__size_t": "uint64", "__ptrdiff_t": "int64", "__signed_size_t": "int64",
}  # fmt: skip
SCALARS = {name: Scalar(name, dtype) for name, dtype in BUILTIN.items()}
# types made of built-in ones only mean the same everywhere
_BUILT_IN: dict[str, CType] = {}
BOOL, INT, UNSIGNED, LONG = (SCALARS[name] for name in ("bool", "int", "unsigned int", "long"))
CHAR, FLOAT, DOUBLE, SIZE = (SCALARS[name] for name in ("char", "float", "double", "unsigned long"))
QUALIFIERS = re.compile(
    r"\s*(const|volatile|restrict|__restrict|__restrict__|struct|class|union|enum|typename|"
    r"__attribute__\(\([^()]*(?:\([^()]*\))?\)\))(?![\w])"
)
NAME = re.compile(r"[A-Za-z_~]\w*")
TRANSFORM = re.compile(r"(__decay|__underlying_type|__make_unsigned|__make_signed)\((.*)\)$")
INTEGER = re.compile(r"-?\d+[uUlL]*$")


class UnknownTypeError(Exception):
    """A type that is not known; becomes an `UnsupportedError` with file and line."""


@dataclass(frozen=True)
class Leaf:
    """A number, pointer or reference inside an object: where it lies and its type."""

    offset: int
    type: CType
    path: str


@dataclass
class Layout:
    """Size and alignment in bytes, and byte offset of every field and base, by id."""

    size: int
    align: int
    data_size: int
    fields: dict[str, int] = field(default_factory=dict)
    bases: dict[str, int] = field(default_factory=dict)
    members: list[tuple[str, int, CType]] = field(default_factory=list)
    is_union: bool = False


class Types:
    """Reads type texts and lays out records."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.scopes: list[Node] = []
        self._layouts: dict[str, Layout] = {}
        self._leaves: dict[CType, tuple[Leaf, ...]] = {}
        self._parsed: dict[Any, CType] = {}
        self._arguments: dict[str, list[str]] = {}
        self._uses_names = False

    # --------------------------------------------------------------------------------------------- reading

    def of(self, node: Node) -> CType:
        """The type of an expression or declaration."""
        return self.read(node.type_text)

    def read(self, text: str) -> CType:
        """The type that a text stands for in the current scope.

        Raises
        ------
        UnknownTypeError
            If a name in it is not known or means several types.
        """
        found = _BUILT_IN.get(text)
        if found is not None:
            return found
        key = (text, *[scope.id for scope in self.scopes[-3:]])
        found = self._parsed.get(key)
        if found is None:
            outer, self._uses_names = self._uses_names, False
            position, found = self._base(text, 0)
            position, found = self._declarator(text, position, found)
            if text[position:].strip(" )") not in ("", "noexcept", "const", "const noexcept", "mutable"):
                raise UnknownTypeError(f"type {text!r} is not supported")
            if not self._uses_names:
                _BUILT_IN[text] = found
            elif not _is_local(found):
                self._parsed[key] = found
            self._uses_names = outer or self._uses_names
        return found

    def _base(self, text: str, position: int) -> tuple[int, CType]:
        """The part of a type before ``*``, ``&``, ``[`` and ``(``."""
        position = _qualifiers(text, position)
        start, depth = position, 0
        while position < len(text):
            char = text[position]
            if char in "<(" and (char == "<" or depth or position == start or text[position - 1] in ":"):
                depth += 1
            elif char in ">)" and depth:
                depth -= 1
            elif not depth and char in "*&[(),":
                break
            position += 1
        name = text[start:position]
        words = [word for word in re.split(r"\s+(?![^<(]*[>)])", name.strip()) if word not in ("const", "volatile")]
        return position, self._named(" ".join(words).removesuffix(" __restrict"))

    def _declarator(self, text: str, position: int, kind: CType) -> tuple[int, CType]:
        position = _qualifiers(text, position)
        while position < len(text) and text[position] in "*&":
            if text[position] == "*":
                kind, position = Pointer(kind), position + 1
            else:
                kind = kind if isinstance(kind, Reference) else Reference(kind)
                position += 2 if text[position : position + 2] == "&&" else 1
            position = _qualifiers(text, position)
        if position < len(text) and text[position] == "(" and _is_nested(text, position):
            close = _closing(text, position)
            end, outer = self._suffix(text, close + 1, kind)
            _, result = self._declarator(text[:close], position + 1, outer)
            return end, result
        return self._suffix(text, position, kind)

    def _suffix(self, text: str, position: int, kind: CType) -> tuple[int, CType]:
        while position < len(text) and text[position] == " ":
            position += 1
        if position < len(text) and text[position] == "[":
            close = text.index("]", position)
            inside = text[position + 1 : close].strip()
            end, element = self._suffix(text, close + 1, kind)
            count = int(inside.rstrip("uUlL")) if INTEGER.match(inside) else None
            if inside and count is None:
                raise UnknownTypeError(f"array length {inside!r} is not known")
            return end, Array(element, count)
        if position < len(text) and text[position] == "(":
            close = _closing(text, position)
            parts = [part for part in split_list(text[position + 1 : close]) if part.strip() not in ("", "void", "...")]
            return close + 1, Function(kind, tuple(self.read(part) for part in parts))
        return position, kind

    def _named(self, name: str) -> CType:
        if name in SCALARS:
            return SCALARS[name]
        if name == "void":
            return Void()
        if name in ("std::nullptr_t", "nullptr_t"):
            return Pointer(Void())
        self._uses_names = True
        at = re.search(r"\bat (.+:\d+:\d+)\)$", name)
        if at:
            return self._declared(self._choose(f"at {at[1]}", "", name))
        transformed = TRANSFORM.match(name)
        if transformed:
            return self._transformed(transformed[1], transformed[2])
        path, arguments = _split_name(name)
        if len(path) > 1:
            member = self._member_type(path, arguments, name)
            if member is not None:
                return member
        if arguments is not None:
            aliases = [n for n in self.tree.type_names.get(path[-1], []) if n.kind == "TypeAliasTemplateDecl"]
            if len(aliases) == 1:
                return self._expanded(aliases[0], split_list(arguments))
        return self._declared(self._choose(path[-1], "::".join(path[:-1]), name, arguments))

    def _member_type(self, path: list[str], arguments: str | None, name: str) -> CType | None:
        """A type declared inside a class, such as ``Traits<float>::type``; None if the path names no class."""
        inner, inner_arguments = _split_name("::".join(path[:-1]))
        if inner[-1] not in self.tree.type_names:
            return None
        owner = self.read("::".join(path[:-1]))
        if not isinstance(owner, Record) or inner_arguments == "":
            return None
        found = self._member_of(self.record(owner), path[-1], arguments)
        return None if found is None else self._in_scope(found)

    def _member_of(self, owner: Node, simple: str, arguments: str | None) -> Node | None:
        for child in owner.inner:
            if child.name == simple and child.kind in ("TypedefDecl", "TypeAliasDecl", "EnumDecl", "CXXRecordDecl"):
                return None if child.get("isImplicit") else child
            if child.name == simple and child.kind == "ClassTemplateDecl" and arguments is not None:
                wanted = split_list(arguments)
                return next((n for n in child.inner if self._matches(n, wanted)), None)
        for base in owner.get("bases") or ():
            kind = self.read(base["type"].get("desugaredQualType") or base["type"]["qualType"])
            if isinstance(kind, Record):
                found = self._member_of(self.record(kind), simple, arguments)
                if found is not None:
                    return found
        return None

    def _in_scope(self, node: Node) -> CType:
        self.scopes.append(node)
        try:
            return self._declared(node)
        finally:
            self.scopes.pop()

    def _expanded(self, alias: Node, arguments: list[str]) -> CType:
        """An alias template with arguments: its pattern with the names of its parameters replaced."""
        names = [c.name for c in alias.inner if c.kind in ("TemplateTypeParmDecl", "NonTypeTemplateParmDecl")]
        pattern = alias.children("TypeAliasDecl")[-1].type_text
        values = dict(zip(names, (argument.strip() for argument in arguments)))
        if values:
            words = "|".join(map(re.escape, values))
            pattern = re.sub(rf"\b({words})\b", lambda match: values[match[1]], pattern)
        self.scopes.append(alias)
        try:
            return self.read(pattern)
        finally:
            self.scopes.pop()

    def _transformed(self, name: str, argument: str) -> CType:
        kind = self.read(argument)
        if name == "__decay":
            kind = kind.target if isinstance(kind, Reference) else kind
            return Pointer(kind.element) if isinstance(kind, Array) else kind
        if name == "__underlying_type" and isinstance(kind, Scalar):
            return next(s for s in SCALARS.values() if s.dtype == kind.dtype)
        if isinstance(kind, Scalar) and "int" in kind.dtype:
            bare = kind.dtype.removeprefix("u")
            wanted = f"u{bare}" if name == "__make_unsigned" else bare
            return next(s for s in SCALARS.values() if s.dtype == wanted)
        raise UnknownTypeError(f"type {name}({argument}) is not supported")

    def _choose(self, simple: str, prefix: str, name: str, arguments: str | None = None) -> Node:
        """The declaration that a name means: of those visible, the one in the innermost scope."""
        candidates = self.tree.type_names.get(simple, [])
        if arguments is not None:
            wanted = split_list(arguments)
            candidates = [node for node in candidates if self._matches(node, wanted)]
        elif len(candidates) > 1:
            plain = [node for node in candidates if node.kind != "ClassTemplateSpecializationDecl"]
            candidates = plain or candidates
        if prefix:
            inner = _split_name(prefix)[0]
            candidates = [node for node in candidates if _suffix_matches(_path(node), inner)] or candidates
        if len(candidates) > 1:
            candidates = self._nearest(candidates)
        if len(candidates) > 1 and all(node.kind in ("TypedefDecl", "TypeAliasDecl") for node in candidates):
            meanings = {self._declared(node) for node in candidates}
            candidates = candidates[:1] if len(meanings) == 1 else candidates
        if not candidates:
            raise UnknownTypeError(f"type {name!r} is not known")
        if len(candidates) > 1:
            raise UnknownTypeError(f"type name {name!r} means several types here")
        return candidates[0]

    def _nearest(self, candidates: list[Node]) -> list[Node]:
        for scope in reversed(self.scopes):
            around = {scope.id, *(node.id for node in scope.ancestors() if node.id)}
            inside = [node for node in candidates if any(a.id == scope.id for a in node.ancestors())]
            if inside:
                return inside if len(inside) == 1 else inside[-1:]
            reachable = [
                (len(list(node.ancestors())), node)
                for node in candidates
                if all(a.id in around or a.kind in ("LinkageSpecDecl",) for a in node.ancestors() if a.id)
            ]
            if reachable:
                deepest = max(depth for depth, _ in reachable)
                return [node for depth, node in reachable if depth == deepest]
        return candidates

    def _matches(self, node: Node, wanted: list[str]) -> bool:
        if node.kind != "ClassTemplateSpecializationDecl":
            return False
        have = self.template_arguments(node)
        return len(have) >= len(wanted) and all(self._same(a, b) for a, b in zip(wanted, have))

    def _same(self, written: str, declared: str) -> bool:
        written, declared = written.strip(), declared.strip()
        if written == declared:
            return True
        if INTEGER.match(declared):
            if INTEGER.match(written):
                return int(written.rstrip("uUlL")) == int(declared)
            return {"true": 1, "false": 0}.get(written, int(declared)) == int(declared)
        try:
            return self.read(written) == self.read(declared)
        except UnknownTypeError:
            return False

    def template_arguments(self, node: Node) -> list[str]:
        """Template arguments of a specialisation, packs spread out, as texts."""
        if node.id not in self._arguments:
            self._arguments[node.id] = [text for child in node.inner for text in _argument(child)]
        return self._arguments[node.id]

    def _declared(self, node: Node) -> CType:
        if node.kind in ("TypedefDecl", "TypeAliasDecl"):
            self.scopes.append(node)
            try:
                return self.of(node)
            finally:
                self.scopes.pop()
        if node.kind == "EnumDecl":
            return Scalar(f"enum {node.name}", self.enumeration(node))
        return Record(node.id, self.record_name(node))

    def enumeration(self, node: Node) -> str:
        """Dialect type of an enumeration: the fixed one, else int if a value is negative, else unsigned."""
        fixed = node.get("fixedUnderlyingType")
        if fixed:
            kind = self.read(fixed.get("desugaredQualType") or fixed["qualType"])
            assert isinstance(kind, Scalar)
            return kind.dtype
        value, negative, large = -1, False, False
        for constant in node.children("EnumConstantDecl"):
            written = constant_value(constant)
            value = value + 1 if written is None else written
            negative, large = negative or value < 0, large or value >= 2**32
        if large:
            return "int64" if negative else "uint64"
        return "int32" if negative else "uint32"

    def record_name(self, node: Node) -> str:
        """Name of a record for messages."""
        arguments = self.template_arguments(node) if node.kind == "ClassTemplateSpecializationDecl" else []
        name = node.name or ("lambda" if (node.get("definitionData") or {}).get("isLambda") else "unnamed")
        return f"{name}<{', '.join(arguments)}>" if arguments else name

    # --------------------------------------------------------------------------------------------- layout

    def record(self, kind: Record) -> Node:
        """Declaration of a record."""
        node = self.tree.declaration(kind.id)
        assert node is not None
        return node

    def bytes(self, kind: CType) -> int:
        """``sizeof``."""
        if isinstance(kind, Scalar):
            return ITEM_BYTES[kind.dtype]
        if isinstance(kind, Pointer | Reference):
            return 8
        if isinstance(kind, Array):
            return self.bytes(kind.element) * (kind.count or 0)
        if isinstance(kind, Record):
            return self.layout(kind).size
        return 1

    def align(self, kind: CType) -> int:
        """``alignof``."""
        if isinstance(kind, Array):
            return self.align(kind.element)
        return self.layout(kind).align if isinstance(kind, Record) else self.bytes(kind)

    def layout(self, kind: Record) -> Layout:
        """Layout of a record by the rules of the Itanium C++ ABI."""
        if kind.id not in self._layouts:
            node = self.record(kind)
            self.scopes.append(node)
            try:
                self._layouts[kind.id] = self._lay_out(node)
            finally:
                self.scopes.pop()
        return self._layouts[kind.id]

    def _lay_out(self, node: Node) -> Layout:
        data = node.get("definitionData") or {}
        if data.get("isPolymorphic"):
            raise UnknownTypeError(f"{self.record_name(node)} has virtual functions, which are not supported")
        if node.has("PackedAttr", "MaxFieldAlignmentAttr"):
            raise UnknownTypeError(f"{self.record_name(node)} is packed, which is not supported")
        layout = Layout(0, 1, 0, is_union=node.get("tagUsed") == "union")
        end = 0
        for base in node.get("bases") or ():
            if base.get("isVirtual"):
                raise UnknownTypeError(f"{self.record_name(node)} has a virtual base, which is not supported")
            kind = self.read(base["type"].get("desugaredQualType") or base["type"]["qualType"])
            assert isinstance(kind, Record)
            inner = self.layout(kind)
            empty = self.is_empty(kind)
            offset = 0 if empty else -(-end // inner.align) * inner.align
            layout.bases[kind.id] = offset
            layout.members.append(("", offset, kind))
            layout.align = max(layout.align, inner.align)
            end = end if empty else offset + (inner.size if self._is_pod(kind) else inner.data_size)
        for child in node.children("FieldDecl"):
            if child.get("isBitfield"):
                raise UnknownTypeError(f"bit-field {child.name!r} in {self.record_name(node)} is not supported")
            kind_of = self.of(child)
            align = max(self.align(kind_of), _alignment(child))
            offset = 0 if layout.is_union else -(-end // align) * align
            layout.fields[child.id] = offset
            layout.members.append((child.name, offset, kind_of))
            layout.align = max(layout.align, align)
            end = max(end, offset + self.bytes(kind_of))
        layout.align = max(layout.align, _alignment(node))
        layout.data_size = end
        layout.size = max(1, -(-max(end, 1) // layout.align) * layout.align)
        return layout

    def is_empty(self, kind: Record) -> bool:
        """True for a record without fields."""
        node = self.record(kind)
        return not node.children("FieldDecl") and all(
            isinstance(base, Record) and self.is_empty(base)
            for _, _, base in self.layout(kind).members
        )

    def _is_pod(self, kind: Record) -> bool:
        return bool((self.record(kind).get("definitionData") or {}).get("isPOD"))

    def leaves(self, kind: CType) -> tuple[Leaf, ...]:
        """The numbers, pointers and references that an object consists of, in order of their offsets."""
        if kind not in self._leaves:
            self._leaves[kind] = tuple(self._find_leaves(kind, 0, ""))
        return self._leaves[kind]

    def _find_leaves(self, kind: CType, offset: int, path: str) -> list[Leaf]:
        if isinstance(kind, Array):
            size = self.bytes(kind.element)
            count = kind.count or 0
            return [
                leaf
                for i in range(count)
                for leaf in self._find_leaves(kind.element, offset + i * size, f"{path}[{i}]")
            ]
        if isinstance(kind, Record):
            return [
                leaf
                for name, inner, part in self.layout(kind).members
                for leaf in self._find_leaves(part, offset + inner, f"{path}.{name}" if name else path)
            ]
        return [Leaf(offset, kind, path)]

    def overlaps(self, kind: CType) -> bool:
        """True if the object is or holds a union."""
        if isinstance(kind, Array):
            return self.overlaps(kind.element)
        if isinstance(kind, Record):
            layout = self.layout(kind)
            return layout.is_union or any(self.overlaps(part) for _, _, part in layout.members)
        return False

    def main_dtype(self, kind: CType) -> str:
        """Scalar type that an object mostly consists of: what findings about it name."""
        if isinstance(kind, Scalar):
            return kind.dtype
        if isinstance(kind, Array):
            return self.main_dtype(kind.element)
        if isinstance(kind, Pointer | Reference):
            return "uint64"
        if isinstance(kind, Record):
            names = [leaf.type.dtype if isinstance(leaf.type, Scalar) else "uint64" for leaf in self.leaves(kind)]
            return max(set(names), key=names.count) if names else "uint8"
        return "uint8"

    def dialect(self, kind: CType) -> Type:
        """Dialect type of a number or pointer."""
        if isinstance(kind, Scalar):
            return kind.dtype
        if isinstance(kind, Pointer):
            return PointerType(self.main_dtype(kind.pointee))
        raise UnknownTypeError(f"a value of type {describe(kind)} where a number or pointer is needed")


def describe(kind: CType) -> str:
    """A type as C++ writes it."""
    if isinstance(kind, Scalar | Record):
        return kind.name
    if isinstance(kind, Pointer):
        return f"{describe(kind.pointee)}*"
    if isinstance(kind, Reference):
        return f"{describe(kind.target)}&"
    if isinstance(kind, Array):
        return f"{describe(kind.element)}[{'' if kind.count is None else kind.count}]"
    if isinstance(kind, Function):
        return f"{describe(kind.result)}({', '.join(map(describe, kind.parameters))})"
    return "void"


def constant_value(node: Node) -> int | None:
    """Value that clang computed for the constant expression below a declaration, if there is one."""
    for child in node.inner:
        if child.kind == "ConstantExpr" and "value" in child.data:
            text = child.get("value")
            return {"true": 1, "false": 0}[text] if text in ("true", "false") else int(text)
        found = constant_value(child) if child.kind in ("ImplicitCastExpr", "ParenExpr") else None
        if found is not None:
            return found
    return None


def split_list(text: str) -> list[str]:
    """Parts of a list at its outer commas."""
    parts, depth, start = [], 0, 0
    for position, char in enumerate(text):
        depth += (char in "<([{") - (char in ">)]}")
        if char == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return parts


def _argument(node: Node) -> list[str]:
    if node.kind != "TemplateArgument":
        return []
    if node.get("isPack"):
        return [text for child in node.inner for text in _argument(child)]
    if "value" in node.data:
        return [str(node.get("value"))]
    if "type" in node.data:
        return [node.type_text]
    return [text for child in node.inner for text in _argument(child)] or ["?"]


def _is_local(kind: CType) -> bool:
    """True if the type holds a record, whose name may mean another one elsewhere in the same scope."""
    parts: tuple[CType, ...] = ()
    if isinstance(kind, Pointer):
        parts = (kind.pointee,)
    elif isinstance(kind, Reference):
        parts = (kind.target,)
    elif isinstance(kind, Array):
        parts = (kind.element,)
    elif isinstance(kind, Function):
        parts = (kind.result, *kind.parameters)
    return isinstance(kind, Record) or any(_is_local(part) for part in parts)


def _alignment(node: Node) -> int:
    values = [constant_value(child) or 1 for child in node.children("AlignedAttr")]
    return max(values, default=1)


def _qualifiers(text: str, position: int) -> int:
    while match := QUALIFIERS.match(text, position):
        position = match.end()
    while position < len(text) and text[position] == " ":
        position += 1
    return position


def _is_nested(text: str, position: int) -> bool:
    rest = text[position + 1 :].lstrip()
    return rest.startswith(("*", "&", "(*", "(&"))


def _closing(text: str, position: int) -> int:
    depth = 0
    for i in range(position, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    raise UnknownTypeError(f"type {text!r} is not supported")


def _split_name(name: str) -> tuple[list[str], str | None]:
    """``a::b<c>::d<e>`` as the path a, b<c>, d and the last arguments e."""
    parts, depth, start = [], 0, 0
    for position, char in enumerate(name):
        depth += (char in "<(") - (char in ">)")
        if depth == 0 and name[position : position + 2] == "::":
            parts.append(name[start:position])
            start = position + 2
    last = name[start:]
    arguments = None
    if last.endswith(">") and "<" in last:
        cut = last.index("<")
        last, arguments = last[:cut], last[cut + 1 : -1]
    return [*parts, last], arguments


def _path(node: Node) -> list[str]:
    kinds = ("NamespaceDecl", "CXXRecordDecl", "ClassTemplateSpecializationDecl")
    names = [a.name for a in node.ancestors() if a.kind in kinds]
    return [name for name in reversed(names) if name]


def _suffix_matches(path: list[str], wanted: list[str]) -> bool:
    plain = [part.split("<")[0] for part in wanted]
    return not plain or path[-len(plain) :] == plain
