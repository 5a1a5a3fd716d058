"""Every kernel in the simulator, with every check on, on devices whose warps have 32, 64 and 16 lanes."""

import numpy as np
import pytest

from kernels_cupy import KERNELS
from oracle.cases import Case, make_cases

# Every device and every dtype; more of float32 on sm_90 below.
PAIRS = (
    ("sim:sm_90", "float16"),
    ("sim:gfx942", "float16"),
    ("sim:gfx942", "float64"),
    ("sim:warp16", "bfloat16"),
    ("sim:warp16", "float32"),
)
NAMES = [kernel.name for kernel in KERNELS]
OPERATOR = {kernel.name: kernel.operators[0] for kernel in KERNELS}
LAYOUTS = ("transposed", "padded", "strided", "misaligned")


def _named(*operators):
    return [name for name in NAMES if OPERATOR[name] in operators]


# Ragged, long enough for several fragments a thread or several tiles, and small enough for a quick test.
RAGGED = {
    "sum": ({"d0": 3, "d1": 1057}, {"axis": 1}),
    "softmax": ({"d0": 2, "cols": 1061}, {}),
    "matmul": ({"m": 67, "k": 19, "n": 70}, {}),
    "rmsnorm": ({"rows": 2, "cols": 1061}, {}),
    "attention": (
        {"batch": 1, "heads": 2, "kv_heads": 1, "queries": 17, "keys": 18, "head_dim": 37, "v_dim": 67},
        {"causal": "bottom_right"},
    ),
    "rope": ({"tokens": 3, "heads": 2, "head_dim": 23, "max_position": 7, "half": 9}, {"pairing": "gptj"}),
}


def _ragged(name, dtype, layout="contiguous"):
    dims, params = RAGGED[OPERATOR[name]]
    return Case(OPERATOR[name], dtype, dims, params, layout=layout)


@pytest.mark.parametrize(("device", "dtype"), PAIRS)
@pytest.mark.parametrize("name", NAMES)
def test_ragged_shapes(judge, name, device, dtype):
    judge(name, _ragged(name, dtype), device)


@pytest.mark.parametrize("name", NAMES)
def test_drawn_cases(judge, name):
    for case in make_cases(OPERATOR[name], "float32", 4, 0):
        judge(name, case)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_any_layout(judge, name, layout):
    judge(name, _ragged(name, "float16", layout))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", _named("matmul", "attention", "rope"))
def test_layout_changes_no_bit(run, name, layout):
    contiguous, other = (_ragged(name, "float32", layout) for layout in ("contiguous", layout))
    for first, second in zip(
        run(name, contiguous.inputs(), **contiguous.params), run(name, other.inputs(), **other.params), strict=True
    ):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", _named("sum"))
def test_sum_of_nothing_is_zero(run, name):
    (out,) = run(name, {"x": np.empty((4, 0), np.float16)}, axis=1)
    np.testing.assert_array_equal(out, np.zeros(4, np.float16), strict=True)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", _named("sum"))
def test_lines_begin_and_end_anywhere(run, name, dtype):
    """Lines from every place of a fragment on to the ends of fragments and their neighbours, cut out of ones."""
    length = 16 // np.dtype(dtype).itemsize
    base = np.ones((5, 3 * length + 1), dtype)
    for start in range(length):
        for stop in {start + 1, length, length + 1, 2 * length - 1, 2 * length, 3 * length}:
            (out,) = run(name, {"x": base[:, start:stop]}, axis=1)
            np.testing.assert_array_equal(out, np.full(5, stop - start, dtype), strict=True)


@pytest.mark.parametrize("name", _named("sum"))
def test_float16_accumulates_in_float32(run, name):
    """A float16 running sum of ones stands still at 2048."""
    (out,) = run(name, {"x": np.ones(4100, np.float16)}, axis=0)
    np.testing.assert_array_equal(out, np.float16(4100), strict=True)


@pytest.mark.parametrize("spoiler", [np.nan, np.inf])
@pytest.mark.parametrize("at", [0, 130])
@pytest.mark.parametrize("name", _named("softmax"))
def test_nan_and_infinity_spoil_their_row_alone(run, name, at, spoiler):
    x = np.zeros((3, 200), np.float32)
    x[1, at] = spoiler
    (out,) = run(name, {"x": x})
    assert np.isnan(out[1]).all()
    np.testing.assert_array_equal(out[[0, 2]], np.float32(1 / 200))


@pytest.mark.parametrize("name", _named("softmax"))
def test_minus_infinity_has_no_share(run, name):
    x = np.full((3, 300), -np.inf, np.float32)
    x[0, [3, 299]], x[1, 0] = 7.0, -5.0
    expected = np.zeros((2, 300), np.float32)
    expected[0, [3, 299]], expected[1, 0] = 0.5, 1.0
    (out,) = run(name, {"x": x})
    np.testing.assert_array_equal(out[:2], expected)
    assert np.isnan(out[2]).all()


@pytest.mark.parametrize("name", _named("matmul"))
def test_every_transpose_with_and_without_bias(judge, name):
    for number in range(8):
        params = {"transpose_a": bool(number & 1), "transpose_b": bool(number & 2)}
        absent = ("bias",) if number & 4 else ()
        judge(name, Case("matmul", "float32", {"m": 19, "k": 35, "n": 21}, params, absent=absent))


@pytest.mark.parametrize("name", _named("matmul"))
def test_product_over_nothing_is_the_bias(run, name):
    a, b, bias = np.empty((3, 0), np.float16), np.empty((0, 5), np.float16), np.arange(5, dtype=np.float16)
    np.testing.assert_array_equal(run(name, {"a": a, "b": b, "bias": bias})[0], np.broadcast_to(bias, (3, 5)))
    np.testing.assert_array_equal(run(name, {"a": a, "b": b, "bias": None})[0], np.zeros((3, 5), np.float16))


@pytest.mark.parametrize("name", _named("attention"))
def test_rows_that_see_nothing_are_zero(run, name):
    dims = {"batch": 1, "heads": 2, "kv_heads": 1, "queries": 37, "keys": 5, "head_dim": 8, "v_dim": 6}
    inputs = Case("attention", "float16", dims).inputs()
    out, lse = run(name, inputs, causal="bottom_right")
    np.testing.assert_array_equal(out[:, :, :32], np.zeros((1, 2, 32, 6)))
    np.testing.assert_array_equal(lse[:, :, :32], np.full((1, 2, 32), -np.inf))
    np.testing.assert_array_equal(out[:, :, 32], inputs["v"][:, [0, 0], 0])  # the first row that sees sees one key


@pytest.mark.parametrize("name", _named("attention"))
def test_no_keys_give_zero(run, name):
    q, k, v = np.ones((1, 2, 3, 4), np.float32), np.ones((1, 1, 0, 4), np.float32), np.ones((1, 1, 0, 5), np.float32)
    out, lse = run(name, {"q": q, "k": k, "v": v})
    np.testing.assert_array_equal(out, np.zeros((1, 2, 3, 5), np.float32), strict=True)
    np.testing.assert_array_equal(lse, np.full((1, 2, 3), -np.inf, np.float32), strict=True)


@pytest.mark.parametrize("name", _named("attention"))
def test_heads_without_elements_weigh_all_keys_alike(judge, name):
    dims = {"batch": 1, "heads": 2, "kv_heads": 1, "queries": 3, "keys": 40, "head_dim": 0, "v_dim": 70}
    judge(name, Case("attention", "float32", dims, {"scale": 1.0}))


@pytest.mark.parametrize(("pairing", "positions"), [("neox", np.int32), ("gptj", np.int64)])
def test_rope_copies_the_tail_bit_for_bit(run, pairing, positions):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2**16, (2, 3, 29), np.uint16).view(np.float16)
    angles = rng.standard_normal((2, 4, 5)).astype(np.float16)
    inputs = {"x": x, "positions": np.array([3, 0], positions), "cos": angles[0], "sin": angles[1]}
    (out,) = run("rope", inputs, pairing=pairing)
    np.testing.assert_array_equal(out[..., 10:].view(np.uint16), x[..., 10:].view(np.uint16))


@pytest.mark.parametrize("name", _named("sum"))
def test_negative_strides(run, name):
    x = np.arange(391.0).reshape(17, 23)[::-1, ::-2]
    np.testing.assert_array_equal(run(name, {"x": x}, axis=1)[0], x.sum(axis=1))
