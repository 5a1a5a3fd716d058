"""Variants of operators whose sequences have their states in slots: packed convolutions, and one step of a scan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from oracle.signature import Array
from oracle.variants.arithmetic import pairwise, stored
from oracle.variants.recurrent import CONTROLS, MUTANTS, OF_FULL, OF_UPDATE, PLAIN, Conv, full
from oracle.variants.recurrent_states import SCANS, WRONG_SCANS, Scan, scan
from oracle.variants.variant import control, mutant

Slots = Callable[[Array, Array], Array]
"""From the slots that were given, and the states, to the slots that are used."""


def given_slots(slots: Array, state: Array) -> Array:
    """Those that were given."""
    return slots


def padding_as_last(slots: Array, state: Array) -> Array:
    """-1 counts from the end."""
    return slots % len(state) if len(state) else slots


def slots_in_order(slots: Array, state: Array) -> Array:
    """Sequence i has slot i."""
    return np.where(slots < 0, -1, np.arange(len(slots))) if len(state) >= len(slots) else slots


SLOTS: dict[Slots, Any] = {padding_as_last: OF_UPDATE["padding_as_last"], slots_in_order: OF_UPDATE["slots_in_order"]}


def packed(
    inputs: tuple[Any, ...], params: dict[str, Any], style: Conv, slots_of: Slots = given_slots, across: bool = False
) -> tuple[Array, Array]:
    """``causal_conv1d_varlen`` in a style: one sequence after the other."""
    x, weight, state, edges, slots, bias, fresh = inputs
    out, new_state = np.zeros(x.shape, x.dtype), np.array(state)
    for s, slot in enumerate(slots_of(slots, state)):
        if slot < 0:
            continue
        tokens, past = slice(edges[s], edges[s + 1]), state.shape[-1]
        before = np.array(state[slot])
        if across and edges[s]:  # what lies before the sequence in the packed tokens
            known = np.concatenate([before, x[:, : edges[s]]], axis=-1)
            before = known[:, known.shape[-1] - past :]
        rows = x[np.newaxis, :, tokens], weight, before[np.newaxis], bias, None if fresh is None else fresh[s : s + 1]
        (out[:, tokens],), (new_state[slot],) = full(rows, params, style)
    return out, new_state


def _packed(
    register: Any, name: str, style: Conv, flaw: str, slots: Slots = given_slots, across: bool = False, **facts: Any
) -> None:
    def causal_conv1d_varlen(*inputs: Any, **params: Any) -> tuple[Array, Array]:
        return packed(inputs, params, style, slots, across)

    causal_conv1d_varlen.__doc__ = flaw
    register("causal_conv1d_varlen", name=name, **facts)(causal_conv1d_varlen)


for _name, (_style, _flaw) in CONTROLS.items():
    _packed(control, _name, _style, _flaw)
for _name, (_style, _flaw) in (MUTANTS | OF_FULL).items():
    _packed(mutant, _name, _style, _flaw)
for _slots, (_, _flaw) in SLOTS.items():
    _packed(mutant, _slots.__name__, PLAIN, _flaw, _slots)
_packed(mutant, "across", PLAIN, "A sequence sees the end of the one before.", across=True)


@mutant("causal_conv1d_varlen", name="order_by_slot", dtypes=("float32",), relation="steps_in_any_slot")
def _packed_order_by_slot(*inputs: Any, **params: Any) -> tuple[Array, Array]:
    """Sequences with odd slots are summed in another order."""
    out, new_state = packed(inputs, params, PLAIN)
    other = packed(inputs, params, replace(PLAIN, total=pairwise, bias_first=True))[0]
    for s, slot in enumerate(inputs[4]):
        tokens = slice(*inputs[3][s : s + 2])
        out[:, tokens] = (other if slot % 2 == 1 else out)[:, tokens]
    return out, new_state


def stepped(
    inputs: tuple[Any, ...],
    params: dict[str, Any],
    style: Scan,
    slots_of: Slots = given_slots,
    interleaved: bool = False,
    from_stored: bool = False,
) -> tuple[Array, Array]:
    """``selective_state_update`` in a style: the scan of one step, one group of heads after the other."""
    state, x, dt, a, b, c, slots, d, dt_bias, z = inputs
    slots = slots_of(slots, state)
    here = np.flatnonzero(slots >= 0)
    used, heads, groups = slots[here], x.shape[1], b.shape[1]
    out, new_state = np.zeros(x.shape, x.dtype), np.array(state)
    for group in range(groups):
        members = np.arange(heads)[group::groups] if interleaved else np.arange(heads).reshape(groups, -1)[group]
        channels, n = len(members) * x.shape[-1], a.shape[-1]

        def flat(
            array: Any, members: Array = members, channels: int = channels
        ) -> Any:  # (batch, heads, head_dim) → (batch, dim, 1)
            return None if array is None else array[here][:, members].reshape(len(here), channels, 1)

        def rows(array: Any, members: Array = members) -> Any:  # (heads, head_dim) → (dim,)
            return None if array is None else array[members].reshape(-1)

        rates, states = a[members].reshape(channels, n), state[used][:, members].reshape(len(here), channels, n)
        maps = b[here][:, group, :, np.newaxis], c[here][:, group, :, np.newaxis]
        given = flat(x), flat(dt), rates, *maps, states, rows(d), rows(dt_bias), flat(z)
        result, moved = scan(given, params, style)
        kept = stored(moved, state)
        if from_stored:  # the output is read from the state as it was stored: a step of no change from there
            still = np.zeros_like(given[1])
            result, _ = scan(
                (given[0], still, *given[2:5], kept, given[6], None, given[8]), {"dt_softplus": False}, style
            )
        place = np.ix_(here, members)
        out[place] = result.reshape(len(here), len(members), x.shape[-1])
        new_state[np.ix_(used, members)] = kept.reshape(len(here), len(members), x.shape[-1], n)
    return out, new_state


def _step(register: Any, name: str, style: Scan, flaw: str, facts: dict[str, Any] | None = None, **ways: Any) -> None:
    def selective_state_update(*inputs: Any, **params: Any) -> tuple[Array, Array]:
        return stepped(inputs, params, style, **ways)

    selective_state_update.__doc__ = flaw
    register("selective_state_update", name=name, **(facts or {}))(selective_state_update)


for _name, (_way, _flaw) in SCANS.items():
    _step(control, _name, _way, _flaw)
for _name, (_way, _flaw) in WRONG_SCANS.items():
    if _name != "bfloat16_state":  # a state that is kept in bfloat16 is rounded so
        _step(mutant, _name, _way, _flaw)
for _slots, (_, _flaw) in SLOTS.items():
    _step(mutant, _slots.__name__, Scan(), _flaw, slots_of=_slots)
_step(mutant, "interleaved", Scan(), "Heads take the groups in turn.", interleaved=True)
_step(
    mutant,
    "from_stored",
    Scan(),
    "The output comes from the rounded state.",
    {"dtypes": ("float32",)},
    from_stored=True,
)


@mutant("selective_state_update", name="order_by_slot", dtypes=("float32",), relation="steps_in_any_slot")
def _step_order_by_slot(*inputs: Any, **params: Any) -> tuple[Array, Array]:
    """Sequences with odd slots are summed in another order."""
    out, new_state = stepped(inputs, params, Scan())
    odd = inputs[6] % 2 == 1
    out[odd] = stepped(inputs, params, Scan(total=pairwise))[0][odd]
    return out, new_state


def packed_scan(
    inputs: tuple[Any, ...],
    params: dict[str, Any],
    style: Scan,
    slots_of: Slots = given_slots,
    across: bool = False,
    fresh_read: bool = False,
) -> tuple[Array, Array]:
    """``selective_scan_varlen`` in a style: one sequence after the other."""
    x, dt, a, b, c, state, edges, slots, d, dt_bias, z, fresh = inputs
    out, new_state, last = np.zeros(x.shape, x.dtype), np.array(state), None
    for s, slot in enumerate(slots_of(slots, state)):
        if slot < 0:
            continue
        before = np.array(state[slot : slot + 1])
        if fresh is not None and fresh[s] and not fresh_read:
            before = np.zeros_like(before)
        if across and last is not None:  # where the sequence before ended
            before = last
        own = (None if one is None else one[np.newaxis, :, edges[s] : edges[s + 1]] for one in (x, dt, b, c, z))
        own_x, own_dt, own_b, own_c, own_z = own
        (result,), last = scan((own_x, own_dt, a, own_b, own_c, before, d, dt_bias, own_z), params, style)
        out[:, edges[s] : edges[s + 1]], new_state[slot] = result, stored(last, state)[0]
    return out, new_state


def _packed_scan(
    register: Any, name: str, style: Scan, flaw: str, facts: dict[str, Any] | None = None, **ways: Any
) -> None:
    def selective_scan_varlen(*inputs: Any, **params: Any) -> tuple[Array, Array]:
        return packed_scan(inputs, params, style, **ways)

    selective_scan_varlen.__doc__ = flaw
    register("selective_scan_varlen", name=name, **(facts or {}))(selective_scan_varlen)


for _name, (_way, _flaw) in SCANS.items():
    _packed_scan(control, _name, _way, _flaw)
for _name, (_way, _flaw) in WRONG_SCANS.items():
    _packed_scan(mutant, _name, _way, _flaw)
for _slots, (_, _flaw) in SLOTS.items():
    _packed_scan(mutant, _slots.__name__, Scan(), _flaw, slots_of=_slots)
_packed_scan(mutant, "across", Scan(), "A sequence begins where the one before ended.", across=True)
_packed_scan(mutant, "fresh_read", Scan(), OF_FULL["fresh_read"][1], fresh_read=True)
_packed_scan(control, "doubling", Scan(doubling=True), "Steps are joined two by two.", {"numerics": "float32_chunked"})


@mutant("selective_scan_varlen", name="order_by_slot", dtypes=("float32",), relation="steps_in_any_slot")
def _packed_scan_order_by_slot(*inputs: Any, **params: Any) -> tuple[Array, Array]:
    """Sequences with odd slots are summed in another order."""
    out, new_state = packed_scan(inputs, params, Scan())
    other = packed_scan(inputs, params, Scan(total=pairwise))[0]
    for s, slot in enumerate(inputs[7]):
        tokens = slice(*inputs[6][s : s + 2])
        out[:, tokens] = (other if slot % 2 == 1 else out)[:, tokens]
    return out, new_state
