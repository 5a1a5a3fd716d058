"""Variants of operators that quantise their result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.formats import cast, format_of, round_to
from oracle.ops.quant_blocks import in_blocks, over_blocks
from oracle.signature import Array
from oracle.variants.activation import Form, factors, split
from oracle.variants.arithmetic import ORDERS, rsqrt, stored, wide
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


def _scale(y: Any, style: Style, params: dict[str, Any]) -> Any:
    size = {"absolute": np.abs(y), "signed": y, "last_missed": np.abs(y[:, :-1])}[style.maximum]
    if style.maximum == "last_missed":
        size = np.concatenate([size, np.zeros((len(y), 1), y.dtype)], axis=1)
    amax = np.max(in_blocks(size, params["block"]), axis=(1, 3), initial=0.0)
    largest = np.float32(format_of(params["to"]).max if style.largest is None else style.largest)
    scale = amax * (np.float32(1) / largest) if style.reciprocal == "both" else amax / largest
    if not style.limits:
        return scale
    scale = np.maximum(scale, np.float32(params["least"]))
    return np.where(amax == 0, np.float32(1), scale) if params["of_zero"] == "one" else scale


def _codes(y: Any, scale: Any, style: Style, params: dict[str, Any]) -> Array:
    target = format_of(params["to"])
    spread = over_blocks(scale, params["block"], *y.shape)
    if style.inverted:
        ratio = y * spread
    else:
        ratio = y / spread if style.reciprocal == "no" else y * (np.float32(1) / spread)
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
        scale = _scale(y, style, params).astype(np.float32)
        return scale, _codes(y, scale, style, params)


def _norm(style: Style, **extra: Any) -> Callable[..., Any]:
    def variant(x: Array, weight: Array, **params: Any) -> tuple[Array, Array]:
        params = {**params, **{name: other[params[name]] for name, other in extra.items()}}
        rows = wide(x)
        root = rsqrt(ORDERS[style.order](rows * rows) / np.float32(x.shape[1]) + np.float32(params["eps"]))
        gain = wide(weight) if params["gain"] == "weight" else 1 + wide(weight)
        y = rows * gain * root if style.product == "value_first" else rows * root * gain
        return quantised(y, x, style, params)

    return variant


def _activation(style: Style, **extra: Any) -> Callable[..., Any]:
    def variant(x: Array, **params: Any) -> tuple[Array, Array]:
        params = {**params, **{name: other[params[name]] for name, other in extra.items()}}
        with np.errstate(all="ignore"):
            gate, value = split(x, None, params["pairing"])
            gate, share, value = factors("silu_and_mul", gate, value, params, Form(style.share))
            y = gate * value * share if style.product == "value_first" else gate * share * value
            return quantised(y, x, style, params)

    return variant


HONEST: dict[str, tuple[Style, str]] = {
    "divisions": (Style(), "Two divisions."),
    "reciprocal": (Style(reciprocal="scale"), "Results are multiplied by the reciprocal of the scale."),
    "reciprocals": (Style(reciprocal="both"), "The maximum is multiplied by 1 / largest, results by 1 / scale."),
    "tree": (Style(order="tree", share="exp2"), "Sums by a tree, exp by exp2."),
    "warp": (Style(order="warp", share="sides", reciprocal="scale"), "Sums by 32 lanes, exp of negative numbers."),
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
AROUND: dict[str, Callable[..., Any]] = {
    "rmsnorm_dynamic_quant": _norm,
    "silu_and_mul_dynamic_quant": _activation,
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


for _operator, _around in AROUND.items():
    _register(
        _operator, "odd_rows_otherwise", _odd_rows(_around),
        "Every second row is added, and multiplied, in another order.", mutant, relation="rows_are_independent",
    )  # fmt: skip
    for _name, (_style, _doc) in HONEST.items():
        _register(_operator, _name, _around(_style), _doc, control)
    for _name, (_style, _doc, _dtypes) in MISTAKEN.items():
        _register(_operator, _name, _around(_style), _doc, mutant, dtypes=_dtypes)

_swapped = {"weight": "one_plus_weight", "one_plus_weight": "weight"}
_register(
    "rmsnorm_dynamic_quant", "other_gain", _norm(Style(), gain=_swapped), "The gain is 1 + weight, or not.", mutant
)
_swapped = {"halves": "interleaved", "interleaved": "halves"}
_register(
    "silu_and_mul_dynamic_quant", "other_pairing", _activation(Style(), pairing=_swapped),
    "Halves are read as interleaved columns, and the other way round.", mutant,
)  # fmt: skip
