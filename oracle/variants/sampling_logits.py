"""Variants of what is done to logits: penalties, bias, and the mask of a grammar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.arithmetic import F, stored, wide
from oracle.variants.variant import control, mutant


@dataclass(frozen=True)
class Penalty:
    """How penalties are applied; the defaults are the definition's own way."""

    reciprocal: bool = False
    fused: bool = False
    together: bool = False
    presence_first: bool = False
    seen_only: bool = False
    always_divided: bool = False
    always_multiplied: bool = False
    prompt_missed: bool = False
    output_missed: bool = False
    prompt_counted: bool = False
    once: bool = False
    presence_per_time: bool = False
    before_repetition: bool = False
    exchanged: bool = False
    everywhere: bool = False
    stored_between: str = ""
    shared: bool = False


def penalised(given: tuple[Array, ...], style: Penalty) -> Array:
    """The logits in float32."""
    logits, prompt, output = wide(given[0]), given[1], given[2]
    strengths = tuple(wide(one)[:, np.newaxis] for one in given[3:])
    repetition, frequency, presence = strengths
    if style.shared and len(logits):
        repetition, frequency, presence = (np.broadcast_to(one[:1], one.shape) for one in strengths)
    if style.exchanged:
        frequency, presence = presence, frequency
    counted = prompt + output if style.prompt_counted else output
    seen = (0 if style.prompt_missed else prompt) + (0 if style.output_missed else output) > 0
    times = np.minimum(counted, 1) if style.once else counted
    present = counted.astype(F) if style.presence_per_time else (counted > 0).astype(F)
    factor = repetition if style.everywhere else np.where(seen, repetition, F(1))

    def repeated(x: Array) -> Any:
        divided = x * (1 / factor) if style.reciprocal else x / factor
        if style.always_divided:
            return divided
        return x * factor if style.always_multiplied else np.where(x > 0, divided, x * factor)

    def taken_off(x: Array) -> Any:
        often, now = frequency * times.astype(F), presence * present
        if style.fused:
            x = (x.astype(np.float64) - frequency.astype(np.float64) * times).astype(F)
            return x - now
        if style.together:
            return x - (often + now)
        return x - now - often if style.presence_first else x - often - now

    with np.errstate(all="ignore"):
        if style.before_repetition:
            out = repeated(taken_off(logits))
        else:
            first = repeated(logits)
            if style.stored_between:
                first = round_to(first, style.stored_between).astype(F)
            out = taken_off(first)
    if style.seen_only:  # the others are not touched at all
        return np.where(seen, stored(out, given[0]), given[0])
    return stored(out, given[0])


HONEST: dict[str, tuple[Penalty, str]] = {
    "quotient": (Penalty(), "A quotient, then frequency, then presence."),
    "reciprocal": (Penalty(reciprocal=True), "A product with 1 / r."),
    "fused": (Penalty(fused=True), "The product with the count is fused into the difference."),
    "together": (Penalty(together=True), "Frequency and presence are added up first."),
    "presence_first": (Penalty(presence_first=True), "Presence is taken off first."),
    "seen_only": (Penalty(seen_only=True, together=True, reciprocal=True), "Only what was seen is touched."),
}
WRONG: dict[str, tuple[Penalty, str]] = {
    "always_divided": (Penalty(always_divided=True), "Negative logits are divided, too, which raises them."),
    "always_multiplied": (Penalty(always_multiplied=True), "Positive logits are multiplied."),
    "prompt_missed": (Penalty(prompt_missed=True), "Repetition does not see the prompt."),
    "output_missed": (Penalty(output_missed=True), "Repetition does not see the output."),
    "prompt_counted": (Penalty(prompt_counted=True), "Frequency and presence count the prompt."),
    "once": (Penalty(once=True), "Frequency is taken off once."),
    "presence_per_time": (Penalty(presence_per_time=True), "Presence is taken off each time."),
    "before_repetition": (Penalty(before_repetition=True), "Repetition comes last."),
    "exchanged": (Penalty(exchanged=True), "Frequency and presence are exchanged."),
    "everywhere": (Penalty(everywhere=True), "Every token is penalised for repetition."),
    "shared": (Penalty(shared=True), "Every row has the first row's penalties."),
    "bfloat16_between": (Penalty(stored_between="bfloat16"), "Logits are rounded to bfloat16 in between."),
}


def _penalties(register: Any, name: str, style: Penalty, flaw: str) -> None:
    def apply_penalties(*given: Array) -> Array:
        return penalised(given, style)

    apply_penalties.__doc__ = flaw
    register("apply_penalties", name=name)(apply_penalties)


for _name, (_style, _flaw) in HONEST.items():
    _penalties(control, _name, _style, _flaw)
for _name, (_style, _flaw) in WRONG.items():
    _penalties(mutant, _name, _style, _flaw)


@mutant("apply_penalties", dtypes=("float32",), relation="entries_in_any_place")
def form_by_row(*given: Array) -> Array:
    """Rows in odd places are multiplied by reciprocals, with both penalties added up first."""
    out = penalised(given, Penalty())
    out[1::2] = penalised(given, replace(Penalty(), reciprocal=True, together=True))[1::2]
    return out


@mutant("apply_penalties", dtypes=("float32",), relation="tokens_in_any_order")
def form_by_token(*given: Array) -> Array:
    """Tokens in odd places are multiplied by reciprocals, with both penalties added up first."""
    out = penalised(given, Penalty())
    out[:, 1::2] = penalised(given, replace(Penalty(), reciprocal=True, together=True))[:, 1::2]
    return out


Bias = Callable[[Array, Array, Array, Array], Array]


def _sum(x: Array, bias: Array) -> Array:
    with np.errstate(all="ignore"):
        return stored(wide(x) + bias, x)


def at_once(logits: Array, rows: Array, tokens: Array, bias: Array) -> Array:
    """All entries at once."""
    out = logits.copy()
    out[rows, tokens] = _sum(logits[rows, tokens], bias)
    return out


def one_by_one(logits: Array, rows: Array, tokens: Array, bias: Array) -> Array:
    """One entry after the other."""
    out = logits.copy()
    for row, token, one in zip(rows, tokens, bias, strict=True):
        out[row, token : token + 1] = _sum(out[row, token : token + 1], one)
    return out


def backwards(logits: Array, rows: Array, tokens: Array, bias: Array) -> Array:
    """From the last entry to the first."""
    return one_by_one(logits, rows[::-1], tokens[::-1], bias[::-1])


def flat_places(logits: Array, rows: Array, tokens: Array, bias: Array) -> Array:
    """Places in one row of all logits."""
    out = np.array(logits).reshape(-1)
    place = rows.astype(np.int64) * logits.shape[1] + tokens
    out[place] = _sum(out[place], bias)
    return out.reshape(logits.shape)


def row_by_row(logits: Array, rows: Array, tokens: Array, bias: Array) -> Array:
    """The entries of each row together."""
    out = logits.copy()
    for row in np.unique(rows):
        here = rows == row
        out[row, tokens[here]] = _sum(logits[row, tokens[here]], bias[here])
    return out


def over_the_vocabulary(logits: Array, rows: Array, tokens: Array, bias: Array) -> Array:
    """A table of biases for all tokens; where there is none the logit stays."""
    table, there = np.zeros(logits.shape, F), np.zeros(logits.shape, np.bool_)
    table[rows, tokens], there[rows, tokens] = bias, True
    return np.where(there, _sum(logits, table), logits)


def taken_off(logits: Array, rows: Array, tokens: Array, bias: Array) -> Array:
    """The bias is subtracted."""
    return at_once(logits, rows, tokens, -bias)


def in_place_of(logits: Array, rows: Array, tokens: Array, bias: Array) -> Array:
    """The bias takes the logit's place."""
    out = logits.copy()
    out[rows, tokens] = stored(bias, logits)
    return out


def bias_in_short(logits: Array, rows: Array, tokens: Array, bias: Array) -> Array:
    """The bias is rounded to 16 bits before it is added."""
    short = round_to(bias.astype(np.float64), "bfloat16" if logits.dtype == np.float16 else "float16")
    return at_once(logits, rows, tokens, short.astype(F))


def last_left_out(logits: Array, rows: Array, tokens: Array, bias: Array) -> Array:
    """The last entry is left out."""
    return at_once(logits, rows[:-1], tokens[:-1], bias[:-1])


def first_row_only(logits: Array, rows: Array, tokens: Array, bias: Array) -> Array:
    """Every entry goes to the first row."""
    return at_once(logits, 0 * rows, tokens, bias)


def all_rows(logits: Array, rows: Array, tokens: Array, bias: Array) -> Array:
    """Every entry goes to all rows."""
    out = logits.copy()
    for row in range(len(logits)):
        out = at_once(out, np.full_like(rows, row), tokens, bias)
    return out


def next_token(logits: Array, rows: Array, tokens: Array, bias: Array) -> Array:
    """The token after the right one."""
    return at_once(logits, rows, (tokens + 1) % max(logits.shape[1], 1), bias)


def forbidden_as_lowest(logits: Array, rows: Array, tokens: Array, bias: Array) -> Array:
    """-inf counts as the lowest finite number."""
    return at_once(logits, rows, tokens, np.maximum(bias, F(-3e38)))


for _bias in (at_once, one_by_one, backwards, flat_places, row_by_row, over_the_vocabulary):
    control("apply_logit_bias")(_bias)
for _bias in (
    taken_off, in_place_of, bias_in_short, last_left_out, first_row_only, all_rows, next_token,
):  # fmt: skip
    mutant("apply_logit_bias")(_bias)
mutant("apply_logit_bias", dtypes=("bfloat16", "float32"))(forbidden_as_lowest)  # in float16 it is minus infinity


Bits = Callable[[Array, int], Any]
"""From words (masks, words) and the size of the vocabulary to what is allowed (masks, vocab)."""


def by_shifts(words: Array, vocab: int) -> Any:
    """A shift for each token."""
    token = np.arange(vocab)
    return (words[:, token // 32] >> (token % 32) & 1) == 1


def by_unpacking(words: Array, vocab: int) -> Any:
    """Bits of bytes, the lowest first."""
    octets = np.ascontiguousarray(words, "<i4").view(np.uint8)
    return np.unpackbits(octets.reshape(len(words), 4 * words.shape[1]), axis=1, bitorder="little")[:, :vocab] == 1


def by_tests(words: Array, vocab: int) -> Any:
    """A test of a single bit for each token."""
    token = np.arange(vocab)
    return (words.astype(np.uint32)[:, token // 32] & np.left_shift(np.uint32(1), (token % 32).astype(np.uint32))) != 0


def by_division(words: Array, vocab: int) -> Any:
    """Division by powers of two, as in languages without shifts."""
    token = np.arange(vocab)
    wide_words = words.astype(np.int64) % 2**32
    return wide_words[:, token // 32] // 2 ** (token % 32) % 2 == 1


def by_words(words: Array, vocab: int) -> Any:
    """One word after the other, shifted a bit at a time."""
    allowed = np.zeros((len(words), 32 * words.shape[1]), np.bool_)
    for at in range(words.shape[1]):
        left = words[:, at].astype(np.uint32)
        for bit in range(32):
            allowed[:, 32 * at + bit], left = left & 1 == 1, left >> np.uint32(1)
    return allowed[:, :vocab]


def by_halves(words: Array, vocab: int) -> Any:
    """16 tokens at once."""
    halves = np.ascontiguousarray(words, "<i4").view("<u2").reshape(len(words), 2 * words.shape[1])
    token = np.arange(vocab)
    return (halves[:, token // 16] >> (token % 16) & 1) == 1


def highest_first(words: Array, vocab: int) -> Any:
    """The highest bit of a word is its first token."""
    token = np.arange(vocab)
    return (words[:, token // 32] >> (31 - token % 32) & 1) == 1


def turned_over(words: Array, vocab: int) -> Any:
    """A bit of 1 forbids."""
    return ~by_shifts(words, vocab)


def sign_lost(words: Array, vocab: int) -> Any:
    """The highest bit of a word is lost."""
    return by_shifts(words & np.int32(2**31 - 1), vocab)


def word_by_token(words: Array, vocab: int) -> Any:
    """Words change every 31 tokens."""
    token = np.arange(vocab)
    word = np.minimum(token // 31, max(words.shape[1] - 1, 0))
    return (words[:, word] >> (token % 32) & 1) == 1


def last_word_missed(words: Array, vocab: int) -> Any:
    """The last word is taken to allow all."""
    allowed = by_shifts(words, vocab)
    allowed[:, max(vocab - 1, 0) // 32 * 32 :] = True
    return allowed


def _masked(register: Any, bits: Bits) -> None:
    def apply_token_bitmask(logits: Array, bitmask: Array, mask_of_row: Array) -> Array:
        allowed, masked = np.ones(logits.shape, np.bool_), mask_of_row >= 0
        allowed[masked] = bits(bitmask, logits.shape[1])[mask_of_row[masked]]
        return np.where(allowed, logits, logits.dtype.type(-np.inf))

    apply_token_bitmask.__doc__ = bits.__doc__
    register("apply_token_bitmask", name=bits.__name__)(apply_token_bitmask)


for _bits in (by_shifts, by_unpacking, by_tests, by_division, by_words, by_halves):
    _masked(control, _bits)
for _bits in (highest_first, turned_over, sign_lost, word_by_token, last_word_missed):
    _masked(mutant, _bits)


@mutant("apply_token_bitmask")
def lowest_number(logits: Array, bitmask: Array, mask_of_row: Array) -> Array:
    """What is forbidden becomes a large negative number."""
    allowed, masked = np.ones(logits.shape, np.bool_), mask_of_row >= 0
    allowed[masked] = by_shifts(bitmask, logits.shape[1])[mask_of_row[masked]]
    return np.where(allowed, logits, logits.dtype.type(-1e4))


@mutant("apply_token_bitmask")
def mask_in_order(logits: Array, bitmask: Array, mask_of_row: Array) -> Array:
    """Row i has mask i, as far as there are masks."""
    allowed = np.ones(logits.shape, np.bool_)
    count = min(len(logits), len(bitmask))
    allowed[:count] = by_shifts(bitmask, logits.shape[1])[:count]
    return np.where(allowed, logits, logits.dtype.type(-np.inf))


@mutant("apply_token_bitmask")
def no_mask_is_the_last(logits: Array, bitmask: Array, mask_of_row: Array) -> Array:
    """-1 counts from the end."""
    allowed = by_shifts(bitmask, logits.shape[1])[mask_of_row] if len(bitmask) else np.ones(logits.shape, np.bool_)
    return np.where(allowed, logits, logits.dtype.type(-np.inf))
