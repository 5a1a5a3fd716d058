"""Backend over the installed PyTorch on CPU: each operator as a PyTorch user would write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracle.numerics import Numerics
from refsim.conformance.backends.backend import Capability, RunResult, UsageError, promised, usual_numerics

try:
    import torch
except ImportError as error:
    raise UsageError("PyTorch is not installed; install it with: python -m pip install 'refsim[torch]'") from error

DTYPES = ("float16", "bfloat16", "float32", "float64")
Tensors = dict[str, Any]


def torch_sum(inputs: Tensors, params: Mapping[str, Any]) -> tuple[Any, ...]:
    """``torch.sum``."""
    return (torch.sum(inputs["x"], dim=params["axis"]),)


def torch_softmax(inputs: Tensors, params: Mapping[str, Any]) -> tuple[Any, ...]:
    """``torch.softmax``."""
    return (torch.softmax(inputs["x"], dim=-1),)


def torch_matmul(inputs: Tensors, params: Mapping[str, Any]) -> tuple[Any, ...]:
    """``torch.matmul``, or ``torch.addmm`` with a bias."""
    a = inputs["a"].T if params["transpose_a"] else inputs["a"]
    b = inputs["b"].T if params["transpose_b"] else inputs["b"]
    bias = inputs["bias"]
    return (torch.matmul(a, b) if bias is None else torch.addmm(bias, a, b),)


def torch_rmsnorm(inputs: Tensors, params: Mapping[str, Any]) -> tuple[Any, ...]:
    """``torch.nn.functional.rms_norm``."""
    x, weight = inputs["x"], inputs["weight"]
    return (torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, params["eps"]),)


def torch_attention(inputs: Tensors, params: Mapping[str, Any]) -> tuple[Any, ...]:
    """``scaled_dot_product_attention``; the log-sum-exp, which it does not return, by ``torch.logsumexp``."""
    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    queries, keys = q.shape[2], k.shape[2]
    scale = params["scale"] or q.shape[-1] ** -0.5
    row, column = torch.arange(queries)[:, None], torch.arange(keys)
    last = {"none": row * 0 + keys, "top_left": row, "bottom_right": row + keys - queries}[params["causal"]]
    visible = column <= last
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=visible, scale=scale)
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    score = (q.to(wide) @ k.to(wide).transpose(-1, -2)) * scale
    return out, torch.logsumexp(score.masked_fill(~visible, -torch.inf), dim=-1)


def torch_rope(inputs: Tensors, params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Tensor arithmetic in float32 (float64 for float64), rounded once, as PyTorch models write it."""
    x = inputs["x"]
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    positions = inputs["positions"].long()
    cos = inputs["cos"].to(wide)[positions][:, None]
    sin = inputs["sin"].to(wide)[positions][:, None]
    half = cos.shape[-1]
    turned, tail = x[..., : 2 * half].to(wide), x[..., 2 * half :]
    if params["pairing"] == "neox":
        first, second = turned[..., :half], turned[..., half:]
        rotated = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    else:
        first, second = turned[..., ::2], turned[..., 1::2]
        rotated = torch.stack((first * cos - second * sin, second * cos + first * sin), dim=-1).flatten(-2)
    return (torch.cat((rotated.to(x.dtype), tail), dim=-1),)


OPERATORS: dict[str, Callable[[Tensors, Mapping[str, Any]], tuple[Any, ...]]] = {
    "sum": torch_sum,
    "softmax": torch_softmax,
    "matmul": torch_matmul,
    "rmsnorm": torch_rmsnorm,
    "attention": torch_attention,
    "rope": torch_rope,
}


class TorchBackend:
    """PyTorch on CPU."""

    name = "torch"
    device = "cpu"

    def capabilities(self) -> list[Capability]:
        """Every operator in every dtype."""
        return [Capability(name, f"torch {torch.__version__}", dtype) for name in OPERATORS for dtype in DTYPES]

    def numerics(self, operator: str, kernel: str, dtype: str) -> Numerics:
        """float32 inside for 16-bit dtypes; the CPU attention rounds its weights to the dtype before they meet v."""
        numerics = promised(usual_numerics(dtype))
        if operator == "attention" and dtype in ("float16", "bfloat16"):
            return numerics.with_changes(name=f"{numerics.name}, {dtype} weights", probability_format=dtype)
        return numerics

    def run(
        self,
        operator: str,
        kernel: str,
        inputs: Mapping[str, np.ndarray[Any, Any] | None],
        params: Mapping[str, Any],
    ) -> RunResult:
        """Run one operator on tensors that share memory with ``inputs``, strides and all."""
        tensors = {name: None if array is None else _tensor(array) for name, array in inputs.items()}
        return RunResult([_array(output, inputs) for output in OPERATORS[operator](tensors, params)])


def _tensor(array: np.ndarray[Any, Any]) -> Any:
    """A tensor over the same memory; NumPy's bfloat16 goes through its bits."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _array(tensor: Any, inputs: Mapping[str, np.ndarray[Any, Any] | None]) -> np.ndarray[Any, Any]:
    """A NumPy array of a tensor's values."""
    tensor = tensor.contiguous()
    if tensor.dtype == torch.bfloat16:
        given = (array.dtype for array in inputs.values() if array is not None)
        bfloat16 = next(dtype for dtype in given if dtype.name == "bfloat16")
        bits: np.ndarray[Any, Any] = tensor.view(torch.int16).numpy()
        return bits.view(bfloat16)
    values: np.ndarray[Any, Any] = tensor.numpy()
    return values


backend = TorchBackend()
