"""Linear recurrences solved for a chunk of steps at once, as kernels for long sequences have it."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.vocabulary import chain, chunk_operand, scaled


def delta_rule_in_chunks(q: Any, k: Any, v: Any, g: Any, beta: Any, state: Any, scale: float, size: int) -> Any:
    """Outputs and final state of the gated delta rule, `size` steps at once (Yang et al. 2024, section 3.3).

    With G the sums of g since the chunk began and S the state before it, the updates u of a chunk solve
    ``u_i = β_i (v_i - exp(G_i) Sᵀk_i - Σ_{j < i} exp(G_i - G_j) (k_i · k_j) u_j)``: a triangular system, whose
    inverse T is made row by row. Then ``u = T (β v) - T (β exp(G) k) S``. What meets in a product may be
    rounded to the keys' 16 bits before (FLA), where that is granted; the state itself stays.
    """
    out: Any = np.zeros_like(v)
    for start in range(0, q.shape[2], size):
        steps = slice(start, min(start + size, q.shape[2]))
        out[:, :, steps], state = _chunk(q[:, :, steps], k[:, :, steps], v[:, :, steps], g[:, :, steps],
                                         beta[:, :, steps], state, scale)  # fmt: skip
    return out, state


def _chunk(q: Any, k: Any, v: Any, g: Any, beta: Any, state: Any, scale: float) -> tuple[Any, Any]:
    count = q.shape[2]
    sums = np.cumsum(g, axis=-1)
    earlier = np.tri(count, k=0) != 0
    between = np.exp(np.where(earlier, sums[..., :, np.newaxis] - sums[..., np.newaxis, :], -np.inf))
    decay, strength = np.exp(sums)[..., np.newaxis], beta[..., np.newaxis]
    keys = np.swapaxes(k, -1, -2)
    system = chain(k @ keys, between, strength)
    inverse: Any = np.zeros_like(system)
    inverse[..., 0, 0] = 1.0
    for i in range(1, count):
        inverse[..., i, :i] = -(system[..., i : i + 1, :i] @ inverse[..., :i, :i])[..., 0, :]
        inverse[..., i, i] = 1.0
    inverse, before = chunk_operand(inverse), chunk_operand(state)
    from_values = chunk_operand(inverse @ chunk_operand(v * strength))
    from_state = chunk_operand(inverse @ chunk_operand(chain(k, strength, decay)))
    updates = from_values - from_state @ before
    seen = chunk_operand((q @ keys) * between)
    out = scaled(q @ before, scale) * decay + scaled(seen @ chunk_operand(updates), scale)
    left = np.exp(sums[..., -1:] - sums)[..., np.newaxis]
    new = state * decay[:, :, -1:] + keys @ chunk_operand(updates * left)
    return out, new


def scan_in_chunks(decays: list[Any], additions: list[Any], maps: Any, state: Any, size: int) -> tuple[Any, Any]:
    """Outputs and final state of a selective scan whose steps are joined within chunks of `size`, in any order.

    The state is a sum over the steps of the chunk: what each of them added, times the product of all later decays.
    """
    outputs, terms = [], [state]
    for t, (decay, added) in enumerate(zip(decays, additions, strict=True)):
        terms = [state] if t % size == 0 else terms
        terms = [*(term * decay for term in terms), added]
        state = np.sum(np.stack(terms), axis=0)
        outputs.append((state @ maps[:, :, t, np.newaxis])[..., 0])
    return np.stack(outputs, axis=-1), state
