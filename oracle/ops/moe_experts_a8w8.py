"""Fused experts on 8-bit codes: a scale per token and channel, or per block; the intermediate is quantised anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.dynamic_quant import Least, OfZero, dynamic_scale
from oracle.ops.moe_experts import Activation, Intermediate, Weighted, halves_fit
from oracle.ops.moe_quantised_parts import activated_rows, blocks_fit, by_slot, missing, spread, summed_rows
from oracle.signature import Array, DtypeOf, Floats, Integers, Output
from oracle.vocabulary import coded

CODES = ("float8_e4m3fnuz", "float8_e4m3fn", "int8")


def _scales(middle: Any, topk_ids: Array, to: str, block: str, least: float, of_zero: str) -> Array:
    """Scales (tokens, k, blocks) of rows (tokens · k, inner), as float32 numbers; anything where an id is -1."""
    scale = dynamic_scale(middle, to, block, least, of_zero)
    rounded: Array = coded(by_slot(scale, topk_ids), "float32", free=missing(topk_ids, scale.shape[1]))
    return rounded


def _codes(middle: Any, topk_ids: Array, scale: Any, to: str, block: int) -> Array:
    """Codes (tokens, k, inner) of rows (tokens · k, inner), from scales that were returned, one for ``block``."""
    columns = middle.shape[1]
    known = np.where(missing(topk_ids, scale.shape[2]), 1.0, scale)
    codes: Array = coded(by_slot(middle, topk_ids) / spread(known, block, columns), to, free=missing(topk_ids, columns))
    return codes


@operator(family="moe", check=halves_fit, dtypes=CODES)
def fused_experts_a8w8(
    hidden: Annotated[Array, Floats("tokens width")],
    hidden_scale: Annotated[Array, Floats("tokens", dtype="float32")],
    w_gate_up: Annotated[Array, Floats("experts two_inner width")],
    w_gate_up_scale: Annotated[Array, Floats("experts two_inner", dtype="float32")],
    w_down: Annotated[Array, Floats("experts width inner")],
    w_down_scale: Annotated[Array, Floats("experts width", dtype="float32")],
    topk_ids: Annotated[Array, Integers("tokens k", below="experts", low=-1)],
    topk_weights: Annotated[Array, Floats("tokens k", dtype="float32")],
    *,
    activation: Activation = "silu",
    weighted: Weighted = "output",
    halves: Intermediate = "compute",
    intermediate: Intermediate = "compute",
    least: Least = 0.0,
    of_zero: OfZero = "one",
    out_dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16",
    dtype: Annotated[str, DtypeOf("hidden")],
) -> Annotated[Array, Output("middle_scale", dtype="float32")]:
    """Routed experts on 8-bit codes: ``out[t] = Σ_j weight[t, j] · down_e(Q(act(gate_e x[t]) · up_e x[t]))``.

    e is id[t, j]; x and the weights are codes times scales, one per token and per output channel; Q quantises each row
    of the intermediate by a scale of its own.

    Parameters
    ----------
    hidden : array (tokens, width)
        Codes of the layer's input: float8_e4m3fn, float8_e4m3fnuz or int8; no NaN, nor among scales that are read.
    hidden_scale : float32 array (tokens,)
        What a token's codes are multiplied by. One scale for a whole tensor is a repeated one.
    w_gate_up : array (experts, two_inner, width)
        Codes of the first weights: inner rows of gate, then inner rows of up; hidden's dtype.
    w_gate_up_scale : float32 array (experts, two_inner)
        A scale for each output channel.
    w_down : array (experts, width, inner)
        Codes of the second weights; hidden's dtype.
    w_down_scale : float32 array (experts, width)
        A scale for each output channel.
    topk_ids : int32 or int64 array (tokens, k)
        Experts of each token; -1 for one that is computed elsewhere and adds nothing here.
    topk_weights : float32 array (tokens, k)
        Weight of each expert's output; not read where the id is -1.
    activation : "silu", "gelu" or "swiglu_oai"
        As in `fused_experts`.
    weighted : "output" or "input"
        Whether the weight multiplies the second product or the first one (AITER's doweight_stage1, vLLM's
        apply_router_weight_on_input).
    halves, intermediate : "compute", "bfloat16" or "float16"
        What the first product and its activation are rounded to on their way: nothing, or the dtype in which kernels
        store them. vLLM's Triton kernels store both; AITER's two stages the activation.
    least : float
        Lower limit of the intermediate's scales: 0 in AITER, 1 / (512 · largest) in vLLM.
    of_zero : "one" or "least"
        Scale of a row of zeros: 1 (AITER's reference), or ``least`` like that of any other row.
    out_dtype : "bfloat16", "float16" or "float32"
        The output's dtype.

    Returns
    -------
    middle_scale : float32 array (tokens, k, 1)
        max(max|row| / largest, least) of each slot's row; anything where the id is -1.
    middle : array (tokens, k, inner)
        Q(row / scale) in hidden's dtype, judged from the scale that was returned; anything where the id is -1.
    out : array (tokens, width)
        ``out_dtype``; judged from the intermediate that was returned. 0 for a token none of whose experts is here.

    Notes
    -----
    Rounding points: both products as in `matmul_a8w8`, in which a weight is one more scale; the activation; ``halves``
    and ``intermediate``; the scale in float32; the codes once, to nearest, ties to even, saturated; the sum over a
    token's experts in the compute type, in any order; the result once to ``out_dtype``.

    Raises
    ------
    InputError
        w_gate_up does not have twice w_down's inner rows, an id outside -1 … experts - 1, shapes or dtypes that
        disagree.

    Source: AITER, ``fused_moe`` with per_Token quantisation; vLLM, ``fused_experts`` with use_fp8_w8a8 or
    use_int8_w8a8 and per_channel_quant.

    Examples
    --------
    >>> x, up, down = np.array([[10]], np.int8), np.array([[[10], [127]]], np.int8), np.array([[[2]]], np.int8)
    >>> one, weight = np.ones((1, 1), np.float32), np.array([[0.5]], np.float32)
    >>> both = np.array([[1.0, 0.5]], np.float32)
    >>> scale, middle, out = fused_experts_a8w8(x, one[0], up, both, down, one, np.array([[0]]), weight)
    >>> scale.tolist(), middle.tolist(), out.tolist()  # 100 · 635 = 500 · 127
    ([[[500.0]]], [[[127.0]]], [[63500.0]])
    """
    params = {"activation": activation, "weighted": weighted, "halves": halves, "intermediate": intermediate}
    middle = _a8w8_middle(hidden, hidden_scale, w_gate_up, w_gate_up_scale, topk_ids, topk_weights, params)
    return _scales(middle, topk_ids, dtype, "token", least, of_zero)


def _a8w8_middle(
    hidden: Any, scale: Any, weight: Any, weight_scale: Any, ids: Array, weights: Any, params: Mapping[str, Any]
) -> Any:
    factors = scale[:, np.newaxis], weight_scale[:, :, np.newaxis]
    return activated_rows(hidden, factors[0], weight, factors[1], None, ids, weights, params)


@fused_experts_a8w8.stage
def a8w8_middle(
    hidden: Array,
    hidden_scale: Array,
    w_gate_up: Array,
    w_gate_up_scale: Array,
    topk_ids: Array,
    topk_weights: Array,
    middle_scale: Array,
    *,
    activation: Activation,
    weighted: Weighted,
    halves: Intermediate,
    intermediate: Intermediate,
    dtype: Annotated[str, DtypeOf("hidden")],
) -> Annotated[Array, Output("middle", like="hidden")]:
    """The intermediate's codes, from the scales that were returned."""
    params = {"activation": activation, "weighted": weighted, "halves": halves, "intermediate": intermediate}
    middle = _a8w8_middle(hidden, hidden_scale, w_gate_up, w_gate_up_scale, topk_ids, topk_weights, params)
    return _codes(middle, topk_ids, middle_scale, dtype, middle.shape[1])


@fused_experts_a8w8.stage
def a8w8_out(
    w_down: Array,
    w_down_scale: Array,
    topk_ids: Array,
    topk_weights: Array,
    middle_scale: Array,
    middle: Array,
    *,
    weighted: Weighted,
) -> Annotated[Array, Output("out", chosen_by="out_dtype")]:
    """The second product and the sum over experts, from the intermediate that was returned."""
    rows, inner = topk_ids.size, w_down.shape[2]
    codes, factor = middle.reshape(rows, inner), middle_scale.reshape(rows, 1)
    out: Array = summed_rows(
        codes, factor, w_down, w_down_scale[:, :, np.newaxis], None, topk_ids, topk_weights, weighted
    )
    return out


def _blocks_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    return blocks_fit(sizes, params["block"])


@operator(family="moe", check=_blocks_fit, dtypes=CODES)
def fused_experts_a8w8_block_scaled(
    hidden: Annotated[Array, Floats("tokens width")],
    hidden_scale: Annotated[Array, Floats("tokens width_blocks", dtype="float32")],
    w_gate_up: Annotated[Array, Floats("experts two_inner width")],
    w_gate_up_scale: Annotated[Array, Floats("experts two_inner_blocks width_blocks", dtype="float32")],
    w_down: Annotated[Array, Floats("experts width inner")],
    w_down_scale: Annotated[Array, Floats("experts width_blocks inner_blocks", dtype="float32")],
    topk_ids: Annotated[Array, Integers("tokens k", below="experts", low=-1)],
    topk_weights: Annotated[Array, Floats("tokens k", dtype="float32")],
    *,
    activation: Activation = "silu",
    weighted: Weighted = "output",
    halves: Intermediate = "compute",
    intermediate: Intermediate = "compute",
    block: Literal[128, 64, 32] = 128,
    least: Least = 0.0,
    of_zero: OfZero = "one",
    out_dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16",
    dtype: Annotated[str, DtypeOf("hidden")],
) -> Annotated[Array, Output("middle_scale", dtype="float32")]:
    """Routed experts on codes in blocks: ``out[t] = Σ_j weight[t, j] · down_e(Q(act(gate_e x[t]) · up_e x[t]))``.

    As `fused_experts_a8w8`, with a scale for each 1 × B of activations and each B × B of weights; Q quantises each
    1 × B of the intermediate by a scale of its own.

    Parameters
    ----------
    hidden, w_gate_up, w_down, topk_ids, topk_weights
        As in `fused_experts_a8w8`.
    hidden_scale : float32 array (tokens, width_blocks)
        A scale for each 1 × B of hidden; the last block may be a part of one.
    w_gate_up_scale : float32 array (experts, two_inner_blocks, width_blocks)
        A scale for each B × B of w_gate_up. Blocks run over gate and up together; libraries want B to divide inner.
    w_down_scale : float32 array (experts, width_blocks, inner_blocks)
        A scale for each B × B of w_down.
    activation, weighted, halves, intermediate, least, of_zero, out_dtype
        As in `fused_experts_a8w8`.
    block : 128, 64 or 32
        B. Models and libraries have 128 throughout.

    Returns
    -------
    middle_scale : float32 array (tokens, k, inner_blocks)
        max(max|part| / largest, least) of each 1 × B of a slot's row; anything where the id is -1.
    middle : array (tokens, k, inner)
        Q(part / scale) in hidden's dtype, judged from the scale that was returned; anything where the id is -1.
    out : array (tokens, width)
        ``out_dtype``; judged from the intermediate that was returned. 0 for a token none of whose experts is here.

    Notes
    -----
    Rounding points: as in `fused_experts_a8w8`, where a block's sum may be multiplied by its scales before it is added.

    Raises
    ------
    InputError
        The scales' blocks do not cover their dimensions, w_gate_up does not have twice w_down's inner rows, an id
        outside -1 … experts - 1, shapes or dtypes that disagree.

    Source: DeepSeek-AI, "DeepSeek-V3 Technical Report" (2024), section 3.3; AITER, ``fused_moe`` with per_128x128
    quantisation; vLLM, ``fused_experts`` with block_shape=[128, 128].

    Examples
    --------
    >>> x, up, down = np.array([[10]], np.int8), np.array([[[10], [127]]], np.int8), np.array([[[2]]], np.int8)
    >>> one, weight = np.ones((1, 1), np.float32), np.array([[0.5]], np.float32)
    >>> half = np.full((1, 1, 1), 0.5, np.float32)
    >>> given = x, one, up, half, down, 2 * half, np.array([[0]]), weight
    >>> scale, middle, out = fused_experts_a8w8_block_scaled(*given)
    >>> scale.tolist(), middle.tolist(), out.tolist()  # 50 · 635 = 250 · 127
    ([[[250.0]]], [[[127.0]]], [[31750.0]])
    """
    params = {"activation": activation, "weighted": weighted, "halves": halves, "intermediate": intermediate}
    middle = _block_middle(hidden, hidden_scale, w_gate_up, w_gate_up_scale, topk_ids, topk_weights, block, params)
    return _scales(middle, topk_ids, dtype, f"1x{block}", least, of_zero)


def _tiles(scale: Any, block: int, weight: Any) -> Any:
    """A scale for each element of the weights (experts, rows, columns)."""
    return spread(spread(scale, block, weight.shape[1], axis=-2), block, weight.shape[2])


def _block_middle(
    hidden: Any, scale: Any, weight: Any, weight_scale: Any, ids: Array, weights: Any, block: int, params: Any
) -> Any:
    factor = spread(scale, block, hidden.shape[1])
    return activated_rows(hidden, factor, weight, _tiles(weight_scale, block, weight), None, ids, weights, params)


@fused_experts_a8w8_block_scaled.stage
def block_scaled_middle(
    hidden: Array,
    hidden_scale: Array,
    w_gate_up: Array,
    w_gate_up_scale: Array,
    topk_ids: Array,
    topk_weights: Array,
    middle_scale: Array,
    *,
    activation: Activation,
    weighted: Weighted,
    halves: Intermediate,
    intermediate: Intermediate,
    block: Literal[128, 64, 32],
    dtype: Annotated[str, DtypeOf("hidden")],
) -> Annotated[Array, Output("middle", like="hidden")]:
    """The intermediate's codes, from the scales that were returned."""
    params = {"activation": activation, "weighted": weighted, "halves": halves, "intermediate": intermediate}
    middle = _block_middle(hidden, hidden_scale, w_gate_up, w_gate_up_scale, topk_ids, topk_weights, block, params)
    return _codes(middle, topk_ids, middle_scale, dtype, block)


@fused_experts_a8w8_block_scaled.stage
def block_scaled_out(
    w_down: Array,
    w_down_scale: Array,
    topk_ids: Array,
    topk_weights: Array,
    middle_scale: Array,
    middle: Array,
    *,
    weighted: Weighted,
    block: Literal[128, 64, 32],
) -> Annotated[Array, Output("out", chosen_by="out_dtype")]:
    """The second product and the sum over experts, from the intermediate that was returned."""
    rows, inner = topk_ids.size, w_down.shape[2]
    factor = spread(middle_scale.reshape(rows, middle_scale.shape[2]), block, inner)
    codes, tiles = middle.reshape(rows, inner), _tiles(w_down_scale, block, w_down)
    out: Array = summed_rows(codes, factor, w_down, tiles, None, topk_ids, topk_weights, weighted)
    return out
