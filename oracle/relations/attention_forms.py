"""Relations of what the attentions are given beside queries, keys and values, and of their heads and magnitudes."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.formats import cast, format_of
from oracle.relations.relation import Run, difference, relation
from oracle.signature import Array

VECTOR = 16  # rows of a multiple of this many elements all begin at a multiple of a vector, or none does
LEAST = 2.0**-60  # to numbers that are larger, products below the normal numbers add nothing, flushed or not
WIDE = (2**16, 2**24, 2**31 - 1)  # windows that 16 bits, a float and a sum of 32 bits do not hold
PER_HEAD = ("alibi_slopes", "sinks")
BY_HEAD = ("attention", "flash_attention", "attention_backward", "attention_bias_backward", "attention_varlen",
           "mla_prefill", "paged_attention_decode", "paged_attention_prefill")  # fmt: skip
WINDOWED = ("flash_attention", "attention_varlen", "paged_attention_decode", "paged_attention_prefill", "mla_decode",
            "mla_prefill", "paged_attention_decode_quantised", "paged_attention_prefill_quantised",
            "mla_decode_quantised")  # fmt: skip


def _axis_of_heads(name: str, array: Array, params: dict[str, Any]) -> int | None:
    """Where an input has its heads; None where it has none."""
    if name in PER_HEAD:
        return 0
    if name in ("key_cache", "value_cache"):
        return 2 if params["layout"] == "plain" else 1
    if (name == "bias" and array.ndim == 2) or name == "k_rope" or array.dtype.kind in "iu":
        return None
    return 1


@relation(*BY_HEAD)
def heads_in_any_place(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A head's result is the same bits when the key heads come in reverse order, where rows are whole vectors."""
    q, name_of_keys = inputs["q"], next(name for name in ("k", "k_nope", "key_cache") if name in inputs)
    heads, keys = q.shape[1], inputs[name_of_keys]
    kv_heads = keys.shape[_axis_of_heads(name_of_keys, keys, params) or 0]
    rows = [inputs[name].shape[-1] for name in ("q", "k", "v", "k_nope", "key_cache", "value_cache") if name in inputs]
    rows += [keys.shape[2]] if q.ndim == 4 else []  # kernels may write scores down, a row per query
    if kv_heads < 2 or not heads or any(size % 8 if "layout" in params else size % VECTOR for size in rows):
        return None
    group = heads // kv_heads
    moved = np.arange(heads).reshape(kv_heads, group)[::-1].reshape(-1)
    places = {name: _axis_of_heads(name, x, params) for name, x in inputs.items() if x is not None}
    straight = {name: np.array(inputs[name], order="C") for name, axis in places.items() if axis is not None}
    turned = {
        name: np.ascontiguousarray(np.take(x, moved if x.shape[places[name] or 0] == heads else moved[::group] // group,
                                           axis=places[name]))
        for name, x in straight.items()
    }  # fmt: skip
    results = zip(run({**inputs, **turned}, params), run({**inputs, **straight}, params), strict=True)
    for number, (one, other) in enumerate(results):
        axis = 0 if one.ndim == 2 and q.ndim == 3 and "cu_seqlens_q" in inputs else 1
        order = moved if one.shape[axis] == heads else moved[::group] // group
        broken = difference(one, np.take(other, order, axis=axis), f"output {number} with the heads in reverse order")
        if broken:
            return broken
    return None


def _times(array: Array, scale: float) -> Array:
    return cast(array.astype(np.float64) * scale, array.dtype.name)


def _room(sources: list[Array], results: list[Array], terms: int) -> float:
    """A power of two by which numbers and sums of so many can be multiplied; 1 where none can."""
    sizes = np.concatenate([np.abs(x.astype(np.float64)).reshape(-1) for x in (*sources, *results)])
    sizes = sizes[~np.isnan(sizes) & (sizes > 0)]
    if not sizes.size or not np.isfinite(sizes).all() or sizes.min() < LEAST:
        return 1.0
    for result in results:  # what is stored below the normal numbers has lost digits
        size = np.abs(result.astype(np.float64))
        if ((size > 0) & (size < format_of(result.dtype).min_normal)).any():
            return 1.0
    largest = min(format_of(x.dtype).max for x in (*sources, *results))
    room = np.log2(min(largest, format_of("float32").max) / (sizes.max() * max(terms, 1)))
    return float(2.0 ** max(0, min(64, int(np.floor(room)) - 2)))


@relation("attention", "flash_attention", "attention_varlen", "mla_prefill", "paged_attention_decode",
          "paged_attention_prefill")  # fmt: skip
def values_scale(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """Values times a power of two give the result times that power, as far as neither leaves the range."""
    name = "v" if "v" in inputs else "value_cache"
    v = np.array(inputs[name], order="C")
    out, lse = run({**inputs, name: v}, params)
    scale = _room([v], [out], v.size // max(v.shape[-1], 1))
    if scale == 1.0:
        return None
    scaled, same = run({**inputs, name: _times(v, scale)}, params)
    broken = difference(scaled, _times(out, scale), f"out of values times {scale:g}")
    return broken or difference(same, lse, f"lse of values times {scale:g}")


@relation("attention_backward", "attention_bias_backward", "attention_sinks_backward")
def gradients_scale(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """The result's gradient times a power of two gives all gradients times it, as far as none leaves the range."""
    dout = np.array(inputs["dout"], order="C")
    straight = run({**inputs, "dout": dout}, params)
    reach = [
        np.abs(inputs[name].astype(np.float64)).max(initial=1.0) for name in ("q", "k", "v", "out") if name in inputs
    ]
    scale = _room([dout], list(straight), int(min(np.prod(reach) * dout.size, 2.0**60)))
    if scale == 1.0:
        return None
    scaled = run({**inputs, "dout": _times(dout, scale)}, params)
    for number, (one, other) in enumerate(zip(scaled, straight, strict=True)):
        broken = difference(one, _times(other, scale), f"gradient {number} of dout times {scale:g}")
        if broken:
            return broken
    return None


def _level(inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs with queries of zero, and nothing added to scores: they are all equal, in every order."""
    return {**inputs, "q": np.zeros_like(inputs["q"]), **dict.fromkeys({"bias", *PER_HEAD} & inputs.keys())}


@relation(*WINDOWED)
def wide_windows_are_none(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """Where all scores are equal, the log-sum-exp is the same bits under a window wider than all keys as under none."""
    level = _level(inputs)
    open_side: dict[str, Any] = {name: -1 for name in ("window_left", "window_right") if name in params}
    want = run(level, {**params, **open_side})[1]
    for width in WIDE:
        got = run(level, {**params, **open_side, "window_left": width})[1]
        broken = difference(got, want, f"lse under a window of {width}")
        if broken:
            return broken
    return None


def _with_an_empty_sequence(inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs, but the last sequence has no keys; where keys are not in pages, none has."""
    if "lengths" in inputs:
        lengths = np.array(inputs["lengths"])
        lengths[-1:] = 0
        return {**inputs, "lengths": lengths}
    if inputs["q"].ndim == 4:
        return {**inputs, "k": inputs["k"][:, :, :0], "v": inputs["v"][:, :, :0]}
    keys: dict[str, Any] = {name: inputs[name][:0] for name in ("k", "v", "k_nope", "k_rope") if name in inputs}
    no_keys = {"cu_seqlens_k": np.zeros_like(inputs["cu_seqlens_k"])}
    return {**inputs, **keys, **no_keys, **dict.fromkeys({"seqused_k"} & inputs.keys())}


@relation(*WINDOWED)
def sinks_of_minus_infinity_are_none(
    run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator
) -> Any:
    """Sinks of minus infinity give what no sinks give, for queries without keys too: the same log-sum-exp, no new NaN.

    Where all scores are equal, so that kernels may tile the keys in another way with sinks than without.
    """
    heads = inputs["q"].shape[2 if "latent_cache" in inputs or "cache" in inputs else 1]
    for given in (_level(inputs), _with_an_empty_sequence(_level(inputs))):
        out, lse = run(given, params)
        sunk_out, sunk_lse = run({**given, "sinks": np.full(heads, -np.inf, np.float32)}, params)
        broken = difference(sunk_lse, lse, "lse with sinks of -inf") or difference(
            np.isnan(sunk_out.astype(np.float64)), np.isnan(out.astype(np.float64)), "NaN in out with sinks of -inf"
        )
        if broken:
            return broken
    return None


@relation("merge_attention_states")
def empty_parts_are_nothing(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """128 empty parts in front change nothing where parts weigh alike and are small integers, which add up exactly."""
    outs, lses = inputs["outs"], inputs["lses"]
    if not len(outs):
        return None
    count = 1 << (len(outs).bit_length() - 1)  # a power of two, of which every order gives the same mean
    exact = {"outs": cast(rng.integers(-8, 9, (count, *outs.shape[1:])).astype(np.float64), outs.dtype.name)}
    exact["lses"] = np.zeros((count, *lses.shape[1:]), lses.dtype)
    more = {name: np.concatenate([np.zeros((128, *x.shape[1:]), x.dtype), x]) for name, x in exact.items()}
    more["lses"][:128] = -np.inf
    for name, one, other in zip(("out", "lse"), run(more, params), run(exact, params), strict=True):
        broken = difference(one, other, f"{name} with empty parts in front")
        if broken:
            return broken
    return None
