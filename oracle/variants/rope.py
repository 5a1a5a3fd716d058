"""Variants of rotary position embedding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.arithmetic import F, stored, wide
from oracle.variants.variant import control, mutant

Turn = Callable[[Array, Array, Array, Array], tuple[Array, Array]]


def fused(a: Array, b: Array, c: Array) -> Array:
    """a·b + c with one rounding: the product of two float32 is exact in float64; in float64 there are two roundings."""
    if a.dtype == np.float64:
        return a * b + c
    return (a.astype(np.float64) * b + c).astype(F)


def plain(first: Array, second: Array, cos: Array, sin: Array) -> tuple[Array, Array]:
    """Two products and a sum each."""
    return first * cos - second * sin, second * cos + first * sin


def _split(x: Array, half: int, pairing: str) -> tuple[Array, Array]:
    if pairing == "neox":
        return x[..., :half], x[..., half : 2 * half]
    return x[..., 0 : 2 * half : 2], x[..., 1 : 2 * half : 2]


def turned(x: Array, cos: Array, sin: Array, pairing: str, turn: Turn = plain) -> Array:
    """Rotate with tables that are one row per token already; elements past the tables are copied."""
    half = cos.shape[-1]
    out, source = x.copy(), wide(x)
    cosine, sine = wide(cos)[:, np.newaxis], wide(sin)[:, np.newaxis]
    new = turn(*_split(source, half, pairing), cosine, sine)
    for place, result in zip(_split(out, half, pairing), new, strict=True):
        place[...] = stored(result, x)
    return out


def _form(name: str, turn: Turn, flaw: str) -> None:
    def rope(x: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
        return turned(x, cos[positions], sin[positions], pairing, turn)

    rope.__doc__ = flaw
    control("rope", name=name)(rope)


def fused_with_cosine(first: Array, second: Array, cos: Array, sin: Array) -> tuple[Array, Array]:
    """The product with the cosine is fused into the sum."""
    return fused(first, cos, -(second * sin)), fused(second, cos, first * sin)


def fused_with_sine(first: Array, second: Array, cos: Array, sin: Array) -> tuple[Array, Array]:
    """The product with the sine is fused into the sum."""
    return fused(-second, sin, first * cos), fused(first, sin, second * cos)


def sine_first(first: Array, second: Array, cos: Array, sin: Array) -> tuple[Array, Array]:
    """The product with the sine is the first term of each sum."""
    return -(second * sin) + first * cos, first * sin + second * cos


def mixed_forms(first: Array, second: Array, cos: Array, sin: Array) -> tuple[Array, Array]:
    """One of the two elements is computed with a fused product, the other without."""
    return fused(first, cos, -(second * sin)), second * cos + first * sin


def form_by_sign(first: Array, second: Array, cos: Array, sin: Array) -> tuple[Array, Array]:
    """Pairs whose first element is below zero are computed with a fused product, the others without."""
    below = first < 0
    one, other = plain(first, second, cos, sin), fused_with_cosine(first, second, cos, sin)
    return np.where(below, other[0], one[0]), np.where(below, other[1], one[1])


_form("products_and_sum", plain, "Two products and a sum.")
_form("fused_with_cosine", fused_with_cosine, "The product with the cosine is fused into the sum.")
_form("fused_with_sine", fused_with_sine, "The product with the sine is fused into the sum.")
_form("sine_first", sine_first, "The product with the sine is the first term of the sum.")
_form("mixed_forms", mixed_forms, "Only one of the two elements is computed with a fused product.")


@control("rope")
def whole_width(x: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
    """x times a cosine table of full width, plus x with its halves exchanged times a sine table of full width."""
    half = cos.shape[-1]
    out = x.copy()
    source = wide(x[..., : 2 * half])
    exchanged = source.copy()
    first, second = _split(source, half, pairing)
    to_first, to_second = _split(exchanged, half, pairing)
    to_first[...], to_second[...] = -second, first
    columns = np.tile(np.arange(half), 2) if pairing == "neox" else np.repeat(np.arange(half), 2)
    cosine, sine = (wide(table)[positions][:, np.newaxis, columns] for table in (cos, sin))
    out[..., : 2 * half] = stored(source * cosine + exchanged * sine, x)
    return out


@control("rope")
def token_by_token(x: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
    """One token and head after another, a row of the tables each."""
    out = x.copy()
    for token, position in enumerate(positions):
        row = slice(position, position + 1)
        for head in range(x.shape[1]):
            one = x[token : token + 1, head : head + 1]
            out[token, head] = turned(one, cos[row], sin[row], pairing, fused_with_cosine)[0, 0]
    return out


@mutant("rope")
def other_pairing(x: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
    """The pairs are those of the other convention."""
    return turned(x, cos[positions], sin[positions], "gptj" if pairing == "neox" else "neox")


@mutant("rope")
def turned_back(x: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
    """The angle has the wrong sign."""
    return turned(x, cos[positions], -sin[positions], pairing)


@mutant("rope")
def token_number_as_position(x: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
    """The token's number stands for its position."""
    rows = np.minimum(np.arange(len(positions)), len(cos) - 1)
    return turned(x, cos[rows], sin[rows], pairing)


@mutant("rope")
def position_plus_one(x: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
    """Positions count from one."""
    rows = np.minimum(positions + 1, len(cos) - 1)
    return turned(x, cos[rows], sin[rows], pairing)


@mutant("rope")
def position_in_eight_bits(x: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
    """Positions are kept in eight bits."""
    return turned(x, cos[positions & 255], sin[positions & 255], pairing)


@mutant("rope")
def first_overwritten(x: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
    """The first element of each pair is overwritten before the second is computed."""

    def turn(first: Array, second: Array, cosine: Array, sine: Array) -> tuple[Array, Array]:
        new = first * cosine - second * sine
        return new, second * cosine + new * sine

    return turned(x, cos[positions], sin[positions], pairing, turn)


@mutant("rope")
def tail_not_copied(x: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
    """Elements past the tables are left zero."""
    out = turned(x, cos[positions], sin[positions], pairing)
    out[..., 2 * cos.shape[-1] :] = 0
    return out


@mutant("rope")
def half_of_the_head(x: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
    """Partners are half a head apart, however wide the tables are."""
    half, apart = cos.shape[-1], x.shape[-1] // 2
    if pairing == "gptj" or 2 * half == x.shape[-1]:
        return turned(x, cos[positions], sin[positions], pairing)
    out, source = x.copy(), wide(x)
    cosine, sine = wide(cos[positions])[:, np.newaxis], wide(sin[positions])[:, np.newaxis]
    new = plain(source[..., :half], source[..., apart : apart + half], cosine, sine)
    out[..., :half], out[..., apart : apart + half] = stored(new[0], x), stored(new[1], x)
    return out


@mutant("rope")
def last_pair_not_turned(x: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
    """The last pair stays as it was."""
    cosine, sine = cos[positions], sin[positions]
    cosine[..., -1:], sine[..., -1:] = 1, 0
    return turned(x, cosine, sine, pairing)


@mutant("rope", dtypes=("float16", "bfloat16"))
def products_rounded(x: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
    """The products are rounded to the 16-bit dtype before they are added."""

    def turn(first: Array, second: Array, cosine: Array, sine: Array) -> tuple[Array, Array]:
        def short(product: Array) -> Any:
            return round_to(product, x.dtype.name).astype(F)

        return short(first * cosine) - short(second * sine), short(second * cosine) + short(first * sine)

    return turned(x, cos[positions], sin[positions], pairing, turn)


@mutant("rope", dtypes=("float32", "float64"))
def table_in_bfloat16(x: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
    """The tables are rounded to bfloat16."""
    cosine, sine = (round_to(table[positions], "bfloat16").astype(x.dtype) for table in (cos, sin))
    return turned(x, cosine, sine, pairing)


@mutant("rope", dtypes=("float32",), relation="tokens_are_independent")
def form_by_token(x: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
    """Tokens in odd places are computed with fused products, the others without."""
    out = turned(x, cos[positions], sin[positions], pairing)
    out[1::2] = turned(x, cos[positions], sin[positions], pairing, fused_with_cosine)[1::2]
    return out


@mutant("rope", dtypes=("float32",), relation="heads_are_independent")
def form_by_head(x: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
    """The first head is computed with fused products, the others without."""
    out = turned(x, cos[positions], sin[positions], pairing)
    out[:, :1] = turned(x[:, :1], cos[positions], sin[positions], pairing, fused_with_cosine)
    return out


@mutant("rope", dtypes=("float32",), relation="signs_turn_along")
def not_signs_turn_along(x: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
    """Pairs that begin below zero are computed with fused products, the others without."""
    return turned(x, cos[positions], sin[positions], pairing, form_by_sign)
