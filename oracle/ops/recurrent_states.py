"""Linear recurrences with a matrix or a vector as state: the gated delta rule and the selective scan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from oracle.operator import operator
from oracle.ops.recurrent_chunks import delta_rule_in_chunks, scan_in_chunks
from oracle.signature import Array, Floats, Output
from oracle.vocabulary import chain, chunk_operand, in_chunks, rsqrt, scaled, sigmoid, softplus

DTYPES = ("float16", "bfloat16", "float32")


def _has_keys(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    return None if sizes["key_dim"] else "key_dim = 0 has no scale; give at least one"


@operator(family="recurrent", check=_has_keys, dtypes=DTYPES)
def gated_delta_rule(
    q: Annotated[Array, Floats("batch heads steps key_dim")],
    k: Annotated[Array, Floats("batch heads steps key_dim")],
    v: Annotated[Array, Floats("batch heads steps v_dim")],
    g: Annotated[Array, Floats("batch heads steps", dtype="float32")],
    beta: Annotated[Array, Floats("batch heads steps", dtype="float32")],
    state: Annotated[Array, Floats("batch heads key_dim v_dim", dtype="float32")],
    *,
    normalise: bool = False,
) -> tuple[Annotated[Array, Output("out", like="q")], Annotated[Array, Output("final_state", dtype="float32")]]:
    """Gated delta rule, step by step: ``S ← exp(g) S``, ``S ← S + β k (v - Sᵀk)ᵀ``, ``out = Sᵀq / √key_dim``.

    Parameters
    ----------
    q, k : array (batch, heads, steps, key_dim)
        Queries and keys; float16, bfloat16 or float32.
    v : array (batch, heads, steps, v_dim)
        Values; q's dtype.
    g : float32 array (batch, heads, steps)
        Log of the decay, at most 0.
    beta : float32 array (batch, heads, steps)
        Strength of each update, 0 … 1.
    state : float32 array (batch, heads, key_dim, v_dim)
        S before the first step.
    normalise : bool
        Whether q and k are divided by √(Σ x² + 1e-6) first.

    Returns
    -------
    out : array (batch, heads, steps, v_dim)
        q's dtype.
    final_state : float32 array (batch, heads, key_dim, v_dim)
        S after the last step.

    Notes
    -----
    Rounding points: every product, sum and exponential in the compute type; the state stays there from step to step;
    ``out`` once to q's dtype. Kernels that solve for several steps at once (FLA's ``chunk_gated_delta_rule``: 64) keep
    another arithmetic, which is a freedom that they must declare (``float32_chunked``): sums of g and exponentials of
    their differences, the products of keys, the inverse of a triangular matrix, and sums over the chunk; FLA rounds
    what these hand on to q's dtype as well (``bfloat16_chunked``).

    Raises
    ------
    InputError
        key_dim of 0, or shapes and dtypes that disagree.

    Source: Yang et al., "Gated Delta Networks" (2024), equation 10; AITER, ``fused_split_gdr_update``.

    Examples
    --------
    >>> one, half = np.ones((1, 1, 1, 1), np.float32), np.full((1, 1, 1), 0.5, np.float32)
    >>> out, final = gated_delta_rule(one, one, 5 * one, 0 * half, half, one)
    >>> out.item(), final.item()
    (3.0, 3.0)
    """
    scale = q.shape[-1] ** -0.5
    if normalise:
        q = q * rsqrt(np.sum(q * q, axis=-1, keepdims=True) + 1e-6)
        k = k * rsqrt(np.sum(k * k, axis=-1, keepdims=True) + 1e-6)
    units = (chunk_operand(q), chunk_operand(k)) if normalise else (q, k)
    start, out = state, np.zeros_like(v)
    for t in range(q.shape[2]):
        key, query = k[:, :, t : t + 1], q[:, :, t : t + 1]
        decayed = state * np.exp(g[:, :, t])[:, :, np.newaxis, np.newaxis]
        error = v[:, :, t : t + 1] - key @ decayed
        state = decayed + chain(np.swapaxes(key, -1, -2), error, beta[:, :, t, np.newaxis, np.newaxis])
        out[:, :, t : t + 1] = scaled(query @ state, scale)
    return in_chunks(
        (out, state), lambda size: delta_rule_in_chunks(units[0], units[1], v, g, beta, start, scale, size), q.shape[2]
    )


def scanned(
    x: Any, dt: Any, a: Any, b: Any, c: Any, state: Any, d: Any, dt_bias: Any, z: Any, dt_softplus: bool
) -> tuple[Any, Any]:
    """The selective scan of sequences of one length: outputs, and the state after the last step."""
    step = dt if dt_bias is None else dt + dt_bias[:, np.newaxis]
    if dt_softplus:
        step = softplus(step)
    start, out = state, np.zeros_like(x)
    decays, additions = [], []
    for t in range(x.shape[-1]):
        now = step[..., t, np.newaxis]
        decays.append(np.exp(now * a))
        additions.append(chain(now, b[:, np.newaxis, :, t], x[..., t, np.newaxis]))
        state = state * decays[t] + additions[t]
        out[..., t] = (state @ c[:, :, t, np.newaxis])[..., 0]
    out, state = in_chunks((out, state), lambda size: scan_in_chunks(decays, additions, c, start, size), x.shape[-1])
    if d is not None:
        out = out + x * d[:, np.newaxis]
    if z is not None:
        out = out * (z * sigmoid(z))
    return out, state


@operator(family="recurrent", dtypes=DTYPES)
def selective_scan(
    x: Annotated[Array, Floats("batch dim length")],
    dt: Annotated[Array, Floats("batch dim length")],
    a: Annotated[Array, Floats("dim n", dtype="float32")],
    b: Annotated[Array, Floats("batch n length")],
    c: Annotated[Array, Floats("batch n length")],
    state: Annotated[Array, Floats("batch dim n", dtype="float32")],
    d: Annotated[Array, Floats("dim", dtype="float32")] | None = None,
    dt_bias: Annotated[Array, Floats("dim", dtype="float32")] | None = None,
    z: Annotated[Array, Floats("batch dim length")] | None = None,
    *,
    dt_softplus: bool = False,
) -> tuple[Annotated[Array, Output("out", like="x")], Annotated[Array, Output("final_state", dtype="float32")]]:
    """Selective scan: ``h ← exp(Δ a) h + Δ b x``, ``out = (Σ_n c h + d x) · silu(z)``, step by step.

    Parameters
    ----------
    x : array (batch, dim, length)
        Input; float16, bfloat16 or float32.
    dt : array (batch, dim, length)
        Step sizes; Δ = dt + dt_bias, or softplus of that with ``dt_softplus``; x's dtype.
    a : float32 array (dim, n)
        Decay rates, below 0.
    b, c : array (batch, n, length)
        Input and output maps of each step; x's dtype.
    state : float32 array (batch, dim, n)
        h before the first step.
    d : float32 array (dim,), optional
        Share of the input that is passed on.
    dt_bias : float32 array (dim,), optional
        Added to dt.
    z : array (batch, dim, length), optional
        Gate; x's dtype.
    dt_softplus : bool
        Whether Δ is the softplus.

    Returns
    -------
    out : array (batch, dim, length)
        x's dtype.
    final_state : float32 array (batch, dim, n)
        h after the last step.

    Notes
    -----
    Rounding points: every product, sum and function in the compute type, the sum over n in any order; the state stays
    there from step to step; ``out`` once to x's dtype. Kernels that join steps in other orders (the scan of a block of
    threads, as in ``selective_scan_fn``) must declare that freedom (``float32_chunked``).

    Raises
    ------
    InputError
        Shapes or dtypes that disagree.

    Source: Gu and Dao, "Mamba" (2023), algorithm 2; ``selective_scan_ref`` of the same authors.

    Examples
    --------
    >>> one = np.ones((1, 1, 1), np.float32)
    >>> out, final = selective_scan(3 * one, 2 * one, 0 * one[0], one, one, one, np.array([10.0], np.float32))
    >>> out.item(), final.item()
    (37.0, 7.0)
    """
    return scanned(x, dt, a, b, c, state, d, dt_bias, z, dt_softplus)
