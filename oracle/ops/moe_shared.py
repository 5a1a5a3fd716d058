"""Routed experts beside shared ones, which every token visits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.moe_experts import Activation, Intermediate, Weighted, gated_rows, halves_fit, routed_rows
from oracle.signature import Array, DtypeOf, Floats, Integers, Output, Range
from oracle.vocabulary import chain, round_to_format, sigmoid

Scaling = Annotated[float, Range(0.0, open=True)]


def _halves_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    shared = {"two_inner": sizes["two_shared"], "inner": sizes["shared_inner"]}
    problem = halves_fit(shared, params)
    return halves_fit(sizes, params) or (problem and f"of the shared experts, {problem}")


@operator(family="moe", check=_halves_fit)
def fused_experts_with_shared(
    hidden: Annotated[Array, Floats("tokens width")],
    w_gate_up: Annotated[Array, Floats("experts two_inner width")],
    w_down: Annotated[Array, Floats("experts width inner")],
    topk_ids: Annotated[Array, Integers("tokens k", below="experts", low=-1)],
    topk_weights: Annotated[Array, Floats("tokens k", dtype="float32")],
    shared_gate_up: Annotated[Array, Floats("two_shared width")],
    shared_down: Annotated[Array, Floats("width shared_inner")],
    shared_gate: Annotated[Array, Floats("width")] | None = None,
    *,
    activation: Activation = "silu",
    weighted: Weighted = "output",
    intermediate: Intermediate = "compute",
    routed_scaling: Scaling = 1.0,
    shared_scaling: Scaling = 1.0,
    parts: Literal["unrounded", "rounded"] = "unrounded",
    dtype: Annotated[str, DtypeOf("hidden")],
) -> Annotated[Array, Output("out", like="hidden")]:
    """Routed and shared experts: ``out[t] = r · Σ_j weight[t, j] · f_e(x[t]) + s · sigmoid(gate · x[t]) · f(x[t])``.

    e is id[t, j]; f_e and f are ``down(act(gate x) · up x)`` of a routed expert and of the shared ones; r and s are
    factors.

    Parameters
    ----------
    hidden, w_gate_up, w_down, topk_ids, topk_weights, activation, weighted, intermediate
        As in `fused_experts`.
    shared_gate_up : array (two_shared, width)
        First weights of the shared experts, as one network: rows of gate, then as many of up; hidden's dtype.
    shared_down : array (width, shared_inner)
        Their second weights; hidden's dtype.
    shared_gate : array (width,), optional
        What decides how much of the shared experts a token takes (Qwen2-MoE); without it all (DeepSeek, Llama 4).
    routed_scaling : float
        r, ``routed_scaling_factor`` where it is not in topk_weights (DeepSeek in vLLM); above 0.
    shared_scaling : float
        s: 1 / routed_scaling_factor in vLLM for float16, whose range r would leave; AITER's ``shared_experts_score``;
        above 0.
    parts : "unrounded" or "rounded"
        Whether both parts meet in one sum (AITER's shared experts, which are one more id), or each is rounded to
        hidden's dtype, with its factor, before they are added (vLLM, SGLang: two results of two layers).

    Returns
    -------
    out : array (tokens, width)
        hidden's dtype.

    Notes
    -----
    Rounding points: as in `fused_experts`; the gate's product with any order of sums, its sigmoid, and the products
    with both factors in any order, in the compute type; ``parts`` as it says; the result once to hidden's dtype.

    Raises
    ------
    InputError
        Weights whose halves do not fit, a factor not above 0, an id outside -1 … experts - 1, shapes or dtypes that
        disagree.

    Source: DeepSeek-AI, "DeepSeekMoE" (2024), equation 9; Qwen2 Technical Report (2024), section 2.2.2; vLLM, model
    ``deepseek_v2`` and ``qwen2_moe``.

    Examples
    --------
    >>> gate_up, down = np.array([[[8.0], [5.0]]]), np.array([[[0.5]]])
    >>> given = np.array([[10.0]]), gate_up, down, np.array([[0]]), np.array([[0.5]], np.float32), gate_up[0], down[0]
    >>> fused_experts_with_shared(*given, np.array([0.0]), routed_scaling=4.0)  # 2000 · 0.5 · 4 + 2000 · 0.5
    array([[5000.]])
    """
    results = routed_rows(hidden, w_gate_up, w_down, topk_ids, topk_weights, activation, weighted, intermediate)
    weights = np.where(topk_ids >= 0, topk_weights, 0.0)[:, :, np.newaxis]
    routed = chain(results, weights, routed_scaling) if weighted == "output" else results * routed_scaling
    own = gated_rows(hidden, shared_gate_up, shared_down, activation, intermediate)
    if shared_gate is None:
        own = own * shared_scaling
    else:
        own = chain(own, sigmoid(hidden @ shared_gate[:, np.newaxis]), shared_scaling)
    if parts == "unrounded":
        out: Array = np.sum(np.concatenate([routed, own[:, np.newaxis]], axis=1), axis=1)
        return out
    total: Array = round_to_format(np.sum(routed, axis=1), dtype) + round_to_format(own, dtype)
    return total
