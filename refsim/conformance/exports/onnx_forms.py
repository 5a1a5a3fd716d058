"""Which ONNX operator says the same as one of ours, as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Params = Mapping[str, Any]


@dataclass(frozen=True)
class OnnxForm:
    """An operator as one ONNX node.

    Attributes
    ----------
    op_type : str
        The ONNX operator, of the default domain.
    opset : int
        The version of the operator set that first has it in this form.
    inputs : tuple of str
        Our inputs in the order of the node's.
    attributes : function
        The node's attributes, of our parameters.
    axes : function, optional
        The constant one-dimensional int64 input that comes last, of our parameters; None for none.
    dtypes : tuple of str
        What the node says exactly; empty for all.
    refuses : tuple of str
        Optional inputs that the node has no place for: cases with them are not exported.
    """

    op_type: str
    opset: int
    inputs: tuple[str, ...]
    attributes: Callable[[Params], dict[str, Any]]
    axes: Callable[[Params], list[int] | None] | None = None
    dtypes: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()


# Source: onnx/docs/Operators.md, of the operator sets named.
ONNX_FORMS: dict[str, OnnxForm] = {
    "softmax": OnnxForm("Softmax", 13, ("x",), lambda params: {"axis": -1}),
    "sum": OnnxForm(
        "ReduceSum",
        13,
        ("x",),
        lambda params: {"keepdims": 0},
        axes=lambda params: None if params["axis"] is None else [params["axis"]],
    ),
    "matmul": OnnxForm(
        "Gemm",
        13,
        ("a", "b", "bias"),
        lambda params: {"transA": int(params["transpose_a"]), "transB": int(params["transpose_b"])},
    ),
    "batched_matmul": OnnxForm("MatMul", 13, ("a", "b"), lambda params: {}, refuses=("bias",)),
    # Its epsilon is a float32, and so is its mean of squares by default: in float64 it is another operator.
    "rmsnorm": OnnxForm(
        "RMSNormalization",
        23,
        ("x", "weight"),
        lambda params: {"axis": -1, "epsilon": float(params["eps"])},
        dtypes=("float16", "bfloat16", "float32"),
    ),
}
