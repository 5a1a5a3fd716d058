"""Numerics: presets, validation, and the list of freedoms."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from oracle.error import envelope, exact
from oracle.formats import round_to
from oracle.numerics import NUMERICS, Numerics


def test_presets() -> None:
    cores = {"sm70", "sm80", "sm90", "sm89_fp8", "sm90_fp8", "sm100_fp8"}
    known = {
        "float64",
        "float32",
        "float32_welford",
        "float32_chunked",
        "bfloat16_chunked",
        "float32_fast",
        "float16",
        "split_k_bfloat16",
    }
    assert set(NUMERICS) == known | {f"tensor_core_{name}" for name in cores}
    assert all(numerics.name == name for name, numerics in NUMERICS.items())
    assert NUMERICS["float32"].unit_roundoff == pytest.approx(2.0**-24, rel=1e-4)
    assert NUMERICS["float16"].unit_roundoff == pytest.approx(2.0**-11, rel=1e-4)
    assert NUMERICS["float64"].unit_roundoff == 2.0**-52, "the oracle errs as much as the kernel"
    assert NUMERICS["float64"].is_float64
    assert not NUMERICS["float32"].is_float64


def test_relative_error_of_functions() -> None:
    numerics = NUMERICS["float32"]
    u = numerics.unit_roundoff
    assert numerics.relative_error("exp") == 4 * u
    assert numerics.relative_error("expm1") == 4 * u
    assert numerics.relative_error("log") == 2 * u
    assert numerics.relative_error("rsqrt") == 4 * u
    assert Numerics("own", sqrt_ulps=0.5).relative_error("sqrt") == Numerics("own").unit_roundoff


def test_record_is_frozen_and_hashable() -> None:
    numerics = NUMERICS["float32"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        numerics.fma = False  # type: ignore[misc]
    changed = numerics.with_changes(name="no fma", fma=False)
    assert changed != numerics
    assert numerics.fma


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"exp_form": "exp3"}, "exp3"),
        ({"exp_ulps": 0.1}, "exp_ulps"),
        ({"exp_ulps": float("nan")}, "exp_ulps"),
        ({"online_tile": 0}, "online_tile"),
        ({"splits": 0}, "splits"),
        ({"tree_height": -1}, "tree_height"),
        ({"unit_group": 8}, "unit_fraction_bits"),
        ({"compute": "float32", "accumulate": "float16"}, "narrower"),
    ],
)
def test_impossible_records_are_refused(changes: dict[str, object], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Numerics("wrong", **changes)  # type: ignore[arg-type]


def test_unknown_format_is_refused() -> None:
    with pytest.raises((ValueError, KeyError), match="float33"):
        Numerics("wrong", compute="float33")


def test_describe_lists_what_is_granted() -> None:
    text = "\n".join(NUMERICS["float32_fast"].describe())
    for word in ("float32", "any order", "FMA", "flushed", "exp2", "online", "folded", "ulps", "absolute"):
        assert word in text
    strict = Numerics(
        "strict", fma=False, exp_form="exp", online_tile=None, folded_scalar=False, correct_division=True,
        correct_sqrt=True, tree_height=5, probability_format="bfloat16", splits=4, split_format="float16",
        unit_group=16, unit_fraction_bits=25, unit_result_bits=23, accumulate="float64",
    )  # fmt: skip
    text = "\n".join(strict.describe())
    for word in ("height at most 5", "correctly rounded", "bfloat16", "up to 4 parts stored in float16", "16 products"):
        assert word in text
    for word in ("FMA", "flushed", "online", "folded"):
        assert word not in text


@pytest.mark.parametrize(
    "changes",
    [
        {"splits": 4, "split_format": "float16"},
        {"unit_group": 16, "unit_fraction_bits": 13, "unit_result_bits": 13},
        {"flush_to_zero": True},
    ],
)
def test_granted_freedoms_widen_the_bound(changes: dict[str, object]) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((8, 8)).astype(np.float32) * np.float32(2.0**-60) for _ in range(2))
    wider = NUMERICS["float32"].with_changes(name="wider", **changes)
    bounds = [envelope(exact(a, n) @ exact(b, n), "float32").bound for n in (NUMERICS["float32"], wider)]
    assert (bounds[1] > bounds[0]).all()


def test_partial_sums_stored_in_a_narrow_format() -> None:
    rng = np.random.default_rng(2)
    numerics = NUMERICS["split_k_bfloat16"]
    for parts in (2, 16):
        a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((40, 64), (64, 30)))
        product = envelope(exact(a, numerics) @ exact(b, numerics), "float32")
        step = 64 // parts
        pieces = [a[:, k : k + step] @ b[k : k + step] for k in range(0, 64, step)]
        got = sum(round_to(piece, "bfloat16") for piece in pieces)
        error = np.abs(got - product.value)
        assert (error <= product.bound).all()
        assert 0.1 < np.sqrt(np.mean((error / product.sigma) ** 2)) < 1.5
    too_large = envelope(exact(np.full((1, 2), 200.0), half()) @ exact(np.full((2, 1), 200.0), half()), "float32")
    assert too_large.bound.item() == np.inf, "a partial sum beyond float16 may be an infinity"


def half() -> Numerics:
    return NUMERICS["split_k_bfloat16"].with_changes(name="in halves", split_format="float16")


def test_wider_accumulator_narrows_the_bound() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((8, 64)).astype(np.float32) for _ in range(2))
    wide = NUMERICS["float32"].with_changes(name="float64 accumulator", accumulate="float64")
    bounds = [envelope(exact(a, n) @ exact(b.T, n), "float32").bound for n in (NUMERICS["float32"], wide)]
    assert (bounds[1] < 1e-6 * bounds[0]).all()
