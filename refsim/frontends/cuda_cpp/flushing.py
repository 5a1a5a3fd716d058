"""``-ftz=true``: subnormal float32 numbers are taken for zeros of their sign, as operands and as results.

Where that happens is read off NVRTC's PTX, by the ``.ftz`` of its instructions: arithmetic, negation, absolute value,
comparisons, minimum and maximum, mathematical functions, and conversions to and from float32. Nothing else changes a
number: loads, stores, choices, ``copysignf``, ``truncf``, ``rintf`` and ``nextafterf``, and all other types.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from refsim.dialect import (
    INTEGERS,
    Binary,
    Block,
    Compare,
    Const,
    Convert,
    Expr,
    If,
    Intrinsic,
    Loop,
    Print,
    Program,
    Stmt,
    Unary,
)
from refsim.engine.intrinsics.approximate import flush
from refsim.engine.unrolling import rewritten

KIND = "float32"
KEPT = frozenset({"copysign", "trunc", "nextafter", "signbit", "flush", "rint"})
WIDE = frozenset({"float64", "bool"}) | INTEGERS


def flush_subnormals(program: Program) -> Program:
    """A program in which float32 operations flush subnormal numbers."""
    return replace(program, body=_body(program.body))


def _body(statements: list[Stmt]) -> list[Stmt]:
    return [_statement(s) for s in statements]


def _statement(s: Stmt) -> Stmt:
    if isinstance(s, Print):  # its parts may be texts
        return replace(s, parts=tuple(part if isinstance(part, str) else _value(part) for part in s.parts))
    s = rewritten(s, _value)
    if isinstance(s, If):
        return replace(s, then=_body(s.then), otherwise=_body(s.otherwise))
    if isinstance(s, Block):
        return replace(s, body=_body(s.body))
    if isinstance(s, Loop):
        return replace(s, body=_body(s.body), step=_body(s.step))
    return s


def _value(e: Expr) -> Expr:
    e = rewritten(e, _value)
    if isinstance(e, Binary) and e.type == KIND:
        return _flushed(replace(e, left=_flushed(e.left), right=_flushed(e.right)))
    if isinstance(e, Unary) and e.type == KIND:
        return replace(e, value=_flushed(e.value))
    if isinstance(e, Compare) and e.left.type == KIND:
        return replace(e, left=_flushed(e.left), right=_flushed(e.right))
    if isinstance(e, Convert) and e.value.type == KIND and e.type in WIDE:
        return replace(e, value=_flushed(e.value))
    if isinstance(e, Convert) and e.type == KIND and e.value.type == "float64":
        return _flushed(e)
    if isinstance(e, Intrinsic) and e.name not in KEPT:
        args = tuple(_flushed(arg) if arg.type == KIND else arg for arg in e.args)
        inner = replace(e, args=args)
        return _flushed(inner) if e.type == KIND and (e.operand == KIND or e.operand == "float64") else inner
    return e


def _flushed(e: Expr) -> Expr:
    """A float32 value without subnormal numbers."""
    if isinstance(e, Const):
        return Const(flush(np.float32(e.value)), type=KIND)
    if isinstance(e, Intrinsic) and e.name == "flush":
        return e
    return Intrinsic("flush", KIND, (e,), type=KIND)
