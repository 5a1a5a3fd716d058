"""Matrix products, convolutions, experts and quantisation by PyTorch's functions.

Source: docs.pytorch.org, ``torch`` and ``torch.nn.functional`` (2.14); aten/src/ATen/native/native_functions.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import torch
import torch.nn.functional as F

from refsim.conformance.backends.gpu_numerics import on_fp8_tensor_cores, on_tensor_cores
from refsim.conformance.backends.library import Inputs, in_dtype
from refsim.conformance.backends.torch.reductions import wide
from refsim.conformance.backends.torch.table import TABLE

Params = Mapping[str, Any]
FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
# What matrix instructions load at once, in bytes: grouped_mm and scaled_mm ask for rows that are multiples of it.
LOADED = 16


@TABLE.serves("matmul", "torch.addmm", on_gpu=on_tensor_cores)
def matmul(a: Any, b: Any, bias: Any, transpose_a: bool, transpose_b: bool) -> Any:
    """``torch.addmm``, or ``torch.matmul`` without a bias."""
    a, b = a.T if transpose_a else a, b.T if transpose_b else b
    return torch.matmul(a, b) if bias is None else torch.addmm(bias, a, b)


@TABLE.serves("batched_matmul", "torch.baddbmm", on_gpu=on_tensor_cores)
def batched_matmul(a: Any, b: Any, bias: Any) -> Any:
    """``torch.baddbmm``, or ``torch.bmm`` without a bias."""
    return torch.bmm(a, b) if bias is None else torch.baddbmm(bias[:, None], a, b)


ACTIVATIONS = {
    "none": lambda x: x,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
}


@TABLE.serves("gemm_epilogue", "torch.addmm", numerics=in_dtype)
def gemm_epilogue(
    a: Any,
    b: Any,
    c: Any,
    bias: Any,
    alpha: float,
    beta: float,
    activation: str,
    transpose_a: bool,
    transpose_b: bool,
) -> Any:
    """``torch.addmm`` with alpha and beta, then the bias and the activation, each rounded."""
    a, b = a.T if transpose_a else a, b.T if transpose_b else b
    if c is None or not beta:
        c, beta = torch.zeros((), dtype=a.dtype, device=a.device), 0.0
    total = torch.addmm(c, a, b, alpha=alpha, beta=beta)
    total = total if bias is None else total + bias
    return ACTIVATIONS[activation](total)


def _padded(x: Any, *sizes: int) -> Any:
    """x with zeros up to a multiple of each size of its last axes."""
    shape = [*x.shape]
    for axis, size in zip(range(-len(sizes), 0), sizes, strict=True):
        shape[axis] += -shape[axis] % size
    out = torch.zeros(shape, dtype=x.dtype, device=x.device)
    out[tuple(slice(0, length) for length in x.shape)] = x
    return out


def _all_owned(inputs: Inputs, params: Params) -> str | None:
    a, b, ends = inputs["a"], inputs["b"], inputs["ends"]
    assert a is not None
    assert b is not None
    assert ends is not None
    if not a.size or not b.size:
        return "torch.nn.functional.grouped_mm takes no empty matrices"
    if ends[-1] == len(a):
        return None
    return "torch.nn.functional.grouped_mm says nothing of rows behind the last group"


@TABLE.serves(
    "grouped_matmul",
    "torch.nn.functional.grouped_mm",
    ("float16", "bfloat16", "float32"),
    refuses=_all_owned,
    on_gpu=on_tensor_cores,
)
def grouped_matmul(a: Any, b: Any, ends: Any) -> Any:
    """``grouped_mm`` with the groups' ends, on rows that are multiples of 16 bytes apart."""
    step = LOADED // a.element_size()
    k, n = b.shape[1:]
    offsets = torch.empty(ends.shape, dtype=torch.int32, device=ends.device).copy_(ends)  # a single one has its stride
    return F.grouped_mm(_padded(a, step)[:, :k], _padded(b, step)[..., :n], offs=offsets)


@TABLE.serves("matmul_a8w8", "torch._int_mm", ("int8",), refuses=lambda inputs, params: _int_mm_fits(inputs))
def int_matmul_a8w8(a: Any, b: Any, a_scale: Any, b_scale: Any, bias: Any, out_dtype: str) -> Any:
    """``torch._int_mm``, then scales and bias in float32."""
    product = torch._int_mm(a, b.T).to(torch.float32) * a_scale[:, None] * b_scale
    product = product if bias is None else product + bias
    return product.to(getattr(torch, out_dtype))


def _int_mm_fits(inputs: Inputs) -> str | None:
    a, b = inputs["a"], inputs["b"]
    assert a is not None
    assert b is not None
    if a.size and b.size:
        return None
    return "torch._int_mm takes no empty matrices"


def _scaled_mm_fits(inputs: Inputs, params: Params) -> str | None:
    a, b, bias = inputs["a"], inputs["b"], inputs["bias"]
    assert a is not None
    assert b is not None
    if not a.size or not b.size:
        return "torch.nn.functional.scaled_mm takes no empty matrices"
    if bias is not None and params["out_dtype"] != "float32":
        return "torch.nn.functional.scaled_mm takes a bias in the result's dtype only"
    return None


@TABLE.serves(
    "matmul_a8w8",
    "torch.nn.functional.scaled_mm",
    ("float8_e4m3fn", "float8_e5m2"),
    refuses=_scaled_mm_fits,
    on_gpu=on_fp8_tensor_cores,
)
def scaled_matmul_a8w8(a: Any, b: Any, a_scale: Any, b_scale: Any, out_dtype: str) -> Any:
    """``scaled_mm`` with a scale per row of either factor; k and n filled up with zeros to multiples of 16."""
    recipe, n = F.ScalingType.RowWise, len(b)
    columns = _padded(b_scale, LOADED)[None]
    out = F.scaled_mm(
        _padded(a, LOADED),
        _padded(b, LOADED, LOADED).T,
        a_scale[:, None].contiguous(),
        recipe,
        columns,
        recipe,
        output_dtype=getattr(torch, out_dtype),
    )
    return out[:, :n]


@TABLE.serves("causal_conv1d", "torch.nn.functional.conv1d", numerics=in_dtype)
def causal_conv1d(x: Any, weight: Any, state: Any, bias: Any, fresh: Any, activation: str) -> Any:
    """``conv1d``, a group per channel, of the state and x; then ``silu``."""
    state = state if fresh is None else torch.where(fresh[:, None, None] == 1, 0, state)
    known = torch.cat((state, x), dim=-1)
    return _convolved(known, weight, bias, activation), known[..., x.shape[-1] :]


def _convolved(known: Any, weight: Any, bias: Any, activation: str) -> Any:
    out = F.conv1d(known, weight[:, None], bias, groups=weight.shape[0])
    return F.silu(out) if activation == "silu" else out


@TABLE.serves("causal_conv1d_update", "torch.nn.functional.conv1d", numerics=in_dtype, compiles=False)
def causal_conv1d_update(x: Any, weight: Any, state: Any, slots: Any, bias: Any, activation: str) -> Any:
    """``conv1d`` of the states that are in use and x, and ``index_copy`` of the states after."""
    here = slots >= 0
    used = slots[here].long()
    known = torch.cat((state[used], x[here]), dim=-1)
    out = torch.zeros_like(x)
    out[here] = _convolved(known, weight, bias, activation)
    return out, state.index_copy(0, used, known[..., x.shape[-1] :])


@TABLE.serves("moe_sum", "torch.sum")
def moe_sum(x: Any, topk_ids: Any, topk_weights: Any) -> Any:
    """``torch.sum`` in float32 of what ``torch.where`` keeps."""
    terms = x.to(wide(x))
    kept = None if topk_ids is None else (topk_ids >= 0)[..., None]
    terms = terms if kept is None else torch.where(kept, terms, 0)
    if topk_weights is not None:
        weights = topk_weights[..., None]
        terms = terms * (weights if kept is None else torch.where(kept, weights, 0))
    return torch.sum(terms, dim=1).to(x.dtype)


@TABLE.serves("moe_gate", "torch.sort", only={"groups": (1,), "scoring": ("softmax", "sigmoid")})
def moe_gate(
    logits: Any, bias: Any, *, top_k: int, scoring: str, masked: str, renormalise: bool, scaling: float
) -> Any:
    """``torch.sort``, stable, of ``torch.softmax`` or ``torch.sigmoid`` in float32."""
    x = logits.to(wide(logits))
    scores = torch.softmax(x, dim=-1) if scoring == "softmax" else torch.sigmoid(x)
    ranked = scores if bias is None else scores + bias
    ids = torch.sort(ranked, dim=-1, descending=True, stable=True)[1][:, :top_k]
    weights = torch.gather(scores, -1, ids)
    weights = weights / weights.sum(dim=-1, keepdim=True) if renormalise else weights
    return ids.to(torch.int32), weights * scaling


def _spread(scale: Any, block: str, rows: int, cols: int) -> Any:
    """The scale of each element, by ``repeat_interleave``."""
    if "x" not in block:
        return scale
    high, wide_block = map(int, block.split("x"))
    return scale.repeat_interleave(high, dim=0).repeat_interleave(wide_block, dim=1)[:rows, :cols]


def _codes(ratio: Any, to: str) -> Any:
    if to == "int8":
        return torch.nan_to_num(ratio, 0.0, torch.inf, -torch.inf).round().clamp(-128, 127).to(torch.int8)
    largest = float(ml_dtypes.finfo(to).max)
    return ratio.clamp(-largest, largest).to(getattr(torch, to))


@TABLE.serves("quantise_static", "torch.Tensor.to", only={"rounding": ("nearest",)})
def quantise_static(x: Any, scale: Any, to: str, block: str) -> Any:
    """``clamp`` of the quotient and ``to``; ``round`` before that for int8."""
    return _codes(x.to(torch.float32) / _spread(scale, block, *x.shape), to)


def _has_elements(inputs: Inputs, params: Params) -> str | None:
    x = inputs["x"]
    assert x is not None
    return None if x.size else "torch.amax has no largest of no elements"


@TABLE.serves(
    "quantise",
    "torch.Tensor.to",
    only={"rounding": ("nearest",), "nans": ("propagate",), "block": ("tensor", "token", "channel")},
    refuses=_has_elements,
)
def quantise(x: Any, smooth: Any, *, to: str, block: str, largest: float | None, least: float, of_zero: str) -> Any:
    """``amax`` of the magnitudes, ``clamp`` and ``to``."""
    full = x.to(torch.float32) * (1 if smooth is None else smooth)
    axes = {"tensor": (0, 1), "token": (1,), "channel": (0,)}[block]
    amax = full.abs().amax(dim=axes, keepdim=True)
    most = 127.0 if to == "int8" else float(ml_dtypes.finfo(to).max)
    scale = (amax / (most if largest is None else largest)).clamp(min=least)
    scale = torch.where(amax == 0, 1, scale) if of_zero == "one" else scale
    return scale, _codes(full / scale, to)


@TABLE.serves("dequantise", "torch.Tensor.to", (*FLOAT8, "int8"), refuses=lambda inputs, params: _known_zero(inputs))
def dequantise(codes: Any, scale: Any, zero: Any, tensor_scale: Any, block: str, to: str) -> Any:
    """``to`` float32 of the codes, then products, rounded once."""
    full = codes.to(torch.float32)
    if zero is not None:
        full = full - _spread(zero.to(torch.float32), block, *codes.shape)
    out = full * _spread(scale.to(torch.float32), block, *codes.shape)
    return (out if tensor_scale is None else out * tensor_scale).to(getattr(torch, to))


def _known_zero(inputs: Inputs) -> str | None:
    zero = inputs["zero"]
    if zero is None or zero.dtype.name == "int8":
        return None
    return f"PyTorch has no tensors of {zero.dtype.name} with an element per byte"


@TABLE.serves("shuffle_weight", "torch.permute")
def shuffle_weight(weight: Any, inner: int, vector: int) -> Any:
    """``view``, ``permute`` and ``contiguous``."""
    n, k = weight.shape
    tiles = weight.reshape(n // 16, 16, k // (2 * inner), 2 * inner // vector, vector)
    return tiles.permute(0, 2, 3, 1, 4).contiguous().reshape(n, k)
