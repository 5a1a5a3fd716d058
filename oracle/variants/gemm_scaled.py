"""How kernels put scales into a product of codes: the styles, right and wrong, of which quantised variants are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from oracle.formats import cast, round_to
from oracle.signature import Array
from oracle.variants.arithmetic import ORDERS, product
from oracle.variants.gemm import BROKEN, HONEST, WRONG, Product

F = np.float32
Scales = Callable[[Array, Array], tuple[Array, Array]]


@dataclass(frozen=True)
class Style:
    """One way to form ``Σ_k x·y · a_scale·b_scale + bias``.

    Attributes
    ----------
    form : function
        The product of two float32 matrices.
    place : str
        Where scales go: to the ``codes``, to the ``sums`` of blocks, to these as one factor (``pairs``), or a's to the
        codes and b's to the sums (``mixed``).
    backwards : bool
        Whether blocks are added from the last to the first.
    scales : function, optional
        What becomes of the scales (m, blocks) and (n, blocks) beforehand.
    operands : function, optional
        What becomes of dequantised operands.
    bias : str
        ``after`` the scales, ``before`` them, or ``none``.
    store : str
        Rounding of the result.
    """

    form: Product = product
    place: str = "codes"
    backwards: bool = False
    scales: Scales | None = None
    operands: Callable[[Array], Array] | None = None
    bias: str = "after"
    store: Any = "nearest_even"


def scaled_product(
    style: Style, x: Array, y: Array, a_scale: Array, b_scale: Array, block: int, bias: Array | None, out_dtype: str
) -> Array:
    """x (m, k) times y (k, n), with scales (m, blocks) and (n, blocks) for blocks of `block` along k."""
    if style.scales is not None:
        a_scale, b_scale = style.scales(a_scale, b_scale)
    k = x.shape[1]
    a_factor = np.repeat(a_scale, block, axis=1)[:, :k] if block < k else np.broadcast_to(a_scale[:, :1], x.shape)
    b_factor = np.repeat(b_scale, block, axis=1)[:, :k] if block < k else np.broadcast_to(b_scale[:, :1], y.T.shape)
    if style.place in ("codes", "mixed") and k:
        x = x * a_factor
    if style.place == "codes" and k:
        y = y * b_factor.T
    if style.operands is not None:
        x, y = style.operands(x), style.operands(y)
    if style.place == "codes":
        total = style.form(x, y)
    else:
        total = np.zeros((len(x), y.shape[1]), F)
        starts = range(0, k, block)
        for start in reversed(starts) if style.backwards else starts:
            part = style.form(x[:, start : start + block], y[start : start + block])
            left = a_scale[:, start // block, np.newaxis] if style.place != "mixed" else F(1)
            right = b_scale[np.newaxis, :, start // block]
            total = total + (part * (left * right) if style.place == "pairs" else part * left * right)
    if bias is not None and style.bias == "after":
        total = total + bias
    if bias is not None and style.bias == "before" and k:
        total = total + bias * a_scale[:, :1] * b_scale[:, 0]
    return cast(total.astype(np.float64), out_dtype, style.store)


STYLES: dict[str, tuple[Style, str]] = {
    "codes_first": (Style(), "Both operands are dequantised, then multiplied in order."),
    "codes_first_tree": (Style(partial(product, total=ORDERS["tree"])), "Dequantised operands, added as a tree."),
    "codes_first_blas": (Style(HONEST["blas"][0]), "Dequantised operands, in the order of the installed BLAS."),
    "sums_scaled": (Style(place="sums"), "Each block's sum is multiplied by one scale, then by the other."),
    "sums_scaled_fma": (Style(HONEST["fma"][0], place="sums"), "Fused additions within blocks, whose sums are scaled."),
    "pairs_scaled": (Style(place="pairs"), "Each block's sum is multiplied by the product of its scales."),
    "pairs_backwards": (Style(HONEST["order_warp"][0], "pairs", backwards=True), "Lanes; the last block goes first."),
    "mixed": (Style(place="mixed"), "Activations are dequantised first, weights' scales meet the sums."),
}  # fmt: skip
"""Honest ways."""


def _narrowed(number_format: str) -> Scales:
    def narrowed(a_scale: Array, b_scale: Array) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            return round_to(a_scale, number_format).astype(F), round_to(b_scale, number_format).astype(F)

    return narrowed


def _only_first(a_scale: Array, b_scale: Array) -> tuple[Array, Array]:
    return np.broadcast_to(a_scale[:1], a_scale.shape) if len(a_scale) else a_scale, b_scale


def _exchanged(a_scale: Array, b_scale: Array) -> tuple[Array, Array]:
    if not a_scale.size or not b_scale.size:
        return a_scale, b_scale
    return np.resize(b_scale, a_scale.shape), np.resize(a_scale, b_scale.shape)


def _inverted(a_scale: Array, b_scale: Array) -> tuple[Array, Array]:
    with np.errstate(all="ignore"):
        return a_scale, F(1) / b_scale


def _left_out(a_scale: Array, b_scale: Array) -> tuple[Array, Array]:
    return np.ones_like(a_scale), b_scale


def _in_bfloat16(x: Array) -> Array:
    return round_to(x, "bfloat16").astype(F)


FLAWED: dict[str, tuple[Style, str]] = {
    **{
        name: (Style(WRONG[name][0]), WRONG[name][1])
        for name in (
            "last_k_missed",
            "tail_missed",
            "stale_row",
            "narrow_accumulator",
            "narrow_partials",
            "nan_skipped",
        )
    },
    "scales_in_bfloat16": (Style(scales=_narrowed("bfloat16")), "Scales are rounded to bfloat16."),
    "scales_in_float16": (Style(scales=_narrowed("float16")), "Scales are rounded to float16, where tiny ones vanish."),
    "first_row_scale": (Style(scales=_only_first), "All rows have the first row's scales."),
    "scales_exchanged": (Style(scales=_exchanged), "The scales of rows and of columns are exchanged."),
    "scale_inverted": (Style(scales=_inverted), "The weights are divided by their scales."),
    "a_scale_left_out": (Style(scales=_left_out), "The activations' scales are left out."),
    "dequantised_in_bfloat16": (Style(operands=_in_bfloat16), "Dequantised operands are rounded to bfloat16."),
    "bias_before_scales": (Style(bias="before"), "The bias is added before the scales, which it meets."),
    "bias_left_out": (Style(bias="none"), "The bias is left out."),
    "truncating_store": (Style(store="toward_zero"), "The result is cut off, not rounded."),
}
"""Wrong ways."""

FRAGILE: dict[str, tuple[Style, str, str]] = {
    name: (Style(form), doc, relation) for name, (form, doc, relation) in BROKEN.items()
}
"""Ways that only a relation tells from honest ones."""


def with_scales(style: Style, scales: Scales) -> Style:
    """The same way with other scales."""
    return replace(style, scales=scales)
