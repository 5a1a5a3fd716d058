"""Variants of the gated delta rule and the selective scan."""

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
    product,
    rsqrt,
    sequential,
    stored,
    wide,
)
from oracle.variants.variant import control, mutant


@dataclass(frozen=True)
class Delta:
    """How the delta rule is computed; the defaults are the definition's own way."""

    total: Sum = sequential
    exponential: Callable[[Array], Array] = exp
    query_scaled: bool = False
    decay_after: bool = False
    beta_on_key: bool = False
    no_decay: bool = False
    decay_of_old: bool = False
    no_delta: bool = False
    no_beta: bool = False
    no_scale: bool = False
    out_before: bool = False
    never_normal: bool = False
    state_to: str = ""
    stale_state: bool = False
    old_key: bool = False


def delta_rule(inputs: tuple[Any, ...], params: dict[str, Any], style: Delta) -> tuple[Array, Array]:
    """The rule in float32."""
    q, k, v, g, beta, start = (wide(array) for array in inputs)
    f = np.float32
    if params["normalise"] and not style.never_normal:
        q = q * rsqrt(style.total(q * q) + f(1e-6))
        k = k * rsqrt(style.total(k * k) + f(1e-6))
    scale = f(1 if style.no_scale else q.shape[-1] ** -0.5)
    if style.query_scaled:
        q = q * scale
    state, out = start.copy(), np.zeros(v.shape, f)
    for t in range(q.shape[2]):
        key, query = k[:, :, t : t + 1], q[:, :, t : t + 1]
        decay = style.exponential(f(0) * g[:, :, t] if style.no_decay else g[:, :, t])[..., np.newaxis, np.newaxis]
        strength = beta[:, :, t, np.newaxis, np.newaxis]
        before = state
        decayed = state * decay
        if style.decay_of_old:  # the prediction sees the state before it decays
            seen = product(key, before, style.total)
        elif style.decay_after:  # the decay multiplies the prediction, not the state that it is made of
            seen = product(key, before, style.total) * decay
        else:
            seen = product(key, decayed, style.total)
        error = v[:, :, t : t + 1] - (0 * seen if style.no_delta else seen)
        column = np.swapaxes(k[:, :, max(t - 1, 0) : max(t - 1, 0) + 1] if style.old_key else key, -1, -2)
        if style.no_beta:
            state = decayed + column * error
        elif style.beta_on_key:
            state = decayed + (column * strength) * error
        else:
            state = decayed + column * (error * strength)
        if style.state_to:
            state = round_to(state, style.state_to).astype(f)
        result = product(query, decayed if style.out_before else state, style.total)
        out[:, :, t : t + 1] = result if style.query_scaled else result * scale
    return stored(out, inputs[2]), start if style.stale_state else state


DELTAS: dict[str, tuple[Delta, str]] = {
    **{
        f"order_{name}": (Delta(total=total), "Sums over keys in an order of its own.")
        for name, total in ORDERS.items()
    },
    "query_scaled": (Delta(query_scaled=True), "The scale goes into the query."),
    "decay_after": (Delta(decay_after=True), "The decay multiplies the prediction."),
    "as_promised": (Delta(exponential=exp_promised), "exp is off by anything up to two ulps."),
    "beta_on_key": (Delta(beta_on_key=True, exponential=exp_by_exp2), "beta goes into the key; exp through exp2."),
}
WRONG_DELTAS: dict[str, tuple[Delta, str]] = {
    "no_decay": (Delta(no_decay=True), "The state does not decay."),
    "decay_of_old": (Delta(decay_of_old=True), "The prediction comes from the state before it decays."),
    "no_delta": (Delta(no_delta=True), "The value is added, not its difference from the prediction."),
    "no_beta": (Delta(no_beta=True), "beta is left out."),
    "no_scale": (Delta(no_scale=True), "The scale is left out."),
    "out_before": (Delta(out_before=True), "The output comes from the state before the update."),
    "never_normal": (Delta(never_normal=True), "q and k are never normalised."),
    "bfloat16_state": (Delta(state_to="bfloat16"), "The state is rounded to bfloat16 after each step."),
    "stale_state": (Delta(stale_state=True), "The state is returned as it came."),
    "old_key": (Delta(old_key=True), "The update is along the key of the step before."),
}


def _delta(register: Any, name: str, style: Delta, flaw: str) -> None:
    def gated_delta_rule(*inputs: Any, **params: Any) -> tuple[Array, Array]:
        return delta_rule(inputs, params, style)

    gated_delta_rule.__doc__ = flaw
    register("gated_delta_rule", name=name)(gated_delta_rule)


for _name, (_style, _flaw) in DELTAS.items():
    _delta(control, _name, _style, _flaw)
for _name, (_style, _flaw) in WRONG_DELTAS.items():
    _delta(mutant, _name, _style, _flaw)


@mutant("gated_delta_rule", dtypes=("float32",), relation="sequences_in_any_place")
def order_by_sequence(*inputs: Any, **params: Any) -> tuple[Array, Array]:
    """Sequences in odd places are summed in another order."""
    results = delta_rule(inputs, params, Delta())
    others = delta_rule(inputs, params, replace(Delta(), total=pairwise))
    for result, other in zip(results, others, strict=True):
        result[1::2] = other[1::2]
    return results


@dataclass(frozen=True)
class Scan:
    """How the scan is computed; the defaults are the definition's own way."""

    total: Sum = sequential
    exponential: Callable[[Array], Array] = exp
    step_on_map: bool = False
    never_soft: bool = False
    always_soft: bool = False
    no_bias: bool = False
    no_decay: bool = False
    no_step: bool = False
    no_skip: bool = False
    no_gate: bool = False
    sigmoid_gate: bool = False
    out_before: bool = False
    stale_state: bool = False
    last_missed: bool = False
    state_to: str = ""
    doubling: bool = False


def _doubled(decays: list[Array], added: list[Array], start: Array) -> list[Array]:
    """States after each step by an associative scan: pairs of maps, then of pairs; at last the first state."""
    stride = 1
    while stride < len(decays):
        late = range(stride, len(decays))
        new = [(decays[t] * decays[t - stride], decays[t] * added[t - stride] + added[t]) for t in late]
        decays, added = [*decays[:stride], *(d for d, _ in new)], [*added[:stride], *(a for _, a in new)]
        stride *= 2
    return [decay * start + more for decay, more in zip(decays, added, strict=True)]


def _sigmoid(x: Array, style: Scan) -> Any:
    with np.errstate(over="ignore"):
        return np.float32(1) / (1 + style.exponential(-x))


def scan(inputs: tuple[Any, ...], params: dict[str, Any], style: Scan) -> tuple[Array, Array]:
    """The scan in float32."""
    x, dt, a, b, c, start = (wide(array) for array in inputs[:6])
    d, dt_bias, z = inputs[6:]
    step = dt if dt_bias is None or style.no_bias else dt + dt_bias[:, np.newaxis]
    if (params["dt_softplus"] or style.always_soft) and not style.never_soft:
        step = np.where(step > 20, step, np.log1p(style.exponential(np.minimum(step, 20))))
    state, out = start.copy(), np.zeros(x.shape, np.float32)
    decays, additions = [], []
    for t in range(x.shape[-1]):
        now, into, value = step[..., t, np.newaxis], b[:, np.newaxis, :, t], x[..., t, np.newaxis]
        decays.append(style.exponential(np.float32(0) * a + 0 * now if style.no_decay else now * a))
        if style.no_step:
            additions.append(into * value)
        else:
            additions.append((now * into) * value if not style.step_on_map else (now * value) * into)
    doubled = _doubled(decays, additions, start) if style.doubling else []
    for t, (decay, added) in enumerate(zip(decays, additions, strict=True)):
        seen, state = state, doubled[t] if doubled else state * decay + added
        if style.state_to:
            state = round_to(state, style.state_to).astype(np.float32)
        terms = (seen if style.out_before else state) * c[:, np.newaxis, :, t]
        if style.last_missed:
            terms = terms[..., :-1]
        out[..., t] = style.total(terms)[..., 0]
    if d is not None and not style.no_skip:
        out = out + x * d[:, np.newaxis]
    if z is not None and not style.no_gate:
        gate = wide(z)
        out = out * (_sigmoid(gate, style) if style.sigmoid_gate else gate * _sigmoid(gate, style))
    return stored(out, inputs[0]), start if style.stale_state else state


SCANS: dict[str, tuple[Scan, str]] = {
    **{f"order_{name}": (Scan(total=total), "Sums over n in an order of its own.") for name, total in ORDERS.items()},
    "step_on_input": (Scan(step_on_map=True), "The step multiplies the input, not the map."),
    "exp_by_exp2": (Scan(exponential=exp_by_exp2), "The exponential goes through exp2."),
}
WRONG_SCANS: dict[str, tuple[Scan, str]] = {
    "never_soft": (Scan(never_soft=True), "The step is never a softplus."),
    "always_soft": (Scan(always_soft=True), "The step is always a softplus."),
    "no_bias": (Scan(no_bias=True), "The bias of the step is left out."),
    "no_decay": (Scan(no_decay=True), "The state does not decay."),
    "no_step": (Scan(no_step=True), "The input is not multiplied by the step."),
    "no_skip": (Scan(no_skip=True), "d is left out."),
    "no_gate": (Scan(no_gate=True), "z is left out."),
    "sigmoid_gate": (Scan(sigmoid_gate=True), "The gate is a sigmoid, not silu."),
    "out_before": (Scan(out_before=True), "The output comes from the state before the step."),
    "stale_state": (Scan(stale_state=True), "The state is returned as it came."),
    "last_missed": (Scan(last_missed=True), "The last element of the state is not read."),
    "bfloat16_state": (Scan(state_to="bfloat16"), "The state is rounded to bfloat16 after each step."),
}


def _scan(register: Any, name: str, style: Scan, flaw: str, **facts: Any) -> None:
    def selective_scan(*inputs: Any, **params: Any) -> tuple[Array, Array]:
        return scan(inputs, params, style)

    selective_scan.__doc__ = flaw
    register("selective_scan", name=name, **facts)(selective_scan)


for _name, (_way, _flaw) in SCANS.items():
    _scan(control, _name, _way, _flaw)
for _name, (_way, _flaw) in WRONG_SCANS.items():
    _scan(mutant, _name, _way, _flaw)


_scan(control, "doubling", Scan(doubling=True), "Steps are joined two by two.", numerics="float32_chunked")
_scan(
    control,
    "doubling_tree",
    Scan(doubling=True, total=pairwise, exponential=exp_by_exp2),
    "Steps are joined two by two, sums go by trees.",
    numerics="float32_chunked",
)
_scan(mutant, "doubling_undeclared", Scan(doubling=True), "Steps are joined two by two, in spite of what is promised.")


@mutant("selective_scan", dtypes=("float32",), relation="sequences_in_any_place")
def scan_order_by_sequence(*inputs: Any, **params: Any) -> tuple[Array, Array]:
    """Sequences in odd places are summed in another order."""
    results = scan(inputs, params, Scan())
    results[0][1::2] = scan(inputs, params, replace(Scan(), total=pairwise))[0][1::2]
    return results
