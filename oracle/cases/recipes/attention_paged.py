"""Cases of attention over pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.attention import builder_of, scale_of
from oracle.cases.recipes.attention_flash import added_inputs, boundaries
from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import Shape
from oracle.formats import Format
from oracle.signature import Array

CLASSES = (
    "normal", "uniform", "peaky", "low_entropy", "heavy_tail", "one_hot", "rising", "falling", "subnormals", "offset",
    "sparse_integers", "full_significand", "not_a_number", "infinities", "uniform_weights", "all_below", "far_below",
    "huge_exact", "climbing", "sinking", "last_key", "zeros",
)  # fmt: skip


def page_sizes(shapes: Mapping[str, Shape], layout: str) -> tuple[int, int, int, int, int]:
    """Pages, page size, key heads, head size and size of values of caches in a layout."""
    keys, values = shapes["key_cache"], shapes["value_cache"]
    if layout == "plain":
        return keys[0], keys[1], keys[2], keys[3], values[3]
    if layout == "heads_first":
        return keys[0], keys[2], keys[1], keys[3], values[3]
    v_dim = values[2] if layout == "vllm" else values[3]
    return keys[0], keys[3], keys[1], keys[2] * keys[4], v_dim


def laid_out(plain: Array, shape: Shape, layout: str, what: str) -> Array:
    """A cache (pages, page_size, kv_heads, size) in a layout of a given shape."""
    if layout == "plain":
        return plain
    by_head = np.swapaxes(plain, 1, 2)  # pages, kv_heads, page_size, size
    if layout == "heads_first":
        return by_head
    if what == "value_cache" and layout == "vllm":
        return np.swapaxes(by_head, 2, 3)
    pages, kv_heads, page_size, size = by_head.shape
    pack = shape[-1]
    if what == "key_cache":
        return np.swapaxes(by_head.reshape(pages, kv_heads, page_size, size // max(pack, 1), pack), 2, 3)
    return np.swapaxes(by_head.reshape(pages, kv_heads, page_size // max(pack, 1), pack, size), 3, 4)


def pages_of(
    rng: np.random.Generator, shape: Shape, pages: int, page_size: int, least: Array
) -> tuple[Array, Array, list[tuple[Array, Array]]]:
    """A page table with entries not in use that lead astray, lengths, and each sequence's cells (pages, places)."""
    sequences, max_pages = shape
    table = rng.choice(np.array([-1, -7, 2**30, pages, 0]), shape).astype(np.int32)
    free = [*rng.permutation(max(pages - 1, 0)), *range(max(pages - 1, 0), pages)]  # the last page is always in use
    lengths, cells = np.zeros(sequences, np.int32), []
    for sequence in range(sequences):
        room = min(max_pages, len(free)) * page_size
        ends = (room, min(page_size, room), int(rng.integers(0, room + 1)), int(rng.integers(0, room + 1)), 0)
        lengths[sequence] = min(max(ends[sequence % len(ends)], int(least[sequence])), room)
        token = np.arange(lengths[sequence])
        for at in range(-(-int(lengths[sequence]) // page_size)):
            table[sequence, at] = free.pop()
        cells.append((table[sequence, token // page_size], token % page_size))
    return table, lengths, cells


def _draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        layout = params["layout"]
        pages, page_size, kv_heads, head_dim, v_dim = page_sizes(shapes, layout)
        rows, heads, _ = shapes["q"]
        sequences = shapes["lengths"][0]
        prefill = "cu_seqlens_q" in shapes
        edges = boundaries(rng, sequences + 1, rows) if prefill else np.arange(rows + 1, dtype=np.int32)
        table, lengths, cells = pages_of(rng, shapes["page_table"], pages, page_size, np.diff(edges))
        q = np.zeros(shapes["q"])
        keys, values = (np.full((pages, page_size, kv_heads, size), np.nan) for size in (head_dim, v_dim))
        for sequence in range(sequences):
            rows_of = slice(int(edges[sequence]), int(edges[sequence + 1]))
            length = int(lengths[sequence])
            drawn = builder_of(name, params)(
                rng, (1, heads, rows_of.stop - rows_of.start, head_dim), (1, kv_heads, length, head_dim),
                (1, kv_heads, length, v_dim), scale_of(shapes, params), number_format,
            )  # fmt: skip
            q[rows_of], keys[cells[sequence]], values[cells[sequence]] = (np.swapaxes(x[0], 0, 1) for x in drawn)
        inputs = {
            "q": q,
            "key_cache": laid_out(keys, shapes["key_cache"], layout, "key_cache"),
            "value_cache": laid_out(values, shapes["value_cache"], layout, "value_cache"),
            "page_table": table,
            "lengths": lengths,
            **added_inputs(rng, shapes, exact=True),
        }
        return inputs | ({"cu_seqlens_q": edges} if prefill else {})

    return draw


def _dims(
    layout: str, sequences: int, pages: int, page_size: int, heads: int, kv_heads: int, head_dim: int, v_dim: int,
    max_pages: int = 4, pack: int = 8,
) -> dict[str, int]:  # fmt: skip
    dims = {
        "sequences": sequences, "max_pages": max_pages, "pages": pages, "page_size": page_size, "heads": heads,
        "kv_heads": kv_heads, "head_dim": head_dim, "v_dim": v_dim,
    }  # fmt: skip
    if layout in ("vllm", "aiter_asm"):
        dims |= {"head_parts": head_dim // pack, "pack": pack}
    if layout == "aiter_asm":
        dims["page_parts"] = page_size // pack
    return dims


def _in(layout: str, **params: Any) -> dict[str, Any]:
    return {"layout": layout, **params}


LAYOUT_NAMES = ("plain", "heads_first", "vllm", "aiter_asm")
VLLM, ASM, HEADS = _in("vllm"), _in("aiter_asm"), _in("heads_first")
APART = {"sink_in_lse": False}
NONE = ("alibi_slopes", "sinks")
SLOPES, SINKS = NONE[:1], NONE[1:]


def _random(rng: np.random.Generator) -> Structure:
    layout = pick(rng, LAYOUT_NAMES)
    kv_heads, sequences, page_size = int(pick(rng, (1, 2))), int(pick(rng, (1, 2, 3))), int(pick(rng, (8, 16)))
    head_dim = int(pick(rng, (8, 16, 32) if layout in LAYOUT_NAMES[2:] else (5, 16, 33)))
    dims = _dims(
        layout, sequences, 4 * sequences + 1, page_size, kv_heads * int(pick(rng, (1, 2, 5))), kv_heads, head_dim,
        int(pick(rng, (8, 16, 7))),
    )  # fmt: skip
    params: dict[str, Any] = {
        "layout": layout, "window_left": int(pick(rng, (-1, -1, 0, 7))), "sink_in_lse": pick(rng, (True, False))
    }  # fmt: skip
    if rng.random() < 0.3:
        params["softcap"] = pick(rng, (1.0, 30.0))
    return Structure(dims, params=params, absent=tuple(name for name in NONE if rng.random() < 0.6))


DECODE = Recipe(
    classes={name: _draw(name) for name in CLASSES},
    curated=(
        Structure(_dims("plain", 3, 11, 16, 4, 2, 16, 16), "normal", absent=NONE),
        Structure(_dims("vllm", 3, 11, 16, 4, 2, 16, 16), "normal", params=VLLM, absent=NONE),
        Structure(_dims("aiter_asm", 3, 11, 16, 2, 1, 16, 8), "normal", params=ASM),
        Structure(_dims("plain", 1, 65_600, 1, 1, 1, 2, 2, 3), "uniform_weights", absent=NONE),
        Structure(_dims("heads_first", 2, 9, 8, 4, 2, 16, 8), "uniform_weights", "padded", HEADS, NONE),
        Structure(_dims("vllm", 3, 12, 8, 2, 1, 16, 8), "uniform_weights", "strided", VLLM | {"window_left": 5}, NONE),
        Structure(_dims("plain", 2, 9, 8, 6, 2, 16, 8), "uniform", "misaligned", {"softcap": 1.5}, SINKS),
        Structure(_dims("plain", 2, 9, 16, 2, 1, 16, 8), "peaky", "transposed", APART, SLOPES),
        Structure(_dims("aiter_asm", 2, 9, 16, 2, 1, 16, 8), "all_below", params=ASM, absent=NONE),
        Structure(_dims("vllm", 2, 9, 16, 2, 1, 16, 8), "far_below", params=VLLM, absent=NONE),
        Structure(_dims("plain", 2, 9, 16, 2, 1, 16, 8), "huge_exact", absent=SINKS),
        Structure(_dims("vllm", 2, 9, 16, 2, 1, 16, 8), "climbing", params=VLLM, absent=NONE),
        Structure(_dims("plain", 2, 9, 16, 2, 1, 16, 8), "sinking", absent=NONE),
        Structure(_dims("plain", 5, 17, 5, 2, 1, 16, 8), "last_key", absent=NONE),
        Structure(
            _dims("heads_first", 2, 9, 8, 2, 2, 8, 8), "low_entropy", params=HEADS | {"scale": 0.3}, absent=SINKS
        ),
        Structure(_dims("plain", 2, 9, 4, 1, 1, 33, 5), "heavy_tail", absent=NONE),
        Structure(_dims("aiter_asm", 2, 9, 8, 2, 1, 16, 17), "one_hot", "padded", ASM, NONE),
        Structure(_dims("plain", 2, 9, 8, 2, 1, 24, 8), "rising", params={"window_left": 0}),
        Structure(_dims("plain", 2, 9, 8, 2, 1, 24, 8), "falling", absent=NONE),
        Structure(_dims("vllm", 2, 9, 8, 2, 1, 16, 8), "subnormals", "misaligned", VLLM, NONE),
        Structure(_dims("plain", 2, 9, 8, 2, 1, 16, 8), "offset", absent=NONE),
        Structure(_dims("plain", 2, 9, 8, 1, 1, 16, 8), "sparse_integers", absent=NONE),
        Structure(_dims("aiter_asm", 2, 9, 16, 2, 1, 16, 8), "full_significand", "transposed", ASM, NONE),
        Structure(_dims("plain", 3, 13, 8, 2, 1, 8, 8), "not_a_number"),
        Structure(_dims("vllm", 3, 13, 8, 2, 1, 8, 8), "infinities", "padded", VLLM, SINKS),
        Structure(_dims("plain", 2, 9, 8, 2, 2, 8, 8), "zeros", params=APART),
        Structure(_dims("plain", 1, 1, 1, 1, 1, 1, 1, 1), "normal", absent=NONE),
        Structure(_dims("plain", 2, 0, 8, 2, 1, 8, 8)),
        Structure(_dims("vllm", 0, 3, 8, 2, 1, 8, 8), params=VLLM),
    ),
    random=_random,
    unread=("key_cache", "value_cache"),
)


def _prefill_dims(layout: str, sequences: int, tokens: int, *rest: int, **more: int) -> dict[str, int]:
    return _dims(layout, sequences, *rest, **more) | {"tokens": tokens, "boundaries": sequences + 1}


def _random_prefill(rng: np.random.Generator) -> Structure:
    drawn = _random(rng)
    dims = {**drawn.dims, "tokens": int(pick(rng, (3, 7, 16, 17))), "boundaries": drawn.dims["sequences"] + 1}
    params = {
        "causal": pick(rng, ("none", "bottom_right", "bottom_right")),
        "alibi": pick(rng, ("distance", "last_key")),
    }
    return Structure(dims, params={**drawn.params, **params}, absent=drawn.absent)


FREE = {"causal": "none"}
PREFILL = Recipe(
    classes={name: _draw(name) for name in CLASSES},
    curated=(
        Structure(_prefill_dims("plain", 2, 9, 9, 16, 4, 2, 16, 16), "normal", absent=NONE),
        Structure(_prefill_dims("vllm", 2, 9, 9, 16, 4, 2, 16, 16), "normal", params=VLLM | FREE, absent=SINKS),
        Structure(_prefill_dims("aiter_asm", 3, 13, 13, 16, 2, 1, 16, 8), "normal", params=ASM, absent=NONE),
        Structure(_prefill_dims("plain", 1, 2, 65_600, 1, 1, 1, 2, 2, 3), "uniform_weights", absent=NONE),
        Structure(
            _prefill_dims("heads_first", 2, 17, 9, 8, 4, 2, 16, 8), "uniform_weights", "padded", HEADS, absent=NONE
        ),
        Structure(
            _prefill_dims("vllm", 3, 9, 13, 8, 2, 1, 16, 8),
            "uniform_weights",
            "strided",
            VLLM | {"window_left": 5},
            NONE,
        ),
        Structure(
            _prefill_dims("plain", 2, 7, 9, 8, 6, 2, 16, 8),
            "uniform",
            "misaligned",
            {"softcap": 1.5, "alibi": "last_key"} | APART,
        ),
        Structure(_prefill_dims("plain", 2, 7, 9, 16, 2, 1, 16, 8), "peaky", "transposed", FREE | APART, SLOPES),
        Structure(_prefill_dims("aiter_asm", 2, 5, 9, 16, 2, 1, 16, 8), "all_below", params=ASM | FREE, absent=NONE),
        Structure(_prefill_dims("vllm", 2, 5, 9, 16, 2, 1, 16, 8), "far_below", params=VLLM, absent=NONE),
        Structure(_prefill_dims("plain", 2, 5, 9, 16, 2, 1, 16, 8), "huge_exact", absent=NONE),
        Structure(_prefill_dims("vllm", 2, 5, 9, 16, 2, 1, 16, 8), "climbing", params=VLLM, absent=NONE),
        Structure(_prefill_dims("plain", 2, 5, 9, 16, 2, 1, 16, 8), "sinking", params=FREE, absent=NONE),
        Structure(_prefill_dims("plain", 3, 7, 17, 5, 2, 1, 16, 8), "last_key", absent=NONE),
        Structure(_prefill_dims("heads_first", 2, 7, 9, 8, 2, 2, 8, 8), "low_entropy", params=HEADS | {"scale": 0.3}),
        Structure(_prefill_dims("plain", 2, 5, 9, 4, 1, 1, 33, 5), "heavy_tail", absent=NONE),
        Structure(_prefill_dims("aiter_asm", 2, 7, 9, 8, 2, 1, 16, 17), "one_hot", "padded", ASM, absent=NONE),
        Structure(_prefill_dims("plain", 2, 5, 9, 8, 2, 1, 24, 8), "rising", params={"window_left": 0}),
        Structure(_prefill_dims("plain", 2, 5, 9, 8, 2, 1, 24, 8), "falling", absent=NONE),
        Structure(_prefill_dims("vllm", 2, 5, 9, 8, 2, 1, 16, 8), "subnormals", "misaligned", VLLM),
        Structure(_prefill_dims("plain", 2, 5, 9, 8, 2, 1, 16, 8), "offset", absent=NONE),
        Structure(_prefill_dims("plain", 2, 5, 9, 8, 1, 1, 16, 8), "sparse_integers", absent=NONE),
        Structure(
            _prefill_dims("aiter_asm", 2, 7, 9, 16, 2, 1, 16, 8), "full_significand", "transposed", ASM, absent=NONE
        ),
        Structure(_prefill_dims("plain", 3, 7, 13, 8, 2, 1, 8, 8), "not_a_number", params=FREE),
        Structure(_prefill_dims("plain", 3, 7, 13, 8, 2, 1, 8, 8), "infinities", "strided", absent=SLOPES),
        Structure(_prefill_dims("plain", 2, 5, 9, 8, 2, 2, 8, 8), "zeros"),
        Structure(_prefill_dims("plain", 1, 1, 1, 1, 1, 1, 1, 1, max_pages=1), "normal", absent=NONE),
        Structure(_prefill_dims("plain", 2, 3, 0, 8, 2, 1, 8, 8), absent=NONE),
        Structure(_prefill_dims("vllm", 2, 0, 3, 8, 2, 1, 8, 8), params=VLLM, absent=NONE),
    ),
    random=_random_prefill,
    unread=("key_cache", "value_cache"),
)

RECIPES = {"paged_attention_decode": DECODE, "paged_attention_prefill": PREFILL}
