"""Backend over vLLM's custom operators.

Source: vllm 0.33.0 (PyPI), ``vllm/_custom_ops.py``: ``rms_norm(out, input, weight, epsilon)``, which rounds before the
weight; ``fused_add_rms_norm`` in place; ``rotary_embedding(positions, query, key, head_size, cos_sin_cache, is_neox)``
in place and in the dtype of its inputs; caches; ``merge_attn_states`` of two states, log-sum-exps (heads, tokens);
``cp_gather_cache``; ``scaled_fp8_quant``; ``cutlass_scaled_mm``. Activations are
``torch.ops._C.silu_and_mul(out, input)`` and its like, which round before the product
(``csrc/activation_kernels.cu``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refsim.conformance.backends.library import CONTIGUOUS, Inputs, LibraryBackend, Table, by_operator, not_installed

try:
    import torch
    import vllm._custom_ops as ops
except ImportError as error:
    raise not_installed("vLLM", "python -m pip install vllm", error) from error

from refsim.conformance.backends.gpu import on_gpu, twice_in_16_bits
from refsim.conformance.backends.gpu_numerics import HALVES, SHORT, fast, on_fp8_tensor_cores
from refsim.conformance.backends.library import in_dtype

TABLE = Table(fast, SHORT)
Params = Mapping[str, Any]


@TABLE.serves("t5_rmsnorm", "vllm.rms_norm", layouts=CONTIGUOUS)
def t5_rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    """``rms_norm`` into an output."""
    out = torch.empty_like(x)
    ops.rms_norm(out, x, weight, eps)
    return out


@TABLE.serves(
    "fused_add_rmsnorm",
    "vllm.fused_add_rms_norm",
    only={"gain": ("weight",), "normalised": ("rounded",)},
    layouts=CONTIGUOUS,
    refuses=twice_in_16_bits,
)
def fused_add_rmsnorm(x: Any, residual: Any, weight: Any, eps: float, rounding: str) -> Any:
    """``fused_add_rms_norm``, which writes to x and residual: copies."""
    out, total = x.clone(), residual.clone()
    ops.fused_add_rms_norm(out, total, weight, eps)
    return total, out


def _half(x: Any) -> Any:
    return torch.empty((x.shape[0], x.shape[1] // 2), dtype=x.dtype, device=x.device)


@TABLE.serves(
    "silu_and_mul",
    "torch.ops._C.silu_and_mul",
    only={"pairing": ("halves",)},
    layouts=CONTIGUOUS,
    refuses=twice_in_16_bits,
)
def silu_and_mul(x: Any, *, rounding: str) -> Any:
    """``torch.ops._C.silu_and_mul`` into an output."""
    out = _half(x)
    torch.ops._C.silu_and_mul(out, x)
    return out


@TABLE.serves(
    "gelu_and_mul",
    "torch.ops._C.gelu_and_mul",
    only={"pairing": ("halves",)},
    layouts=CONTIGUOUS,
    refuses=twice_in_16_bits,
)
def gelu_and_mul(x: Any, *, approximate: str, rounding: str) -> Any:
    """``torch.ops._C.gelu_and_mul`` or ``gelu_tanh_and_mul`` into an output."""
    out = _half(x)
    if approximate == "none":
        torch.ops._C.gelu_and_mul(out, x)
    else:
        torch.ops._C.gelu_tanh_and_mul(out, x)
    return out


@TABLE.serves("rope_qk", "vllm.rotary_embedding", only={"plain_first": (False,)}, layouts=CONTIGUOUS, numerics=in_dtype)
def rope_qk(q: Any, k: Any, positions: Any, cos: Any, sin: Any, offsets: Any, pairing: str) -> Any:
    """``rotary_embedding``, which writes to heads side by side: copies."""
    rows = positions if offsets is None else positions + offsets
    query, key = (x.reshape(x.shape[0], -1).clone() for x in (q, k))
    table = torch.cat((cos, sin), dim=-1).contiguous()
    ops.rotary_embedding(rows.long(), query, key, q.shape[-1], table, pairing == "neox")
    return query.reshape(q.shape), key.reshape(k.shape)


def _one(x: Any) -> Any:
    return torch.ones(1, dtype=torch.float32, device=x.device)


@TABLE.serves("reshape_and_cache", "vllm.reshape_and_cache", layouts=CONTIGUOUS)
def reshape_and_cache(key: Any, value: Any, key_cache: Any, value_cache: Any, slots: Any) -> Any:
    """``reshape_and_cache`` into copies of the caches."""
    keys, values = key_cache.clone(), value_cache.clone()
    ops.reshape_and_cache(key, value, keys, values, slots.long(), "auto", _one(key), _one(key))
    return keys, values


@TABLE.serves("reshape_and_cache_flash", "vllm.reshape_and_cache_flash", layouts=CONTIGUOUS)
def reshape_and_cache_flash(key: Any, value: Any, key_cache: Any, value_cache: Any, slots: Any) -> Any:
    """``reshape_and_cache_flash`` into copies of the caches."""
    keys, values = key_cache.clone(), value_cache.clone()
    ops.reshape_and_cache_flash(key, value, keys, values, slots.long(), "auto", _one(key), _one(key))
    return keys, values


@TABLE.serves("concat_and_cache_mla", "vllm.concat_and_cache_mla", layouts=CONTIGUOUS)
def concat_and_cache_mla(latents: Any, rotated: Any, cache: Any, slots: Any) -> Any:
    """``concat_and_cache_mla`` into a copy of the cache."""
    out = cache.clone()
    ops.concat_and_cache_mla(latents, rotated, out, slots.long(), "auto", _one(latents))
    return out


@TABLE.serves("swap_blocks", "vllm.swap_blocks", layouts=CONTIGUOUS)
def swap_blocks(source: Any, target: Any, from_blocks: Any, to_blocks: Any) -> Any:
    """``swap_blocks`` into a copy of the target; the pairs of blocks are on the host."""
    out = target.clone()
    pairs = torch.stack((from_blocks, to_blocks), dim=1).long().cpu()
    ops.swap_blocks(source, out, source.shape[1] * source.element_size(), pairs)
    return out


@TABLE.serves("gather_cache", "vllm.cp_gather_cache", layouts=CONTIGUOUS)
def gather_cache(cache: Any, block_table: Any, lengths: Any, out: Any) -> Any:
    """``cp_gather_cache`` into a copy of the output."""
    gathered = out.clone()
    ends = torch.nn.functional.pad(torch.cumsum(lengths, 0), (1, 0)).to(torch.int32)
    ops.cp_gather_cache(cache, gathered, block_table.to(torch.int32), ends, len(lengths))
    return gathered


def _two(inputs: Inputs, params: Params) -> str | None:
    outs = inputs["outs"]
    assert outs is not None
    return None if len(outs) == 2 else f"merge_attn_states takes two states, not {len(outs)}"


@TABLE.serves("merge_attention_states", "vllm.merge_attn_states", only={"base": ("e",)}, refuses=_two)
def merge_attention_states(outs: Any, lses: Any) -> Any:
    """``merge_attn_states`` of two states."""
    out = torch.empty_like(outs[0], memory_format=torch.contiguous_format)
    first, second = (lse.T.contiguous() for lse in lses)
    merged = torch.empty_like(first)
    ops.merge_attn_states(out, outs[0].contiguous(), first, outs[1].contiguous(), second, merged)
    return out, merged.T


@TABLE.serves("moe_sum", "vllm.moe_sum", layouts=CONTIGUOUS)
def moe_sum(x: Any) -> Any:
    """``moe_sum`` into an output."""
    out = torch.empty((x.shape[0], x.shape[2]), dtype=x.dtype, device=x.device)
    ops.moe_sum(x, out)
    return out


@TABLE.serves(
    "quantise_static",
    "vllm.scaled_fp8_quant",
    only={"to": ("float8_e4m3fn",), "block": ("tensor",), "rounding": ("nearest",)},
    layouts=CONTIGUOUS,
)
def quantise_static(x: Any, scale: Any) -> Any:
    """``scaled_fp8_quant`` with one scale."""
    return ops.scaled_fp8_quant(x, scale.reshape(1))[0]


@TABLE.serves(
    "matmul_a8w8",
    "vllm.cutlass_scaled_mm",
    ("int8", "float8_e4m3fn"),
    only={"out_dtype": HALVES},
    layouts=CONTIGUOUS,
    numerics=on_fp8_tensor_cores,
    refuses=lambda inputs, params: _sixteens(inputs),
)
def matmul_a8w8(a: Any, b: Any, a_scale: Any, b_scale: Any, out_dtype: str) -> Any:
    """``cutlass_scaled_mm`` with a scale per row of either factor."""
    return ops.cutlass_scaled_mm(a, b.T, a_scale[:, None], b_scale[None], getattr(torch, out_dtype))


def _sixteens(inputs: Inputs) -> str | None:
    b = inputs["b"]
    assert b is not None
    if b.shape[0] % 16 == 0 and b.shape[1] % 16 == 0:
        return None
    return f"cutlass_scaled_mm takes n and k that are multiples of 16, not {b.shape[0]} and {b.shape[1]}"


ABSENT = by_operator(
    {
        "vLLM's rms_norm rounds before the weight: that is t5_rmsnorm": ("rmsnorm",),
        "vLLM samples in PyTorch, or by FlashInfer": ("sample_top_k", "sample_top_p", "sample_min_p"),
        "vLLM's collectives need a process per rank": ("all_reduce", "all_gather", "reduce_scatter"),
    }
)

backend = LibraryBackend("vllm", on_gpu("vLLM"), TABLE.rows, ABSENT)
