"""Fused experts with 4-bit integer weights under 16-bit activations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.gemm_packed import SYMMETRIC_ZERO, unpacked
from oracle.ops.moe_experts import Activation, Intermediate, Weighted
from oracle.ops.moe_quantised_parts import activated_rows, spread, summed_rows
from oracle.signature import Array, Floats, Integers, Output
from oracle.vocabulary import round_to_format


def _groups_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if sizes["width"] != 2 * sizes["half_width"]:
        return f"width = {sizes['width']} needs half as many bytes in a row of w_gate_up, not {sizes['half_width']}"
    if sizes["two_inner"] != 4 * sizes["half_inner"]:
        codes = 2 * sizes["half_inner"]
        return f"w_gate_up has {sizes['two_inner']} rows per expert; w_down's {codes} codes in a row ask for twice that"
    for dim, size in (("width", sizes["width"]), ("inner", 2 * sizes["half_inner"])):
        needed, given = -(-size // params["group"]), sizes[f"{dim}_groups"]
        if given != needed:
            return f"{dim} = {size} has {needed} groups of {params['group']}, but the scales have {given}"
    return None


@operator(family="moe", check=_groups_fit, dtypes=("float16", "bfloat16", "float32"))
def fused_experts_w4a16(
    hidden: Annotated[Array, Floats("tokens width")],
    w_gate_up: Annotated[Array, Integers("experts two_inner half_width", below=256, dtype="uint8")],
    w_gate_up_scale: Annotated[Array, Floats("experts two_inner width_groups")],
    w_down: Annotated[Array, Integers("experts width half_inner", below=256, dtype="uint8")],
    w_down_scale: Annotated[Array, Floats("experts width inner_groups")],
    topk_ids: Annotated[Array, Integers("tokens k", below="experts", low=-1)],
    topk_weights: Annotated[Array, Floats("tokens k", dtype="float32")],
    gate_up_zero: Annotated[Array, Integers("experts two_inner width_groups", below=16, dtype="uint8")] | None = None,
    down_zero: Annotated[Array, Integers("experts width inner_groups", below=16, dtype="uint8")] | None = None,
    *,
    activation: Activation = "silu",
    weighted: Weighted = "output",
    halves: Intermediate = "compute",
    intermediate: Intermediate = "compute",
    group: Literal[128, 64, 32] = 128,
    weights: Literal["exact", "float16", "bfloat16"] = "exact",
) -> Annotated[Array, Output("out", like="hidden")]:
    """Routed experts with 4-bit weights: ``out[t] = Σ_j weight[t, j] · down_e(act(gate_e x[t]) · up_e x[t])``.

    e is id[t, j]; a weight is (code - zero) · scale, with a zero point and a scale for each group along a row.

    Parameters
    ----------
    hidden : array (tokens, width)
        Input x of the layer; float16, bfloat16 or float32; it is not quantised.
    w_gate_up : uint8 array (experts, two_inner, half_width)
        First weights, codes of 0 … 15, the one with the even index in the low four bits of a byte: inner rows of gate,
        then inner rows of up.
    w_gate_up_scale : array (experts, two_inner, width_groups)
        A scale for each group of a row; hidden's dtype; the last group may be a part of one.
    w_down : uint8 array (experts, width, half_inner)
        Second weights, likewise.
    w_down_scale : array (experts, width, inner_groups)
        A scale for each group of a row; hidden's dtype.
    topk_ids, topk_weights, activation, weighted
        As in `fused_experts_a8w8`.
    gate_up_zero, down_zero : uint8 arrays (experts, two_inner, width_groups), (experts, width, inner_groups), optional
        The code that stands for 0 in each group; without it that is 8 in all of them.
    halves, intermediate
        As in `fused_experts_a8w8`; the intermediate is not quantised.
    group : 128, 64 or 32
        Codes along a row that share a scale and a zero point.
    weights : "exact", "float16" or "bfloat16"
        Whether a dequantised weight is rounded to a 16-bit dtype before it meets x, as Marlin's kernels do, as in
        `matmul_w4a16`.

    Returns
    -------
    out : array (tokens, width)
        hidden's dtype. 0 for a token none of whose experts is here.

    Notes
    -----
    Rounding points: both products as in `matmul_w4a16`, in which a token's weight is one more scale; the activation;
    ``halves`` and ``intermediate``; the sum over a token's experts in the compute type, in any order; the result once
    to hidden's dtype.

    Raises
    ------
    InputError
        Groups that do not cover their rows, w_gate_up without twice w_down's codes in a row, an id outside
        -1 … experts - 1, shapes or dtypes that disagree.

    Source: vLLM, ``fused_experts`` with use_int4_w4a16 and its Marlin experts (GPTQ, AWQ); AITER, ``fused_moe`` with
    4-bit weights (a16wi4).

    Examples
    --------
    >>> x, weight = np.array([[10.0, 0.0]], np.float32), np.array([[0.5]], np.float32)
    >>> up = np.array([[[0x09], [0x08], [0x0D], [0x08]]], np.uint8)  # rows (1, -8), (0, -8), (5, -8), (0, -8)
    >>> down = np.array([[[0x8A], [0x88]]], np.uint8)  # rows (2, 0) and (0, 0)
    >>> ones = np.ones((1, 4, 1), np.float32)
    >>> fused_experts_w4a16(x, up, ones, down, ones[:, :2], np.array([[0]]), weight).round(1)  # 10 · 50 · 2 / 2
    array([[500.,   0.]])
    """
    params = {"activation": activation, "weighted": weighted, "halves": halves, "intermediate": intermediate}
    first = _weights(w_gate_up, w_gate_up_scale, gate_up_zero, group, weights)
    second = _weights(w_down, w_down_scale, down_zero, group, weights)
    rows = activated_rows(hidden, None, *first, None, topk_ids, topk_weights, params)
    out: Array = summed_rows(rows, None, *second, None, topk_ids, topk_weights, weighted)
    return out


def _weights(packed: Array, scale: Any, zero: Array | None, group: int, weights: str) -> tuple[Any, Any]:
    """Whole numbers and factors whose products are the weights; weights and ones where they are to be rounded."""
    codes = unpacked(packed).astype(np.float64)
    columns = codes.shape[-1]
    point: Any = SYMMETRIC_ZERO if zero is None else spread(zero.astype(np.float64), group, columns)
    whole, factor = codes - point, spread(scale, group, columns)
    if weights == "exact":
        return whole, factor
    return round_to_format(whole * factor, weights), np.ones(whole.shape)
