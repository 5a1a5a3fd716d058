"""Compiler options that change float arithmetic: -ftz, -fmad, -prec-div, -use_fast_math. Bits measured on an H200."""

import numpy as np
import pytest
from cpp_launch import LANES, launched

X = np.array([1e-40, -1e-40, 1.2e-38, -1.3e-38], np.float32)
Y = np.array([3, 1, -1.19e-38, 0.5], np.float32)
Z = np.array([0, 1e-39, 2e-40, -1e-45], np.float32)

KEPT = {
    "x+y": "40400000 3f800000 000116c2 3f000000", "x*y": "00034446 800116c2 80000000 8046c75b",
    "fmaf(x,y,z)": "00034446 0009ccd6 00022d85 8046c75c", "x/y": "00005ceb 800116c2 bf81135c 810d8eb6",
    "-x": "800116c2 000116c2 8082ab1e 008d8eb6", "fabsf(x)": "000116c2 000116c2 0082ab1e 008d8eb6",
    "x<0": "00000000 3f800000 00000000 3f800000", "(double)x*1e30": "2edbe6b1 aedbe6b1 324e288f b25f569b",
    "copysignf(x,y)": "000116c2 000116c2 8082ab1e 008d8eb6", "truncf(x)": "00000000 80000000 00000000 80000000",
    "ceilf(x)": "3f800000 80000000 3f800000 80000000", "fmodf(x,1e-39f)": "000116c2 800116c2 000ae396 800ae396",
    "nextafterf(x,1)": "000116c3 800116c1 0082ab1f 808d8eb5", "ldexpf(x,30)": "0c0b6100 8c0b6100 0f82ab1e 8f8d8eb6",
    "__fmul_rd(x,y)": "00034446 800116c2 80000001 8046c75b", "__float2int_ru(x)": "3f800000 00000000 3f800000 00000000",
    "(x>y?x:y)": "40400000 3f800000 0082ab1e 3f000000",
}  # fmt: skip
FLUSHED = {
    "x+y": "40400000 3f800000 00000000 3f000000", "x*y": "00000000 80000000 80000000 80000000",
    "fmaf(x,y,z)": "00000000 00000000 80000000 80000000", "x/y": "00000000 80000000 bf81135c 810d8eb6",
    "-x": "80000000 00000000 8082ab1e 008d8eb6", "fabsf(x)": "00000000 00000000 0082ab1e 008d8eb6",
    "fminf(x,1)": "00000000 80000000 0082ab1e 808d8eb6", "fmaxf(x,y)": "40400000 3f800000 0082ab1e 3f000000",
    "x<0": "00000000 00000000 00000000 3f800000", "x!=0": "00000000 00000000 3f800000 3f800000",
    "(double)x*1e30": "00000000 80000000 324e288f b25f569b",
}  # fmt: skip
# not measured: by the instructions that NVRTC writes for them
FLUSHED_BY_PTX = {
    "copysignf(x,y)": KEPT["copysignf(x,y)"], "x": "000116c2 800116c2 0082ab1e 808d8eb6",
    "ceilf(x)": "00000000 80000000 3f800000 80000000", "__fmul_rd(x,y)": "00000000 80000000 80000000 80000000",
    "__float2int_ru(x)": "00000000 00000000 3f800000 00000000", "(x>y?x:y)": KEPT["(x>y?x:y)"],
    "x*1e20f": "00000000 80000000 1f42ab1d 9f532619",
}  # fmt: skip


def evaluated(expressions, *operands, options=()):
    """Expressions of x, y and z, each one array of a single launch."""
    count = len(operands[0])
    found = {expression: np.zeros(count, np.float32) for expression in expressions}
    whole = np.zeros(len(found) * count, np.float32)
    names = dict(zip("xyz", "abc", strict=False))
    output = "abcd"[len(operands)]
    body = "".join(f"const float {name} = {array}[i];" for name, array in list(names.items())[: len(operands)])
    body += "".join(f"\n{output}[{number * count} + i] = {e};" for number, e in enumerate(found))
    launched(body, *operands, whole, block=count, options=options)
    return dict(zip(found, whole.reshape(-1, count), strict=True))


def values(expressions, *options):
    """Bits of expressions of X, Y and Z under options, as text."""
    found = evaluated(expressions, X, Y, Z, options=options)
    return {e: " ".join(f"{bits:08x}" for bits in out.view(np.uint32)) for e, out in found.items()}


def test_subnormal_numbers_are_kept_by_default():
    assert values(KEPT) == KEPT


def test_subnormal_numbers_are_flushed_where_instructions_say_so():
    expected = FLUSHED | FLUSHED_BY_PTX
    with np.errstate(all="ignore"):
        product = (X[2:] * np.float32(1e20)).view(np.uint32)
    expected["x*1e20f"] = f"00000000 80000000 {product[0]:08x} {product[1]:08x}"
    assert values(expected, "-ftz=true") == expected


def test_flushing_leaves_doubles_and_halves_alone():
    x, half = np.array([1e-310]), np.array([6e-8], np.float16)
    doubled, halved, wide = np.zeros(1), np.zeros(1, np.float16), np.zeros(1, np.float32)
    body = "c[i] = a[i] * 2; d[i] = b[i] + b[i]; e[i] = (float)b[i];"
    before = "#include <cuda_fp16.h>"
    launched(body, x, half, doubled, halved, wide, block=1, options=("-ftz=true",), before=before)
    assert (doubled[0], halved[0], wide[0]) == (2e-310, half[0] * 2, np.float32(half[0]))


# ---- contraction ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "fused"),
    [
        ("d[i] = a[i] * b[i] + c[i];", True),
        ("d[i] = c[i] + a[i] * b[i];", True),
        ("float p = a[i] * b[i]; d[i] = p + c[i];", True),
        ("float x = a[i], y = b[i]; float p = x * y; x = 0; d[i] = p + c[i];", False),
        ("float p = a[i] * b[i]; if (i >= 0) { d[i] = p + c[i]; }", False),
        ("float s = c[i]; for (int k = 0; k < 1; k++) s += a[i] * b[i]; d[i] = s;", True),
        ("d[i] = __fmul_rn(a[i], b[i]) + c[i];", False),
        ("d[i] = __fadd_rn(a[i] * b[i], c[i]);", False),
    ],
)
def test_a_product_and_a_sum_of_it_in_a_straight_run_are_rounded_once(body, fused):
    rng = np.random.default_rng(5)
    a, b, c = (rng.normal(size=LANES).astype(np.float32) for _ in range(3))
    exact = a.astype(np.float64) * b + c  # 48 bits and a sum within their reach: rounded in effect once below
    once, twice = exact.astype(np.float32), a * b + c
    assert (once != twice).any()
    for option, expected in (("-fmad=true", once if fused else twice), ("-fmad=false", twice), ("-w", twice)):
        d = np.zeros(LANES, np.float32)
        launched(body, a, b, c, d, options=(option,))
        np.testing.assert_array_equal(d, expected)


@pytest.mark.parametrize(
    ("expression", "exact"),
    [
        ("x * y - z", lambda x, y, z: x * y - z), ("z - x * y", lambda x, y, z: z - x * y),
        ("-(x * y) - z", lambda x, y, z: -(x * y) - z),
        ("x * y + z * x", lambda x, y, z: x * y + (z * x).astype(np.float32)),  # the second product is rounded
    ],
)  # fmt: skip
def test_differences_and_sums_of_two_products(expression, exact):
    rng = np.random.default_rng(6)
    operands = [rng.normal(size=LANES).astype(np.float32) for _ in range(3)]
    result = np.zeros(LANES, np.float32)
    body = f"const float x = a[i], y = b[i], z = c[i]; d[i] = {expression};"
    launched(body, *operands, result, options=("-fmad=true",))
    np.testing.assert_array_equal(result, exact(*(x.astype(np.float64) for x in operands)).astype(np.float32))


# ---- fast functions -------------------------------------------------------------------------------------------------

F = np.float32


def log2(x):
    return np.log2(x.astype(np.float64)).astype(F)


def exp2(x):
    return np.exp2(x.astype(np.float64)).astype(F)


def quotient(x, y):
    return x * (1 / y.astype(np.float64)).astype(F)


def of(function):
    return lambda x, y: function(x.astype(np.float64)).astype(F)


FAST = {
    "__expf(x)": ("expf(x)", lambda x, y: exp2(x * F(1.44269504))),
    "__exp10f(x)": ("exp10f(x)", lambda x, y: exp2(x * F(3.32192809))),
    "__logf(fabsf(x))": ("logf(fabsf(x))", lambda x, y: log2(np.abs(x)) * F(0.693147181)),
    "__log2f(fabsf(x))": ("log2(fabsf(x))", lambda x, y: log2(np.abs(x))),
    "__log10f(fabsf(x))": ("log10f(fabsf(x))", lambda x, y: log2(np.abs(x)) * F(0.301029996)),
    "__powf(fabsf(x),y)": ("powf(fabsf(x),y)", lambda x, y: exp2(y * log2(np.abs(x)))),
    "__fdividef(x,y)": ("x/y", quotient),
    "__sinf(x)": ("sin(x)", of(np.sin)),
    "__cosf(x)": ("cosf(x)", of(np.cos)),
    "__tanf(x)": ("tanf(x)", lambda x, y: quotient(of(np.sin)(x, y), of(np.cos)(x, y))),
}

SAMPLES_X = "bddaf3d3 3c22be53 3dc1484e bcb72766 bf3b2da4 bdcdf9e8"
SAMPLES_Y = "3eba73d7 bc42c9ad c030e35d 40de7c75 3c073758 c0914873"
DEVICE = {
    "__expf(x)": "3f660b0e 3f81471c 3f8cab26 3f7a5707 3ef67338 3f678161",
    "__exp10f(x)": "3f482354 3f82f619 3f9f11b9 3f73278c 3e3e2ab6 3f4b144d",
    "__logf(fabsf(x))": "c00f16c3 c0939490 c01711e1 c0733ccf bea050b8 c012ffba",
    "__log2f(fabsf(x))": "c04e6f05 c0d4e9d5 c059f29d c0af7573 bee7493e c054131b",
    "__log10f(fabsf(x))": "bf789228 c0002fc8 bf8337b5 bfd34600 be0b3f84 bf7f5d02",
    "__sinf(x)": "bdda8910 3c22bdad 3dc0fed4 bcb7233d bf2af0d4 bdcda0fe",
    "__cosf(x)": "3f7e89d3 3f7ffcc5 3f7edc5b 3f7fef9f 3f3e90cb 3f7eb4d2",
    "__tanf(x)": "bddbca4f 3c22bfbb 3dc1dbad bcb72ef5 bf65a2f6 bdceac5b",
    "__powf(fabsf(x),y)": "3ee2d0cb 3f8736d8 442a54c3 2c6b34ba 3f7f56de 4703ff18",
    "__fdividef(x,y)": "be964faf bf55e2bd bd0bdcfe bb52be34 c2b13062 3cb5791c",
}


def from_bits(text):
    return np.array([int(word, 16) for word in text.split()], np.uint32).view(np.float32)


X_LONG = np.random.default_rng(7).normal(size=LANES).astype(np.float32) * 8
Y_LONG = np.random.default_rng(8).normal(size=LANES).astype(np.float32) * 3


def is_loose(name):
    """Sine and cosine of float32 are NumPy's own, within 1.5 ulp of the reference; a tangent has two of them."""
    return name[2:5] in ("sin", "cos", "tan")


def test_fast_functions_are_their_documented_formula():
    for name, fast in evaluated(FAST, X_LONG, Y_LONG).items():
        np.testing.assert_allclose(fast, FAST[name][1](X_LONG, Y_LONG), rtol=1e-6 if is_loose(name) else 0)


def test_use_fast_math_is_the_fast_functions():
    ordinary = {name: usual for name, (usual, _) in FAST.items()}
    replaced = evaluated(ordinary.values(), X_LONG, Y_LONG, options=("-use_fast_math",))
    exact = evaluated(ordinary.values(), X_LONG, Y_LONG)
    for name, fast in evaluated(FAST, X_LONG, Y_LONG, options=("-ftz=true",)).items():
        np.testing.assert_array_equal(replaced[ordinary[name]], fast)
        # log2 is rounded correctly either way
        assert is_loose(name) or "log2" in name or (exact[ordinary[name]] != fast).any()


def test_a_device_gives_nearly_the_same():
    x, y = from_bits(SAMPLES_X), from_bits(SAMPLES_Y)
    for name, got in evaluated(DEVICE, x, y).items():
        measured = from_bits(DEVICE[name])
        # ex2, lg2 and rcp of the hardware have 2 ulp; sin and cos 2**-21 absolutely; a power multiplies lg2's error
        factor = 1 + np.abs(y * np.log2(np.abs(x))) if "pow" in name else 1
        bound = 4 * np.spacing(np.abs(measured)) * factor + (2**-21 if is_loose(name) else 0)
        assert (np.abs(got - measured) <= bound).all(), name


def divided(x, y, *options):
    return evaluated(["x / y"], x, y, options=options)["x / y"]


def test_a_fast_quotient_of_a_huge_divisor_is_zero_and_a_full_one_is_not():
    x, y = np.array([1e38, np.inf, -1e38], np.float32), np.array([2e38, 2e38, 2e38], np.float32)
    fast = divided(x, y, "-use_fast_math")
    assert fast[0] == 0
    assert np.isnan(fast[1])
    np.testing.assert_allclose(divided(x, y, "-prec-div=false"), [0.5, np.inf, -0.5], rtol=2e-7)


def test_quotients_by_a_reciprocal_are_within_two_ulps():
    rng = np.random.default_rng(9)
    x, y = (rng.normal(size=LANES) * 10.0 ** rng.integers(-30, 30, LANES) for _ in range(2))
    x, y = x.astype(np.float32), y.astype(np.float32)
    exact = x.astype(np.float64) / y
    normal = (np.abs(exact) < 3e38) & (np.abs(exact) > 2e-38)
    with np.errstate(over="ignore"):
        nearest = exact.astype(np.float32)
    for options in (("-prec-div=false",), ("-prec-div=false", "-ftz=true")):
        got = divided(x, y, *options)
        assert (np.abs(got - exact)[normal] <= 2 * np.spacing(np.abs(nearest[normal]))).all()
        assert (got != nearest)[normal].any()


def test_use_fast_math_turns_on_what_it_should():
    x, y = np.array([1e-40, 3], np.float32), np.array([1, 7], np.float32)
    both = ["x + 0.f", "x / y"]
    correct = np.float32(3) / np.float32(7)
    for options, small, precise in [
        (("-use_fast_math",), 0, False), (("-use_fast_math", "-ftz=false"), np.float32(1e-40), False),
        (("-ffast-math",), np.float32(1e-40), False), (("-use_fast_math", "-prec-div=true"), 0, True), ((), x[0], True),
    ]:  # fmt: skip
        total, quotient = evaluated(both, x, y, options=options).values()
        assert total[0] == small
        assert (quotient[1] == correct) == precise


def test_reciprocal_square_root_is_rounded_to_nearest():
    x = np.random.default_rng(10).uniform(0.5, 4, 256).astype(np.float32)
    got = evaluated(["__frsqrt_rn(x)"], x)["__frsqrt_rn(x)"]
    np.testing.assert_array_equal(got, (1 / np.sqrt(x.astype(np.longdouble))).astype(np.float32))
