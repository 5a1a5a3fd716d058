"""C++ types as clang prints them, and what the names in them mean where they stand."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from refsim.frontends.cuda_cpp.tree import Node, Tree
from refsim.frontends.cuda_cpp.types import (
    _BUILT_IN,
    SCALARS,
    Array,
    CType,
    Function,
    Layout,
    Leaf,
    Pointer,
    Qualified,
    Record,
    Reference,
    Scalar,
    UnknownTypeError,
    Void,
)
from refsim.frontends.cuda_cpp.written_values import value_of

QUALIFIERS = re.compile(
    r"\s*(const|volatile|restrict|__restrict|__restrict__|struct|class|union|enum|typename|"
    r"__attribute__\(\([^()]*(?:\([^()]*\))?\)\))(?![\w])"
)
NAME = re.compile(r"[A-Za-z_~]\w*")
TRANSFORM = re.compile(r"(__decay|__underlying_type|__make_unsigned|__make_signed)\((.*)\)$")
CONSTANT = re.compile(r"\b(const|volatile)\b")
TRAILING = re.compile(r"^auto (\(.*\)[^()]*?) -> (.+)$")
INTEGER = re.compile(r"-?\d+[uUlL]*$")


class TypeNames:
    """Reads type texts."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.scopes: list[Node] = []
        self._named_values: dict[str, set[int]] | None = None
        self._layouts: dict[str, Layout] = {}
        self._leaves: dict[CType, tuple[Leaf, ...]] = {}
        self._parsed: dict[Any, CType] = {}
        self._arguments: dict[str, list[str]] = {}
        self._uses_names = False
        self._qualified = False
        self.evaluate: Callable[[Node], int | None] = lambda node: None

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
        found = None if self._qualified else _BUILT_IN.get(text)
        if found is not None:
            return found
        key = (text, self._qualified, *[scope.id for scope in self.scopes[-3:]])
        found = self._parsed.get(key)
        if found is None:
            outer, self._uses_names = self._uses_names, False
            text = TRAILING.sub(r"\2 \1", text.replace(" noexcept(false)", ""))
            if "::*" in text:
                raise UnknownTypeError(f"a pointer to member ({text}) is not supported")
            position, found = self._base(text, 0)
            position, found = self._declarator(text, position, found)
            if text[position:].strip(" )") not in ("", "noexcept", "const", "const noexcept", "mutable"):
                raise UnknownTypeError(f"type {text!r} is not supported")
            if not self._uses_names and not self._qualified:
                _BUILT_IN[text] = found
            elif not _is_local(found):
                self._parsed[key] = found
            self._uses_names = outer or self._uses_names
        return found

    def _base(self, text: str, position: int) -> tuple[int, CType]:
        """The part of a type before ``*``, ``&``, ``[`` and ``(``."""
        first = position
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
        words = re.split(r"\s+(?![^<(]*[>)])", name.strip())
        bare = " ".join(word for word in words if word not in ("const", "volatile"))
        kind = self._named(bare.removesuffix(" __restrict"))
        return position, self._with(kind, text[first:start] + " ".join(words[1:]))

    def _with(self, kind: CType, qualifiers: str) -> CType:
        """The type with its const or volatile, where template arguments are told apart."""
        if not self._qualified or isinstance(kind, Qualified) or not CONSTANT.search(qualifiers):
            return kind
        return Qualified(kind)

    def _declarator(self, text: str, position: int, kind: CType) -> tuple[int, CType]:
        start, position = position, _qualifiers(text, position)
        kind = self._with(kind, text[start:position])
        while position < len(text) and text[position] in "*&":
            if text[position] == "*":
                kind, position = Pointer(kind), position + 1
            else:
                kind = kind if isinstance(kind, Reference) else Reference(kind)
                position += 2 if text[position : position + 2] == "&&" else 1
            start, position = position, _qualifiers(text, position)
            kind = self._with(kind, text[start:position])
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
            if isinstance(element, Reference):  # of a structured binding, where clang leaves out the parentheses
                return end, Reference(Array(element.target, count))
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
        owner = unqualified(self.read("::".join(path[:-1])))
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
            kind = unqualified(self.read(base["type"].get("desugaredQualType") or base["type"]["qualType"]))
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
        parameters = [c for c in alias.inner if c.kind in ("TemplateTypeParmDecl", "NonTypeTemplateParmDecl")]
        pattern = alias.children("TypeAliasDecl")[-1].type_text
        values = dict(zip([c.name for c in parameters], (argument.strip() for argument in arguments)))
        if parameters and parameters[-1].get("isParameterPack"):
            name = parameters[-1].name
            rest = ", ".join(argument.strip() for argument in arguments[len(parameters) - 1 :])
            pattern = re.sub(rf"(,? *)\b{re.escape(name)}\.\.\.", rf"\g<1>{rest}" if rest else "", pattern)
            values.pop(name, None)
        if values:
            words = "|".join(map(re.escape, values))
            pattern = re.sub(rf"\b({words})\b", lambda match: values[match[1]], pattern)
        self.scopes.append(alias)
        try:
            return self.read(pattern)
        finally:
            self.scopes.pop()

    def _transformed(self, name: str, argument: str) -> CType:
        kind = unqualified(self.read(argument))
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
            if len(candidates) > 1:
                exact = [node for node in candidates if len(self.template_arguments(node)) == len(wanted)]
                candidates = exact or [node for node in candidates if self._rest_is_default(node, wanted)] or candidates
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

    def _rest_is_default(self, node: Node, wanted: list[str]) -> bool:
        """True if the arguments that are not written are the template's defaults."""
        have = self.template_arguments(node)
        kinds = ("TemplateTypeParmDecl", "NonTypeTemplateParmDecl")
        parameters = node.parent.children(*kinds) if node.parent is not None else []
        values = {parameter.name: text for parameter, text in zip(parameters, have)}
        for parameter, text in list(zip(parameters, have))[len(wanted) :]:
            defaults = parameter.children("TemplateArgument")
            if not defaults:
                return False
            if parameter.kind == "TemplateTypeParmDecl":
                written = re.sub(NAME, lambda match: values.get(match[0], match[0]), defaults[0].type_text)
                if not self._same(written, text):
                    return False
            else:
                value = self.evaluate(defaults[0].inner[0]) if defaults[0].inner else None
                if value is None or not INTEGER.match(text) or (value - int(text)) % 2**64:
                    return False
        return True

    def _same(self, written: str, declared: str) -> bool:
        written, declared = written.strip(), declared.strip()
        if written == declared:
            return True
        if INTEGER.match(declared):
            if INTEGER.match(written):
                return (int(written.rstrip("uUlL")) - int(declared)) % 2**64 == 0
            value = value_of(written, self._value_of_name)
            if value is not None:
                # clang keeps a true bool as -1
                return value == int(declared) or (int(declared) == -1 and value == 1)
            named = self._enumerators().get(written.rsplit("::", 1)[-1])
            return named is None or int(declared) in named
        outer, self._qualified = self._qualified, True
        try:
            return self.read(written) == self.read(declared)
        except UnknownTypeError:
            return False
        finally:
            self._qualified = outer

    def _value_of_name(self, name: str) -> int | None:
        """Value of a variable template with arguments, or of a static member: ``is_same_v<A, B>``, ``T<A>::value``."""
        path, arguments = _split_name(name)
        if arguments is not None:
            wanted = split_list(arguments)
            for node in self.tree.declarations.values():
                if node.kind == "VarTemplateSpecializationDecl" and node.name == path[-1] and self._fits(node, wanted):
                    return self._initial_value(node)
        elif len(path) > 1 and "<" in name:
            try:
                owner = unqualified(self.read("::".join(path[:-1])))
            except UnknownTypeError:
                return None
            parts = [owner] if isinstance(owner, Record) else []
            while parts:
                record = self.record(parts.pop())
                for child in record.children("VarDecl"):
                    if child.name == path[-1]:
                        return self._initial_value(child)
                for base in record.get("bases") or ():
                    kind = self.read(base["type"].get("desugaredQualType") or base["type"]["qualType"])
                    parts += [kind] if isinstance(kind, Record) else []
        return None

    def _fits(self, node: Node, wanted: list[str]) -> bool:
        have = self.template_arguments(node)
        return len(have) == len(wanted) and all(self._same(a, b) for a, b in zip(wanted, have))

    def _initial_value(self, node: Node) -> int | None:
        for child in node.inner:
            if not child.kind.endswith(("Attr", "Decl", "TemplateArgument")):
                return self.evaluate(child)
        return None

    def _enumerators(self) -> dict[str, set[int]]:
        """Values of all enumerators by name."""
        if self._named_values is None:
            self._named_values = {}
            for node in self.tree.declarations.values():
                value = -1
                for constant in node.children("EnumConstantDecl") if node.kind == "EnumDecl" else ():
                    written = constant_value(constant)
                    value = value + 1 if written is None else written
                    self._named_values.setdefault(constant.name, set()).add(value)
        return self._named_values

    def template_arguments(self, node: Node) -> list[str]:
        """Template arguments of a specialisation, packs spread out, as texts."""
        if node.id not in self._arguments:
            self._arguments[node.id] = [text for child in node.inner for text in _argument(child)]
        return self._arguments[node.id]

    def _declared(self, node: Node) -> CType:
        if node.kind in ("TypedefDecl", "TypeAliasDecl"):
            unnamed = self._named_by_typedef(node)
            if unnamed is not None:
                return self._declared(unnamed)
            self.scopes.append(node)
            try:
                return self.of(node)
            finally:
                self.scopes.pop()
        if node.kind == "EnumDecl":
            return Scalar(f"enum {node.name}", self.enumeration(node))
        return Record(node.id, self.record_name(node))

    def _named_by_typedef(self, node: Node) -> Node | None:
        """The record or enumeration without a name that ``typedef struct { ... } Name`` names: it prints as `Name`."""
        if node.type_text.split()[-1:] != [node.name]:
            return None
        for part in node.walk():
            declared = part.get("decl") or part.get("ownedTagDecl") or {}
            found = self.tree.declaration(str(declared.get("id", "")))
            if found is not None and found.kind in ("CXXRecordDecl", "EnumDecl"):
                return found
        return None

    def enumeration(self, node: Node) -> str:
        """Dialect type of an enumeration: the fixed one, else int if a value is negative, else unsigned."""
        fixed = node.get("fixedUnderlyingType")
        if fixed:
            kind = unqualified(self.read(fixed.get("desugaredQualType") or fixed["qualType"]))
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

    def record(self, kind: Record) -> Node:
        """Declaration of a record."""
        node = self.tree.declaration(kind.id)
        assert node is not None
        return node


def unqualified(kind: CType) -> CType:
    """The type without an outer const or volatile."""
    return kind.kind if isinstance(kind, Qualified) else kind


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
    kind = unqualified(kind)
    if isinstance(kind, Pointer):
        parts = (kind.pointee,)
    elif isinstance(kind, Reference):
        parts = (kind.target,)
    elif isinstance(kind, Array):
        parts = (kind.element,)
    elif isinstance(kind, Function):
        parts = (kind.result, *kind.parameters)
    return isinstance(kind, Record) or any(_is_local(part) for part in parts)


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
