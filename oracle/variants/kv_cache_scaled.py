"""Variants of caches in 8 bits: of latent attention, and with a scale per block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.formats import Rounding, format_of, round_to
from oracle.ops.quant_blocks import in_blocks, over_blocks
from oracle.signature import Array
from oracle.variants.arithmetic import F, quotient
from oracle.variants.kv_cache import STRAY, WRITERS
from oracle.variants.kv_cache_quantised import STRAY_HERE, Steps
from oracle.variants.quant import coded, divided, multiplied
from oracle.variants.variant import control, mutant

MLA, TILED, BLOCKS = "concat_and_cache_mla_quantised", "concat_and_cache_mla_per_tile", "reshape_and_cache_per_block"
USUAL = Steps()
Scales = Callable[[Array], Array]


def _register(kind: Any, operator: str, name: str, flaw: str, function: Callable[..., Any]) -> None:
    function.__doc__ = flaw
    kind(operator, name=name)(function)


def _truncated(ratio: Array, to: str, mode: Rounding) -> Array:
    return coded(ratio, to, "toward_zero")


def _ties_away(ratio: Array, to: str, mode: Rounding) -> Array:
    return coded(ratio, to, "nearest_away")


def _in_bfloat16(scale: Array) -> Array:
    return round_to(scale.astype(np.float64), "bfloat16").astype(F)


def _mla(steps: Steps = USUAL, exchanged: bool = False) -> Callable[..., Any]:
    def variant(latents: Array, rotated: Array, cache: Array, scale: Array, slots: Array, *, to: str) -> Array:
        parts = [rotated, latents] if exchanged else [latents, rotated]
        return steps.put(cache, np.concatenate(parts, axis=1), scale, slots, to)

    return variant


@dataclass(frozen=True)
class Tiles:
    """How a variant makes scales of tiles; the defaults are right.

    Attributes
    ----------
    steps : Steps
        How codes are made and written.
    size, largest : function
        What the maximum is taken of, and what it becomes, of the format's largest number.
    limited, shared : bool
        Whether scales have their lower limit, and whether all tiles of a token share one.
    power, kept : function
        The power of two of a scale, where one is asked for; rotated parts as they are stored.
    odd_up : bool
        Whether scales of tokens in odd slots are rounded up.
    """

    steps: Steps = USUAL
    size: Callable[[Array], Array] = np.abs
    largest: Callable[[float], float] = lambda top: top
    limited: bool = True
    shared: bool = False
    power: Scales = lambda scale: np.exp2(np.ceil(np.log2(scale.astype(np.float64)))).astype(F)
    kept: Scales = lambda rotated: rotated
    odd_up: bool = False


def _tiled(style: Tiles) -> Callable[..., Any]:
    def variant(
        latents: Array, rotated: Array, codes: Array, old: Array, rope: Array, slots: Array,
        *, to: str, tile: str, least: float, **params: Any,
    ) -> Any:  # fmt: skip
        amax = np.max(in_blocks(style.size(latents.astype(F)), tile), axis=(1, 3), initial=0.0).astype(F)
        scale = style.steps.over(amax, F(style.largest(format_of(to).max)))
        if style.odd_up:
            scale = np.where((slots % 2 == 1)[:, np.newaxis], np.nextafter(scale, F(np.inf)), scale)
        scale = np.maximum(scale, F(least)) if style.limited else scale
        if params["scales"] == "power_of_two":
            scale = style.power(scale)
        if style.shared and scale.shape[1]:
            scale = np.broadcast_to(scale.max(axis=1, keepdims=True), scale.shape)
        new_scales, new_rope = old.copy(), rope.copy()
        style.steps.write(new_scales, scale, slots)
        style.steps.write(new_rope, style.kept(rotated), slots)
        spread = over_blocks(scale, tile, *latents.shape)
        return new_scales, new_rope, style.steps.put(codes, latents, spread, slots, to)

    return variant


@dataclass(frozen=True)
class Growing:
    """How a variant lets the scales of blocks grow; the defaults are right.

    Attributes
    ----------
    steps, size, largest, limited
        As in `Tiles`.
    again : function
        Old codes in the new scale: of codes, old scale and new one.
    begun_anew, joined : bool
        Whether a block whose first cell is written forgets its scale, and whether others keep a larger one.
    next_head : bool
        Whether tokens are divided by the scale of the head before.
    odd_up : bool
        Whether the scales of odd blocks are rounded up.
    """

    steps: Steps = USUAL
    size: Callable[[Array], Array] = np.abs
    largest: Callable[[float], float] = lambda top: top
    again: Callable[[Array, Array, Array], Array] = lambda codes, old, new: codes * old / new
    limited: bool = True
    begun_anew: bool = True
    joined: bool = True
    next_head: bool = False
    odd_up: bool = False

    def run(self, cache: Array, new: Array, old: Array, slots: Array, to: str, least: float) -> tuple[Array, Array]:
        """Scales and codes."""
        size, out, scales = cache.shape[1], cache.copy(), old.copy()
        largest, known = F(self.largest(format_of(to).max)), slots >= 0
        for block in np.unique(slots[known] // size):
            at = np.flatnonzero(known & (slots // size == block))
            first = int((slots[at] % size).min())
            amax = np.max(self.size(new[at].astype(F)), axis=(0, 2), initial=0.0)
            own = self.steps.over(np.maximum(amax, F(least)) if self.limited else amax, largest)
            own = np.nextafter(own, F(np.inf)) if self.odd_up and block % 2 else own
            before = old[:, block]
            after = np.maximum(before, own) if self.joined and (first or not self.begun_anew) else own
            held = out[block, :first].astype(F)
            renewed = self.steps.store(
                self.again(held, before[:, np.newaxis], after[:, np.newaxis]), to, "nearest_even"
            )
            out[block, :first] = np.where((after > before)[:, np.newaxis], renewed, out[block, :first])
            scales[:, block] = after
        taken = scales[:, np.maximum(slots, 0) // size].T
        taken = np.roll(taken, 1, axis=1) if self.next_head else taken
        return scales, self.steps.put(out, new, taken[..., np.newaxis], slots, to)


def _blocks(style: Growing) -> Callable[..., Any]:
    def variant(
        k: Array, v: Array, ks: Array, vs: Array, k_old: Array, v_old: Array, slots: Array, *, to: str, least: float
    ) -> Any:
        k_scales, k_codes = style.run(ks, k, k_old, slots, to, least)
        v_scales, v_codes = style.run(vs, v, v_old, slots, to, least)
        return k_scales, v_scales, k_codes, v_codes

    return variant


def _folded(codes: Array, old: Array, new: Array) -> Array:
    return codes * (old / new)


def _ways(steps: Steps) -> dict[str, Callable[..., Any]]:
    """A variant of each operator."""
    again = _folded if steps.ratio is multiplied else (lambda codes, old, new: codes * old / new)
    return {MLA: _mla(steps), TILED: _tiled(Tiles(steps)), BLOCKS: _blocks(Growing(steps, again=again))}


def _everywhere(kind: Any, name: str, flaw: str, steps: Steps) -> None:
    for operator, function in _ways(steps).items():
        _register(kind, operator, name, flaw, function)


_everywhere(
    control, "as_promised", "Quotients are off by anything up to two ulps.", Steps(ratio=quotient, over=quotient)
)
for _name, _flaw, _write in WRITERS:
    if _name != "element_groups":
        _ratio = multiplied if _name in ("backwards", "two_halves") else divided
        _everywhere(control, _name, _flaw, Steps(write=_write, ratio=_ratio))
for _name, _flaw, _write in STRAY:
    if _name in STRAY_HERE:
        _everywhere(mutant, _name, _flaw, Steps(write=_write))
for _name, _flaw, _steps in (
    ("multiplied", "Tokens are multiplied by their scale.", Steps(ratio=lambda x, scale: x * scale)),
    ("scale_in_bfloat16", "Codes are computed with scales rounded to bfloat16.", Steps(used=_in_bfloat16)),
    ("truncated", "Codes are truncated.", Steps(store=_truncated)),
    ("ties_away", "Ties go away from zero.", Steps(store=_ties_away)),
):
    _everywhere(mutant, _name, _flaw, _steps)

_register(mutant, MLA, "rotated_first", "The rotated part comes first.", _mla(exchanged=True))


def _down(scale: Array) -> Array:
    return np.exp2(np.floor(np.log2(scale.astype(np.float64)))).astype(F)


for _name, _flaw, _tiles in (
    ("largest_of_fnuz", "Scales are made for 240 in every format.", Tiles(largest=lambda top: 240.0)),
    ("not_limited", "Scales have no lower limit.", Tiles(limited=False)),
    ("no_magnitude", "The maximum is taken of x, not of |x|.", Tiles(size=lambda x: x)),
    ("one_scale_for_a_token", "All tiles of a token share a scale.", Tiles(shared=True)),
    ("power_below", "A power of two is the next smaller one.", Tiles(power=_down)),
    ("no_power", "Scales are never powers of two.", Tiles(power=lambda scale: scale)),
    (
        "rotated_in_eight_bits",
        "The rotated part goes through an 8-bit float.",
        Tiles(kept=lambda x: round_to(x.astype(np.float64), "float8_e4m3fn").astype(x.dtype)),
    ),
):
    _register(mutant, TILED, _name, _flaw, _tiled(_tiles))
for _name, _flaw, _growing in (
    ("largest_of_fnuz", "Scales are made for 240 in every format.", Growing(largest=lambda top: 240.0)),
    ("not_limited", "Scales have no lower limit.", Growing(limited=False)),
    ("no_magnitude", "The maximum is taken of x, not of |x|.", Growing(size=lambda x: x)),
    ("scale_replaced", "A block's scale is that of the new tokens alone.", Growing(joined=False)),
    ("never_begun_anew", "A block that is begun anew keeps a larger old scale.", Growing(begun_anew=False)),
    (
        "old_codes_stay",
        "Old codes stay as they are when the scale grows.",
        Growing(again=lambda codes, old, new: codes),
    ),
    (
        "old_codes_grow",
        "Old codes grow with the scale.",
        Growing(again=lambda codes, old, new: codes * new / old),
    ),
    ("scale_of_next_head", "Each head is divided by the scale of its neighbour.", Growing(next_head=True)),
):
    _register(mutant, BLOCKS, _name, _flaw, _blocks(_growing))
for _operator, _relation, _flaw, _function in (
    (TILED, "tokens_in_any_slot", "Scales of tokens in odd slots are rounded up.", _tiled(Tiles(odd_up=True))),
    (BLOCKS, "blocks_in_any_place", "Scales of odd blocks are rounded up.", _blocks(Growing(odd_up=True))),
):
    _function.__doc__ = _flaw
    mutant(_operator, name="scales_by_place", relation=_relation)(_function)
