"""Variants of tables of angles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.variant import control, mutant

Angle = Callable[[Array, Array, Any], Array]
Functions = Callable[[Array], tuple[Array, Array]]


def _separate(angle: Array) -> tuple[Array, Array]:
    return np.cos(angle.astype(np.float64)).astype(angle.dtype), np.sin(angle.astype(np.float64)).astype(angle.dtype)


def _own(angle: Array) -> tuple[Array, Array]:
    return np.cos(angle), np.sin(angle)


def _complex(angle: Array) -> tuple[Array, Array]:
    point = np.exp(1j * angle.astype(np.float64))
    return point.real.astype(angle.dtype), point.imag.astype(angle.dtype)


def _register(
    kind: Callable[..., Any],
    name: str,
    flaw: str,
    angle: Angle = lambda f, p, factor: p / factor * f,
    functions: Functions = _separate,
    scale: Callable[[Any], Any] = lambda magnitude: magnitude,
) -> None:
    def rope_table(frequencies: Array, positions: Array, *, factor: float, magnitude: float) -> tuple[Array, Array]:
        real = frequencies.dtype.type
        turns = angle(frequencies, positions.astype(frequencies.dtype)[:, np.newaxis], real(factor))
        cos, sin = functions(np.asarray(turns, frequencies.dtype))
        return cos * real(scale(magnitude)), sin * real(scale(magnitude))

    rope_table.__doc__ = flaw
    kind("rope_table", name=name)(rope_table)


_register(control, "positions_scaled", "Positions are divided by the factor first.")
_register(control, "frequencies_scaled", "Frequencies are divided first.", lambda f, p, factor: p * (f / factor))
_register(control, "angles_scaled", "The product is divided.", lambda f, p, factor: p * f / factor)
_register(control, "reciprocal_factor", "The factor is a reciprocal.", lambda f, p, factor: p * f * (1 / factor))
_register(control, "own_functions", "Functions of the compute type.", functions=_own)
_register(control, "complex", "Both tables from one complex exponential.", functions=_complex)
_register(
    control,
    "wide_angles",
    "Angles are made in float64 and rounded once.",
    lambda f, p, factor: p.astype(np.float64) * f / factor,
)

_register(mutant, "factor_left_out", "Positions are not scaled.", lambda f, p, factor: p * f)
_register(mutant, "factor_multiplied", "Positions are multiplied by the factor.", lambda f, p, factor: p * factor * f)
_register(mutant, "whole_positions", "Scaled positions are cut.", lambda f, p, factor: np.floor(p / factor) * f)
_register(mutant, "magnitude_left_out", "Tables are not scaled.", scale=lambda magnitude: 1.0)
_register(mutant, "magnitude_twice", "Tables are scaled twice.", scale=lambda magnitude: magnitude**2)
_register(mutant, "exchanged", "Cosines and sines are exchanged.", functions=lambda angle: _separate(angle)[::-1])
_register(mutant, "from_one", "Positions count from one.", lambda f, p, factor: (p + 1) / factor * f)
_register(mutant, "reversed", "Frequencies come in reverse order.", lambda f, p, factor: p / factor * f[::-1])
_register(
    mutant,
    "short_angles",
    "Angles are rounded to 16 bits.",
    lambda f, p, factor: round_to((p / factor * f).astype(np.float64), "bfloat16"),
)
_register(
    mutant,
    "short_frequencies",
    "Frequencies are rounded to 16 bits.",
    lambda f, p, factor: p / factor * round_to(f.astype(np.float64), "bfloat16").astype(f.dtype),
)
_register(
    partial(mutant, dtypes=("float32",), relation="entries_of_a_table_are_independent"),
    "form_by_row",
    "Angles of positions in odd places are products with a scaled frequency, the others quotients.",
    lambda f, p, factor: np.where(np.arange(len(p))[:, np.newaxis] % 2, p * (f / factor), p * f / factor),
)
