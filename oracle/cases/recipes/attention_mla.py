"""Cases of latent attention, and of merging split attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.attention import BUILDERS, builder_of
from oracle.cases.recipes.attention_flash import added_inputs, boundaries, packed_heads
from oracle.cases.recipes.attention_paged import pages_of
from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import ROWS, Shape, vanishing
from oracle.formats import Format
from oracle.signature import Array

# A latent vector is both key and value, so classes that set scores by one column of the key have values of their own.
LATENT = (
    "normal", "uniform", "peaky", "low_entropy", "heavy_tail", "one_hot", "rising", "falling", "subnormals", "offset",
    "sparse_integers", "full_significand", "not_a_number", "infinities", "uniform_weights", "zeros", "all_below",
    "far_below", "huge_exact", "climbing", "sinking", "last_key",
)  # fmt: skip


def _decode_draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        sequences, queries, heads, size = shapes["q"]
        pages, page_size, _ = shapes["cache"]
        latent = params["latent_dim"]
        least = np.full(sequences, queries)
        table, lengths, cells = pages_of(rng, shapes["page_table"], pages, page_size, least)
        scale = params["scale"] or 1.0 / np.sqrt(max(size, 1))
        q, cache = np.zeros(shapes["q"]), np.full(shapes["cache"], np.nan)
        for sequence, length in enumerate(lengths):
            # The rotated part carries what a class does to scores, the latent part what it does to values.
            shape = (1, 1, int(length), size - latent)
            rows, keys, _ = BUILDERS[name](rng, (1, heads, queries, size - latent), shape, shape, scale, number_format)
            _, _, values = BUILDERS[name](
                rng, (1, heads, queries, latent), (1, 1, int(length), latent), (1, 1, int(length), latent), scale,
                number_format,
            )  # fmt: skip
            q[sequence, ..., latent:] = np.swapaxes(rows[0], 0, 1)
            if name in ("normal", "uniform", "peaky", "low_entropy", "offset"):
                q[sequence, ..., :latent] = rng.standard_normal((queries, heads, latent)) / max(latent, 1) ** 0.5
            cache[cells[sequence]] = np.concatenate([values[0, 0], keys[0, 0]], axis=-1)
        added = added_inputs(rng, shapes, exact=True)
        return {"q": q, "cache": cache, "page_table": table, "lengths": lengths, **added}

    return draw


def _decode_dims(
    sequences: int, queries: int, heads: int, qk_dim: int, pages: int, page_size: int, max_pages: int = 4
) -> dict[str, int]:
    names = ("sequences", "queries", "heads", "qk_dim", "pages", "page_size", "max_pages")
    return dict(zip(names, (sequences, queries, heads, qk_dim, pages, page_size, max_pages), strict=True))


def _latent(dim: int, **params: Any) -> dict[str, Any]:
    return {"latent_dim": dim, **params}


NO_SINKS = ("sinks",)
SINK_APART = {"sink_in_lse": False}


def _random_options(rng: np.random.Generator) -> dict[str, Any]:
    """What sinks, window and soft cap are."""
    params = {"window_left": int(pick(rng, (-1, -1, 0, 7))), "sink_in_lse": pick(rng, (True, False))}
    return params | ({"softcap": pick(rng, (1.0, 30.0))} if rng.random() < 0.3 else {})


def _random_decode(rng: np.random.Generator) -> Structure:
    sequences, latent, rope = int(pick(rng, (1, 2, 3))), int(pick(rng, (8, 16, 33))), int(pick(rng, (4, 16)))
    dims = _decode_dims(
        sequences, int(pick(rng, (1, 1, 2, 4))), int(pick(rng, (1, 2, 5))), latent + rope, 4 * sequences + 1,
        int(pick(rng, (1, 8, 13))),
    )  # fmt: skip
    params = _latent(latent) | ({"scale": 0.25} if rng.random() < 0.4 else {}) | _random_options(rng)
    return Structure(dims, params=params, absent=NO_SINKS if rng.random() < 0.5 else ())


SIXTEEN = _latent(16, scale=0.25)
DECODE = Recipe(
    classes={name: _decode_draw(name) for name in LATENT},
    curated=(
        Structure(_decode_dims(3, 1, 4, 32, 11, 16), "normal", params=SIXTEEN, absent=NO_SINKS),
        Structure(_decode_dims(2, 2, 4, 32, 9, 16), "normal", "padded", SIXTEEN | {"softcap": 1.5}),
        Structure(_decode_dims(1, 1, 2, 576, 3, 16, 2), "normal", absent=NO_SINKS),
        Structure(_decode_dims(1, 1, 1, 3, 65_600, 1, 3), "uniform_weights", params=_latent(2), absent=NO_SINKS),
        Structure(
            _decode_dims(2, 4, 2, 32, 9, 8), "uniform_weights", "strided", SIXTEEN | {"window_left": 5}, NO_SINKS
        ),
        Structure(_decode_dims(2, 2, 2, 32, 9, 8), "uniform", "misaligned", SIXTEEN | SINK_APART | {"window_left": 3}),
        Structure(_decode_dims(2, 1, 2, 32, 9, 8), "peaky", "transposed", SIXTEEN),
        Structure(_decode_dims(2, 1, 2, 32, 9, 16), "all_below", params=SIXTEEN, absent=NO_SINKS),
        Structure(_decode_dims(2, 1, 2, 32, 9, 16), "far_below", params=SIXTEEN, absent=NO_SINKS),
        Structure(_decode_dims(2, 1, 2, 32, 9, 16), "huge_exact", params=SIXTEEN, absent=NO_SINKS),
        Structure(_decode_dims(2, 1, 2, 32, 9, 16), "climbing", params=SIXTEEN, absent=NO_SINKS),
        Structure(_decode_dims(2, 1, 2, 32, 9, 16), "sinking", params=SIXTEEN, absent=NO_SINKS),
        Structure(_decode_dims(3, 1, 2, 32, 14, 5), "last_key", params=SIXTEEN, absent=NO_SINKS),
        Structure(_decode_dims(2, 1, 2, 24, 9, 8), "low_entropy", params=_latent(16, scale=0.3)),
        Structure(_decode_dims(2, 1, 1, 38, 9, 8), "heavy_tail", params=_latent(33), absent=NO_SINKS),
        Structure(_decode_dims(2, 2, 2, 32, 9, 8), "one_hot", params=SIXTEEN, absent=NO_SINKS),
        Structure(_decode_dims(2, 1, 2, 32, 9, 8), "rising", "padded", SIXTEEN),
        Structure(_decode_dims(2, 1, 2, 32, 9, 8), "falling", params=SIXTEEN, absent=NO_SINKS),
        Structure(_decode_dims(2, 1, 2, 32, 9, 8), "subnormals", params=SIXTEEN),
        Structure(_decode_dims(2, 1, 2, 32, 9, 8), "offset", params=SIXTEEN, absent=NO_SINKS),
        Structure(_decode_dims(2, 1, 2, 32, 9, 8), "sparse_integers", params=SIXTEEN, absent=NO_SINKS),
        Structure(_decode_dims(2, 1, 2, 32, 9, 8), "full_significand", params=SIXTEEN, absent=NO_SINKS),
        Structure(_decode_dims(2, 1, 2, 32, 9, 8), "not_a_number", params=SIXTEEN),
        Structure(_decode_dims(3, 2, 2, 32, 13, 8), "infinities", "padded", SIXTEEN),
        Structure(_decode_dims(2, 1, 2, 32, 9, 8), "zeros", params=_latent(32)),
        Structure(_decode_dims(1, 1, 1, 2, 1, 1, 1), "normal", params=_latent(1), absent=NO_SINKS),
        Structure(_decode_dims(2, 1, 2, 8, 0, 8), params=_latent(4), absent=NO_SINKS),
        Structure(_decode_dims(0, 1, 2, 8, 3, 8), params=_latent(4), absent=NO_SINKS),
    ),
    random=_random_decode,
    unread=("cache",),
)


def _prefill_draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        nope, size = shapes["k_nope"][2], shapes["q"][2]
        scale = params["scale"] or 1.0 / np.sqrt(max(size, 1))
        tokens, heads, _ = shapes["k_nope"]
        q, k, v = packed_heads(
            builder_of(name, params), rng, shapes["q"], (tokens, heads, size), shapes["v"], scale, number_format
        )
        inputs = {
            "q": q,
            "k_nope": k[..., :nope],
            "k_rope": k[:, 0, nope:] if heads else np.zeros(shapes["k_rope"]),
            "v": v,
        }
        count = shapes["cu_seqlens_q"][0]
        for side, rows in (("cu_seqlens_q", len(q)), ("cu_seqlens_k", tokens)):
            inputs[side] = boundaries(rng, count, rows)
        return inputs | added_inputs(rng, shapes, exact=True)

    return draw


def _prefill_dims(
    sequences: int, tokens_q: int, tokens_k: int, heads: int, nope: int, rope: int, v_dim: int
) -> dict[str, int]:
    names = ("boundaries", "tokens_q", "tokens_k", "heads", "nope_dim", "rope_dim", "qk_dim", "v_dim")
    return dict(zip(names, (sequences + 1, tokens_q, tokens_k, heads, nope, rope, nope + rope, v_dim), strict=True))


def _random_prefill(rng: np.random.Generator) -> Structure:
    dims = _prefill_dims(
        int(pick(rng, (1, 2, 3))), int(pick(rng, (5, 16, 33))), int(pick(rng, (5, 33, 47))), int(pick(rng, (1, 2, 3))),
        int(pick(rng, (8, 16, 33))), int(pick(rng, (4, 8))), int(pick(rng, (8, 16))),
    )  # fmt: skip
    params = {"causal": pick(rng, ("none", "bottom_right"))} | _random_options(rng)
    return Structure(dims, params=params, absent=NO_SINKS if rng.random() < 0.5 else ())


FREE = {"causal": "none"}
PREFILL = Recipe(
    classes={name: _prefill_draw(name) for name in LATENT},
    curated=(
        Structure(_prefill_dims(2, 17, 40, 2, 16, 16, 16), "normal", absent=NO_SINKS),
        Structure(_prefill_dims(2, 17, 33, 2, 12, 4, 16), "normal", "padded", FREE | {"softcap": 1.5}),
        Structure(_prefill_dims(3, 16, 48, 2, 12, 4, 16), "normal", "strided", FREE, absent=NO_SINKS),
        Structure(_prefill_dims(1, 5, 17, 2, 128, 64, 128), "normal", absent=NO_SINKS),
        Structure(_prefill_dims(3, 17, 33, 2, 12, 4, 8), "uniform_weights", "misaligned", {"window_left": 5}, NO_SINKS),
        Structure(_prefill_dims(2, 33, 17, 1, 12, 4, 8), "uniform_weights", "transposed", absent=NO_SINKS),
        Structure(
            _prefill_dims(2, 9, 33, 2, 12, 4, 8), "uniform", params={"scale": 0.3, "window_left": 3} | SINK_APART
        ),
        Structure(_prefill_dims(2, 9, 33, 2, 12, 4, 8), "peaky"),
        Structure(_prefill_dims(2, 9, 65, 2, 12, 4, 8), "all_below", params=FREE, absent=NO_SINKS),
        Structure(_prefill_dims(2, 9, 65, 2, 12, 4, 8), "far_below", absent=NO_SINKS),
        Structure(_prefill_dims(2, 9, 65, 2, 12, 4, 8), "huge_exact", params=FREE, absent=NO_SINKS),
        Structure(_prefill_dims(1, 5, 65, 1, 12, 4, 8), "climbing", params=FREE, absent=NO_SINKS),
        Structure(_prefill_dims(1, 5, 65, 1, 12, 4, 8), "sinking", absent=NO_SINKS),
        Structure(_prefill_dims(2, 9, 31, 2, 12, 4, 8), "last_key", absent=NO_SINKS),
        Structure(_prefill_dims(2, 9, 17, 2, 4, 4, 8), "low_entropy"),
        Structure(_prefill_dims(2, 9, 33, 1, 29, 4, 5), "heavy_tail", absent=NO_SINKS),
        Structure(_prefill_dims(2, 9, 17, 2, 12, 4, 17), "one_hot", absent=NO_SINKS),
        Structure(_prefill_dims(2, 7, 33, 1, 20, 4, 8), "rising"),
        Structure(_prefill_dims(2, 7, 33, 1, 20, 4, 8), "falling", absent=NO_SINKS),
        Structure(_prefill_dims(2, 9, 17, 2, 12, 4, 8), "subnormals"),
        Structure(_prefill_dims(2, 9, 33, 1, 12, 4, 8), "offset", absent=NO_SINKS),
        Structure(_prefill_dims(2, 9, 17, 1, 12, 4, 8), "sparse_integers", absent=NO_SINKS),
        Structure(_prefill_dims(3, 13, 33, 2, 12, 4, 8), "full_significand", absent=NO_SINKS),
        Structure(_prefill_dims(2, 9, 17, 2, 4, 4, 8), "not_a_number"),
        Structure(_prefill_dims(2, 9, 17, 2, 4, 4, 8), "infinities", "padded"),
        Structure(_prefill_dims(2, 9, 17, 2, 4, 4, 8), "infinities", "strided", FREE),
        Structure(_prefill_dims(2, 9, 17, 2, 4, 4, 8), "zeros"),
        Structure(_prefill_dims(1, 1, 1, 1, 1, 1, 1), "normal", absent=NO_SINKS),
        Structure(_prefill_dims(0, 0, 0, 2, 4, 4, 8), absent=NO_SINKS),
        Structure(_prefill_dims(2, 7, 0, 2, 4, 4, 8), absent=NO_SINKS),
    ),
    random=_random_prefill,
)


def _states_draw(name: str, spread: float = 3.0) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        lses = spread * rng.standard_normal(shapes["lses"])
        return {"outs": ROWS[name](rng, shapes["outs"], number_format), "lses": lses}

    return draw


def _some_empty(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Half of the parts saw no key, and for every third token no part did."""
    inputs = _states_draw("normal")(rng, shapes, params, number_format)
    empty = rng.random(shapes["lses"]) < 0.5
    empty[:, ::3] = True
    outs = np.where(empty[..., np.newaxis], 0.0, inputs["outs"])
    return {"outs": outs, "lses": np.where(empty, -np.inf, inputs["lses"])}


def _equal_parts(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """All log-sum-exps are the same number."""
    outs = ROWS["sparse_integers"](rng, shapes["outs"], number_format)
    return {"outs": outs, "lses": np.full(shapes["lses"], 3.0)}


def _one_part(depth: float) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        outs = ROWS["full_significand"](rng, shapes["outs"], number_format)
        steps = 2 * vanishing(number_format) * np.arange(shapes["lses"][0])
        order = rng.permutation(shapes["lses"][0])
        lses = (steps[order] - depth)[:, np.newaxis, np.newaxis] + np.zeros(shapes["lses"])
        return {"outs": outs, "lses": lses}

    return draw


STATES = {
    **{
        name: _states_draw(name)
        for name in ("normal", "uniform", "full_significand", "one_hot", "low_entropy", "rising", "falling", "offset",
                     "subnormals", "heavy_tail", "zeros", "not_a_number", "sparse_integers")
    },
    "far_apart": _states_draw("normal", spread=30.0),
    "some_empty": _some_empty,
    "equal_parts": _equal_parts,
    "one_part_wins": _one_part(0.0),
    "all_below": _one_part(2.0**14),
}  # fmt: skip


def _states_dims(splits: int, tokens: int, heads: int, v_dim: int) -> dict[str, int]:
    return {"splits": splits, "tokens": tokens, "heads": heads, "v_dim": v_dim}


TWO = {"base": "2"}


def _random_states(rng: np.random.Generator) -> Structure:
    dims = _states_dims(
        int(pick(rng, (1, 2, 3, 7, 16, 33))), int(pick(rng, (1, 5, 16))), int(pick(rng, (1, 3))),
        int(pick(rng, (1, 8, 16, 33))),
    )  # fmt: skip
    return Structure(dims, params={"base": pick(rng, ("e", "2"))})


MERGE = Recipe(
    classes=STATES,
    curated=(
        Structure(_states_dims(2, 17, 2, 16), "normal"),
        Structure(_states_dims(7, 16, 3, 16), "normal", "padded", TWO),
        Structure(_states_dims(33, 5, 2, 16), "normal", "strided"),
        Structure(_states_dims(4, 16, 2, 8), "some_empty", "transposed"),
        Structure(_states_dims(3, 13, 2, 8), "some_empty", "misaligned", TWO),
        Structure(_states_dims(5, 9, 2, 8), "one_part_wins"),
        Structure(_states_dims(5, 9, 2, 8), "all_below", "padded"),
        Structure(_states_dims(4, 9, 2, 8), "equal_parts"),
        Structure(_states_dims(6, 9, 2, 8), "far_apart", params=TWO),
        Structure(_states_dims(3, 31, 1, 33), "uniform"),
        Structure(_states_dims(4, 7, 1, 65), "full_significand", "strided"),
        Structure(_states_dims(3, 9, 2, 17), "one_hot"),
        Structure(_states_dims(16, 5, 2, 8), "low_entropy"),
        Structure(_states_dims(3, 9, 2, 17), "rising", params=TWO),
        Structure(_states_dims(3, 9, 2, 17), "falling"),
        Structure(_states_dims(3, 9, 2, 17), "offset"),
        Structure(_states_dims(3, 9, 2, 17), "subnormals"),
        Structure(_states_dims(3, 9, 2, 17), "heavy_tail"),
        Structure(_states_dims(3, 9, 2, 17), "zeros"),
        Structure(_states_dims(3, 9, 2, 17), "not_a_number"),
        Structure(_states_dims(3, 9, 2, 17), "sparse_integers"),
        Structure(_states_dims(1, 9, 2, 17), "normal"),
        Structure(_states_dims(1, 1, 1, 1), "full_significand", params=TWO),
        Structure(_states_dims(0, 3, 2, 8)),
        Structure(_states_dims(2, 0, 2, 8)),
        Structure(_states_dims(2, 131, 1, 3), "normal"),
    ),
    random=_random_states,
)

RECIPES = {"mla_decode": DECODE, "mla_prefill": PREFILL, "merge_attention_states": MERGE}
