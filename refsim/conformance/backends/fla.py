"""Backend over flash-linear-attention: Triton kernels for recurrent models and what stands around them.

Source: flash-linear-attention 0.6.0 with fla-core 0.6.0 (PyPI): ``fla/ops/gated_delta_rule/fused_recurrent.py`` and
``chunk.py``, on (batch, steps, heads, dim); ``fla/modules/causal_conv1d/ops.py``, on (batch, steps, dim) with states of
as many inputs as taps; ``fla/modules/norm/layernorm.py``; ``fla/modules/rotary/ops.py``, with an offset per sequence;
``fla/modules/activations/ops.py``; ``fla/ops/utils``.
"""

from __future__ import annotations

from typing import Any

from oracle.numerics import Numerics
from refsim.conformance.backends.library import LibraryBackend, Table, by_operator, not_installed

try:
    import fla.modules.activations.ops as activations
    import fla.modules.causal_conv1d.ops as convolutions
    import fla.modules.norm.layernorm as norms
    import fla.modules.rotary.ops as rotary
    import fla.ops.gated_delta_rule as delta_rule
    import fla.ops.utils.cumsum as sums
    import fla.ops.utils.softmax as softmaxes
    import torch
except ImportError as error:
    raise not_installed(
        "flash-linear-attention", "python -m pip install flash-linear-attention torch", error
    ) from error

from refsim.conformance.backends.gpu import on_gpu_or_interpreted, once_in_16_bits, runnable
from refsim.conformance.backends.gpu_numerics import SHORT, fast, on_tensor_cores

TABLE = Table(fast, SHORT)


@TABLE.serves("gated_delta_rule", "fused_recurrent_gated_delta_rule")
def fused_recurrent(q: Any, k: Any, v: Any, g: Any, beta: Any, state: Any, normalise: bool) -> Any:
    """``fused_recurrent_gated_delta_rule``, step by step."""
    q, k, v, g, beta = (x.transpose(1, 2).contiguous() for x in (q, k, v, g, beta))
    out, final = delta_rule.fused_recurrent_gated_delta_rule(
        q, k, v, g=g, beta=beta, initial_state=state.contiguous(), output_final_state=True,
        use_qk_l2norm_in_kernel=normalise,
    )  # fmt: skip
    return out.transpose(1, 2), final


def in_chunks(dtype: str) -> Numerics:
    """Chunks of 64 steps on tensor cores, whose factors are stored in the keys' dtype."""
    single = on_tensor_cores(dtype)
    return single.with_changes(name=f"{single.name}, {dtype} chunks", chunk=64, chunk_format=dtype)


@TABLE.serves("gated_delta_rule", "chunk_gated_delta_rule", ("float16", "bfloat16"), numerics=in_chunks)
def chunked(q: Any, k: Any, v: Any, g: Any, beta: Any, state: Any, normalise: bool) -> Any:
    """``chunk_gated_delta_rule``, by chunks of steps."""
    q, k, v, g, beta = (x.transpose(1, 2).contiguous() for x in (q, k, v, g, beta))
    out, final = delta_rule.chunk_gated_delta_rule(
        q, k, v, g, beta, initial_state=state.contiguous(), output_final_state=True,
        use_qk_l2norm_in_kernel=normalise,
    )  # fmt: skip
    return out.transpose(1, 2), final


@TABLE.serves("causal_conv1d", "causal_conv1d")
def causal_conv1d(x: Any, weight: Any, state: Any, bias: Any, activation: str) -> Any:
    """``causal_conv1d``, whose states have one input more: the first of it is not read."""
    before = torch.nn.functional.pad(state, (1, 0)).contiguous()
    out, after = convolutions.causal_conv1d(
        x.transpose(1, 2).contiguous(), weight.contiguous(), bias, initial_state=before, output_final_state=True,
        activation=None if activation == "none" else activation,
    )  # fmt: skip
    return out.transpose(1, 2), after[..., 1:]


@TABLE.serves("rmsnorm", "rms_norm")
def rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    """``rms_norm`` without bias."""
    return norms.rms_norm(x, weight, None, eps=eps)


@TABLE.serves("layernorm", "layer_norm")
def layernorm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    """``layer_norm``."""
    return norms.layer_norm(x, weight, bias, eps=eps)


@TABLE.serves(
    "fused_add_rmsnorm",
    "rms_norm",
    only={"gain": ("weight",), "normalised": ("unrounded",)},
    refuses=once_in_16_bits,
)
def fused_add_rmsnorm(x: Any, residual: Any, weight: Any, eps: float, rounding: str) -> Any:
    """``rms_norm`` with a residual, which gives the norm and the sum."""
    out, total = norms.rms_norm(x, weight, None, residual=residual, eps=eps, prenorm=True)
    return total, out


@TABLE.serves("fused_add_layernorm", "layer_norm", only={"normalised": ("unrounded",)})
def fused_add_layernorm(x: Any, residual: Any, weight: Any, bias: Any, eps: float) -> Any:
    """``layer_norm`` with a residual, which gives the norm and the sum."""
    out, total = norms.layer_norm(x, weight, bias, residual=residual, eps=eps, prenorm=True)
    return total, out


@TABLE.serves("silu_and_mul", "swiglu_fwd", refuses=once_in_16_bits)
def silu_and_mul(x: Any, *, pairing: str, rounding: str) -> Any:
    """``swiglu_fwd`` of gate and value."""
    gate, value = x.chunk(2, dim=-1) if pairing == "halves" else (x[..., ::2], x[..., 1::2])
    return activations.swiglu_fwd(gate.contiguous(), value.contiguous())


@TABLE.serves("rope", "rotary_embedding")
def rope(x: Any, positions: Any, cos: Any, sin: Any, pairing: str) -> Any:
    """``rotary_embedding`` of sequences of one token, each with its position as offset."""
    out = rotary.rotary_embedding(
        x[:, None].contiguous(), cos.contiguous(), sin.contiguous(), pairing == "gptj",
        seqlen_offsets=positions.contiguous(),
    )  # fmt: skip
    return out[:, 0]


@TABLE.serves(
    "cumsum",
    "chunk_global_cumsum",
    only={"exclusive": (False,)},
    refuses=lambda inputs, params: "chunk_global_cumsum takes (batch, steps, heads)" if _rank(inputs) != 2 else None,
)
def cumsum(x: Any) -> Any:
    """``chunk_global_cumsum`` of rows as sequences of one head."""
    return sums.chunk_global_cumsum(x[..., None].contiguous(), output_dtype=x.dtype)[..., 0]


def _rank(inputs: Any) -> int:
    return int(inputs["x"].ndim)


@TABLE.serves("softmax", "softmax_fwd")
def softmax(x: Any) -> Any:
    """``softmax_fwd``."""
    return softmaxes.softmax_fwd(x.contiguous(), dtype=x.dtype)


ABSENT = by_operator(
    {
        "flash-linear-attention has kernels for recurrent models: no cache of pages and no sampler": (
            "reshape_and_cache",
            "reshape_and_cache_flash",
            "paged_attention_decode",
            "paged_attention_prefill",
            "sample_top_k",
            "sample_top_p",
        ),
        "flash-linear-attention leaves selective scans to mamba-ssm": ("selective_scan",),
        "fla.modules normalises groups of the last axis": ("groupnorm",),
    }
)

backend = LibraryBackend("fla", on_gpu_or_interpreted("flash-linear-attention"), runnable(TABLE.rows), ABSENT)
