"""Matrix products as NVIDIA's tensor cores form them, and what that is right or wrong for."""

from __future__ import annotations

import numpy as np

from oracle.numerics import NUMERICS
from oracle.signature import Array
from oracle.variants.gemm import Product

ZERO_EXPONENT = -133


def _exponents(x: Array, least: int) -> Array:
    """Exponents of magnitudes, none below `least`; that of zeros is below all others."""
    exponents = np.maximum(np.frexp(x)[1] - 1, least)
    return np.where(x == 0.0, ZERO_EXPONENT, exponents)


def fused_dots(numerics: str) -> Product:
    """The product of a unit by its numerics' name: groups of terms are aligned, cut off, added, and cut off."""
    unit = NUMERICS[numerics]
    least = int(np.frexp(unit.unit_min_normal)[1]) - 1

    def form(a: Array, b: Array) -> Array:
        if a.dtype != np.float32:
            return np.asarray(a @ b)
        total = np.zeros((len(a), b.shape[1]))
        a_wide, b_wide = a.astype(np.float64), b.T.astype(np.float64)
        with np.errstate(all="ignore"):
            for start in range(0, a.shape[1], unit.unit_group):
                x = a_wide[:, np.newaxis, start : start + unit.unit_group]
                y = b_wide[np.newaxis, :, start : start + unit.unit_group]
                terms = np.concatenate([x * y, total[..., np.newaxis]], axis=-1)
                aligned = np.where((x == 0.0) | (y == 0.0), ZERO_EXPONENT, _exponents(x, least) + _exponents(y, least))
                largest = np.maximum(aligned.max(axis=-1), _exponents(total, -126))
                grid = np.ldexp(1.0, largest - unit.unit_fraction_bits)[..., np.newaxis]
                whole = np.sum(np.trunc(terms / grid) * grid, axis=-1)
                step = np.ldexp(1.0, np.maximum(np.frexp(whole)[1] - 1, -126) - unit.unit_result_bits)
                cut = np.trunc(whole / step) * step
                total = np.where(np.isfinite(terms).all(axis=-1), cut, np.sum(terms, axis=-1))
            return total.astype(np.float32)

    return form
