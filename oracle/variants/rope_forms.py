"""Variants of the other forms of rotary position embedding, on the turns of `oracle.variants.rope`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.ops.rope_forms import sections
from oracle.signature import Array
from oracle.variants.rope import (
    Turn,
    form_by_sign,
    fused_with_cosine,
    fused_with_sine,
    mixed_forms,
    plain,
    sine_first,
    turned,
)
from oracle.variants.variant import control, mutant

# A variant turns x by tables that are one row per token: (x, cos, sin, pairing) → x's turn.
Turned = Callable[[Array, Array, Array, str], Array]


def _by(turn: Turn) -> Turned:
    return lambda x, cos, sin, pairing: turned(x, cos, sin, pairing, turn)


def _token_by_token(x: Array, cos: Array, sin: Array, pairing: str) -> Array:
    out = x.copy()
    for token in range(len(x)):
        one = slice(token, token + 1)
        out[one] = turned(x[one], cos[one], sin[one], pairing, fused_with_cosine)
    return out


def _first_overwritten(first: Array, second: Array, cosine: Array, sine: Array) -> tuple[Array, Array]:
    new = first * cosine - second * sine
    return new, second * cosine + new * sine


def _in_bfloat16(x: Array, cos: Array, sin: Array, pairing: str) -> Array:
    kind = "bfloat16" if x.dtype.itemsize > 2 else "float8_e4m3fn"
    cosine, sine = (round_to(table, kind).astype(x.dtype) for table in (cos, sin))
    return turned(x, cosine, sine, pairing)


def _last_pair_still(x: Array, cos: Array, sin: Array, pairing: str) -> Array:
    cosine, sine = cos.copy(), sin.copy()
    cosine[..., -1:], sine[..., -1:] = 1, 0
    return turned(x, cosine, sine, pairing)


HONEST: tuple[tuple[str, str, Turned], ...] = (
    ("products_and_sum", "Two products and a sum.", _by(plain)),
    ("fused_with_cosine", "The product with the cosine is fused into the sum.", _by(fused_with_cosine)),
    ("fused_with_sine", "The product with the sine is fused into the sum.", _by(fused_with_sine)),
    ("sine_first", "The product with the sine is the first term of the sum.", _by(sine_first)),
    ("mixed_forms", "Only one of the two elements is computed with a fused product.", _by(mixed_forms)),
    ("token_by_token", "One token after another.", _token_by_token),
)
WRONG: tuple[tuple[str, str, Turned], ...] = (
    (
        "other_pairing",
        "The pairs are those of the other convention.",
        lambda x, cos, sin, pairing: turned(x, cos, sin, "gptj" if pairing == "neox" else "neox"),
    ),
    ("turned_back", "The angle has the wrong sign.", lambda x, cos, sin, pairing: turned(x, cos, -sin, pairing)),
    ("first_overwritten", "The first element of a pair is overwritten too early.", _by(_first_overwritten)),
    ("tables_rounded", "The tables are rounded to fewer bits.", _in_bfloat16),
    ("last_pair_still", "The last pair stays as it was.", _last_pair_still),
    (
        "angles_of_next_token",
        "Each token has the angles of the one before.",
        lambda x, cos, sin, pairing: turned(x, np.roll(cos, 1, axis=0), np.roll(sin, 1, axis=0), pairing),
    ),
)


def _add(kind: Callable[..., Any], operator: str, name: str, flaw: str, function: Callable[..., Any]) -> None:
    function.__doc__ = flaw
    kind(operator, name=name)(function)


def _qk(turn: Turned, other: Turned | None = None, with_offsets: bool = True, exchange: bool = False) -> Any:
    """Queries and keys by `turn`, keys by `other` where there is one."""

    def rope_qk(
        q: Array, k: Array, positions: Array, cos: Array, sin: Array, offsets: Array | None, *, pairing: str,
        plain_first: bool,
    ) -> tuple[Array, Array]:  # fmt: skip
        rows = positions if offsets is None or not with_offsets else positions + offsets
        still = q.shape[-1] - 2 * cos.shape[-1]

        def one(x: Array, way: Turned) -> Array:
            if plain_first == exchange:
                return way(x, cos[rows], sin[rows], pairing)
            return np.concatenate([x[..., :still], way(x[..., still:], cos[rows], sin[rows], pairing)], axis=-1)

        return one(q, turn), one(k, other or turn)

    return rope_qk


def _mrope(turn: Turned, kinds: Callable[..., Array] = sections) -> Any:
    def mrope(
        x: Array, positions: Array, cos: Array, sin: Array, *, temporal: int, height: int, width: int,
        interleaved: bool, pairing: str,
    ) -> Array:  # fmt: skip
        kind = kinds(cos.shape[-1], temporal, height, width, interleaved)
        rows, columns = positions[kind].T, np.arange(cos.shape[-1])
        return turn(x, cos[rows, columns], sin[rows, columns], pairing)

    return mrope


def _image(turn: Turned, exchange: bool = False, whole: bool = False) -> Any:
    def rope_2d(
        x: Array, rows: Array, columns: Array, cos_r: Array, sin_r: Array, cos_c: Array, sin_c: Array, *, pairing: str
    ) -> Array:
        half = x.shape[-1] // 2
        by_row, by_column = (cos_r[rows], sin_r[rows]), (cos_c[columns], sin_c[columns])
        if whole:  # one rotation of the whole head, by the angles of rows, then of columns
            cosine, sine = (np.concatenate(pair, axis=-1) for pair in zip(by_row, by_column, strict=True))
            return turn(x, cosine, sine, pairing)
        if exchange:
            by_row, by_column = by_column, by_row
        return np.concatenate(
            [turn(x[..., :half], *by_row, pairing), turn(x[..., half:], *by_column, pairing)], axis=-1
        )

    return rope_2d


def _back(turn: Turned) -> Any:
    def rope_backward(grad: Array, positions: Array, cos: Array, sin: Array, *, pairing: str) -> Array:
        return turn(grad, cos[positions], -sin[positions], pairing)

    return rope_backward


def _form_by_token(x: Array, cos: Array, sin: Array, pairing: str) -> Array:
    out = turned(x, cos, sin, pairing)
    out[1::2] = turned(x, cos, sin, pairing, fused_with_cosine)[1::2]
    return out


def _form_by_head(x: Array, cos: Array, sin: Array, pairing: str) -> Array:
    out = turned(x, cos, sin, pairing)
    out[:, :1] = turned(x[:, :1], cos, sin, pairing, fused_with_cosine)
    return out


UNLIKE: tuple[tuple[str, str, Turned], ...] = (
    ("tokens_are_independent", "Tokens in odd places are computed with fused products.", _form_by_token),
    ("heads_are_independent", "The first head is computed with fused products.", _form_by_head),
    ("signs_turn_along", "Pairs that begin below zero are computed with fused products.", _by(form_by_sign)),
)
"""Relations, and what breaks each of them."""
MAKERS: dict[str, Callable[[Turned], Any]] = {
    "rope_qk": _qk,
    "mrope": _mrope,
    "rope_2d": _image,
    "rope_backward": _back,
}
for _operator, _make in MAKERS.items():
    for _name, _flaw, _turn in HONEST:
        _add(control, _operator, _name, _flaw, _make(_turn))
    for _name, _flaw, _turn in WRONG:
        _add(mutant, _operator, _name, _flaw, _make(_turn))
    for _relation, _flaw, _turn in UNLIKE:
        _unlike = partial(mutant, dtypes=("float32",), relation=_relation)
        _add(_unlike, _operator, f"not_{_relation}", _flaw, _make(_turn))

PLAIN = _by(plain)


def _untouched(x: Array, cos: Array, sin: Array, pairing: str) -> Array:
    return x.copy()


def _one_after_another(half: int, temporal: int, height: int, width: int, interleaved: bool) -> Array:
    return sections(half, temporal, height, width, False)


def _always_interleaved(half: int, temporal: int, height: int, width: int, interleaved: bool) -> Array:
    return sections(half, temporal, height, width, True)


def _height_and_width_exchanged(half: int, temporal: int, height: int, width: int, interleaved: bool) -> Array:
    return np.array([0, 2, 1])[sections(half, temporal, height, width, interleaved)]


def _only_temporal(half: int, temporal: int, height: int, width: int, interleaved: bool) -> Array:
    return np.zeros(half, np.int64)


_add(mutant, "rope_qk", "keys_still", "Keys are not turned.", _qk(PLAIN, other=_untouched))
_add(mutant, "rope_qk", "offsets_left_out", "Offsets are not added.", _qk(PLAIN, with_offsets=False))
_add(mutant, "rope_qk", "other_end_plain", "The other end of a head is not turned.", _qk(PLAIN, exchange=True))
_add(
    partial(mutant, dtypes=("float32",), relation="keys_are_turned_as_queries"),
    "rope_qk",
    "keys_fused",
    "Keys are computed with fused products, queries without.",
    _qk(PLAIN, other=_by(fused_with_cosine)),
)
_add(mutant, "mrope", "never_interleaved", "Sections follow one another.", _mrope(PLAIN, _one_after_another))
_add(mutant, "mrope", "always_interleaved", "Sections are interleaved.", _mrope(PLAIN, _always_interleaved))
_add(mutant, "mrope", "height_for_width", "Height and width are exchanged.", _mrope(PLAIN, _height_and_width_exchanged))
_add(mutant, "mrope", "only_temporal", "All columns take the temporal position.", _mrope(PLAIN, _only_temporal))
_add(mutant, "rope_2d", "rows_for_columns", "Rows and columns are exchanged.", _image(PLAIN, exchange=True))
_add(mutant, "rope_2d", "whole_head", "Pairs run over the whole head.", _image(PLAIN, whole=True))
