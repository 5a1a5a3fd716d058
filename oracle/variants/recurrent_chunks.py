"""Variants of the gated delta rule that solve for a chunk of steps at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.arithmetic import (
    LOG2E,
    Sum,
    exp,
    exp2,
    pairwise,
    product,
    rsqrt,
    sequential,
    stored,
    strided,
    wide,
)
from oracle.variants.variant import control, mutant

F = np.float32
Solve = Callable[[Array, Array, Sum], Array]
"""From a strictly lower matrix A and right sides to the solution of (I + A) u = rights."""


def by_substitution(system: Array, rights: Array, total: Sum) -> Array:
    """One row after the other."""
    solved = rights.copy()
    for i in range(1, system.shape[-1]):
        solved[..., i : i + 1, :] -= product(system[..., i : i + 1, :i], solved[..., :i, :], total)
    return solved


def by_inverse(system: Array, rights: Array, total: Sum) -> Array:
    """The inverse by substitution, then a product."""
    return product(by_substitution(system, np.broadcast_to(np.eye(system.shape[-1], dtype=F), system.shape), total),
                   rights, total)  # fmt: skip


def by_halves(system: Array, rights: Array, total: Sum) -> Array:
    """Inverses of both halves, and what joins them; as kernels merge inverses of 16 × 16."""
    size = system.shape[-1]
    if size <= 2:
        return by_substitution(system, rights, total)
    half = size // 2
    upper = by_halves(system[..., :half, :half], rights[..., :half, :], total)
    below = rights[..., half:, :] - product(system[..., half:, :half], upper, total)
    return np.concatenate([upper, by_halves(system[..., half:, half:], below, total)], axis=-2)


def first_order(system: Array, rights: Array, total: Sum) -> Array:
    """I - A in place of the inverse."""
    return rights - product(system, rights, total)


def not_at_all(system: Array, rights: Array, total: Sum) -> Array:
    """Updates of one chunk do not see each other."""
    return rights


@dataclass(frozen=True)
class Chunks:
    """How a chunk is solved; the defaults are the definition's own way."""

    size: int = 64
    solve: Solve = by_inverse
    total: Sum = sequential
    with_exp2: bool = False
    together: bool = False
    diagonal: bool = False
    strict_out: bool = False
    late_decay: bool = False
    no_decay_within: bool = False
    state_undecayed: bool = False
    state_left_out: bool = False
    inverse_to: str = ""
    updates_to: str = ""
    short: str = ""


def _short(x: Array, name: str) -> Array:
    return round_to(x, name).astype(F) if name else x


def _chunk(given: tuple[Array, ...], state: Array, scale: Any, style: Chunks) -> tuple[Array, Array]:
    q, k, v, g, beta = given
    sums = np.cumsum(g * LOG2E if style.with_exp2 else g, axis=-1, dtype=F)
    power = exp2 if style.with_exp2 else exp
    count, keys = q.shape[2], np.swapaxes(k, -1, -2)
    upto = np.tri(count, dtype=np.bool_)
    gap = np.where(upto, sums[..., :, np.newaxis] - sums[..., np.newaxis, :], -np.inf).astype(F)
    between = np.where(upto, F(1), F(0)) if style.no_decay_within else power(gap)
    decay, strength = power(sums)[..., np.newaxis], beta[..., np.newaxis]
    if style.late_decay:
        decay = np.concatenate([np.ones_like(decay[:, :, :1]), decay[:, :, :-1]], axis=2)
    system = product(k, keys, style.total) * between * strength
    system = _short(np.tril(system, 0 if style.diagonal else -1), style.inverse_to)
    if style.together:
        rights = v * strength - product(k * (strength * decay), state, style.total)
        updates = style.solve(system, rights, style.total)
    else:
        updates = style.solve(system, v * strength, style.total) - product(
            style.solve(system, k * (strength * decay), style.total), state, style.total
        )
    updates = _short(updates, style.updates_to)
    seen = np.tril(product(q, keys, style.total) * between, -1 if style.strict_out else 0)
    before = product(q * decay, state, style.total)
    out = (0 * before if style.state_left_out else before) + product(seen, updates, style.total)
    left = power(sums[..., -1:] - sums)[..., np.newaxis]
    kept = state if style.state_undecayed else state * power(sums[..., -1:])[..., np.newaxis]
    return out * scale, kept + product(np.swapaxes(k * left, -1, -2), updates, style.total)


def _short_chunk(given: tuple[Array, ...], state: Array, scale: Any, style: Chunks) -> tuple[Array, Array]:
    """A chunk whose products take factors of 16 bits, as flash-linear-attention has it."""
    q, k, v, g, beta = given
    count, keys, total = q.shape[2], np.swapaxes(k, -1, -2), style.total
    sums = np.cumsum(g, axis=-1, dtype=F)
    gap = sums[..., :, np.newaxis] - sums[..., np.newaxis, :]
    between = exp(np.where(np.tri(count, dtype=np.bool_), gap, -np.inf).astype(F))
    decay, strength = exp(sums)[..., np.newaxis], beta[..., np.newaxis]

    def short(x: Array) -> Array:
        return _short(x, style.short)

    system = np.tril(product(k, keys, total) * between * strength, -1)
    inverse = short(by_substitution(system, np.broadcast_to(np.eye(count, dtype=F), system.shape), total))
    from_values = short(product(inverse, short(v * strength), total))
    from_state = short(product(inverse, short(k * strength * decay), total))
    before = short(state)
    updates = from_values - product(from_state, before, total)
    seen = short(np.tril(product(q, keys, total) * between, -1 if style.strict_out else 0))
    out = product(q, before, total) * decay * scale + product(seen, short(updates), total) * scale
    left = exp(sums[..., -1:] - sums)[..., np.newaxis]
    kept = state if style.state_undecayed else state * exp(sums[..., -1:])[..., np.newaxis]
    return out, kept + product(keys, short(updates * left), total)


def in_chunks(inputs: tuple[Any, ...], params: dict[str, Any], style: Chunks) -> tuple[Array, Array]:
    """The rule in float32, a chunk after the other."""
    q, k, v, g, beta, start = (wide(array) for array in inputs)
    if params["normalise"]:
        q = q * rsqrt(style.total(q * q) + F(1e-6))
        k = k * rsqrt(style.total(k * k) + F(1e-6))
        q, k = _short(q, style.short), _short(k, style.short)
    chunk = _short_chunk if style.short else _chunk
    state, out = start.copy(), np.zeros(v.shape, F)
    for first in range(0, q.shape[2], style.size):
        here = slice(first, first + style.size)
        part = q[:, :, here], k[:, :, here], v[:, :, here], g[:, :, here], beta[:, :, here]
        out[:, :, here], state = chunk(part, state, F(q.shape[-1] ** -0.5), style)
    return stored(out, inputs[2]), state


HONEST: dict[str, tuple[Chunks, str]] = {
    "chunks_of_64": (Chunks(), "Chunks of 64, by the inverse."),
    "chunks_of_16": (Chunks(size=16, total=pairwise), "Chunks of 16, sums by trees."),
    "chunks_of_4": (Chunks(size=4, solve=by_substitution), "Chunks of 4, by substitution."),
    "chunks_of_2": (Chunks(size=2, together=True, solve=by_substitution), "Chunks of 2, one right side."),
    "chunks_together": (Chunks(together=True, total=strided(32)), "One right side for values and state."),
    "chunks_by_halves": (Chunks(size=32, solve=by_halves), "Inverses are made of those of halves."),
    "chunks_by_exp2": (Chunks(size=8, with_exp2=True), "Decays are powers of two."),
}
WRONG: dict[str, tuple[Chunks, str]] = {
    "chunks_diagonal": (Chunks(solve=first_order, size=2, diagonal=True), "An update sees itself."),
    "chunks_first_order": (Chunks(solve=first_order), "The inverse ends after its first term."),
    "chunks_unsolved": (Chunks(solve=not_at_all), "Updates of one chunk do not see each other."),
    "chunks_strict_out": (Chunks(strict_out=True), "An output does not see its own update."),
    "chunks_late_decay": (Chunks(late_decay=True), "The state's decay is that of one step less."),
    "chunks_no_decay": (Chunks(no_decay_within=True), "Nothing decays within a chunk."),
    "chunks_undecayed": (Chunks(size=4, state_undecayed=True), "The state does not decay from chunk to chunk."),
    "chunks_blind": (Chunks(size=4, state_left_out=True), "Outputs do not see the state before the chunk."),
    "chunks_short_system": (Chunks(inverse_to="bfloat16"), "The triangular matrix is rounded to bfloat16."),
    "chunks_short_updates": (Chunks(updates_to="bfloat16"), "Updates are rounded to bfloat16."),
}


SHORT: dict[str, tuple[Chunks, str]] = {
    "short_chunks_of_64": (Chunks(short="bfloat16"), "Chunks of 64, with factors in bfloat16."),
    "short_chunks_of_16": (
        Chunks(size=16, short="bfloat16", total=pairwise),
        "Chunks of 16, with factors in bfloat16.",
    ),
}
WRONG_SHORT: dict[str, tuple[Chunks, str]] = {
    "short_chunks_strict_out": (Chunks(short="bfloat16", strict_out=True), "An output does not see its own update."),
    "short_chunks_undecayed": (Chunks(size=4, short="bfloat16", state_undecayed=True), "The state does not decay."),
    "short_chunks_in_8_bits": (Chunks(short="float8_e4m3fn"), "Factors are rounded to 8 bits."),
}


def _register(register: Any, name: str, style: Chunks, flaw: str, numerics: str = "float32_chunked") -> None:
    def gated_delta_rule(*inputs: Any, **params: Any) -> tuple[Array, Array]:
        return in_chunks(inputs, params, style)

    gated_delta_rule.__doc__ = flaw
    register("gated_delta_rule", name=name, numerics=numerics)(gated_delta_rule)


for _name, (_style, _flaw) in HONEST.items():
    _register(control, _name, _style, _flaw)
for _name, (_style, _flaw) in WRONG.items():
    _register(mutant, _name, _style, _flaw)
for _name, (_style, _flaw) in SHORT.items():
    _register(control, _name, _style, _flaw, "bfloat16_chunked")
for _name, (_style, _flaw) in WRONG_SHORT.items():
    _register(mutant, _name, _style, _flaw, "bfloat16_chunked")


@mutant("gated_delta_rule", numerics="float32")
def chunks_undeclared(*inputs: Any, **params: Any) -> tuple[Array, Array]:
    """Chunks of 64, by a kernel that promises to go step by step."""
    return in_chunks(inputs, params, Chunks())
