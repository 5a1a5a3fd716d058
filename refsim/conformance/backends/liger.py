"""Backend over Liger Kernel: Triton kernels for training.

Source: liger-kernel 0.8.5 (PyPI), ``liger_kernel/transformers/functional.py`` and the kernels of
``liger_kernel/ops`` that it calls: ``liger_rms_norm(X, W, eps, offset, casting_mode, in_place)``, where the casting
mode "llama" rounds before the weight and "gemma" at the end; ``liger_rope(q, k, cos, sin, …)`` with cosines and sines
of both halves of a head; ``liger_swiglu(a, b)`` and ``liger_geglu(a, b)``, which round before the product.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refsim.conformance.backends.library import Inputs, LibraryBackend, Table, by_operator, in_dtype, not_installed

try:
    import torch
    from liger_kernel.transformers import functional as liger
except ImportError as error:
    raise not_installed("Liger Kernel", "python -m pip install liger-kernel torch", error) from error

from refsim.conformance.backends.gpu import on_gpu_or_interpreted, runnable, twice_in_16_bits
from refsim.conformance.backends.gpu_numerics import SHORT, fast

TABLE = Table(fast, SHORT)


@TABLE.serves("softmax", "liger_softmax")
def softmax(x: Any) -> Any:
    """``liger_softmax(x)``."""
    return liger.liger_softmax(x)


@TABLE.serves("rmsnorm", "liger_rms_norm")
def rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    """``liger_rms_norm`` that casts at the end."""
    return liger.liger_rms_norm(x, weight, eps, 0.0, "gemma", in_place=False)


@TABLE.serves("gemma_rmsnorm", "liger_rms_norm")
def gemma_rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    """``liger_rms_norm`` with an offset of 1, cast at the end."""
    return liger.liger_rms_norm(x, weight, eps, 1.0, "gemma", in_place=False)


@TABLE.serves("t5_rmsnorm", "liger_rms_norm")
def t5_rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    """``liger_rms_norm`` that casts before the weight."""
    return liger.liger_rms_norm(x, weight, eps, 0.0, "llama", in_place=False)


@TABLE.serves("fused_add_rmsnorm", "liger_fused_add_rms_norm", only={"normalised": ("rounded",)})
def fused_add_rmsnorm(x: Any, residual: Any, weight: Any, eps: float, gain: str, rounding: str) -> Any:
    """``liger_fused_add_rms_norm``, which gives the norm and the sum."""
    offset, mode = float(gain == "one_plus_weight"), "gemma" if rounding == "once" else "llama"
    out, total = liger.liger_fused_add_rms_norm(x, residual, weight, eps, offset, mode, in_place=False)
    return total, out


def _affine(inputs: Inputs, params: Mapping[str, Any]) -> str | None:
    absent = [name for name in ("weight", "bias") if inputs[name] is None]
    return f"the function asks for weight and bias, and {absent[0]} is left out" if absent else None


@TABLE.serves(
    "layernorm",
    "liger_layer_norm",
    refuses=_affine,
)
def layernorm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    """``liger_layer_norm``."""
    return liger.liger_layer_norm(x, weight, bias, eps)


@TABLE.serves(
    "groupnorm",
    "liger_group_norm",
    refuses=_affine,
)
def groupnorm(x: Any, weight: Any, bias: Any, groups: int, eps: float) -> Any:
    """``liger_group_norm``."""
    return liger.liger_group_norm(x, weight, bias, x.shape[1], groups, eps)


def _halves(x: Any, pairing: str) -> tuple[Any, Any]:
    first, second = x.chunk(2, dim=-1) if pairing == "halves" else (x[..., ::2], x[..., 1::2])
    return first.contiguous(), second.contiguous()


@TABLE.serves("silu_and_mul", "liger_swiglu", refuses=twice_in_16_bits)
def silu_and_mul(x: Any, *, pairing: str, rounding: str) -> Any:
    """``liger_swiglu`` of gate and value."""
    gate, value = _halves(x, pairing)
    return liger.liger_swiglu(gate, value)


@TABLE.serves("gelu_and_mul", "liger_geglu", only={"approximate": ("tanh",)}, refuses=twice_in_16_bits)
def gelu_and_mul(x: Any, *, pairing: str, rounding: str) -> Any:
    """``liger_geglu`` of gate and value, by tanh."""
    gate, value = _halves(x, pairing)
    return liger.liger_geglu(gate, value)


@TABLE.serves("rope_qk", "liger_rope", only={"pairing": ("neox",), "plain_first": (False,)}, numerics=in_dtype)
def rope_qk(q: Any, k: Any, positions: Any, cos: Any, sin: Any, offsets: Any) -> Any:
    """``liger_rope`` of one sequence, which writes to what it is given: copies."""
    rows = positions if offsets is None else positions + offsets
    cosine, sine = (torch.cat((table[rows], table[rows]), dim=-1)[None] for table in (cos, sin))
    heads = (x.transpose(0, 1)[None].clone() for x in (q, k))
    q_out, k_out = liger.liger_rope(*heads, cosine, sine)
    return q_out[0].transpose(0, 1), k_out[0].transpose(0, 1)


ABSENT = by_operator(
    {
        "Liger Kernel has kernels for training only: no cache and no sampler": (
            "reshape_and_cache",
            "reshape_and_cache_flash",
            "paged_attention_decode",
            "paged_attention_prefill",
            "sample_top_k",
            "sample_top_p",
        ),
        "Liger Kernel leaves attention and matrix products to PyTorch": ("attention", "matmul", "batched_matmul"),
    }
)

backend = LibraryBackend("liger", on_gpu_or_interpreted("Liger Kernel"), runnable(TABLE.rows), ABSENT)
