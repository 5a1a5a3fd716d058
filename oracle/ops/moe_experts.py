"""The experts of a mixture of experts: two-stage feed-forward networks, and the sum over a token's experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, Integers, Output
from oracle.vocabulary import erf, round_to_format, sigmoid

Activation: TypeAlias = Literal["silu", "gelu", "swiglu_oai"]
Weighted: TypeAlias = Literal["output", "input"]
Intermediate: TypeAlias = Literal["compute", "bfloat16", "float16"]


def halves_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if sizes["two_inner"] == 2 * sizes["inner"]:
        return None
    return f"w_gate_up has {sizes['two_inner']} rows per expert; w_down's inner = {sizes['inner']} asks for twice that"


def activated(gate: Any, up: Any, activation: str) -> Any:
    """The gated activation of both halves of the first product."""
    if activation == "swiglu_oai":
        gate, up = np.minimum(gate, 7.0), np.clip(up, -7.0, 7.0)
        return gate * sigmoid(1.702 * gate) * (up + 1.0)
    if activation == "gelu":
        return 0.5 * gate * (1.0 + erf(gate * 0.5**0.5)) * up
    return gate * sigmoid(gate) * up


def gated_rows(x: Any, w_gate_up: Any, w_down: Any, activation: str, intermediate: str) -> Any:
    """One feed-forward network of rows x: down(act(gate x) · up x)."""
    inner = w_down.shape[-1]
    both = x @ w_gate_up.T
    middle = activated(both[:, :inner], both[:, inner:], activation)
    if intermediate != "compute":
        middle = round_to_format(middle, intermediate)
    return middle @ w_down.T


def routed_rows(
    hidden: Any,
    w_gate_up: Any,
    w_down: Any,
    topk_ids: Array,
    topk_weights: Any,
    activation: str,
    weighted: str,
    intermediate: str,
) -> Any:
    """What each expert makes of its tokens: (tokens, k, width); 0 where the id is -1. Weights on inputs only."""
    results: Any = np.zeros_like(hidden, shape=(*topk_ids.shape, hidden.shape[1]))
    for expert in range(len(w_down)):
        rows, slots = np.nonzero(topk_ids == expert)
        if len(rows):
            x = hidden[rows]
            if weighted == "input":
                x = x * topk_weights[rows, slots][:, np.newaxis]
            results[rows, slots] = gated_rows(x, w_gate_up[expert], w_down[expert], activation, intermediate)
    return results


@operator(family="moe", check=halves_fit)
def fused_experts(
    hidden: Annotated[Array, Floats("tokens width")],
    w_gate_up: Annotated[Array, Floats("experts two_inner width")],
    w_down: Annotated[Array, Floats("experts width inner")],
    topk_ids: Annotated[Array, Integers("tokens k", below="experts", low=-1)],
    topk_weights: Annotated[Array, Floats("tokens k", dtype="float32")],
    shared: Annotated[Array, Floats("tokens width")] | None = None,
    *,
    activation: Activation = "silu",
    weighted: Weighted = "output",
    intermediate: Intermediate = "compute",
) -> Annotated[Array, Output("out", like="hidden")]:
    """Routed feed-forward networks: ``out[t] = Σ_j weight[t, j] · down_e(act(gate_e x[t]) · up_e x[t])``, e = id[t, j].

    Parameters
    ----------
    hidden : array (tokens, width)
        Input x of the layer; float16, bfloat16, float32 or float64.
    w_gate_up : array (experts, two_inner, width)
        First weights of each expert: inner rows of gate, then inner rows of up; hidden's dtype.
    w_down : array (experts, width, inner)
        Second weights; hidden's dtype.
    topk_ids : int32 or int64 array (tokens, k)
        Experts of each token; -1 for one that is computed elsewhere and adds nothing here.
    topk_weights : float32 array (tokens, k)
        Weight of each expert's output; not read where the id is -1.
    shared : array (tokens, width), optional
        Output of shared experts, added with weight 1; hidden's dtype.
    activation : "silu", "gelu" or "swiglu_oai"
        silu(gate) · up; gelu(gate) · up with erf; or gate · sigmoid(1.702 gate) · (up + 1) with gate at most 7 and up
        within ±7 (gpt-oss).
    weighted : "output" or "input"
        Whether the weight multiplies the expert's output, or its input (Llama 4; vLLM's apply_router_weight_on_input,
        AITER's doweight_stage1).
    intermediate : "compute", "bfloat16" or "float16"
        What the activated intermediate is rounded to between the two products: nothing (one kernel), or the dtype in
        which two-stage kernels store it.

    Returns
    -------
    out : array (tokens, width)
        hidden's dtype. A token none of whose experts is here has 0, or ``shared``.

    Notes
    -----
    Rounding points: both products with sums in any order, the activation, the weighting and the sum over a token's
    experts, in the compute type; the intermediate as ``intermediate`` says; the result once to hidden's dtype.
    Weights of an expert that nobody chose are not read, nor are those of a slot with id -1.

    Raises
    ------
    InputError
        w_gate_up does not have twice w_down's inner rows, an id outside -1 … experts - 1, shapes or dtypes that
        disagree.

    Source: Shazeer, "GLU Variants Improve Transformer" (2020), equation 5; Jiang et al., "Mixtral of Experts" (2024),
    section 2.1.

    Examples
    --------
    >>> gate_up, down = np.array([[[0.0], [8.0]], [[4.0], [5.0]]]), np.array([[[1.0]], [[0.5]]])
    >>> fused_experts(np.array([[10.0]]), gate_up, down, np.array([[1]]), np.array([[0.1]], np.float32)).round(6)
    array([[100.000001]])
    """
    results = routed_rows(hidden, w_gate_up, w_down, topk_ids, topk_weights, activation, weighted, intermediate)
    if weighted == "output":
        results = results * np.where(topk_ids >= 0, topk_weights, 0.0)[:, :, np.newaxis]
    if shared is not None:
        results = np.concatenate([results, shared[:, np.newaxis]], axis=1)
    out: Array = np.sum(results, axis=1)
    return out


@operator(family="moe")
def moe_sum(
    x: Annotated[Array, Floats("tokens k width")],
    topk_ids: Annotated[Array, Integers("tokens k", low=-1)] | None = None,
    topk_weights: Annotated[Array, Floats("tokens k", dtype="float32")] | None = None,
) -> Annotated[Array, Output("out", like="x")]:
    """Sum over a token's experts: ``out[t] = Σ_j weight[t, j] · x[t, j]``.

    Parameters
    ----------
    x : array (tokens, k, width)
        Outputs of the experts; float16, bfloat16, float32 or float64.
    topk_ids : int32 or int64 array (tokens, k), optional
        Where it is -1, the row of x was not written and is not read.
    topk_weights : float32 array (tokens, k), optional
        Weight of each row; 1 if not given.

    Returns
    -------
    out : array (tokens, width)
        x's dtype; 0 where there is nothing to add.

    Notes
    -----
    Rounding points: products and additions in the compute type, in any order; the result once to x's dtype.

    Raises
    ------
    InputError
        Shapes or dtypes that disagree.

    Source: vLLM, ``moe_sum``; AITER, ``moe_sum`` and the weighted reduction of its two-stage experts.

    Examples
    --------
    >>> moe_sum(np.array([[[1.0, 2.0], [10.0, 20.0]]]), topk_weights=np.array([[0.5, 0.25]], np.float32))
    array([[3., 6.]])
    """
    terms = x
    if topk_ids is not None:
        terms = np.where((topk_ids >= 0)[:, :, np.newaxis], terms, 0.0)
    if topk_weights is None:
        total: Array = np.sum(terms, axis=1)
        return total
    if topk_ids is not None:
        topk_weights = np.where(topk_ids >= 0, topk_weights, 0.0)
    products: Any = terms * topk_weights[:, :, np.newaxis]
    out: Array = np.sum(products, axis=1)
    return out
