"""Backend over AITER: kernels for AMD GPUs.

Source: amd-aiter 0.1.7 (PyPI), ``aiter/ops``: ``rmsnorm2d_fwd(input, weight, epsilon, use_model_sensitive_rmsnorm)``,
where 1 rounds before the weight as T5 does; norms of sums that are rounded first, as AITER's references in PyTorch have
them; activations into an output; ``rope_cached_positions_2c_fwd`` on (sequence, batch, heads, head_dim) with styles 0
for GPT-NeoX and 1 for GPT-J; caches with vLLM's signatures and an ``asm_layout``; ``flash_attn_func`` with a
bottom-right causal mask and natural logarithms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refsim.conformance.backends.library import CONTIGUOUS, Inputs, LibraryBackend, Table, by_operator, not_installed

try:
    import aiter.ops.activation as activations
    import aiter.ops.cache as caches
    import aiter.ops.gemm_op_a8w8 as products
    import aiter.ops.mha as attentions
    import aiter.ops.moe_op as experts
    import aiter.ops.norm as layer_norms
    import aiter.ops.rmsnorm as rms_norms
    import aiter.ops.rope as rotary
    import aiter.ops.sample as samplers
    import aiter.ops.shuffle as shuffles
    import torch
except ImportError as error:
    raise not_installed("AITER", "python -m pip install amd-aiter, with PyTorch for ROCm", error) from error

from refsim.conformance.backends.gpu import on_gpu, once_in_16_bits
from refsim.conformance.backends.gpu_numerics import HALVES, attention_on_tensor_cores, fast, on_tensor_cores

TABLE = Table(fast, HALVES)
Params = Mapping[str, Any]
STYLES = {"neox": 0, "gptj": 1}


@TABLE.serves("rmsnorm", "aiter.rmsnorm2d_fwd", layouts=CONTIGUOUS)
def rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    """``rmsnorm2d_fwd``."""
    return rms_norms.rmsnorm2d_fwd(x, weight, eps, 0)


@TABLE.serves("t5_rmsnorm", "aiter.rmsnorm2d_fwd", layouts=CONTIGUOUS)
def t5_rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    """``rmsnorm2d_fwd`` in T5's order."""
    return rms_norms.rmsnorm2d_fwd(x, weight, eps, 1)


@TABLE.serves(
    "fused_add_rmsnorm",
    "aiter.rmsnorm2d_fwd_with_add",
    only={"gain": ("weight",), "normalised": ("rounded",)},
    layouts=CONTIGUOUS,
)
def fused_add_rmsnorm(x: Any, residual: Any, weight: Any, eps: float, rounding: str) -> Any:
    """``rmsnorm2d_fwd_with_add`` into outputs."""
    out, total = torch.empty_like(x), torch.empty_like(x)
    rms_norms.rmsnorm2d_fwd_with_add(out, x, residual, total, weight, eps, int(rounding == "twice"))
    return total, out


def _affine(inputs: Inputs, params: Params) -> str | None:
    absent = [name for name in ("weight", "bias") if inputs[name] is None]
    return f"the kernel asks for weight and bias, and {absent[0]} is left out" if absent else None


@TABLE.serves("layernorm", "aiter.layernorm2d_fwd", layouts=CONTIGUOUS, refuses=_affine)
def layernorm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    """``layernorm2d_fwd``."""
    return layer_norms.layernorm2d_fwd(x, weight, bias, eps)


@TABLE.serves(
    "fused_add_layernorm",
    "aiter.layernorm2d_fwd_with_add",
    only={"normalised": ("rounded",)},
    layouts=CONTIGUOUS,
    refuses=_affine,
)
def fused_add_layernorm(x: Any, residual: Any, weight: Any, bias: Any, eps: float) -> Any:
    """``layernorm2d_fwd_with_add`` into outputs."""
    out, total = torch.empty_like(x), torch.empty_like(x)
    layer_norms.layernorm2d_fwd_with_add(out, x, residual, total, weight, bias, eps)
    return total, out


def _half(x: Any) -> Any:
    return torch.empty((x.shape[0], x.shape[1] // 2), dtype=x.dtype, device=x.device)


@TABLE.serves(
    "silu_and_mul", "aiter.silu_and_mul", only={"pairing": ("halves",)}, layouts=CONTIGUOUS, refuses=once_in_16_bits
)
def silu_and_mul(x: Any, *, rounding: str) -> Any:
    """``silu_and_mul`` into an output."""
    out = _half(x)
    activations.silu_and_mul(out, x)
    return out


@TABLE.serves(
    "gelu_and_mul", "aiter.gelu_and_mul", only={"pairing": ("halves",)}, layouts=CONTIGUOUS, refuses=once_in_16_bits
)
def gelu_and_mul(x: Any, *, approximate: str, rounding: str) -> Any:
    """``gelu_and_mul`` or ``gelu_tanh_and_mul`` into an output."""
    out = _half(x)
    if approximate == "none":
        activations.gelu_and_mul(out, x)
    else:
        activations.gelu_tanh_and_mul(out, x)
    return out


@TABLE.serves("rope_qk", "aiter.rope_cached_positions_2c_fwd", layouts=CONTIGUOUS)
def rope_qk(q: Any, k: Any, positions: Any, cos: Any, sin: Any, offsets: Any, pairing: str, plain_first: bool) -> Any:
    """``rope_cached_positions_2c_fwd``, or ``rope_cached_positions_offsets_2c_fwd``, of one batch."""
    tables = cos[:, None, None], sin[:, None, None]
    style, rows = STYLES[pairing], positions[:, None]
    if offsets is None:
        both = rotary.rope_cached_positions_2c_fwd(q[:, None], k[:, None], *tables, rows, style, True, plain_first)
    else:
        both = rotary.rope_cached_positions_offsets_2c_fwd(
            q[:, None], k[:, None], *tables, rows, offsets[:, None], style, True, plain_first
        )
    return both[0][:, 0], both[1][:, 0]


def _one(x: Any) -> Any:
    return torch.ones(1, dtype=torch.float32, device=x.device)


@TABLE.serves("reshape_and_cache", "aiter.reshape_and_cache", layouts=CONTIGUOUS)
def reshape_and_cache(key: Any, value: Any, key_cache: Any, value_cache: Any, slots: Any) -> Any:
    """``reshape_and_cache`` into copies of the caches."""
    keys, values = key_cache.clone(), value_cache.clone()
    caches.reshape_and_cache(key, value, keys, values, slots.long(), "auto")
    return keys, values


@TABLE.serves("reshape_and_cache_asm", "aiter.reshape_and_cache", layouts=CONTIGUOUS)
def reshape_and_cache_asm(key: Any, value: Any, key_cache: Any, value_cache: Any, slots: Any) -> Any:
    """``reshape_and_cache`` in the layout of the assembly kernels, into copies of the caches."""
    keys, values = key_cache.clone(), value_cache.clone()
    caches.reshape_and_cache(key, value, keys, values, slots.long(), "auto", asm_layout=True)
    return keys, values


@TABLE.serves("reshape_and_cache_flash", "aiter.reshape_and_cache_flash", layouts=CONTIGUOUS)
def reshape_and_cache_flash(key: Any, value: Any, key_cache: Any, value_cache: Any, slots: Any) -> Any:
    """``reshape_and_cache_flash`` into copies of the caches."""
    keys, values = key_cache.clone(), value_cache.clone()
    caches.reshape_and_cache_flash(key, value, keys, values, slots.long(), "auto", _one(key), _one(key))
    return keys, values


@TABLE.serves("concat_and_cache_mla", "aiter.concat_and_cache_mla", layouts=CONTIGUOUS)
def concat_and_cache_mla(latents: Any, rotated: Any, cache: Any, slots: Any) -> Any:
    """``concat_and_cache_mla`` into a copy of the cache."""
    out = cache.clone()
    caches.concat_and_cache_mla(latents, rotated, out, slots.long(), "auto", _one(latents))
    return out


@TABLE.serves(
    "matmul_a8w8",
    "aiter.gemm_a8w8",
    ("int8", "float8_e4m3fnuz", "float8_e4m3fn"),
    only={"out_dtype": ("bfloat16", "float16")},
    layouts=CONTIGUOUS,
    numerics=on_tensor_cores,
)
def matmul_a8w8(a: Any, b: Any, a_scale: Any, b_scale: Any, out_dtype: str) -> Any:
    """``gemm_a8w8`` with a scale per row of either factor."""
    return products.gemm_a8w8(a, b, a_scale[:, None], b_scale[None], None, getattr(torch, out_dtype))


@TABLE.serves(
    "matmul_a8w8_block_scaled",
    "aiter.gemm_a8w8_blockscale",
    ("float8_e4m3fnuz", "float8_e4m3fn"),
    only={"block": (128,), "out_dtype": ("bfloat16", "float16")},
    layouts=CONTIGUOUS,
    numerics=on_tensor_cores,
)
def matmul_a8w8_block_scaled(a: Any, b: Any, a_scale: Any, b_scale: Any, out_dtype: str) -> Any:
    """``gemm_a8w8_blockscale``."""
    scales = a_scale.float(), b_scale.float()
    return products.gemm_a8w8_blockscale(a, b, *scales, dtype=getattr(torch, out_dtype))


@TABLE.serves(
    "attention",
    "aiter.flash_attn_func",
    only={"causal": ("none", "bottom_right")},
    numerics=attention_on_tensor_cores,
)
def attention(q: Any, k: Any, v: Any, causal: str, scale: float | None) -> Any:
    """``flash_attn_func`` on (batch, tokens, heads, head_dim)."""
    by_token = (x.transpose(1, 2).contiguous() for x in (q, k, v))
    out, lse = attentions.flash_attn_func(*by_token, softmax_scale=scale, causal=causal != "none", return_lse=True)[:2]
    return out.transpose(1, 2), lse


@TABLE.serves(
    "attention_varlen",
    "aiter.flash_attn_varlen_func",
    only={"causal": ("none", "bottom_right")},
    numerics=attention_on_tensor_cores,
)
def attention_varlen(
    q: Any,
    k: Any,
    v: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    *,
    causal: str,
    window_left: int,
    window_right: int,
    softcap: float | None,
    scale: float | None,
) -> Any:
    """``flash_attn_varlen_func``."""
    longest = (int(torch.diff(edges).max()) if len(edges) > 1 else 0 for edges in (cu_seqlens_q, cu_seqlens_k))
    tokens = (x.contiguous() for x in (q, k, v))
    out, lse = attentions.flash_attn_varlen_func(
        *tokens, cu_seqlens_q, cu_seqlens_k, *longest, softmax_scale=scale, logits_soft_cap=softcap or 0.0,
        causal=causal != "none", window_size=(window_left, window_right), return_lse=True,
    )[:2]  # fmt: skip
    return out, lse


@TABLE.serves("moe_sum", "aiter.moe_sum", layouts=CONTIGUOUS)
def moe_sum(x: Any) -> Any:
    """``moe_sum`` into an output."""
    out = torch.empty((x.shape[0], x.shape[2]), dtype=x.dtype, device=x.device)
    experts.moe_sum(x, out)
    return out


@TABLE.serves("greedy", "aiter.greedy_sample", layouts=CONTIGUOUS)
def greedy(logits: Any) -> Any:
    """``greedy_sample`` into an output."""
    out = torch.empty(logits.shape[0], dtype=torch.int32, device=logits.device)
    samplers.greedy_sample(out, logits)
    return out


def _own_vector(inputs: Inputs, params: Params) -> str | None:
    weight = inputs["weight"]
    assert weight is not None
    own = 16 // weight.itemsize
    return None if params["vector"] == own else f"shuffle_weight has vectors of 16 bytes, {own} elements"


@TABLE.serves("shuffle_weight", "aiter.shuffle_weight", ("float16", "bfloat16", "int8"), refuses=_own_vector)
def shuffle_weight(weight: Any, inner: int, vector: int) -> Any:
    """``shuffle_weight`` with its layout."""
    return shuffles.shuffle_weight(weight.contiguous(), (16, inner))


ABSENT = by_operator(
    {
        "AITER's samplers draw their numbers themselves": ("sample_top_k", "sample_top_p", "sample_min_p"),
        "AITER's collectives need a process per rank": ("all_reduce", "all_gather", "reduce_scatter"),
    }
)

backend = LibraryBackend("aiter", on_gpu("AITER"), TABLE.rows, ABSENT)
