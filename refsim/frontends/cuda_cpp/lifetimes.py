"""Lifetimes: objects whose destructors do something, and where those run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from refsim.dialect import Break
from refsim.frontends.cuda_cpp.core import Scope
from refsim.frontends.cuda_cpp.objects import Objects
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.types import Array, CType, Record
from refsim.frontends.cuda_cpp.values import LValue


class Lifetimes(Objects):
    """Lifetimes of a translation: destructors leave no node in the tree where they run."""

    def has_destructor(self, kind: CType) -> bool:
        """True if the end of an object's life does something."""
        while isinstance(kind, Array):
            kind = kind.element
        if not isinstance(kind, Record):
            return False
        destructor = (self.kinds.record(kind).get("definitionData") or {}).get("dtor") or {}
        return bool(destructor.get("nonTrivial") or (destructor.get("userDeclared") and not destructor.get("trivial")))

    def refuse_destructor(self, kind: CType, what: str, node: Node | None) -> None:
        """Refuse an object with a destructor where its life has no known end."""
        if self.has_destructor(kind):
            raise self.unsupported(f"{what} with a destructor that does something", node)

    @contextmanager
    def scope(self, full_expression: bool = False) -> Iterator[Scope]:
        """Objects that are made here end here, the last one first."""
        scopes = self.frames[-1].scopes
        scope = Scope(self.out, full_expression)
        scopes.append(scope)
        try:
            yield scope
            if scope.owned and not (self.out and isinstance(self.out[-1], Break)):
                self._end(scope)
        finally:
            scopes.remove(scope)

    def own(self, place: LValue, node: Node, extended: bool = False) -> None:
        """End the life of an object where the innermost scope ends; that of an extended temporary with its block."""
        if not self.has_destructor(place.type):
            return
        fitting = [scope for scope in self.frames[-1].scopes if not (extended and scope.full_expression)]
        if not fitting or fitting[-1].out is not self.out:
            raise self.unsupported("an object with a destructor that only a part of an expression makes", node)
        fitting[-1].owned.append(place)

    def owns(self) -> bool:
        """True if leaving the current function ends the life of an object."""
        return any(scope.owned for scope in self.frames[-1].scopes)

    def disown(self, place: LValue) -> None:
        """An object that is the function's result lives on."""
        for scope in self.frames[-1].scopes:
            scope.owned = [owned for owned in scope.owned if owned is not place]

    def leave(self, depth: int) -> None:
        """Run the destructors of all scopes but the outermost ones, for a jump out of them."""
        for scope in reversed(self.frames[-1].scopes[depth:]):
            self._end(scope)

    def _end(self, scope: Scope) -> None:
        for place in reversed(scope.owned):
            self.destroy(place, place.type)

    def destroy(self, place: LValue, kind: CType) -> None:
        """Run a destructor: its body, then those of members and bases, the last one first."""
        if not self.has_destructor(kind):
            return
        if isinstance(kind, Array):
            size = self.kinds.bytes(kind.element)
            for i in reversed(range(kind.count or 0)):
                self.destroy(self.part(place, i * size, kind.element), kind.element)
            return
        assert isinstance(kind, Record)
        record = self.kinds.record(kind)
        for destructor in record.children("CXXDestructorDecl"):
            definition = self.tree.definition(destructor)
            if definition is None:
                raise self.unsupported(f"the destructor of {kind.name} has no body", destructor)
            self.set_tables(place, kind)
            self.inline(definition, place, [], definition)
        for _, offset, part in reversed(self.ask(self.kinds.layout, kind, node=record).members):
            self.destroy(self.part(place, offset, part), part)
