"""Codes of all formats of at most 16 bits, exhaustively, and the same rules as ml_dtypes where it has them."""

import ml_dtypes
import numpy as np
import pytest

from oracle.formats import FORMATS, ROUNDINGS, cast, decode, encode

SHORT = [name for name, format in FORMATS.items() if format.bits <= 16]
SHORT_FLOATING = [name for name in SHORT if not FORMATS[name].is_integer]
NAN_CODE = {
    "float16": 0x7E00,
    "bfloat16": 0x7FC0,
    "float8_e4m3fn": 0x7F,
    "float8_e4m3fnuz": 0x80,
    "float8_e5m2": 0x7E,
    "float8_e5m2fnuz": 0x80,
    "float8_e8m0fnu": 0xFF,
}
NAN_COUNT = {
    "float16": 2046,
    "bfloat16": 254,
    "float8_e4m3fn": 2,
    "float8_e4m3fnuz": 1,
    "float8_e5m2": 6,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
    "float6_e2m3fn": 0,
    "float6_e3m2fn": 0,
    "float4_e2m1fn": 0,
    "int8": 0,
    "int4": 0,
    "uint4": 0,
}


def all_codes(name: str) -> np.ndarray:
    """Every code of a format, in the integer type of its bytes."""
    return np.arange(2 ** FORMATS[name].bits).astype(np.uint8 if FORMATS[name].bits <= 8 else np.uint16)


def stored(name: str) -> np.ndarray:
    """Every code as ml_dtypes or NumPy reads it, in float64."""
    with np.errstate(invalid="ignore"):  # signalling NaN
        return all_codes(name).view(FORMATS[name].dtype).astype(np.float64)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal values, with equal signs of zeros."""
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a[a == 0]), np.signbit(b[b == 0]))


@pytest.mark.parametrize("name", SHORT)
def test_every_code_decodes_as_ml_dtypes_reads_it(name: str) -> None:
    values = decode(all_codes(name), name)
    assert same(values, stored(name))
    assert np.isnan(values).sum() == NAN_COUNT[name]


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("name", SHORT)
def test_decode_then_encode_is_the_identity(name: str, rounding: str) -> None:
    codes = all_codes(name)
    values = decode(codes, name)
    got = encode(values, name, rounding)
    assert got.dtype == codes.dtype
    assert np.array_equal(got[~np.isnan(values)], codes[~np.isnan(values)])
    assert np.all(got[np.isnan(values)] == NAN_CODE.get(name))
    if FORMATS[name].has_nan:
        assert np.array_equal(encode(values, name, rounding, saturate=False), got)


@pytest.mark.parametrize("name", SHORT)
def test_stored_arrays_are_encoded_without_a_warning_about_signalling_nan(name: str) -> None:
    codes = all_codes(name)
    values = decode(codes, name)
    assert np.array_equal(encode(codes.view(FORMATS[name].dtype), name), encode(values, name))


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("name", SHORT)
def test_decode_then_cast_is_the_identity(name: str, rounding: str) -> None:
    values = decode(all_codes(name), name)
    got = cast(values, name, rounding)
    assert got.dtype == FORMATS[name].dtype
    assert same(got.astype(np.float64), values)


@pytest.mark.parametrize("name", SHORT_FLOATING)
def test_rounding_to_nearest_agrees_with_ml_dtypes_from_float32(name: str) -> None:
    """Where it has the same rule: from float32, to nearest even, without saturation."""
    x = np.random.default_rng(7).integers(0, 2**32, 400_000, dtype=np.uint32).view(np.float32)
    finite = stored(name)[np.isfinite(stored(name))]
    near = np.concatenate([(finite * (1 + k * 2.0**-12)).astype(np.float32) for k in range(-2, 3)])
    ordered = np.unique(finite)
    x = np.concatenate([x, near, ((ordered[1:] + ordered[:-1]) / 2).astype(np.float32)])
    if not FORMATS[name].has_nan:  # float4 and float6: ml_dtypes saturates there too, but turns NaN into -0
        x = x[~np.isnan(x)]
    if name == "float8_e8m0fnu":  # ml_dtypes rounds float32 subnormals above 2**-127 up, however near they are
        x = x[(x <= 2.0**-127) | (x >= 2.0**-126)]
    with np.errstate(all="ignore"):
        expected = x.astype(FORMATS[name].dtype).astype(np.float64)
        x64 = x.astype(np.float64)
    assert same(cast(x64, name, saturate=False if FORMATS[name].has_nan else None).astype(np.float64), expected)


@pytest.mark.parametrize("name", ["int8", "int4"])
def test_integer_casts_round_then_saturate(name: str) -> None:
    lowest, largest = int(FORMATS[name].lowest), int(FORMATS[name].max)
    x = [0.5, 1.5, -0.5, -2.5, 0.49999999999999994, largest + 0.4, largest + 0.5, lowest - 0.5, 1e300, -np.inf]
    assert cast(x, name).astype(int).tolist() == [0, 2, 0, -2, 0, largest, largest, lowest, largest, lowest]
    away = cast(x, name, "nearest_away").astype(int).tolist()
    assert away == [1, 2, -1, -3, 0, largest, largest, lowest, largest, lowest]
    assert cast([-1.5], name, "toward_zero").astype(int) == [-1]
    assert cast([-1.5], name, "down").astype(int) == [-2]
    assert encode([-1.0], name).tolist() == [2 ** FORMATS[name].bits - 1]


def test_default_overflow_by_format() -> None:
    x = [1e6, -1e6, np.inf]
    assert cast(x, "float8_e4m3fn").astype(float).tolist() == [448.0, -448.0, 448.0]
    assert cast(x, "float8_e4m3fnuz").astype(float).tolist() == [240.0, -240.0, 240.0]
    assert cast(x, "float8_e5m2").astype(float).tolist() == [np.inf, -np.inf, np.inf]
    assert cast(x, "float8_e5m2", saturate=True).astype(float).tolist() == [57344.0, -57344.0, 57344.0]
    assert cast(x, "float16").tolist() == [np.inf, -np.inf, np.inf]
    assert cast(x, "float4_e2m1fn").astype(float).tolist() == [6.0, -6.0, 6.0]
    # Without saturation there is only NaN beyond the largest; 464 is the tie between 448 and the code of NaN.
    assert encode([464.0, 464.5, -1e6], "float8_e4m3fn", saturate=False).tolist() == [0x7E, 0x7F, 0x7F]
    assert encode([247.9, 248.0], "float8_e4m3fnuz", saturate=False).tolist() == [0x7F, 0x80]


def test_formats_without_negative_zero_store_plus_zero() -> None:
    tiny = [-0.0, -1e-30, 1e-30]
    for name in ("float8_e4m3fnuz", "float8_e5m2fnuz"):
        assert encode(tiny, name).tolist() == [0, 0, 0]
        assert encode([-1e-30], name, "down").tolist() == [0x81]
    assert encode(tiny, "float8_e4m3fn").tolist() == [0x80, 0x80, 0]
    assert encode(tiny, "float16").tolist() == [0x8000, 0x8000, 0]


@pytest.mark.parametrize(("name", "bits"), [("float32", np.uint32), ("float64", np.uint64)])
def test_long_formats_are_cast_but_have_no_codes_here(name: str, bits: type) -> None:
    got = cast([1 / 3, -0.0, np.inf], name)
    assert got.dtype == FORMATS[name].dtype
    assert np.array_equal(got.view(bits), np.array([1 / 3, -0.0, np.inf]).astype(name).view(bits))
    with pytest.raises(ValueError, match=f"{name} codes have more than 16 bits"):
        encode([1.0], name)
    with pytest.raises(ValueError, match=f"{name} codes have more than 16 bits"):
        decode([1], name)


@pytest.mark.parametrize("name", SHORT)
def test_shapes_are_kept(name: str) -> None:
    for shape in [(), (0,), (2, 3), (2, 0, 3)]:
        values = np.ones(shape)
        assert encode(values, name).shape == shape
        assert cast(values, name).shape == shape
        assert decode(encode(values, name), name).shape == shape
        assert np.array_equal(decode(encode(values, name), name), values)


def test_decoded_values_belong_to_the_caller() -> None:
    values = decode([1, 2], "int8")
    values[:] = 7
    assert decode([1, 2], "int8").tolist() == [1.0, 2.0]


def test_codes_outside_the_format_are_refused() -> None:
    with pytest.raises(ValueError, match="code 16 is outside float4_e2m1fn, whose codes are 0 to 15"):
        decode([3, 16], "float4_e2m1fn")
    with pytest.raises(ValueError, match="code -1 is outside int8"):
        decode(np.array([-1], np.int8), "int8")
    with pytest.raises(TypeError, match="expected integer codes, got dtype float64"):
        decode([1.0], "int8")


def test_int4_arrays_are_read_by_ml_dtypes() -> None:
    assert cast([-8, 7, -1], "int4").astype(np.int8).tolist() == [-8, 7, -1]
    assert cast([-8, 7], "int4").dtype == np.dtype(ml_dtypes.int4)
