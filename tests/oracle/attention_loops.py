"""The attentions once more, as loops over Python floats: written from the formulas, without the oracle's code."""

import math

import ml_dtypes
import numpy as np


def weighted(scores, values, sink=-math.inf, sink_in_lse=True):
    """Mean of the values (key -> list) under exp(score) and the log of the sum; a sink takes weight and gives 0."""
    if not sink_in_lse:
        return weighted(scores, values, sink)[0], weighted(scores, values)[1]
    v_dim = len(next(iter(values.values()), []))
    largest = max([*scores.values(), sink], default=-math.inf)
    if any(math.isnan(score) for score in scores.values()):
        return [math.nan] * v_dim, math.nan
    if largest == -math.inf:
        return None, -math.inf
    weights = {j: math.exp(score - largest) for j, score in scores.items()}
    total = math.fsum([*weights.values(), math.exp(sink - largest)])
    mean = [math.fsum(weights[j] * values[j][d] for j in scores) / total for d in range(v_dim)]
    return mean, largest + math.log(total)


def sees(i, j, queries, keys, causal="none", left=-1, right=-1):
    """Whether query i sees key j."""
    ahead = j - i if causal == "top_left" else j - i - keys + queries
    if causal != "none" and ahead > 0:
        return False
    if causal == "none" and right >= 0 and ahead > right:
        return False
    return left < 0 or -ahead <= left


def score_of(q, k, scale, softcap=None):
    score = scale * math.fsum(a * b for a, b in zip(q, k, strict=True))
    return score if softcap is None else softcap * math.tanh(score / softcap)


def one_head(
    q, k, v, scale, visible, softcap=None, added=lambda i, j: 0.0, sink=-math.inf, sink_in_lse=True
):  # fmt: skip
    """(queries, d), (keys, d), (keys, v_dim) as arrays; visible(i, j) and added(i, j) by index."""
    out, lse = np.zeros((len(q), v.shape[1])), np.zeros(len(q))
    q, k, v = q.tolist(), k.tolist(), v.tolist()
    for i, row in enumerate(q):
        scores = {}
        for j, key in enumerate(k):
            extra = added(i, j) if visible(i, j) else -math.inf
            if extra > -math.inf:
                scores[j] = score_of(row, key, scale, softcap) + extra
        mean, lse[i] = weighted(scores, {j: v[j] for j in scores}, sink, sink_in_lse)
        if mean:
            out[i] = mean
    return out, lse


def flash_attention(
    q, k, v, bias=None, alibi_slopes=None, sinks=None, causal="none", window_left=-1, window_right=-1, softcap=None,
    alibi="distance", scale=None, sink_in_lse=True,
):  # fmt: skip
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    batch, heads, queries, head_dim = q.shape
    keys, group = k.shape[2], heads // k.shape[1]
    out, lse = np.zeros((*q.shape[:3], v.shape[3])), np.zeros(q.shape[:3])
    for b, h in np.ndindex(batch, heads):

        def added(i, j, b=b, h=h):
            extra = 0.0
            if alibi_slopes is not None:
                away = -abs(i + keys - queries - j) if alibi == "distance" else j - keys + 1
                extra += float(alibi_slopes[h]) * away
            return extra if bias is None else extra + float(bias[b, h, i, j])

        out[b, h], lse[b, h] = one_head(
            q[b, h], k[b, h // group], v[b, h // group],
            head_dim**-0.5 if scale is None else scale,
            lambda i, j: sees(i, j, queries, keys, causal, window_left, window_right),
            softcap, added, -math.inf if sinks is None else float(sinks[h]), sink_in_lse,
        )  # fmt: skip
    return out, lse


def attention_quantised(
    q, k, v, q_scale, k_scale, v_scale, sinks=None, scales="tensor", weights="compute", out_dtype="bfloat16", **params
):
    """Every code times its scale, one by one; then as for numbers. What weights may be rounded to is no value's."""
    numbers = []
    for codes, factors in ((q, q_scale), (k, k_scale), (v, v_scale)):
        wide, group = codes.astype(np.float64), codes.shape[1] // max(k.shape[1], 1)
        for b, h, i, d in np.ndindex(codes.shape):
            wide[b, h, i, d] *= float(factors[0] if scales == "tensor" else factors[b, h // group])
        numbers.append(wide)
    return flash_attention(*numbers, None, None, sinks, **params)


def _gradients(
    dout, q, k, v, out, lse, bias=None, slopes=None, causal="none", window_left=-1, window_right=-1, softcap=None,
    alibi="distance", scale=None,
):  # fmt: skip
    """dq, dk, dv and the bias's gradient, one weight after another."""
    dout, q, k, v, out = (x.astype(np.float64) for x in (dout, q, k, v, out))
    batch, heads, queries, head_dim = q.shape
    keys, group = k.shape[2], heads // max(k.shape[1], 1)
    scale = head_dim**-0.5 if scale is None else scale
    dq, dk, dv, dbias = np.zeros(q.shape), np.zeros(k.shape), np.zeros(v.shape), np.zeros((*q.shape[:3], keys))
    for b, h, i, j in np.ndindex(batch, heads, queries, keys):
        shared, row_lse = h // group, float(lse[b, h, i])
        extra = 0.0 if bias is None else float(bias[b, h, i, j])
        if not sees(i, j, queries, keys, causal, window_left, window_right) or -math.inf in (row_lse, extra):
            continue
        if slopes is not None:
            away = -abs(i + keys - queries - j) if alibi == "distance" else j - keys + 1
            extra += float(slopes[h]) * away
        score = score_of(q[b, h, i].tolist(), k[b, shared, j].tolist(), scale, softcap)
        weight = math.exp(score + extra - row_lse)
        row = dout[b, h, i].tolist()
        change = math.fsum(d * x for d, x in zip(row, v[b, shared, j].tolist(), strict=True))
        change -= math.fsum(d * x for d, x in zip(row, out[b, h, i].tolist(), strict=True))
        dbias[b, h, i, j] = weight * change
        slope = weight * change if softcap is None else weight * change * (1.0 - (score / softcap) ** 2)
        dq[b, h, i] += scale * slope * k[b, shared, j]
        dk[b, shared, j] += scale * slope * q[b, h, i]
        dv[b, shared, j] += weight * dout[b, h, i]
    return dq, dk, dv, dbias


def attention_backward(*inputs, **params):
    return _gradients(*inputs, **params)[:3]


def attention_bias_backward(*inputs, **params):
    return _gradients(*inputs, **params)[3]


def attention_sinks_backward(dout, out, lse, sinks):
    dsinks = np.zeros(len(sinks))
    for b, h, i in np.ndindex(*lse.shape):
        if lse[b, h, i] > -math.inf:
            mean = math.fsum(float(x) * float(y) for x, y in zip(dout[b, h, i], out[b, h, i], strict=True))
            dsinks[h] -= math.exp(float(sinks[h]) - float(lse[b, h, i])) * mean
    return dsinks


def attention_varlen(q, k, v, cu_q, cu_k, used=None, bias=None, slopes=None, sinks=None, **params):
    out, lse = np.zeros((*q.shape[:2], v.shape[2])), np.zeros(q.shape[1::-1])
    for s in range(len(cu_q) - 1):
        first, last = cu_k[s], cu_k[s + 1] if used is None else cu_k[s] + used[s]
        rows = q[cu_q[s] : cu_q[s + 1]].transpose(1, 0, 2)[None]
        added = None
        if bias is not None:
            added = np.stack([bias[cu_q[s] : cu_q[s + 1], : last - first]] * q.shape[1])[None]
        mean, log_sum = flash_attention(
            rows, k[first:last].transpose(1, 0, 2)[None], v[first:last].transpose(1, 0, 2)[None], added, slopes, sinks,
            **params,
        )  # fmt: skip
        out[cu_q[s] : cu_q[s + 1]] = mean[0].transpose(1, 0, 2)
        lse[:, cu_q[s] : cu_q[s + 1]] = log_sum[0]
    return out, lse


def cell(cache, layout, what, page, place, head, d):
    """One number of a cache."""
    if layout == "plain":
        return cache[page, place, head, d]
    if layout == "heads_first":
        return cache[page, head, place, d]
    pack = cache.shape[-1]
    if what == "key":
        return cache[page, head, d // pack, place, d % pack]
    return cache[page, head, d, place] if layout == "vllm" else cache[page, head, place // pack, d, place % pack]


def paged_attention_prefill(
    q, key_cache, value_cache, edges, table, lengths, slopes=None, sinks=None, layout="plain", causal="bottom_right",
    **params,
):  # fmt: skip
    page_size = key_cache.shape[{"plain": 1, "heads_first": 2}.get(layout, 3)]
    kv_heads = key_cache.shape[2 if layout == "plain" else 1]
    head_dim, v_dim = q.shape[2], value_cache.shape[2 if layout == "vllm" else 3]
    out, lse = np.zeros((*q.shape[:2], v_dim)), np.zeros(q.shape[1::-1])
    for s, length in enumerate(lengths):
        k, v = np.zeros((1, kv_heads, length, head_dim)), np.zeros((1, kv_heads, length, v_dim))
        for t, h in np.ndindex(int(length), kv_heads):
            page, place = table[s, t // page_size], t % page_size
            k[0, h, t] = [cell(key_cache, layout, "key", page, place, h, d) for d in range(head_dim)]
            v[0, h, t] = [cell(value_cache, layout, "value", page, place, h, d) for d in range(v_dim)]
        rows = slice(edges[s], edges[s + 1])
        mean, log_sum = flash_attention(
            q[rows].transpose(1, 0, 2)[None], k, v, None, slopes, sinks, causal=causal, **params
        )
        out[rows], lse[:, rows] = mean[0].transpose(1, 0, 2), log_sum[0]
    return out, lse


def paged_attention_decode(q, key_cache, value_cache, table, lengths, slopes=None, sinks=None, **params):
    out, lse = paged_attention_prefill(
        q, key_cache, value_cache, range(len(q) + 1), table, lengths, slopes, sinks, **params
    )
    return out, lse.T


def mla_decode(
    q, cache, table, lengths, sinks=None, latent_dim=512, window_left=-1, softcap=None, scale=None, sink_in_lse=True
):
    sequences, queries, heads, size = q.shape
    out, lse = np.zeros((sequences, queries, heads, latent_dim)), np.zeros((sequences, queries, heads))
    for s, n in enumerate(lengths):
        rows = np.array([cache[table[s, t // cache.shape[1]], t % cache.shape[1]] for t in range(n)]).reshape(n, size)
        for h in range(heads):
            out[s, :, h], lse[s, :, h] = one_head(
                q[s, :, h].astype(float), rows.astype(float), rows[:, :latent_dim].astype(float),
                size**-0.5 if scale is None else scale,
                lambda i, j, n=n: sees(i, j, queries, n, "bottom_right", window_left), softcap,
                sink=-math.inf if sinks is None else float(sinks[h]), sink_in_lse=sink_in_lse,
            )  # fmt: skip
    return out, lse


def mla_decode_quantised(
    q, latent, rope, factor, table, lengths, sinks=None, scales="tile", dequantised="compute", **params
):
    """Every code times its scale, one by one; then as for numbers."""
    size = latent.shape[2]
    cache = np.zeros((*latent.shape[:2], size + rope.shape[2]))
    for page, place, column in np.ndindex(cache.shape):
        coded = column < size or scales == "tensor"
        number = float(latent[page, place, column] if column < size else rope[page, place, column - size])
        if coded:
            tile = 0 if scales == "tensor" else column * factor.shape[2] // size
            number *= float(factor[0] if scales == "tensor" else factor[page, place, tile])
            number = float(_rounded_once(np.float64(number), ROUNDED[dequantised]))
        cache[page, place, column] = number
    return mla_decode(q, cache, table, lengths, sinks, latent_dim=size, **params)


def mla_prefill(q, k_nope, k_rope, v, cu_q, cu_k, sinks=None, causal="bottom_right", **params):
    k = np.zeros((*k_nope.shape[:2], q.shape[2]))
    for t, h in np.ndindex(*k_nope.shape[:2]):
        k[t, h] = [*k_nope[t, h], *k_rope[t]]
    return attention_varlen(q, k, v, cu_q, cu_k, sinks=sinks, causal=causal, **params)


def merge_attention_states(outs, lses, base="e"):
    splits, tokens, heads, v_dim = outs.shape
    out, lse = np.zeros((tokens, heads, v_dim)), np.full((tokens, heads), -np.inf)
    unit = 1.0 if base == "e" else math.log(2.0)
    for t, h in np.ndindex(tokens, heads):
        scores = {s: unit * float(lses[s, t, h]) for s in range(splits) if lses[s, t, h] > -np.inf}
        mean, log_sum = weighted(scores, {s: outs[s, t, h].astype(float).tolist() for s in scores})
        if mean:
            out[t, h] = mean
        lse[t, h] = log_sum / unit
    return out, lse


ROUNDED = {"compute": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def _dequantised(key_cache, value_cache, k_scale, v_scale, layout, scales, dequantised):
    """Every code times its scale, one by one, and rounded where that is asked for."""
    axes = {"plain": (0, 1, 2), "heads_first": (0, 2, 1), "vllm": (0, 3, 1), "aiter_asm": (0, 3, 1)}
    caches = []
    for cache, factors, value in ((key_cache, k_scale, False), (value_cache, v_scale, True)):
        wide = cache.astype(np.float64)
        for at in np.ndindex(cache.shape):
            page, place, head = (at[axis] for axis in axes[layout])
            if value and layout == "aiter_asm":
                place = at[2] * cache.shape[-1] + at[4]  # in the others the axis of places is that of the keys
            which = {"tensor": 0, "head": head, "token": (page, place, head)}[scales]
            wide[at] *= float(factors[which])
        caches.append(_rounded_once(wide, ROUNDED[dequantised]))
    return caches


def _rounded_once(wide, dtype):
    """float64 to a dtype and back; ml_dtypes goes through float32, so what lies next to a tie there is rounded here."""
    if dtype != ml_dtypes.bfloat16:
        return wide.astype(dtype).astype(np.float64)
    bits = np.frexp(wide)[1]
    step = np.ldexp(1.0, np.maximum(bits - 8, -133))
    return np.where(np.isfinite(wide), np.rint(wide / step) * step, wide)


def paged_attention_decode_quantised(
    q, key_cache, value_cache, k_scale, v_scale, table, lengths, sinks=None, layout="plain", scales="tensor",
    dequantised="compute", **params,
):  # fmt: skip
    caches = _dequantised(key_cache, value_cache, k_scale, v_scale, layout, scales, dequantised)
    return paged_attention_decode(q, *caches, table, lengths, sinks=sinks, layout=layout, **params)


def paged_attention_prefill_quantised(
    q, key_cache, value_cache, k_scale, v_scale, edges, table, lengths, sinks=None, layout="plain", scales="tensor",
    dequantised="compute", **params,
):  # fmt: skip
    caches = _dequantised(key_cache, value_cache, k_scale, v_scale, layout, scales, dequantised)
    return paged_attention_prefill(q, *caches, edges, table, lengths, None, sinks, layout=layout, **params)
