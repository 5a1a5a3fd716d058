"""The operators once more, as loops over Python floats: written from the formulas, without the oracle's code."""

import itertools
import math

import numpy as np


def _empty(shape):
    return np.zeros(shape)


def sum(x, axis=None):
    if axis is None:
        return np.array(math.fsum(float(x[index]) for index in np.ndindex(x.shape)))
    axis %= x.ndim
    out = _empty(x.shape[:axis] + x.shape[axis + 1 :])
    for index in np.ndindex(out.shape):
        out[index] = math.fsum(float(x[(*index[:axis], at, *index[axis:])]) for at in range(x.shape[axis]))
    return out


def softmax(x):
    out = _empty(x.shape)
    for row in np.ndindex(x.shape[:-1]):
        values = [float(value) for value in x[row]]
        if not values:
            continue
        largest = max(values)
        total = math.fsum(math.exp(value - largest) for value in values)
        for column, value in enumerate(values):
            out[(*row, column)] = math.exp(value - largest) / total
    return out


def matmul(a, b, bias=None, transpose_a=False, transpose_b=False):
    m, k = a.shape[::-1] if transpose_a else a.shape
    n = b.shape[0] if transpose_b else b.shape[1]
    out = _empty((m, n))
    for i, j in itertools.product(range(m), range(n)):
        terms = []
        for at in range(k):
            left = a[at, i] if transpose_a else a[i, at]
            right = b[j, at] if transpose_b else b[at, j]
            terms.append(float(left) * float(right))
        out[i, j] = math.fsum(terms) + (0.0 if bias is None else float(bias[j]))
    return out


def rmsnorm(x, weight, eps=1e-6):
    out = _empty(x.shape)
    for row in range(x.shape[0]):
        values = [float(value) for value in x[row]]
        rms = math.sqrt(math.fsum(value * value for value in values) / len(values) + eps)
        for column, value in enumerate(values):
            out[row, column] = value / rms * float(weight[column])
    return out


def sees(causal, query, key, queries, keys):
    if causal == "top_left":
        return key <= query
    if causal == "bottom_right":
        return key - keys <= query - queries
    return True


def attention(q, k, v, causal="none", scale=None):
    batch, heads, queries, head_dim = q.shape
    kv_heads, keys, v_dim = v.shape[1:]
    scale = head_dim**-0.5 if scale is None else scale
    out, lse = _empty((batch, heads, queries, v_dim)), _empty((batch, heads, queries))
    for b, h, i in np.ndindex(batch, heads, queries):
        source = h // (heads // kv_heads)
        scores = {}
        for j in range(keys):
            if sees(causal, i, j, queries, keys):
                products = (float(q[b, h, i, d]) * float(k[b, source, j, d]) for d in range(head_dim))
                scores[j] = scale * math.fsum(products)
        if not scores:
            lse[b, h, i] = -math.inf
            continue
        largest = max(scores.values())
        weights = {j: math.exp(score - largest) for j, score in scores.items()}
        total = math.fsum(weights.values())
        lse[b, h, i] = largest + math.log(total)
        for d in range(v_dim):
            out[b, h, i, d] = math.fsum(weight * float(v[b, source, j, d]) for j, weight in weights.items()) / total
    return out, lse


def rope(x, positions, cos, sin, pairing="neox"):
    out = np.array(x, np.float64)
    half = cos.shape[1]
    for token, head, j in np.ndindex(x.shape[0], x.shape[1], half):
        first, second = (j, j + half) if pairing == "neox" else (2 * j, 2 * j + 1)
        c, s = float(cos[positions[token], j]), float(sin[positions[token], j])
        a, b = float(x[token, head, first]), float(x[token, head, second])
        out[token, head, first] = a * c - b * s
        out[token, head, second] = b * c + a * s
    return out
