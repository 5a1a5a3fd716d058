"""Variants of the fused experts and of the sum over a token's experts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.arithmetic import (
    ORDERS,
    Sum,
    exp,
    exp_by_exp2,
    in_blocks,
    pairwise,
    product,
    sequential,
    stored,
    wide,
)
from oracle.variants.variant import control, mutant

_erf = np.vectorize(math.erf, otypes=[np.float64])


@dataclass(frozen=True)
class Experts:
    """How the experts are computed; the defaults are the definition's own way."""

    total: Sum = sequential
    slots: Sum = sequential
    exponential: Callable[[Array], Array] = exp
    quotient: bool = False
    by_token: bool = False
    weight_in_middle: bool = False
    up_first: bool = False
    interleaved: bool = False
    ungated: bool = False
    activation: str = ""
    tanh_gelu: bool = False
    no_clamp: bool = False
    no_plus_one: bool = False
    weighted: str = ""
    weight_of_first: bool = False
    elsewhere_as_last: bool = False
    all_experts: bool = False
    last_slot_missed: bool = False
    last_inner_missed: bool = False
    next_expert: bool = False
    shared_weighted: bool = False
    both_to: str = ""
    middle_to: str = ""
    result_to: str = ""


def rounded(x: Array, to: str) -> Array:
    return round_to(x, to).astype(x.dtype) if to and to != "compute" else x


def _sigmoid(x: Array, style: Experts) -> Any:
    with np.errstate(over="ignore"):
        return x.dtype.type(1) / (1 + style.exponential(-x))


def _gelu(x: Array, style: Experts) -> Any:
    number = x.dtype.type
    if style.tanh_gelu:
        return number(0.5) * x * (1 + np.tanh(number(0.7978845608) * (x + number(0.044715) * x * x * x)))
    return number(0.5) * x * (1 + _erf(x * number(0.5**0.5)).astype(x.dtype))


def activated(gate: Array, up: Array, activation: str, style: Experts) -> Any:
    number = gate.dtype.type
    if activation == "swiglu_oai":
        if not style.no_clamp:
            gate, up = np.minimum(gate, number(7)), np.clip(up, number(-7), number(7))
        return gate * _sigmoid(number(1.702) * gate, style) * (up if style.no_plus_one else up + 1)
    if activation == "gelu":
        return _gelu(gate, style) * (1 if style.ungated else up)
    if style.quotient:
        with np.errstate(over="ignore"):
            return gate / (1 + style.exponential(-gate)) * up
    return gate * _sigmoid(gate, style) * (1 if style.ungated else up)


def one_expert(x: Array, first: Array, second: Array, weight: Array, params: dict[str, Any], style: Experts) -> Array:
    """Outputs of one expert for rows x, weighted."""
    weighted, inner = style.weighted or params["weighted"], second.shape[1]
    if weighted == "input":
        x = x * weight
    both = rounded(product(x, first.T, style.total), style.both_to)
    gate, up = both[:, :inner], both[:, inner:]
    if style.interleaved:
        gate, up = both[:, 0::2], both[:, 1::2]
    if style.up_first:
        gate, up = up, gate
    middle = activated(gate, up, style.activation or params["activation"], style)
    middle = rounded(middle, style.middle_to or params["intermediate"])
    if style.last_inner_missed:
        middle, second = middle[:, :-1], second[:, :-1]
    fold = style.weight_in_middle and weighted == "output" and params["intermediate"] == "compute"
    if fold:
        middle = middle * weight
    result = product(middle, second.T, style.total)
    if weighted == "output" and not fold:
        result = result * weight
    return rounded(result, style.result_to)


def terms_of(inputs: tuple[Any, ...], params: dict[str, Any], style: Experts) -> Array:
    """What is added for each token, (tokens, k, width), in float32, float64 for float64 inputs."""
    hidden, first, second, ids, weights = inputs
    x, ids = wide(hidden), np.array(ids)
    weights = np.array(weights, x.dtype)
    if style.weight_of_first:
        weights[:, 1:] = weights[:, :1]
    if style.elsewhere_as_last:
        ids = ids % len(first)
    if style.next_expert:
        ids = np.where(ids < 0, ids, (ids + 1) % len(first))
    terms = np.zeros((*ids.shape, x.shape[1]), x.dtype)
    if style.by_token:
        for token, slot in zip(*np.nonzero(ids >= 0), strict=True):
            expert = ids[token, slot]
            rows = x[token : token + 1], wide(first[expert]), wide(second[expert])
            terms[token, slot] = one_expert(*rows, weights[token, slot], params, style)[0]
    else:
        for expert in range(len(first)):
            tokens, slots = np.nonzero(ids == expert)
            if len(tokens):
                factor = weights[tokens, slots][:, np.newaxis]
                rows = x[tokens], wide(first[expert]), wide(second[expert])
                terms[tokens, slots] = one_expert(*rows, factor, params, style)
    if style.all_experts:  # the others with weight 0
        for expert in range(len(first)):
            rows = x, wide(first[expert]), wide(second[expert])
            terms[:, :1] += one_expert(*rows, np.zeros_like(x[:, :1]), params, style)[:, np.newaxis]
    if style.last_slot_missed and terms.shape[1] > 1:
        terms = terms[:, :-1]
    return terms


def experts(inputs: tuple[Any, ...], params: dict[str, Any], style: Experts) -> Array:
    """The experts and their sum, with what shared experts gave."""
    *routed, shared = inputs
    hidden, weights = inputs[0], inputs[4]
    terms = terms_of(tuple(routed), params, style)
    if shared is not None:
        more = wide(shared)
        if style.shared_weighted and weights.shape[1]:
            more = more * weights[:, :1].astype(more.dtype)
        terms = np.concatenate([terms, more[:, np.newaxis]], axis=1)
    return stored(style.slots(np.swapaxes(terms, 1, 2))[..., 0], hidden)


def _variant(register: Any, name: str, style: Experts, flaw: str, **facts: Any) -> None:
    def fused_experts(
        hidden: Array, first: Array, second: Array, ids: Array, weights: Array, shared: Array | None, **params: Any
    ) -> Array:
        return experts((hidden, first, second, ids, weights, shared), params, style)

    fused_experts.__doc__ = flaw
    register("fused_experts", name=name, **facts)(fused_experts)


for _order, _total in ORDERS.items():
    _variant(control, f"order_{_order}", Experts(total=_total, slots=_total), "All sums in an order of its own.")
_variant(control, "by_token", Experts(by_token=True), "One token and expert after the other.")
_variant(control, "quotient", Experts(quotient=True, exponential=exp_by_exp2), "silu is one division.")
_variant(control, "weight_in_middle", Experts(weight_in_middle=True), "The weight goes into the second product.")
_variant(control, "split_k", Experts(total=in_blocks(8), slots=pairwise), "Blocks of 8, added at the end.")

MUTANTS: dict[str, tuple[Experts, str]] = {
    "up_first": (Experts(up_first=True), "The first half is up, the second gate."),
    "interleaved": (Experts(interleaved=True), "Gate and up rows alternate."),
    "ungated": (Experts(ungated=True), "The up half is left out."),
    "silu_always": (Experts(activation="silu"), "The activation is silu, always."),
    "tanh_gelu": (Experts(tanh_gelu=True), "gelu by tanh."),
    "no_clamp": (Experts(no_clamp=True), "swiglu without its limits."),
    "no_plus_one": (Experts(no_plus_one=True), "swiglu with up in the place of up + 1."),
    "weight_on_output": (Experts(weighted="output"), "The weight multiplies the output, always."),
    "weight_on_input": (Experts(weighted="input"), "The weight multiplies the input, always."),
    "weight_of_first": (Experts(weight_of_first=True), "Every expert has the weight of the first."),
    "elsewhere_as_last": (Experts(elsewhere_as_last=True), "An id of -1 is the last expert."),
    "all_experts": (Experts(all_experts=True), "Every expert is computed, with weight 0 where it was not chosen."),
    "last_slot_missed": (Experts(last_slot_missed=True), "A token's last expert is not added."),
    "last_inner_missed": (Experts(last_inner_missed=True), "The second product misses its last column."),
    "next_expert": (Experts(next_expert=True), "Each expert takes the next one's weights."),
    "shared_weighted": (Experts(shared_weighted=True), "Shared experts are weighted like the first routed one."),
    "bfloat16_halves": (Experts(both_to="bfloat16"), "The first product is rounded to bfloat16."),
    "bfloat16_results": (Experts(result_to="bfloat16"), "Each expert's output is rounded to bfloat16."),
    "unrounded_middle": (Experts(middle_to="compute"), "The intermediate is never rounded."),
}
for _name, (_style, _flaw) in MUTANTS.items():
    _variant(mutant, _name, _style, _flaw)


@mutant("fused_experts", dtypes=("float32",), relation="entries_in_any_place")
def order_by_token(
    hidden: Array, first: Array, second: Array, ids: Array, weights: Array, shared: Array | None, **params: Any
) -> Array:
    """Tokens in odd places are summed in another order."""
    inputs = hidden, first, second, ids, weights, shared
    out = experts(inputs, params, Experts())
    out[1::2] = experts(inputs, params, replace(Experts(), total=pairwise))[1::2]
    return out


@mutant("fused_experts", dtypes=("float32",), relation="negation_of_second_weights")
def order_by_sign(
    hidden: Array, first: Array, second: Array, ids: Array, weights: Array, shared: Array | None, **params: Any
) -> Array:
    """Negative results are summed in another order."""
    inputs = hidden, first, second, ids, weights, shared
    out = experts(inputs, params, Experts())
    return np.where(out < 0, experts(inputs, params, replace(Experts(), total=pairwise)), out)


# The weighted sum.


def _summed(x: Array, ids: Array | None, weights: Array | None, total: Sum = sequential) -> Array:
    terms = wide(x)
    there = np.ones(x.shape[:2], bool) if ids is None else ids >= 0
    terms = np.where(there[:, :, np.newaxis], terms, 0)
    if weights is not None:
        terms = terms * np.where(there, weights, 0).astype(terms.dtype)[:, :, np.newaxis]
    return stored(total(np.swapaxes(terms, 1, 2))[..., 0], x)


def _summed_in(order: str) -> None:
    @control("moe_sum", name=f"order_{order}")
    def moe_sum(x: Array, ids: Array | None, weights: Array | None) -> Array:
        """The experts are added in an order of its own."""
        return _summed(x, ids, weights, ORDERS[order])


for _order in ORDERS:
    _summed_in(_order)


@control("moe_sum")
def fused(x: Array, ids: Array | None, weights: Array | None) -> Array:
    """Each product is fused into the sum."""
    total = np.zeros((x.shape[0], x.shape[2]), wide(x).dtype)
    for slot in range(x.shape[1]):
        there = np.ones(len(x), bool) if ids is None else ids[:, slot] >= 0
        factor = np.ones(len(x)) if weights is None else weights[:, slot].astype(np.float64)
        step = wide(x)[there, slot].astype(np.float64) * factor[there, np.newaxis] + total[there]
        total[there] = step
    return stored(total, x)


@mutant("moe_sum")
def weights_ignored(x: Array, ids: Array | None, weights: Array | None) -> Array:
    """The weights are left out."""
    return _summed(x, ids, None)


@mutant("moe_sum")
def ids_ignored(x: Array, ids: Array | None, weights: Array | None) -> Array:
    """What was not written is read (AITER #3677: garbage rows)."""
    return _summed(x, None, weights)


@mutant("moe_sum")
def zero_times_garbage(x: Array, ids: Array | None, weights: Array | None) -> Array:
    """What was not written is multiplied by 0."""
    if ids is None:
        return _summed(x, ids, weights)
    factor = np.ones(ids.shape, np.float32) if weights is None else weights
    return _summed(x, None, np.where(ids >= 0, factor, 0).astype(np.float32))


@mutant("moe_sum")
def last_missed(x: Array, ids: Array | None, weights: Array | None) -> Array:
    """The last expert is not added."""
    cut = slice(None, max(x.shape[1] - 1, 0))
    return _summed(x[:, cut], None if ids is None else ids[:, cut], None if weights is None else weights[:, cut])


@mutant("moe_sum")
def weight_of_next(x: Array, ids: Array | None, weights: Array | None) -> Array:
    """Each row has the weight of the next one."""
    return _summed(x, ids, None if weights is None else np.roll(weights, 1, axis=1))


@mutant("moe_sum")
def mean_of_experts(x: Array, ids: Array | None, weights: Array | None) -> Array:
    """The sum is divided by the number of experts."""
    return stored(wide(_summed(x, ids, weights)) / max(x.shape[1], 1), x)


@mutant("moe_sum", dtypes=("float16", "bfloat16"))
def rounded_each_time(x: Array, ids: Array | None, weights: Array | None) -> Array:
    """The running sum is held in the 16-bit dtype."""
    total = np.zeros((x.shape[0], x.shape[2]), x.dtype)
    for slot in range(x.shape[1]):
        cut = slice(slot, slot + 1)
        more = wide(_summed(x[:, cut], None if ids is None else ids[:, cut], None))
        if weights is not None:
            there = np.ones(len(x), bool) if ids is None else ids[:, slot] >= 0
            more = more * np.where(there, weights[:, slot], 0)[:, np.newaxis]
        total = stored(wide(total) + more, x)
    return total


@mutant("moe_sum", dtypes=("float32",))
def bfloat16_products(x: Array, ids: Array | None, weights: Array | None) -> Array:
    """The rows are rounded to bfloat16 first."""
    return _summed(round_to(x, "bfloat16").astype(x.dtype), ids, weights)


@mutant("moe_sum", dtypes=("float32",), relation="entries_in_any_place")
def sum_order_by_token(x: Array, ids: Array | None, weights: Array | None) -> Array:
    """Tokens in odd places are summed backwards."""
    out = _summed(x, ids, weights)
    out[1::2] = _summed(x, ids, weights, ORDERS["backwards"])[1::2]
    return out
