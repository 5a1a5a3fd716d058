"""Products, attention, convolutions, quantisation and caches by ONNX nodes.

Source: onnx/docs/Operators.md (operator set 23) and onnxruntime/docs/ContribOperators.md (1.23, 1.32).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from refsim.conformance.backends.library import Inputs, in_dtype
from refsim.conformance.backends.onnxruntime.nodes import CONTRIB, TYPES, Array, node
from refsim.conformance.backends.onnxruntime.table import NARROW, TABLE

FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


@TABLE.serves("matmul", "Gemm")
def matmul(a: Array, b: Array, bias: Array | None, transpose_a: bool, transpose_b: bool) -> Any:
    """``Gemm``."""
    return node("Gemm", a, b, bias, transA=int(transpose_a), transB=int(transpose_b))


@TABLE.serves("matmul", "MatMul")
def matmul_plain(a: Array, b: Array) -> Any:
    """``MatMul``."""
    return node("MatMul", a, b)


@TABLE.serves("batched_matmul", "MatMul", numerics=in_dtype)
def batched_matmul(a: Array, b: Array, bias: Array | None) -> Any:
    """``MatMul``, and ``Add`` of its rounded result."""
    product = node("MatMul", a, b)
    return product if bias is None else node("Add", product, bias[:, None])


@TABLE.serves("gemm_epilogue", "Gemm", NARROW, only={"activation": ("none",)})
def gemm_epilogue(
    a: Array, b: Array, c: Array | None, *, alpha: float, beta: float, transpose_a: bool, transpose_b: bool
) -> Any:
    """``Gemm`` with alpha, beta and C."""
    flags: dict[str, Any] = {"transA": int(transpose_a), "transB": int(transpose_b)}
    return node("Gemm", a, b, c if beta else None, alpha=alpha, beta=beta, **flags)


@TABLE.serves("matmul_a8w8", "MatMulInteger", dtypes=("int8",))
def matmul_a8w8(a: Array, b: Array, a_scale: Array, b_scale: Array, bias: Array | None, out_dtype: str) -> Any:
    """``MatMulInteger``, ``Cast`` to float32, ``Mul`` by the scales, ``Add`` and ``Cast``."""
    product = node("Cast", node("MatMulInteger", a, b.T), to=TYPES["float32"])
    product = node("Mul", product, node("Mul", a_scale[:, None], b_scale))
    product = product if bias is None else node("Add", product, bias)
    return node("Cast", product, to=TYPES[out_dtype])


@TABLE.serves(
    "matmul_w4a16",
    "com.microsoft.MatMulNBits",
    dtypes=("float16", "float32"),
    only={"weights": ("exact",), "first_nibble": ("low",), "zero_offset": (0,)},
)
def matmul_w4a16(a: Array, b: Array, scale: Array, zero: Array | None, bias: Array | None, group: int) -> Any:
    """``MatMulNBits`` with 4 bits; k is filled up to whole groups with codes of 0 in b."""
    n, half = b.shape
    groups = scale.shape[1]
    codes = np.zeros((n, groups * group // 2), np.uint8)
    codes[:, :half] = b
    points = None
    if zero is not None:
        even = np.pad(zero, ((0, 0), (0, groups % 2)))
        points = (even[:, ::2] | even[:, 1::2] << 4).astype(np.uint8)
    return node(
        "MatMulNBits",
        a, codes.reshape(n, groups, group // 2), scale, points, None, bias,
        domain=CONTRIB, static=True, K=a.shape[1], N=n, bits=4, block_size=group,
    )  # fmt: skip


def _seen(queries: int, keys: int, causal: str, left: int = -1, right: int = -1) -> Array:
    """The mask (queries, keys) of alignment and windows."""
    shift = 0 if causal == "top_left" else keys - queries
    distance = np.arange(keys) - np.arange(queries)[:, None] - shift
    right = right if causal == "none" else 0
    seen: Array = np.ones((queries, keys), bool)
    seen = seen if right < 0 else seen & (distance <= right)
    return seen if left < 0 else seen & (distance >= -left)


def _log_sum(q: Array, k: Array, seen: Array, scale: float | None, softcap: float | None, bias: Array | None) -> Array:
    """The log-sum-exp, which ``Attention`` does not return, by ``ReduceLogSumExp`` of float32 scores."""
    wide = np.promote_types(q.dtype, np.float32)
    across = np.repeat(np.swapaxes(k, -1, -2), q.shape[1] // max(k.shape[1], 1), axis=1)
    score = node(
        "Mul", node("MatMul", q.astype(wide), across.astype(wide)), np.array(scale or q.shape[-1] ** -0.5, wide)
    )
    if softcap is not None:
        most = np.array(softcap, wide)
        score = node("Mul", node("Tanh", node("Div", score, most)), most)
    score = score if bias is None else node("Add", score, bias.astype(wide))
    hidden = node("Where", np.broadcast_to(seen, score.shape), score, np.array(-np.inf, wide))
    lse: Array = node("ReduceLogSumExp", hidden, np.array([-1], np.int64), keepdims=0)
    return lse


def _scale_is_float32(inputs: Inputs, params: Mapping[str, Any]) -> str | None:
    q, scale = inputs["q"], params["scale"]
    assert q is not None
    if q.dtype == np.float64 and scale is not None and float(np.float32(scale)) != scale:
        return f"the node's scale is a float32, which scale={scale} is not"
    return None


@TABLE.serves("attention", "Attention", numerics=in_dtype, refuses=_scale_is_float32)
def attention(q: Array, k: Array, v: Array, causal: str, scale: float | None) -> Any:
    """``Attention``; ``is_causal`` is the top-left mask, the bottom-right one is given."""
    seen = _seen(q.shape[2], k.shape[2], causal)
    mask = seen if causal == "bottom_right" else None
    out = node("Attention", q, k, v, mask, is_causal=int(causal == "top_left"), scale=scale)
    return out, _log_sum(q, k, seen, scale, None, None)


@TABLE.serves(
    "flash_attention",
    "Attention",
    NARROW,
    only={"alibi": ("distance", "last_key")},
    numerics=in_dtype,
)
def flash_attention(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None,
    *,
    causal: str,
    window_left: int,
    window_right: int,
    softcap: float | None,
    scale: float | None,
) -> Any:
    """``Attention`` with a soft cap and a mask, which is also the bias."""
    seen = _seen(q.shape[2], k.shape[2], causal, window_left, window_right)
    mask = seen if bias is None else np.where(seen, bias, np.array(-np.inf, q.dtype))
    out = node("Attention", q, k, v, mask, scale=scale, softcap=softcap)
    return out, _log_sum(q, k, seen, scale, softcap, bias)


@TABLE.serves("causal_conv1d", "com.microsoft.CausalConvWithState", dtypes=("float32",))
def causal_conv1d(x: Array, weight: Array, state: Array, bias: Array | None, activation: str) -> Any:
    """``CausalConvWithState``."""
    return node(
        "CausalConvWithState",
        x, weight[:, None], bias, state,
        outputs=2, domain=CONTRIB, activation=activation, ndim=1,
    )  # fmt: skip


def _not_empty(inputs: Inputs, params: Mapping[str, Any]) -> str | None:
    empty = [name for name, array in inputs.items() if array is not None and not array.size]
    return f"the node takes no empty arrays, and {empty[0]} is one" if empty else None


@TABLE.serves(
    "gated_delta_rule",
    "com.microsoft.LinearAttention",
    dtypes=("float32",),
    only={"normalise": (False,)},
    refuses=_not_empty,
)
def gated_delta_rule(q: Array, k: Array, v: Array, g: Array, beta: Array, state: Array) -> Any:
    """``LinearAttention`` by the rule ``gated_delta``, on heads side by side."""
    batch, heads, steps, _ = q.shape

    def packed(x: Array) -> Array:
        return np.swapaxes(x, 1, 2).reshape(batch, steps, heads * x.shape[-1])

    out, final = node(
        "LinearAttention",
        packed(q), packed(k), packed(v), state, np.swapaxes(g, 1, 2), np.swapaxes(beta, 1, 2),
        outputs=2, domain=CONTRIB, q_num_heads=heads, kv_num_heads=heads, update_rule="gated_delta",
        scale=q.shape[-1] ** -0.5,
    )  # fmt: skip
    return np.swapaxes(out.reshape(batch, steps, heads, v.shape[-1]), 1, 2), final


def _along(block: str, scale: Array) -> tuple[Array, dict[str, Any]]:
    """The scales and attributes by which the quantising nodes have a block."""
    if block == "tensor":
        return scale.reshape(()), {}
    if block in ("token", "channel"):
        return scale.reshape(-1), {"axis": int(block == "channel")}
    return scale, {"axis": 1, "block_size": int(block.partition("x")[2])}


BLOCKS = {"block": ("tensor", "token", "channel", "1x16", "1x32", "1x64", "1x128")}


def _whole_blocks(inputs: Inputs, params: Mapping[str, Any]) -> str | None:
    array = inputs.get("x", inputs.get("codes"))
    assert array is not None
    block = params["block"]
    if not block.startswith("1x") or array.shape[1] % int(block[2:]) == 0:
        return None
    return f"blocks must be whole, and {array.shape[1]} columns are no multiple of {block[2:]}"


@TABLE.serves(
    "quantise_static", "QuantizeLinear", ("float32",), only={**BLOCKS, "rounding": ("nearest",)}, refuses=_whole_blocks
)
def quantise_static(x: Array, scale: Array, to: str, block: str) -> Any:
    """``QuantizeLinear``, saturating."""
    scales, attributes = _along(block, scale)
    return node("QuantizeLinear", x, scales, output_dtype=TYPES[to], **attributes)


def _plain_scales(inputs: Inputs, params: Mapping[str, Any]) -> str | None:
    scale = inputs["scale"]
    assert scale is not None
    if scale.dtype != np.float32:
        return f"the node has scales in the dtype of its result, float32 here, not {scale.dtype.name}"
    zero, codes = inputs["zero"], inputs["codes"]
    if zero is not None and codes is not None and zero.dtype != codes.dtype:
        return f"the node has zero points in the dtype of its codes, {codes.dtype.name}, not {zero.dtype.name}"
    return _whole_blocks(inputs, params)


@TABLE.serves(
    "dequantise",
    "DequantizeLinear",
    dtypes=(*FLOAT8, "int8"),
    only=BLOCKS,
    refuses=_plain_scales,
)
def dequantise(codes: Array, scale: Array, zero: Array | None, block: str, to: str) -> Any:
    """``DequantizeLinear`` to float32, and ``Cast``."""
    scales, attributes = _along(block, scale)
    points = None if zero is None else zero.reshape(scales.shape)
    return node("Cast", node("DequantizeLinear", codes, scales, points, **attributes), to=TYPES[to])


def _scattered(cells: Array, new: Array, slots: Array) -> Array:
    """``ScatterND`` of what has a slot."""
    kept = slots >= 0
    out: Array = node("ScatterND", cells, slots[kept].astype(np.int64)[:, None], new[kept])
    return out


@TABLE.serves("reshape_and_cache_flash", "ScatterND")
def reshape_and_cache_flash(key: Array, value: Array, key_cache: Array, value_cache: Array, slots: Array) -> Any:
    """``ScatterND`` into the cells."""

    def updated(cache: Array, new: Array) -> Array:
        cells = cache.reshape(cache.shape[0] * cache.shape[1], *cache.shape[2:])
        return _scattered(cells, new, slots).reshape(cache.shape)

    return updated(key_cache, key), updated(value_cache, value)


@TABLE.serves("concat_and_cache_mla", "ScatterND")
def concat_and_cache_mla(latents: Array, rotated: Array, cache: Array, slots: Array) -> Any:
    """``ScatterND`` of ``Concat``."""
    cells = cache.reshape(cache.shape[0] * cache.shape[1], cache.shape[2])
    return _scattered(cells, node("Concat", latents, rotated, axis=-1), slots).reshape(cache.shape)


@TABLE.serves("swap_blocks", "ScatterND")
def swap_blocks(source: Array, target: Array, from_blocks: Array, to_blocks: Array) -> Any:
    """``ScatterND`` of ``Gather``."""
    return _scattered(target, node("Gather", source, from_blocks.astype(np.int64), axis=0), to_blocks)


@TABLE.serves("copy_blocks", "ScatterND")
def copy_blocks(key_cache: Array, value_cache: Array, pairs: Array) -> Any:
    """``ScatterND`` of ``Gather``."""
    source, target = pairs[:, 0], pairs[:, 1]
    return tuple(swap_blocks(cache, cache, source, target) for cache in (key_cache, value_cache))
