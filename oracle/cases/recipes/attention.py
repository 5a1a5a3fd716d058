"""Cases of attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows, full_significand, normal, vanishing
from oracle.formats import Format
from oracle.signature import Array

Triple: TypeAlias = tuple[Array, Array, Array]
Builder: TypeAlias = Callable[[np.random.Generator, Shape, Shape, Shape, float, Format], Triple]


def _rows(q_class: str, k_class: str, v_class: str, q_factor: float = 1.0) -> Builder:
    def build(rng: np.random.Generator, q: Shape, k: Shape, v: Shape, scale: float, number_format: Format) -> Triple:
        return (
            q_factor * draw_rows(q_class, rng, q, number_format, MIXED),
            draw_rows(k_class, rng, k, number_format, MIXED),
            draw_rows(v_class, rng, v, number_format, MIXED),
        )

    return build


MIXED = ("normal", "uniform", "one_hot", "rising", "falling", "low_entropy", "zeros")


def _with_scores(scores: Array, q: Shape, k: Shape, scale: float, v: Array) -> Triple:
    """Queries and keys whose scaled product is ``scores`` (one per key) in every row, exact for powers of two."""
    queries, keys = np.zeros(q), np.zeros(k)
    if q[-1]:
        factor = 2.0 ** np.ceil(np.log2(1.0 / scale))
        queries[..., 0] = 32.0
        keys[..., 0] = scores * factor / 32.0
    return queries, keys, v


def _all_below(rng: np.random.Generator, q: Shape, k: Shape, v: Shape, scale: float, number_format: Format) -> Triple:
    """Every score far below zero: a running maximum started at 0 makes every weight vanish."""
    scores = -vanishing(number_format) * rng.integers(2, 5, k[:-1])
    return _with_scores(scores, q, k, scale, full_significand(rng, v, number_format))


def _far_below(rng: np.random.Generator, q: Shape, k: Shape, v: Shape, scale: float, number_format: Format) -> Triple:
    """Every score below -100,000: a running maximum started at a "large" negative number makes every weight vanish."""
    scores = -1024.0 * 128.0 * (1.0 + rng.integers(0, 2, k[:-1]) / 2)
    return _with_scores(scores, q, k, scale, full_significand(rng, v, number_format))


def _huge_exact(rng: np.random.Generator, q: Shape, k: Shape, v: Shape, scale: float, number_format: Format) -> Triple:
    """Scores whole multiples of a gap at which exp vanishes: each output is one value or a plain mean of ties."""
    scores = vanishing(number_format) * rng.integers(-4, 5, k[:-1])
    return _with_scores(scores, q, k, scale, full_significand(rng, v, number_format))


def _climbing(rng: np.random.Generator, q: Shape, k: Shape, v: Shape, scale: float, number_format: Format) -> Triple:
    """Scores that rise with every key, by 1/8 each: each tile must rescale what came before."""
    scores = np.broadcast_to(np.arange(k[2]) / 8, k[:-1])
    return _with_scores(scores, q, k, scale, normal(rng, v, number_format))


def _sinking(rng: np.random.Generator, q: Shape, k: Shape, v: Shape, scale: float, number_format: Format) -> Triple:
    """Scores that fall with every key, by 1/8 each: later tiles must not rescale."""
    scores = np.broadcast_to(-np.arange(k[2]) / 8, k[:-1])
    return _with_scores(scores, q, k, scale, normal(rng, v, number_format))


def _last_key(rng: np.random.Generator, q: Shape, k: Shape, v: Shape, scale: float, number_format: Format) -> Triple:
    """The last key wins by far: a dropped or unmasked tail shows in every row."""
    scores = np.zeros(k[:-1])
    scores[..., -1:] = vanishing(number_format)
    return _with_scores(scores, q, k, scale, full_significand(rng, v, number_format))


def _uniform_weights(
    rng: np.random.Generator, q: Shape, k: Shape, v: Shape, scale: float, number_format: Format
) -> Triple:
    """Queries of zero: every visible key weighs the same, and key j's value is j + 1: off-by-one masks show."""
    values = np.broadcast_to(np.arange(1.0, v[2] + 1)[:, np.newaxis], v)
    return np.zeros(q), normal(rng, k, number_format), values


def _infinite_key(
    rng: np.random.Generator, q: Shape, k: Shape, v: Shape, scale: float, number_format: Format
) -> Triple:
    """One key of each head is infinite: rows that see it are NaN, and it changes nothing in rows that do not."""
    queries, keys, values = (normal(rng, shape, number_format) for shape in (q, k, v))
    if keys.size and queries.size:
        at = rng.integers(0, k[2], k[:2])
        queries[..., 0] = np.abs(queries[..., 0]) + 0.5
        np.put_along_axis(keys[..., 0], at[..., np.newaxis], np.inf, axis=-1)
    return queries, keys, values


def _infinities_seen(
    rng: np.random.Generator, q: Shape, k: Shape, v: Shape, scale: float, number_format: Format
) -> Triple:
    """An infinite key, whose score is -inf in about half of the rows: it weighs nothing there, and another key's value
    is infinite. Not for rows that may see no other key."""
    queries, keys, values = _infinite_key(rng, q, k, v, scale, number_format)
    if keys.size and queries.size and k[2] > 1:
        queries[..., 0] *= np.where(rng.random(q[:-1]) < 0.5, -1.0, 1.0)
        if values.size:
            finite = np.argmin(np.isinf(keys[..., 0]), axis=-1)
            sign = np.where(rng.random(k[:2]) < 0.5, -np.inf, np.inf)
            np.put_along_axis(values[..., 0], finite[..., np.newaxis], sign[..., np.newaxis], axis=-1)
    return queries, keys, values


def builder_of(name: str, params: Mapping[str, Any]) -> Builder:
    """The builder of a class under given parameters: where nothing is masked, infinities may be in more places."""
    masked = params.get("causal", "none") != "none" or max(params.get(f"window_{side}", -1) for side in SIDES) >= 0
    return _infinities_seen if name == "infinities" and not masked else BUILDERS[name]


SIDES = ("left", "right")
BUILDERS: dict[str, Builder] = {
    "normal": _rows("normal", "normal", "normal"),
    "uniform": _rows("uniform", "uniform", "uniform"),
    "peaky": _rows("normal", "normal", "normal", q_factor=8.0),
    "low_entropy": _rows("low_entropy", "low_entropy", "low_entropy"),
    "heavy_tail": _rows("normal", "normal", "heavy_tail"),
    "one_hot": _rows("normal", "normal", "one_hot"),
    "rising": _rows("rising", "normal", "normal"),
    "falling": _rows("falling", "normal", "normal"),
    "subnormals": _rows("normal", "normal", "subnormals"),
    "offset": _rows("normal", "normal", "offset"),
    "sparse_integers": _rows("zeros", "normal", "sparse_integers"),
    "mixed": _rows("mixed", "mixed", "mixed"),
    "full_significand": _rows("normal", "normal", "full_significand"),
    "zeros": _rows("zeros", "zeros", "zeros"),
    "not_a_number": _rows("not_a_number", "normal", "normal"),
    "infinities": _infinite_key,
    "all_below": _all_below,
    "far_below": _far_below,
    "huge_exact": _huge_exact,
    "climbing": _climbing,
    "sinking": _sinking,
    "last_key": _last_key,
    "uniform_weights": _uniform_weights,
}


def scale_of(shapes: Mapping[str, Shape], params: Mapping[str, Any]) -> float:
    """The factor of the scores."""
    return float(params["scale"] or 1.0 / np.sqrt(max(shapes["q"][-1], 1)))


def _attention_draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        build = builder_of(name, params)
        q, k, v = build(rng, shapes["q"], shapes["k"], shapes["v"], scale_of(shapes, params), number_format)
        return {"q": q, "k": k, "v": v}

    return draw


def dense_dims(
    batch: int, heads: int, kv_heads: int, queries: int, keys: int, head_dim: int, v_dim: int
) -> dict[str, int]:
    """Sizes of q, k and v by name."""
    names = ("batch", "heads", "queries", "head_dim", "kv_heads", "keys", "v_dim")
    return dict(zip(names, (batch, heads, queries, head_dim, kv_heads, keys, v_dim), strict=True))


TOP, BOTTOM = {"causal": "top_left"}, {"causal": "bottom_right"}


def _random_attention(rng: np.random.Generator) -> Structure:
    kv_heads, group = int(pick(rng, (1, 1, 2, 3))), int(pick(rng, (1, 2, 3)))
    lengths = (1, 2, 5, 13, 15, 16, 17, 31, 33, 47)
    head_dim = int(pick(rng, (1, 5, 8, 16, 33, 64)))
    dims = dense_dims(
        int(pick(rng, (1, 2))), kv_heads * group, kv_heads, int(pick(rng, lengths)), int(pick(rng, (*lengths, 65))),
        head_dim, int(pick(rng, (head_dim, head_dim, 7))),
    )  # fmt: skip
    params: dict[str, Any] = {"causal": pick(rng, ("none", "top_left", "bottom_right"))}
    if rng.random() < 0.3:
        params["scale"] = pick(rng, (0.125, 0.3, 1.0))
    return Structure(dims, params={name: value for name, value in params.items() if value != "none"})


ATTENTION = Recipe(
    classes={name: _attention_draw(name) for name in BUILDERS},
    curated=(
        Structure(dense_dims(2, 2, 2, 17, 48, 16, 16), "normal"),
        Structure(dense_dims(1, 4, 2, 13, 47, 16, 16), "normal", "padded", BOTTOM),
        Structure(dense_dims(1, 3, 1, 33, 17, 16, 16), "normal", "strided", TOP),
        Structure(dense_dims(1, 2, 1, 33, 17, 16, 16), "uniform_weights", "contiguous", BOTTOM),
        Structure(dense_dims(1, 1, 1, 15, 65, 16, 16), "all_below"),
        Structure(dense_dims(1, 2, 2, 9, 65, 16, 16), "huge_exact", "transposed"),
        Structure(dense_dims(1, 2, 1, 17, 33, 16, 16), "uniform_weights", "misaligned", TOP),
        Structure(dense_dims(1, 1, 1, 5, 129, 16, 8), "climbing"),
        Structure(dense_dims(1, 1, 1, 5, 129, 16, 8), "sinking", "padded"),
        Structure(dense_dims(1, 2, 2, 7, 63, 16, 16), "last_key"),
        Structure(dense_dims(1, 2, 1, 16, 64, 32, 16), "peaky", params=BOTTOM),
        Structure(dense_dims(1, 2, 2, 8, 31, 64, 32), "uniform", "strided", {"scale": 0.3}),
        Structure(dense_dims(1, 1, 1, 9, 33, 16, 16), "low_entropy", "padded"),
        Structure(dense_dims(1, 1, 1, 8, 16, 16, 16), "sparse_integers"),
        Structure(dense_dims(1, 2, 1, 5, 17, 16, 8), "subnormals"),
        Structure(dense_dims(1, 1, 1, 7, 33, 16, 16), "offset", "transposed"),
        Structure(dense_dims(1, 1, 1, 6, 17, 33, 5), "heavy_tail", "misaligned"),
        Structure(dense_dims(1, 2, 2, 5, 31, 16, 31), "one_hot", params=TOP),
        Structure(dense_dims(1, 1, 1, 5, 33, 24, 8), "rising", "padded"),
        Structure(dense_dims(1, 1, 1, 5, 33, 24, 8), "falling"),
        Structure(dense_dims(2, 6, 3, 5, 13, 8, 8), "mixed", "strided", BOTTOM),
        Structure(dense_dims(1, 2, 1, 5, 33, 16, 16), "far_below"),
        Structure(dense_dims(1, 2, 1, 7, 17, 16, 16), "not_a_number", "padded", BOTTOM),
        Structure(dense_dims(2, 2, 1, 9, 17, 16, 16), "infinities", "strided"),
        Structure(dense_dims(1, 2, 1, 17, 17, 16, 16), "infinities", "padded", BOTTOM),
        Structure(dense_dims(2, 2, 1, 17, 33, 16, 16), "full_significand"),
        Structure(dense_dims(1, 2, 1, 3, 5, 8, 8), "zeros"),
        Structure(dense_dims(1, 1, 1, 1, 1, 1, 1), "normal"),
        Structure(dense_dims(1, 2, 1, 3, 0, 16, 8)),
        Structure(dense_dims(1, 2, 1, 0, 5, 16, 8)),
        Structure(dense_dims(0, 2, 1, 3, 5, 16, 8)),
        Structure(dense_dims(1, 2, 1, 4, 7, 16, 0)),
        Structure(dense_dims(1, 1, 1, 2, 1031, 8, 8), "normal"),
        Structure(dense_dims(1, 1, 1, 131, 5, 8, 8), "normal", params=TOP),
        Structure(dense_dims(1, 1, 1, 3, 9, 130, 130), "normal"),
    ),
    random=_random_attention,
)

RECIPES = {"attention": ATTENTION}
