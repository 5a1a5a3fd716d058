"""``cupy.ReductionKernel``: CUDA C++ made from its definition, run through `refsim.RawKernel`.

Axes are brought into the order (reduced, kept). A block owns ``_block_stride`` neighbouring outputs; thread ``_tid``
sums every element with its own output among those that its row of threads visits, and the rows are then folded in
shared memory, as in CuPy, so that sums are rounded in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from refsim.hosts.cupy_host.array import ndarray
from refsim.hosts.cupy_host.definitions import (
    C_NAMES,
    SUPPORT,
    Passing,
    c_scalar,
    decide_types,
    device_argument,
    indexer,
    numbers,
    output_argument,
    parameters,
    resolved,
    typedefs,
    uses_position,
)
from refsim.hosts.cupy_host.elementwise import declaration
from refsim.hosts.cupy_host.origin import with_origin
from refsim.hosts.cupy_host.raw import real_pairs
from refsim.hosts.facts import Facts
from refsim.hosts.memory import uninitialized
from refsim.hosts.missing import only
from refsim.hosts.session import active_session

SOURCE = """\
{typedefs}{support}{preamble}
typedef {reduce_type} _type_reduce;
#define REDUCE(a, b) ({reduce_expr})
#define POST_MAP(a) ({post_map_expr})
extern "C" __global__ void {name}({parameters}) {{
  __shared__ __align__(16) char _memory[{threads} * sizeof(_type_reduce)];
  _type_reduce* _partial = reinterpret_cast<_type_reduce*>(_memory);
{declarations}  const int _tid = threadIdx.x;
  const int _rows = {threads} / _block_stride;
  const ptrdiff_t _i = (ptrdiff_t)blockIdx.x * _block_stride + _tid % _block_stride;
  _type_reduce _s = _type_reduce({identity});
  if (_i < _out_ind.size()) {{
    for (ptrdiff_t _j = _i + (_tid / _block_stride) * _out_ind.size(); _j < _in_ind.size();
         _j += _rows * _out_ind.size()) {{
{in_position}      const ptrdiff_t i = _j;
{inputs}      _type_reduce _a = static_cast<_type_reduce>(
{map_expr}
      );
      _s = REDUCE(_s, _a);
    }}
  }}
  _partial[_tid] = _s;
  __syncthreads();  // partial results before they are read by the first fold
  for (int _half = {threads} / 2; _half >= _block_stride; _half /= 2) {{
    if (_tid < _half) {{
      _type_reduce _a = _partial[_tid], _b = _partial[_tid + _half];
      _partial[_tid] = REDUCE(_a, _b);
    }}
    __syncthreads();  // this fold before the next
  }}
  if (_tid < _block_stride && _i < _out_ind.size()) {{
    _s = _partial[_tid];
{out_position}    const ptrdiff_t i = _i;
{outputs}    POST_MAP(_s);
  }}
}}
"""


class ReductionKernel:
    """A kernel that maps every element, reduces along axes, and maps the results.

    Parameters
    ----------
    in_params, out_params
        Lists such as ``"T x, T y"``; a letter stands for a type that the arguments decide.
    map_expr, reduce_expr, post_map_expr
        Expressions of the inputs; of ``a`` and ``b``; and an assignment to the output, of ``a``.
    identity
        Where reductions start.
    name, reduce_type, preamble, options
        As in CuPy: name of the kernel, type of ``a`` and ``b``, text before the kernel, options of the compiler.
    """

    def __init__(
        self, in_params: str, out_params: str, map_expr: str, reduce_expr: str, post_map_expr: str, identity: Any,
        name: str = "reduce_kernel", reduce_type: str | None = None, reduce_dims: bool = True, preamble: str = "",
        options: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.in_params = parameters(in_params, const=True)
        self.out_params = parameters(out_params, const=False)
        if len(self.out_params) != 1:
            raise ValueError(f"{name}: a reduction kernel has one output, not {len(self.out_params)}")
        self.params = self.in_params + self.out_params
        self.map_expr = with_origin(map_expr, f"<map of {name}>")
        self.reduce_expr, self.post_map_expr = reduce_expr, post_map_expr
        self.identity = "" if identity is None else str(identity)
        self.name, self.reduce_type = name, reduce_type
        self.preamble, self.options = preamble, tuple(options)
        self._kernels: dict[Any, Any] = {}

    def __call__(self, *args: Any, **options: Any) -> ndarray:
        """Reduce arrays and numbers that broadcast together.

        Parameters
        ----------
        *args
            Inputs, or inputs and the output.
        axis : int or tuple of int
            Axes to reduce; all if it is None.
        keepdims : bool
            Whether reduced axes stay, with extent 1.
        out
            The output.
        stream
            Has no effect.
        """
        only(self.name, options, ("axis", "keepdims", "out", "stream"))
        nin = len(self.in_params)
        out: Any = options.get("out")
        if len(args) == nin + 1 and out is None:
            args, out = args[:nin], args[nin]
        if len(args) != nin:
            raise TypeError(f"Wrong number of arguments for {self.name!r}: {nin} inputs, but given {len(args)}.")
        inputs = [device_argument(arg, p.name) for p, arg in zip(self.in_params, args, strict=True)]
        given = [] if out is None else [output_argument(out, self.out_params[0].name)]
        types = decide_types(list(zip(self.in_params, inputs)), list(zip(self.out_params, given)))
        dtypes = [resolved(parameter, types, self.name) for parameter in self.params]
        pairs = list(zip(self.in_params, inputs, strict=True))
        plain = [value.shape for p, value in pairs if isinstance(value, np.ndarray) and not p.raw]
        if not plain:
            raise ValueError("Loop size is undecided.")
        shape = np.broadcast_shapes(*plain)
        reduced, kept = _axes(options.get("axis"), len(shape))
        if any(p.raw for p in self.in_params) and reduced + kept != tuple(range(len(shape))):
            raise NotImplementedError("Illegal conditions: with a raw argument, axis must be 0, 1, …, in order")
        keepdims = options.get("keepdims", False)
        out_shape = tuple(
            1 if axis in reduced else n for axis, n in enumerate(shape) if keepdims or axis not in reduced
        )
        if out is None:
            out = ndarray.of(uninitialized(out_shape, dtypes[-1]))
        elif out.shape != out_shape:
            raise ValueError(f"Out shape is mismatched: {out.shape} is given, {out_shape} expected")
        if 0 in shape and not self.identity and out.size:
            raise ValueError(f"zero-size array to reduction operation {self.name} which has no identity")
        if out.size:
            self._launch(inputs, out.__refsim_array__, dtypes, types, (shape, reduced, kept))
        result: ndarray = out
        return result

    def _launch(
        self, inputs: list[Any], out: Any, dtypes: list[str], types: dict[str, str], axes: tuple[Any, ...]
    ) -> None:
        shape, reduced, kept = axes
        in_shape = tuple(shape[axis] for axis in reduced + kept)
        out_shape = tuple(shape[axis] for axis in kept)
        passing = Passing()
        args: list[Any] = []
        kinds: list[int | None] = []
        for parameter, value, dtype in zip(self.in_params, inputs, dtypes, strict=False):
            if not isinstance(value, np.ndarray):
                kinds.append(None)
                args.append(c_scalar(value, dtype))
            elif parameter.raw:
                kinds.append(value.ndim)
                args.extend([passing.linear(value, True), *numbers("", value.shape)[1]])
            else:
                kinds.append(len(shape))
                spread = np.broadcast_to(value, shape) if value.shape != shape else value
                args.append(passing.linear(spread.transpose(reduced + kept), True))
        args.append(passing.linear(out, False))
        if self.out_params[0].raw:
            args.extend(numbers("", out.shape)[1])
        kinds.append(out.ndim)
        threads, stride = _blocks(math.prod(in_shape), math.prod(out_shape))
        args.extend([*numbers("", in_shape)[1], *numbers("", out_shape)[1], np.int32(stride)])
        key = tuple(dtypes), tuple(kinds), len(in_shape), len(out_shape), threads
        if key not in self._kernels:
            self._kernels[key] = self._kernel(in_shape, out_shape, dtypes, types, kinds, threads)
        passed = tuple(real_pairs(arg) for arg in args)
        active_session().launch(self._kernels[key], -(-math.prod(out_shape) // stride), threads, passed)
        passing.finish()

    def _kernel(
        self, in_shape: tuple[int, ...], out_shape: tuple[int, ...], dtypes: list[str], types: dict[str, str],
        kinds: list[int | None], threads: int,
    ) -> Any:  # fmt: skip
        import refsim

        declared: list[str] = []
        texts: dict[str, list[str]] = {"raw": [], "inputs": [], "outputs": []}
        for parameter, dtype, ndim in zip(self.params, dtypes, kinds, strict=True):
            inputs = parameter in self.in_params
            lines = declaration(parameter, dtype, ndim, "_j" if inputs else "_i")
            declared.extend(lines[0])
            texts["raw" if parameter.raw else "inputs" if inputs else "outputs"].append(lines[1])
        declared.extend([*numbers("_in_extent", in_shape)[0], *numbers("_out_extent", out_shape)[0]])
        declared.append("const int _block_stride")
        ranges = [indexer("_in_ind", "_in_extent", in_shape), indexer("_out_ind", "_out_extent", out_shape)]
        code = SOURCE.format(
            typedefs=typedefs(types, dtypes), support=SUPPORT, preamble=self.preamble, name=self.name,
            reduce_type=self.reduce_type or C_NAMES[dtypes[-1]], reduce_expr=self.reduce_expr,
            post_map_expr=self.post_map_expr, parameters=", ".join(declared), threads=threads,
            declarations="".join([*texts["raw"], *ranges]), identity=self.identity, inputs="".join(texts["inputs"]),
            in_position="      _in_ind.set(_j);\n" if uses_position("_in_ind", self.map_expr) else "",
            out_position="    _out_ind.set(_i);\n" if uses_position("_out_ind", self.post_map_expr) else "",
            map_expr=self.map_expr, outputs="".join(texts["outputs"]),
        )  # fmt: skip
        return refsim.RawKernel(code, self.name, options=self.options, file=f"<{self.name}>")


def _axes(axis: Any, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Axes that are reduced, and axes that are kept."""
    given = range(ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    for one in given:
        if not -ndim <= one < ndim:
            raise np.exceptions.AxisError(one, ndim)
    reduced = tuple(sorted(one % ndim for one in given))
    if len(set(reduced)) < len(reduced):
        raise ValueError("duplicate value in 'axis'")
    return reduced, tuple(one for one in range(ndim) if one not in reduced)


def _blocks(in_size: int, out_size: int) -> tuple[int, int]:
    """Threads per block, and neighbouring outputs per block: a power of two."""
    device = active_session().device
    threads = min(256 if Facts(device).is_hip else 512, device.max_threads_per_block)
    wanted = max(min(out_size, 32), threads // max(1, in_size // out_size))
    stride = min(1 << (max(wanted, 1).bit_length() - 1), threads)
    return threads, stride
