"""Variants of routed experts beside shared ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.signature import Array
from oracle.variants.arithmetic import (
    Sum,
    backwards,
    exp_by_exp2,
    in_blocks,
    pairwise,
    product,
    sequential,
    stored,
    wide,
)
from oracle.variants.moe_experts import Experts, one_expert, terms_of
from oracle.variants.variant import control, mutant

USUAL = Experts()


@dataclass(frozen=True)
class Style:
    """How one implementation goes about it; the defaults are right.

    Attributes
    ----------
    experts : Experts
        Of routed and of shared experts.
    shared : Experts, optional
        Of shared experts, where they differ.
    slots : function
        Order of the sum over a token's parts.
    folded : bool
        Whether the routed factor is multiplied into the weights, or else into the terms or their sum.
    of_sum : bool
        Whether it is multiplied to the sum of the routed experts.
    """

    experts: Experts = USUAL
    shared: Experts | None = None
    slots: Sum = sequential
    folded: bool = False
    of_sum: bool = False
    gate: Callable[[Array], Any] | None = None
    scalings: tuple[float | None, float | None] = (None, None)
    scaled_both: bool = False
    other_parts: bool = False
    without_shared: bool = False


def run(inputs: tuple[Any, ...], params: dict[str, Any], style: Style) -> Array:
    """Routed experts, shared ones, and what they add up to."""
    hidden, first, second, ids, weights, up, down, gate = inputs
    x = wide(hidden)
    real = x.dtype.type
    routed_scaling = real(params["routed_scaling"] if style.scalings[0] is None else style.scalings[0])
    shared_scaling = real(params["shared_scaling"] if style.scalings[1] is None else style.scalings[1])
    folded = style.folded and params["weighted"] == "output"
    factor = weights.astype(x.dtype) * (routed_scaling if folded else real(1))
    terms = terms_of((hidden, first, second, ids, factor), params, style.experts)
    own = one_expert(
        x, wide(up), wide(down), np.ones_like(x[:, :1]), {**params, "weighted": "output"}, style.shared or style.experts
    )
    if gate is not None:
        score = product(x, wide(gate)[:, np.newaxis], style.experts.total)
        with np.errstate(over="ignore"):
            own = own * (real(1) / (1 + style.experts.exponential(-score)) if style.gate is None else style.gate(score))
    own = own * (shared_scaling * routed_scaling if style.scaled_both else shared_scaling)
    if style.without_shared:
        own = np.zeros_like(own)
    rounded = (params["parts"] == "rounded") != style.other_parts

    def total(parts: Array) -> Any:
        return style.slots(np.swapaxes(parts, 1, 2))[..., 0]

    if style.of_sum or rounded:
        routed = total(terms) if folded else total(terms) * routed_scaling
        if rounded:
            routed, own = wide(stored(routed, hidden)), wide(stored(own, hidden))
        return stored(routed + own, hidden)
    parts = terms if folded else terms * routed_scaling
    return stored(total(np.concatenate([parts, own[:, np.newaxis]], axis=1)), hidden)


def _variant(register: Any, name: str, style: Style, doc: str, **facts: Any) -> None:
    def fused_experts_with_shared(*inputs: Any, **params: Any) -> Array:
        return run(inputs, params, style)

    fused_experts_with_shared.__doc__ = doc
    register("fused_experts_with_shared", name=name, **facts)(fused_experts_with_shared)


for _name, _style, _doc in (
    ("plain", Style(), "Every term is scaled, then all are added in order."),
    ("folded", Style(Experts(by_token=True), folded=True), "The routed factor goes into the weights."),
    ("of_sum", Style(of_sum=True), "The routed factor is multiplied to the sum of the routed experts."),
    ("tree", Style(Experts(total=pairwise), slots=pairwise, of_sum=True), "All sums as trees."),
    ("backwards", Style(Experts(total=backwards), slots=backwards), "All sums from last to first."),
    (
        "quotient",
        Style(Experts(quotient=True, exponential=exp_by_exp2, total=in_blocks(8)), folded=True),
        "silu is one division, by exp2; sums in blocks of 8.",
    ),
):
    _variant(control, _name, _style, _doc)

for _name, _style, _doc in (
    ("shared_left_out", Style(without_shared=True), "Shared experts are left out."),
    ("gate_ignored", Style(gate=lambda score: 1), "All of the shared experts is taken, whatever the gate says."),
    ("gate_not_squashed", Style(gate=lambda score: score), "The gate's sigmoid is left out."),
    ("routed_factor_left_out", Style(scalings=(1.0, None)), "The routed experts' factor is left out."),
    ("shared_factor_left_out", Style(scalings=(None, 1.0)), "The shared experts' factor is left out."),
    ("routed_factor_on_both", Style(scaled_both=True), "The routed experts' factor multiplies shared ones, too."),
    ("shared_up_first", Style(shared=Experts(up_first=True)), "Of the shared experts, the first half is up."),
    ("shared_silu_always", Style(shared=Experts(activation="silu")), "The shared experts' activation is silu, always."),
    ("shared_inner_missed", Style(shared=Experts(last_inner_missed=True)), "Their second product misses a column."),
    ("next_expert", Style(Experts(next_expert=True), USUAL), "Each routed expert takes the next one's weights."),
    ("elsewhere_as_last", Style(Experts(elsewhere_as_last=True), USUAL), "An id of -1 is the last expert."),
    ("weight_on_output", Style(Experts(weighted="output"), USUAL), "Weights multiply outputs, always."),
):
    _variant(mutant, _name, _style, _doc)
_variant(
    mutant, "other_parts", Style(other_parts=True), "Parts are rounded where they are not to be, and the other way.",
    dtypes=("float16", "bfloat16"),
)  # fmt: skip


@mutant("fused_experts_with_shared", dtypes=("float32",), relation="entries_in_any_place")
def order_by_token(*inputs: Any, **params: Any) -> Array:
    """Tokens in odd places are summed in another order."""
    out = run(inputs, params, Style())
    out[1::2] = run(inputs, params, Style(Experts(total=pairwise)))[1::2]
    return out


@mutant("fused_experts_with_shared", dtypes=("float32",), relation="negation_of_second_weights")
def order_by_sign(*inputs: Any, **params: Any) -> Array:
    """Negative results are summed in another order."""
    out = run(inputs, params, Style())
    return np.where(out < 0, run(inputs, params, Style(Experts(total=pairwise))), out)
