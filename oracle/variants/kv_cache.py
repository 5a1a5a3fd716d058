"""Variants of the paged cache: copies in many orders, and copies that go astray."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.variant import control, mutant

# A writer puts new tokens (tokens, …) into a view (blocks, cells of a block, …) of a cache, in place.
Writer = Callable[[Array, Array, Array], None]


def _token_by_token(cells: Array, new: Array, slots: Array) -> None:
    for token, slot in enumerate(slots):
        if slot >= 0:
            cells[slot // cells.shape[1], slot % cells.shape[1]] = new[token]


def _backwards(cells: Array, new: Array, slots: Array) -> None:
    for token in reversed(range(len(slots))):
        if slots[token] >= 0:
            cells[divmod(int(slots[token]), cells.shape[1])] = new[token]


def _all_at_once(cells: Array, new: Array, slots: Array) -> None:
    kept = slots >= 0
    cells[slots[kept] // cells.shape[1], slots[kept] % cells.shape[1]] = new[kept]


def _in_order_of_slots(cells: Array, new: Array, slots: Array) -> None:
    order = np.argsort(slots, kind="stable")
    _all_at_once(cells, new[order], slots[order])


def _two_halves(cells: Array, new: Array, slots: Array) -> None:
    middle = len(slots) // 2
    _all_at_once(cells, new[middle:], slots[middle:])
    _all_at_once(cells, new[:middle], slots[:middle])


def _block_by_block(cells: Array, new: Array, slots: Array) -> None:
    for block in range(len(cells)):
        for offset in range(cells.shape[1]):
            for token in np.flatnonzero(slots == block * cells.shape[1] + offset):
                cells[block, offset] = new[token]


def _element_groups(cells: Array, new: Array, slots: Array) -> None:
    """Elements of a token in groups along the last axis, as vector loads take them."""
    for start in range(0, new.shape[-1], 4):
        part = slice(start, start + 4)
        _all_at_once(cells[..., part], new[..., part], slots)


WRITERS: tuple[tuple[str, str, Writer], ...] = (
    ("token_by_token", "One token after another.", _token_by_token),
    ("backwards", "The last token first.", _backwards),
    ("all_at_once", "All tokens in one assignment.", _all_at_once),
    ("in_order_of_slots", "Tokens in the order of their slots.", _in_order_of_slots),
    ("two_halves", "The second half of the tokens first.", _two_halves),
    ("block_by_block", "Each block looks for its tokens.", _block_by_block),
    ("element_groups", "Four elements at a time.", _element_groups),
)


def _skipped_written(cells: Array, new: Array, slots: Array) -> None:
    _all_at_once(cells, new, slots)
    _all_at_once(cells, new[slots < 0], np.full(int((slots < 0).sum()), len(cells) * cells.shape[1] - 1))


def _skipped_to_first(cells: Array, new: Array, slots: Array) -> None:
    _all_at_once(cells, new, slots)
    _all_at_once(cells, new[slots < 0], np.zeros(int((slots < 0).sum()), np.int64))


def _one_slot_on(cells: Array, new: Array, slots: Array) -> None:
    _all_at_once(cells, new, np.where(slots < 0, slots, (slots + 1) % (len(cells) * cells.shape[1])))


def _parts_exchanged(cells: Array, new: Array, slots: Array) -> None:
    kept = slots >= 0
    block, offset = slots[kept] % len(cells), slots[kept] // len(cells)
    cells[block, offset] = new[kept]


def _last_token_missed(cells: Array, new: Array, slots: Array) -> None:
    _all_at_once(cells, new[:-1], slots[:-1])


def _token_of_next(cells: Array, new: Array, slots: Array) -> None:
    _all_at_once(cells, np.roll(new, 1, axis=0), slots)


def _last_element_missed(cells: Array, new: Array, slots: Array) -> None:
    _all_at_once(cells[..., :-1], new[..., :-1], slots)


def _elements_reversed(cells: Array, new: Array, slots: Array) -> None:
    _all_at_once(cells, new[..., ::-1], slots)


def _cleared_first(cells: Array, new: Array, slots: Array) -> None:
    for block in np.unique(slots[slots >= 0] // cells.shape[1]):
        cells[block] = 0
    _all_at_once(cells, new, slots)


def _others_repaired(cells: Array, new: Array, slots: Array) -> None:
    cells[...] = np.where(np.isnan(cells), np.zeros((), cells.dtype), cells)
    _all_at_once(cells, new, slots)


def _in_eight_bits(cells: Array, new: Array, slots: Array) -> None:
    rounded = round_to(new.astype(np.float64), "float8_e5m2").astype(new.dtype)
    _all_at_once(cells, rounded, slots)


def _short_block_number(cells: Array, new: Array, slots: Array) -> None:
    short = (slots // cells.shape[1] & 255) * cells.shape[1] + slots % cells.shape[1]
    _all_at_once(cells, new, np.where(slots < 0, slots, short))


STRAY: tuple[tuple[str, str, Writer], ...] = (
    ("skipped_written", "A token that is skipped goes to the last cell.", _skipped_written),
    ("skipped_to_first", "A token that is skipped goes to the first cell.", _skipped_to_first),
    ("one_slot_on", "Each token goes to the cell after its own.", _one_slot_on),
    ("parts_exchanged", "Block and offset are taken from each other's place.", _parts_exchanged),
    ("last_token_missed", "The last token is not written.", _last_token_missed),
    ("token_of_next", "Each cell gets the token before.", _token_of_next),
    ("last_element_missed", "The last element of each token is not written.", _last_element_missed),
    ("elements_reversed", "The elements of a token are written backwards.", _elements_reversed),
    ("cleared_first", "A block that is written to is cleared first.", _cleared_first),
    ("others_repaired", "NaNs in other cells become 0.", _others_repaired),
    ("in_eight_bits", "Tokens go through an 8-bit float.", _in_eight_bits),
    ("short_block_number", "The number of a block is kept in eight bits.", _short_block_number),
)


def _flash(key: Array, value: Array, key_cache: Array, value_cache: Array, slots: Array, write: Writer) -> Any:
    new_key, new_value = key_cache.copy(), value_cache.copy()
    write(new_key, key, slots)
    write(new_value, value, slots)
    return new_key, new_value


def _reading(key: Array, value: Array, key_cache: Array, value_cache: Array, slots: Array, write: Writer) -> Any:
    new_key, new_value = key_cache.copy(), value_cache.copy()
    _, heads, groups, _, x = key_cache.shape
    write(new_key.transpose(0, 3, 1, 2, 4), key.reshape(len(key), heads, groups, x), slots)
    write(new_value.transpose(0, 3, 1, 2), value, slots)
    return new_key, new_value


def _asm(key: Array, value: Array, key_cache: Array, value_cache: Array, slots: Array, write: Writer) -> Any:
    new_key = key_cache.copy()
    _, heads, groups, size, x = key_cache.shape
    write(new_key.transpose(0, 3, 1, 2, 4), key.reshape(len(key), heads, groups, x), slots)
    blocks, _, parts, v_dim, _ = value_cache.shape
    cells = value_cache.transpose(0, 2, 4, 1, 3).reshape(blocks, size, heads, v_dim).copy()
    write(cells, value, slots)
    return new_key, cells.reshape(blocks, parts, x, heads, v_dim).transpose(0, 3, 1, 4, 2)


def _mla(latents: Array, rotated: Array, cache: Array, slots: Array, write: Writer) -> Any:
    new = cache.copy()
    write(new, np.concatenate([latents, rotated], axis=-1), slots)
    return new


def _register(operator: str, apply: Callable[..., Any]) -> None:
    def add(kind: Callable[..., Any], name: str, flaw: str, write: Writer) -> None:
        def variant(*arrays: Array) -> Any:
            return apply(*arrays, write)

        variant.__doc__ = flaw
        kind(operator, name=name)(variant)

    for name, flaw, write in WRITERS:
        add(control, name, flaw, write)
    for name, flaw, write in STRAY:
        add(mutant, name, flaw, write)


for _operator, _apply in (
    ("reshape_and_cache_flash", _flash),
    ("reshape_and_cache", _reading),
    ("reshape_and_cache_asm", _asm),
    ("concat_and_cache_mla", _mla),
):
    _register(_operator, _apply)


@mutant("reshape_and_cache_asm")
def plain_values(key: Array, value: Array, key_cache: Array, value_cache: Array, slots: Array) -> Any:
    """Values are laid out as without the asm layout."""
    new_key, new_value = _asm(key, value, key_cache, value_cache, slots, _all_at_once)
    blocks, heads, parts, v_dim, x = value_cache.shape
    return new_key, new_value.swapaxes(2, 3).reshape(blocks, heads, v_dim, parts * x).reshape(value_cache.shape)


@mutant("concat_and_cache_mla")
def rotated_first(latents: Array, rotated: Array, cache: Array, slots: Array) -> Any:
    """The rotated part comes first."""
    return _mla(rotated, latents, cache, slots, _all_at_once)


# Gathering and copying blocks.


def _gathered(
    cache: Array, table: Array, lengths: Array, out: Array, entry: Callable[[int, int], tuple[int, int]]
) -> Array:
    """Token by token; `entry` says which block and offset the i-th token of a sequence has."""
    new, row = out.copy(), 0
    for sequence, length in enumerate(lengths):
        for place in range(length):
            block, offset = entry(sequence, place)
            new[row] = cache[block, offset]
            row += 1
    return new


@control("gather_cache")
def gather_token_by_token(cache: Array, table: Array, lengths: Array, out: Array) -> Array:
    """One token after another."""
    size = cache.shape[1]
    return _gathered(cache, table, lengths, out, lambda s, i: (table[s, i // size], i % size))


@control("gather_cache")
def gather_block_by_block(cache: Array, table: Array, lengths: Array, out: Array) -> Array:
    """Whole blocks, and the rest of the last."""
    new, row, size = out.copy(), 0, cache.shape[1]
    for sequence, length in enumerate(lengths):
        for start in range(0, int(length), max(size, 1)):
            count = min(size, int(length) - start)
            new[row : row + count] = cache[table[sequence, start // size], :count]
            row += count
    return new


@control("gather_cache")
def gather_whole_rows(cache: Array, table: Array, lengths: Array, out: Array) -> Array:
    """All blocks of a sequence side by side, then cut."""
    parts = [cache[table[s]].reshape(-1, cache.shape[2])[:length] for s, length in enumerate(lengths)]
    return np.concatenate([*parts, out[int(lengths.sum()) :]])


@control("gather_cache")
def gather_from_behind(cache: Array, table: Array, lengths: Array, out: Array) -> Array:
    """The last sequence first."""
    new, end, size = out.copy(), int(lengths.sum()), cache.shape[1]
    for sequence in reversed(range(len(lengths))):
        for place in reversed(range(int(lengths[sequence]))):
            end -= 1
            new[end] = cache[table[sequence, place // size], place % size]
    return new


@control("gather_cache")
def gather_by_column(cache: Array, table: Array, lengths: Array, out: Array) -> Array:
    """One element of all tokens after another."""
    new = out.copy()
    for column in range(out.shape[1]):
        part = slice(column, column + 1)
        new[:, part] = gather_whole_rows(cache[..., part], table, lengths, out[:, part])
    return new


@control("gather_cache")
def gather_by_search(cache: Array, table: Array, lengths: Array, out: Array) -> Array:
    """Each row of the result looks for its sequence in the running sums of lengths."""
    ends, new, size = np.cumsum(lengths), out.copy(), cache.shape[1]
    for row in range(int(lengths.sum())):
        sequence = int(np.searchsorted(ends, row, side="right"))
        place = row - int(ends[sequence] - lengths[sequence])
        new[row] = cache[table[sequence, place // size], place % size]
    return new


@mutant("gather_cache")
def gather_table_ignored(cache: Array, table: Array, lengths: Array, out: Array) -> Array:
    """Blocks are taken in order."""
    size = cache.shape[1]
    return _gathered(cache, table, lengths, out, lambda s, i: (i // size % len(cache), i % size))


@mutant("gather_cache")
def gather_first_table(cache: Array, table: Array, lengths: Array, out: Array) -> Array:
    """Every sequence has the table of the first."""
    size = cache.shape[1]
    return _gathered(cache, table, lengths, out, lambda s, i: (table[0, i // size], i % size))


@mutant("gather_cache")
def gather_one_on(cache: Array, table: Array, lengths: Array, out: Array) -> Array:
    """Offsets in a block begin at 1."""
    size = cache.shape[1]
    return _gathered(cache, table, lengths, out, lambda s, i: (table[s, i // size], (i + 1) % size))


@mutant("gather_cache")
def gather_running_offset(cache: Array, table: Array, lengths: Array, out: Array) -> Array:
    """Offsets run on from sequence to sequence."""
    size, starts = cache.shape[1], np.cumsum(lengths) - lengths
    return _gathered(cache, table, lengths, out, lambda s, i: (table[s, i // size], (i + int(starts[s])) % size))


@mutant("gather_cache")
def gather_rest_cleared(cache: Array, table: Array, lengths: Array, out: Array) -> Array:
    """Rows past the last token are cleared."""
    new: Array = gather_whole_rows(cache, table, lengths, out)
    new[int(lengths.sum()) :] = 0
    return new


@mutant("gather_cache")
def gather_last_missed(cache: Array, table: Array, lengths: Array, out: Array) -> Array:
    """The last token of each sequence is not read."""
    new: Array = gather_whole_rows(cache, table, lengths, out)
    last = (np.cumsum(lengths) - 1)[lengths > 0]
    new[last] = out[last]
    return new


@mutant("gather_cache")
def gather_whole_blocks(cache: Array, table: Array, lengths: Array, out: Array) -> Array:
    """Sequences begin at whole blocks of the result."""
    new, row, size = out.copy(), 0, cache.shape[1]
    for sequence, length in enumerate(lengths):
        for place in range(int(length)):
            if row + place < len(new):
                new[row + place] = cache[table[sequence, place // size], place % size]
        row += -(-int(length) // size) * size
    return new


Move = Callable[[Array, Array, Array, Array], Array]


def _moved(source: Array, target: Array, read: Array, to: Array) -> Array:
    new = target.copy()
    for one, other in zip(read, to, strict=True):
        new[other] = source[one]
    return new


def _at_once(source: Array, target: Array, read: Array, to: Array) -> Array:
    new = target.copy()
    new[to] = source[read]
    return new


def _gathering(source: Array, target: Array, read: Array, to: Array) -> Array:
    row = np.arange(len(target))
    row[to] = len(target) + read
    return np.concatenate([target, source])[row]


def _from_behind(source: Array, target: Array, read: Array, to: Array) -> Array:
    return _moved(source, target, read[::-1], to[::-1])


def _in_chunks(source: Array, target: Array, read: Array, to: Array) -> Array:
    new = target.copy()
    for start in range(0, target.shape[1], 16):
        new[to, start : start + 16] = source[read, start : start + 16]
    return new


def _by_column(source: Array, target: Array, read: Array, to: Array) -> Array:
    new = target.T.copy()
    new[:, to] = source.T[:, read]
    return new.T


def _backwards_pairs(source: Array, target: Array, read: Array, to: Array) -> Array:
    return _at_once(source, target, to % len(source), read % len(target)) if len(to) else target.copy()


def _one_block_on(source: Array, target: Array, read: Array, to: Array) -> Array:
    return _at_once(source, target, read, (to + 1) % max(len(target), 1))


def _first_pair_for_all(source: Array, target: Array, read: Array, to: Array) -> Array:
    return _at_once(source, target, np.full_like(read, read[0]) if len(read) else read, to)


def _last_pair_missed(source: Array, target: Array, read: Array, to: Array) -> Array:
    return _at_once(source, target, read[:-1], to[:-1])


def _last_cell_missed(source: Array, target: Array, read: Array, to: Array) -> Array:
    new = _at_once(source, target, read, to)
    new[:, -1:] = target[:, -1:]
    return new


def _vectors_only(source: Array, target: Array, read: Array, to: Array) -> Array:
    new = _at_once(source, target, read, to)
    whole = target.shape[1] // 4 * 4
    new[:, whole:] = target[:, whole:]
    return new


def _short_numbers(source: Array, target: Array, read: Array, to: Array) -> Array:
    return _at_once(source, target, read & 127, to)


def _added(source: Array, target: Array, read: Array, to: Array) -> Array:
    new = target.copy()
    new[to] = new[to] + source[read]
    return new


MOVES: tuple[tuple[str, str, Move], ...] = (
    ("pair_by_pair", "One pair after another.", _moved),
    ("at_once", "All pairs in one assignment.", _at_once),
    ("gathered", "Each block of the result looks for its source.", _gathering),
    ("from_behind", "The last pair first.", _from_behind),
    ("in_chunks", "Sixteen cells of all pairs at a time.", _in_chunks),
    ("by_column", "Cell by cell of all blocks.", _by_column),
)
ASTRAY: tuple[tuple[str, str, Move], ...] = (
    ("backwards_pairs", "Sources and targets are exchanged.", _backwards_pairs),
    ("one_block_on", "Each block goes one too far.", _one_block_on),
    ("first_pair_for_all", "All blocks come from the first pair's source.", _first_pair_for_all),
    ("last_pair_missed", "The last pair is left out.", _last_pair_missed),
    ("last_cell_missed", "The last cell of a block is not copied.", _last_cell_missed),
    ("vectors_only", "Cells that do not fill a vector of 4 are not copied.", _vectors_only),
    ("short_numbers", "The number of a source is kept in seven bits.", _short_numbers),
    ("added", "Blocks are added to what was there.", _added),
)


def _blocks(kind: Callable[..., Any], name: str, flaw: str, move: Move) -> None:
    def copy_blocks(key_cache: Array, value_cache: Array, pairs: Array) -> tuple[Array, Array]:
        read, to = pairs[:, 0], pairs[:, 1]
        return move(key_cache, key_cache, read, to), move(value_cache, value_cache, read, to)

    def swap_blocks(source: Array, target: Array, from_blocks: Array, to_blocks: Array) -> Array:
        return move(source, target, from_blocks, to_blocks)

    for operator, function in (("copy_blocks", copy_blocks), ("swap_blocks", swap_blocks)):
        function.__doc__ = flaw
        kind(operator, name=name)(function)


for _name, _flaw, _move in MOVES:
    _blocks(control, _name, _flaw, _move)
for _name, _flaw, _move in ASTRAY:
    _blocks(mutant, _name, _flaw, _move)
