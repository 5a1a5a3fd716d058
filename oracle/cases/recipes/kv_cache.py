"""Cases of the paged cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows
from oracle.formats import Format
from oracle.signature import Array

CLASSES = ("normal", "full_significand", "sparse_integers", "subnormals", "heavy_tail", "not_a_number", "infinities")
Indices = Callable[[np.random.Generator, Mapping[str, Shape], str], dict[str, Array]]


def _kind(rng: np.random.Generator, index: Array) -> Array:
    return index.astype(np.int32 if rng.random() < 0.5 else np.int64)


def _distinct(rng: np.random.Generator, count: int, below: int, skipped: float) -> Array:
    """Different numbers, the last and the first among them, some -1; more than there are become -1."""
    order = rng.permutation(below)
    order = np.concatenate([[below - 1, 0][: min(below, 2)], order[(order != below - 1) & (order != 0)]])
    slots = np.full(count, -1)
    kept = min(count, below)
    slots[:kept] = order[:kept]
    slots[2:] = np.where(rng.random(slots[2:].shape) < skipped, -1, slots[2:])
    return rng.permutation(slots)


def slots_of(rng: np.random.Generator, shapes: Mapping[str, Shape], name: str) -> dict[str, Array]:
    if "key_cache" in shapes and len(shapes["key_cache"]) == 5:
        cells = shapes["key_cache"][0] * shapes["key_cache"][3]
    else:
        cells = int(
            np.prod(next(shapes[label] for label in ("key_cache", "cache", "code_cache") if label in shapes)[:2])
        )
    slots = _distinct(rng, shapes["slots"][0], cells, 0.25)
    return {"slots": _kind(rng, np.full_like(slots, -1) if name == "all_skipped" else slots)}


def _tables(rng: np.random.Generator, shapes: Mapping[str, Shape], name: str) -> dict[str, Array]:
    sequences, most = shapes["block_table"]
    blocks, size = shapes["cache"][:2]
    lengths = np.zeros(sequences, np.int64)
    left = max(shapes["out"][0] - 1, 0)
    for at in range(sequences):
        lengths[at] = 0 if name == "all_skipped" else rng.integers(0, min(left, most * size) + 1)
        left -= lengths[at]
    table = rng.integers(0, max(blocks, 1), (sequences, most))
    return {"block_table": _kind(rng, table), "lengths": _kind(rng, lengths)}


def _pairs(rng: np.random.Generator, shapes: Mapping[str, Shape], name: str) -> dict[str, Array]:
    copies, blocks = shapes["pairs"][0], shapes["key_cache"][0]
    order = rng.permutation(blocks)
    targets, sources = order[:copies], order[copies:]
    return {"pairs": _kind(rng, np.stack([rng.choice(sources, copies) if copies else targets, targets], axis=1))}


def _moves(rng: np.random.Generator, shapes: Mapping[str, Shape], name: str) -> dict[str, Array]:
    copies = shapes["to_blocks"][0]
    sources = rng.integers(0, max(shapes["source"][0], 1), copies)
    targets = _distinct(rng, copies, shapes["target"][0], 0.0) if copies else sources
    return {"from_blocks": _kind(rng, sources), "to_blocks": _kind(rng, targets)}


CACHES = ("key_cache", "value_cache", "cache", "out", "target")


def _draw(name: str, indices: Indices, floats: tuple[str, ...], spoiled: tuple[str, ...]) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        drawn: dict[str, Array] = {}
        for label in floats:
            rows = name if name in (*CLASSES, "mixed") else "normal"
            drawn[label] = draw_rows(rows, rng, shapes[label], number_format, CLASSES)
            if name == "numbered":
                numbers = np.arange(drawn[label].size).reshape(shapes[label]) % 251
                drawn[label] = numbers + (0.5 if label in CACHES else 0.0)
            if name == "nan_before" and label in spoiled:
                drawn[label] = np.full(shapes[label], np.nan)
        return {**drawn, **indices(rng, shapes, name)}

    return draw


def _classes(indices: Indices, floats: tuple[str, ...], spoiled: tuple[str, ...]) -> dict[str, Draw]:
    """``numbered``: every element another number; ``nan_before``: NaN where something may be written."""
    names = (*CLASSES, "mixed", "numbered", "nan_before", "all_skipped")
    return {name: _draw(name, indices, floats, spoiled) for name in names}


Dims = Callable[..., dict[str, int]]


def _curated(dims: Dims, sizes: tuple[tuple[int, ...], ...]) -> tuple[Structure, ...]:
    """Each class on a size and a layout of its own; sizes in turn."""
    classes = (
        "normal", "numbered", "nan_before", "full_significand", "all_skipped", "not_a_number", "infinities",
        "sparse_integers", "subnormals", "heavy_tail", "mixed",
    )  # fmt: skip
    layouts = ("contiguous", "padded", "strided", "transposed", "misaligned")
    count = max(len(sizes), 22)
    return tuple(
        Structure(dims(*sizes[at % len(sizes)]), classes[at % len(classes)], layouts[at * 3 % 5]) for at in range(count)
    )


SIZES = (
    # tokens, blocks, block size, heads, size of a head
    (7, 5, 4, 3, 8), (1, 1, 1, 1, 1), (17, 3, 16, 2, 16), (5, 9, 2, 1, 33), (31, 2, 32, 4, 4), (13, 7, 5, 2, 24),
    (3, 300, 1, 1, 8), (2, 4, 3, 8, 64), (0, 3, 4, 2, 8), (64, 8, 16, 1, 12), (9, 4, 8, 5, 7), (33, 17, 3, 2, 16),
)  # fmt: skip


def flash_dims(tokens: int, blocks: int, size: int, heads: int, head: int) -> dict[str, int]:
    return {"tokens": tokens, "blocks": blocks, "block_size": size, "heads": heads, "head_dim": head, "v_dim": head + 1}


def _reading(tokens: int, blocks: int, size: int, heads: int, head: int) -> dict[str, int]:
    x = next(x for x in (8, 4, 2, 1) if head % x == 0 and x <= max(head // 2, 1))
    return {**flash_dims(tokens, blocks, size, heads, head), "groups": head // x, "x": x}


def _asm(tokens: int, blocks: int, size: int, heads: int, head: int) -> dict[str, int]:
    dims = _reading(tokens, blocks, size, heads, head)
    size = -(-size // dims["x"]) * dims["x"]
    return {**dims, "block_size": size, "offset_groups": size // dims["x"]}


def mla_dims(tokens: int, blocks: int, size: int, heads: int, head: int) -> dict[str, int]:
    return {
        "tokens": tokens, "blocks": blocks, "block_size": size, "latent": heads * head, "rope": head,
        "entry": heads * head + head,
    }  # fmt: skip


def _gathering(tokens: int, blocks: int, size: int, heads: int, head: int) -> dict[str, int]:
    return {
        "blocks": blocks, "block_size": size, "entry": head, "sequences": heads, "most": min(blocks, 4) + 1,
        "tokens": tokens,
    }  # fmt: skip


def _copying(tokens: int, blocks: int, size: int, heads: int, head: int) -> dict[str, int]:
    copies = min(tokens, blocks // 2)
    return {"blocks": blocks, "cells": size * head, "v_cells": size * head + 1, "copies": copies, "two": 2}


def _swapping(tokens: int, blocks: int, size: int, heads: int, head: int) -> dict[str, int]:
    copies = min(tokens, blocks + 2)
    return {"source_blocks": blocks, "target_blocks": blocks + 2, "cells": size * head, "copies": copies}


def _recipe(dims: Dims, indices: Indices, floats: tuple[str, ...], spoiled: tuple[str, ...]) -> Recipe:
    def random(rng: np.random.Generator) -> Structure:
        tokens, blocks = int(rng.integers(0, 40)), int(rng.integers(1, 12))
        size, heads = int(pick(rng, (1, 2, 3, 4, 8, 16))), int(pick(rng, (1, 2, 3, 5)))
        return Structure(dims(tokens, blocks, size, heads, int(pick(rng, (1, 2, 4, 8, 12, 16, 24)))))

    return Recipe(_classes(indices, floats, spoiled), _curated(dims, SIZES), random)


TOKENS = ("key", "value", "key_cache", "value_cache")
RECIPES = {
    "reshape_and_cache_flash": _recipe(flash_dims, slots_of, TOKENS, TOKENS[2:]),
    "reshape_and_cache": _recipe(_reading, slots_of, TOKENS, TOKENS[2:]),
    "reshape_and_cache_asm": _recipe(_asm, slots_of, TOKENS, TOKENS[2:]),
    "concat_and_cache_mla": _recipe(mla_dims, slots_of, ("latents", "rotated", "cache"), ("cache",)),
    "gather_cache": _recipe(_gathering, _tables, ("cache", "out"), ("out",)),
    "copy_blocks": _recipe(_copying, _pairs, TOKENS[2:], ()),
    "swap_blocks": _recipe(_swapping, _moves, ("source", "target"), ("target",)),
}
