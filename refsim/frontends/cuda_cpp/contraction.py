"""``-fmad=true``: a product, and a sum or difference of it in the same straight run of statements, rounded once.

The product may have been kept in a variable. Of two products that are added the first one is fused. That is what LLVM's
code generation for NVIDIA's and AMD's devices does; another compiler may choose otherwise.
"""

from __future__ import annotations

from dataclasses import replace

from refsim.dialect import (
    Assign,
    Binary,
    Block,
    Const,
    Expr,
    If,
    Intrinsic,
    Loop,
    Program,
    Stmt,
    Type,
    Unary,
    Var,
    walk_expressions,
)
from refsim.engine.unrolling import rewritten

KINDS = ("float32", "float64")


def contract(program: Program, types: dict[str, Type]) -> Program:
    """A program with products fused into sums; adds the variables it needs to `types`."""
    return replace(program, body=_Run(types).body(program.body))


def negative(e: Expr) -> Expr:
    """``-e``, without a second minus sign."""
    if isinstance(e, Unary) and e.op == "-":
        return e.value
    return Const(-e.value, type=e.type) if isinstance(e, Const) else Unary("-", e, type=e.type)


class _Run:
    """A straight run of statements: the products that its variables hold."""

    def __init__(self, types: dict[str, Type]) -> None:
        self.types = types
        self.products: dict[str, Binary] = {}

    def body(self, statements: list[Stmt]) -> list[Stmt]:
        out: list[Stmt] = []
        for number, s in enumerate(statements):
            s = rewritten(s, self.value) if not isinstance(s, Loop) else s
            if isinstance(s, Assign):
                s = self.assign(s, statements[number + 1 :], out)
            elif isinstance(s, If):
                s = replace(s, then=self.nested(s.then), otherwise=self.nested(s.otherwise))
            elif isinstance(s, Block):
                s = replace(s, body=self.nested(s.body))
            elif isinstance(s, Loop):
                s = replace(rewritten(s, _Run(self.types).value), body=self.nested(s.body), step=self.nested(s.step))
            if isinstance(s, (If, Block, Loop)):
                self.products.clear()
            out.append(s)
        return out

    def nested(self, statements: list[Stmt]) -> list[Stmt]:
        return _Run(self.types).body(statements)

    def assign(self, s: Assign, later: list[Stmt], out: list[Stmt]) -> Assign:
        """Note a product, its factors in variables if they are more than that."""
        product = s.value
        self.forget(s.name)
        if not _is_product(product):
            return s
        assert isinstance(product, Binary)
        if not all(isinstance(factor, (Var, Const)) for factor in (product.left, product.right)):
            if not any(_adds(statement, s.name) for statement in later):
                return s
            product = replace(product, left=self.kept(product.left, out), right=self.kept(product.right, out))
        if s.name not in _names(product):
            self.products[s.name] = product
        return replace(s, value=product)

    def kept(self, factor: Expr, out: list[Stmt]) -> Expr:
        """A factor in a variable of its own."""
        if isinstance(factor, (Var, Const)):
            return factor
        name = f"factor_{len(self.types)}"
        self.types[name] = factor.type
        out.append(Assign(name, factor))
        return Var(name, type=factor.type)

    def forget(self, name: str) -> None:
        """Drop what a new value of a variable makes untrue."""
        self.products.pop(name, None)
        for held in [held for held, product in self.products.items() if name in _names(product)]:
            del self.products[held]

    def value(self, e: Expr) -> Expr:
        """An expression with its sums of products fused."""
        e = rewritten(e, self.value)
        if not (isinstance(e, Binary) and e.op in ("+", "-") and e.type in KINDS):
            return e
        for product, other, first in ((e.left, e.right, True), (e.right, e.left, False)):
            factors = self.factors(product)
            if factors is not None:
                a, b = factors
                if e.op == "-":
                    a, other = (a, negative(other)) if first else (negative(a), other)
                return Intrinsic("fma", str(e.type), (a, b, other), type=e.type)
        return e

    def factors(self, e: Expr) -> tuple[Expr, Expr] | None:
        """The factors of a product, of a negated product, or of a variable that holds one."""
        if isinstance(e, Unary) and e.op == "-":
            inner = self.factors(e.value)
            return None if inner is None else (negative(inner[0]), inner[1])
        found = self.products.get(e.name, e) if isinstance(e, Var) else e
        return (found.left, found.right) if isinstance(found, Binary) and _is_product(found) else None


def _is_product(e: Expr) -> bool:
    return isinstance(e, Binary) and e.op == "*" and e.type in KINDS


def _names(e: Expr) -> set[str]:
    return {part.name for part in walk_expressions(e) if isinstance(part, Var)}


def _adds(s: Stmt, name: str) -> bool:
    """True if a statement adds or subtracts a variable."""
    sums = [part for part in walk_expressions(s) if isinstance(part, Binary) and part.op in ("+", "-")]
    terms = [term.value if isinstance(term, Unary) else term for part in sums for term in (part.left, part.right)]
    return any(isinstance(term, Var) and term.name == name for term in terms)
