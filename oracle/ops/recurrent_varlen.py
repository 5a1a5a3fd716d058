"""The selective scan of packed sequences whose states are kept in slots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from oracle.operator import operator
from oracle.ops.attention_parts import segments
from oracle.ops.recurrent import occupied
from oracle.ops.recurrent_states import scanned
from oracle.ops.recurrent_update import STATES
from oracle.signature import Array, Floats, Integers, Output


def _one_more(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if sizes["boundaries"] == sizes["batch"] + 1:
        return None
    return f"cu_seqlens holds {sizes['boundaries']} boundaries; batch = {sizes['batch']} sequences need one more"


@operator(family="recurrent", check=_one_more, dtypes=("float16", "bfloat16", "float32"))
def selective_scan_varlen(
    x: Annotated[Array, Floats("dim tokens")],
    dt: Annotated[Array, Floats("dim tokens")],
    a: Annotated[Array, Floats("dim n", dtype="float32")],
    b: Annotated[Array, Floats("n tokens")],
    c: Annotated[Array, Floats("n tokens")],
    state: Annotated[Array, Floats("slots dim n", dtype=STATES)],
    cu_seqlens: Annotated[Array, Integers("boundaries", dtype="int32")],
    slots: Annotated[Array, Integers("batch", below="slots", low=-1)],
    d: Annotated[Array, Floats("dim", dtype="float32")] | None = None,
    dt_bias: Annotated[Array, Floats("dim", dtype="float32")] | None = None,
    z: Annotated[Array, Floats("dim tokens")] | None = None,
    fresh: Annotated[Array, Integers("batch", below=2)] | None = None,
    *,
    dt_softplus: bool = False,
) -> tuple[Annotated[Array, Output("out", like="x")], Annotated[Array, Output("new_state", like="state")]]:
    """`selective_scan` of packed sequences s: ``h ← exp(Δ a) h + Δ b x``, ``out = (Σ_n c h + d x) · silu(z)``.

    Parameters
    ----------
    x, dt : array (dim, tokens)
        Inputs and step sizes, sequences end to end; float16, bfloat16 or float32. Δ = dt + dt_bias, or softplus of
        that with ``dt_softplus``.
    a : float32 array (dim, n)
        Decay rates, below 0.
    b, c : array (n, tokens)
        Input and output maps of each step; x's dtype.
    state : array (slots, dim, n)
        h before the first step of every sequence that is kept; float32, bfloat16 or float16, whatever x's dtype.
    cu_seqlens : int32 array (boundaries,)
        Sequence s has tokens ``cu_seqlens[s]`` up to, not including, ``cu_seqlens[s + 1]``: rising from 0 to tokens
        (vLLM: ``query_start_loc``).
    slots : int32 or int64 array (batch,)
        Slot of each sequence (vLLM: ``cache_indices``), no slot twice; -1 for padding.
    d : float32 array (dim,), optional
        Share of the input that is passed on.
    dt_bias : float32 array (dim,), optional
        Added to dt.
    z : array (dim, tokens), optional
        Gate; x's dtype.
    fresh : int32 or int64 array (batch,), optional
        1 where a sequence begins here: its state counts as 0 and is not read (vLLM: ``has_initial_state`` is False).
    dt_softplus : bool
        Whether Δ is the softplus.

    Returns
    -------
    out : array (dim, tokens)
        x's dtype; 0 for padding.
    new_state : array (slots, dim, n)
        The state with the slots of these sequences moved on, in state's dtype; all others as they were, bit for bit.

    Notes
    -----
    Rounding points: as of `selective_scan`; the new state once to its dtype, after the last step.

    Raises
    ------
    InputError
        Boundaries that do not rise from 0 to tokens, a slot that is named twice or outside the state, or shapes and
        dtypes that disagree.

    Source: Gu and Dao, "Mamba" (2023), algorithm 2; vLLM, ``selective_scan_fn`` with its ``query_start_loc``.

    Examples
    --------
    >>> x, one = np.array([[3.0, 1.0, 1.0]], np.float32), np.ones((1, 3), np.float32)
    >>> still, edges, slots = np.zeros((1, 1), np.float32), np.array([0, 1, 3], np.int32), np.array([1, 0])
    >>> state = np.array([5.0, 1.0], np.float32).reshape(2, 1, 1)
    >>> selective_scan_varlen(x, one, still, one, one, state, edges, slots)[0]
    array([[4., 6., 7.]])
    """
    sequences = segments(cu_seqlens, x.shape[-1], "cu_seqlens")
    here, used = occupied(slots, "selective_scan_varlen")
    out: Any = np.zeros_like(x)
    new_state: Any = state.copy()
    for s, slot in zip(here, used, strict=True):
        before = np.zeros_like(state[slot]) if fresh is not None and fresh[s] else state[slot]
        packed = (None if one is None else one[np.newaxis, :, sequences[s]] for one in (x, dt, b, c, z))
        own_x, own_dt, own_b, own_c, own_z = packed
        result, after = scanned(
            own_x, own_dt, a, own_b, own_c, before[np.newaxis], d, dt_bias, own_z, dt_softplus
        )  # fmt: skip
        out[:, sequences[s]], new_state[slot] = result[0], after[0]
    return out, new_state
