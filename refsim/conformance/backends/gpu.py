"""What backends over GPU libraries of PyTorch share: their devices, and reasons to refuse."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from refsim.conformance.backends.backend import Refused, UsageError
from refsim.conformance.backends.library import Inputs, Served
from refsim.conformance.backends.torch.arrays import TorchArrays

INTERPRETER = "TRITON_INTERPRET"


class InterpretedArrays(TorchArrays):
    """Tensors on CPU for kernels that Triton interprets; what its interpreter cannot do is refused."""

    @contextlib.contextmanager
    def scope(self, inputs: Inputs) -> Iterator[None]:
        """No gradients are kept."""
        from triton.runtime.errors import InterpreterError

        try:
            with super().scope(inputs):
                yield
        except InterpreterError as error:
            raise Refused(f"Triton's interpreter cannot run the kernel: {error}") from error
        except RuntimeError as error:
            if "active drivers" not in str(error):
                raise
            raise Refused(f"Triton's tuner asks for a GPU, though the kernel would be interpreted: {error}") from error


def interpreted() -> bool:
    """Whether Triton is told to interpret its kernels."""
    return os.environ.get(INTERPRETER) == "1"


def runnable(rows: Iterable[Served]) -> list[Served]:
    """Rows as they are on a GPU; without bfloat16 where Triton interprets, since its interpreter cuts off its bits."""
    if not interpreted():
        return list(rows)
    return [replace(row, dtypes=tuple(dtype for dtype in row.dtypes if dtype != "bfloat16")) for row in rows]


def on_gpu(name: str) -> TorchArrays:
    """Tensors on the first GPU. Raises UsageError where there is none."""
    try:
        return TorchArrays("cuda:0")
    except UsageError as error:
        raise UsageError(f"{name} has kernels for GPUs only, and {error}") from error


def on_gpu_or_interpreted(name: str) -> TorchArrays:
    """Tensors on the first GPU; on CPU where Triton is told to interpret its kernels. Raises UsageError otherwise."""
    if interpreted():
        return InterpretedArrays("cpu")
    try:
        return on_gpu(name)
    except UsageError as error:
        raise UsageError(f"{error}; or set {INTERPRETER}=1, by which Triton interprets kernels on the CPU") from error


def twice_in_16_bits(inputs: Inputs, params: Mapping[str, Any]) -> str | None:
    """Why a case is refused by kernels that round before their last product: in float32 that is no rounding."""
    arrays = [array for array in inputs.values() if array is not None]
    if params["rounding"] == "twice" or arrays[0].dtype.itemsize > 2:
        return None
    return "the kernel rounds to 16 bits before its last product, and rounding='once' is asked for"


def once_in_16_bits(inputs: Inputs, params: Mapping[str, Any]) -> str | None:
    """Why a case is refused by kernels that round at the end only: in float32 there is nothing to round before it."""
    arrays = [array for array in inputs.values() if array is not None]
    if params["rounding"] == "once" or arrays[0].dtype.itemsize > 2:
        return None
    return "the kernel rounds at its end only, and rounding='twice' is asked for"
