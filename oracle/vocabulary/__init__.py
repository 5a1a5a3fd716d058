"""Words an operator says to declare what honest kernels may do; on plain float arrays they are ordinary arithmetic.

An operator is plain NumPy. The same code runs on float64 arrays (the value) and on `oracle.error.ErrorBounded` arrays
(value, bound, sigma). NumPy code does not show which rewrites are legal, so an operator names them with these words. On
float arrays each word returns the plain value named in its docstring, so the formula stays readable and the value does
not change.

How to write the operators of this package
------------------------------------------

**Sum**: ``np.sum(x, axis=axis)``. One sum over all axes at once, never a sum of sums: any order is covered then.

**Softmax**: one pass, online tiles and exp2 forms are all covered by::

    shift = pivot(np.max(x, axis=-1, keepdims=True))         # cancels in the quotient: its error does not count
    weight = rescaled(np.exp(x - shift))                     # an online softmax rescales its weights per tile
    total = np.sum(weight, axis=-1, keepdims=True)
    return hull(weight / total, 0.0, 1.0, terms=x.shape[-1])  # a weight never leaves [0, 1]

**Matrix product**: the bias may be what the accumulator starts from, so it is not a plain ``+``::

    product = a @ b
    return product if bias is None else accumulate(product, bias)

**Product of quantised codes**: scales on the codes or on partial sums, each a factor that broadcasts::

    product = scaled_matmul(a, (a_scale[:, None],), b.T, (b_scale,))

**RMSNorm**: ``x / sqrt(..) * w``, ``x * rsqrt(..) * w``, ``(x * w) * r`` are one freedom, `chain`::

    mean_square = np.mean(x * x, axis=-1, keepdims=True)
    return chain(x, rsqrt(mean_square + eps), weight)

**LayerNorm**: the variance feels an error of the mean in second order only, and may be Welford's where granted::

    mean, variance = moments(x)
    return chain(x - mean, rsqrt(variance + eps), weight) + bias

**Attention**: flash-style tiles, exp or exp2, scale applied to q or to the scores::

    scores = scaled(q @ np.swapaxes(k, -1, -2), scale)       # scale folded into q, or applied afterwards
    scores = np.where(visible, scores, -np.inf)              # visible: plain bool array
    seen = np.any(visible, axis=-1, keepdims=True)           # plain bool array
    shift = pivot(np.where(seen, np.max(scores, axis=-1, keepdims=True, initial=-np.inf), 0.0))
    weight = rescaled(np.exp(scores - shift))                # exp(-inf) is exactly 0
    total = np.where(seen, np.sum(weight, axis=-1, keepdims=True), 1.0)
    out = (may_round(weight) @ v) / total                    # weights may be stored in a narrower format
    out = hull(out, np.min(v, axis=-2, keepdims=True), np.max(v, axis=-2, keepdims=True), terms=k.shape[-2])
    lse = np.where(seen, shift + np.log(total), -np.inf)[..., 0]

Rows that see nothing come out as exactly 0 (weights 0, total 1) and exactly -inf. ``np.max`` and ``np.min`` of zero
keys need ``initial=``. Grouped heads: reshape q to (batch, kv_heads, group, queries, d) and k to
(batch, kv_heads, 1, keys, d). A quotient of a matrix product also covers kernels that divide the weights first.

**Formulas that are equal**, of which a kernel may evaluate any: the value is that of the first::

    either(1.0 + np.tanh(z), 2.0 * sigmoid(2.0 * z))

**Linear recurrences**: step by step; a kernel that is granted chunks solves for several steps at once::

    out, state = in_chunks(step_by_step, lambda size: (chunked_out, chunked_state), steps)

**Quantisation**: the scale is an output of the first stage, the codes of a stage that starts from the scale that was
returned; what lies within the errors of a quotient on either side of a step is right::

    scale = stepped(amax / largest, up_to_a_power_of_two)    # a rising function with steps
    codes = coded(x / scale, "int8", "toward_zero")          # rounded in a given direction, saturated

**RoPE**: products and a sum; FMA is covered; untouched lanes are copied and so stay bitwise::

    c, s = cos[positions][:, None, :], sin[positions][:, None, :]
    rotated = np.concatenate([x1 * c - x2 * s, x2 * c + x1 * s, tail], axis=-1)       # NeoX
    pairs = np.stack([x1 * c - x2 * s, x2 * c + x1 * s], axis=-1)                     # GPT-J: reshape afterwards

Rules
-----
Constants such as ``eps`` are Python floats (rounded to the compute format by the analysis where they are not
representable). Use shapes, never values, in ``if``; ``np.where`` takes plain or three-valued conditions. Write into
``np.zeros_like(x)`` or ``np.empty_like(x)``, not ``np.zeros(shape)``. ``astype``, ``float()``, ``np.array([...])``,
``np.sort``, ``np.rint`` and ``np.sign`` are refused on error-bounded arrays. Integer and bool arrays stay plain.
"""

from oracle.vocabulary.alternatives import either
from oracle.vocabulary.chunks import chunk_operand, in_chunks
from oracle.vocabulary.discrete import chosen, coded, exact_value, located, stepped
from oracle.vocabulary.functions import erf, rsqrt, sigmoid, softplus
from oracle.vocabulary.moments import moments
from oracle.vocabulary.products import accumulate, chain, scaled
from oracle.vocabulary.quantised import scaled_matmul
from oracle.vocabulary.roundings import may_round, round_to_format
from oracle.vocabulary.softmax import hull, pivot, rescaled

__all__ = [
    "accumulate",
    "chain",
    "chosen",
    "chunk_operand",
    "coded",
    "either",
    "erf",
    "exact_value",
    "hull",
    "in_chunks",
    "located",
    "may_round",
    "moments",
    "pivot",
    "rescaled",
    "round_to_format",
    "rsqrt",
    "scaled",
    "scaled_matmul",
    "sigmoid",
    "softplus",
    "stepped",
]
