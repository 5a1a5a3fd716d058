"""Every supported function keeps the plain value, the rest is refused by name, single rules give the right bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oracle.error import ErrorBounded, UndecidableError, UnsupportedOperationError, envelope, exact
from oracle.error.registry import FUNCTIONS, UFUNCS
from oracle.numerics import NUMERICS
from oracle.vocabulary import (
    accumulate,
    chain,
    erf,
    hull,
    may_round,
    pivot,
    rescaled,
    round_to_format,
    rsqrt,
    scaled,
    sigmoid,
)

F32 = NUMERICS["float32"]
U = 2.0**-24
RNG = np.random.default_rng(0)
X = (np.abs(RNG.standard_normal((3, 4))) + 0.5).astype(np.float32).astype(float)
Y = RNG.standard_normal((3, 4)).astype(np.float32).astype(float)

SUPPORTED: dict[Any, Callable[[Any, Any], Any]] = {
    np.add: lambda x, y: x + y,
    np.subtract: lambda x, y: 1.5 - y,
    np.multiply: lambda x, y: x * y * 0.3,
    np.divide: lambda x, y: y / x,
    np.negative: lambda x, y: -x,
    np.positive: lambda x, y: +x,
    np.absolute: lambda x, y: abs(y),
    np.fabs: lambda x, y: np.fabs(y),
    np.square: lambda x, y: np.square(y),
    np.power: lambda x, y: x**-2 + y**3,
    np.exp: lambda x, y: np.exp(y),
    np.exp2: lambda x, y: np.exp2(y),
    np.expm1: lambda x, y: np.expm1(y),
    np.log: lambda x, y: np.log(x),
    np.log2: lambda x, y: np.log2(x),
    np.log1p: lambda x, y: np.log1p(x),
    np.sqrt: lambda x, y: np.sqrt(x),
    np.tanh: lambda x, y: np.tanh(y),
    np.sin: lambda x, y: np.sin(y),
    np.cos: lambda x, y: np.cos(y),
    np.maximum: lambda x, y: np.maximum(x, 3 * y),
    np.minimum: lambda x, y: np.minimum(x, y),
    np.less: lambda x, y: np.where(x < y, x, y),
    np.less_equal: lambda x, y: np.where(x <= y, x, y),
    np.greater: lambda x, y: np.where(x * x > y * y, x, y),
    np.greater_equal: lambda x, y: np.where(x >= y, x, 0.0),
    np.equal: lambda x, y: np.where(x == y, x, y),
    np.not_equal: lambda x, y: np.where(x != y, x, y),
    np.isfinite: lambda x, y: np.where(np.isfinite(x / y), x, y),
    np.isnan: lambda x, y: np.where(np.isnan(x), x, y),
    np.isinf: lambda x, y: np.where(np.isinf(x), x, y),
    np.matmul: lambda x, y: x @ y.T,
    np.dot: lambda x, y: np.dot(x, y.T),
    np.einsum: lambda x, y: np.einsum("ij,kj->ki", x, y) + np.einsum("ij->", x),
    np.sum: lambda x, y: np.sum(x) + y.sum(axis=(0, 1)),
    np.mean: lambda x, y: np.mean(x, axis=0, keepdims=True) * y,
    np.var: lambda x, y: np.var(x, axis=1, keepdims=True) * y,
    np.prod: lambda x, y: np.prod(y, axis=1),
    np.cumsum: lambda x, y: np.cumsum(y, axis=0),
    np.max: lambda x, y: np.max(y * x, axis=-1),
    np.min: lambda x, y: np.min(y, axis=0, initial=0.25),
    np.clip: lambda x, y: np.clip(y * y, 0.1, 0.9),
    np.where: lambda x, y: np.where(np.eye(3, 4, dtype=bool), x, -np.inf),
    np.argmax: lambda x, y: np.take_along_axis(x, np.argmax(y, axis=1)[:, None], axis=1),
    np.argmin: lambda x, y: np.take(x, np.argmin(y * y)),
    np.reshape: lambda x, y: np.reshape(x, (4, 3)) + y.reshape(4, 3),
    np.ravel: lambda x, y: np.ravel(x),
    np.transpose: lambda x, y: np.transpose(x, (1, 0)) * y.T,
    np.swapaxes: lambda x, y: np.swapaxes(x, 0, 1),
    np.moveaxis: lambda x, y: np.moveaxis(x, 0, 1),
    np.expand_dims: lambda x, y: np.expand_dims(x, 1) * y[:, None],
    np.squeeze: lambda x, y: np.squeeze(x[:, :1]),
    np.flip: lambda x, y: np.flip(x, 1),
    np.roll: lambda x, y: np.roll(x, 1, axis=1),
    np.tril: lambda x, y: np.tril(x),
    np.triu: lambda x, y: np.triu(x),
    np.copy: lambda x, y: np.copy(x),
    np.atleast_1d: lambda x, y: np.atleast_1d(x),
    np.atleast_2d: lambda x, y: np.atleast_2d(x[0]),
    np.rot90: lambda x, y: np.rot90(x),
    np.diagonal: lambda x, y: np.diagonal(x),
    np.broadcast_to: lambda x, y: np.broadcast_to(x, (2, 3, 4)),
    np.repeat: lambda x, y: np.repeat(x, 2, axis=0),
    np.tile: lambda x, y: np.tile(x, (2, 1)),
    np.take: lambda x, y: np.take(x * y, [0, 2], axis=0),
    np.take_along_axis: lambda x, y: np.take_along_axis(x, np.array([[0], [1], [3]]), axis=1),
    np.concatenate: lambda x, y: np.concatenate([x * y, y], axis=0),
    np.stack: lambda x, y: np.stack([x / y, y], axis=-1),
    np.vstack: lambda x, y: np.vstack([x, y]),
    np.hstack: lambda x, y: np.hstack([x, y * y]),
    np.split: lambda x, y: np.split(x, 2, axis=1)[1],
    np.array_split: lambda x, y: np.array_split(x, 3, axis=1)[0],
    np.pad: lambda x, y: np.pad(x * y, ((0, 1), (1, 0))),
    np.diff: lambda x, y: np.diff(y, n=2, axis=1),
    np.zeros_like: lambda x, y: np.zeros_like(x) + x,
    np.empty_like: lambda x, y: _filled(np.empty_like(x), x * y),
    np.ones_like: lambda x, y: np.ones_like(x) - y,
    np.full_like: lambda x, y: np.full_like(x, 0.1) * y,
    np.shape: lambda x, y: x * float(np.shape(x)[0]),
    np.ndim: lambda x, y: x * float(np.ndim(x)),
    np.size: lambda x, y: x * float(np.size(x)),
    rsqrt: lambda x, y: rsqrt(x),
    sigmoid: lambda x, y: sigmoid(40 * y),
    erf: lambda x, y: erf(y),
    chain: lambda x, y: chain(x, y, 0.7),
    scaled: lambda x, y: scaled(x @ y.T, 0.3),
    accumulate: lambda x, y: accumulate(x @ y.T, y[:, 0]),
    round_to_format: lambda x, y: round_to_format(x * y, "bfloat16"),
    may_round: lambda x, y: may_round(x * y, "bfloat16"),
    pivot: lambda x, y: np.exp(y - pivot(np.max(y, axis=1, keepdims=True))),
    rescaled: lambda x, y: rescaled(np.exp(-x)),
    hull: lambda x, y: hull((x @ y.T) / np.sum(x, axis=1, keepdims=True), np.min(y), np.max(y), terms=4),
}


def _filled(out: Any, source: Any) -> Any:
    out[...] = source
    out[1] += 1.0
    out[:, 0] *= 3.0
    return out


@pytest.mark.parametrize("numerics", ["float32", "float32_fast", "float64", "float16"])
@pytest.mark.parametrize("function", SUPPORTED, ids=lambda f: f.__name__)
def test_value_is_the_plain_run(function: Any, numerics: str) -> None:
    """Bit for bit, in value and shape; the bound is a number."""
    expression = SUPPORTED[function]
    bounded = expression(exact(X, NUMERICS[numerics]), exact(Y, NUMERICS[numerics]))
    plain = np.asarray(expression(X.copy(), Y.copy()))
    assert isinstance(bounded, ErrorBounded)
    assert bounded.value.shape == plain.shape
    np.testing.assert_array_equal(bounded.value, plain)
    result = envelope(bounded, numerics.removesuffix("_fast"))
    assert result.bound.shape == result.sigma.shape == plain.shape
    assert (result.bound >= 0).all()
    assert (result.sigma <= result.bound).all()


def test_every_rule_is_exercised() -> None:
    """The table above misses no registered rule."""
    aliases = {np.amax, np.amin}
    assert {*UFUNCS, *FUNCTIONS} - aliases <= set(SUPPORTED)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda x: x.astype(np.float32), "astype"),
        (lambda x: float(x[0, 0]), r"float\(\)"),
        (lambda x: int(x[0, 0]), r"int\(\)"),
        (lambda x: x.item(), "item"),
        (lambda x: x.tolist(), "tolist"),
        (lambda x: np.sort(x), "sort"),
        (lambda x: np.argsort(x), "argsort"),
        (lambda x: np.rint(x), "rint"),
        (lambda x: np.sign(x), "sign"),
        (lambda x: np.floor(x), "floor"),
        (lambda x: np.arctan(x), "arctan"),
        (lambda x: np.median(x), "median"),
        (lambda x: np.linalg.norm(x), "norm"),
        (lambda x: np.fft.fft(x), "fft"),
        (lambda x: x.cumprod(), "cumprod"),
        (lambda x: np.add.at(x, [0], 1.0), "at"),
        (lambda x: np.add.accumulate(x), "accumulate"),
        (lambda x: np.add(x, 1.0, where=np.ones((3, 4), bool)), "where"),
        (lambda x: np.sum(x, where=np.ones((3, 4), bool)), "where"),
        (lambda x: np.sum(x, dtype=np.float32), "dtype"),
        (lambda x: np.zeros_like(x, dtype=np.int32), "dtype"),
        (lambda x: np.array([x, x]), "np.stack"),
        (lambda x: np.asarray(x), "plain array"),
        (lambda x: np.add(x, x, out=np.zeros((3, 4))), "out="),
        (lambda x: np.sum(x, axis=0, out=np.zeros(4)), "out="),
        (lambda x: np.zeros((3, 4)).__setitem__(0, x[0]), "plain array"),
        (lambda x: x**0.5, "integer exponents"),
        (lambda x: 2.0**x, "integer exponents"),
        (lambda x: x + 1j, "complex"),
        (lambda x: np.zeros(3)[x], "plain array"),
        (lambda x: x[x], "index"),
        (lambda x: np.einsum("ii->i", x[:3, :3]), "diagonal"),
        (lambda x: np.einsum("ij,jk,kl->il", x, x.T, x), "one or two operands"),
        (lambda x: scaled(x, 0.5), "direct result"),
    ],
)
def test_losing_the_error_is_refused(call: Callable[[Any], Any], word: str) -> None:
    with pytest.raises((UnsupportedOperationError, IndexError, TypeError), match=word):
        call(exact(X, F32))


def test_undecided_choices() -> None:
    """An undecided comparison is the hull in np.where, and raises where one answer is needed."""
    x = exact(np.array([1.0, 2.0, 3.0]), F32) / 3.0
    close = x > x.value + 1e-9
    result = np.where(close & ~(x > 0.9), x, 0.0)
    np.testing.assert_array_equal(result.value, 0.0)
    assert (bound_of(result)[:2] >= x.value[:2]).all()
    assert bound_of(result)[2] == 0.0
    for decide in (lambda: bool(close), lambda: x[close], lambda: np.any(close), lambda: np.asarray(close)):
        with pytest.raises(UndecidableError):
            decide()
    with pytest.raises(UndecidableError, match="argmax"):
        np.argmax(np.stack([x, x + 1e-9]), axis=0)
    with pytest.raises(UndecidableError):
        bool(x[0] / 3.0)
    assert (x > 0.1).dtype == bool


def bound_of(x: Any) -> np.ndarray:
    return envelope(x, "float32").bound


def test_one_operation_is_checked_bitwise() -> None:
    """Exact inputs and one operation: the last rounding is left to the output cast."""
    x, y = exact(X, F32), exact(Y, F32)
    for result in (x + y, x - y, x * y, x * x, np.sum(x[:, :2], axis=1), np.where(Y > 0, x * y, y), x.copy()):
        assert (bound_of(result) == 0).all()
    assert (bound_of(x / y) > 0).all(), "a quotient may be a product with a reciprocal"
    correct = F32.with_changes(
        name="correct", correct_division=True, correct_sqrt=True, division_ulps=0.5, sqrt_ulps=0.5
    )
    assert (bound_of(exact(X, correct) / exact(Y, correct)) == 0).all()
    assert (bound_of(np.sqrt(exact(X, correct))) == 0).all()
    assert (bound_of(x / 4.0) == 0).all(), "a power of two has an exact reciprocal"


def test_rounding_to_another_format_settles_first() -> None:
    """float32 arithmetic stored as float16 is rounded twice."""
    value = 1.0 + 2.0**-11 + 2.0**-26  # just above a float16 midpoint, on it after float32
    x = exact(np.array([1.0 + 2.0**-11]), F32) + 2.0**-26
    assert envelope(x, "float16").bound[0] == pytest.approx(2.0**-26)
    assert envelope(x, "float32").bound[0] == 0.0
    assert x.value[0] == value


def test_sum_bounds() -> None:
    """(n − 2)·u·S before the last rounding; exact on a lattice; a promised tree is tighter."""
    x = X.ravel()
    assert bound_of(np.sum(exact(x, F32))) == pytest.approx(10 * U * x.sum(), rel=1e-4)
    tree = F32.with_changes(name="tree", tree_height=4)
    assert bound_of(np.sum(exact(x, tree))) == pytest.approx(3 * U * x.sum(), rel=1e-4)
    whole = np.array([2.0**20, 3.0, -7.0, 0.5])
    assert bound_of(np.sum(exact(whole, F32))) == 0
    assert bound_of(np.sum(exact(np.array([2.0**24, 3.0, -7.0, 0.5]), F32))) > 0
    assert bound_of(np.sum(exact(np.array([0.0, X[0, 0], 0.0]), F32))) == 0
    assert bound_of(exact(whole[None], F32) @ exact(np.array([[1.0], [2.0], [5.0], [8.0]]), F32)) == 0


def test_cancelling_the_same_object() -> None:
    x = exact(X, F32) / 3.0
    assert (np.asarray((x - x).value) == 0).all()
    assert (bound_of(x / x) <= 16 * U).all()
    product = exact(X, F32) * exact(Y, F32)
    assert (bound_of(product - product) > 0).any(), "fma(a, b, -a·b) is the rounding error of a·b"


def test_constants_round_where_not_representable() -> None:
    x = exact(np.array([1.0]), F32)
    assert bound_of(x + 0.1)[0] == pytest.approx(abs(float(np.float32(0.1)) - 0.1))
    assert bound_of(x + 0.5)[0] == 0


def test_overflow_and_subnormals() -> None:
    x = exact(np.array([2.0**127, 1.0]), F32)
    assert np.isinf(bound_of((x * 4.0) - 1.0)[0])
    tiny = exact(np.array([2.0**-126]), F32) * (1 + 2.0**-23)
    assert bound_of(tiny * 0.5 + 0.0)[0] == 2.0**-150
    flushed = NUMERICS["float32_fast"]
    assert bound_of(exact(np.array([2.0**-127]), flushed))[0] == 2.0**-127
    assert bound_of(exact(np.array([2.0**-120]), flushed))[0] == 0


def test_exp_is_exact_at_zero_and_below_the_subnormals() -> None:
    weight = np.exp(exact(np.array([0.0, -np.inf, -110.0, -1.0]), F32))
    assert bound_of(weight)[:2].tolist() == [0.0, 0.0]
    assert bound_of(weight)[2] == weight.value[2]
    assert bound_of(weight)[3] == pytest.approx(6 * U * np.exp(-1.0), rel=1e-3)
    fused = F32.with_changes(name="fma", exp_form="exp2_fma")
    x = exact(np.array([300.0, 299.0]), fused)
    assert bound_of(np.exp(x - pivot(np.max(x))))[0] >= 600 * U
    assert bound_of(np.exp(exact(np.array([300.0]), F32) - pivot(exact(np.array([300.0]), F32))))[0] == 0


def test_mandatory_rounding_charges_straddlers_only() -> None:
    x = exact(np.array([1.0 + 2.0**-9, 1.0 + 2.0**-8]), F32) * 1.0
    blurred = x + exact(np.array([2.0**-30]), F32) / 3.0 * 3.0
    result = envelope(round_to_format(blurred, "bfloat16"), "bfloat16")
    assert result.bound[0] == 0.0
    assert result.bound[1] == 2.0**-7


def test_chain_covers_every_order() -> None:
    """(x·w)·r loses everything where (x·r)·w does not."""
    x, r, w = (exact(np.array([v]), F32) for v in (2.0**-100, 2.0**100, 2.0**-60))
    assert bound_of(chain(x, r, w))[0] >= 2.0**-60 * 0.5
    assert np.isinf(bound_of(chain(exact(np.array([2.0**100]), F32), 2.0**-100, exact(np.array([2.0**60]), F32)))[0])
    assert bound_of(chain(exact(np.array([1.25]), F32), 2.0, 4.0))[0] == 0


def test_folded_scale_and_bias_cost_what_they_may() -> None:
    a, b = exact(X, F32), exact(Y.T.copy(), F32)
    product, size = a @ b, X @ np.abs(Y.T)
    extra = bound_of(scaled(product, 0.3)) - bound_of(product * 0.3)
    np.testing.assert_allclose(extra, 2 * U * 0.3 * size, rtol=1e-3)
    np.testing.assert_array_equal(bound_of(scaled(product, 0.25)), 0.25 * bound_of(product))
    bias = np.full(3, 1e6)
    assert (bound_of(accumulate(product, bias)) >= 4 * U * 1e6).all()
    with pytest.raises(ValueError, match="does not broadcast"):
        accumulate(product, np.ones((2, 3, 3)))


def test_broadcasting_makes_errors_common() -> None:
    """The error of a mean is shared by the row: in a sum over the row it adds linearly."""
    x = exact(RNG.standard_normal((4, 256)).astype(np.float32), F32)
    centred = x - np.mean(x, axis=1, keepdims=True)
    assert centred.common is not None
    total = envelope(np.sum(centred, axis=1), "float32")
    mean = envelope(np.mean(x, axis=1), "float64")
    assert (total.sigma >= 255 * mean.sigma * 0.5).all()


def test_assignment_reaches_the_array_behind_a_view() -> None:
    x, y = exact(X, F32), exact(Y, F32)
    out = np.zeros_like(x)
    view = out[1]
    view[...] = x[0] * y[0] + x[1]
    view += 1.0
    plain = np.zeros_like(X)
    plain[1] = X[0] * Y[0] + X[1] + 1.0
    np.testing.assert_array_equal(out.value, plain)
    assert (bound_of(out)[1] > 0).all()
    assert (bound_of(out)[0] == 0).all()
    kept = -x
    x[0] = y[0] / 3.0
    assert (bound_of(kept) == 0).all()
    assert (bound_of(x)[0] > 0).all()


def test_two_arithmetics_do_not_mix() -> None:
    with pytest.raises(ValueError, match="float16"):
        exact(X, F32) + exact(Y, NUMERICS["float16"])


def test_unknown_arguments_stay_unknown() -> None:
    """An infinite bound means that NaN is possible too: a function with a finite range does not hide it."""
    huge = exact(np.array([2.0**100]), F32) * 2.0**100 * 1.5
    for result in (np.tanh(huge), np.cos(huge), np.minimum(huge, 1.0), np.clip(huge, 0.0, 1.0), np.max(huge)):
        assert np.isinf(bound_of(result)).all()
