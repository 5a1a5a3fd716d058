"""Functions of ``cupy``, by table: NumPy's of the same name, on device arrays and with CuPy's arguments only."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from refsim.hosts.cupy_host.conversion import holds_device_array, lowered, operand, raised
from refsim.hosts.missing import NotSimulatedError, only

UFUNCS = (
    "absolute", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "bitwise_and",
    "bitwise_or", "bitwise_xor", "cbrt", "ceil", "conjugate", "copysign", "cos", "cosh", "deg2rad", "degrees",
    "divide", "divmod", "equal", "exp", "exp2", "expm1", "fabs", "floor", "floor_divide", "fmax", "fmin", "fmod",
    "frexp", "gcd", "greater", "greater_equal", "heaviside", "hypot", "invert", "isfinite", "isinf", "isnan", "lcm",
    "ldexp", "left_shift", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2",
    "logical_and", "logical_not", "logical_or", "logical_xor", "matmul", "maximum", "minimum", "modf", "multiply",
    "negative", "nextafter", "not_equal", "positive", "power", "rad2deg", "radians", "reciprocal", "remainder",
    "right_shift", "rint", "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh",
    "true_divide", "trunc",
)  # fmt: skip
ALIASES = {
    "abs": "absolute", "conj": "conjugate", "mod": "remainder", "bitwise_not": "invert", "acos": "arccos",
    "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2",
    "atanh": "arctanh", "pow": "power",
}  # fmt: skip

# Keyword arguments that CuPy's function takes; those of NumPy that it lacks are refused by name.
_REDUCE = ("axis", "dtype", "out", "keepdims")
_PICK = ("axis", "out", "keepdims")
_SPREAD = ("axis", "dtype", "out", "ddof", "keepdims")
FUNCTIONS: dict[str, tuple[str, ...]] = {
    # reductions and statistics
    **dict.fromkeys(("sum", "prod", "nansum", "nanprod", "mean", "nanmean"), _REDUCE),
    **dict.fromkeys(("min", "max", "amin", "amax", "nanmin", "nanmax", "all", "any", "ptp"), _PICK),
    **dict.fromkeys(("argmin", "argmax", "nanargmin", "nanargmax"), ("axis", "out", "keepdims", "dtype")),
    **dict.fromkeys(("std", "var", "nanstd", "nanvar"), _SPREAD),
    **dict.fromkeys(("cumsum", "cumprod"), ("axis", "dtype", "out")),
    **dict.fromkeys(("median", "nanmedian"), ("axis", "out", "overwrite_input", "keepdims")),
    **dict.fromkeys(("percentile", "quantile"), ("axis", "out", "overwrite_input", "method", "keepdims")),
    "average": ("axis", "weights", "returned", "keepdims"),
    "count_nonzero": ("axis", "keepdims"),
    "bincount": ("weights", "minlength"),
    "histogram": ("bins", "range", "weights", "density"),
    "corrcoef": ("y", "rowvar"),
    "cov": ("y", "rowvar", "bias", "ddof", "fweights", "aweights", "dtype"),
    # shape
    "reshape": ("shape", "order", "copy"), "ravel": ("order",), "transpose": ("axes",),
    **dict.fromkeys(("swapaxes", "moveaxis", "rollaxis", "atleast_1d", "atleast_2d", "atleast_3d", "column_stack",
                     "dstack", "flipud", "fliplr", "diagflat", "outer", "inner", "vdot", "kron",
                     "broadcast_arrays", "flatnonzero", "argwhere", "nonzero", "isreal", "iscomplex", "real", "imag",
                     "ndim", "shape"), ()),
    **dict.fromkeys(("vstack", "hstack"), ("dtype", "casting")),
    "concatenate": ("axis", "out", "dtype", "casting"),
    "stack": ("axis", "out", "dtype", "casting"),
    **dict.fromkeys(("split", "array_split", "flip", "expand_dims", "squeeze", "size"), ("axis",)),
    **dict.fromkeys(("hsplit", "vsplit", "dsplit"), ()),
    "broadcast_to": ("shape",), "tile": ("reps",), "repeat": ("repeats", "axis"), "roll": ("shift", "axis"),
    "rot90": ("k", "axes"), "pad": ("pad_width", "mode", "constant_values"), "append": ("axis",),
    "meshgrid": ("indexing", "sparse", "copy"), "indices": ("dtype",),
    # selection and order
    "where": (), "take": ("indices", "axis", "out"), "take_along_axis": ("indices", "axis"),
    "compress": ("axis", "out"), "extract": (), "select": ("default",), "diag": ("k",),
    "diagonal": ("offset", "axis1", "axis2"), "trace": ("offset", "axis1", "axis2", "dtype", "out"),
    "tril": ("k",), "triu": ("k",), "clip": ("out", "a_min", "a_max"),
    "sort": ("axis", "kind"), "argsort": ("axis", "kind"), "partition": ("axis",), "argpartition": ("axis",),
    "searchsorted": ("side", "sorter"), "digitize": ("right",),
    "unique": ("return_index", "return_inverse", "return_counts", "axis", "equal_nan"),
    # arithmetic
    **dict.fromkeys(("around", "round"), ("decimals", "out")),
    "nan_to_num": ("copy", "nan", "posinf", "neginf"), "diff": ("n", "axis", "prepend", "append"),
    "interp": ("left", "right", "period"), "convolve": ("mode",), "angle": ("deg",), "sinc": (), "i0": (),
    "dot": ("out",), "tensordot": ("axes",), "einsum": ("out", "dtype", "casting", "optimize"),
    "cross": ("axisa", "axisb", "axisc", "axis"),
    # logic
    "isclose": ("rtol", "atol", "equal_nan"), "allclose": ("rtol", "atol", "equal_nan"),
    "array_equal": ("equal_nan",), "isin": ("assume_unique", "invert"),
    # types
    "result_type": (), "may_share_memory": (), "shares_memory": (),
}  # fmt: skip
LINALG: dict[str, tuple[str, ...]] = {
    "norm": ("ord", "axis", "keepdims"), "solve": (), "inv": (), "pinv": ("rcond",), "det": (), "slogdet": (),
    "cholesky": (), "qr": ("mode",), "svd": ("full_matrices", "compute_uv"), "eigh": ("UPLO",),
    "eigvalsh": ("UPLO",), "lstsq": ("rcond",), "matrix_power": ("n",), "matrix_rank": ("tol",),
}  # fmt: skip
WITHOUT_ARRAY = frozenset(["indices", "result_type", "ndim", "shape", "size"])  # arguments may be numbers alone
# What is no array and the same in both.
SHARED = (
    "newaxis", "pi", "e", "inf", "nan", "euler_gamma", "dtype", "finfo", "iinfo", "generic", "number", "integer",
    "signedinteger", "unsignedinteger", "inexact", "floating", "complexfloating", "bool_", "int8", "int16", "int32",
    "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128",
    "intc", "intp", "uintp", "byte", "ubyte", "short", "ushort", "uintc", "half", "single", "double", "longlong",
    "ulonglong", "promote_types", "can_cast", "issubdtype", "min_scalar_type", "broadcast_shapes", "s_", "index_exp",
    "ndindex", "isscalar", "typename", "base_repr", "binary_repr", "format_float_positional",
)  # fmt: skip


class Ufunc:
    """An element-wise function of device arrays and numbers."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.__name__ = self.name = function.__name__
        self.__doc__ = f"As `numpy.{self.__name__}`, element by element."
        self.nin, self.nout, self.nargs = function.nin, function.nout, function.nargs

    def __call__(self, *args: Any, **options: Any) -> Any:
        only(f"cupy.{self.__name__}", options, ("out", "dtype", "casting"))
        out = options.pop("out", None)
        if len(args) > self.nin:
            args, out = args[: self.nin], args[self.nin :] if out is None else out
        outputs = () if out is None else out if isinstance(out, tuple) else (out,)
        if outputs:
            options["out"] = tuple(None if array is None else _writable(array, self.__name__) for array in outputs)
        with np.errstate(all="ignore"):
            result = self._function(*(operand(arg) for arg in args), **options)
        if outputs and all(array is not None for array in outputs):
            return outputs[0] if len(outputs) == 1 else outputs
        return raised(result)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSimulatedError(f"cupy.{self.__name__}.{name}")

    def __repr__(self) -> str:
        return f"<ufunc 'cupy_{self.__name__}'>"


def _writable(array: Any, name: str) -> Any:
    from refsim.hosts.cupy_host.array import ndarray

    if not isinstance(array, ndarray):
        raise TypeError(f"the output of cupy.{name}() must be a cupy.ndarray, not {type(array)}")
    return array.__refsim_array__


def lifted(function: Callable[..., Any], name: str, keywords: tuple[str, ...]) -> Callable[..., Any]:
    """A NumPy function on device arrays.

    Parameters
    ----------
    function
        NumPy's.
    name
        Full name, for errors.
    keywords
        The keyword arguments that are allowed.
    """

    hostless = name.rpartition(".")[2] in WITHOUT_ARRAY

    def call(*args: Any, **options: Any) -> Any:
        only(name, options, keywords)
        if not hostless and not holds_device_array((*args, *options.values())):
            raise TypeError(f"{name}() takes device arrays; unsupported type {type(args[0]) if args else None}")
        out = options.get("out")
        if out is not None:
            options["out"] = _writable(out, name.removeprefix("cupy."))
        with np.errstate(all="ignore"):
            result = function(*lowered(args), **{key: lowered(value) for key, value in options.items()})
        return raised(result) if out is None else out

    call.__name__ = name.rpartition(".")[2]
    call.__qualname__ = call.__name__
    call.__doc__ = f"As `{name.replace('cupy', 'numpy', 1)}`, on device arrays."
    return call


@functools.cache
def numpy_functions() -> dict[str, Any]:
    """Everything of the tables, by name."""
    members: dict[str, Any] = {name: getattr(np, name) for name in SHARED}
    members.update({name: Ufunc(getattr(np, name)) for name in UFUNCS})
    members.update({alias: members[name] for alias, name in ALIASES.items()})
    for name, keywords in FUNCTIONS.items():
        source = getattr(np, name, None) or getattr(np, name.removeprefix("a"))
        members[name] = lifted(source, f"cupy.{name}", keywords)
    members["bool"], members["int"], members["float"] = np.bool_, int, float
    return members


def linalg_functions() -> dict[str, Any]:
    """``cupy.linalg``."""
    members: dict[str, Any] = {
        name: lifted(getattr(np.linalg, name), f"cupy.linalg.{name}", keywords) for name, keywords in LINALG.items()
    }
    members["LinAlgError"] = np.linalg.LinAlgError
    return members
