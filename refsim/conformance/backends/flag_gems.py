"""Backend over FlagGems: PyTorch's operators, and some fused ones, in Triton.

Source: flag-gems 5.0.2 (PyPI), ``flag_gems/ops`` with the signatures of PyTorch's operators, and ``flag_gems/fused``:
``silu_and_mul(A, B)``, ``fused_add_rms_norm(x, residual, normalized_shape, weight, eps)`` in place,
``apply_rotary_pos_emb(q, k, cos, sin, position_ids, rotary_interleaved)``, and caches with vLLM's signatures.
"""

from __future__ import annotations

from typing import Any

from refsim.conformance.backends.library import LibraryBackend, Table, by_operator, not_installed

try:
    import flag_gems.fused as fused
    import flag_gems.ops as ops
    import torch
except ImportError as error:
    raise not_installed("FlagGems", "python -m pip install flag-gems torch", error) from error

from refsim.conformance.backends.gpu import on_gpu, once_in_16_bits
from refsim.conformance.backends.gpu_numerics import SHORT, fast, on_tensor_cores

TABLE = Table(fast, SHORT)


@TABLE.serves("sum", "flag_gems.sum")
def gems_sum(x: Any, axis: int | None) -> Any:
    """``sum``, or ``sum_dim``."""
    return ops.sum(x) if axis is None else ops.sum_dim(x, [axis])


@TABLE.serves("mean", "flag_gems.mean_dim")
def mean(x: Any) -> Any:
    """``mean_dim``."""
    return ops.mean_dim(x, [-1])


@TABLE.serves("max", "flag_gems.amax")
def largest(x: Any) -> Any:
    """``amax``."""
    return ops.amax(x, -1)


@TABLE.serves("argmax", "flag_gems.argmax", only={"ties": ("lowest",)})
def argmax(x: Any) -> Any:
    """``argmax``."""
    return ops.argmax(x, -1).to(torch.int32)


@TABLE.serves("greedy", "flag_gems.argmax")
def greedy(logits: Any) -> Any:
    """``argmax``."""
    return ops.argmax(logits, -1).to(torch.int32)


@TABLE.serves("topk", "flag_gems.topk", only={"ties": ("any",)})
def topk(x: Any, k: int, ordered: bool) -> Any:
    """``topk``."""
    values, indices = ops.topk(x, k, -1, True, ordered)
    return indices.to(torch.int32), values


@TABLE.serves("cumsum", "flag_gems.cumsum", only={"exclusive": (False,)})
def cumsum(x: Any) -> Any:
    """``cumsum``."""
    return ops.cumsum(x, -1)


@TABLE.serves("softmax", "flag_gems.softmax")
def softmax(x: Any) -> Any:
    """``softmax``."""
    return ops.softmax(x, -1)


@TABLE.serves("log_softmax", "flag_gems.log_softmax")
def log_softmax(x: Any) -> Any:
    """``log_softmax``."""
    return ops.log_softmax(x, -1)


@TABLE.serves("matmul", "flag_gems.addmm", numerics=on_tensor_cores)
def matmul(a: Any, b: Any, bias: Any, transpose_a: bool, transpose_b: bool) -> Any:
    """``addmm``, or ``mm`` without a bias."""
    a, b = a.T if transpose_a else a, b.T if transpose_b else b
    return ops.mm(a, b) if bias is None else ops.addmm(bias, a, b)


@TABLE.serves("batched_matmul", "flag_gems.baddbmm", numerics=on_tensor_cores)
def batched_matmul(a: Any, b: Any, bias: Any) -> Any:
    """``baddbmm``, or ``bmm`` without a bias."""
    return ops.bmm(a, b) if bias is None else ops.baddbmm(bias[:, None], a, b)


@TABLE.serves("layernorm", "flag_gems.layer_norm")
def layernorm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    """``layer_norm``, which gives mean and deviation too."""
    return ops.layer_norm(x, x.shape[-1:], weight, bias, eps)[0]


@TABLE.serves("groupnorm", "flag_gems.group_norm")
def groupnorm(x: Any, weight: Any, bias: Any, groups: int, eps: float) -> Any:
    """``group_norm``, which gives mean and deviation too."""
    batch, channels, positions = x.shape
    return ops.group_norm(x.contiguous(), weight, bias, batch, channels, positions, groups, eps)[0]


@TABLE.serves("rmsnorm", "flag_gems.rms_norm")
def rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    """``rms_norm``."""
    return ops.rms_norm(x, x.shape[-1:], weight, eps)


@TABLE.serves(
    "fused_add_rmsnorm",
    "flag_gems.fused_add_rms_norm",
    only={"gain": ("weight",), "normalised": ("unrounded",)},
    refuses=once_in_16_bits,
)
def fused_add_rmsnorm(x: Any, residual: Any, weight: Any, eps: float, rounding: str) -> Any:
    """``fused_add_rms_norm``, which writes to x and residual: copies."""
    out, total = x.clone(), residual.clone()
    fused.fused_add_rms_norm(out, total, x.shape[-1:], weight, eps)
    return total, out


def _halves(x: Any, pairing: str) -> tuple[Any, Any]:
    return x.chunk(2, dim=-1) if pairing == "halves" else (x[..., ::2], x[..., 1::2])


@TABLE.serves("silu_and_mul", "flag_gems.silu_and_mul", refuses=once_in_16_bits)
def silu_and_mul(x: Any, *, pairing: str, rounding: str) -> Any:
    """``silu_and_mul`` of gate and value."""
    gate, value = _halves(x, pairing)
    return fused.silu_and_mul(gate, value)


@TABLE.serves("gelu_and_mul", "flag_gems.gelu_and_mul", refuses=once_in_16_bits)
def gelu_and_mul(x: Any, *, pairing: str, approximate: str, rounding: str) -> Any:
    """``gelu_and_mul`` of gate and value."""
    gate, value = _halves(x, pairing)
    return fused.gelu_and_mul(gate, value, approximate)


def _whole_heads(inputs: Any, params: Any) -> str | None:
    half, head_dim = inputs["cos"].shape[-1], inputs["q"].shape[-1]
    return None if 2 * half == head_dim else f"apply_rotary_pos_emb turns whole heads, not {2 * half} of {head_dim}"


@TABLE.serves("rope_qk", "flag_gems.apply_rotary_pos_emb", only={"plain_first": (False,)}, refuses=_whole_heads)
def rope_qk(q: Any, k: Any, positions: Any, cos: Any, sin: Any, offsets: Any, pairing: str) -> Any:
    """``apply_rotary_pos_emb`` at position_ids."""
    rows = positions if offsets is None else positions + offsets
    return fused.apply_rotary_pos_emb(q, k, cos.contiguous(), sin.contiguous(), rows, pairing == "gptj")


@TABLE.serves("moe_sum", "flag_gems.moe_sum")
def moe_sum(x: Any) -> Any:
    """``moe_sum`` into an output."""
    out = torch.empty((x.shape[0], x.shape[2]), dtype=x.dtype, device=x.device)
    fused.moe_sum(x, out)
    return out


def _one(x: Any) -> Any:
    return torch.ones(1, dtype=torch.float32, device=x.device)


@TABLE.serves("reshape_and_cache", "flag_gems.reshape_and_cache")
def reshape_and_cache(key: Any, value: Any, key_cache: Any, value_cache: Any, slots: Any) -> Any:
    """``reshape_and_cache`` into copies of the caches."""
    keys, values = key_cache.contiguous().clone(), value_cache.contiguous().clone()
    fused.reshape_and_cache(key, value, keys, values, slots.long(), "auto", _one(key), _one(key))
    return keys, values


@TABLE.serves("reshape_and_cache_flash", "flag_gems.reshape_and_cache_flash")
def reshape_and_cache_flash(key: Any, value: Any, key_cache: Any, value_cache: Any, slots: Any) -> Any:
    """``reshape_and_cache_flash`` into copies of the caches."""
    keys, values = key_cache.contiguous().clone(), value_cache.contiguous().clone()
    fused.reshape_and_cache_flash(key, value, keys, values, slots.long(), "auto", _one(key), _one(key))
    return keys, values


@TABLE.serves("concat_and_cache_mla", "flag_gems.concat_and_cache_mla")
def concat_and_cache_mla(latents: Any, rotated: Any, cache: Any, slots: Any) -> Any:
    """``concat_and_cache_mla`` into a copy of the cache."""
    out = cache.contiguous().clone()
    fused.concat_and_cache_mla(latents, rotated, out, slots.long(), "auto", _one(latents))
    return out


ABSENT = by_operator(
    {
        "FlagGems draws its random numbers itself": ("sample_top_k", "sample_top_p", "sample_min_p"),
        "FlagGems has one rank": ("all_reduce", "all_gather", "all_to_all", "reduce_scatter"),
    }
)

backend = LibraryBackend("flag_gems", on_gpu("FlagGems"), TABLE.rows, ABSENT)
