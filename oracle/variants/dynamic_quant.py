"""Variants of operators that quantise their result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from oracle.formats import cast, format_of, round_to
from oracle.ops.quant_blocks import in_blocks, over_blocks
from oracle.signature import Array
from oracle.variants.activation import Form, factors, split
from oracle.variants.arithmetic import ORDERS, quotient, rsqrt, stored, wide
from oracle.variants.quant import divided
from oracle.variants.variant import control, mutant

NARROW = ("float16", "bfloat16")


@dataclass(frozen=True)
class Style:
    """How one implementation goes about it; the defaults are right.

    Attributes
    ----------
    order : str
        Of the squares of a norm, a key in `ORDERS`.
    share : str
        Form of the sigmoid of an activation.
    divide : function
        The division.
    reciprocal : str
        ``no``: divisions; ``scale``: results are multiplied by 1 / scale; ``both``: the maximum by 1 / largest, too.
    """

    order: str = "sequential"
    share: str = "plain"
    product: str = "gate_first"
    reciprocal: str = "no"
    maximum: str = "absolute"
    largest: float | None = None
    codes: str = "nearest"
    limits: bool = True
    quantised: str | None = None
    inverted: bool = False
    divide: Callable[[Any, Any], Any] = divided


def scale_of(y: Any, style: Style, params: dict[str, Any]) -> Any:
    size = {"absolute": np.abs(y), "signed": y, "last_missed": np.abs(y[:, :-1])}[style.maximum]
    if style.maximum == "last_missed":
        size = np.concatenate([size, np.zeros((len(y), 1), y.dtype)], axis=1)
    amax = np.max(in_blocks(size, params["block"]), axis=(1, 3), initial=0.0)
    largest = np.float32(format_of(params["to"]).max if style.largest is None else style.largest)
    scale = amax * (np.float32(1) / largest) if style.reciprocal == "both" else style.divide(amax, largest)
    if not style.limits:
        return scale
    scale = np.maximum(scale, np.float32(params["least"]))
    return np.where(amax == 0, np.float32(1), scale) if params["of_zero"] == "one" else scale


def codes_of(y: Any, scale: Any, style: Style, params: dict[str, Any]) -> Array:
    target = format_of(params["to"])
    spread = over_blocks(scale, params["block"], *y.shape)
    if style.inverted:
        ratio = y * spread
    else:
        ratio = style.divide(y, spread) if style.reciprocal == "no" else y * (np.float32(1) / spread)
    if target.is_integer:
        ratio = np.trunc(ratio) if style.codes == "toward_zero" else np.rint(ratio)
        return np.asarray(np.clip(np.nan_to_num(ratio), -128, 127).astype(np.int8))
    held = np.clip(ratio, -np.float32(target.max), np.float32(target.max)).astype(np.float64)
    if style.codes == "toward_zero":
        held = round_to(held, target, "toward_zero")
    return cast(held, target.name)


def quantised(y: Any, like: Array, style: Style, params: dict[str, Any]) -> tuple[Array, Array]:
    """Scale and codes of a result in the compute type."""
    if (style.quantised or params["quantised"]) == "rounded":
        y = wide(stored(y, like))
    with np.errstate(all="ignore"):
        scale = scale_of(y, style, params).astype(np.float32)
        return scale, codes_of(y, scale, style, params)


def _over_rms(rows: Any, weight: Array, style: Style, params: dict[str, Any], like: Array) -> Any:
    """Rows over their root mean square, times the gain, in the compute type."""
    root = rsqrt(ORDERS[style.order](rows * rows) / np.float32(rows.shape[1]) + np.float32(params["eps"]))
    gain = wide(weight) if params["gain"] == "weight" else 1 + wide(weight)
    if params["rounding"] == "twice":
        return wide(stored(rows * root, like)) * gain
    return rows * gain * root if style.product == "value_first" else rows * root * gain


def _norm(style: Style, **extra: Any) -> Callable[..., Any]:
    def variant(x: Array, weight: Array, **params: Any) -> tuple[Array, Array]:
        params = {**params, **{name: other[params[name]] for name, other in extra.items()}}
        return quantised(_over_rms(wide(x), weight, style, params, x), x, style, params)

    return variant


def _standard(style: Style, without: str = "") -> Callable[..., Any]:
    """Layer normalisation in two passes; ``without`` names what is left out."""

    def variant(x: Array, weight: Array, bias: Array, **params: Any) -> tuple[Array, ...]:
        rows, columns = wide(x), np.float32(x.shape[1])
        centred = rows - (0 if without == "mean" else ORDERS[style.order](rows) / columns)
        root = rsqrt(ORDERS[style.order](centred * centred) / columns + np.float32(params["eps"]))
        gain = wide(weight)
        y = centred * gain * root if style.product == "value_first" else centred * root * gain
        return quantised(y if without == "bias" else y + wide(bias), x, style, params)

    return variant


def _added_norm(style: Style, without: str = "", **extra: Any) -> Callable[..., Any]:
    """A norm of a sum; ``without`` names what is left out."""

    def variant(x: Array, residual: Array, weight: Array, **params: Any) -> tuple[Array, ...]:
        params = {**params, **{name: other[params[name]] for name, other in extra.items()}}
        total = wide(x) + wide(residual)
        kept = x.copy() if without == "sum_stored" else stored(total, x)
        rows = wide(stored(total, x)) if params["normalised"] == "rounded" else total
        rows = wide(x) if without == "residual" else rows
        return kept, *quantised(_over_rms(rows, weight, style, params, x), x, style, params)

    return variant


def _activation(operator: str, style: Style, without: str = "", **extra: Any) -> Callable[..., Any]:
    """A gated activation before its quantisation; ``without`` names what is left out."""

    def variant(x: Array, bias: Array | None, **params: Any) -> tuple[Array, Array]:
        params = {**params, **{name: other[params[name]] for name, other in extra.items()}}
        with np.errstate(all="ignore"):
            gate, value = split(x, None if without == "bias" else bias, params["pairing"])
            gate, share, value = factors(operator, gate, value, params, Form(style.share))
            value = value - np.float32(1) if without == "one" else value
            share = np.minimum(share, np.float32(1)) if without == "square" else share
            y = gate * value * share if style.product == "value_first" else gate * share * value
            return quantised(y, x, style, params)

    return variant


KINDS = {"silu": "silu_and_mul", "gelu": "gelu_and_mul", "gelu_tanh": "gelu_and_mul", "relu2": "relu2_and_mul"}


def _static_activation(style: Style, without: str = "", **extra: Any) -> Callable[..., Any]:
    """A gated activation before its quantisation with a given scale; ``without`` names what is left out."""

    def variant(x: Array, scale: Array, bias: Array | None, **params: Any) -> Array:
        params = {**params, **{name: other[params[name]] for name, other in extra.items()}, "block": "tensor"}
        kind = params["activation"]
        with np.errstate(all="ignore"):
            gate, value = split(x, None if without == "bias" else bias, params["pairing"])
            known = {"approximate": "tanh" if kind == "gelu_tanh" else "none"}
            gate, share, value = factors(KINDS[kind], gate, value, known, Form(style.share))
            if params["rounding"] == "twice":
                y = wide(stored(gate * share, x)) * value
            else:
                y = gate * value * share if style.product == "value_first" else gate * share * value
            if (style.quantised or params["quantised"]) == "rounded":
                y = wide(stored(y, x))
            held = round_to(scale, "bfloat16").astype(np.float32) if without == "precision" else scale
            return codes_of(y, held[np.newaxis], style, params)

    return variant


HONEST: dict[str, tuple[Style, str]] = {
    "divisions": (Style(), "Two divisions."),
    "reciprocal": (Style(reciprocal="scale"), "Results are multiplied by the reciprocal of the scale."),
    "reciprocals": (Style(reciprocal="both"), "The maximum is multiplied by 1 / largest, results by 1 / scale."),
    "tree": (Style(order="tree", share="exp2"), "Sums by a tree, exp by exp2."),
    "warp": (Style(order="warp", share="sides", reciprocal="scale"), "Sums by 32 lanes, exp of negative numbers."),
    "as_promised": (Style(divide=quotient), "Both quotients are off by anything up to two ulps."),
    "other_product": (Style(order="tiles", product="value_first"), "The factors are multiplied in another order."),
}
MISTAKEN: dict[str, tuple[Style, str, tuple[str, ...]]] = {
    "signed_maximum": (Style(maximum="signed"), "The scale is from the largest number, not the largest magnitude.", ()),
    "last_missed": (Style(maximum="last_missed"), "The last column is not counted in the maximum.", ()),
    "largest_by_one": (Style(largest=128.0), "The largest magnitude becomes 128.", ()),
    "toward_zero": (Style(codes="toward_zero"), "Codes are rounded toward zero.", ()),
    "no_limits": (Style(limits=False), "The scale of zeros is 0, and it has no lower limit.", ()),
    "multiplied_by_scale": (Style(inverted=True), "Results are multiplied by the scale.", ()),
    "always_rounded": (Style(quantised="rounded"), "Results are rounded to 16 bits before they are quantised.", NARROW),
    "never_rounded": (Style(quantised="unrounded"), "Results are never rounded before they are quantised.", NARROW),
}
ACTIVATIONS = {
    "silu_and_mul_dynamic_quant": "silu_and_mul",
    "gelu_and_mul_dynamic_quant": "gelu_and_mul",
    "relu2_and_mul_dynamic_quant": "relu2_and_mul",
    "swiglu_with_limit_dynamic_quant": "swiglu_with_limit",
}
AROUND: dict[str, Callable[..., Any]] = {
    "rmsnorm_dynamic_quant": _norm,
    "fused_add_rmsnorm_dynamic_quant": _added_norm,
    "layernorm_dynamic_quant": _standard,
    **{name: partial(_activation, plain) for name, plain in ACTIVATIONS.items()},
}


def _register(operator: str, name: str, variant: Callable[..., Any], doc: str, register: Any, **facts: Any) -> None:
    variant.__doc__ = doc
    register(operator, name=name, **facts)(variant)


def _odd_rows(around: Callable[..., Any]) -> Callable[..., Any]:
    even, odd = around(Style()), around(Style(order="backwards", product="value_first"))

    def variant(*inputs: Array, **params: Any) -> tuple[Array, ...]:
        results = []
        for one, other in zip(even(*inputs, **params), odd(*inputs, **params), strict=True):
            mixed = one.copy()
            mixed[1::2] = other[1::2]
            results.append(mixed)
        return tuple(results)

    return variant


def _far_from_one(last: Array) -> Array:
    """Whether the exponent is odd."""
    odd: Array = np.frexp(last)[1] % 2 == 1
    return odd


def _mixed(around: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """An order of multiplication that depends on numbers: rows for which ``otherwise`` holds have another one."""
    usual, other = around(Style()), around(Style(order="backwards", product="value_first"))

    def variant(*inputs: Array, **params: Any) -> tuple[Array, ...]:
        last = inputs[-1] if "gain" in params else inputs[0]
        rows = np.broadcast_to(otherwise(wide(last)[..., -1:].reshape(-1)), (len(inputs[0]),))[:, np.newaxis]
        pairs = zip(usual(*inputs, **params), other(*inputs, **params), strict=True)
        return tuple(np.where(rows, different, one) for one, different in pairs)

    return variant


for _operator, _around in AROUND.items():
    # the square of a 16-bit gate times a 16-bit value is exact in any order
    _dtypes: tuple[str, ...] = ("float32",) if _operator.startswith("relu2") else ()
    _register(
        _operator, "odd_rows_otherwise", _odd_rows(_around),
        "Every second row is added, and multiplied, in another order.", mutant,
        relation="rows_are_independent", dtypes=_dtypes,
    )  # fmt: skip
    if not _operator.startswith(("swiglu", "layernorm")):
        for _name, _relation, _otherwise, _doc in (
            ("order_by_sign", "turned_results_turn_codes", lambda last: last < 0, "The order depends on a sign."),
            ("order_by_size", "doubled_results_double_scales", _far_from_one, "The order depends on a magnitude."),
        ):
            _register(_operator, _name, _mixed(_around, _otherwise), _doc, mutant, relation=_relation, dtypes=_dtypes)
    for _name, (_style, _doc) in HONEST.items():
        _register(_operator, _name, _around(_style), _doc, control)
    for _name, (_style, _doc, _dtypes) in MISTAKEN.items():
        _register(_operator, _name, _around(_style), _doc, mutant, dtypes=_dtypes)

_other_gain = {"weight": "one_plus_weight", "one_plus_weight": "weight"}
_other_rounding = {"once": "twice", "twice": "once"}
for _operator in ("rmsnorm_dynamic_quant", "fused_add_rmsnorm_dynamic_quant"):
    _norm_of = AROUND[_operator]
    _register(_operator, "other_gain", _norm_of(Style(), gain=_other_gain), "The gain is 1 + weight, or not.", mutant)
    _register(
        _operator, "other_rounding", _norm_of(Style(), rounding=_other_rounding),
        "The row is rounded before the gain, or not.", mutant, dtypes=NARROW,
    )  # fmt: skip
_other_sum = {"rounded": "unrounded", "unrounded": "rounded"}
for _name, _sum_variant, _doc, _dtypes in (
    ("residual_not_added", _added_norm(Style(), "residual"), "What is normalised is x.", ()),
    ("sum_not_stored", _added_norm(Style(), "sum_stored"), "residual_out is x.", ()),
    ("other_sum", _added_norm(Style(), normalised=_other_sum), "The rounded sum is normalised, or not.", NARROW),
):
    _register("fused_add_rmsnorm_dynamic_quant", _name, _sum_variant, _doc, mutant, dtypes=_dtypes)
_swapped = {"halves": "interleaved", "interleaved": "halves"}
for _operator, _plain in ACTIVATIONS.items():
    _register(
        _operator, "other_pairing", _activation(_plain, Style(), pairing=_swapped),
        "Halves are read as interleaved columns, and the other way round.", mutant,
    )  # fmt: skip
    _register(_operator, "no_bias", _activation(_plain, Style(), "bias"), "The bias is not added.", mutant)
_register(
    "gelu_and_mul_dynamic_quant", "other_approximation",
    _activation("gelu_and_mul", Style(), approximate={"none": "tanh", "tanh": "none"}),
    "The error function in place of tanh, and the other way round.", mutant,
)  # fmt: skip
_register(
    "relu2_and_mul_dynamic_quant", "not_squared", _activation("relu2_and_mul", Style(), "square"),
    "Gates above 1 are not squared.", mutant,
)  # fmt: skip
_register(
    "swiglu_with_limit_dynamic_quant", "value_not_shifted", _activation("swiglu_with_limit", Style(), "one"),
    "The value is not increased by 1.", mutant,
)  # fmt: skip

for _name, _doc in (("mean", "The mean is not taken off."), ("bias", "The bias is not added.")):
    _register("layernorm_dynamic_quant", f"no_{_name}", _standard(Style(), _name), _doc, mutant)
STATIC = "act_and_mul_static_quant"
for _name, (_style, _doc) in HONEST.items():
    _register(STATIC, _name, _static_activation(_style), _doc, control)
for _name in ("toward_zero", "multiplied_by_scale", "always_rounded", "never_rounded"):
    _style, _doc, _dtypes = MISTAKEN[_name]
    _register(STATIC, _name, _static_activation(_style), _doc, mutant, dtypes=_dtypes)
_other_kind = {"silu": "relu2", "relu2": "silu", "gelu": "gelu_tanh", "gelu_tanh": "gelu"}
for _name, _static, _doc, _dtypes in (
    ("no_bias", _static_activation(Style(), "bias"), "The bias is not added.", ()),
    ("scale_in_bfloat16", _static_activation(Style(), "precision"), "The scale is rounded to bfloat16.", ()),
    ("other_pairing", _static_activation(Style(), pairing=_swapped), "Halves are read as interleaved columns.", ()),
    ("other_activation", _static_activation(Style(), activation=_other_kind), "It is another activation.", ()),
    (
        "other_rounding", _static_activation(Style(), rounding=_other_rounding),
        "The activated gate is rounded before the product, or not.", NARROW,
    ),
):  # fmt: skip
    _register(STATIC, _name, _static, _doc, mutant, dtypes=_dtypes)
