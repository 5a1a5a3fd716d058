"""Reductions, activations, norms and rotations by PyTorch's functions.

Source: docs.pytorch.org, ``torch`` and ``torch.nn.functional`` (2.14).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from refsim.conformance.backends.library import in_dtype, term_by_term
from refsim.conformance.backends.torch.table import TABLE


def wide(x: Any) -> Any:
    """The dtype that models compute in: float32, and float64 for float64."""
    return torch.promote_types(x.dtype, torch.float32)


@TABLE.serves("sum", "torch.sum")
def torch_sum(x: Any, axis: int | None) -> Any:
    """``torch.sum``."""
    return torch.sum(x, dim=axis)


@TABLE.serves("mean", "torch.mean")
def mean(x: Any) -> Any:
    """``torch.mean``."""
    return torch.mean(x, dim=-1)


@TABLE.serves("max", "torch.amax")
def largest(x: Any) -> Any:
    """``torch.amax``."""
    return torch.amax(x, dim=-1)


@TABLE.serves("argmax", "torch.argmax", only={"ties": ("lowest",)})
def argmax(x: Any) -> Any:
    """``torch.argmax``: of several maximal values the first."""
    return torch.argmax(x, dim=-1).to(torch.int32)


@TABLE.serves("greedy", "torch.argmax")
def greedy(logits: Any) -> Any:
    """``torch.argmax``."""
    return torch.argmax(logits, dim=-1).to(torch.int32)


@TABLE.serves("topk", "torch.topk", only={"ties": ("any",)})
def topk(x: Any, k: int, ordered: bool) -> Any:
    """``torch.topk``, which says nothing of equals."""
    values, indices = torch.topk(x, k, dim=-1, sorted=ordered)
    return indices.to(torch.int32), values


@TABLE.serves("topk", "torch.sort")
def topk_by_sort(x: Any, k: int) -> Any:
    """``torch.sort``, descending and stable, so that of equals the first comes first; its first k."""
    values, indices = torch.sort(x, dim=-1, descending=True, stable=True)
    return indices[:, :k].to(torch.int32), values[:, :k]


@TABLE.serves("cumsum", "torch.cumsum")
def cumsum(x: Any, exclusive: bool) -> Any:
    """``torch.cumsum``; of x behind a 0 and without its last for an exclusive one."""
    if not exclusive:
        return torch.cumsum(x, dim=-1)
    return torch.cumsum(F.pad(x, (1, 0))[..., :-1], dim=-1)


@TABLE.serves("softmax", "torch.softmax")
def softmax(x: Any) -> Any:
    """``torch.softmax``."""
    return torch.softmax(x, dim=-1)


@TABLE.serves("log_softmax", "torch.log_softmax")
def log_softmax(x: Any) -> Any:
    """``torch.log_softmax``."""
    return torch.log_softmax(x, dim=-1)


@TABLE.serves("logsumexp", "torch.logsumexp", numerics=in_dtype)
def logsumexp(x: Any) -> Any:
    """``torch.logsumexp``, whose steps are tensors of x's dtype."""
    return torch.logsumexp(x, dim=-1)


@TABLE.serves("temperature_softmax", "torch.softmax")
def temperature_softmax(logits: Any, temperature: Any) -> Any:
    """``torch.softmax`` of float32 logits over the temperature; ``one_hot`` of the best where that is 0."""
    dtype = wide(logits)
    cold = temperature[:, None] == 0
    divisor = torch.where(cold, 1, temperature[:, None]).to(dtype)
    share = torch.softmax(logits.to(dtype) / divisor, dim=-1)
    best = F.one_hot(torch.argmax(logits, dim=-1), logits.shape[-1]).to(dtype)
    return torch.where(cold, best, share)


def _gate_and_value(x: Any, bias: Any, pairing: str) -> tuple[Any, Any]:
    x = x if bias is None else x + bias
    half = x.shape[-1] // 2
    return (x[..., :half], x[..., half:]) if pairing == "halves" else (x[..., ::2], x[..., 1::2])


@TABLE.serves("silu_and_mul", "torch.nn.functional.silu", numerics=in_dtype)
def silu_and_mul(x: Any, bias: Any, pairing: str, limit: float | None, rounding: str) -> Any:
    """``silu`` of the gate, times the value; with both cut off by ``clamp``."""
    gate, value = _gate_and_value(x, bias, pairing)
    if limit is not None:
        gate, value = gate.clamp(max=limit), value.clamp(-limit, limit)
    return F.silu(gate) * value


@TABLE.serves("gelu_and_mul", "torch.nn.functional.gelu", numerics=in_dtype)
def gelu_and_mul(x: Any, bias: Any, pairing: str, approximate: str, rounding: str) -> Any:
    """``gelu`` of the gate, times the value."""
    gate, value = _gate_and_value(x, bias, pairing)
    return F.gelu(gate, approximate=approximate) * value


@TABLE.serves("relu2_and_mul", "torch.nn.functional.relu", numerics=in_dtype)
def relu2_and_mul(x: Any, bias: Any, pairing: str, rounding: str) -> Any:
    """``square`` of ``relu`` of the gate, times the value."""
    gate, value = _gate_and_value(x, bias, pairing)
    return F.relu(gate).square() * value


@TABLE.serves("swiglu_with_limit", "torch.sigmoid", numerics=in_dtype)
def swiglu_with_limit(x: Any, bias: Any, pairing: str, alpha: float, limit: float) -> Any:
    """``clamp`` and ``sigmoid``."""
    gate, value = _gate_and_value(x, bias, pairing)
    gate, value = gate.clamp(max=limit), value.clamp(-limit, limit)
    return gate * torch.sigmoid(alpha * gate) * (value + 1)


@TABLE.serves("layernorm", "torch.nn.functional.layer_norm", numerics=term_by_term)
def layernorm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    """``layer_norm``."""
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


@TABLE.serves("groupnorm", "torch.nn.functional.group_norm", numerics=term_by_term)
def groupnorm(x: Any, weight: Any, bias: Any, groups: int, eps: float) -> Any:
    """``group_norm``."""
    return F.group_norm(x, groups, weight, bias, eps)


def _rms_norm(x: Any, weight: Any, eps: float, rounding: str) -> Any:
    """``rms_norm``, with the weight in it or after it."""
    if rounding == "once":
        return F.rms_norm(x, x.shape[-1:], weight, eps)
    return F.rms_norm(x, x.shape[-1:], None, eps) * weight


@TABLE.serves("rmsnorm", "torch.nn.functional.rms_norm")
def rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    """``rms_norm``."""
    return _rms_norm(x, weight, eps, "once")


@TABLE.serves("gemma_rmsnorm", "torch.nn.functional.rms_norm", numerics=in_dtype)
def gemma_rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    """``rms_norm`` with 1 + weight, which is rounded."""
    return _rms_norm(x, 1 + weight, eps, "once")


@TABLE.serves("t5_rmsnorm", "torch.nn.functional.rms_norm")
def t5_rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    """``rms_norm`` without weight, times the weight."""
    return _rms_norm(x, weight, eps, "twice")


@TABLE.serves(
    "fused_add_rmsnorm", "torch.nn.functional.rms_norm", only={"gain": ("weight",), "normalised": ("rounded",)}
)
def fused_add_rmsnorm(x: Any, residual: Any, weight: Any, eps: float, rounding: str) -> Any:
    """``rms_norm`` of the sum."""
    total = x + residual
    return total, _rms_norm(total, weight, eps, rounding)


@TABLE.serves(
    "fused_add_layernorm",
    "torch.nn.functional.layer_norm",
    only={"normalised": ("rounded",)},
    numerics=term_by_term,
)
def fused_add_layernorm(x: Any, residual: Any, weight: Any, bias: Any, eps: float) -> Any:
    """``layer_norm`` of the sum."""
    total = x + residual
    return total, F.layer_norm(total, x.shape[-1:], weight, bias, eps)


@TABLE.serves("qk_norm", "torch.nn.functional.rms_norm", only={"gain": ("weight",)})
def qk_norm(q: Any, k: Any, q_weight: Any, k_weight: Any, eps: float, rounding: str) -> Any:
    """``rms_norm`` of each."""
    return _rms_norm(q, q_weight, eps, rounding), _rms_norm(k, k_weight, eps, rounding)


def _turned(x: Any, cosine: Any, sine: Any, pairing: str) -> Any:
    """x (tokens, heads, head_dim) turned by angles (tokens, half) in float32 at least, and rounded once."""
    dtype = wide(x)
    cosine, sine = cosine[:, None].to(dtype), sine[:, None].to(dtype)
    half = cosine.shape[-1]
    front, rest = x[..., : 2 * half].to(dtype), x[..., 2 * half :]
    if pairing == "neox":
        first, second = front[..., :half], front[..., half:]
        turned = torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)
    else:
        first, second = front[..., ::2], front[..., 1::2]
        turned = torch.stack((first * cosine - second * sine, second * cosine + first * sine), dim=-1).flatten(-2)
    return torch.cat((turned.to(x.dtype), rest), dim=-1)


@TABLE.serves("rope", "torch.Tensor")
def rope(x: Any, positions: Any, cos: Any, sin: Any, pairing: str) -> Any:
    """Tensor arithmetic in float32, as PyTorch models write it."""
    return _turned(x, cos[positions], sin[positions], pairing)


@TABLE.serves("rope_backward", "torch.autograd.grad", compiles=False)
def rope_backward(grad: Any, positions: Any, cos: Any, sin: Any, pairing: str) -> Any:
    """``torch.autograd.grad`` through `rope`."""
    with torch.enable_grad():
        x = torch.zeros_like(grad, requires_grad=True)
        return torch.autograd.grad(_turned(x, cos[positions], sin[positions], pairing), x, grad)[0]


@TABLE.serves("rope_qk", "torch.Tensor", only={"plain_first": (False,)})
def rope_qk(q: Any, k: Any, positions: Any, cos: Any, sin: Any, offsets: Any, pairing: str) -> Any:
    """Tensor arithmetic in float32, as PyTorch models write it."""
    rows = positions if offsets is None else positions + offsets
    return _turned(q, cos[rows], sin[rows], pairing), _turned(k, cos[rows], sin[rows], pairing)


@TABLE.serves("rope_2d", "torch.Tensor")
def rope_2d(
    x: Any, rows: Any, columns: Any, cos_rows: Any, sin_rows: Any, cos_columns: Any, sin_columns: Any, pairing: str
) -> Any:
    """Tensor arithmetic in float32, as PyTorch models write it."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat(
        (
            _turned(first, cos_rows[rows], sin_rows[rows], pairing),
            _turned(second, cos_columns[columns], sin_columns[columns], pairing),
        ),
        dim=-1,
    )


@TABLE.serves("mrope", "torch.Tensor", only={"interleaved": (False,)})
def mrope(x: Any, positions: Any, cos: Any, sin: Any, temporal: int, height: int, width: int, pairing: str) -> Any:
    """Tensor arithmetic in float32, the angles of each section picked as Qwen2-VL's model picks them."""

    def angles(table: Any) -> Any:
        parts = table[positions].split([temporal, height, width], dim=-1)
        return torch.cat([part[kind] for kind, part in enumerate(parts)], dim=-1)

    return _turned(x, angles(cos), angles(sin), pairing)


@TABLE.serves("rope_table", "torch.cos", numerics=in_dtype)
def rope_table(frequencies: Any, positions: Any, factor: float, magnitude: float) -> Any:
    """``torch.cos`` and ``torch.sin`` of ``torch.outer``."""
    angle = torch.outer(positions.to(frequencies.dtype), frequencies) / factor
    return torch.cos(angle) * magnitude, torch.sin(angle) * magnitude
