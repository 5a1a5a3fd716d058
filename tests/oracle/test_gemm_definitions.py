"""Each matrix product against loops over scalars, its examples, and what it refuses."""

import doctest
import math

import ml_dtypes
import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.operator import OPERATORS, InputError, find_operator

find_operator("matmul")  # registers every operator
FAMILY = sorted(name for name, record in OPERATORS.items() if record.family == "gemm")


def number(x):
    return float(x)


def dot(left, right):
    """Σ left · right, rounded once at the end; NaN and infinities as float64 has them."""
    terms = [number(x) * number(y) for x, y in zip(left, right, strict=True)]
    return math.fsum(terms) if all(map(math.isfinite, terms)) else sum(terms)


def batched_matmul(a, b, bias):
    out = np.zeros((len(a), a.shape[1], b.shape[2]))
    for s, i, j in np.ndindex(out.shape):
        out[s, i, j] = dot(a[s, i], b[s, :, j]) + (0 if bias is None else number(bias[s, j]))
    return out


def grouped_matmul(a, b, ends, bias):
    out = np.zeros((len(a), b.shape[2]))
    group = 0
    for i in range(len(a)):
        while group < len(ends) and ends[group] <= i:
            group += 1
        if group == len(ends):
            break
        for j in range(b.shape[2]):
            out[i, j] = dot(a[i], b[group, :, j]) + (0 if bias is None else number(bias[group, j]))
    return out


def gemm_epilogue(a, b, c, bias, alpha, beta, activation, transpose_a, transpose_b):
    a, b = (a.T if transpose_a else a), (b.T if transpose_b else b)
    functions = {
        "none": lambda x: x,
        "relu": lambda x: x if x > 0 or x != x else 0.0,
        "silu": lambda x: x / (1 + math.exp(-x)) if x > -700 else 0.0,
        "gelu": lambda x: x * math.erfc(-x / math.sqrt(2)) / 2,
        "gelu_tanh": lambda x: x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    }
    out = np.zeros((len(a), b.shape[1]))
    for i, j in np.ndindex(out.shape):
        x = alpha * dot(a[i], b[:, j])
        x += beta * number(c[i, j]) if c is not None and beta else 0
        x += 0 if bias is None else number(bias[j])
        out[i, j] = functions[activation](x)
    return out


def matmul_a8w8(a, b, a_scale, b_scale, bias, out_dtype):
    out = np.zeros((len(a), len(b)))
    for i, j in np.ndindex(out.shape):
        out[i, j] = dot(a[i], b[j]) * number(a_scale[i]) * number(b_scale[j]) + (0 if bias is None else number(bias[j]))
    return out


def matmul_a8w8_block_scaled(a, b, a_scale, b_scale, bias, block, out_dtype):
    out = np.zeros((len(a), len(b)))
    for i, j in np.ndindex(out.shape):
        for k in range(a.shape[1]):
            scale = number(a_scale[i, k // block]) * number(b_scale[j // block, k // block])
            out[i, j] += number(a[i, k]) * number(b[j, k]) * scale
        out[i, j] += 0 if bias is None else number(bias[j])
    return out


def e2m1(code):
    """A sign, two bits of exponent, one of mantissa."""
    sign = -1.0 if code & 8 else 1.0
    exponent, mantissa = code >> 1 & 3, code & 1
    return sign * (mantissa / 2 if exponent == 0 else (1 + mantissa / 2) * 2.0 ** (exponent - 1))


def nibble(packed, row, k, high_first=False):
    byte = int(packed[row, k // 2])
    return byte >> 4 if (k % 2 == 1) != high_first else byte & 15


def place_of_scale(row, group, groups, layout):
    """Where the scale of a row and a block lies among those in tiles, one after the other."""
    if layout == "rows":
        return row * groups + group
    if layout == "aiter":  # the two halves of 32 rows and of 8 blocks take turns
        tile = row // 32 * (groups // 8) + group // 8
        return tile * 256 + group % 4 * 64 + row % 16 * 4 + group % 8 // 4 * 2 + row % 32 // 16
    tile = row // 128 * (groups // 4) + group // 4
    return tile * 512 + row % 32 * 16 + row % 128 // 32 * 4 + group % 4


def place_of_weight(row, k, columns, codes_a_byte):
    """Tiles of 16 rows × 32 bytes, in each of which 16 bytes of a row lie together."""
    byte, half = divmod(k, codes_a_byte)
    tile = row // 16 * (columns // codes_a_byte // 32) + byte // 32
    return (tile * 512 + byte % 32 // 16 * 256 + row % 16 * 16 + byte % 16) * codes_a_byte + half


def float4(a, b, a_scale, b_scale, tensor, bias, block, layout, b_layout="rows"):
    out = np.zeros((len(a), len(b)))
    weights = b
    if b_layout == "aiter":
        weights = np.empty_like(b)
        for j, byte in np.ndindex(b.shape):
            weights[j, byte] = b.reshape(-1)[place_of_weight(j, byte, b.shape[1], 1)]
    for i, j in np.ndindex(out.shape):
        for k in range(2 * a.shape[1]):
            scale = 1.0
            for given, row in ((a_scale, i), (b_scale, j)):
                scale *= number(given.reshape(-1)[place_of_scale(row, k // block, given.shape[1], layout)])
            out[i, j] += e2m1(nibble(a, i, k)) * e2m1(nibble(weights, j, k)) * scale
        out[i, j] = out[i, j] * tensor + (0 if bias is None else number(bias[j]))
    return out


def matmul_a4w4_mxfp4(a, b, a_scale, b_scale, bias, out_dtype, scale_layout="rows", b_layout="rows"):
    return float4(a, b, a_scale, b_scale, 1.0, bias, 32, scale_layout, b_layout)


def matmul_a4w4_nvfp4(
    a, b, a_scale, b_scale, a_tensor_scale, b_tensor_scale, bias, out_dtype, scale_layout="rows"
):  # fmt: skip
    tensor = number(a_tensor_scale[0]) * number(b_tensor_scale[0])
    return float4(a, b, a_scale, b_scale, tensor, bias, 16, scale_layout)


def matmul_w4a16(a, b, scale, zero, bias, group, weights, first_nibble, zero_offset):
    out = np.zeros((len(a), len(b)))
    for i, j in np.ndindex(out.shape):
        for k in range(a.shape[1]):
            point = 8 if zero is None else int(zero[j, k // group]) + zero_offset
            weight = (nibble(b, j, k, first_nibble == "high") - point) * number(scale[j, k // group])
            if weights == "float16":
                weight = number(np.float16(weight))
            elif weights == "bfloat16" and weight:
                step = 2.0 ** (math.frexp(weight)[1] - 8)
                weight = round(weight / step) * step
            out[i, j] += number(a[i, k]) * weight
        out[i, j] += 0 if bias is None else number(bias[j])
    return out


def matmul_mx(a, b, a_scale, b_scale, bias, scale_layout="rows", b_layout="rows", out_dtype="bfloat16"):
    out, weights = np.zeros((len(a), len(b))), b.reshape(-1)
    codes_a_byte = 2 if b.dtype == ml_dtypes.float4_e2m1fn else 1
    for i, j in np.ndindex(out.shape):
        for k in range(a.shape[1]):
            at = j * b.shape[1] + k if b_layout == "rows" else place_of_weight(j, k, b.shape[1], codes_a_byte)
            factor = 1.0
            for scale, row in ((a_scale, i), (b_scale, j)):
                factor *= number(scale.reshape(-1)[place_of_scale(row, k // 32, scale.shape[1], scale_layout)])
            out[i, j] += number(a[i, k]) * number(weights[at]) * factor
        out[i, j] += 0 if bias is None else number(bias[j])
    return out


def matmul_a8w8_preshuffled(a, b, a_scale, b_scale, scales="channel", out_dtype="bfloat16"):
    plain = np.empty_like(b)
    for j, k in np.ndindex(b.shape):
        plain[j, k] = b.reshape(-1)[place_of_weight(j, k, b.shape[1], 1)]
    if scales == "channel":
        return matmul_a8w8(a, plain, a_scale, b_scale, None, out_dtype)
    return matmul_a8w8_block_scaled(a, plain, a_scale, b_scale, None, 128, out_dtype)


DEFINITIONS = {
    "matmul_mx": matmul_mx,
    "matmul_a8w8_preshuffled": matmul_a8w8_preshuffled,
    "batched_matmul": batched_matmul,
    "grouped_matmul": grouped_matmul,
    "gemm_epilogue": gemm_epilogue,
    "matmul_a8w8": matmul_a8w8,
    "matmul_a8w8_block_scaled": matmul_a8w8_block_scaled,
    "matmul_a4w4_mxfp4": matmul_a4w4_mxfp4,
    "matmul_a4w4_nvfp4": matmul_a4w4_nvfp4,
    "matmul_w4a16": matmul_w4a16,
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_equals_loops_over_scalars(name):
    record = OPERATORS[name]
    dtype = "float32" if "float32" in record.dtypes else record.dtypes[0]
    looped = 0
    for case in make_cases(name, dtype, 32, seed=7):
        inputs = case.inputs()
        (value,) = record.value(inputs, case.params)
        if value.size * inputs["a"].shape[-1] > 40_000:
            continue
        looped += 1
        with np.errstate(all="ignore"):
            other = DEFINITIONS[name](*inputs.values(), **record.signature.complete(case.params))
        # what cancels leaves float64's own rounding of the largest terms
        scale = np.abs(other, where=np.isfinite(other), out=np.zeros_like(other)).max(initial=1e-30)
        np.testing.assert_allclose(value, other, rtol=1e-11, atol=1e-12 * scale, err_msg=str(case))
    assert looped >= 20


@pytest.mark.parametrize("name", FAMILY)
def test_example_and_documentation(name):
    record = OPERATORS[name]
    example = doctest.DocTestParser().get_doctest(record.doc, {"np": np, name: record}, name, None, None)
    assert len(example.examples) >= 1
    assert doctest.DocTestRunner().run(example).failed == 0
    for part in ("Parameters", "Returns", "Rounding points", "Raises", "Source:", "Examples"):
        assert part in record.doc
    for argument in (*record.inputs, *record.params, *(output.name for output in record.outputs)):
        assert argument in record.doc, argument


CODES, ROW = np.ones((4, 33), np.int8), np.ones(4, np.float32)
F8, NIBBLES = np.ones((4, 33), "float8_e4m3fn"), np.ones((4, 17), np.uint8)
E8M0, E4M3 = np.ones((4, 2), "float8_e8m0fnu"), np.ones((4, 2), "float8_e4m3fn")
A = np.ones((4, 3), np.float32)
B = np.ones((2, 3, 5), np.float32)


@pytest.mark.parametrize(
    ("name", "arrays", "params", "words"),
    [
        ("batched_matmul", (A[np.newaxis], B), {}, "dimension batch is 2 in b"),
        ("batched_matmul", (B, B), {}, "dimension k is 3 in b of shape (2, 3, 5) but 5 in a"),
        ("grouped_matmul", (A, B, np.array([3, 2])), {}, "ends = [3, 2] must never fall"),
        ("grouped_matmul", (A, B, np.array([2, 5])), {}, "not exceed rows = 4"),
        ("grouped_matmul", (A, B, np.array([2])), {}, "dimension groups"),
        ("grouped_matmul", (A, B, np.array([-1, 2])), {}, "ends[0] = -1"),
        ("gemm_epilogue", (A, B[0]), {"alpha": 0.0}, "alpha=0 leaves no product"),
        ("gemm_epilogue", (A, B[0]), {"beta": float("inf")}, "beta=inf must be finite"),
        ("gemm_epilogue", (A, B[0]), {"activation": "tanh"}, "activation='tanh'"),
        ("gemm_epilogue", (A, B[0], A), {}, "dimension n is 3 in c"),
        ("matmul_a8w8", (CODES, CODES, ROW, ROW[:3]), {}, "dimension n is 3 in b_scale"),
        ("matmul_a8w8", (CODES, CODES, ROW, ROW), {"out_dtype": "int8"}, "out_dtype='int8'"),
        ("matmul_a8w8", (CODES, CODES.astype(np.float32), ROW, ROW), {}, "b has dtype float32"),
        (
            "matmul_a8w8_block_scaled",
            (CODES, CODES, ROW[:, np.newaxis], ROW[:1, np.newaxis]),
            {"block": 32},
            "k = 33 has 2 blocks of 32, but the scales have k_blocks = 1",
        ),
        (
            "matmul_a8w8_block_scaled",
            (CODES, CODES, ROW[:, np.newaxis], ROW[:2, np.newaxis]),
            {},
            "n = 4 has 1 blocks of 128, but the scales have n_blocks = 2",
        ),
        ("matmul_mx", (F8, F8, E8M0, E8M0[:, :1]), {}, "dimension k_blocks is 1 in b_scale"),
        (
            "matmul_mx",
            (F8, F8, E8M0, E8M0),
            {"scale_layout": "cublas"},
            "need m_padded = 128 in layout 'cublas', not 4",
        ),
        ("matmul_mx", (F8, F8, E8M0, E8M0), {"b_layout": "aiter"}, "b of 4×33 has no whole tiles of 16×64; pad it"),
        ("matmul_a8w8_preshuffled", (CODES, CODES, ROW, ROW), {}, "has no whole tiles of 16×32; pad it"),
        ("matmul_a4w4_mxfp4", (NIBBLES, NIBBLES, E8M0[:, :1], E8M0[:, :1]), {}, "k = 34 has 2 blocks of 32"),
        ("matmul_a4w4_mxfp4", (NIBBLES, NIBBLES, E4M3, E4M3), {}, "a_scale has dtype float8_e4m3fn"),
        ("matmul_a4w4_nvfp4", (NIBBLES, NIBBLES, E4M3, E4M3, ROW[:1], ROW[:1]), {}, "k = 34 has 3 blocks of 16"),
        (
            "matmul_a4w4_nvfp4",
            (NIBBLES[:, :16], NIBBLES[:, :16], E4M3, E4M3, ROW[:2], ROW[:2]),
            {},
            "a tensor has one scale, not 2",
        ),
        ("matmul_w4a16", (A, NIBBLES[:, :2], A[:, :1]), {}, "k = 3 needs half_k = k / 2 bytes"),
        ("matmul_w4a16", (A[:, :2], NIBBLES[:, :1], A[:, :2]), {}, "k = 2 has 1 groups of 128, but the scales have 2"),
        (
            "matmul_w4a16",
            (A[:, :2], NIBBLES[:, :1], A[:, :1], np.full((4, 1), 16, np.uint8)),
            {},
            "zero[0, 0] = 16 must be at least 0 and below 16",
        ),
    ],
)
def test_refuses_what_is_outside_the_specification(name, arrays, params, words):
    with pytest.raises(InputError) as caught:
        OPERATORS[name](*arrays, **params)
    assert words in str(caught.value)
