"""NumPy arrays as PyTorch's and back, strides and all, on CPU or a GPU; and functions under ``torch.compile``."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from refsim.conformance.backends.backend import UsageError
from refsim.conformance.backends.library import Inputs, Served, not_installed

try:
    import torch
except ImportError as error:
    raise not_installed("PyTorch", "python -m pip install 'refsim[torch]'", error) from error

# Formats that NumPy has from ml_dtypes: they go through integers of the same size.
THROUGH_BITS = ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
BITS = {1: (np.uint8, torch.uint8), 2: (np.int16, torch.int16)}
# GPUs load up to so many bytes at once; an array keeps its place within them.
ALIGNMENT = 16


class TorchArrays:
    """Tensors on a device: on CPU over the same memory as the arrays, elsewhere in memory laid out alike."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        kind, _, number = device.partition(":")
        if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
            raise UsageError(f"device {device} cannot be used by PyTorch, which sees {torch.cuda.device_count()} GPUs")

    def on(self, device: str) -> TorchArrays:
        """Tensors on another device."""
        return TorchArrays(device)

    @contextlib.contextmanager
    def scope(self, inputs: Inputs) -> Iterator[None]:
        """No gradients are kept."""
        with torch.no_grad():
            yield

    def load(self, array: np.ndarray[Any, Any]) -> Any:
        """A tensor of an array; of a copy where it runs backward, which PyTorch has no tensors for."""
        if any(stride < 0 for stride in array.strides):
            array = array.copy()
        if array.dtype.name in THROUGH_BITS:
            bits = torch.from_numpy(array.view(BITS[array.dtype.itemsize][0]))
            tensor = bits.view(getattr(torch, array.dtype.name))
        else:
            tensor = torch.from_numpy(array)
        return tensor if self.device == "cpu" else placed(tensor, self.device)

    def store(self, output: Any) -> Any:
        """An array of a tensor's values; anything else as it is."""
        if not isinstance(output, torch.Tensor):
            return output
        tensor = output.detach().cpu().contiguous()
        name = str(tensor.dtype).removeprefix("torch.")
        if name not in THROUGH_BITS:
            return tensor.numpy()
        bits = tensor.view(BITS[tensor.element_size()][1]).numpy()
        return bits.view(getattr(ml_dtypes, name))


def placed(tensor: Any, device: str) -> Any:
    """A copy on a device with the same strides, and as far from an aligned address."""
    offset = tensor.data_ptr() % ALIGNMENT // tensor.element_size()
    extent = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)) + 1
    cells = torch.zeros(offset + (extent if tensor.numel() else 0), dtype=tensor.dtype, device=device)
    there = cells.as_strided(tensor.shape, tensor.stride(), offset)
    there.copy_(tensor)
    return there


def compiled(row: Served) -> Callable[..., Any]:
    """A function under ``torch.compile``, as one graph: however many shapes come, nothing falls back to eager code."""
    graph = torch.compile(row.call, fullgraph=True)
    # dynamo reads the limit when it compiles; beyond it, a function would run uncompiled.
    limit = {"recompile_limit": 1 << 16, "accumulated_recompile_limit": 1 << 16}

    def call(*arrays: Any, **params: Any) -> Any:
        with torch._dynamo.config.patch(limit):
            return graph(*arrays, **params)

    return functools.wraps(row.call)(call)
