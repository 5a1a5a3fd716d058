"""Which ONNX node says the same as an operator of ours: a table, and a function for each kind of node."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oracle.formats import format_of
from refsim.conformance.backends.backend import Refused

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]
Params = Mapping[str, Any]


@dataclass(frozen=True)
class Packing:
    """How an array of ours lies in a node's tensor: axes in another order, then another shape, then another dtype."""

    axes: tuple[int, ...] | None = None
    shape: tuple[int, ...] | None = None
    dtype: str | None = None

    def pack(self, array: Array) -> Array:
        """The node's tensor, dense."""
        tensor = array if self.axes is None else array.transpose(self.axes)
        tensor = tensor if self.shape is None else tensor.reshape(self.shape)
        return tensor.astype(self.dtype or tensor.dtype, order="C", copy=True)

    def unpack(self, tensor: Array, like: Array) -> Array:
        """The array of ours, of a given one's shape and dtype."""
        if self.axes is None:
            return tensor.reshape(like.shape).astype(like.dtype)
        shape = tuple(like.shape[axis] for axis in self.axes)
        return tensor.reshape(shape).transpose(np.argsort(self.axes)).astype(like.dtype)


AS_IT_IS = Packing()
INDEX = Packing(dtype="int64")


@dataclass(frozen=True)
class OnnxNode:
    """One node.

    Attributes
    ----------
    op_type : str
        The ONNX operator, of the default domain.
    opset : int
        The version of the operator set that first has it in this form.
    inputs : mapping of str to array
        The tensors that it is given, in order; None where one is left out.
    outputs : mapping of str to Packing
        Our outputs in the order of the node's; it may lack the last of ours.
    attributes : mapping
        Numbers, strings, and for dtypes NumPy's.
    constants : mapping of str to array
        Inputs that come last and stand in the model itself.
    """

    op_type: str
    opset: int
    inputs: Mapping[str, Array | None]
    outputs: Mapping[str, Packing]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Array] = field(default_factory=dict)


Form = Callable[[Arrays, Params], OnnxNode]
OUT = {"out": AS_IT_IS}


def _rows(op_type: str, opset: int) -> Form:
    """A function of the last axis that keeps the shape."""
    return lambda arrays, params: OnnxNode(op_type, opset, arrays, OUT, {"axis": -1})


def _reduced(op_type: str, opset: int) -> Form:
    """A reduction of the last axis, or of the one that a parameter names."""

    def node(arrays: Arrays, params: Params) -> OnnxNode:
        axis = params.get("axis", -1)
        axes = {} if axis is None else {"axes": np.array([axis], np.int64)}
        return OnnxNode(op_type, opset, arrays, OUT, {"keepdims": 0}, axes)

    return node


def _cumsum(arrays: Arrays, params: Params) -> OnnxNode:
    axis = {"axis": np.array(-1, np.int64)}
    return OnnxNode("CumSum", 14, arrays, OUT, {"exclusive": int(params["exclusive"])}, axis)


def _argmax(output: str) -> Form:
    def node(arrays: Arrays, params: Params) -> OnnxNode:
        last = int(params.get("ties") == "highest")
        attributes = {"axis": -1, "keepdims": 0, "select_last_index": last}
        return OnnxNode("ArgMax", 13, arrays, {output: INDEX}, attributes)

    return node


def _topk(arrays: Arrays, params: Params) -> OnnxNode:
    if not params["ordered"]:
        raise Refused("TopK leaves the order undefined where it is not sorted, and a test compares elements in order")
    opset = 24 if arrays["x"].dtype.name == "bfloat16" else 11
    count = {"k": np.array([params["k"]], np.int64)}
    return OnnxNode("TopK", opset, arrays, {"values": AS_IT_IS, "indices": INDEX}, {"axis": -1}, count)


def _matmul(arrays: Arrays, params: Params) -> OnnxNode:
    attributes = {"transA": int(params["transpose_a"]), "transB": int(params["transpose_b"])}
    return OnnxNode("Gemm", 13, arrays, OUT, attributes)


def _batched_matmul(arrays: Arrays, params: Params) -> OnnxNode:
    _without("MatMul", arrays, "bias")
    return OnnxNode("MatMul", 13, arrays, OUT)


def _gemm_epilogue(arrays: Arrays, params: Params) -> OnnxNode:
    if params["activation"] != "none":
        raise Refused(f"Gemm has no activation {params['activation']}")
    added = {name: array for name, array in arrays.items() if name == "bias" or (name == "c" and params["beta"])}
    if len(added) > 1:
        raise Refused("Gemm adds one matrix, not c and bias")
    attributes = {
        "alpha": _float32("Gemm", "alpha", params["alpha"], arrays["a"]),
        "beta": _float32("Gemm", "beta", params["beta"] if "c" in added else 1.0, arrays["a"]),
        "transA": int(params["transpose_a"]),
        "transB": int(params["transpose_b"]),
    }
    return OnnxNode("Gemm", 13, {"a": arrays["a"], "b": arrays["b"], **added}, OUT, attributes)


def _normalised(op_type: str, opset: int, *needed: str) -> Form:
    """A normalisation: its epsilon is a float32, and so are its means by default, so in float64 it is another one."""

    def node(arrays: Arrays, params: Params) -> OnnxNode:
        _not_float64(op_type, "epsilon and mean", arrays["x"])
        for name in needed:
            if name not in arrays:
                raise Refused(f"{op_type} cannot be without {name}")
        if not arrays["x"].size:
            raise Refused(f"{op_type} says nothing of no elements")
        groups = {"num_groups": params["groups"]} if "groups" in params else {"axis": -1}
        return OnnxNode(op_type, opset, arrays, OUT, {**groups, "epsilon": float(params["eps"])})

    return node


def _rope(arrays: Arrays, params: Params) -> OnnxNode:
    x, cos = arrays["x"], arrays["cos"]
    tokens, heads, head_dim = x.shape
    _not_float64("RotaryEmbedding", "its tables", x)
    if not (heads and cos.shape[1]):
        raise Refused("RotaryEmbedding takes a number of heads, or of pairs, of 0 for none given")
    packed = Packing(shape=(1, tokens, heads * head_dim))
    positions = Packing(shape=(1, tokens), dtype="int64").pack(arrays["positions"])
    inputs = {"x": packed.pack(x), "cos": cos, "sin": arrays["sin"], "positions": positions}
    attributes = {"num_heads": heads, "interleaved": int(params["pairing"] == "gptj")}
    if 2 * cos.shape[1] < head_dim:
        attributes["rotary_embedding_dim"] = 2 * cos.shape[1]
    return OnnxNode("RotaryEmbedding", 23, inputs, {"out": packed}, attributes)


def _attention(arrays: Arrays, params: Params) -> OnnxNode:
    """Attention without its log-sum-exp, which the node does not give."""
    _without("Attention", arrays, "alibi_slopes", "sinks")
    q, k = arrays["q"], arrays["k"]
    if not k.shape[2]:
        raise Refused("Attention says nothing of no keys")
    attributes: dict[str, Any] = {"is_causal": int(params["causal"] != "none")}
    for name in ("scale", "softcap"):
        if params.get(name) is not None:
            attributes[name] = _float32("Attention", name, params[name], q)
    windows = {f"{side}_window_size": params.get(f"window_{side}", -1) for side in ("left", "right")}
    windowed = max(windows.values()) >= 0
    attributes |= windows if windowed else {}
    names = {"q": q, "k": k, "v": arrays["v"], "mask": arrays.get("bias")}
    # The diagonal starts at key 0, unless the number of keys in use says otherwise.
    shifted = params["causal"] == "bottom_right" or (params["causal"] == "none" and windowed)
    if shifted and q.shape[2] != k.shape[2]:
        used = np.full(q.shape[0], k.shape[2], np.int64)
        names |= {"past_key": None, "past_value": None, "keys_in_use": used}
    opset = 25 if windowed else 24 if "keys_in_use" in names else 23
    return OnnxNode("Attention", opset, names, OUT, attributes)


def _silu_and_mul(arrays: Arrays, params: Params) -> OnnxNode:
    _without("SwiGLU", arrays, "bias")
    if params["limit"] is not None or params["rounding"] != "once":
        raise Refused("SwiGLU has no limit, and no rounding before the product")
    x, half = arrays["x"], arrays["x"].shape[1] // 2
    halves = (x[:, :half], x[:, half:]) if params["pairing"] == "halves" else (x[:, 0::2], x[:, 1::2])
    return OnnxNode("SwiGLU", 28, dict(zip(("gate", "value"), halves, strict=True)), OUT)


def _quantise_static(arrays: Arrays, params: Params) -> OnnxNode:
    x, target = arrays["x"], params["to"]
    if params["rounding"] != "nearest":
        raise Refused("QuantizeLinear rounds to nearest")
    if target == "int8" and np.isnan(x.astype(np.float64)).any():
        raise Refused("QuantizeLinear says nothing of NaN as int8")
    granularity, packing = _blocks("QuantizeLinear", params["block"], x.shape)
    inputs = {"x": x, "scale": packing.pack(arrays["scale"])}
    return OnnxNode(
        "QuantizeLinear", 23, inputs, {"codes": AS_IT_IS}, {**granularity, "output_dtype": format_of(target).dtype}
    )


def _dequantise(arrays: Arrays, params: Params) -> OnnxNode:
    _without("DequantizeLinear", arrays, "tensor_scale")
    codes, scale, target = arrays["codes"], arrays["scale"], params["to"]
    newest = "float8_e8m0fnu" in scale.dtype.name or "float6" in codes.dtype.name
    if scale.dtype.name not in (target, "float8_e8m0fnu"):
        raise Refused(f"DequantizeLinear multiplies in {target}, and the scale is {scale.dtype.name}")
    if target != "float32" and "zero" in arrays:
        raise Refused(f"DequantizeLinear takes the difference to the zero point in {target}")
    if "zero" in arrays and arrays["zero"].dtype != codes.dtype:
        raise Refused(f"DequantizeLinear has zero points of the codes' dtype, not {arrays['zero'].dtype.name}")
    granularity, packing = _blocks("DequantizeLinear", params["block"], codes.shape)
    inputs = {"codes": codes, **{name: packing.pack(arrays[name]) for name in ("scale", "zero") if name in arrays}}
    attributes = {**granularity, "output_dtype": format_of(target).dtype}
    return OnnxNode("DequantizeLinear", 28 if newest else 23, inputs, OUT, attributes)


def _causal_conv1d(arrays: Arrays, params: Params) -> OnnxNode:
    _without("CausalConvWithState", arrays, "fresh")
    _not_float64("CausalConvWithState", "its tensors", arrays["x"])
    weight = arrays["weight"]
    inputs = {
        "x": arrays["x"],
        "weight": Packing(shape=(weight.shape[0], 1, weight.shape[1])).pack(weight),
        "bias": arrays.get("bias"),
        "state": arrays["state"],
    }
    outputs = {"out": AS_IT_IS, "final_state": AS_IT_IS}
    return OnnxNode("CausalConvWithState", 27, inputs, outputs, {"activation": params["activation"]})


def _gated_delta_rule(arrays: Arrays, params: Params) -> OnnxNode:
    if params["normalise"]:
        raise Refused("LinearAttention does not normalise queries and keys")
    if arrays["q"].dtype != np.float32:
        raise Refused(f"LinearAttention has decays of the queries' dtype, {arrays['q'].dtype.name}, and not float32")
    batch, heads, steps, _ = arrays["q"].shape
    if not heads or not steps or not arrays["v"].shape[-1]:
        raise Refused("LinearAttention has at least one head, step and column")

    def packing(name: str) -> Packing:
        axes = (0, 2, 1, 3)[: arrays[name].ndim]
        return Packing(axes, (batch, steps, math.prod(arrays[name].shape[3:], start=heads)))

    inputs = {name: packing(name).pack(arrays[name]) for name in ("q", "k", "v")}
    inputs["state"] = arrays["state"]
    inputs |= {name: packing(name).pack(arrays[name]) for name in ("g", "beta")}
    attributes = {"q_num_heads": heads, "kv_num_heads": heads, "update_rule": "gated_delta"}
    return OnnxNode("LinearAttention", 27, inputs, {"out": packing("v"), "final_state": AS_IT_IS}, attributes)


# Source: onnx/docs/Operators.md, of the operator sets named.
ONNX_FORMS: dict[str, Form] = {
    "softmax": _rows("Softmax", 13),
    "log_softmax": _rows("LogSoftmax", 13),
    "sum": _reduced("ReduceSum", 13),
    "mean": _reduced("ReduceMean", 18),
    "max": _reduced("ReduceMax", 18),
    "logsumexp": _reduced("ReduceLogSumExp", 18),
    "cumsum": _cumsum,
    "argmax": _argmax("index"),
    "greedy": _argmax("tokens"),
    "topk": _topk,
    "matmul": _matmul,
    "batched_matmul": _batched_matmul,
    "gemm_epilogue": _gemm_epilogue,
    "rmsnorm": _normalised("RMSNormalization", 23),
    "layernorm": _normalised("LayerNormalization", 17, "weight"),
    "groupnorm": _normalised("GroupNormalization", 21, "weight", "bias"),
    "rope": _rope,
    "attention": _attention,
    "flash_attention": _attention,
    "silu_and_mul": _silu_and_mul,
    "quantise_static": _quantise_static,
    "dequantise": _dequantise,
    "causal_conv1d": _causal_conv1d,
    "gated_delta_rule": _gated_delta_rule,
}


def _without(op_type: str, arrays: Arrays, *names: str) -> None:
    for name in names:
        if name in arrays:
            raise Refused(f"{op_type} has no place for {name}")


def _not_float64(op_type: str, what: str, x: Array) -> None:
    if x.dtype == np.float64:
        raise Refused(f"{op_type} keeps {what} in float32, so float64 cannot be said")


def _float32(op_type: str, name: str, value: float, x: Array) -> float:
    """A number as an attribute, which holds float32."""
    if x.dtype == np.float64 and float(np.float32(value)) != value:
        raise Refused(f"{op_type} keeps {name} in float32, so {value} cannot be said for float64")
    return float(value)


def _blocks(op_type: str, block: str, shape: tuple[int, ...]) -> tuple[dict[str, int], Packing]:
    """Attributes of a granularity, and how the scales (block rows, block columns) lie under it."""
    rows, cols = shape
    if block == "tensor":
        return {}, Packing(shape=())
    if block in ("token", "channel"):
        axis = ("token", "channel").index(block)
        return {"axis": axis}, Packing(shape=(shape[axis],))
    high, wide = map(int, block.split("x"))
    if high != 1:
        raise Refused(f"{op_type} has blocks along one axis, not {block}")
    if not rows or not cols:
        raise Refused(f"{op_type} has no blocks of nothing")
    return {"axis": 1, "block_size": min(wide, cols)}, AS_IT_IS
