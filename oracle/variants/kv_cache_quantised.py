"""Variants of the paged cache in 8 bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.formats import Rounding, format_of, round_to
from oracle.signature import Array
from oracle.variants.arithmetic import F, quotient
from oracle.variants.kv_cache import STRAY, WRITERS, Writer
from oracle.variants.quant import coded, divided, multiplied
from oracle.variants.variant import control, mutant

WRITE: dict[str, Writer] = {name: write for name, _, write in (*WRITERS, *STRAY)}


@dataclass(frozen=True)
class Steps:
    """How a variant writes.

    Attributes
    ----------
    write : function
        How tokens reach their cells.
    ratio, store : function
        The quotient; the codes, of quotient, format and rounding.
    largest : function
        What a token's largest magnitude becomes, of the format's largest.
    amax : function
        The largest magnitude of each head: of (tokens, heads, elements).
    limit : function
        The scale, of what it is and the least.
    used : function
        Scales as codes are computed with them.
    over : function
        A scale, of the largest magnitude and what that becomes.
    """

    write: Writer = WRITE["all_at_once"]
    ratio: Callable[[Array, Array], Array] = divided
    store: Callable[[Array, str, Rounding], Array] = coded
    largest: Callable[[float], float] = lambda top: top
    amax: Callable[[Array], Array] = lambda x: np.max(np.abs(x), axis=-1, initial=0.0)
    limit: Callable[[Array, float], Array] = lambda scale, least: np.maximum(scale, F(least))
    used: Callable[[Array], Array] = lambda scale: scale
    over: Callable[[Any, Any], Array] = divided

    def put(self, cache: Array, new: Array, scale: Array, slots: Array, to: str) -> Array:
        """The cache with codes of new tokens."""
        codes = self.store(self.ratio(new.astype(F), self.used(scale)), to, "nearest_even")
        out = cache.copy()
        self.write(out, codes, slots)
        return out

    def scales(self, old: Array, new: Array, slots: Array, to: str, least: float, size: int) -> tuple[Array, Array]:
        """The scales of tokens (tokens, heads, 1), and the cached ones with them."""
        scale = self.limit(self.over(self.amax(new.astype(F)), F(self.largest(format_of(to).max))), least).astype(F)
        cells = old.T.reshape(old.shape[1] // size, size, old.shape[0]).copy()
        self.write(cells, scale, slots)
        return scale[..., np.newaxis], cells.reshape(old.shape[::-1]).T


def _register(kind: Callable[..., Any], operator: str, name: str, flaw: str, steps: Steps) -> None:
    def given(
        k: Array, v: Array, ks: Array, vs: Array, k_scale: Array, v_scale: Array, slots: Array, *, to: str
    ) -> Any:
        return (
            steps.put(ks, k, k_scale[:, np.newaxis], slots, to),
            steps.put(vs, v, v_scale[:, np.newaxis], slots, to),
        )

    def own(
        k: Array, v: Array, ks: Array, vs: Array, k_old: Array, v_old: Array, slots: Array, *, to: str, least: float
    ) -> Any:
        k_scale, k_scales = steps.scales(k_old, k, slots, to, least, ks.shape[1])
        v_scale, v_scales = steps.scales(v_old, v, slots, to, least, vs.shape[1])
        return k_scales, v_scales, steps.put(ks, k, k_scale, slots, to), steps.put(vs, v, v_scale, slots, to)

    function = given if operator == "reshape_and_cache_quantised" else own
    function.__doc__ = flaw
    kind(operator, name=name)(function)


def _in_bfloat16(scale: Array) -> Array:
    return round_to(scale.astype(np.float64), "bfloat16").astype(F)


def _next_head(scale: Array) -> Array:
    return np.roll(scale, 1, axis=-2)


STRAY_HERE = ("skipped_written", "one_slot_on", "parts_exchanged", "last_token_missed", "cleared_first")
BOTH = "reshape_and_cache_quantised", "reshape_and_cache_per_token"
for _operator in BOTH:
    for _name, _flaw, _write in WRITERS:
        if _name != "element_groups":
            _ratio = multiplied if _name in ("backwards", "two_halves") else divided
            _register(control, _operator, _name, _flaw, Steps(write=_write, ratio=_ratio))
    for _name, _flaw, _write in STRAY:
        if _name in STRAY_HERE:
            _register(mutant, _operator, _name, _flaw, Steps(write=_write))
    for _name, _flaw, _steps in (
        ("multiplied", "Tokens are multiplied by their scale.", Steps(ratio=lambda x, scale: x * scale)),
        ("scale_in_bfloat16", "Codes are computed with scales rounded to bfloat16.", Steps(used=_in_bfloat16)),
        ("scale_of_next_head", "Each head is divided by the scale of its neighbour.", Steps(used=_next_head)),
        ("truncated", "Codes are truncated.", Steps(store=lambda r, to, mode: coded(r, to, "toward_zero"))),
        ("ties_away", "Ties go away from zero.", Steps(store=lambda r, to, mode: coded(r, to, "nearest_away"))),
    ):
        _register(mutant, _operator, _name, _flaw, _steps)

_register(control, BOTH[1], "as_promised", "Quotients are off by up to two ulps.", Steps(ratio=quotient, over=quotient))
for _name, _flaw, _steps in (
    ("largest_of_fnuz", "Scales are made for 240 in every format.", Steps(largest=lambda top: 240.0)),
    ("not_limited", "Scales have no lower limit.", Steps(limit=lambda scale, least: scale)),
    ("no_magnitude", "The maximum is taken of x, not of |x|.", Steps(amax=lambda x: np.max(x, axis=-1, initial=0.0))),
    (
        "one_scale_for_all_heads",
        "All heads of a token share a scale.",
        Steps(amax=lambda x: np.max(np.abs(x), axis=(1, 2), initial=0.0)[:, np.newaxis] + np.zeros(x.shape[1], F)),
    ),
):
    _register(mutant, BOTH[1], _name, _flaw, _steps)


@mutant("reshape_and_cache_per_token", relation="tokens_in_any_slot")
def scales_by_slot(
    k: Array, v: Array, ks: Array, vs: Array, k_old: Array, v_old: Array, slots: Array, *, to: str, least: float
) -> Any:
    """Scales of tokens in odd slots are rounded up."""
    even, above = Steps(), Steps(limit=lambda scale, least: np.maximum(np.nextafter(scale, F(np.inf)), F(least)))
    odd = slots % 2 == 1
    outputs: tuple[list[Array], list[Array]] = ([], [])
    for new, cache, old in ((k, ks, k_old), (v, vs, v_old)):
        (scale, scales), (other, others) = (
            way.scales(old, new, slots, to, least, cache.shape[1]) for way in (even, above)
        )
        scales[:, 1::2] = others[:, 1::2]
        outputs[0].append(scales)
        outputs[1].append(even.put(cache, new, np.where(odd[:, np.newaxis, np.newaxis], other, scale), slots, to))
    return *outputs[0], *outputs[1]
