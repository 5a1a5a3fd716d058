"""Variants of attention over pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oracle.signature import Array
from oracle.variants.arithmetic import stored, wide
from oracle.variants.attention_flash import ADDED, RIGHT, SLIPS, STYLE, Slip, dense
from oracle.variants.attention_styles import HONEST, MISTAKEN, Style
from oracle.variants.variant import control, mutant

Tokens = Callable[[Array, int, int], tuple[Array, Array]]
"""(row of the page table, length, page size) -> page and place of each token."""


def tokens_of(row: Array, length: int, page_size: int) -> tuple[Array, Array]:
    """Where a sequence's tokens lie."""
    token = np.arange(length)
    return row[token // page_size], token % page_size


def gathered(cache: Array, layout: str, what: str, pages: Array, places: Array) -> Array:
    """Rows (tokens, kv_heads, size) of a cache; pages that do not exist are read as page 0, as a clamp does."""
    pages = np.where((pages < 0) | (pages >= len(cache)), 0, pages)
    if layout == "plain":
        return cache[pages, places]
    if layout == "heads_first":
        return cache[pages, :, places]
    if what == "key_cache":
        rows = cache[pages, :, :, places]
        return rows.reshape(*rows.shape[:2], rows.shape[2] * rows.shape[3])
    if layout == "vllm":
        return cache[pages, :, :, places]
    pack = cache.shape[-1]
    return cache[pages, :, places // pack, :, places % pack]


def _page_size(cache: Array, layout: str) -> int:
    return int(cache.shape[{"plain": 1, "heads_first": 2}.get(layout, 3)])


def _v_dim(cache: Array, layout: str) -> int:
    return int(cache.shape[{"vllm": 2}.get(layout, 3)])


def _rows(x: Array) -> Array:
    return np.swapaxes(x, 0, 1)[np.newaxis]


def paged(
    q: Array,
    keys: Array,
    values: Array,
    edges: Array,
    table: Array,
    lengths: Array,
    params: dict[str, Any],
    style: Style | Callable[[Array], Style] = STYLE,
    slip: Slip = RIGHT,
    tokens: Tokens = tokens_of,
    rows_of: Callable[[Array, str, Array, Array], Array] | None = None,
    **added: Any,
) -> tuple[Array, Array]:
    """Attention of packed queries over pages: (tokens, heads, v_dim) and (heads, tokens) in the compute type."""
    layout = params["layout"]
    size = _page_size(keys, layout)
    out = np.zeros((*q.shape[:2], _v_dim(values, layout)), wide(q).dtype)
    lse = np.full((q.shape[1], len(q)), -np.inf, out.dtype)
    for sequence, length in enumerate(lengths):
        queries = slice(int(edges[sequence]), int(edges[sequence + 1]))
        cells = tokens(table[sequence], int(length), size)
        if not len(keys):
            cells = cells[0][:0], cells[1][:0]
        k = gathered(keys, layout, "key_cache", *cells)
        v = gathered(values, layout, "value_cache", *cells)
        if rows_of is not None:
            k, v = rows_of(k, "key_cache", *cells), rows_of(v, "value_cache", *cells)
        chosen = style if isinstance(style, Style) else style(table[sequence])
        mean, log_sum = dense(_rows(q[queries]), _rows(k), _rows(v), params, chosen, slip, **added)
        out[queries], lse[:, queries] = np.swapaxes(mean[0], 0, 1), log_sum[0]
    return out, lse


def _decode(name: str, doc: str, register: Any, facts: Any = None, **options: Any) -> None:
    def variant(
        q: Any, keys: Any, values: Any, table: Any, lengths: Any, slopes: Any, sinks: Any, **params: Any
    ) -> Any:
        edges = np.arange(len(q) + 1)
        out, lse = paged(
            q, keys, values, edges, table, lengths, params, alibi_slopes=slopes, sinks=sinks, **options
        )  # fmt: skip
        return stored(out, q), np.ascontiguousarray(lse.T)

    variant.__doc__ = doc
    register("paged_attention_decode", name=name, **facts or {})(variant)


def _prefill(name: str, doc: str, register: Any, facts: Any = None, **options: Any) -> None:
    def variant(
        q: Any, keys: Any, values: Any, edges: Any, table: Any, lengths: Any, slopes: Any, sinks: Any, **params: Any
    ) -> Any:
        out, lse = paged(
            q, keys, values, edges, table, lengths, params, alibi_slopes=slopes, sinks=sinks, **options
        )  # fmt: skip
        return stored(out, q), lse

    variant.__doc__ = doc
    register("paged_attention_prefill", name=name, **facts or {})(variant)


def _one_short(row: Array, length: int, page_size: int) -> tuple[Array, Array]:
    return tokens_of(row, max(length - 1, min(length, 1)), page_size)


def _whole_pages(row: Array, length: int, page_size: int) -> tuple[Array, Array]:
    return tokens_of(row, -(-length // page_size) * page_size, page_size)


def _narrow_page(row: Array, length: int, page_size: int) -> tuple[Array, Array]:
    pages, places = tokens_of(row, length, page_size)
    return pages & 0xFFFF, places


def _logical_pages(row: Array, length: int, page_size: int) -> tuple[Array, Array]:
    token = np.arange(length)
    return token // page_size, token % page_size


def _first_page_again(row: Array, length: int, page_size: int) -> tuple[Array, Array]:
    pages, places = tokens_of(row, length, page_size)
    return np.where(np.arange(length) // page_size == 1, row[:1].repeat(length), pages), places


def _next_page_early(row: Array, length: int, page_size: int) -> tuple[Array, Array]:
    token = np.arange(length)
    pages = row[np.minimum((token + 1) // page_size, len(row) - 1)]
    return np.where(token == length - 1, row[token // page_size], pages), token % page_size


WALKS: dict[str, tuple[Tokens, str]] = {
    "last_token_missed": (_one_short, "The last token is left out."),
    "whole_last_page": (_whole_pages, "All cells of the last page are read."),
    "page_in_16_bits": (_narrow_page, "The page's number is cut to 16 bits."),
    "logical_pages": (_logical_pages, "The page table is not looked up."),
    "first_page_again": (_first_page_again, "The second page is read from where the first one is."),
    "next_page_early": (_next_page_early, "The last cell of a page is taken from the next page."),
}
"""Wrong ways from a token to its cell."""


def _by_page(row: Array) -> Style:
    return Style(tile=4) if len(row) and row[0] % 2 else STYLE


CONTROLS: dict[str, tuple[str, dict[str, Any]]] = {
    name: (doc, {"style": style}) for name, (style, doc) in HONEST.items()
}
MUTANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (doc, {"style": style}) for name, (style, doc) in MISTAKEN.items()},
    **{name: (doc, {"tokens": walk}) for name, (walk, doc) in WALKS.items()},
    **{
        name: (SLIPS[name][1], {"slip": SLIPS[name][0]})
        for name in ("window_one_wider", "window_ignored", "softcap_ignored", "heads_by_remainder")
    },
}


for _name, (_doc, _options) in CONTROLS.items():
    _decode(_name, _doc, control, **_options)
    _prefill(_name, _doc, control, **_options)
for _name, (_doc, _options) in MUTANTS.items():
    _decode(_name, _doc, mutant, **_options)
    _prefill(_name, _doc, mutant, **_options)
for _register in (_decode, _prefill):
    _register(
        "order_by_page", "How the keys are tiled depends on the number of the first page.", mutant,
        {"relation": "pages_may_be_moved"}, style=_by_page,
    )  # fmt: skip
_decode("alibi_of_key_head", "A head takes the slope of its key head.", mutant, slip=Slip(alibi_heads="kv"))
for _name in ("sink_not_in_lse", "sink_in_lse"):
    _decode(_name, ADDED[_name][1], mutant, slip=ADDED[_name][0])
for _name in ("sink_not_in_lse", "sink_in_lse", "alibi_by_distance", "alibi_by_last_key", "alibi_of_key_head"):
    _prefill(_name, ADDED[_name][1], mutant, slip=ADDED[_name][0])
_prefill("diagonal_one_further", SLIPS["diagonal_one_further"][1], mutant, slip=Slip(diagonal=1))
_prefill("top_left", "Mask and window are aligned at the first query.", mutant, slip=Slip(top_left=True))
