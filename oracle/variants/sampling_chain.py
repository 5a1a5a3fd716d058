"""Variants of speculative sampling along a chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.arithmetic import ORDERS, Sum, pairwise, sequential, wide
from oracle.variants.sampling import scan_doubling, scan_forwards, scan_in_blocks
from oracle.variants.variant import control, mutant


@dataclass(frozen=True)
class Chain:
    """How the chain is sampled; the defaults are the definition's own way."""

    scan: Callable[[Array], Array] = scan_forwards
    total: Sum = sequential
    shares: bool = False
    target_only: bool = False
    goes_on: bool = False
    always: bool = False
    swapped: bool = False
    first_uniform: bool = False
    rest_of_draft: bool = False
    no_bonus: bool = False
    next_place: bool = False
    unnormalised: bool = False
    probs_to: str = ""


def chain_of(inputs: tuple[Any, ...], style: Chain) -> tuple[Array, Array, Array]:
    """Kept tokens, the next one, and all of them, in float32."""
    draft, ids, target, uniform = inputs
    p, q, u = wide(draft), wide(target), wide(uniform)
    if style.probs_to:
        p = round_to(p, style.probs_to).astype(np.float32)
    batch, drafted = ids.shape
    emitted, following = np.zeros(batch, np.int32), np.zeros(batch, np.int32)
    tokens = np.full((batch, drafted + 1), -1, np.int32)
    for row in range(batch):
        count = 0
        for t in range(drafted):
            had, wanted = p[row, t, ids[row, t]], q[row, t, ids[row, t]]
            kept = u[row, t] * wanted < had if style.swapped else u[row, t] * had < wanted
            if style.always or kept:
                count += 1
            elif not style.goes_on:
                break
        place = min(count + 1, drafted) if style.next_place else count
        left = q[row, place].copy()
        if count < drafted and not style.target_only and place < drafted:
            left = np.maximum(left - p[row, place], np.float32(0))
        goal = u[row, 0 if style.first_uniform else -1]
        total = np.ones(1, np.float32) if style.unnormalised else style.total(left[np.newaxis])[0]
        with np.errstate(all="ignore"):
            rising = style.scan((left / total if style.shares else left)[np.newaxis])[0]
        found = np.flatnonzero((rising > (goal if style.shares else goal * total)) & (left > 0))
        last = np.flatnonzero(left > 0)
        token = found[0] if len(found) else last[-1] if len(last) else 0
        if style.no_bonus and count == drafted and drafted:
            token = ids[row, -1]
        emitted[row], following[row] = count, token
        tokens[row, :count] = ids[row, :count]
        tokens[row, count] = token
        if style.rest_of_draft:
            tokens[row, count + 1 :] = ids[row, count:]
    return emitted, following, tokens


def _variant(register: Any, name: str, style: Chain, flaw: str) -> None:
    def speculative_chain(*inputs: Any) -> tuple[Array, Array, Array]:
        return chain_of(inputs, style)

    speculative_chain.__doc__ = flaw
    register("speculative_chain", name=name)(speculative_chain)


CONTROLS: dict[str, tuple[Chain, str]] = {
    "forwards": (Chain(), "One token after the other."),
    "doubling": (Chain(scan=scan_doubling, total=ORDERS["tree"]), "Scans of a block."),
    "blocks": (Chain(scan=scan_in_blocks(16), total=ORDERS["tiles"]), "Scans of tiles."),
    "backwards": (Chain(total=ORDERS["backwards"]), "The total is summed from the end."),
    "shares": (Chain(shares=True, total=ORDERS["warp"]), "What is left is divided by its total first."),
    "shares_doubling": (Chain(shares=True, scan=scan_doubling, total=pairwise), "Divided, then scanned."),
}
MUTANTS: dict[str, tuple[Chain, str]] = {
    "target_only": (Chain(target_only=True), "The token after a refusal is drawn from the target alone."),
    "goes_on": (Chain(goes_on=True), "Tokens after a refusal are counted, too (as the number of accepted ones is)."),
    "always": (Chain(always=True), "Every drafted token is kept."),
    "swapped": (Chain(swapped=True), "Draft and target change places in the decision."),
    "first_uniform": (Chain(first_uniform=True), "The first uniform number draws the token."),
    "rest_of_draft": (Chain(rest_of_draft=True), "What follows is the rest of the draft, not -1."),
    "no_bonus": (Chain(no_bonus=True), "If all are kept, the last one is repeated."),
    "next_place": (Chain(next_place=True), "The token is drawn one place too late."),
    "unnormalised": (Chain(unnormalised=True), "What is left is not made 1 again."),
    "eight_bit_draft": (Chain(probs_to="float8_e4m3fn"), "The draft is rounded to an 8-bit float."),
}
for _name, (_style, _flaw) in CONTROLS.items():
    _variant(control, _name, _style, _flaw)
for _name, (_style, _flaw) in MUTANTS.items():
    _variant(mutant, _name, _style, _flaw)


@mutant("speculative_chain", dtypes=("float32",), relation="entries_in_any_place")
def order_by_row(*inputs: Any) -> tuple[Array, Array, Array]:
    """Sequences in odd places are scanned in another order."""
    results = chain_of(inputs, Chain())
    for result, other in zip(results, chain_of(inputs, Chain(shares=True, scan=scan_doubling)), strict=True):
        result[1::2] = other[1::2]
    return results
