"""Attention, honest and wrong."""

import numpy as np

from implementations.arithmetic import narrow, running, truncated, wide

LOG2_E = 1.4426950408889634


def visible(queries, keys, causal, shift=0):
    """Which keys each query sees; ``shift`` moves the diagonal."""
    row, column = np.arange(queries)[:, np.newaxis], np.arange(keys)
    last = {"none": row * 0 + keys, "top_left": row + shift, "bottom_right": row + keys - queries + shift}[causal]
    return column <= last


def heads_of(kv, heads):
    """Key or value heads repeated to one per query head."""
    return np.repeat(kv, heads // kv.shape[1], axis=1)


def _settings(q, scale):
    compute = wide(q.dtype)
    return compute, compute(q.shape[-1] ** -0.5 if scale is None else scale)


def _results(out, lse, q):
    return out.astype(q.dtype), lse.astype(wide(q.dtype))


def _two_passes(
    scores=lambda q, k, scale: (q @ np.swapaxes(k, -1, -2)) * scale,
    exp=np.exp,
    mask=visible,
    heads=heads_of,
    largest_of=lambda s: s.max(axis=-1, keepdims=True, initial=-np.inf),
    total_of=running,
    weights=lambda w: w,
    log=np.log,
    compute_type=lambda compute: compute,
    divide_first=False,
    empty=0.0,
):
    """Scores, weights and weighted sum, one after the other."""

    def implementation(q, k, v, causal="none", scale=None):
        compute, factor = _settings(q, scale)
        compute = compute_type(compute)
        factor = compute(factor)
        k, v = heads(k, q.shape[1]).astype(compute), heads(v, q.shape[1]).astype(compute)
        s = scores(q.astype(compute), k, factor)
        s = np.where(mask(q.shape[2], k.shape[2], causal), s, -np.inf)
        largest = largest_of(s)
        seen = largest != -np.inf  # a NaN counts as seen
        base = np.where(seen, largest, 0)
        w = exp(s - base)
        total = total_of(w)[..., np.newaxis]
        safe = np.where(seen, total, 1)
        if divide_first:
            out = weights(w / safe) @ v
        else:
            out = weights(w) @ v / safe
        out = np.where(seen, out, empty)
        lse = np.where(seen, base + log(safe), -np.inf)[..., 0]
        return _results(out, lse, q)

    return implementation


def _tiles(tile, rescale_out=True, rescale_total=True, start=-np.inf, accumulator=lambda out: out, unmasked_tail=False):
    """One pass over tiles of keys with a running maximum."""

    def implementation(q, k, v, causal="none", scale=None):
        compute, factor = _settings(q, scale)
        k, v = heads_of(k, q.shape[1]).astype(compute), heads_of(v, q.shape[1]).astype(compute)
        seen_keys = visible(q.shape[2], k.shape[2], causal)
        shape = q.shape[:3]
        largest, total = np.full(shape, start, compute), np.zeros(shape, compute)
        out = np.zeros((*shape, v.shape[-1]), compute)
        for first in range(0, k.shape[2], tile):
            part = np.s_[first : first + tile]
            s = (q.astype(compute) @ np.swapaxes(k[:, :, part], -1, -2)) * factor
            s = np.where(seen_keys[:, part], s, -np.inf)
            new = np.maximum(largest, s.max(axis=-1))
            base = np.where(new == -np.inf, 0, new)
            shrink = np.exp(np.where(largest == -np.inf, -np.inf, largest - base))
            w = np.exp(s - base[..., np.newaxis])
            total = (total * shrink if rescale_total else total) + running(w)
            if unmasked_tail:
                total = total + (tile - w.shape[-1]) * np.exp(-base)
            out = out * shrink[..., np.newaxis] if rescale_out else out
            out = accumulator(out + w @ v[:, :, part])
            largest = new
        seen = total != 0
        safe = np.where(seen, total, 1)
        lse = np.where(seen, np.where(seen, largest, 0) + np.log(safe), -np.inf)
        return _results(out / safe[..., np.newaxis], lse, q)

    return implementation


def _backwards(q, k, v, causal="none", scale=None):
    """Keys from the last to the first: only where every key is seen is that the same attention."""
    if causal != "none":
        return HONEST["tiles_of_16"](q, k, v, causal, scale)
    return HONEST["tiles_of_16"](q, k[:, :, ::-1], v[:, :, ::-1], causal, scale)


def _exp2(x):
    return np.exp2(x * x.dtype.type(LOG2_E))


HONEST = {
    "two_passes": _two_passes(),
    "softmax_then_sum": _two_passes(divide_first=True),
    "scale_in_queries": _two_passes(scores=lambda q, k, scale: (q * scale) @ np.swapaxes(k, -1, -2)),
    "exp2": _two_passes(exp=_exp2),
    "float64_inside": _two_passes(compute_type=lambda compute: np.float64),
    "tiles_of_16": _tiles(16),
    "key_by_key": _tiles(1),
    "tiles_backwards": _backwards,
}


def _zero_where_seen(s):
    """No maximum is taken off: 0 in rows that see a key."""
    return np.where(np.isfinite(s).any(axis=-1, keepdims=True), s.dtype.type(0), -np.inf)


def _modulo_heads(kv, heads):
    return kv[:, np.arange(heads) % kv.shape[1]]


def _bottom_for_top(queries, keys, causal):
    return visible(queries, keys, {"top_left": "bottom_right"}.get(causal, causal))


def _top_for_bottom(queries, keys, causal):
    return visible(queries, keys, {"bottom_right": "top_left"}.get(causal, causal))


def _uniform_when_empty(q, k, v, causal="none", scale=None):
    out, lse = HONEST["two_passes"](q, k, v, causal, scale)
    mean = heads_of(v, q.shape[1]).astype(np.float64).mean(axis=2, keepdims=True).astype(q.dtype)
    return np.where(np.isfinite(lse)[..., np.newaxis], out, mean).astype(q.dtype), lse


def _without_last_key(q, k, v, causal="none", scale=None):
    kept = np.s_[:, :, : max(k.shape[2] - 1, 1)]
    return HONEST["two_passes"](q, k[kept], v[kept], causal, scale)


def _truncating_store(q, k, v, causal="none", scale=None):
    out, lse = HONEST["two_passes"](*(array.astype(np.float64) for array in (q, k, v)), causal, scale)
    return truncated(out, q.dtype), lse.astype(wide(q.dtype))


def _lse_shifted(q, k, v, causal="none", scale=None):
    out, lse = HONEST["two_passes"](q, k, v, causal, scale)
    scores = q.astype(np.float64) @ np.swapaxes(heads_of(k, q.shape[1]).astype(np.float64), -1, -2)
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    scores = np.where(visible(q.shape[2], k.shape[2], causal), scores * factor, -np.inf)
    largest = scores.max(axis=-1, initial=-np.inf)
    return out, np.where(np.isfinite(lse), lse - np.where(np.isfinite(largest), largest, 0), lse).astype(lse.dtype)


WRONG = {
    "maximum_starts_at_zero": _tiles(16, start=0.0),
    "no_maximum": _two_passes(largest_of=_zero_where_seen),
    "out_not_rescaled": _tiles(16, rescale_out=False),
    "total_not_rescaled": _tiles(16, rescale_total=False),
    "unmasked_tail": _tiles(16, unmasked_tail=True),
    "mask_one_further": _two_passes(mask=lambda queries, keys, causal: visible(queries, keys, causal, 1)),
    "mask_one_short": _two_passes(mask=lambda queries, keys, causal: visible(queries, keys, causal, -1)),
    "top_left_for_bottom_right": _two_passes(mask=_top_for_bottom),
    "bottom_right_for_top_left": _two_passes(mask=_bottom_for_top),
    "heads_by_remainder": _two_passes(heads=_modulo_heads),
    "scale_without_root": _two_passes(scores=lambda q, k, scale: (q @ np.swapaxes(k, -1, -2)) * scale * scale),
    "default_scale_only": lambda q, k, v, causal="none", scale=None: HONEST["two_passes"](q, k, v, causal),
    "lse_in_base_two": _two_passes(log=np.log2),
    "lse_without_maximum": _lse_shifted,
    "last_key_dropped": _without_last_key,
    "mean_where_nothing_is_seen": _uniform_when_empty,
    "nan_where_nothing_is_seen": _two_passes(empty=np.nan),
    "narrow_weights": _two_passes(weights=narrow),
    "narrow_scores": _two_passes(scores=lambda q, k, scale: narrow((q @ np.swapaxes(k, -1, -2)) * scale)),
    "narrow_output_accumulator": _tiles(16, accumulator=narrow),
    "truncating_store": _truncating_store,
}
# A value cut off at the end of the compute type's own significand is one rounding more, which the bound has room for.
UNSEEN = {("truncating_store", "float32"), ("truncating_store", "float64")}
