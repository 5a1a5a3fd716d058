"""Codes of 8-bit floats from float64, as CUDA's header defines them: saturated or not, and e8m0 by direction."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from refsim.engine.intrinsics.conversion import converter
from refsim.engine.intrinsics.entry import Entry

NAN, INFINITY = {"float8_e4m3fn": 0x7F, "float8_e5m2": 0x7F}, {"float8_e4m3fn": 0x7F, "float8_e5m2": 0x7C}
_LARGEST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
# from here on a number that is not saturated is infinite, or NaN where there is no infinity
_EDGE = {"float8_e4m3fn": np.nextafter(464.0, 999.0), "float8_e5m2": 61440.0}


def entries() -> Iterator[Entry]:
    """All conversions to codes."""
    for kind in NAN:
        for name, saturates in (("sat", True), ("nosat", False)):
            yield Entry(f"{kind}_{name}", ("float64",), ("uint8",), partial(_code, kind, saturates), 0.5)
    for mode in ("ru", "rz"):
        for name, saturates in (("sat", True), ("nosat", False)):
            function = partial(_exponent_code, mode == "ru", saturates)
            yield Entry(f"float8_e8m0fnu_{mode}_{name}", ("float64",), ("uint8",), function, 0.5)


def _code(kind: str, saturates: bool, x: Any) -> Any:
    code = converter("float64", kind)(np.clip(x, -_LARGEST[kind], _LARGEST[kind])).view(np.uint8).astype(np.int64)
    if not saturates:
        sign = np.where(np.signbit(x), 0x80, 0)
        code = np.where(np.abs(x) >= _EDGE[kind], sign | INFINITY[kind], code)
    return np.where(np.isnan(x), NAN[kind], code)


def _exponent_code(up: bool, saturates: bool, x: Any) -> Any:
    """The exponent of the magnitude, from 2**-127 on; the code of NaN is 255."""
    size = np.abs(x)
    mantissa, exponent = np.frexp(np.where(np.isfinite(size), size, 1.0))
    code = np.fmax(exponent.astype(np.int64) - 1 + 127, 0)
    if up:
        code = np.where((mantissa != 0.5) & (size > 2.0**-127), code + 1, code)
        code = np.where((size > 2.0**-127) & (size < 2.0**-126), 1, code)
    code = np.where(size <= 2.0**-127, 0, code)
    highest = 255 if up and not saturates else 254
    code = np.where(np.isinf(size), 254 if saturates else 255, np.fmin(code, highest))
    return np.where(np.isnan(size), 255, code)
