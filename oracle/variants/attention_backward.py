"""Variants of attention's gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.signature import Array
from oracle.variants.arithmetic import ORDERS, Sum, exp, exp_by_exp2, product, sequential, stored, wide
from oracle.variants.attention_flash import RIGHT, Slip, visible_of
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
    slip : Slip
        Mistakes of the mask and of heads.
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
    slip: Slip = RIGHT


def backward(
    dout: Array, q: Array, k: Array, v: Array, out: Array, lse: Array, params: dict[str, Any], way: Way
) -> tuple[Array, Array, Array]:
    """dq, dk and dv in their dtypes."""
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

    visible = visible_of(queries, keys, params, way.slip) & ~np.isneginf(lse)
    score = (q @ np.swapaxes(k, -1, -2)) * scale
    weight = way.exp(np.where(visible, score - np.where(np.isneginf(lse), 0, lse), -np.inf).astype(q.dtype))
    if not way.masked:
        weight = np.where(np.isneginf(lse), 0, way.exp((score - np.where(np.isneginf(lse), 0, lse)).astype(q.dtype)))
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
    if way.scale_slopes:
        slope = slope * scale
    after = q.dtype.type(1) if way.scale_slopes else scale
    dq = times(slope, k) * (after if way.scale_dq else 1)
    dk = times(np.swapaxes(slope, -1, -2), q) * (after if way.scale_dk else 1)
    dv = times(np.swapaxes(weight, -1, -2), dout)
    dq = np.where(np.isneginf(lse), way.empty, dq).astype(q.dtype)

    def of_key_heads(x: Array) -> Array:
        x = x.reshape(batch, kv_heads, group, *x.shape[2:])
        total: Array = np.sum(x if way.all_heads else x[:, :, -1:], axis=2, dtype=x.dtype)
        return total

    return stored(dq, like), stored(of_key_heads(dk), like), stored(of_key_heads(dv), like)


def _variant(name: str, doc: str, register: Any, way: Way, **facts: Any) -> None:
    def variant(dout: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, **params: Any) -> Any:
        return backward(dout, q, k, v, out, lse, params, way)

    variant.__doc__ = doc
    register("attention_backward", name=name, **facts)(variant)


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
for _name, (_way, _doc) in HONEST.items():
    _variant(_name, _doc, control, _way)
for _name, (_way, _doc) in WRONG.items():
    _variant(_name, _doc, mutant, _way)


@mutant("attention_backward", relation="batches_are_independent", dtypes=("float32",))
def order_by_batch(dout: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, **params: Any) -> Any:
    """The order of sums depends on where in the batch a sequence stands."""
    ways, parts = (Way(order=sequential), Way(order=ORDERS["backwards"])), []
    for at in range(max(len(q), 1)):
        one = slice(at, at + 1)
        parts.append(backward(dout[one], q[one], k[one], v[one], out[one], lse[one], params, ways[at % 2]))
    dq, dk, dv = zip(*parts, strict=True)
    return np.concatenate(dq), np.concatenate(dk), np.concatenate(dv)
