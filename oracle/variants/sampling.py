"""Variants of sampling: temperature, the greedy choice, filtered draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.arithmetic import ORDERS, Sum, exp, exp_by_exp2, exp_promised, pairwise, quotient, sequential, wide
from oracle.variants.variant import control, mutant

# Running sums over the last axis. Each is one order that a kernel may take.


def scan_forwards(x: Array) -> Any:
    """One element after the other."""
    return np.cumsum(x, axis=-1, dtype=x.dtype)


def scan_doubling(x: Array) -> Array:
    """Steps of 1, 2, 4, …: a scan within a warp or a block."""
    total, step = x.copy(), 1
    while step < x.shape[-1]:
        total[..., step:] = total[..., step:] + total[..., :-step]
        step *= 2
    return total


def scan_in_blocks(size: int) -> Callable[[Array], Array]:
    """Blocks on their own, then the sum of those before is added."""

    def scan(x: Array) -> Array:
        total, before = x.copy(), np.zeros((*x.shape[:-1], 1), x.dtype)
        for start in range(0, x.shape[-1], size):
            piece = scan_doubling(x[..., start : start + size])
            total[..., start : start + size] = piece + before
            before = before + piece[..., -1:]
        return total

    return scan


@dataclass(frozen=True)
class Sampler:
    """How a token is drawn; the defaults are the definition's own way."""

    scan: Callable[[Array], Array] = scan_forwards
    total: Sum = sequential
    mass_scan: Callable[[Array], Array] = scan_forwards
    form: str = "scaled"
    inclusive: bool = False
    next_token: bool = False
    unclamped: bool = False
    any_weight: bool = False
    unfiltered: bool = False
    unnormalised: bool = False
    by_rank: bool = False
    top_k_by: int = 0
    strict_threshold: bool = False
    crossing_dropped: bool = False
    ties: str = ""
    order: str = ""
    absolute_min_p: bool = False
    scan_to: str = ""
    uniform_to: str = ""
    last_dropped: bool = False


PLAIN = Sampler()


def _among_top_k(p: Array, params: dict[str, Any], style: Sampler) -> Array:
    count = min(max(params["top_k"] + style.top_k_by, 1), p.shape[-1])
    order = np.argsort(-p, axis=-1, kind="stable")
    if (style.ties or params["ties"]) == "lowest":
        keep = np.zeros(p.shape, bool)
        np.put_along_axis(keep, order[:, :count], True, axis=-1)
        return keep
    threshold = np.take_along_axis(p, order[:, count - 1 : count], axis=-1)
    return (p > threshold) | (p == p.max(axis=-1, keepdims=True)) if style.strict_threshold else p >= threshold


def _in_nucleus(p: Array, mass: Array, params: dict[str, Any], style: Sampler) -> Array:
    order = np.argsort(-p, axis=-1, kind="stable")
    falling = np.take_along_axis(p, order, axis=-1)
    sums = style.mass_scan(np.take_along_axis(mass, order, axis=-1))
    before = np.concatenate([np.zeros_like(sums[:, :1]), sums[:, :-1]], axis=-1)
    if style.crossing_dropped:
        before = np.where(np.arange(p.shape[-1]) == 0, 0, sums)
    if (style.ties or params["ties"]) == "all":
        for at in range(1, p.shape[-1]):
            same = falling[:, at] == falling[:, at - 1]
            before[same, at] = before[same, at - 1]
    keep = np.zeros(p.shape, bool)
    np.put_along_axis(keep, order, before < p.dtype.type(params["top_p"]), axis=-1)
    return keep


def _kept(p: Array, params: dict[str, Any], style: Sampler) -> Array:
    keep = np.ones(p.shape, bool)
    if style.unfiltered:
        return keep
    if "min_p" in params:
        limit = p.dtype.type(params["min_p"])
        keep = p >= (limit if style.absolute_min_p else p.max(axis=-1, keepdims=True) * limit)
        keep |= p == p.max(axis=-1, keepdims=True)
    if "top_k" in params:
        keep = keep & _among_top_k(p, params, style)
    if "top_p" in params:
        mass = p
        if "order" in params and (style.order or params["order"]) != "joint":
            mass = np.where(keep, p, p.dtype.type(0))
            mass = mass / style.total(mass)
        keep = keep & _in_nucleus(p, mass, params, style)
    return keep


def draw(probs: Array, uniform: Array, params: dict[str, Any], style: Sampler) -> Array:
    """Tokens by inverse transform, in float32."""
    p, u = wide(probs), uniform.astype(np.float32)[:, np.newaxis]
    if style.uniform_to:
        u = round_to(u, style.uniform_to).astype(np.float32)
    weight = np.where(_kept(p, params, style), p, np.float32(0))
    if style.last_dropped:
        weight[:, -1:] = np.where(weight[:, :-1].any(axis=-1, keepdims=True), 0, weight[:, -1:])
    order = np.tile(np.arange(p.shape[-1]), (len(p), 1))
    if style.by_rank:
        order = np.argsort(-weight, axis=-1, kind="stable")
        weight = np.take_along_axis(weight, order, axis=-1)
    total = np.ones_like(u) if style.unnormalised else style.total(weight)
    if style.form == "shares":  # normalised, then summed
        rising, goal = style.scan(weight / total), u
    elif style.form == "reciprocal":
        rising, goal = style.scan(weight) * (1 / total), u
    elif style.form == "own_total":  # the end of the scan is the total
        rising = style.scan(weight)
        goal = u * rising[:, -1:]
    else:
        rising, goal = style.scan(weight), u * total
    if style.scan_to:
        rising = round_to(rising, style.scan_to).astype(np.float32)
    found = rising >= goal if style.inclusive else rising > goal
    if not (style.inclusive or style.any_weight):
        found &= weight > 0
    last = np.max(np.where(weight > 0, np.arange(p.shape[-1]), 0), axis=-1)
    beyond = p.shape[-1] - 1 if style.unclamped else last
    place = np.where(found.any(axis=-1), np.argmax(found, axis=-1), beyond)
    if style.next_token:
        place = np.minimum(place + 1, p.shape[-1] - 1)
    return np.take_along_axis(order, place[:, np.newaxis], axis=-1)[:, 0].astype(np.int32)


CONTROLS: dict[str, tuple[Sampler, str]] = {
    "scan_forwards": (PLAIN, "One element after the other."),
    "scan_doubling": (Sampler(scan=scan_doubling, total=ORDERS["tree"], mass_scan=scan_doubling), "Scans of a block."),
    "scan_in_blocks": (
        Sampler(scan=scan_in_blocks(16), total=ORDERS["tiles"], mass_scan=scan_in_blocks(32)),
        "Scans of tiles, one after the other.",
    ),
    "shares": (Sampler(form="shares", total=ORDERS["warp"]), "Each probability is divided by the total first."),
    "reciprocal": (Sampler(form="reciprocal", total=ORDERS["backwards"]), "The sums are multiplied by 1 / total."),
    "own_total": (Sampler(form="own_total", scan=scan_in_blocks(8)), "The total is the end of the scan."),
    "shares_doubling": (
        Sampler(form="shares", scan=scan_doubling, total=pairwise, mass_scan=scan_in_blocks(16)),
        "Divided first, then scanned in steps of 1, 2, 4, …",
    ),
}
MUTANTS: dict[str, tuple[Sampler, str]] = {
    "inclusive": (
        Sampler(inclusive=True),
        "A sum that equals the goal is enough: u = 0 draws a token of probability 0.",
    ),
    "next_token": (Sampler(next_token=True), "The token after the right one."),
    "unclamped": (
        Sampler(unclamped=True, scan_to="bfloat16"),
        "Sums in bfloat16, and where they never exceed the goal the last token of all (FlashInfer #2456's class).",
    ),
    "bfloat16_sums": (Sampler(scan_to="bfloat16"), "The running sums are rounded to bfloat16."),
    "half_uniform": (Sampler(uniform_to="float16"), "The uniform number is rounded to float16."),
    "by_rank": (Sampler(by_rank=True), "Tokens are drawn in the order of falling probability."),
    "last_dropped": (Sampler(last_dropped=True), "The last token is never drawn."),
}
FILTERED: dict[str, tuple[Sampler, str]] = {
    "unfiltered": (Sampler(unfiltered=True), "Nothing is filtered."),
    "unnormalised": (Sampler(unnormalised=True), "What is kept is not made 1 again."),
}
WITH_TOP_K: dict[str, tuple[Sampler, str]] = {
    "one_more": (Sampler(top_k_by=1), "One token more is kept."),
    "one_less": (Sampler(top_k_by=-1), "One token less is kept."),
    "strict_threshold": (Sampler(strict_threshold=True), "Tokens as probable as the k-th are dropped."),
}
WITH_TIES: dict[str, tuple[Sampler, str]] = {
    "ties_together": (Sampler(ties="all"), "Equal tokens are kept together, always (vllm #50979)."),
    "ties_by_index": (Sampler(ties="lowest"), "Equal tokens are kept by index, always (vllm #50979)."),
}
WITH_TOP_P: dict[str, tuple[Sampler, str]] = {
    "crossing_dropped": (Sampler(crossing_dropped=True), "The token that crosses top_p is dropped."),
}
OF_BOTH: dict[str, tuple[Sampler, str]] = {
    "always_joint": (Sampler(order="joint"), "Both filters see all tokens, always."),
    "always_first": (Sampler(order="top_k_first"), "top_p sees what top_k left, always."),
}
OF_MIN_P: dict[str, tuple[Sampler, str]] = {
    "absolute": (Sampler(absolute_min_p=True), "min_p is not multiplied by the largest probability."),
}
FLAWS: dict[str, dict[str, tuple[Sampler, str]]] = {
    "sample_top_k": MUTANTS | FILTERED | WITH_TOP_K | WITH_TIES,
    "sample_top_p": MUTANTS | FILTERED | WITH_TIES | WITH_TOP_P,
    "sample_min_p": MUTANTS | FILTERED | OF_MIN_P,
    "sample_top_k_top_p": MUTANTS | FILTERED | WITH_TOP_K | WITH_TIES | WITH_TOP_P | OF_BOTH,
}


def _variant(register: Any, operator: str, name: str, style: Sampler, flaw: str) -> None:
    def sample(probs: Array, uniform: Array, **params: Any) -> Array:
        return draw(probs, uniform, params, style)

    sample.__doc__ = flaw
    register(operator, name=name)(sample)


def _single_only(operator: str) -> None:
    @mutant(operator, dtypes=("float32",))
    def any_weight(probs: Array, uniform: Array, **params: Any) -> Array:
        """A token of probability 0 is drawn where the sums of its scan do not rise."""
        return draw(probs, uniform, params, Sampler(any_weight=True, scan=scan_doubling))

    @mutant(operator, dtypes=("float32",), relation="entries_in_any_place")
    def order_by_row(probs: Array, uniform: Array, **params: Any) -> Array:
        """Rows in odd places are summed in another order."""
        tokens = draw(probs, uniform, params, PLAIN)
        other = replace(PLAIN, form="shares", scan=scan_doubling, total=pairwise)
        tokens[1::2] = draw(probs, uniform, params, other)[1::2]
        return tokens


for _operator, _flaws in FLAWS.items():
    for _name, (_style, _flaw) in CONTROLS.items():
        _variant(control, _operator, _name, _style, _flaw)
    for _name, (_style, _flaw) in _flaws.items():
        _variant(mutant, _operator, _name, _style, _flaw)
    _single_only(_operator)


# Softmax at a temperature.


@dataclass(frozen=True)
class Heat:
    """How the temperature is applied; the defaults are the definition's own way."""

    total: Sum = sequential
    exponential: Callable[[Array], Array] = exp
    divide: Callable[[Any, Any], Array] = np.divide
    reciprocal: bool = False
    maximum_first: bool = False
    multiplied: bool = False
    ignored: bool = False
    on_shares: bool = False
    zero_is_one: bool = False
    last_of_equal: bool = False
    no_maximum: bool = False
    shared: bool = False
    scaled_to: str = ""


def heated(logits: Array, temperature: Array, style: Heat) -> Array:
    """The softmax in float32, float64 for float64 logits."""
    x, heat = wide(logits), temperature.astype(wide(logits).dtype)[:, np.newaxis]
    if style.shared and len(heat):
        heat = np.broadcast_to(heat[:1], heat.shape)
    cold = heat == 0
    heat = np.where(cold, 1, heat)
    if style.ignored:
        heat = np.ones_like(heat)
    largest = x.max(axis=-1, keepdims=True) if x.size else np.zeros((len(x), 1), x.dtype)
    with np.errstate(all="ignore"):
        if style.on_shares:
            weight = np.exp(x - largest)
            weight = (weight / style.total(weight)) / heat
        elif style.maximum_first:
            weight = style.exponential((x - largest) / heat)
        else:
            scaled = x * (1 / heat) if style.reciprocal else x * heat if style.multiplied else style.divide(x, heat)
            if style.scaled_to:
                scaled = round_to(scaled, style.scaled_to).astype(x.dtype)
            top = scaled.max(axis=-1, keepdims=True) if scaled.size else largest
            weight = style.exponential(scaled if style.no_maximum else scaled - top)
        share = style.divide(weight, style.total(weight))
    winner = np.argmax(x, axis=-1)
    if style.last_of_equal:
        winner = x.shape[-1] - 1 - np.argmax(x[:, ::-1], axis=-1)
    if not style.zero_is_one:
        share = np.where(cold, (np.arange(x.shape[-1]) == winner[:, np.newaxis]).astype(x.dtype), share)
    return share


HEATS: dict[str, tuple[Heat, str]] = {
    **{
        f"order_{name}": (Heat(total=order), "The weights are summed in an order of its own.")
        for name, order in ORDERS.items()
    },
    "reciprocal": (Heat(reciprocal=True), "The logits are multiplied by 1 / T."),
    "exp_by_exp2": (Heat(exponential=exp_by_exp2), "The exponential goes through exp2."),
    "as_promised": (
        Heat(exponential=exp_promised, divide=quotient),
        "The exponential and both quotients are off by anything up to two ulps.",
    ),
}
WRONG_HEATS: dict[str, tuple[Heat, str]] = {
    "multiplied": (Heat(multiplied=True), "The logits are multiplied by T."),
    "ignored": (Heat(ignored=True), "The temperature is left out."),
    "on_shares": (Heat(on_shares=True), "The shares are divided by T, not the logits."),
    "zero_is_one": (Heat(zero_is_one=True), "A temperature of 0 counts as 1."),
    "last_of_equal": (Heat(last_of_equal=True), "At temperature 0 the last of the largest wins."),
    "no_maximum": (Heat(no_maximum=True), "The maximum is not taken off first."),
    "shared": (Heat(shared=True), "Every row has the first row's temperature."),
    "bfloat16_scaled": (Heat(scaled_to="bfloat16"), "The scaled logits are rounded to bfloat16."),
}


def _heat(register: Any, name: str, style: Heat, flaw: str) -> None:
    def temperature_softmax(logits: Array, temperature: Array) -> Array:
        return heated(logits, temperature, style)

    temperature_softmax.__doc__ = flaw
    register("temperature_softmax", name=name)(temperature_softmax)


for _key, (_way, _text) in HEATS.items():
    _heat(control, _key, _way, _text)
for _key, (_way, _text) in WRONG_HEATS.items():
    _heat(mutant, _key, _way, _text)


@mutant("temperature_softmax", dtypes=("float32",), relation="entries_in_any_place")
def heat_by_row(logits: Array, temperature: Array) -> Array:
    """Rows in odd places are summed in another order."""
    out = heated(logits, temperature, Heat())
    out[1::2] = heated(logits, temperature, Heat(total=pairwise))[1::2]
    return out


@mutant("temperature_softmax", dtypes=("float32",), relation="logits_and_temperature_double")
def form_by_heat(logits: Array, temperature: Array) -> Array:
    """Temperatures above 0.5 divide, lower ones multiply by a reciprocal."""
    out, other = heated(logits, temperature, Heat()), heated(logits, temperature, Heat(reciprocal=True))
    return np.where(temperature[:, np.newaxis] > 0.5, out, other)


# The greedy choice.

Pick = Callable[[Array], Any]


def in_one_pass(x: Array) -> Array:
    """One element after the other, replaced by what is larger."""
    best, token = x[:, 0].copy(), np.zeros(len(x), np.int64)
    for at in range(1, x.shape[1]):
        better = (x[:, at] > best) | (np.isnan(x[:, at]) & ~np.isnan(best))
        best[better], token[better] = x[better, at], at
    return token


def backwards(x: Array) -> Array:
    """From the last to the first, replaced by what is at least as large."""
    best, token = x[:, -1].copy(), np.full(len(x), x.shape[1] - 1)
    for at in range(x.shape[1] - 2, -1, -1):
        better = np.isnan(x[:, at]) | (x[:, at] >= best)
        best[better], token[better] = x[better, at], at
    return token


def tournament(lanes: int) -> Pick:
    """Lanes look at every n-th element; a tree over the lanes, where of equal ones the lower index wins."""

    def pick(x: Array) -> Array:
        width = min(lanes, x.shape[1])
        best, token = x[:, :width].copy(), np.tile(np.arange(width), (len(x), 1))
        for start in range(width, x.shape[1], width):
            piece = x[:, start : start + width]
            front = best[:, : piece.shape[1]]
            better = (piece > front) | (np.isnan(piece) & ~np.isnan(front))
            front[better] = piece[better]
            index = np.arange(start, start + piece.shape[1])
            token[:, : piece.shape[1]] = np.where(better, index, token[:, : piece.shape[1]])
        while best.shape[1] > 1:
            half = -(-best.shape[1] // 2)
            right, other = best[:, half:], token[:, half:]
            left, mine = best[:, : right.shape[1]], token[:, : right.shape[1]]
            nan_left, nan_right = np.isnan(left), np.isnan(right)
            better = (right > left) & ~nan_left | (nan_right & ~nan_left)
            better |= ((right == left) | (nan_left & nan_right)) & (other < mine)
            left[better], mine[better] = right[better], other[better]
            best, token = best[:, :half], token[:, :half]
        return token[:, 0]

    return pick


def by_sorting(x: Array) -> Array:
    """A stable sort."""
    key = np.where(np.isnan(x), np.inf, x)
    first: Array = np.lexsort((np.arange(x.shape[1]) + np.zeros(x.shape), -key, ~np.isnan(x)), axis=-1)[:, 0]
    return first


def two_passes(x: Array) -> Any:
    """The maximum, then the first element that equals it."""
    top = np.max(x, axis=1, keepdims=True)
    return np.argmax((x == top) | np.isnan(x), axis=1)


def last_of_equal(x: Array) -> Any:
    """Of equal logits the last wins."""
    return x.shape[1] - 1 - np.argmax(x[:, ::-1], axis=1)


def from_zero(x: Array) -> Any:
    """The maximum starts at 0."""
    return np.argmax(np.maximum(x, 0), axis=1)


def last_column_missed(x: Array) -> Any:
    """The last column is not looked at."""
    return np.argmax(x[:, : max(x.shape[1] - 1, 1)], axis=1)


def by_magnitude(x: Array) -> Any:
    """The largest magnitude wins."""
    return np.argmax(np.abs(x), axis=1)


def index_in_tile(x: Array) -> Any:
    """The index within a tile of 32 is returned."""
    return np.argmax(x, axis=1) % 32


def nan_never_wins(x: Array) -> Any:
    """NaN counts as smaller than every number."""
    return np.argmax(np.where(np.isnan(x), -np.inf, x), axis=1)


def in_eight_bits(x: Array) -> Any:
    """The logits are rounded to an 8-bit float first."""
    return np.argmax(np.where(np.isfinite(x), round_to(np.clip(x, -448, 448), "float8_e4m3fn"), x), axis=1)


def _greedy(register: Any, pick: Pick, name: str, flaw: str | None = None) -> None:
    def greedy(logits: Array) -> Array:
        tokens: Array = pick(wide(logits)).astype(np.int32)
        return tokens

    greedy.__doc__ = flaw or pick.__doc__
    register("greedy", name=name)(greedy)


for _pick in (in_one_pass, backwards, by_sorting, two_passes):
    _greedy(control, _pick, _pick.__name__)
for _lanes in (4, 32, 128):
    _greedy(control, tournament(_lanes), f"lanes_{_lanes}", f"A tournament of {_lanes} lanes.")
for _pick in (
    last_of_equal, from_zero, last_column_missed, by_magnitude, index_in_tile, nan_never_wins, in_eight_bits,
):  # fmt: skip
    _greedy(mutant, _pick, _pick.__name__)
