"""Backend over FlashInfer: CUDA kernels for serving.

Source: flashinfer-python 0.7.4 (PyPI), ``flashinfer/norm/__init__.py`` (the fused ones in place),
``flashinfer/activation.py`` (halves, rounded once), ``flashinfer/rope.py`` (float32 tables of cosines and sines side by
side), ``flashinfer/cascade.py`` and ``flashinfer/prefill.py`` (logarithms to base 2), ``flashinfer/sampling.py``,
``flashinfer/topk.py``. Its samplers draw their own numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from refsim.conformance.backends.library import CONTIGUOUS, Inputs, LibraryBackend, Table, by_operator, not_installed

try:
    import flashinfer
    import torch
except ImportError as error:
    raise not_installed("FlashInfer", "python -m pip install flashinfer-python torch", error) from error

from refsim.conformance.backends.gpu import on_gpu, once_in_16_bits
from refsim.conformance.backends.gpu_numerics import HALVES, attention_on_tensor_cores, fast

TABLE = Table(fast, HALVES)
Params = Mapping[str, Any]
# Widths of heads that the attention kernels are compiled for; narrower ones are filled up with zeros.
WIDTHS = (64, 128, 256)
WORKSPACE = 128 << 20


@TABLE.serves("rmsnorm", "flashinfer.rmsnorm", layouts=CONTIGUOUS)
def rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    """``rmsnorm``."""
    return flashinfer.rmsnorm(x, weight, eps)


@TABLE.serves("gemma_rmsnorm", "flashinfer.gemma_rmsnorm", layouts=CONTIGUOUS)
def gemma_rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    """``gemma_rmsnorm``."""
    return flashinfer.gemma_rmsnorm(x, weight, eps)


@TABLE.serves(
    "fused_add_rmsnorm",
    "flashinfer.fused_add_rmsnorm",
    only={"normalised": ("unrounded",)},
    layouts=CONTIGUOUS,
    refuses=once_in_16_bits,
)
def fused_add_rmsnorm(x: Any, residual: Any, weight: Any, eps: float, gain: str, rounding: str) -> Any:
    """``fused_add_rmsnorm`` or ``gemma_fused_add_rmsnorm``, which write to x and residual: copies."""
    out, total = x.clone(), residual.clone()
    if gain == "weight":
        flashinfer.fused_add_rmsnorm(out, total, weight, eps)
    else:
        flashinfer.gemma_fused_add_rmsnorm(out, total, weight, eps)
    return total, out


def _affine(inputs: Inputs, params: Params) -> str | None:
    absent = [name for name in ("weight", "bias") if inputs[name] is None]
    return f"layernorm asks for weight and bias, and {absent[0]} is left out" if absent else None


@TABLE.serves("layernorm", "flashinfer.layernorm", ("bfloat16",), layouts=CONTIGUOUS, refuses=_affine)
def layernorm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    """``layernorm``, whose weight and bias are float32."""
    return flashinfer.layernorm(x, weight.float(), bias.float(), eps)


@TABLE.serves(
    "silu_and_mul",
    "flashinfer.silu_and_mul",
    only={"pairing": ("halves",)},
    layouts=CONTIGUOUS,
    refuses=once_in_16_bits,
)
def silu_and_mul(x: Any, *, rounding: str) -> Any:
    """``silu_and_mul``."""
    return flashinfer.silu_and_mul(x)


@TABLE.serves(
    "gelu_and_mul",
    "flashinfer.gelu_and_mul",
    only={"pairing": ("halves",)},
    layouts=CONTIGUOUS,
    refuses=once_in_16_bits,
)
def gelu_and_mul(x: Any, *, approximate: str, rounding: str) -> Any:
    """``gelu_and_mul``, or ``gelu_tanh_and_mul``."""
    return flashinfer.gelu_and_mul(x) if approximate == "none" else flashinfer.gelu_tanh_and_mul(x)


@TABLE.serves("rope_qk", "flashinfer.apply_rope_with_cos_sin_cache", only={"plain_first": (False,)}, layouts=CONTIGUOUS)
def rope_qk(q: Any, k: Any, positions: Any, cos: Any, sin: Any, offsets: Any, pairing: str) -> Any:
    """``apply_rope_with_cos_sin_cache`` on heads side by side."""
    rows = positions if offsets is None else positions + offsets
    table = torch.cat((cos, sin), dim=-1).float()
    flat = (x.reshape(x.shape[0], -1) for x in (q, k))
    q_out, k_out = flashinfer.apply_rope_with_cos_sin_cache(rows, *flat, q.shape[-1], table, pairing == "neox")
    return q_out.reshape(q.shape), k_out.reshape(k.shape)


@TABLE.serves("merge_attention_states", "flashinfer.merge_states", only={"base": ("2",)})
def merge_attention_states(outs: Any, lses: Any) -> Any:
    """``merge_states`` of states after tokens, logarithms to base 2."""
    return flashinfer.merge_states(outs.transpose(0, 1).contiguous(), lses.transpose(0, 1).contiguous())


@TABLE.serves("topk", "flashinfer.top_k", ("float16", "bfloat16", "float32"), layouts=CONTIGUOUS)
def topk(x: Any, k: int, ordered: bool, ties: str) -> Any:
    """``top_k``, which of equals at its limit prefers lower indices where it is told to."""
    smaller = int(ties == "lowest")
    values, indices = flashinfer.top_k(x, k, sorted=ordered, deterministic=True, tie_break=smaller)
    return indices.to(torch.int32), values


@TABLE.serves(
    "temperature_softmax",
    "flashinfer.softmax",
    ("float32",),
    layouts=CONTIGUOUS,
    refuses=lambda inputs, params: (
        "softmax divides by the temperature, and one is 0" if (inputs["temperature"] == 0).any() else None
    ),
)
def temperature_softmax(logits: Any, temperature: Any) -> Any:
    """``softmax`` with a temperature per row."""
    return flashinfer.sampling.softmax(logits, temperature)


def _wide_enough(inputs: Inputs, params: Params) -> str | None:
    q, v = inputs["q"], inputs.get("v", inputs.get("value_cache"))
    assert q is not None
    assert v is not None
    if not q.size or not v.size:
        return "the kernels take no empty tensors"
    if q.shape[-1] != v.shape[-1]:
        return f"the kernels have one head_dim for q, k and v, not {q.shape[-1]} and {v.shape[-1]}"
    return None if q.shape[-1] <= WIDTHS[-1] else f"head_dim = {q.shape[-1]} exceeds {WIDTHS[-1]}"


def _filled(x: Any) -> Any:
    """Heads filled up with zeros to a width that there is a kernel for; scores and values stay what they are."""
    width = next(width for width in WIDTHS if width >= x.shape[-1])
    return torch.nn.functional.pad(x, (0, width - x.shape[-1])).contiguous()


@TABLE.serves(
    "attention",
    "flashinfer.single_prefill_with_kv_cache",
    only={"causal": ("none", "bottom_right")},
    numerics=attention_on_tensor_cores,
    refuses=_wide_enough,
)
def attention(q: Any, k: Any, v: Any, causal: str, scale: float | None) -> Any:
    """``single_prefill_with_kv_cache`` of each sequence; its causal mask is the bottom-right one."""
    outs, lses = [], []
    for sequence in zip(q, k, v, strict=True):
        heads = (_filled(x.transpose(0, 1)) for x in sequence)
        out, lse = flashinfer.single_prefill_with_kv_cache(
            *heads, causal=causal != "none", sm_scale=scale or q.shape[-1] ** -0.5, return_lse=True
        )
        outs.append(out[..., : v.shape[-1]].transpose(0, 1))
        lses.append(lse.T * math.log(2.0))
    return torch.stack(outs), torch.stack(lses)


@TABLE.serves(
    "attention_varlen",
    "flashinfer.BatchPrefillWithRaggedKVCacheWrapper",
    only={"causal": ("none", "bottom_right"), "window_right": (-1,)},
    numerics=attention_on_tensor_cores,
    refuses=_wide_enough,
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
    softcap: float | None,
    scale: float | None,
) -> Any:
    """``BatchPrefillWithRaggedKVCacheWrapper``: a plan of the boundaries, and a run."""
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(_workspace(q), "NHD")
    queries, keys, values = _filled(q), _filled(k), _filled(v)
    wrapper.plan(
        cu_seqlens_q, cu_seqlens_k, q.shape[1], k.shape[1], queries.shape[-1], causal=causal != "none",
        window_left=window_left, logits_soft_cap=softcap, sm_scale=scale or q.shape[-1] ** -0.5, q_data_type=q.dtype,
    )  # fmt: skip
    out, lse = wrapper.run(queries, keys, values, return_lse=True)
    return out[..., : v.shape[-1]], lse.T * math.log(2.0)


def _workspace(x: Any) -> Any:
    return torch.zeros(WORKSPACE, dtype=torch.uint8, device=x.device)


def _pages(page_table: Any, lengths: Any, page_size: int) -> tuple[Any, Any, Any]:
    """Pages of all sequences one after another, where each begins, and how much of its last page is used."""
    counts = (lengths + page_size - 1) // page_size
    starts = torch.nn.functional.pad(torch.cumsum(counts, 0), (1, 0)).to(torch.int32)
    used = [page_table[sequence, :count] for sequence, count in enumerate(counts.tolist())]
    last = torch.where(counts > 0, lengths - (counts - 1) * page_size, 0).to(torch.int32)
    return torch.cat(used).to(torch.int32), starts, last


PAGES = {"plain": "NHD", "heads_first": "HND"}


def _paged(inputs: Inputs, params: Params) -> str | None:
    lengths = inputs["lengths"]
    assert lengths is not None
    if (lengths == 0).any():
        return "a sequence without tokens has no page"
    return _wide_enough(inputs, params)


@TABLE.serves(
    "paged_attention_decode",
    "flashinfer.BatchDecodeWithPagedKVCacheWrapper",
    only={"layout": tuple(PAGES)},
    numerics=attention_on_tensor_cores,
    refuses=_paged,
)
def paged_attention_decode(
    q: Any,
    key_cache: Any,
    value_cache: Any,
    page_table: Any,
    lengths: Any,
    *,
    layout: str,
    window_left: int,
    softcap: float | None,
    scale: float | None,
) -> Any:
    """``BatchDecodeWithPagedKVCacheWrapper``: a plan of the pages, and a run."""
    size, heads = key_cache.shape[1:3] if layout == "plain" else key_cache.shape[2:0:-1]
    pages, starts, last = _pages(page_table, lengths, size)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(_workspace(q), PAGES[layout])
    queries, caches = _filled(q), (_filled(key_cache), _filled(value_cache))
    wrapper.plan(
        starts, pages, last, q.shape[1], heads, queries.shape[-1], size, window_left=window_left,
        logits_soft_cap=softcap, sm_scale=scale or q.shape[-1] ** -0.5, q_data_type=q.dtype,
    )  # fmt: skip
    out, lse = wrapper.run(queries, caches, return_lse=True)
    return out[..., : value_cache.shape[-1]], lse * math.log(2.0)


ABSENT = by_operator(
    {
        "FlashInfer's samplers draw their numbers themselves": (
            "sample_top_k",
            "sample_top_p",
            "sample_min_p",
            "sample_top_k_top_p",
            "speculative_chain",
        ),
        "FlashInfer's collectives need a process per rank": ("all_reduce", "all_gather", "all_to_all"),
    }
)

backend = LibraryBackend("flashinfer", on_gpu("FlashInfer"), TABLE.rows, ABSENT)
