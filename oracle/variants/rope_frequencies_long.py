"""Variants of LongRoPE's frequencies."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.arithmetic import log, quotient
from oracle.variants.variant import control, mutant

Scaled = Callable[[Array, Array], Array]
Magnitude = Callable[[Any, int, int], Any]
Chosen = Callable[[int, int, int], bool]


def _one(kind: Any, number: float) -> Array:
    return np.full(1, number, kind)


def by_logarithms(kind: Any, longest: int, original: int) -> Any:
    """√(1 + ln s / ln original)."""
    return np.sqrt(1 + log(_one(kind, max(longest / original, 1.0))) / log(_one(kind, original)))


def by_binary_logarithms(kind: Any, longest: int, original: int) -> Any:
    """The same with logarithms to base 2."""
    return np.sqrt(1 + np.log2(_one(kind, max(longest / original, 1.0))) / np.log2(_one(kind, original)))


def on_the_host(kind: Any, longest: int, original: int) -> Any:
    """The same in float64."""
    return _one(kind, math.sqrt(1 + math.log(max(longest / original, 1.0)) / math.log(original)))


def longer(length: int, longest: int, original: int) -> bool:
    """Whether the long factors are taken."""
    return length > original


def _register(
    kind: Callable[..., Any],
    name: str,
    flaw: str,
    scaled: Scaled = lambda f, factors: f / factors,
    magnitude: Magnitude = by_logarithms,
    chosen: Chosen = longer,
) -> None:
    def longrope_frequencies(
        frequencies: Array, short: Array, long: Array, *, original_length: int, longest: int, length: int
    ) -> tuple[Array, Array]:
        real = frequencies.dtype
        factors = long if chosen(length, longest, original_length) else short
        found = magnitude(real.type, longest, original_length)
        return np.asarray(scaled(frequencies, factors), real), np.asarray(found, real)

    longrope_frequencies.__doc__ = flaw
    kind("longrope_frequencies", name=name)(longrope_frequencies)


_register(control, "quotients", "Quotients, and natural logarithms.")
_register(control, "as_promised", "Quotients are off by anything up to two ulps.", quotient)
_register(control, "reciprocals", "Products with reciprocals.", lambda f, factors: f * (1 / factors))
_register(
    control, "wavelengths", "Reciprocals of wavelengths times factors.", lambda f, factors: 1 / (factors * (1 / f))
)
_register(control, "wide", "In float64.", lambda f, factors: f.astype(np.float64) / factors, on_the_host)
_register(control, "binary", "Binary logarithms.", magnitude=by_binary_logarithms)
_register(control, "host", "The magnitude is made on the host.", magnitude=on_the_host)

_register(mutant, "multiplied", "Frequencies are multiplied.", lambda f, factors: f * factors)
_register(mutant, "left_out", "Frequencies stay.", lambda f, factors: f)
_register(mutant, "reversed", "Factors come in reverse order.", lambda f, factors: f / factors[::-1])
_register(
    mutant,
    "short_quotients",
    "Factors are rounded to bfloat16.",
    lambda f, factors: f / round_to(factors.astype(np.float64), "bfloat16").astype(f.dtype),
)
_register(mutant, "always_long", "The long factors always.", chosen=lambda length, longest, original: True)
_register(mutant, "always_short", "The short factors always.", chosen=lambda length, longest, original: False)
_register(mutant, "from_equal", "The long factors at the original length.", chosen=lambda n, longest, at: n >= at)
_register(mutant, "by_longest", "The longest length decides.", chosen=lambda n, longest, at: longest > at)
_register(mutant, "no_root", "The root is left out.", magnitude=lambda kind, n, at: by_logarithms(kind, n, at) ** 2)
_register(mutant, "no_magnitude", "The magnitude is 1.", magnitude=lambda kind, n, at: _one(kind, 1))
_register(
    mutant,
    "yarn_magnitude",
    "The magnitude is YaRN's.",
    magnitude=lambda kind, n, at: _one(kind, 0.1 * math.log(max(n / at, 1.0)) + 1),
)
_register(
    mutant,
    "shorter",
    "The magnitude goes below 1 where the longest length is below the original one.",
    magnitude=lambda kind, n, at: _one(kind, math.sqrt(max(1 + math.log(n / at) / math.log(at), 0))),
)


def _form_by_size(f: Array, factors: Array) -> Array:
    return np.where(f > 0.1, f * (1 / factors), f / factors)


def _form_by_place(f: Array, factors: Array) -> Array:
    return np.where(np.arange(len(f)) % 2, f * (1 / factors), f / factors)


for _name, _flaw, _form, _relation in (
    ("form_by_size", "Frequencies above 0.1 are multiplied by reciprocals.", _form_by_size, "frequencies_double"),
    ("form_by_place", "Pairs in odd places are multiplied by reciprocals.", _form_by_place, "pairs_in_any_place"),
):
    _register(partial(mutant, dtypes=("float32",), relation=_relation), _name, _flaw, _form)
