"""Variants of fused experts on codes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from oracle.formats import cast
from oracle.signature import Array
from oracle.variants import dynamic_quant, quant, quant_mx
from oracle.variants.arithmetic import F, Sum, backwards, exp_by_exp2, pairwise, product, sequential
from oracle.variants.gemm_scaled import FLAWED, STYLES, scaled_product
from oracle.variants.gemm_scaled import Style as Scaled
from oracle.variants.moe_experts import Experts, activated, rounded
from oracle.variants.variant import control, mutant

Quantised = tuple[Array, Array]
PLAIN, USUAL, NEAREST = Scaled(), Experts(), dynamic_quant.Style()


@dataclass(frozen=True)
class Style:
    """How one implementation computes quantised experts; the defaults are right.

    Attributes
    ----------
    product : Scaled
        How scales and codes meet in both products.
    slots : function
        Order of the sum over a token's experts.
    experts : Experts
        The activation, and which experts and weights are taken, as in `oracle.variants.moe_experts`.
    quant : Style of `oracle.variants.dynamic_quant`
        How the intermediate is quantised.
    weight_last : bool
        Whether a weight multiplies the second product, not its scales.
    """

    product: Scaled = PLAIN
    slots: Sum = sequential
    experts: Experts = USUAL
    quant: dynamic_quant.Style = NEAREST
    weight_last: bool = True
    by_token: bool = False
    unquantised: bool = False
    shared_scale: bool = False
    next_scale: bool = False
    biased: bool = True
    halves_to: str = ""


@dataclass(frozen=True)
class Given:
    """Inputs of any of the operators: codes, scales (rows, blocks) and how many elements along k share one."""

    x: Array
    x_scale: Array
    first: Array
    first_scale: Array
    second: Array
    second_scale: Array
    ids: Array
    weights: Array
    blocks: tuple[int, int]
    biases: tuple[Array | None, Array | None]
    out: str
    to: str


Quantise = Callable[[Array, Given, dict[str, Any], Style], Quantised]


def _pairs(given: Given, one_by_one: bool) -> list[tuple[int, Array, Array]]:
    """Expert, tokens and slots."""
    if one_by_one:
        return [(int(given.ids[t, j]), np.array([t]), np.array([j])) for t, j in np.argwhere(given.ids >= 0)]
    found = [(expert, np.argwhere(given.ids == expert)) for expert in range(len(given.first))]
    return [(expert, at[:, 0], at[:, 1]) for expert, at in found if len(at)]


def run(given: Given, params: dict[str, Any], style: Style, quantise: Quantise | None) -> tuple[Array, ...]:
    """Scales and codes of the intermediate, where there are any, and the result."""
    experts, (tokens, k) = style.experts, given.ids.shape
    ids, weights = given.ids, given.weights.astype(F)
    if experts.weight_of_first:
        weights = np.broadcast_to(weights[:, :1], weights.shape)
    if experts.elsewhere_as_last:
        ids = ids % len(given.first)
    if experts.next_expert:
        ids = np.where(ids < 0, ids, (ids + 1) % len(given.first))
    given = replace(given, ids=ids, weights=weights)
    weighted, inner = experts.weighted or params["weighted"], given.second.shape[2]
    middle = np.zeros((tokens * k, inner), F)
    first_bias, second_bias = given.biases if style.biased else (None, None)
    for expert, rows, slots in _pairs(given, style.by_token):
        scale = given.x_scale[rows]
        if weighted == "input":
            scale = scale * weights[rows, slots][:, np.newaxis]
        both = scaled_product(
            style.product, given.x[rows], given.first[expert].T, scale, given.first_scale[expert], given.blocks[0],
            None if first_bias is None else first_bias[expert], "float32",
        )  # fmt: skip
        both = rounded(both, style.halves_to or params["halves"])
        gate, up = both[:, :inner], both[:, inner:]
        gate, up = (up, gate) if experts.up_first else (gate, up)
        middle[rows * k + slots] = activated(gate, up, experts.activation or params["activation"], experts)
    middle = rounded(middle, experts.middle_to or params["intermediate"])
    results: tuple[Array, ...] = ()
    factor = np.ones((len(middle), given.second_scale.shape[2]), F)
    if quantise is not None:
        factor, codes = quantise(middle, given, params, style)
        results = factor.reshape(tokens, k, factor.shape[1]), codes.reshape(tokens, k, inner)
        middle, factor = (middle, np.ones_like(factor, F)) if style.unquantised else (codes.astype(F), factor.astype(F))
    if experts.last_inner_missed:
        middle = middle.copy()
        middle[:, -1:] = 0
    terms = np.zeros((tokens, k, given.second.shape[1]), F)
    for expert, rows, slots in _pairs(given, style.by_token):
        scale, share = factor[rows * k + slots], weights[rows, slots][:, np.newaxis]
        bias = None if second_bias is None else second_bias[expert]
        folded = weighted == "output" and not style.weight_last and bias is None
        part = scaled_product(
            style.product, middle[rows * k + slots], given.second[expert].T, scale * share if folded else scale,
            given.second_scale[expert], given.blocks[1], bias, "float32",
        )  # fmt: skip
        terms[rows, slots] = part * share if weighted == "output" and not folded else part
    if experts.last_slot_missed and k > 1:
        terms = terms[:, :-1]
    return *results, cast(style.slots(np.swapaxes(terms, 1, 2))[..., 0].astype(np.float64), given.out)


def _eight_bits(block: str) -> Quantise:
    def quantise(middle: Array, given: Given, params: dict[str, Any], style: Style) -> Quantised:
        known = {**params, "to": given.to, "block": block or f"1x{params['block']}"}
        scale = dynamic_quant.scale_of(middle, style.quant, known).astype(F)
        if style.shared_scale and scale.size:
            slots = scale.reshape(*given.ids.shape, scale.shape[1])
            scale = np.broadcast_to(slots.max(axis=1, keepdims=True), slots.shape).reshape(scale.shape)
        return scale, dynamic_quant.codes_of(middle, scale, style.quant, known)

    return quantise


def _powers(middle: Array, given: Given, params: dict[str, Any], style: Style) -> Quantised:
    mode = {"up": "floor", "floor": "up", "even": "ceil", "ceil": "even"}[params["mode"]]
    steps = quant_mx.Steps(
        size=np.abs if style.quant.maximum == "absolute" else lambda x: x,
        scale=quant_mx.powers,
        ratio=quant.divided if style.quant.reciprocal == "no" else quant.multiplied,
        store=quant_mx.by_conversion
        if style.quant.codes == "nearest"
        else lambda ratio, to, mode: quant.coded(ratio, to, "toward_zero"),
    )
    return steps.run(middle, to=given.to, block="1x32", mode=mode if style.shared_scale else params["mode"])


def _a8w8(inputs: tuple[Any, ...], params: dict[str, Any]) -> Given:
    x, x_scale, first, first_scale, second, second_scale, ids, weights = inputs
    blocks = max(x.shape[1], 1), max(second.shape[2], 1)
    scales = x_scale[:, np.newaxis], first_scale[:, :, np.newaxis], second_scale[:, :, np.newaxis]
    return _given(x, scales, first, second, ids, weights, blocks, (None, None), params["out_dtype"])


def _tiles(inputs: tuple[Any, ...], params: dict[str, Any]) -> Given:
    x, x_scale, first, first_scale, second, second_scale, ids, weights = inputs
    size = params["block"]
    rows = [
        np.repeat(scale, size, axis=1)[:, : w.shape[1]] for scale, w in ((first_scale, first), (second_scale, second))
    ]
    return _given(x, (x_scale, *rows), first, second, ids, weights, (size, size), (None, None), params["out_dtype"])


def _mxfp4(inputs: tuple[Any, ...], params: dict[str, Any]) -> Given:
    x, x_scale, first, first_scale, second, second_scale, ids, weights, *biases = inputs
    scales = x_scale.astype(F), first_scale.astype(F), second_scale.astype(F)
    return _given(x, scales, first, second, ids, weights, (32, 32), tuple(biases), params["out_dtype"])


def _weights_only(inputs: tuple[Any, ...], params: dict[str, Any]) -> Given:
    x, first, first_scale, second, second_scale, ids, weights, *biases = inputs
    blocks = np.ones((len(x), first_scale.shape[2]), F), first_scale.astype(F), second_scale.astype(F)
    return _given(x, blocks, first, second, ids, weights, (32, 32), tuple(biases), x.dtype.name)


def _int4(inputs: tuple[Any, ...], params: dict[str, Any], flaw: str = "") -> Given:
    x, first, first_scale, second, second_scale, ids, weights, *zeros = inputs
    group, rounding = params["group"], "exact" if flaw == "never_rounded" else params["weights"]
    whole, scales = [], [np.ones((len(x), first_scale.shape[2]), F)]
    for packed, scale, zero in ((first, first_scale, zeros[0]), (second, second_scale, zeros[1])):
        halves = (packed >> 4, packed & 15) if flaw == "nibbles" else (packed & 15, packed >> 4)
        codes = np.stack(halves, axis=-1).reshape(*packed.shape[:-1], 2 * packed.shape[-1]).astype(F)
        columns = codes.shape[2]
        zero = None if flaw == "zeros" else zero
        codes = codes - (F(8) if zero is None else np.repeat(zero.astype(F), group, axis=2)[..., :columns])
        if rounding != "exact":
            codes = rounded(codes * np.repeat(scale.astype(F), group, axis=2)[..., :columns], rounding)
        whole.append(codes)
        scales.append(scale.astype(F) if rounding == "exact" else np.ones(scale.shape, F))
    blocks = group, group
    return _given(x, tuple(scales), whole[0], whole[1], ids, weights, blocks, (None, None), x.dtype.name)


def _given(
    x: Array, scales: tuple[Array, ...], first: Array, second: Array, ids: Array, weights: Array,
    blocks: tuple[int, int], biases: Any, out: str,
) -> Given:  # fmt: skip
    codes = x.astype(F), first.astype(F), second.astype(F)
    return Given(
        codes[0], scales[0], codes[1], scales[1], codes[2], scales[2], np.array(ids), weights, blocks, biases, out,
        x.dtype.name,
    )  # fmt: skip


KINDS: dict[str, tuple[Callable[..., Given], Quantise | None]] = {
    "fused_experts_a8w8": (_a8w8, _eight_bits("token")),
    "fused_experts_a8w8_block_scaled": (_tiles, _eight_bits("")),
    "fused_experts_mxfp4": (_mxfp4, _powers),
    "fused_experts_w4a16": (_int4, None),
    "fused_experts_w4a16_mxfp4": (_weights_only, None),
}


def _variant(operator: str, style: Style) -> Callable[..., Any]:
    canonical, quantise = KINDS[operator]

    def variant(*inputs: Any, **params: Any) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            given = canonical(inputs, params)
            if style.next_scale:
                given = replace(given, first_scale=np.roll(given.first_scale, 1, axis=1))
            return run(given, params, style, quantise)

    return variant


def _read_otherwise(flaw: str) -> Callable[..., Any]:
    def variant(*inputs: Any, **params: Any) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return run(_int4(inputs, params, flaw), params, Style(), None)

    return variant


def _odd_tokens(operator: str) -> Callable[..., Any]:
    plain, other = _variant(operator, Style()), _variant(operator, Style(slots=backwards))

    def variant(*inputs: Any, **params: Any) -> tuple[Array, ...]:
        *parts, out = plain(*inputs, **params)
        out[1::2] = other(*inputs, **params)[-1][1::2]
        return *parts, out

    return variant


def _by_sign(operator: str) -> Callable[..., Any]:
    plain, other = _variant(operator, Style()), _variant(operator, Style(slots=backwards))

    def variant(*inputs: Any, **params: Any) -> tuple[Array, ...]:
        *parts, out = plain(*inputs, **params)
        return *parts, np.where(out < 0, other(*inputs, **params)[-1], out)

    return variant


RECIPROCAL = dynamic_quant.Style(reciprocal="both")
HONEST: dict[str, tuple[Style, str]] = {
    "codes_first": (Style(), "Operands are dequantised, then multiplied in order."),
    "tree": (Style(STYLES["codes_first_tree"][0], pairwise), "Dequantised operands; sums as trees."),
    "sums_scaled": (Style(STYLES["sums_scaled"][0], quant=RECIPROCAL), "Sums are scaled; quotients by reciprocals."),
    "pairs_scaled": (
        Style(STYLES["pairs_scaled"][0], weight_last=False),
        "Sums of blocks are multiplied by products of scales and weights.",
    ),
    "backwards": (Style(Scaled(partial(product, total=backwards)), backwards), "All sums from last to first."),
    "by_token": (
        Style(experts=Experts(exponential=exp_by_exp2, quotient=True), by_token=True),
        "One token and expert after the other; silu is one division, by exp2.",
    ),
}
MUTANTS: dict[str, tuple[Style, str]] = {
    "up_first": (Style(experts=Experts(up_first=True)), "The first half is up, the second gate."),
    "silu_always": (Style(experts=Experts(activation="silu")), "The activation is silu, always."),
    "next_expert": (Style(experts=Experts(next_expert=True)), "Each expert takes the next one's weights."),
    "weight_of_first": (Style(experts=Experts(weight_of_first=True)), "All experts have the weight of the first."),
    "elsewhere_as_last": (Style(experts=Experts(elsewhere_as_last=True)), "An id of -1 is the last expert."),
    "last_slot_missed": (Style(experts=Experts(last_slot_missed=True)), "A token's last expert is not added."),
    "last_inner_missed": (
        Style(experts=Experts(last_inner_missed=True)), "The second product misses its last column."
    ),
    "weight_on_output": (Style(experts=Experts(weighted="output")), "The weight multiplies the output, always."),
    "weight_on_input": (Style(experts=Experts(weighted="input")), "The weight multiplies the input, always."),
    "last_k_missed": (Style(FLAWED["last_k_missed"][0]), "Both products miss their last term."),
    "scale_of_next_channel": (Style(next_scale=True), "Channels of the first product have each other's scales."),
    "narrow_accumulator": (Style(FLAWED["narrow_accumulator"][0]), "Both sums are kept in a narrower format."),
    "unrounded": (Style(experts=Experts(middle_to="compute"), halves_to="compute"), "Nothing is rounded in between."),
}  # fmt: skip
OF_CODES: dict[str, tuple[Style, str]] = {
    "not_quantised": (Style(unquantised=True), "The result comes from the intermediate before its quantisation."),
    "other_scale": (Style(shared_scale=True), "A token's experts share a scale, or the scale is of another mode."),
    "signed_maximum": (
        Style(quant=dynamic_quant.Style(maximum="signed")), "The scale is from the largest number, not magnitude."
    ),
    "toward_zero": (Style(quant=dynamic_quant.Style(codes="toward_zero")), "Codes are rounded toward zero."),
}  # fmt: skip


def _register(operator: str, register: Any, name: str, variant: Callable[..., Any], doc: str, **facts: Any) -> None:
    variant.__doc__ = doc
    register(operator, name=name, **facts)(variant)


for _operator in KINDS:
    for _name, (_style, _doc) in HONEST.items():
        _register(_operator, control, _name, _variant(_operator, _style), _doc)
    for _name, (_style, _doc) in {**MUTANTS, **({} if KINDS[_operator][1] is None else OF_CODES)}.items():
        _register(_operator, mutant, _name, _variant(_operator, _style), _doc)
    if "mxfp4" in _operator:
        _register(_operator, mutant, "no_biases", _variant(_operator, Style(biased=False)), "No bias is added.")
    _doc = "Tokens in odd places are summed in another order."
    _relation: dict[str, Any] = {"relation": "entries_in_any_place"}
    if "w4a16" in _operator:
        _relation["dtypes"] = ("float32",)
    _register(_operator, mutant, "order_by_token", _odd_tokens(_operator), _doc, **_relation)
    _relation["relation"] = "negation_of_second_weights"
    _doc = "Negative results are summed in another order."
    _register(_operator, mutant, "order_by_sign", _by_sign(_operator), _doc, **_relation)

for _flaw, _doc in (
    ("nibbles", "The two codes of a byte are exchanged."),
    ("zeros", "Every group has 8 as its zero point."),
    ("never_rounded", "Dequantised weights are never rounded."),
):
    _register("fused_experts_w4a16", mutant, f"wrong_{_flaw}", _read_otherwise(_flaw), _doc)
