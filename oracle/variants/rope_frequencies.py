"""Variants of frequencies for rotary position embedding."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.ops.rope_frequencies import ramp_ends
from oracle.signature import Array
from oracle.variants.arithmetic import exp, exp2, exp_promised, log
from oracle.variants.variant import control, mutant

Power = Callable[[Array, float], Array]


def by_exponential(exponent: Array, base: float) -> Array:
    """base^exponent as exp(exponent · ln base)."""
    return exp(exponent * log(np.full_like(exponent, base)))


def as_promised(exponent: Array, base: float) -> Array:
    """The same with an exponential that is off by anything up to two ulps."""
    return exp_promised(exponent * log(np.full_like(exponent, base)))


def by_exp2(exponent: Array, base: float) -> Array:
    """base^exponent as exp2(exponent · log2 base), the logarithm made on the host."""
    return exp2(exponent * exponent.dtype.type(math.log2(base)))


def by_power(exponent: Array, base: float) -> Array:
    """base^exponent, rounded once."""
    return np.power(base, exponent.astype(np.float64)).astype(exponent.dtype)


@dataclass(frozen=True)
class Way:
    """How frequencies are made; the defaults are the definition's own way."""

    power: Power = by_exponential
    negative_exponent: bool = False
    divided_last: bool = False
    reciprocal_dim: bool = False
    stretched: bool = False
    wide: bool = False
    double_dim: bool = False
    plus_one: bool = False
    other_base: bool = False
    upside_down: bool = False
    factor_multiplied: bool = False
    plain_stretch: bool = False
    shift: bool | None = None
    shrinks: bool = False
    static: bool = False
    exponent_to: str = ""


def frequencies(pairs: Array, params: dict[str, Any], way: Way) -> Array:
    """The frequencies in float32, or in float64."""
    kind = np.float64 if way.wide else pairs.dtype.type
    d, s, scaling = params["rotary_dim"], params["factor"], params["scaling"]
    numbers = pairs.astype(kind) + kind(way.plus_one)
    size = kind(d * (2 if way.double_dim else 1))
    exponent = numbers * (2 / size) if way.reciprocal_dim else 2 * numbers / size
    if way.exponent_to:
        exponent = round_to(exponent.astype(np.float64), way.exponent_to).astype(kind)
    if scaling == "dynamic_ntk" and not way.static:
        length = params["length"] if way.shrinks else max(params["length"], params["original_length"])
        s = max(s * length / params["original_length"] - (s - 1), 1e-3)
    shifted = scaling == "shifted_ntk" if way.shift is None else scaling in ("ntk", "shifted_ntk") and way.shift
    divisor, stretch = 1.0, 1.0
    if scaling == "linear":
        divisor = 1 / s if way.factor_multiplied else s
    elif shifted:
        stretch, divisor = s, s ** (2 / d)
    elif scaling != "none":
        stretch = s if way.plain_stretch else s ** (d / (d - 2))
    base = (10_000.0 if way.other_base else params["base"]) * (1.0 if way.stretched else stretch)
    if way.negative_exponent:
        found = way.power(-exponent, base) / kind(divisor)
    elif way.divided_last:
        found = 1 / way.power(exponent, base) / kind(divisor)
    else:
        found = 1 / (way.power(exponent, base) * kind(divisor))
    if way.stretched:
        found = found / way.power(exponent, stretch)
    if way.upside_down:
        found = 1 / found
    return found.astype(pairs.dtype)


WAYS: dict[str, tuple[Way, str]] = {
    "exponential": (Way(), "Powers by the exponential."),
    "exp2": (Way(power=by_exp2), "Powers by exp2."),
    "as_promised": (Way(power=as_promised), "Powers by an exponential that is off by anything up to two ulps."),
    "power": (Way(power=by_power), "Powers are rounded once."),
    "negative_exponent": (Way(negative_exponent=True), "The exponent is negative, and there is no reciprocal."),
    "divided_last": (Way(divided_last=True, power=by_exp2), "The quotient by the factor comes last."),
    "reciprocal_dim": (Way(reciprocal_dim=True), "Pairs are multiplied by 2 / rotary_dim."),
    "stretched": (Way(stretched=True, power=by_power), "The base is stretched by a power of its own."),
    "wide": (Way(wide=True, power=by_power), "All in float64, rounded once."),
}
WRONG_WAYS: dict[str, tuple[Way, str]] = {
    "double_dim": (Way(double_dim=True), "The exponent is pair / rotary_dim."),
    "plus_one": (Way(plus_one=True), "Pairs count from one."),
    "other_base": (Way(other_base=True), "The base is always 10,000."),
    "upside_down": (Way(upside_down=True), "The reciprocal is left out."),
    "factor_multiplied": (Way(factor_multiplied=True), "Linear scaling multiplies."),
    "plain_stretch": (Way(plain_stretch=True), "The base is stretched by the factor itself."),
    "never_shifted": (Way(shift=False), "shifted_ntk is ntk."),
    "always_shifted": (Way(shift=True), "ntk is shifted_ntk."),
    "shrinks": (Way(shrinks=True), "dynamic_ntk shrinks the base of short sequences."),
    "static": (Way(static=True), "dynamic_ntk has the factor itself, whatever the length."),
    "short_exponent": (Way(exponent_to="bfloat16"), "Exponents are rounded to bfloat16."),
}


def _way(register: Any, name: str, way: Way, flaw: str) -> None:
    def rope_frequencies(pairs: Array, **params: Any) -> Array:
        return frequencies(pairs, params, way)

    rope_frequencies.__doc__ = flaw
    register("rope_frequencies", name=name)(rope_frequencies)


for _name, (_chosen, _flaw) in WAYS.items():
    _way(control, _name, _chosen, _flaw)
for _name, (_chosen, _flaw) in WRONG_WAYS.items():
    _way(mutant, _name, _chosen, _flaw)


@dataclass(frozen=True)
class Mix:
    """How plain and divided frequencies are mixed by a ramp, for YaRN and for Llama 3."""

    kept_first: bool = False
    as_factor: bool = False
    reciprocal: bool = False
    by_turns: bool = False
    wide: bool = False
    selected: bool = False
    host_logarithm: bool = False
    upside_down: bool = False
    hard: bool = False
    unclipped: bool = False
    never_divided: bool = False
    always_divided: bool = False
    short_ramp: bool = False
    whole: bool | None = None
    other_base: bool = False
    half_ends: bool = False
    no_magnitude: bool = False
    other_mscale: bool = False
    binary: bool = False
    half_turns: bool = False
    radians: bool = False


def _mixed(f: Array, divided: Array, ramp: Array, mix: Mix, factor: float) -> Array:
    """Frequencies where the ramp is 0, divided ones where it is 1."""
    kind = f.dtype.type
    if mix.short_ramp:
        ramp = round_to(ramp.astype(np.float64), "bfloat16").astype(kind)
    if mix.hard:
        ramp = np.rint(ramp)
    if mix.never_divided:
        ramp = 0 * ramp
    if mix.always_divided:
        ramp = 0 * ramp + 1
    if mix.upside_down:
        ramp = 1 - ramp
    mixed: Array = f * (1 - ramp) + divided * ramp
    if mix.as_factor:
        mixed = f * ((1 - ramp) + ramp / kind(factor))
    if mix.kept_first:
        kept = 1 - ramp
        mixed = divided * (1 - kept) + f * kept
    if mix.selected:
        mixed = np.where(ramp >= 1, divided, np.where(ramp <= 0, f, mixed))
    return mixed


def _divided(f: Array, factor: float, mix: Mix) -> Array:
    real = f.dtype.type(factor)
    divided: Array = f * (1 / real) if mix.reciprocal else f / real
    return divided


def yarn(given: Array, params: dict[str, Any], mix: Mix) -> tuple[Array, Array]:
    """YaRN's frequencies and magnitude."""
    f = given.astype(np.float64) if mix.wide else given
    kind, factor = f.dtype.type, params["factor"]
    half, whole = f.shape[-1], params["whole_ends"] if mix.whole is None else mix.whole
    low, high = ramp_ends(
        half, 10_000.0 if mix.other_base else params["base"],
        params["original_length"], params["beta_fast"], params["beta_slow"], whole,
    )  # fmt: skip
    if mix.half_ends:
        low, high = low / 2, high / 2
    ramp = (np.arange(half).astype(kind) - kind(low)) * (1 / kind(high - low)) if mix.reciprocal else None
    ramp = (np.arange(half).astype(kind) - kind(low)) / kind(high - low) if ramp is None else ramp
    ramp = ramp if mix.unclipped else np.clip(ramp, 0, 1)
    scaled = _mixed(f, _divided(f, factor, mix), ramp, mix, factor).astype(given.dtype)
    above, below = params["mscale"], params["mscale_all_dim"]
    if mix.other_mscale:
        above, below = below, above
    stretch = np.log2(kind(factor)) if mix.binary else log(np.full(1, factor, kind))
    if mix.host_logarithm:
        stretch = np.full(1, math.log(factor), kind)
    magnitude = (kind(0.1 * above) * stretch + 1) / (kind(0.1 * below) * stretch + 1)
    if mix.no_magnitude:
        magnitude = magnitude * 0 + 1
    return scaled, np.reshape(magnitude, 1).astype(given.dtype)


def llama3(given: Array, params: dict[str, Any], mix: Mix) -> Array:
    """Llama 3's frequencies."""
    f = given.astype(np.float64) if mix.wide else given
    kind, factor, length = f.dtype.type, params["factor"], params["original_length"]
    low, high = params["low_turns"], params["high_turns"]
    if mix.half_turns:
        low, high = low / 2, high / 2
    if mix.by_turns:
        turns = f * kind(length / (2 * math.pi))
    else:
        turns = kind(length) / (kind(1 if mix.radians else 2 * math.pi) / f)
    share = (turns - kind(low)) / kind(high - low)
    share = share if mix.unclipped else np.clip(share, 0, 1)
    return _mixed(f, _divided(f, factor, mix), 1 - share, mix, factor).astype(given.dtype)


MIXES: dict[str, tuple[Mix, str]] = {
    "products_and_sum": (Mix(), "Two products and a sum."),
    "kept_first": (Mix(kept_first=True), "The share that is divided is the complement of what is kept."),
    "as_factor": (Mix(as_factor=True), "Both shares are one factor of the frequency."),
    "reciprocal": (Mix(reciprocal=True), "Quotients are products with reciprocals."),
    "selected": (Mix(selected=True), "Ends of the ramp are selected, not computed."),
    "wide": (Mix(wide=True), "All in float64, rounded once."),
}
WRONG_MIXES: dict[str, tuple[Mix, str]] = {
    "upside_down": (Mix(upside_down=True), "The ramp falls."),
    "hard": (Mix(hard=True), "The ramp is a step."),
    "unclipped": (Mix(unclipped=True), "The ramp goes on beyond its ends."),
    "never_divided": (Mix(never_divided=True), "No frequency is divided."),
    "always_divided": (Mix(always_divided=True), "Every frequency is divided."),
    "short_ramp": (Mix(short_ramp=True), "The ramp is rounded to bfloat16."),
}
OWN_MIXES: dict[str, dict[str, tuple[Mix, str]]] = {
    "yarn_frequencies": {
        "other_base": (Mix(other_base=True), "The ends are those of base 10,000."),
        "always_whole": (Mix(whole=True), "The ends are always whole."),
        "never_whole": (Mix(whole=False), "The ends are never whole."),
        "half_ends": (Mix(half_ends=True), "The ends count pairs as elements."),
        "no_magnitude": (Mix(no_magnitude=True), "The magnitude is 1."),
        "other_mscale": (Mix(other_mscale=True), "mscale and mscale_all_dim are exchanged."),
        "binary": (Mix(binary=True), "The magnitude is made of a binary logarithm."),
    },
    "llama3_frequencies": {
        "half_turns": (Mix(half_turns=True), "The ramp's ends are at half of the turns."),
        "radians": (Mix(radians=True), "Turns are counted in radians."),
    },
}


def _mix(register: Any, operator: str, name: str, mix: Mix, flaw: str) -> None:
    def variant(given: Array, **params: Any) -> Any:
        return yarn(given, params, mix) if operator == "yarn_frequencies" else llama3(given, params, mix)

    variant.__doc__ = flaw
    register(operator, name=name)(variant)


for _operator, _own in OWN_MIXES.items():
    for _name, (_one, _flaw) in MIXES.items():
        _mix(control, _operator, _name, _one, _flaw)
    for _name, (_one, _flaw) in {**WRONG_MIXES, **_own}.items():
        _mix(mutant, _operator, _name, _one, _flaw)
_mix(control, "llama3_frequencies", "by_turns", Mix(by_turns=True), "Turns are products, without a wavelength.")
_mix(control, "yarn_frequencies", "host", Mix(host_logarithm=True), "The magnitude's logarithm comes from the host.")


def _by_place(operator: str, one: Callable[..., Any], other: Callable[..., Any], flaw: str) -> None:
    def variant(*given: Array, **params: Any) -> Any:
        results, others = one(*given, params), other(*given, params)
        results[1::2] = others[1::2]
        return results

    variant.__doc__ = flaw
    mutant(operator, name="form_by_place", dtypes=("float32",), relation="pairs_in_any_place")(variant)


_by_place(
    "rope_frequencies",
    lambda pairs, params: frequencies(pairs, params, Way()),
    lambda pairs, params: frequencies(pairs, params, Way(power=by_exp2)),
    "Pairs in odd places go through exp2, the others do not.",
)
_by_place(
    "llama3_frequencies",
    lambda given, params: llama3(given, params, Mix()),
    lambda given, params: llama3(given, params, Mix(as_factor=True)),
    "Pairs in odd places are multiplied by one factor, the others by two.",
)


@mutant("yarn_frequencies", dtypes=("float32",), relation="frequencies_double")
def form_by_size(given: Array, **params: Any) -> Any:
    """Frequencies above 0.1 are multiplied by one factor, the others by two."""
    (small, magnitude), (large, _) = yarn(given, params, Mix()), yarn(given, params, Mix(as_factor=True))
    return np.where(given > 0.1, large, small), magnitude
