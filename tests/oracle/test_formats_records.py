"""The table of formats, and finding a format in it."""

import ml_dtypes
import numpy as np
import pytest

from oracle.formats import FORMATS, Format, format_of

FLOATING = [name for name, format in FORMATS.items() if not format.is_integer]


def test_the_table_holds_the_formats_of_the_field() -> None:
    assert list(FORMATS) == [
        "float64",
        "float32",
        "float16",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float4_e2m1fn",
        "int8",
        "int4",
        "uint4",
    ]


@pytest.mark.parametrize("name", FLOATING)
def test_ranges_agree_with_finfo(name: str) -> None:
    format = FORMATS[name]
    info = ml_dtypes.finfo(format.dtype)
    assert format.bits == info.bits
    assert format.exponent_bits == info.nexp
    assert format.mantissa_bits == info.nmant
    assert format.max == float(info.max)
    assert format.min_normal == float(info.smallest_normal)
    assert format.min_subnormal == float(info.smallest_subnormal)
    assert format.precision == info.nmant + 1
    assert format.unit_roundoff == 2.0 ** -(info.nmant + 1)
    # ml_dtypes says that float8_e8m0fnu, which has no sign, reaches down to -max.
    assert format.lowest == (float(info.min) if format.signed else 2.0**-127)


@pytest.mark.parametrize("name", ["int8", "int4", "uint4"])
def test_integer_ranges_agree_with_iinfo(name: str) -> None:
    format = FORMATS[name]
    info = ml_dtypes.iinfo(format.dtype)
    assert (format.bits, format.lowest, format.max) == (info.bits, info.min, info.max)
    assert format.is_integer
    with pytest.raises(ValueError, match=f"{name} has no relative rounding error"):
        _ = format.unit_roundoff


@pytest.mark.parametrize(
    ("name", "infinity", "nan", "signed_zero", "overflow"),
    [
        ("float32", True, True, True, "infinity"),
        ("bfloat16", True, True, True, "infinity"),
        ("float8_e5m2", True, True, True, "infinity"),
        ("float8_e4m3fn", False, True, True, "saturate"),
        ("float8_e4m3fnuz", False, True, False, "saturate"),
        ("float8_e5m2fnuz", False, True, False, "saturate"),
        ("float8_e8m0fnu", False, True, False, "saturate"),
        ("float6_e2m3fn", False, False, True, "saturate"),
        ("float6_e3m2fn", False, False, True, "saturate"),
        ("float4_e2m1fn", False, False, True, "saturate"),
        ("int8", False, False, False, "saturate"),
    ],
)
def test_special_values(name: str, infinity: bool, nan: bool, signed_zero: bool, overflow: str) -> None:
    format = FORMATS[name]
    assert (format.has_infinity, format.has_nan, format.signed_zero, format.overflow) == (
        infinity,
        nan,
        signed_zero,
        overflow,
    )


@pytest.mark.parametrize("name", FORMATS)
def test_format_of_name_dtype_scalar_type_and_itself(name: str) -> None:
    format = FORMATS[name]
    assert isinstance(format, Format)
    assert format_of(name) is format
    assert format_of(format.dtype) is format
    assert format_of(format.dtype.type) is format
    assert format_of(format) is format


def test_format_of_ignores_byte_order() -> None:
    assert format_of(np.dtype(">f4")) is FORMATS["float32"]


@pytest.mark.parametrize("unknown", ["fp8", "f4", "", None, np.int16, np.complex64, object()])
def test_unknown_format_names_the_known_ones(unknown: object) -> None:
    with pytest.raises(ValueError, match=r"unknown number format .*known formats: float64, float32, .*int4"):
        format_of(unknown)  # type: ignore[arg-type]
