"""Operators along a sequence with a state: causal convolutions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.attention_parts import segments
from oracle.signature import Array, Floats, InputError, Integers, Output
from oracle.vocabulary import accumulate, sigmoid


def _past_fits(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if sizes["width"] == 0:
        return "width = 0; give at least one tap"
    if sizes["past"] != sizes["width"] - 1:
        return f"state holds {sizes['past']} inputs; width = {sizes['width']} taps need {sizes['width'] - 1}"
    return None


def occupied(slots: Array, operator: str) -> tuple[Array, Array]:
    """Which sequences have a slot, and which one; no slot may be named twice."""
    here = np.flatnonzero(slots >= 0)
    used = slots[here]
    if len(np.unique(used)) < len(used):
        raise InputError(f"{operator}: slots = {slots.tolist()} names a slot twice; each sequence has its own")
    return here, used


def _convolved(known: Any, weight: Any, bias: Any, activation: str) -> Any:
    """The convolution of (batch, dim, past + length), where each output sees the inputs up to its own."""
    width = weight.shape[-1]
    length = known.shape[-1] - width + 1
    windows = np.stack([known[..., tap : tap + length] for tap in range(width)], axis=-1)
    sums = windows @ weight[:, :, np.newaxis]
    if bias is not None:
        sums = accumulate(sums, bias[:, np.newaxis, np.newaxis])
    out = sums[..., 0]
    return out * sigmoid(out) if activation == "silu" else out


@operator(family="recurrent", check=_past_fits)
def causal_conv1d(
    x: Annotated[Array, Floats("batch dim length")],
    weight: Annotated[Array, Floats("dim width")],
    state: Annotated[Array, Floats("batch dim past")],
    bias: Annotated[Array, Floats("dim")] | None = None,
    fresh: Annotated[Array, Integers("batch", below=2)] | None = None,
    *,
    activation: Literal["none", "silu"] = "none",
) -> tuple[Annotated[Array, Output("out", like="x")], Annotated[Array, Output("final_state", like="x")]]:
    """Depthwise causal convolution: ``out[b, d, t] = act(Σ_j weight[d, j] · x[b, d, t + j - (width - 1)] + bias[d])``.

    Inputs before the first are those of ``state``.

    Parameters
    ----------
    x : array (batch, dim, length)
        Sequences, one channel after the other; float16, bfloat16, float32 or float64.
    weight : array (dim, width)
        Taps of each channel, the oldest input's first; x's dtype.
    state : array (batch, dim, past)
        The width - 1 inputs before the first, oldest first; x's dtype.
    bias : array (dim,), optional
        Added to every sum; x's dtype.
    fresh : int32 or int64 array (batch,), optional
        1 where a sequence begins here: its state counts as 0 and is not read (vLLM: ``has_initial_state`` is False).
    activation : "none" or "silu"
        What the sum goes through.

    Returns
    -------
    out : array (batch, dim, length)
        x's dtype.
    final_state : array (batch, dim, past)
        The last width - 1 inputs, those of the state included where x is shorter; copies, bit for bit.

    Notes
    -----
    Rounding points: the products and additions, bias included, in the compute type and any order; the activation; the
    result once to x's dtype. The sum is not rounded before the activation.

    Raises
    ------
    InputError
        No taps, a state that does not hold width - 1 inputs, or shapes and dtypes that disagree.

    Source: Gu and Dao, "Mamba" (2023), section 3.4; Dao-AILab, ``causal_conv1d_fn``.

    Examples
    --------
    >>> x, state = np.array([[[1.0, 2.0, 3.0]]]), np.array([[[10.0]]])
    >>> causal_conv1d(x, np.array([[1.0, 100.0]]), state, np.array([0.5]))
    (array([[[110.5, 201.5, 302.5]]]), array([[[3.]]]))
    """
    if fresh is not None:
        state = np.where(fresh[:, np.newaxis, np.newaxis] == 1, 0.0, state)
    known = np.concatenate([state, x], axis=-1)
    return _convolved(known, weight, bias, activation), known[..., x.shape[-1] :]


@operator(family="recurrent", check=_past_fits)
def causal_conv1d_update(
    x: Annotated[Array, Floats("batch dim steps")],
    weight: Annotated[Array, Floats("dim width")],
    state: Annotated[Array, Floats("slots dim past")],
    slots: Annotated[Array, Integers("batch", below="slots", low=-1)],
    bias: Annotated[Array, Floats("dim")] | None = None,
    *,
    activation: Literal["none", "silu"] = "none",
) -> tuple[Annotated[Array, Output("out", like="x")], Annotated[Array, Output("new_state", like="x")]]:
    """A few steps of a causal convolution: ``out = act(conv([state[slot], x]))``, ``state[slot] = last inputs``.

    Parameters
    ----------
    x : array (batch, dim, steps)
        The new inputs, usually one; float16, bfloat16, float32 or float64.
    weight : array (dim, width)
        Taps of each channel, the oldest input's first; x's dtype.
    state : array (slots, dim, past)
        The last width - 1 inputs of every sequence that is kept, oldest first; x's dtype.
    slots : int32 or int64 array (batch,)
        Slot of each sequence (vLLM: ``conv_state_indices``), no slot twice; -1 for padding.
    bias : array (dim,), optional
        Added to every sum; x's dtype.
    activation : "none" or "silu"
        What the sum goes through.

    Returns
    -------
    out : array (batch, dim, steps)
        x's dtype; 0 for padding (vLLM leaves it unwritten).
    new_state : array (slots, dim, past)
        The state with the slots of these sequences moved on; all others as they were, bit for bit.

    Notes
    -----
    Rounding points: as of `causal_conv1d`.

    Raises
    ------
    InputError
        A slot that is named twice or outside the state, no taps, or a state that does not hold width - 1 inputs.

    Source: Dao-AILab, ``causal_conv1d_update``; AITER, ``causal_conv1d_update`` with its pad_slot -1.

    Examples
    --------
    >>> x, state = np.array([[[3.0]], [[9.0]]]), np.array([[[1.0, 2.0]], [[5.0, 6.0]]])
    >>> causal_conv1d_update(x, np.array([[100.0, 10.0, 1.0]]), state, np.array([0, -1]))
    (array([[[123.]],
    <BLANKLINE>
           [[  0.]]]), array([[[2., 3.]],
    <BLANKLINE>
           [[5., 6.]]]))
    """
    here, used = occupied(slots, "causal_conv1d_update")
    known = np.concatenate([state[used], x[here]], axis=-1)
    out: Any = np.zeros_like(x)
    out[here] = _convolved(known, weight, bias, activation)
    new_state: Any = state.copy()
    new_state[used] = known[..., x.shape[-1] :]
    return out, new_state


def _packed_fits(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if sizes["boundaries"] != sizes["batch"] + 1:
        return f"cu_seqlens holds {sizes['boundaries']} boundaries; batch = {sizes['batch']} sequences need one more"
    return _past_fits(sizes, params)


@operator(family="recurrent", check=_packed_fits)
def causal_conv1d_varlen(
    x: Annotated[Array, Floats("dim tokens")],
    weight: Annotated[Array, Floats("dim width")],
    state: Annotated[Array, Floats("slots dim past")],
    cu_seqlens: Annotated[Array, Integers("boundaries", dtype="int32")],
    slots: Annotated[Array, Integers("batch", below="slots", low=-1)],
    bias: Annotated[Array, Floats("dim")] | None = None,
    fresh: Annotated[Array, Integers("batch", below=2)] | None = None,
    *,
    activation: Literal["none", "silu"] = "none",
) -> tuple[Annotated[Array, Output("out", like="x")], Annotated[Array, Output("new_state", like="x")]]:
    """`causal_conv1d` of packed sequences: ``out[:, s] = act(conv([state[slot], x[:, s]]))`` for each sequence s.

    Parameters
    ----------
    x : array (dim, tokens)
        Sequences end to end, one channel after the other; float16, bfloat16, float32 or float64.
    weight : array (dim, width)
        Taps of each channel, the oldest input's first; x's dtype.
    state : array (slots, dim, past)
        The width - 1 inputs before the first of every sequence that is kept, oldest first; x's dtype.
    cu_seqlens : int32 array (boundaries,)
        Sequence s has tokens ``cu_seqlens[s]`` up to, not including, ``cu_seqlens[s + 1]``: rising from 0 to tokens
        (vLLM: ``query_start_loc``).
    slots : int32 or int64 array (batch,)
        Slot of each sequence (vLLM: ``cache_indices``), no slot twice; -1 for padding.
    bias : array (dim,), optional
        Added to every sum; x's dtype.
    fresh : int32 or int64 array (batch,), optional
        1 where a sequence begins here: its state counts as 0 and is not read (vLLM: ``has_initial_state`` is False).
    activation : "none" or "silu"
        What the sum goes through.

    Returns
    -------
    out : array (dim, tokens)
        x's dtype; 0 for padding (vLLM leaves it unwritten).
    new_state : array (slots, dim, past)
        The state with the slots of these sequences moved on; all others as they were, bit for bit.

    Notes
    -----
    Rounding points: as of `causal_conv1d`.

    Raises
    ------
    InputError
        Boundaries that do not rise from 0 to tokens, a slot that is named twice or outside the state, no taps, or a
        state that does not hold width - 1 inputs.

    Source: vLLM, ``causal_conv1d_fn``; Dao-AILab, ``causal_conv1d_varlen_states``.

    Examples
    --------
    >>> x, state = np.array([[1.0, 2.0, 3.0]]), np.array([[[10.0]], [[20.0]]])
    >>> taps, boundaries = np.array([[1.0, 100.0]]), np.array([0, 1, 3], np.int32)
    >>> causal_conv1d_varlen(x, taps, state, boundaries, np.array([1, 0]))
    (array([[120., 210., 302.]]), array([[[3.]],
    <BLANKLINE>
           [[1.]]]))
    """
    sequences = segments(cu_seqlens, x.shape[-1], "cu_seqlens")
    here, used = occupied(slots, "causal_conv1d_varlen")
    out: Any = np.zeros_like(x)
    new_state: Any = state.copy()
    for s, slot in zip(here, used, strict=True):
        before = np.zeros_like(state[slot]) if fresh is not None and fresh[s] else state[slot]
        known = np.concatenate([before, x[:, sequences[s]]], axis=-1)
        out[:, sequences[s]] = _convolved(known[np.newaxis], weight, bias, activation)[0]
        new_state[slot] = known[:, known.shape[-1] - state.shape[-1] :]
    return out, new_state
