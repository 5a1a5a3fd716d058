"""Definition strings of CuPy's element-wise and reduction kernels: parameters, their types, and C++ declarations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refsim.hosts.cupy_host.array import ndarray
from refsim.hosts.cupy_host.conversion import SCALARS
from refsim.hosts.memory import device_view

Array = np.ndarray[Any, Any]

C_NAMES = {
    "bool": "bool", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long long",
    "float16": "float16", "float32": "float", "float64": "double", "complex64": "complex<float>",
    "complex128": "complex<double>",
}  # fmt: skip
_INCLUDES = {
    "float16": "#include <cuda_fp16.h>\ntypedef __half float16;\n",
    "complex64": "#include <cupy/complex.cuh>\n",
    "complex128": "#include <cupy/complex.cuh>\n",
}

# What the text of a kernel may use of a raw argument and of the loop's index.
_RAW = """\
template <typename T, int N> struct {name} {{
  {const}T* data_;
  const ptrdiff_t* shape_;
  const ptrdiff_t* strides_;
  ptrdiff_t size_;
  __device__ ptrdiff_t size() const {{ return size_; }}
  __device__ const ptrdiff_t* shape() const {{ return shape_; }}
  __device__ const ptrdiff_t* strides() const {{ return strides_; }}
  __device__ {const}T& operator[](ptrdiff_t i) const {{ return data_[i]; }}
  template <typename Int> __device__ {const}T& operator[](const Int* index) const {{
    ptrdiff_t offset = 0;
    for (int axis = 0; axis < N; ++axis) offset += index[axis] * (strides_[axis] / (ptrdiff_t)sizeof(T));
    return data_[offset];
  }}
}};
"""
_INDEXER = """\
template <int N> struct Indexer {
  ptrdiff_t shape_[N > 0 ? N : 1];
  ptrdiff_t index_[N > 0 ? N : 1];
  ptrdiff_t size_;
  __device__ ptrdiff_t size() const { return size_; }
  __device__ void set(ptrdiff_t i) {
    for (int axis = N - 1; axis >= 0; --axis) {
      index_[axis] = i % shape_[axis];
      i /= shape_[axis];
    }
  }
  __device__ const ptrdiff_t* get() const { return index_; }
};
"""
# NVRTC lets `int at[] = {i, 0}` pass, although `i` is wider.
_NARROWING = '#pragma clang diagnostic ignored "-Wc++11-narrowing"\n'
SUPPORT = _NARROWING + _RAW.format(name="RawInput", const="const ") + _RAW.format(name="RawOutput", const="") + _INDEXER


@dataclass(frozen=True)
class Parameter:
    """One parameter: ``raw T x``. `type` is a dtype name, or one letter that stands for a type."""

    name: str
    type: str
    raw: bool
    const: bool

    @property
    def is_placeholder(self) -> bool:
        """Whether the type is a letter."""
        return len(self.type) == 1


def parameters(text: str, const: bool) -> tuple[Parameter, ...]:
    """Parse a list of parameters.

    Raises
    ------
    ValueError
        For a syntax error, a reserved name or an unknown keyword.
    TypeError
        For a type that is no dtype and no letter.
    """
    parsed = []
    for part in text.split(","):
        words = part.split()
        if not words and not text.strip():
            continue
        if len(words) < 2:
            raise ValueError(f"Syntax error: {part.strip()!r}; a parameter is a type and a name, such as 'T x'")
        *marks, kind, name = words
        unknown = [mark for mark in marks if mark not in ("raw", "_non_const")]
        if unknown:
            raise ValueError(f'Unknown keyword "{unknown[0]}"')
        if name in ("n", "i") or name.startswith("_"):
            raise ValueError(f"Can't use reserved name {name!r} for a parameter")
        if len(kind) > 1:
            kind = np.dtype(kind).name
        parsed.append(Parameter(name, kind, "raw" in marks, const and "_non_const" not in marks))
    return tuple(parsed)


def device_argument(value: Any, name: str) -> Any:
    """A device array as its NumPy array, or a number.

    Raises
    ------
    TypeError
        For anything else.
    """
    view = device_view(value)
    if view is None and not isinstance(value, SCALARS):
        raise TypeError(f"argument {name!r} has unsupported type {type(value)}: use cupy.asarray()")
    return value if view is None else view


def decide_types(inputs: Sequence[tuple[Parameter, Any]], outputs: Sequence[tuple[Parameter, Any]]) -> dict[str, str]:
    """What each letter stands for: the dtypes of given outputs first, then of input arrays.

    Raises
    ------
    TypeError
        If two arrays disagree, or one differs from its declared type.
    """
    types: dict[str, str] = {}
    for parameter, value in (*outputs, *inputs):
        if not isinstance(value, np.ndarray):
            continue
        declared = types.setdefault(parameter.type, value.dtype.name) if parameter.is_placeholder else parameter.type
        if declared != value.dtype.name:
            raise TypeError(f"Type is mismatched. {parameter.name} {value.dtype.name} {declared}")
    return types


def resolved(parameter: Parameter, types: dict[str, str], kernel: str) -> str:
    """Dtype name of a parameter.

    Raises
    ------
    TypeError
        If its letter is not decided by any array.
    """
    if not parameter.is_placeholder:
        return parameter.type
    if parameter.type not in types:
        raise TypeError(
            f"{kernel}: type {parameter.type!r} of parameter {parameter.name!r} is not decided by any array argument; "
            "give the output array, or name the type in the definition"
        )
    return types[parameter.type]


def typedefs(types: dict[str, str], used: Sequence[str]) -> str:
    """Includes that the dtypes need, and a typedef for each letter."""
    includes = dict.fromkeys(_INCLUDES[name] for name in used if name in _INCLUDES)
    lines = [f"typedef {C_NAMES[dtype]} {letter};\n" for letter, dtype in sorted(types.items())]
    return "".join([*includes, *lines])


def numbers(name: str, values: Sequence[int]) -> tuple[list[str], list[np.int64]]:
    """Declarations and values of the parameters that carry extents."""
    return [f"ptrdiff_t {name}{axis}" for axis in range(len(values))], [np.int64(value) for value in values]


def indexer(name: str, parameter: str, shape: tuple[int, ...]) -> str:
    """Declaration of the indexer ``name`` over a shape that arrives in ``parameter0``, ``parameter1``, …"""
    axes = range(len(shape))
    sets = "".join(f" {name}.shape_[{axis}] = {parameter}{axis};" for axis in axes)
    size = " * ".join([f"{parameter}{axis}" for axis in axes] or ["1"])
    return f"  Indexer<{len(shape)}> {name};{sets} {name}.size_ = {size};\n"


def raw_array(parameter: Parameter, c_type: str, ndim: int) -> str:
    """Declaration of a raw array over its pointer and extents; it lies in row order."""
    name = parameter.name
    template = "RawInput" if parameter.const else "RawOutput"
    extents = [f"_{name}_extent{axis}" for axis in range(ndim)]
    strides = [" * ".join([f"(ptrdiff_t)sizeof({c_type})", *extents[axis + 1 :]]) for axis in range(ndim)]
    return (
        f"  const ptrdiff_t _{name}_shape[] = {{{', '.join(extents or ['1'])}}};\n"
        f"  const ptrdiff_t _{name}_strides[] = {{{', '.join(strides or ['0'])}}};\n"
        f"  const {template}<{c_type}, {ndim}> {name} = "
        f"{{_raw_{name}, _{name}_shape, _{name}_strides, {' * '.join(extents or ['1'])}}};\n"
    )


def uses_position(name: str, *texts: str) -> bool:
    """Whether a text asks an indexer for more than its size, so that it must be set."""
    return any(re.search(rf"\b{name}\b(?!\s*\.\s*size\b)", text) for text in texts)


def c_scalar(value: Any, dtype: str) -> Any:
    """A number as an argument of a declared dtype."""
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(np.dtype(dtype))[()]


def output_argument(value: Any, name: str) -> Array:
    """An output as its NumPy array.

    Raises
    ------
    TypeError
        If it is not a `cupy.ndarray`.
    """
    if not isinstance(value, ndarray):
        raise TypeError(f"output argument {name!r} must be cupy.ndarray, not {type(value)}")
    return value.__refsim_array__


class Passing:
    """Arguments of a launch in row order; arrays that are not are copied, and outputs copied back afterwards."""

    def __init__(self) -> None:
        self._copies: list[tuple[Array, Array]] = []

    def linear(self, array: Array, const: bool) -> Array:
        """The array itself if its elements lie in row order, else a copy."""
        if array.flags.c_contiguous:
            return array
        copy = np.ascontiguousarray(array)
        if not const:
            self._copies.append((copy, array))
        return copy

    def finish(self) -> None:
        """Copy back what kernels may have written."""
        for copy, array in self._copies:
            np.copyto(array, copy)
