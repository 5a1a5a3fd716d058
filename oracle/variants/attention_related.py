"""Mutants of the attentions that no value class can refuse: each is refused by the relation that it breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# these modules register the controls that the mutants are made of
from oracle.formats import cast
from oracle.operator import find_operator
from oracle.signature import Array
from oracle.variants import (
    attention,
    attention_backward,
    attention_flash,
    attention_mla,
    attention_mla_quantised,
    attention_paged,
    attention_paged_quantised,
)
from oracle.variants.variant import VARIANTS, mutant

__all__ = [
    "attention", "attention_backward", "attention_flash", "attention_mla", "attention_mla_quantised",
    "attention_paged", "attention_paged_quantised",
]  # fmt: skip

Results = tuple[Array, ...]
Changed = Callable[..., Any]
SHORT = ("bfloat16", "float32")


def _control(operator: str, name: str) -> Callable[..., Results]:
    """An honest variant, whose results are a tuple."""
    function = VARIANTS[operator, name].function

    def run(*inputs: Any, **params: Any) -> Results:
        results = function(*inputs, **params)
        return results if isinstance(results, tuple) else (results,)

    return run


def _registered(operator: str, name: str, relation: str, doc: str, function: Changed, **facts: Any) -> None:
    function.__doc__ = doc
    mutant(operator, name=name, relation=relation, **facts)(function)


def _by_half(one: Callable[..., Results], two: Callable[..., Results], axes: tuple[int, ...]) -> Changed:
    """The second half of the heads by another control than the first; where each result has its heads."""

    def mixed(*inputs: Any, **params: Any) -> Results:
        results = [np.array(result) for result in one(*inputs, **params)]
        for axis, result, other in zip(axes, results, two(*inputs, **params), strict=True):
            half = (slice(None),) * axis + (slice(result.shape[axis] // 2, None),)
            result[half] = other[half]
        return tuple(results)

    return mixed


def _clipped(control: Callable[..., Results], outputs: slice, limit: float) -> Changed:
    """Finite numbers of some of the results within a limit."""

    def bounded(result: Array) -> Array:
        wide = result.astype(np.float64)
        return cast(np.where(np.isfinite(wide), np.clip(wide, -limit, limit), wide), result.dtype.name)

    def clipped(*inputs: Any, **params: Any) -> Results:
        results = list(control(*inputs, **params))
        results[outputs] = [bounded(result) for result in results[outputs]]
        return tuple(results)

    return clipped


def _narrow_window(control: Callable[..., Results]) -> Changed:
    def narrow(*inputs: Any, window_left: int, **params: Any) -> Results:
        return control(*inputs, window_left=window_left if window_left < 0 else window_left & 0xFFFF, **params)

    return narrow


def _difference_of_infinities(operator: str, control: Callable[..., Results]) -> Changed:
    """A sink of minus infinity minus a maximum of minus infinity, for queries that see nothing."""

    def undefined(*inputs: Any, **params: Any) -> Results:
        given = dict(zip(find_operator(operator).inputs, inputs, strict=True))
        out, lse = (np.array(result) for result in control(*inputs, **params))
        sinks = given["sinks"]
        by_rows = lse.ndim == 2 and "cu_seqlens_q" in given  # (heads, tokens) there, heads last or second elsewhere
        if sinks is not None:
            shape = (-1, 1) if by_rows or (lse.ndim == 3 and "k" in given) else (-1,)
            wrong = np.isneginf(lse) & np.isneginf(sinks).reshape(shape)
            lse[wrong] = np.nan
            out[wrong.T if by_rows else wrong] = np.nan
        return out, lse

    return undefined


FORWARD = {
    "attention": (1, 1), "flash_attention": (1, 1), "attention_varlen": (1, 0), "mla_prefill": (1, 0),
    "paged_attention_decode": (1, 1), "paged_attention_prefill": (1, 0),
}  # fmt: skip
"""Where each result has its heads."""
BACKWARD = {"attention_backward": (1, 1, 1), "attention_bias_backward": (1,)}
WINDOWED = ("flash_attention", "attention_varlen", "paged_attention_decode", "paged_attention_prefill", "mla_decode",
            "mla_prefill", "paged_attention_decode_quantised", "paged_attention_prefill_quantised",
            "mla_decode_quantised")  # fmt: skip

for _operator, _axes in {**FORWARD, **BACKWARD}.items():
    _one, _two = ("library_order", "exp2") if _operator in BACKWARD else ("two_passes", "online_backwards")
    _registered(
        _operator, "order_by_head", "heads_in_any_place", "How keys are worked through depends on the head.",
        _by_half(_control(_operator, _one), _control(_operator, _two), _axes), dtypes=("float32",),
    )  # fmt: skip
for _operator in FORWARD:
    _registered(
        _operator, "saturated_as_float16", "values_scale", "Results are bounded by what float16 holds.",
        _clipped(_control(_operator, "two_passes"), slice(0, 1), 65504.0), dtypes=SHORT,
    )  # fmt: skip
for _operator in (*BACKWARD, "attention_sinks_backward"):
    _name = "order_sequential" if _operator == "attention_sinks_backward" else "library_order"
    _registered(
        _operator, "gradients_clipped", "gradients_scale", "Gradients are clipped at 2**40.",
        _clipped(_control(_operator, _name), slice(None), 2.0**40), dtypes=SHORT,
    )  # fmt: skip
for _operator in WINDOWED:
    _two_passes = _control(_operator, "two_passes")
    _registered(
        _operator, "window_in_16_bits", "wide_windows_are_none", "The window is held in 16 bits.",
        _narrow_window(_two_passes),
    )  # fmt: skip
    _registered(
        _operator, "difference_of_infinities", "sinks_of_minus_infinity_are_none",
        "A query that sees nothing, and no sink, has NaN: one infinity minus another.",
        _difference_of_infinities(_operator, _two_passes),
    )  # fmt: skip


@mutant("merge_attention_states", relation="empty_parts_are_nothing")
def at_most_64_parts(outs: Array, lses: Array, *, base: str) -> Any:
    """Parts behind the 64th are left out."""
    return _control("merge_attention_states", "order_sequential")(outs[:64], lses[:64], base=base)


@mutant("flash_attention", relation="hidden_keys_do_not_matter")
def order_by_hidden_key(q: Array, k: Array, *inputs: Any, **params: Any) -> Any:
    """How the keys are tiled depends on the last key, which may be hidden."""
    skewed = params["causal"] != "none" and k.size > 0 and bool(k[0, 0, -1, 0] > 4096)
    name = "online_backwards" if skewed else "two_passes"
    return _control("flash_attention", name)(q, k, *inputs, **params)
