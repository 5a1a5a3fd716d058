"""Variants of causal convolutions."""

from __future__ import annotations

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
    exp_promised,
    pairwise,
    quotient,
    sequential,
    stored,
    wide,
)
from oracle.variants.variant import control, mutant


@dataclass(frozen=True)
class Conv:
    """How the convolution is computed; the defaults are the definition's own way."""

    total: Sum = sequential
    bias_first: bool = False
    fused: bool = False
    exponential: Callable[[Array], Array] = exp
    quotient: Callable[[Array, Array], Array] | None = None
    rolling: bool = False
    turned: bool = False
    ahead: bool = False
    tap_missed: bool = False
    no_bias: bool = False
    activation: str = ""
    no_state: bool = False
    fresh_read: bool = False
    stale_state: bool = False
    state_of_new: bool = False
    state_of_out: bool = False
    padding_as_last: bool = False
    slots_in_order: bool = False
    sum_to: str = ""
    taps_to: str = ""


PLAIN = Conv()


def _activated(y: Array, activation: str, style: Conv) -> Any:
    if activation == "none":
        return y
    with np.errstate(over="ignore"):
        below = 1 + style.exponential(-y)
        return style.quotient(y, below) if style.quotient else y * (y.dtype.type(1) / below)


def _windows(known: Array, length: int, width: int, style: Conv) -> Array:
    if style.rolling:  # a shift register, one step after the other
        register, steps = known[..., :width].copy(), []
        for step in range(length):
            steps.append(register.copy())
            if step + 1 < length:
                register = np.concatenate([register[..., 1:], known[..., width + step : width + step + 1]], axis=-1)
        shape = (*known.shape[:-1], 0, width)
        return np.stack(steps, axis=-2) if steps else np.zeros(shape, known.dtype)
    return np.stack([known[..., tap : tap + length] for tap in range(width)], axis=-1)


def convolved(known: Array, weight: Array, bias: Array | None, activation: str, style: Conv) -> Array:
    """The convolution of (batch, dim, past + length) in the compute type."""
    x, taps, width = wide(known), wide(weight), weight.shape[-1]
    length = known.shape[-1] - width + 1
    if style.taps_to:
        taps = round_to(taps, style.taps_to).astype(taps.dtype)
    if style.turned:
        taps = taps[:, ::-1]
    if style.ahead:
        x = np.concatenate([x[..., 1:], x[..., -1:]], axis=-1)
    windows = _windows(x, length, width, style)
    if style.tap_missed and width > 1:
        windows, taps = windows[..., 1:], taps[:, 1:]
    terms = windows * taps[:, np.newaxis, :]
    added = None if bias is None or style.no_bias else np.broadcast_to(wide(bias)[:, np.newaxis], terms.shape[:-1])
    if style.bias_first and added is not None:
        terms = np.concatenate([added[..., np.newaxis], terms], axis=-1)
        added = None
    if style.fused:
        y = np.zeros(terms.shape[:-1], x.dtype) if added is None else added.copy()
        for tap in range(taps.shape[-1]):
            wider = windows[..., tap].astype(np.float64) * taps[:, np.newaxis, tap]
            y = (wider + y).astype(x.dtype)
    else:
        y = style.total(terms)[..., 0]
        y = y if added is None else y + added
    if style.sum_to:
        y = round_to(y, style.sum_to).astype(y.dtype)
    out: Array = stored(_activated(y, style.activation or activation, style), known)
    return out


def full(inputs: tuple[Any, ...], params: dict[str, Any], style: Conv) -> tuple[Array, Array]:
    """``causal_conv1d`` in a style."""
    x, weight, state, bias, fresh = inputs
    before = np.array(state)
    if fresh is not None and not style.fresh_read:
        before = np.where(fresh[:, np.newaxis, np.newaxis] == 1, np.zeros_like(before), before)
    known = np.concatenate([before, x], axis=-1)
    seen = np.concatenate([np.zeros_like(before), x], axis=-1) if style.no_state else known
    out = convolved(seen, weight, bias, params["activation"], style)
    past = before.shape[-1]
    final = known[..., x.shape[-1] :]
    if style.stale_state:
        final = before
    if style.state_of_new and x.shape[-1] < past:
        final = np.concatenate([np.zeros_like(before), x], axis=-1)[..., x.shape[-1] :]
    if style.state_of_out and past:
        final = np.concatenate([before, out], axis=-1)[..., x.shape[-1] :]
    return out, final.copy()


def update(inputs: tuple[Any, ...], params: dict[str, Any], style: Conv) -> tuple[Array, Array]:
    """``causal_conv1d_update`` in a style."""
    x, weight, state, slots, bias = inputs
    slots = np.array(slots)
    if style.padding_as_last and len(state):
        slots = slots % len(state)
    if style.slots_in_order and len(state) >= len(slots):
        slots = np.where(slots < 0, -1, np.arange(len(slots)))
    here = np.flatnonzero(slots >= 0)
    rows = x[here], weight, state[slots[here]], bias, None
    out, new_state = np.zeros(x.shape, x.dtype), np.array(state)
    out[here], new_state[slots[here]] = full(rows, params, style)
    return out, new_state


CONTROLS: dict[str, tuple[Conv, str]] = {
    **{
        f"order_{name}": (Conv(total=total), "The taps are added in an order of its own.")
        for name, total in ORDERS.items()
    },
    "bias_first": (Conv(bias_first=True), "The sum starts from the bias."),
    "fused": (Conv(fused=True), "Products are fused into the sum, which starts from the bias."),
    "rolling": (Conv(rolling=True, total=ORDERS["backwards"]), "A shift register, one step after the other."),
    "quotient": (Conv(quotient=np.divide, exponential=exp_by_exp2), "silu is one division."),
    "as_promised": (
        Conv(quotient=quotient, exponential=exp_promised),
        "silu is one division; it and the exponential are off by anything up to two ulps.",
    ),
}
MUTANTS: dict[str, tuple[Conv, str]] = {
    "turned": (Conv(turned=True), "The newest input's tap comes first."),
    "ahead": (Conv(ahead=True), "Each output sees the next input."),
    "tap_missed": (Conv(tap_missed=True), "The oldest input's tap is left out."),
    "no_bias": (Conv(no_bias=True), "The bias is left out."),
    "always_silu": (Conv(activation="silu"), "silu, always."),
    "never_silu": (Conv(activation="none"), "No activation, ever."),
    "no_state": (Conv(no_state=True), "What went before counts as 0."),
    "stale_state": (Conv(stale_state=True), "The state is returned as it came."),
    "state_of_new": (Conv(state_of_new=True), "A sequence shorter than the state leaves zeros before it."),
    "state_of_out": (Conv(state_of_out=True), "The state is made of outputs."),
}
OF_FULL: dict[str, tuple[Conv, str]] = {
    "fresh_read": (Conv(fresh_read=True), "The state is read even where a sequence begins."),
}
OF_UPDATE: dict[str, tuple[Conv, str]] = {
    "padding_as_last": (Conv(padding_as_last=True), "A slot of -1 is the last one."),
    "slots_in_order": (Conv(slots_in_order=True), "Sequence i has slot i."),
}


def _full(register: Any, name: str, style: Conv, flaw: str, **facts: Any) -> None:
    def conv(x: Array, weight: Array, state: Array, bias: Any, fresh: Any, **params: Any) -> tuple[Array, Array]:
        return full((x, weight, state, bias, fresh), params, style)

    conv.__doc__ = flaw
    register("causal_conv1d", name=name, **facts)(conv)


def _update(register: Any, name: str, style: Conv, flaw: str, **facts: Any) -> None:
    def conv(x: Array, weight: Array, state: Array, slots: Array, bias: Any, **params: Any) -> tuple[Array, Array]:
        return update((x, weight, state, slots, bias), params, style)

    conv.__doc__ = flaw
    register("causal_conv1d_update", name=name, **facts)(conv)


for _register, _own in ((_full, OF_FULL), (_update, OF_UPDATE)):
    for _name, (_style, _flaw) in CONTROLS.items():
        _register(control, _name, _style, _flaw)
    for _name, (_style, _flaw) in (MUTANTS | _own).items():
        _register(mutant, _name, _style, _flaw)
    for _to in ("float16", "bfloat16"):
        _flaw = f"The sum is rounded to {_to} before the activation."
        _register(mutant, f"{_to}_sum", Conv(sum_to=_to), _flaw, dtypes=(_to,))
    _register(mutant, "bfloat16_taps", Conv(taps_to="bfloat16"), "Taps are rounded to bfloat16.", dtypes=("float32",))


@mutant("causal_conv1d", dtypes=("float32",), relation="entries_in_any_place")
def order_by_sequence(x: Array, weight: Array, state: Array, bias: Any, fresh: Any, **params: Any) -> Any:
    """Sequences in odd places are summed in another order."""
    inputs = x, weight, state, bias, fresh
    out, final = full(inputs, params, PLAIN)
    out[1::2] = full(inputs, params, replace(PLAIN, total=pairwise, bias_first=True))[0][1::2]
    return out, final


@mutant("causal_conv1d_update", dtypes=("float32",), relation="steps_in_any_slot")
def order_by_slot(x: Array, weight: Array, state: Array, slots: Array, bias: Any, **params: Any) -> Any:
    """Sequences with odd slots are summed in another order."""
    inputs = x, weight, state, slots, bias
    out, new_state = update(inputs, params, PLAIN)
    odd = slots % 2 == 1
    out[odd] = update(inputs, params, replace(PLAIN, total=pairwise, bias_first=True))[0][odd]
    return out, new_state
