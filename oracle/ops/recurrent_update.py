"""One step of a selective scan for sequences whose states are kept in slots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from oracle.operator import operator
from oracle.ops.recurrent import occupied
from oracle.signature import Array, Floats, Integers, Output
from oracle.vocabulary import chain, sigmoid, softplus

STATES = ("float32", "bfloat16", "float16")


def _groups_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    heads, groups = sizes["heads"], sizes["groups"]
    return None if groups and heads % groups == 0 else f"heads = {heads} must be a multiple of groups = {groups}"


@operator(family="recurrent", check=_groups_fit, dtypes=("float16", "bfloat16", "float32"))
def selective_state_update(
    state: Annotated[Array, Floats("slots heads head_dim n", dtype=STATES)],
    x: Annotated[Array, Floats("batch heads head_dim")],
    dt: Annotated[Array, Floats("batch heads head_dim")],
    a: Annotated[Array, Floats("heads head_dim n", dtype="float32")],
    b: Annotated[Array, Floats("batch groups n")],
    c: Annotated[Array, Floats("batch groups n")],
    slots: Annotated[Array, Integers("batch", below="slots", low=-1)],
    d: Annotated[Array, Floats("heads head_dim", dtype="float32")] | None = None,
    dt_bias: Annotated[Array, Floats("heads head_dim", dtype="float32")] | None = None,
    z: Annotated[Array, Floats("batch heads head_dim")] | None = None,
    *,
    dt_softplus: bool = False,
) -> tuple[Annotated[Array, Output("out", like="x")], Annotated[Array, Output("new_state", like="state")]]:
    """One step of a selective scan: ``h ← exp(Δ a) h + Δ b x``, ``out = (Σ_n c h + d x) · silu(z)``, h = state[slot].

    Parameters
    ----------
    state : array (slots, heads, head_dim, n)
        h of every sequence that is kept; float32, bfloat16 or float16, whatever x's dtype.
    x : array (batch, heads, head_dim)
        Input; float16, bfloat16 or float32.
    dt : array (batch, heads, head_dim)
        Step sizes; Δ = dt + dt_bias, or softplus of that with ``dt_softplus``; x's dtype. Mamba-2 has one per head,
        repeated.
    a : float32 array (heads, head_dim, n)
        Decay rates, below 0. Mamba-2 has one per head, repeated.
    b, c : array (batch, groups, n)
        Input and output maps of the step, each for heads / groups heads in a row; x's dtype.
    slots : int32 or int64 array (batch,)
        Slot of each sequence (``state_batch_indices``), no slot twice; -1 for padding.
    d : float32 array (heads, head_dim), optional
        Share of the input that is passed on.
    dt_bias : float32 array (heads, head_dim), optional
        Added to dt.
    z : array (batch, heads, head_dim), optional
        Gate; x's dtype.
    dt_softplus : bool
        Whether Δ is the softplus.

    Returns
    -------
    out : array (batch, heads, head_dim)
        x's dtype; 0 for padding.
    new_state : array (slots, heads, head_dim, n)
        The state with the slots of these sequences moved on, in state's dtype; all others as they were, bit for bit.

    Notes
    -----
    Rounding points: every product, sum and function in the compute type, the sum over n in any order; the new state
    once to its dtype, ``out`` from the state before that, once to x's dtype.

    Raises
    ------
    InputError
        Heads that groups do not divide, a slot that is named twice or outside the state, or shapes and dtypes that
        disagree.

    Source: Gu and Dao, "Mamba" (2023), algorithm 2, and "Mamba-2" (2024), section 7; ``selective_state_update_ref`` of
    the same authors; FlashInfer, ``selective_state_update``.

    Examples
    --------
    >>> one, slots = np.ones((1, 1, 1), np.float32), np.array([1])
    >>> state, d = np.array([5.0, 1.0], np.float32).reshape(2, 1, 1, 1), 10 * one[0]
    >>> out, new = selective_state_update(state, 3 * one, 2 * one, 0 * one, one, one, slots, d)
    >>> out.item(), new.ravel().tolist()
    (37.0, [5.0, 7.0])
    """
    here, used = occupied(slots, "selective_state_update")
    step = dt[here] if dt_bias is None else dt[here] + dt_bias
    if dt_softplus:
        step = softplus(step)
    group = np.arange(x.shape[1]) // (x.shape[1] // b.shape[1]) if x.shape[1] else np.zeros(0, np.int64)
    into, out_of = b[here][:, group, np.newaxis], c[here][:, group, :, np.newaxis]
    moved = state[used] * np.exp(step[..., np.newaxis] * a) + chain(
        step[..., np.newaxis], into, x[here][..., np.newaxis]
    )
    result = (moved @ out_of)[..., 0]
    if d is not None:
        result = result + x[here] * d
    if z is not None:
        gate = z[here]
        result = result * (gate * sigmoid(gate))
    out: Any = np.zeros_like(x)
    out[here] = result
    new_state: Any = state.copy()
    new_state[used] = moved
    return out, new_state
