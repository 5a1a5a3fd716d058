"""Variants of the gated activations: each activation in several forms, and the ways in which gates go wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.arithmetic import erf, exp, exp_by_exp2, exp_promised, quotient, stored, tanh, wide
from oracle.variants.variant import control, mutant

NARROW = ("float16", "bfloat16")
OPERATORS = ("silu_and_mul", "gelu_and_mul", "relu2_and_mul", "swiglu_with_limit")

Activation = Callable[[Array, dict[str, Any]], Array]


def split(x: Array, bias: Array | None, pairing: str) -> tuple[Array, Array]:
    """Gates and values in the compute type, bias added."""
    rows = wide(x) if bias is None else wide(x) + wide(bias)
    half = x.shape[-1] // 2
    return (rows[:, :half], rows[:, half:]) if pairing == "halves" else (rows[:, 0::2], rows[:, 1::2])


# The share of the gate that passes, sigmoid or Φ, each in several forms.


def logistic(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    one = x.dtype.type(1)
    return one / (one + exp(-x))


def logistic_by_exp2(x: Any) -> Any:
    """1 / (1 + exp2(-x·log2 e))."""
    one = x.dtype.type(1)
    return one / (one + exp_by_exp2(-x))


def logistic_by_sides(x: Any) -> Any:
    """exp of a negative number only."""
    one, small = x.dtype.type(1), exp(-np.abs(x))
    return np.where(x >= 0, one / (one + small), small / (one + small))


def logistic_by_tanh(x: Any) -> Any:
    """(1 + tanh(x / 2)) / 2, which cancels."""
    half = x.dtype.type(0.5)
    return half * (1 + tanh(half * x))


def logistic_of_positive(x: Any) -> Any:
    """exp(x) / (1 + exp(x)), which is ∞ / ∞ for large x."""
    big = exp(x)
    return big / (x.dtype.type(1) + big)


def logistic_as_promised(x: Any) -> Any:
    """1 / (1 + exp(-x)) with an exponential and a quotient that are off by anything up to two ulps."""
    one = x.dtype.type(1)
    return quotient(np.full_like(x, one), one + exp_promised(-x))


def phi(x: Any, approximate: str) -> Any:
    """Φ by erf or by tanh."""
    real = x.dtype.type
    if approximate == "tanh":
        return real(0.5) * (1 + tanh(real(math.sqrt(2 / math.pi)) * (x + real(0.044715) * x * x * x)))
    return real(0.5) * (1 + erf(x * real(math.sqrt(0.5))))


def phi_other(x: Any, approximate: str) -> Any:
    """Φ by the sigmoid of twice tanh's argument, factored; by erf of a quotient."""
    real = x.dtype.type
    if approximate == "tanh":
        return logistic(real(2 * math.sqrt(2 / math.pi)) * x * (1 + real(0.044715) * (x * x)))
    return (1 + erf(x / real(math.sqrt(2)))) * real(0.5)


@dataclass(frozen=True)
class Form:
    """How one implementation computes a gated activation.

    Attributes
    ----------
    share : str
        Key in `SHARES`.
    order : str
        ``gate_first``, ``value_first`` or ``share_first``.
    """

    share: str = "plain"
    order: str = "gate_first"


SHARES: dict[str, Callable[[Array], Array]] = {
    "plain": logistic,
    "exp2": logistic_by_exp2,
    "sides": logistic_by_sides,
    "tanh": logistic_by_tanh,
    "positive": logistic_of_positive,
    "promised": logistic_as_promised,
}


def factors(operator: str, gate: Array, value: Array, params: dict[str, Any], form: Form) -> tuple[Array, ...]:
    """Gate, share and value whose product is the result, after the limits."""
    real = gate.dtype.type
    limit = params.get("limit")
    if limit is not None:
        gate, value = np.minimum(gate, real(limit)), np.clip(value, real(-limit), real(limit))
    if operator == "silu_and_mul":
        return gate, SHARES[form.share](gate), value
    if operator == "gelu_and_mul":
        phi_form = phi_other if form.share == "exp2" else phi
        return gate, phi_form(gate, params["approximate"]), value
    if operator == "relu2_and_mul":
        positive = np.maximum(gate, real(0))
        return positive, positive, value
    return gate, SHARES[form.share](real(params["alpha"]) * gate), value + real(1)


def multiplied(parts: tuple[Array, ...], params: dict[str, Any], order: str, x: Array) -> Array:
    """The product in one of its orders; with a rounding in the middle where that is demanded."""
    gate, share, value = parts
    if params.get("rounding") == "twice":
        return stored(wide(stored(gate * share, x)) * value, x)
    if order == "value_first":
        return stored(gate * value * share, x)
    if order == "share_first":
        return stored(gate * (share * value), x)
    return stored(gate * share * value, x)


def compute(operator: str, x: Array, bias: Array | None, params: dict[str, Any], form: Form) -> Array:
    """A whole activation in one form."""
    with np.errstate(all="ignore"):
        gate, value = split(x, bias, params["pairing"])
        return multiplied(factors(operator, gate, value, params, form), params, form.order, x)


HONEST: dict[str, tuple[Form, str]] = {
    "plain": (Form(), "The gate times its share, then the value."),
    "exp2": (Form("exp2"), "The share by exp2, or by another form of its argument."),
    "sides": (Form("sides"), "The share by exp of negative numbers only."),
    "value_first": (Form(order="value_first"), "Gate times value, then the share."),
    "share_first": (Form(order="share_first"), "Share times value, then the gate."),
    "share_first_exp2": (Form("exp2", "share_first"), "Share by exp2, times value, then the gate."),
}


def _register(operator: str) -> None:
    for name, (form, doc) in HONEST.items():
        _honest(operator, name, form, doc)
    if operator in ("silu_and_mul", "swiglu_with_limit"):
        _honest(operator, "as_promised", Form("promised"), "Exponential and quotient are off by up to two ulps.")

    @control(operator, name="by_tiles")
    def by_tiles(x: Array, bias: Array | None, **params: Any) -> Array:
        """Tiles of 32 pairs of columns, the last first."""
        half = x.shape[-1] // 2
        out = np.empty((x.shape[0], half), x.dtype)
        for first in reversed(range(0, half, 32)):
            tile = np.arange(first, min(first + 32, half))
            pairs = [tile, tile + half] if params["pairing"] == "halves" else [2 * tile, 2 * tile + 1]
            columns = np.concatenate(pairs)
            shift = None if bias is None else bias[columns]
            out[:, tile] = compute(operator, x[:, columns], shift, {**params, "pairing": "halves"}, Form())
        return out

    @mutant(operator, name="sides_swapped")
    def sides_swapped(x: Array, bias: Array | None, **params: Any) -> Array:
        """The value gates the gate."""
        with np.errstate(all="ignore"):
            value, gate = split(x, bias, params["pairing"])
            return multiplied(factors(operator, gate, value, params, Form()), params, "gate_first", x)

    @mutant(operator, name="other_pairing")
    def other_pairing(x: Array, bias: Array | None, **params: Any) -> Array:
        """Halves are read as interleaved columns, and the other way round."""
        other = {"halves": "interleaved", "interleaved": "halves"}[params["pairing"]]
        return compute(operator, x, bias, {**params, "pairing": other}, Form())

    @mutant(operator, name="no_bias")
    def no_bias(x: Array, bias: Array | None, **params: Any) -> Array:
        """The bias is not added."""
        return compute(operator, x, None, params, Form())

    @mutant(operator, name="not_multiplied")
    def not_multiplied(x: Array, bias: Array | None, **params: Any) -> Array:
        """The activated gate is not multiplied by the value."""
        with np.errstate(all="ignore"):
            gate, value = split(x, bias, params["pairing"])
            gate, share, _ = factors(operator, gate, value, params, Form())
            return stored(gate * share, x)

    @mutant(operator, name="share_narrow", dtypes=("float32", "float64"))
    def share_narrow(x: Array, bias: Array | None, **params: Any) -> Array:
        """The activated gate is rounded to bfloat16."""
        with np.errstate(all="ignore"):
            gate, value = split(x, bias, params["pairing"])
            gate, share, value = factors(operator, gate, value, params, Form())
            return stored(round_to(gate * share, "bfloat16").astype(x.dtype) * value, x)

    @mutant(operator, name="biased_narrow", dtypes=NARROW)
    def biased_narrow(x: Array, bias: Array | None, **params: Any) -> Array:
        """Gate and value are rounded to 16 bits after the bias."""
        shifted = x if bias is None else stored(wide(x) + wide(bias), x)
        return compute(operator, shifted, None, params, Form())

    @mutant(operator, name="truncated", dtypes=NARROW)
    def truncated(x: Array, bias: Array | None, **params: Any) -> Array:
        """The result is rounded toward zero to the 16-bit dtype."""
        with np.errstate(all="ignore"):
            gate, value = split(x, bias, params["pairing"])
            gate, share, value = factors(operator, gate, value, params, Form())
            return round_to(gate * share * value, x.dtype.name, "toward_zero").astype(x.dtype)

    @mutant(operator, name="last_pair_missed")
    def last_pair_missed(x: Array, bias: Array | None, **params: Any) -> Array:
        """The last pair of columns is left as zeros."""
        out = compute(operator, x, bias, params, Form())
        out[:, -1:] = 0
        return out

    @mutant(operator, name="odd_columns_otherwise", relation="columns_are_independent", dtypes=("float32", "float64"))
    def odd_columns_otherwise(x: Array, bias: Array | None, **params: Any) -> Array:
        """Every second column multiplies in another order, as a vectorised loop and its remainder may."""
        out = compute(operator, x, bias, params, Form())
        out[:, 1::2] = compute(operator, x, bias, params, Form(order="share_first"))[:, 1::2]
        return out


def _honest(operator: str, name: str, form: Form, doc: str) -> None:
    def variant(x: Array, bias: Array | None, **params: Any) -> Array:
        return compute(operator, x, bias, params, form)

    variant.__doc__ = doc
    control(operator, name=name)(variant)


for _operator in OPERATORS:
    _register(_operator)


def _share_mutant(operator: str, name: str, share: str, doc: str) -> None:
    def variant(x: Array, bias: Array | None, **params: Any) -> Array:
        return compute(operator, x, bias, params, Form(share))

    variant.__doc__ = doc
    mutant(operator, name=name)(variant)


_share_mutant("silu_and_mul", "sigmoid_overflows", "positive", "The sigmoid is exp(g) / (1 + exp(g)): NaN for large g.")
for _operator in ("silu_and_mul", "swiglu_with_limit"):
    _share_mutant(_operator, "sigmoid_cancels", "tanh", "The sigmoid is (1 + tanh(g / 2)) / 2, which cancels.")


@mutant("silu_and_mul")
def limit_ignored(x: Array, bias: Array | None, **params: Any) -> Array:
    """Nothing is cut off at the limit."""
    return compute("silu_and_mul", x, bias, {**params, "limit": None}, Form())


@mutant("swiglu_with_limit", name="alpha_ignored")
def alpha_ignored(x: Array, bias: Array | None, **params: Any) -> Array:
    """The sigmoid is that of the gate, not of alpha times it."""
    return compute("swiglu_with_limit", x, bias, {**params, "alpha": 1.0}, Form())


@mutant("swiglu_with_limit", name="value_not_shifted")
def value_not_shifted(x: Array, bias: Array | None, **params: Any) -> Array:
    """The value is not increased by 1."""
    with np.errstate(all="ignore"):
        gate, value = split(x, bias, params["pairing"])
        gate, share, value = factors("swiglu_with_limit", gate, value, params, Form())
        return stored(gate * share * (value - value.dtype.type(1)), x)


def _limits(operator: str) -> None:
    @mutant(operator, name="gate_cut_off_below")
    def gate_cut_off_below(x: Array, bias: Array | None, **params: Any) -> Array:
        """The gate is cut off at -limit as well."""
        with np.errstate(all="ignore"):
            gate, value = split(x, bias, params["pairing"])
            gate = gate if params["limit"] is None else np.maximum(gate, gate.dtype.type(-params["limit"]))
            return multiplied(factors(operator, gate, value, params, Form()), params, "gate_first", x)

    @mutant(operator, name="value_not_cut_off_below")
    def value_not_cut_off_below(x: Array, bias: Array | None, **params: Any) -> Array:
        """The value is cut off at the upper limit only."""
        limit = params["limit"]
        with np.errstate(all="ignore"):
            gate, value = split(x, bias, params["pairing"])
            cut = gate if limit is None else np.minimum(gate, gate.dtype.type(limit))
            upper = value if limit is None else np.minimum(value, gate.dtype.type(limit))
            if operator == "silu_and_mul":
                return multiplied((cut, logistic(cut), upper), params, "gate_first", x)
            share = logistic(gate.dtype.type(params["alpha"]) * cut)
            return stored(cut * share * (upper + gate.dtype.type(1)), x)

    @mutant(operator, name="nan_cut_off")
    def nan_cut_off(x: Array, bias: Array | None, **params: Any) -> Array:
        """What is not a number becomes the limit, as fminf makes it."""
        limit = params["limit"]
        with np.errstate(all="ignore"):
            gate, value = split(x, bias, params["pairing"])
            if limit is not None:
                real = gate.dtype.type
                gate, value = np.fmin(gate, real(limit)), np.fmax(np.fmin(value, real(limit)), real(-limit))
            return multiplied(factors(operator, gate, value, params, Form()), params, "gate_first", x)


_limits("silu_and_mul")
_limits("swiglu_with_limit")


@mutant("gelu_and_mul")
def other_approximation(x: Array, bias: Array | None, **params: Any) -> Array:
    """The error function in place of tanh, and the other way round."""
    other = {"none": "tanh", "tanh": "none"}[params["approximate"]]
    return compute("gelu_and_mul", x, bias, {**params, "approximate": other}, Form())


@mutant("gelu_and_mul")
def quick(x: Array, bias: Array | None, **params: Any) -> Array:
    """Φ is sigmoid(1.702·g), the "quick" GELU of another model."""
    with np.errstate(all="ignore"):
        gate, value = split(x, bias, params["pairing"])
        return multiplied((gate, logistic(gate.dtype.type(1.702) * gate), value), params, "gate_first", x)


@mutant("relu2_and_mul")
def not_squared(x: Array, bias: Array | None, **params: Any) -> Array:
    """The positive gate is not squared."""
    with np.errstate(all="ignore"):
        gate, value = split(x, bias, params["pairing"])
        return stored(np.maximum(gate, gate.dtype.type(0)) * value, x)


@mutant("relu2_and_mul")
def negative_squared(x: Array, bias: Array | None, **params: Any) -> Array:
    """Negative gates are squared, too."""
    with np.errstate(all="ignore"):
        gate, value = split(x, bias, params["pairing"])
        return multiplied((gate, gate, value), params, "gate_first", x)


@mutant("relu2_and_mul")
def nan_is_zero(x: Array, bias: Array | None, **params: Any) -> Array:
    """A gate that is not a number counts as 0, as fmaxf makes it."""
    with np.errstate(all="ignore"):
        gate, value = split(x, bias, params["pairing"])
        positive = np.fmax(gate, gate.dtype.type(0))
        return multiplied((positive, positive, value), params, "gate_first", x)
