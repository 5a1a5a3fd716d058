"""Reductions, activations, norms and rotations by ONNX nodes.

Source: onnx/docs/Operators.md (operator set 23) and onnxruntime/docs/ContribOperators.md (1.23).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from refsim.conformance.backends.library import Inputs, in_dtype, term_by_term
from refsim.conformance.backends.onnxruntime.nodes import CONTRIB, Array, node
from refsim.conformance.backends.onnxruntime.table import NARROW, TABLE

SHORT = ("float16", "bfloat16", "float32")
LAST = np.array([-1], np.int64)


@TABLE.serves("sum", "ReduceSum")
def onnx_sum(x: Array, axis: int | None) -> Any:
    """``ReduceSum``; over all axes where none is given."""
    return node("ReduceSum", x, None if axis is None else np.array([axis], np.int64), keepdims=0)


@TABLE.serves("mean", "ReduceMean")
def mean(x: Array) -> Any:
    """``ReduceMean``."""
    return node("ReduceMean", x, LAST, keepdims=0)


@TABLE.serves("max", "ReduceMax")
def largest(x: Array) -> Any:
    """``ReduceMax``."""
    return node("ReduceMax", x, LAST, keepdims=0)


@TABLE.serves("logsumexp", "ReduceLogSumExp")
def logsumexp(x: Array) -> Any:
    """``ReduceLogSumExp``."""
    return node("ReduceLogSumExp", x, LAST, keepdims=0)


@TABLE.serves("argmax", "ArgMax")
def argmax(x: Array, ties: str) -> Any:
    """``ArgMax``, whose int64 is handed on as int32."""
    return node("ArgMax", x, axis=-1, keepdims=0, select_last_index=int(ties == "highest")).astype(np.int32)


@TABLE.serves("greedy", "ArgMax")
def greedy(logits: Array) -> Any:
    """``ArgMax``."""
    return argmax(logits, "lowest")


@TABLE.serves("topk", "TopK")
def topk(x: Array, k: int, ordered: bool) -> Any:
    """``TopK``, which gives equals by their index."""
    values, indices = node("TopK", x, np.array([k], np.int64), outputs=2, axis=-1, sorted=int(ordered))
    return indices.astype(np.int32), values


@TABLE.serves("cumsum", "CumSum")
def cumsum(x: Array, exclusive: bool) -> Any:
    """``CumSum``."""
    return node("CumSum", x, np.array(-1, np.int64), exclusive=int(exclusive))


@TABLE.serves("softmax", "Softmax")
def softmax(x: Array) -> Any:
    """``Softmax``."""
    return node("Softmax", x, axis=-1)


@TABLE.serves("log_softmax", "LogSoftmax")
def log_softmax(x: Array) -> Any:
    """``LogSoftmax``."""
    return node("LogSoftmax", x, axis=-1)


def _gate_and_value(x: Array, bias: Array | None, pairing: str) -> tuple[Array, Array]:
    x = x if bias is None else node("Add", x, bias)
    half = x.shape[-1] // 2
    return (x[..., :half], x[..., half:]) if pairing == "halves" else (x[..., ::2], x[..., 1::2])


@TABLE.serves("gelu_and_mul", "Gelu", numerics=in_dtype)
def gelu_and_mul(x: Array, bias: Array | None, pairing: str, approximate: str, rounding: str) -> Any:
    """``Gelu`` of the gate, ``Mul`` by the value."""
    gate, value = _gate_and_value(x, bias, pairing)
    return node("Mul", node("Gelu", gate, approximate=approximate), value)


@TABLE.serves("silu_and_mul", "com.microsoft.QuickGelu", numerics=in_dtype)
def silu_and_mul(x: Array, bias: Array | None, pairing: str, rounding: str) -> Any:
    """``QuickGelu`` with alpha = 1, which is SiLU, of the gate; ``Mul`` by the value."""
    gate, value = _gate_and_value(x, bias, pairing)
    return node("Mul", node("QuickGelu", gate, domain=CONTRIB, alpha=1.0), value)


@TABLE.serves("relu2_and_mul", "Relu", numerics=in_dtype)
def relu2_and_mul(x: Array, bias: Array | None, pairing: str, rounding: str) -> Any:
    """``Relu`` of the gate, ``Mul`` by itself and by the value."""
    gate, value = _gate_and_value(x, bias, pairing)
    positive = node("Relu", gate)
    return node("Mul", node("Mul", positive, positive), value)


@TABLE.serves("swiglu_with_limit", "com.microsoft.QuickGelu", NARROW, numerics=in_dtype)
def swiglu_with_limit(x: Array, bias: Array | None, pairing: str, alpha: float, limit: float) -> Any:
    """``Clip``, ``QuickGelu`` of the gate, ``Mul`` by the value and 1."""
    gate, value = _gate_and_value(x, bias, pairing)
    most = np.array(limit, x.dtype)
    gate, value = node("Clip", gate, None, most), node("Clip", value, -most, most)
    return node("Mul", node("QuickGelu", gate, domain=CONTRIB, alpha=alpha), node("Add", value, np.array(1, x.dtype)))


def _weighted(inputs: Inputs, params: Mapping[str, Any]) -> str | None:
    return "the node must have a scale, and weight is left out" if inputs["weight"] is None else None


def _weighted_and_biased(inputs: Inputs, params: Mapping[str, Any]) -> str | None:
    absent = [name for name in ("weight", "bias") if inputs[name] is None]
    return f"the node must have scale and bias, and {absent[0]} is left out" if absent else None


@TABLE.serves("layernorm", "LayerNormalization", NARROW, refuses=_weighted)
def layernorm(x: Array, weight: Array, bias: Array | None, eps: float) -> Any:
    """``LayerNormalization``."""
    return node("LayerNormalization", x, weight, bias, axis=-1, epsilon=eps)


@TABLE.serves("groupnorm", "GroupNormalization", NARROW, refuses=_weighted_and_biased)
def groupnorm(x: Array, weight: Array, bias: Array, groups: int, eps: float) -> Any:
    """``GroupNormalization``, a function of other nodes."""
    return node("GroupNormalization", x, weight, bias, num_groups=groups, epsilon=eps)


@TABLE.serves("rmsnorm", "RMSNormalization", NARROW)
def rmsnorm(x: Array, weight: Array, eps: float) -> Any:
    """``RMSNormalization``."""
    return node("RMSNormalization", x, weight, axis=-1, epsilon=eps)


@TABLE.serves("rmsnorm", "SimplifiedLayerNormalization", SHORT)
def simplified_layer_normalization(x: Array, weight: Array, eps: float) -> Any:
    """``SimplifiedLayerNormalization``, the contributed form of the default domain."""
    return node("SimplifiedLayerNormalization", x, weight, axis=-1, epsilon=eps, stash_type=1)


@TABLE.serves(
    "fused_add_rmsnorm",
    "com.microsoft.SkipSimplifiedLayerNormalization",
    SHORT,
    only={"gain": ("weight",), "normalised": ("unrounded",), "rounding": ("once",)},
)
def fused_add_rmsnorm(x: Array, residual: Array, weight: Array, eps: float) -> Any:
    """``SkipSimplifiedLayerNormalization``, whose fourth output is the sum."""
    out, total = node(
        "SkipSimplifiedLayerNormalization",
        x, residual, weight,
        outputs=(True, False, False, True), domain=CONTRIB, epsilon=eps,
    )  # fmt: skip
    return total, out


@TABLE.serves(
    "fused_add_layernorm",
    "com.microsoft.SkipLayerNormalization",
    SHORT,
    only={"normalised": ("unrounded",)},
    numerics=term_by_term,
    refuses=_weighted,
)
def fused_add_layernorm(x: Array, residual: Array, weight: Array, bias: Array | None, eps: float) -> Any:
    """``SkipLayerNormalization``, whose fourth output is the sum."""
    out, total = node(
        "SkipLayerNormalization",
        x, residual, weight, bias,
        outputs=(True, False, False, True), domain=CONTRIB, epsilon=eps,
    )  # fmt: skip
    return total, out


def _rotated(x: Array, positions: Array, cos: Array, sin: Array, pairing: str) -> Array:
    """``RotaryEmbedding`` of sequences of one token: longer ones than the tables it refuses."""
    out: Array = node(
        "RotaryEmbedding",
        x[:, :, None], cos, sin, positions.astype(np.int64)[:, None],
        interleaved=int(pairing == "gptj"), rotary_embedding_dim=2 * cos.shape[-1],
    )  # fmt: skip
    return out[:, :, 0]


def _turns(inputs: Inputs, params: Mapping[str, Any]) -> str | None:
    cos = inputs["cos"]
    assert cos is not None
    return None if cos.shape[-1] else "the node takes no tables without columns"


@TABLE.serves("rope", "RotaryEmbedding", NARROW, refuses=_turns)
def rope(x: Array, positions: Array, cos: Array, sin: Array, pairing: str) -> Any:
    """``RotaryEmbedding``."""
    return _rotated(x, positions, cos, sin, pairing)


@TABLE.serves("rope_backward", "RotaryEmbedding", NARROW, refuses=_turns)
def rope_backward(grad: Array, positions: Array, cos: Array, sin: Array, pairing: str) -> Any:
    """``RotaryEmbedding`` with ``Neg`` of the sines."""
    return _rotated(grad, positions, cos, node("Neg", sin), pairing)


@TABLE.serves("rope_qk", "RotaryEmbedding", NARROW, only={"plain_first": (False,)}, refuses=_turns)
def rope_qk(q: Array, k: Array, positions: Array, cos: Array, sin: Array, offsets: Array | None, pairing: str) -> Any:
    """``RotaryEmbedding`` of each, the offsets added by ``Add``."""
    rows = positions if offsets is None else node("Add", positions.astype(np.int64), offsets.astype(np.int64))
    return _rotated(q, rows, cos, sin, pairing), _rotated(k, rows, cos, sin, pairing)


@TABLE.serves("rope_table", "Cos", numerics=in_dtype)
def rope_table(frequencies: Array, positions: Array, factor: float, magnitude: float) -> Any:
    """``Cos`` and ``Sin`` of ``Mul`` and ``Div``."""
    dtype = frequencies.dtype
    angle = node("Div", node("Mul", positions.astype(dtype)[:, None], frequencies), np.array(factor, dtype))
    return tuple(node("Mul", node(op_type, angle), np.array(magnitude, dtype)) for op_type in ("Cos", "Sin"))


@TABLE.serves("temperature_softmax", "Softmax")
def temperature_softmax(logits: Array, temperature: Array) -> Any:
    """``Softmax`` of ``Div`` in float32 at least; ``OneHot`` of ``ArgMax`` where the temperature is 0."""
    wide = np.promote_types(logits.dtype, np.float32).type
    cold = temperature[:, None] == 0
    divisor = node("Where", cold, np.array(1, wide), temperature.astype(wide)[:, None])
    share = node("Softmax", node("Div", logits.astype(wide), divisor), axis=-1)
    places = node("ArgMax", logits, axis=-1, keepdims=0)
    best = node("OneHot", places, np.array(logits.shape[-1], np.int64), np.array([0, 1], np.float32), axis=-1)
    return node("Where", cold, best.astype(wide), share)
