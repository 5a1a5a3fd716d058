"""Relations of everything that works row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.formats import cast, format_of
from oracle.relations.relation import Run, difference, relation
from oracle.signature import Array

VECTOR = 16  # rows of a multiple of this many elements all begin at a multiple of a vector, or none does
ROW_INPUTS = ("x", "residual", "q", "k")  # inputs that hold one row each per row of the result


ROW_OPERATORS = (
    "rmsnorm", "gemma_rmsnorm", "t5_rmsnorm", "fused_add_rmsnorm", "qk_norm", "layernorm", "fused_add_layernorm",
    "groupnorm", "softmax", "mean", "logsumexp", "log_softmax", "cumsum",
    "rmsnorm_dynamic_quant", "layernorm_dynamic_quant", "fused_add_rmsnorm_dynamic_quant", "silu_and_mul_dynamic_quant",
    "gelu_and_mul_dynamic_quant", "relu2_and_mul_dynamic_quant", "swiglu_with_limit_dynamic_quant",
)  # fmt: skip
GAIN_OPERATORS = (
    "rmsnorm", "t5_rmsnorm", "fused_add_rmsnorm", "qk_norm", "layernorm", "fused_add_layernorm", "groupnorm",
)  # fmt: skip
GAINS = ("weight", "bias", "q_weight", "k_weight")
LEAST = 2.0**-100  # smaller results may have lost digits below the normal numbers


@relation(*ROW_OPERATORS)
def rows_are_independent(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A row's result is the same bits when the rows come in reverse order, where rows are whole vectors.

    A kernel that reads a row of any length in vectors adds it up by where in memory the row begins.
    """
    rows = {name: inputs[name] for name in ROW_INPUTS if inputs.get(name) is not None}
    if any(array.ndim < 2 or len(array) < 2 or array.shape[-1] % VECTOR for array in rows.values()):
        return None
    straight = run({**inputs, **{name: np.array(array, order="C") for name, array in rows.items()}}, params)
    turned = run({**inputs, **{name: np.array(array[::-1], order="C") for name, array in rows.items()}}, params)
    for one, other in zip(turned, straight, strict=True):
        broken = difference(one[::-1], other, "rows in reverse order")
        if broken:
            return broken
    return None


@relation(*GAIN_OPERATORS)
def gain_scales(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """Gain and bias times a power of two give the result times that power, as far as neither leaves the range."""
    gains = {name: np.array(inputs[name], order="C") for name in GAINS if inputs.get(name) is not None}
    if params.get("gain") == "one_plus_weight" or not {"weight", "q_weight"} & gains.keys():
        return None
    straight = [out for out in run(inputs, params) if out.size]
    results = [np.abs(out.astype(np.float64)) for out in straight[-2 if "q_weight" in gains else -1 :]]
    sizes = np.concatenate([array.reshape(-1).astype(np.float64) for array in (*results, *gains.values())])
    sizes = np.abs(sizes[sizes != 0])
    number_format = format_of(next(iter(gains.values())).dtype)
    least = max(LEAST, number_format.min_normal)
    if not results or not sizes.size or not np.isfinite(sizes).all() or sizes.min() < least:
        return None
    scale = 2.0 ** min(64, np.floor(np.log2(number_format.max / sizes.max())) - 2)
    if scale <= 1:
        return None
    larger = {name: _times(array, scale) for name, array in gains.items()}
    scaled = run({**inputs, **larger}, params)
    for one, other in zip(scaled[-len(results) :], straight[-len(results) :], strict=True):
        broken = difference(one, _times(other, scale), f"gain times {scale:g}")
        if broken:
            return broken
    return None


def _times(array: Array, scale: float) -> Array:
    return cast(array.astype(np.float64) * scale, array.dtype.name)
