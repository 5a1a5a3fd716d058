"""Variants of attention's gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.signature import Array
from oracle.variants.arithmetic import ORDERS, Sum, exp, exp_by_exp2, product, sequential, stored, tanh, wide
from oracle.variants.attention_flash import ADDED, RIGHT, SLIPS, Slip, visible_of
from oracle.variants.attention_styles import heads_of, narrowed
from oracle.variants.variant import control, mutant


@dataclass(frozen=True)
class Way:
    """How a kernel goes about the gradients. The fields after ``mean_in_accumulator`` are mistakes.

    Attributes
    ----------
    exp, total : function
        The exponential, and the order of a row's sum of dout · out.
    order : function or None
        Order in which products over queries and keys are added up; None for the library's.
    scale_slopes, mean_in_accumulator : bool
        Scale dS before it meets q and k; start the accumulator of dout vᵀ at what is taken off.
    mean, masked, scale_dq, scale_dk : bool
        Whether Σ dout · out is taken off, P is 0 where the key is hidden, and the gradients are scaled.
    all_heads : bool
        Whether all query heads add up in a key head's gradients.
    empty : float
        The gradient of a query that sees nothing.
    weights, slopes : str
        Formats to which P and dS are rounded; empty for none.
    cap_slope : str
        What the slope of the soft cap is taken of: "bent", tanh of the scores over the cap; "capped", the capped scores
        themselves; "added", what the cap and all that is added give, over the cap; empty for no slope.
    bias_slope : str
        What the gradient of the bias is multiplied by: empty for nothing, "scale", or "cap" for the cap's slope.
    slip : Slip
        Mistakes of the mask, of heads, and of what is done to scores.
    """

    exp: Callable[[Array], Array] = exp
    total: Sum = sequential
    order: Sum | None = None
    scale_slopes: bool = False
    mean_in_accumulator: bool = False
    mean: bool = True
    masked: bool = True
    scale_dq: bool = True
    scale_dk: bool = True
    all_heads: bool = True
    empty: float = 0.0
    weights: str = ""
    slopes: str = ""
    cap_slope: str = "bent"
    bias_slope: str = ""
    slip: Slip = RIGHT


def _added(heads: int, queries: int, keys: int, slopes: Array | None, params: dict[str, Any], way: Way) -> Array | None:
    """What ALiBi adds to scores, (heads, queries, keys)."""
    if slopes is None:
        return None
    row, column = np.arange(queries)[:, np.newaxis], np.arange(keys)
    distance = column - keys + 1 + 0 * row
    if (way.slip.alibi or params["alibi"]) == "distance":
        distance = -np.abs(row + keys - queries - column)
    added: Array = slopes[:, np.newaxis, np.newaxis] * distance
    return added


def _weights(
    score: Array, lse: Array, bias: Array | None, alibi: Array | None, params: dict[str, Any], way: Way
) -> tuple[Array, Array]:
    """P and the slope of the soft cap, of scaled scores (batch, heads, queries, keys)."""
    real, cap = score.dtype.type, params["softcap"] if way.slip.softcap else None
    queries, keys = score.shape[2:]
    bent = tanh(score / real(cap)) if cap else score
    if cap and not way.slip.softcap_last:
        score = bent * real(cap)
    if alibi is not None:
        score = score + alibi.astype(score.dtype)
    visible = visible_of(queries, keys, params, way.slip) & ~np.isneginf(lse)
    if bias is not None:
        visible = visible & (bias > -np.inf)
        factor = real(params["scale"] if way.slip.bias_scaled else 1)
        score = score + np.where(np.isneginf(bias), 0, wide(bias)).astype(score.dtype) * factor
    if cap and way.slip.softcap_last:
        bent = tanh(score / real(cap))
        score = bent * real(cap)
    of = {"bent": bent, "capped": score, "added": score / real(cap or 1)}.get(way.cap_slope)
    slope = real(1) - of * of if cap and of is not None else np.ones_like(score)
    shown = visible if way.masked else ~np.isneginf(lse)
    return way.exp(np.where(shown, score - np.where(np.isneginf(lse), 0, lse), -np.inf).astype(score.dtype)), slope


def backward(inputs: tuple[Any, ...], params: dict[str, Any], way: Way) -> tuple[Array, Array, Array, Array]:
    """dq, dk, dv and the bias's gradient in their dtypes, of the operator's inputs."""
    dout, q, k, v, out, lse, bias, slopes = inputs
    batch, heads, queries, size = q.shape
    kv_heads, keys = k.shape[1:3]
    like, group = q, heads // max(kv_heads, 1)
    scale = wide(q).dtype.type(size**-0.5 if params["scale"] is None else params["scale"])
    dout, q, k, v, out = (np.ascontiguousarray(wide(x)) for x in (dout, q, k, v, out))
    lse = lse.astype(q.dtype)[..., np.newaxis]
    if way.slip.heads_by_remainder:
        k, v = (x[:, np.arange(heads) % max(kv_heads, 1)] for x in (k, v))
    else:
        k, v = heads_of(k, heads), heads_of(v, heads)

    def times(a: Array, b: Array) -> Array:
        result: Array = a @ b if way.order is None else product(a, b, way.order)
        return result

    alibi = _added(heads, queries, keys, slopes, params, way)
    score = (q @ np.swapaxes(k, -1, -2)) * scale
    weight, slope_of_cap = _weights(score, lse, bias, alibi, {**params, "scale": scale}, way)
    mean = way.total(dout * out) if way.mean else np.zeros_like(lse)
    if way.mean_in_accumulator:
        ones = np.ones((*v.shape[:-1], 1), q.dtype)
        change = np.concatenate([-mean, dout], -1) @ np.swapaxes(np.concatenate([ones, v], -1), -1, -2)
    else:
        change = dout @ np.swapaxes(v, -1, -2) - mean
    slope = weight * change
    if way.weights:
        weight = narrowed(weight, way.weights)
    if way.slopes:
        slope = narrowed(slope, way.slopes)
    dbias = slope * {"": scale.dtype.type(1), "scale": scale, "cap": slope_of_cap}[way.bias_slope]
    slope = slope * slope_of_cap
    if way.scale_slopes:
        slope = slope * scale
    after = q.dtype.type(1) if way.scale_slopes else scale
    dq = times(slope, k) * (after if way.scale_dq else 1)
    dk = times(np.swapaxes(slope, -1, -2), q) * (after if way.scale_dk else 1)
    dv = times(np.swapaxes(weight, -1, -2), dout)
    dq, dbias = (np.where(np.isneginf(lse), way.empty, x).astype(q.dtype) for x in (dq, dbias))

    def of_key_heads(x: Array) -> Array:
        x = x.reshape(batch, kv_heads, group, *x.shape[2:])
        total: Array = np.sum(x if way.all_heads else x[:, :, -1:], axis=2, dtype=x.dtype)
        return total

    return stored(dq, like), stored(of_key_heads(dk), like), stored(of_key_heads(dv), like), stored(dbias, like)


def _variant(name: str, doc: str, register: Any, way: Way, **facts: Any) -> None:
    def variant(*inputs: Any, **params: Any) -> Any:
        return backward(inputs, params, way)[:3]

    variant.__doc__ = doc
    register("attention_backward", name=name, **facts)(variant)


def _bias_variant(name: str, doc: str, register: Any, way: Way, **facts: Any) -> None:
    def variant(*inputs: Any, **params: Any) -> Any:
        return backward(inputs, params, way)[3]

    variant.__doc__ = doc
    register("attention_bias_backward", name=name, **facts)(variant)


HONEST: dict[str, tuple[Way, str]] = {
    "library_order": (Way(), "Products are added up as the library does."),
    "sequential": (Way(order=sequential), "Queries and keys from the first to the last."),
    "backwards": (
        Way(order=ORDERS["backwards"], total=ORDERS["backwards"]),
        "Queries and keys from the last to the first.",
    ),
    "tiles": (Way(order=ORDERS["tiles"], total=ORDERS["warp"]), "Tiles of 16 queries or keys."),
    "exp2": (Way(exp=exp_by_exp2, total=ORDERS["tree"]), "exp goes through exp2."),
    "slopes_scaled": (Way(scale_slopes=True), "The scale goes into dS."),
    "mean_in_accumulator": (Way(mean_in_accumulator=True), "The accumulator of dout vᵀ starts at what is taken off."),
}
WRONG: dict[str, tuple[Way, str]] = {
    "mean_not_taken_off": (Way(mean=False), "Σ dout · out is not taken off."),
    "weights_not_masked": (Way(masked=False), "P is not set to 0 where the key is hidden."),
    "dq_not_scaled": (Way(scale_dq=False), "dq lacks the scale."),
    "dk_not_scaled": (Way(scale_dk=False), "dk lacks the scale."),
    "last_head_of_group": (
        Way(all_heads=False),
        "Only the last query head of a group counts: the others' sums are lost.",
    ),
    "nan_where_nothing_is_seen": (Way(empty=np.nan), "The gradient of a query that sees nothing is NaN."),
    "diagonal_one_further": (Way(slip=Slip(diagonal=1)), "The diagonal lies one key too far to the right."),
    "top_left": (Way(slip=Slip(top_left=True)), "Mask and window are aligned at the first query."),
    "window_ignored": (Way(slip=Slip(window=False)), "The window is left out."),
    "heads_by_remainder": (Way(slip=Slip(heads_by_remainder=True)), "Query head h reads key head h % kv_heads."),
    "weights_float8": (Way(weights="float8_e4m3fn"), "P is rounded to float8 before it meets dout."),
    "slopes_bfloat16": (Way(slopes="bfloat16"), "dS is rounded to bfloat16 before it meets q and k."),
}
SLIPPED = ("softcap_ignored", "softcap_after_bias", "alibi_by_distance", "alibi_by_last_key", "bias_scaled")
WRONG |= {name: (Way(slip=slip), doc) for name, (slip, doc) in {**SLIPS, **ADDED}.items() if name in SLIPPED}
CAP: dict[str, tuple[Way, str]] = {
    "slope_of_cap_missing": (Way(cap_slope=""), "dS lacks the slope of the soft cap."),
    "slope_of_capped_scores": (Way(cap_slope="capped"), "The slope of the cap is 1 - score², not over the cap."),
    "slope_after_addition": (Way(cap_slope="added"), "The slope of the cap is taken where bias and ALiBi are in it."),
}
OF_BIAS: dict[str, tuple[Way, str]] = {
    "bias_gradient_scaled": (Way(bias_slope="scale"), "The gradient of the bias has the scale."),
    "bias_gradient_capped": (Way(bias_slope="cap"), "The gradient of the bias has the slope of the cap."),
}
OF_OTHERS = ("dq_not_scaled", "dk_not_scaled", "last_head_of_group", "weights_float8", "slopes_bfloat16")
"""Mistakes that the gradient of the bias does not feel, the last one where it is bfloat16 itself."""

for _name, (_way, _doc) in HONEST.items():
    _variant(_name, _doc, control, _way)
    _bias_variant(_name, _doc, control, _way)
for _name, (_way, _doc) in {**WRONG, **CAP}.items():
    _variant(_name, _doc, mutant, _way)
for _name, (_way, _doc) in {**WRONG, **OF_BIAS}.items():
    if _name not in OF_OTHERS:
        _bias_variant(_name, _doc, mutant, _way)


def _by_batch(inputs: tuple[Any, ...], params: dict[str, Any]) -> list[Array]:
    """All gradients, with sums in an order that depends on where in the batch a sequence stands."""
    ways, parts = (
        (Way(order=sequential, total=sequential), Way(order=ORDERS["backwards"], total=ORDERS["backwards"])),
        [],
    )
    for at in range(max(len(inputs[0]), 1)):
        own = tuple(x if x is None or x.ndim == 1 else x[at : at + 1] for x in inputs)
        parts.append(backward(own, params, ways[at % 2]))
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


@mutant("attention_backward", relation="batches_are_independent", dtypes=("float32",))
def order_by_batch(*inputs: Any, **params: Any) -> Any:
    """The order of sums depends on where in the batch a sequence stands."""
    return tuple(_by_batch(inputs, params)[:3])


@mutant("attention_bias_backward", name="order_by_batch", relation="batches_are_independent", dtypes=("float32",))
def order_of_bias_by_batch(*inputs: Any, **params: Any) -> Any:
    """The order of sums depends on where in the batch a sequence stands."""
    return _by_batch(inputs, params)[3]


def _sinks(
    dout: Array, out: Array, lse: Array, sinks: Array, total: Sum = sequential, rows: Sum = sequential,
    power: Callable[[Array], Array] = exp, sign: float = -1.0, slip: str = "",
) -> Array:  # fmt: skip
    real = wide(dout).dtype
    score = np.where(np.isneginf(lse), -np.inf, sinks[:, np.newaxis]).astype(real)
    lse = np.where(np.isneginf(lse), 0, lse).astype(real)
    weight = power(np.zeros_like(lse) + score if slip == "lse" else score - lse)
    if slip == "narrow":
        weight = narrowed(weight, "bfloat16")
    if slip == "quotient":
        weight = weight / (1 + weight)
    mean = total(wide(dout) * wide(out))[..., 0]
    if slip == "no_mean":
        mean = total(wide(dout))[..., 0]
    terms = weight * mean
    if slip == "last_query":
        terms = terms[:, :, :-1]
    if slip == "first_batch":
        terms = terms[:1]
    by_head = np.moveaxis(terms, 1, 0).reshape(terms.shape[1], terms.shape[0] * terms.shape[2])
    if slip == "mean_of_rows":
        by_head = by_head / real.type(max(by_head.shape[1], 1))
    total_of_head: Array = (real.type(sign) * rows(by_head)[..., 0]).astype(np.float32)
    return total_of_head


def _sinks_variant(name: str, doc: str, register: Any, **options: Any) -> None:
    def variant(dout: Any, out: Any, lse: Any, sinks: Any) -> Any:
        return _sinks(dout, out, lse, sinks, **options)

    variant.__doc__ = doc
    register("attention_sinks_backward", name=name)(variant)


for _name, _order in ORDERS.items():
    _sinks_variant(f"order_{_name}", "Both sums in an order of their own.", control, total=_order, rows=_order)
_sinks_variant("exp2", "exp goes through exp2.", control, power=exp_by_exp2, rows=ORDERS["tree"])
_sinks_variant("sign_turned", "The sign is turned.", mutant, sign=1.0)
_sinks_variant("lse_left_out", "The weight is exp(sink), without the log-sum-exp.", mutant, slip="lse")
_sinks_variant("sink_counted_twice", "The weight is taken as if lse left the sink out.", mutant, slip="quotient")
_sinks_variant("out_left_out", "The sum of a row leaves out the result.", mutant, slip="no_mean")
_sinks_variant("last_query_missed", "The last query is left out.", mutant, slip="last_query")
_sinks_variant("first_batch_only", "Only the first sequence counts.", mutant, slip="first_batch")
_sinks_variant("mean_of_rows", "Rows are averaged, not added.", mutant, slip="mean_of_rows")
_sinks_variant("weight_bfloat16", "The weight is rounded to bfloat16.", mutant, slip="narrow")
