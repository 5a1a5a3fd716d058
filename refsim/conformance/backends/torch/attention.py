"""Attention by ``scaled_dot_product_attention``, by what it calls on CPU, and by ``flex_attention``.

Source: docs.pytorch.org, ``torch.nn.functional.scaled_dot_product_attention`` and ``torch.nn.attention`` (2.14);
aten/src/ATen/native/native_functions.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import flex_attention as torch_flex_attention

from oracle.numerics import Numerics
from refsim.conformance.backends.gpu_numerics import attention_on_tensor_cores
from refsim.conformance.backends.library import Inputs, weights_in_dtype
from refsim.conformance.backends.torch.reductions import wide
from refsim.conformance.backends.torch.table import TABLE

Params = Mapping[str, Any]


def _seen(q: Any, queries: int, keys: int, causal: str, left: int = -1, right: int = -1) -> Any:
    """The mask (queries, keys) of alignment and windows."""
    row = torch.arange(queries, device=q.device)[:, None] + (0 if causal == "top_left" else keys - queries)
    distance = torch.arange(keys, device=q.device) - row
    right = right if causal == "none" else 0
    seen = torch.ones((queries, keys), dtype=torch.bool, device=q.device)
    seen = seen if right < 0 else seen & (distance <= right)
    return seen if left < 0 else seen & (distance >= -left)


def _log_sum(q: Any, k: Any, seen: Any, scale: float | None, bias: Any) -> Any:
    """The log-sum-exp, which SDPA does not return, by ``torch.logsumexp`` of float32 scores."""
    k = k.repeat_interleave(q.shape[1] // max(k.shape[1], 1), dim=1)
    score = (q.to(wide(q)) @ k.to(wide(q)).transpose(-1, -2)) * (scale or q.shape[-1] ** -0.5)
    score = score if bias is None else score + bias.to(wide(q))
    return torch.logsumexp(score.masked_fill(~seen, -torch.inf), dim=-1)


@TABLE.serves(
    "attention",
    "torch.nn.functional.scaled_dot_product_attention",
    numerics=weights_in_dtype,
    on_gpu=attention_on_tensor_cores,
)
def attention(q: Any, k: Any, v: Any, causal: str, scale: float | None) -> Any:
    """``scaled_dot_product_attention``; ``is_causal`` is the top-left mask, the bottom-right one is given."""
    seen = _seen(q, q.shape[2], k.shape[2], causal)
    mask = seen if causal == "bottom_right" else None
    top_left = causal == "top_left"
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=top_left, scale=scale, enable_gqa=True)
    return out, _log_sum(q, k, seen, scale, None)


@TABLE.serves(
    "flash_attention",
    "torch.nn.functional.scaled_dot_product_attention",
    only={"softcap": (None,), "alibi": ("distance", "last_key")},
    numerics=weights_in_dtype,
    on_gpu=attention_on_tensor_cores,
)
def flash_attention(
    q: Any, k: Any, v: Any, bias: Any, *, causal: str, window_left: int, window_right: int, scale: float | None
) -> Any:
    """``scaled_dot_product_attention`` with a mask, which is also the bias."""
    seen = _seen(q, q.shape[2], k.shape[2], causal, window_left, window_right)
    mask = seen if bias is None else bias.masked_fill(~seen, -torch.inf)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale, enable_gqa=True)
    return out, _log_sum(q, k, seen, scale, bias)


def _heads_alike(inputs: Inputs, params: Params) -> str | None:
    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    assert q is not None
    assert k is not None
    assert v is not None
    if q.shape[1] != k.shape[1] or q.shape[-1] != v.shape[-1]:
        return "the function takes as many key heads as query heads, and one head_dim for q, k and v"
    if not q.size or not k.size:
        return "the function takes no empty tensors"
    apart = [name for name, array in inputs.items() if array is not None and array.strides[-1] != array.itemsize]
    return f"the function takes elements of a head side by side, and {apart[0]} lacks that" if apart else None


FOR_CPU = "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu"


@TABLE.serves("attention", FOR_CPU, numerics=weights_in_dtype, refuses=_heads_alike, devices=("cpu",))
def attention_for_cpu(q: Any, k: Any, v: Any, causal: str, scale: float | None) -> Any:
    """What SDPA calls on CPU, with its log-sum-exp."""
    mask = None
    if causal == "bottom_right":
        seen = _seen(q, q.shape[2], k.shape[2], causal)
        mask = torch.zeros(seen.shape, dtype=q.dtype).masked_fill(~seen, -torch.inf)
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, 0.0, causal == "top_left", attn_mask=mask, scale=scale
    )


@TABLE.serves(
    "attention_backward", f"{FOR_CPU}_backward", numerics=weights_in_dtype, refuses=_heads_alike, devices=("cpu",)
)
def attention_backward(
    dout: Any,
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    lse: Any,
    *,
    causal: str,
    window_left: int,
    window_right: int,
    scale: float | None,
) -> Any:
    """What the gradient of SDPA calls on CPU, from the out and the log-sum-exp that are given."""
    seen = _seen(q, q.shape[2], k.shape[2], causal, window_left, window_right)
    plain = causal == "none" and window_left < 0 and window_right < 0
    mask = None if plain else torch.zeros(seen.shape, dtype=q.dtype).masked_fill(~seen, -torch.inf)
    lse = lse.masked_fill(lse == -torch.inf, 0.0)  # what the forward function has for a query that sees no key
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        dout, q, k, v, out, lse.to(wide(q)), 0.0, False, attn_mask=mask, scale=scale
    )


def _in_base_two(dtype: str) -> Numerics:
    """The log-sum-exp is that of base 2, and comes back times log(2)."""
    numerics = weights_in_dtype(dtype)
    return numerics.with_changes(name=f"{numerics.name}, base 2", exp_form="exp2_fma")


def _flexible(inputs: Inputs, params: Params) -> str | None:
    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    assert q is not None
    assert k is not None
    assert v is not None
    return None if q.size and k.size and v.size else "flex_attention takes no empty tensors"


@TABLE.serves(
    "flash_attention",
    "torch.nn.attention.flex_attention",
    ("float16", "bfloat16", "float32"),
    numerics=_in_base_two,
    on_gpu=attention_on_tensor_cores,
    refuses=_flexible,
)
def flex_attention(
    q: Any,
    k: Any,
    v: Any,
    bias: Any,
    alibi_slopes: Any,
    *,
    causal: str,
    window_left: int,
    window_right: int,
    softcap: float | None,
    alibi: str,
    scale: float | None,
) -> Any:
    """``flex_attention`` with a score_mod of everything; called on its own, it runs without a fused kernel."""
    queries, keys = q.shape[2], k.shape[2]
    seen = _seen(q, queries, keys, causal, window_left, window_right)

    def score_mod(score: Any, batch: Any, head: Any, row: Any, column: Any) -> Any:
        if softcap is not None:
            score = torch.tanh(score / softcap) * softcap
        if alibi_slopes is not None:
            last = column - (keys - 1)
            distance = -torch.abs(row + keys - queries - column) if alibi == "distance" else last
            score = score + alibi_slopes[head] * distance
        if bias is not None:
            score = score + bias[batch, head, row, column]
        return torch.where(seen[row, column], score, -torch.inf)

    return torch_flex_attention(q, k, v, score_mod, scale=scale, enable_gqa=True, return_lse=True)
