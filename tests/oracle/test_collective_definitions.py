"""Collectives against loops over ranks and elements, exact sums and float32 additions, and what they refuse."""

import math

import ml_dtypes
import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.numerics import NUMERICS
from oracle.operator import InputError, find_operator

DTYPES = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
NOT_NUMBERS = {"not_a_number", "infinities", "mixed"}


def ring(ranks, chunk):
    """The ranks that add to a chunk, in turn: the one after its owner first, the owner last."""
    return [(chunk + step) % ranks for step in range(1, ranks + 1)]


def in_order(x, order, hop):
    """Sums in a promised order, one float32 addition and one rounding at a time."""
    ranks, size = x.shape
    width = max(math.ceil(size / ranks), 1)
    totals = []
    for i in range(size):
        turn = list(range(ranks)) if order == "rank" else ring(ranks, i // width)
        total = np.float32(x[turn[0], i])
        for rank in turn[1:]:
            total = np.float32((total + np.float32(x[rank, i])).astype(DTYPES[hop]))
        totals.append(float(total))
    return totals


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["all_reduce", "reduce_scatter"])
def test_sums_over_ranks(name, dtype):
    promised = 0
    for case in make_cases(name, dtype, 60, seed=3):
        if case.value_class in NOT_NUMBERS:
            continue
        x = case.inputs()["x"]
        params = find_operator(name).signature.complete(case.params)
        (out,) = find_operator(name).value(case.inputs(), case.params)
        rows = out if name == "all_reduce" else out.reshape(1, -1)
        if params["order"] == "any":
            want = [math.fsum(column) for column in x.astype(float).T.tolist()]
            scale = np.abs(x.astype(float)).max(initial=0.0)
            for row in rows:
                np.testing.assert_allclose(row, want, rtol=1e-13, atol=1e-14 * scale)
            continue
        with np.errstate(over="ignore"):
            want = in_order(x, params["order"], params["hop"])
        for row in rows:
            assert row.tolist() == want, str(case)
        promised += len(want)
    assert promised > 500


@pytest.mark.parametrize("order", ["rank", "ring"])
def test_a_promised_order_is_one_number(order):
    x = np.random.default_rng(3).standard_normal((5, 40)).astype(np.float32)
    (part,) = find_operator("all_reduce").expect({"x": x}, {"order": order}, NUMERICS["float32"])
    assert not part.bound.any()
    (free,) = find_operator("all_reduce").expect({"x": x}, {}, NUMERICS["float32"])
    assert free.bound.all()


def test_copies():
    for case in make_cases("all_gather", "float16", 40, seed=3):
        x = case.inputs()["x"]
        (out,) = find_operator("all_gather").value(case.inputs(), {})
        for rank, part in np.ndindex(len(x), len(x)):
            piece = out[rank, :, part * x.shape[2] : (part + 1) * x.shape[2]]
            np.testing.assert_array_equal(piece, x[part].astype(np.float64))


def test_exchange():
    for case in make_cases("all_to_all", "bfloat16", 40, seed=3):
        x, counts = case.inputs().values()
        (out,) = find_operator("all_to_all").value(case.inputs(), {})
        for sender, receiver in np.ndindex(counts.shape):
            count = int(counts[sender, receiver])
            sent = x[sender, receiver, :count].astype(np.float64)
            np.testing.assert_array_equal(out[receiver, sender, :count], sent)
            assert not out[receiver, sender, count:].any()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_fused_norm_against_scalar_loops(dtype):
    record = find_operator("all_reduce_rmsnorm")
    for case in make_cases("all_reduce_rmsnorm", dtype, 50, seed=3):
        if case.value_class in NOT_NUMBERS or math.prod(case.dims.values()) > 5000:
            continue
        x, residual, weight = case.inputs().values()
        params = record.signature.complete(case.params)
        residual_out, out = record.value(case.inputs(), case.params)
        for row in range(len(residual)):
            columns = zip(residual[row].tolist(), *x[:, row].tolist(), strict=True)
            total = [math.fsum(map(float, column)) for column in columns]
            terms = max(1e-300, float(np.abs(x.astype(float)).max()))
            np.testing.assert_allclose(residual_out[row], total, rtol=1e-13, atol=1e-14 * terms)
            if params["normalised"] == "stored":  # what was stored is the definition's own, rounded
                total = [float(np.float64(t).astype(np.float32).astype(DTYPES[dtype])) for t in residual_out[row]]
            root = math.sqrt(math.fsum(t * t for t in total) / len(total) + params["eps"])
            want = [t / root * float(w) for t, w in zip(total, weight, strict=True)]
            np.testing.assert_allclose(out[row], want, rtol=1e-11, atol=1e-12 * max(1.0, terms))


X = np.ones((2, 4), np.float32)


@pytest.mark.parametrize(
    ("name", "arrays", "params", "words"),
    [
        ("all_reduce", (X,), {"hop": "bfloat16"}, "hop='bfloat16' needs a promised order"),
        ("all_reduce", (X[:0],), {}, "ranks = 0"),
        ("all_reduce", (X,), {"order": "tree"}, "'tree'"),
        ("all_reduce", (X.astype(np.float64),), {}, "x has dtype float64"),
        ("reduce_scatter", (X[:, :3],), {}, "size = 3 must be a multiple of ranks = 2"),
        ("all_gather", (X[:0, :, np.newaxis],), {}, "ranks = 0"),
        ("all_to_all", (np.ones((2, 3, 1, 1)), np.ones((2, 3), int)), {}, "x has 3 blocks per rank"),
        ("all_to_all", (np.ones((1, 1, 1, 1)), np.array([[2]])), {}, "counts holds 2, and capacity is 1"),
        ("all_reduce_rmsnorm", (np.ones((2, 3, 0)), np.ones((3, 0)), np.ones(0)), {}, "float64"),
        ("all_reduce_rmsnorm", (X.reshape(2, 4, 1)[:, :, :0], X[:1].T[:, :0], X[0, :0]), {}, "cols = 0"),
        ("all_reduce_rmsnorm", (X.reshape(2, 2, 2), X[:, :2], X[0, :2]), {"eps": 0.0}, "eps=0.0"),
    ],
)
def test_refuses(name, arrays, params, words):
    with pytest.raises(InputError) as caught:
        find_operator(name)(*arrays, **params)
    assert words in str(caught.value)
