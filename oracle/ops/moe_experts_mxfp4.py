"""Fused experts with MXFP4 weights: under MXFP4 or MXFP8 activations, and under 16-bit ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.moe_experts import Activation, Intermediate, Weighted
from oracle.ops.moe_quantised_parts import activated_rows, blocks_fit, by_slot, missing, spread, summed_rows
from oracle.ops.quant_blocks import in_blocks
from oracle.ops.quant_mx import Mode, mx_scale
from oracle.signature import Array, DtypeOf, Floats, Integers, Output
from oracle.vocabulary import coded

BLOCK = 32


def _blocks_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    return blocks_fit(sizes, BLOCK)


@operator(family="moe", check=_blocks_fit, dtypes=("float8_e5m2", "float4_e2m1fn", "float8_e4m3fn"))
def fused_experts_mxfp4(
    hidden: Annotated[Array, Floats("tokens width")],
    hidden_scale: Annotated[Array, Floats("tokens width_blocks", dtype="float8_e8m0fnu")],
    w_gate_up: Annotated[Array, Floats("experts two_inner width", dtype="float4_e2m1fn")],
    w_gate_up_scale: Annotated[Array, Floats("experts two_inner width_blocks", dtype="float8_e8m0fnu")],
    w_down: Annotated[Array, Floats("experts width inner", dtype="float4_e2m1fn")],
    w_down_scale: Annotated[Array, Floats("experts width inner_blocks", dtype="float8_e8m0fnu")],
    topk_ids: Annotated[Array, Integers("tokens k", below="experts", low=-1)],
    topk_weights: Annotated[Array, Floats("tokens k", dtype="float32")],
    gate_up_bias: Annotated[Array, Floats("experts two_inner", dtype="float32")] | None = None,
    down_bias: Annotated[Array, Floats("experts width", dtype="float32")] | None = None,
    *,
    activation: Activation = "swiglu_oai",
    weighted: Weighted = "output",
    halves: Intermediate = "compute",
    intermediate: Intermediate = "compute",
    mode: Mode = "up",
    out_dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16",
    dtype: Annotated[str, DtypeOf("hidden")],
) -> Annotated[Array, Output("middle_scale", dtype="float8_e8m0fnu")]:
    """Routed experts, MXFP4 weights: ``out[t] = Σ_j weight[t, j] · (down_e(Q(act(gate_e x[t]) · up_e x[t])) + b_e)``.

    e is id[t, j]; x and the weights are elements times powers of two, one for 32 elements along a row; Q quantises the
    intermediate to x's format. float4_e2m1fn for x is called a4w4, float8 a8w4.

    Parameters
    ----------
    hidden : array (tokens, width)
        Elements of the layer's input, one each (two e2m1 codes per byte are packing): float4_e2m1fn, float8_e4m3fn or
        float8_e5m2.
    hidden_scale : float8_e8m0fnu array (tokens, width_blocks)
        A power of two for each 32 elements of a row; the last block may be a part of one.
    w_gate_up : float4_e2m1fn array (experts, two_inner, width)
        First weights: inner rows of gate, then inner rows of up.
    w_gate_up_scale : float8_e8m0fnu array (experts, two_inner, width_blocks)
        A power of two for each 32 elements of a row.
    w_down : float4_e2m1fn array (experts, width, inner)
        Second weights.
    w_down_scale : float8_e8m0fnu array (experts, width, inner_blocks)
        A power of two for each 32 elements of a row.
    topk_ids : int32 or int64 array (tokens, k)
        Experts of each token; -1 for one that is computed elsewhere and adds nothing here.
    topk_weights : float32 array (tokens, k)
        Weight of each expert's output; not read where the id is -1.
    gate_up_bias, down_bias : float32 arrays (experts, two_inner), (experts, width), optional
        Added to the first and to the second product of an expert, the second before the weight (gpt-oss).
    activation, weighted, halves, intermediate, out_dtype
        As in `fused_experts_a8w8`. A weight of the input multiplies the product, before the bias.
    mode : "up", "floor", "ceil" or "even"
        How the intermediate's scales become powers of two, as in `quantise_mx`: ``up`` in AITER, ``even`` on gfx950,
        ``floor`` in the OCP specification.

    Returns
    -------
    middle_scale : float8_e8m0fnu array (tokens, k, inner_blocks)
        One for 32 elements of each slot's row; anything where the id is -1.
    middle : array (tokens, k, inner)
        Q(part / scale) in hidden's dtype, judged from the scale that was returned; anything where the id is -1.
    out : array (tokens, width)
        ``out_dtype``; judged from the intermediate that was returned. 0 for a token none of whose experts is here.

    Notes
    -----
    Rounding points: both products as in `matmul_a4w4_mxfp4`, the biases and weights in the compute type; the
    activation; ``halves`` and ``intermediate``; the codes once, to nearest, ties to even, saturated; the sum over a
    token's experts in the compute type, in any order; the result once to ``out_dtype``.

    Raises
    ------
    InputError
        The scales' blocks do not cover their dimensions, w_gate_up does not have twice w_down's inner rows, an id
        outside -1 … experts - 1, shapes or dtypes that disagree.

    Source: OCP Microscaling Formats Specification 1.0; AITER, ``fused_moe`` with per_1x32 quantisation (a4w4, a8w4);
    vLLM and FlashInfer, MXFP4 experts of gpt-oss with MXFP8 activations.

    Examples
    --------
    >>> import ml_dtypes
    >>> four, power = ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu
    >>> x, up = np.array([[4]]).astype(four), np.array([[[3], [1]]]).astype(four)
    >>> one, four_times = np.ones((1, 2, 1)).astype(power), np.full((1, 1, 1), 4.0).astype(power)
    >>> down, weight = np.array([[[2]]]).astype(four), np.array([[0.5]], np.float32)
    >>> given = x, one[0, :1], up, one, down, four_times, np.array([[0]]), weight
    >>> scale, middle, out = fused_experts_mxfp4(*given, gate_up_bias=np.array([[88.0, 0.0]], np.float32))
    >>> scale.tolist(), middle.tolist(), out.tolist()  # 7 · (4 + 1) = 35, about 4 · 8
    ([[[8.0]]], [[[4.0]]], [[128.0]])
    """
    params = {"activation": activation, "weighted": weighted, "halves": halves, "intermediate": intermediate}
    middle = _middle(hidden, hidden_scale, w_gate_up, w_gate_up_scale, gate_up_bias, topk_ids, topk_weights, params)
    largest = np.max(in_blocks(np.abs(middle), "1x32"), axis=(1, 3), initial=0.0)
    scale: Array = mx_scale(by_slot(largest, topk_ids), dtype, mode, free=missing(topk_ids, largest.shape[1]))
    return scale


def _middle(
    hidden: Any, scale: Any, weight: Any, weight_scale: Any, bias: Any, ids: Array, weights: Any, params: Any
) -> Any:
    factors = spread(scale, BLOCK, hidden.shape[1]), spread(weight_scale, BLOCK, weight.shape[2])
    return activated_rows(hidden, factors[0], weight, factors[1], bias, ids, weights, params)


@fused_experts_mxfp4.stage
def mxfp4_middle(
    hidden: Array,
    hidden_scale: Array,
    w_gate_up: Array,
    w_gate_up_scale: Array,
    topk_ids: Array,
    topk_weights: Array,
    gate_up_bias: Array | None,
    middle_scale: Array,
    *,
    activation: Activation,
    weighted: Weighted,
    halves: Intermediate,
    intermediate: Intermediate,
    dtype: Annotated[str, DtypeOf("hidden")],
) -> Annotated[Array, Output("middle", like="hidden")]:
    """The intermediate's elements, from the scales that were returned; anything under a scale that is NaN."""
    params = {"activation": activation, "weighted": weighted, "halves": halves, "intermediate": intermediate}
    rows = _middle(hidden, hidden_scale, w_gate_up, w_gate_up_scale, gate_up_bias, topk_ids, topk_weights, params)
    elsewhere = missing(topk_ids, rows.shape[1])
    scale = spread(np.where(missing(topk_ids, middle_scale.shape[2]), 1.0, middle_scale), BLOCK, rows.shape[1])
    codes: Array = coded(by_slot(rows, topk_ids) / scale, dtype, free=elsewhere | np.isnan(scale))
    return codes


@fused_experts_mxfp4.stage
def mxfp4_out(
    w_down: Array,
    w_down_scale: Array,
    topk_ids: Array,
    topk_weights: Array,
    down_bias: Array | None,
    middle_scale: Array,
    middle: Array,
    *,
    weighted: Weighted,
) -> Annotated[Array, Output("out", chosen_by="out_dtype")]:
    """The second product and the sum over experts, from the intermediate that was returned."""
    slots, inner = topk_ids.size, w_down.shape[2]
    factor = spread(middle_scale, BLOCK, inner).reshape(slots, inner)
    weight_factor = spread(w_down_scale, BLOCK, inner)
    rows = middle.reshape(slots, inner)
    out: Array = summed_rows(rows, factor, w_down, weight_factor, down_bias, topk_ids, topk_weights, weighted)
    return out


@operator(family="moe", check=_blocks_fit, dtypes=("float16", "bfloat16", "float32"))
def fused_experts_w4a16_mxfp4(
    hidden: Annotated[Array, Floats("tokens width")],
    w_gate_up: Annotated[Array, Floats("experts two_inner width", dtype="float4_e2m1fn")],
    w_gate_up_scale: Annotated[Array, Floats("experts two_inner width_blocks", dtype="float8_e8m0fnu")],
    w_down: Annotated[Array, Floats("experts width inner", dtype="float4_e2m1fn")],
    w_down_scale: Annotated[Array, Floats("experts width inner_blocks", dtype="float8_e8m0fnu")],
    topk_ids: Annotated[Array, Integers("tokens k", below="experts", low=-1)],
    topk_weights: Annotated[Array, Floats("tokens k", dtype="float32")],
    gate_up_bias: Annotated[Array, Floats("experts two_inner", dtype="float32")] | None = None,
    down_bias: Annotated[Array, Floats("experts width", dtype="float32")] | None = None,
    *,
    activation: Activation = "swiglu_oai",
    weighted: Weighted = "output",
    halves: Intermediate = "compute",
    intermediate: Intermediate = "compute",
) -> Annotated[Array, Output("out", like="hidden")]:
    """Routed experts, MXFP4 weights only: ``out[t] = Σ_j weight[t, j] · (down_e(act(gate_e x[t]) · up_e x[t]) + b_e)``.

    Parameters
    ----------
    hidden : array (tokens, width)
        Input x of the layer; float16, bfloat16 or float32; it is not quantised.
    w_gate_up, w_gate_up_scale, w_down, w_down_scale, topk_ids, topk_weights, gate_up_bias, down_bias, activation
        As in `fused_experts_mxfp4`.
    weighted, halves, intermediate
        As in `fused_experts_a8w8`; the intermediate is not quantised.

    Returns
    -------
    out : array (tokens, width)
        hidden's dtype. 0 for a token none of whose experts is here.

    Notes
    -----
    Rounding points: the products, with exact weights; the biases, the activation and the weighting, and the sum over a
    token's experts, in any order, in the compute type; ``halves`` and ``intermediate`` as they say; the result once to
    hidden's dtype.

    Raises
    ------
    InputError
        The scales' blocks do not cover their dimensions, w_gate_up does not have twice w_down's inner rows, an id
        outside -1 … experts - 1, shapes or dtypes that disagree.

    Source: OpenAI, gpt-oss (2025), MLPBlock of its reference implementation; AITER, ``fused_moe`` (a16w4); vLLM's
    Marlin experts.

    Examples
    --------
    >>> import ml_dtypes
    >>> four, power = ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu
    >>> up, down = np.array([[[3], [1]]]).astype(four), np.array([[[2]]]).astype(four)
    >>> one, weight = np.ones((1, 2, 1)).astype(power), np.array([[0.5]], np.float32)
    >>> given = np.array([[4.0]], np.float32), up, one, down, one[:, :1], np.array([[0]]), weight
    >>> fused_experts_w4a16_mxfp4(*given, np.array([[88.0, 0.0]], np.float32)).round(3)  # 7 · (4 + 1) · 2 / 2
    array([[35.]])
    """
    params = {"activation": activation, "weighted": weighted, "halves": halves, "intermediate": intermediate}
    factor, down_factor = (
        spread(scale, BLOCK, weight.shape[2])
        for scale, weight in ((w_gate_up_scale, w_gate_up), (w_down_scale, w_down))
    )
    rows = activated_rows(hidden, None, w_gate_up, factor, gate_up_bias, topk_ids, topk_weights, params)
    out: Array = summed_rows(rows, None, w_down, down_factor, down_bias, topk_ids, topk_weights, weighted)
    return out
