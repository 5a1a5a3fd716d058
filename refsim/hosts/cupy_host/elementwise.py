"""``cupy.ElementwiseKernel``: CUDA C++ made from its definition, run through `refsim.RawKernel`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from refsim.hosts.cupy_host.array import ndarray
from refsim.hosts.cupy_host.definitions import (
    C_NAMES,
    SUPPORT,
    Parameter,
    Passing,
    c_scalar,
    decide_types,
    device_argument,
    indexer,
    numbers,
    output_argument,
    parameters,
    raw_array,
    resolved,
    typedefs,
    uses_position,
)
from refsim.hosts.cupy_host.origin import with_origin
from refsim.hosts.cupy_host.raw import real_pairs
from refsim.hosts.memory import uninitialized
from refsim.hosts.missing import only
from refsim.hosts.session import active_session

THREADS = 128
SOURCE = """\
{typedefs}{support}{preamble}
extern "C" __global__ void {name}({parameters}) {{
{declarations}  {loop_prep};
  for (ptrdiff_t i = (ptrdiff_t)blockIdx.x * blockDim.x + threadIdx.x; i < _ind.size();
       i += (ptrdiff_t)blockDim.x * gridDim.x) {{
{position}{elements}
{operation};
  }}
  {after_loop};
}}
"""


class ElementwiseKernel:
    """A kernel that runs a text of C++ once per element.

    Parameters
    ----------
    in_params, out_params
        Lists such as ``"T x, raw T y"``; a letter stands for a type that the arguments decide.
    operation
        Statements for one element; ``i`` is its index, ``_ind.size()`` the number of elements.
    name, preamble, loop_prep, after_loop, options
        As in CuPy: name of the kernel, text before it, before the loop and after it, options of the compiler.
    """

    def __init__(
        self, in_params: str, out_params: str, operation: str, name: str = "kernel", reduce_dims: bool = True,
        preamble: str = "", no_return: bool = False, return_tuple: bool = False, doc: str | None = None,
        loop_prep: str = "", after_loop: str = "", options: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.in_params = parameters(in_params, const=True)
        self.out_params = parameters(out_params, const=False)
        self.params = self.in_params + self.out_params
        if len({parameter.name for parameter in self.params}) < len(self.params):
            raise ValueError(f"{name}: two parameters have the same name")
        self.nin, self.nout = len(self.in_params), len(self.out_params)
        self.operation = with_origin(operation, f"<operation of {name}>")
        self.name, self.preamble = name, preamble
        self.no_return, self.return_tuple = no_return, return_tuple
        self.loop_prep, self.after_loop, self.options = loop_prep, after_loop, tuple(options)
        self.__doc__ = doc
        self._kernels: dict[Any, Any] = {}

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Run on arrays and numbers that broadcast together; outputs that are not given are allocated.

        Parameters
        ----------
        *args
            Inputs, or inputs and outputs.
        size : int
            Number of elements, if all arrays are raw.
        block_size : int
            Threads per block.
        stream
            Has no effect.
        """
        only(f"{self.name}", options, ("size", "stream", "block_size"))
        if len(args) not in (self.nin, len(self.params)):
            raise TypeError(f"Wrong number of arguments for {self.name!r}. It must be either {self.nin} or "
                            f"{len(self.params)} (with outputs), but given {len(args)}.")  # fmt: skip
        inputs = [device_argument(arg, p.name) for p, arg in zip(self.in_params, args, strict=False)]
        given = args[self.nin :]
        outputs: list[Any] = [output_argument(arg, p.name) for p, arg in zip(self.out_params, given, strict=False)]
        types = decide_types(list(zip(self.in_params, inputs)), list(zip(self.out_params, outputs)))
        dtypes = [resolved(parameter, types, self.name) for parameter in self.params]
        shape = self._shape([*inputs, *outputs], options.get("size"))
        results = given
        if not outputs:
            outputs = [uninitialized(shape, dtype) for dtype in dtypes[self.nin :]]
            results = tuple(ndarray.of(array) for array in outputs)
        if np.prod(shape, dtype=np.int64):
            self._launch(shape, [*inputs, *outputs], dtypes, types, options.get("block_size") or THREADS)
        if self.no_return:
            return None
        return results[0] if len(results) == 1 and not self.return_tuple else tuple(results)

    def _shape(self, values: list[Any], size: int | None) -> tuple[int, ...]:
        """The shape of the loop."""
        plain = [
            value.shape for p, value in zip(self.params, values, strict=False)
            if isinstance(value, np.ndarray) and not p.raw
        ]  # fmt: skip
        if size is not None:
            if plain:
                raise ValueError("Specified 'size' can be used only if all of the ndarray are 'raw'.")
            return (int(size),)
        if not plain:
            raise ValueError("Loop size is undecided.")
        shape = np.broadcast_shapes(*plain)
        for parameter, value in list(zip(self.params, values, strict=False))[self.nin :]:
            if not parameter.raw and value.shape != shape:
                raise ValueError(f"Out shape is mismatched: {parameter.name} is {value.shape}, the loop {shape}")
        return shape

    def _launch(
        self, shape: tuple[int, ...], values: list[Any], dtypes: list[str], types: dict[str, str], threads: int
    ) -> None:
        passing = Passing()
        args: list[Any] = []
        kinds: list[int | None] = []
        for parameter, value, dtype in zip(self.params, values, dtypes, strict=True):
            if not isinstance(value, np.ndarray):
                kinds.append(None)
                args.append(c_scalar(value, dtype))
                continue
            spread = value if parameter.raw or value.shape == shape else np.broadcast_to(value, shape)
            kinds.append(spread.ndim)
            args.append(passing.linear(spread, parameter.const))
            if parameter.raw:
                args.extend(numbers("", value.shape)[1])
        args.extend(numbers("", shape)[1])
        key = tuple(dtypes), tuple(kinds), len(shape)
        if key not in self._kernels:
            self._kernels[key] = self._kernel(shape, dtypes, types, kinds)
        size = int(np.prod(shape, dtype=np.int64))
        passed = tuple(real_pairs(arg) for arg in args)
        active_session().launch(self._kernels[key], -(-size // threads), threads, passed)
        passing.finish()

    def _kernel(self, shape: tuple[int, ...], dtypes: list[str], types: dict[str, str], kinds: list[int | None]) -> Any:
        import refsim

        declared: list[str] = []
        declarations: list[str] = []
        elements: list[str] = []
        for parameter, dtype, ndim in zip(self.params, dtypes, kinds, strict=True):
            lines = declaration(parameter, dtype, ndim)
            declared.extend(lines[0])
            (declarations if parameter.raw else elements).append(lines[1])
        declared.extend(numbers("_extent", shape)[0])
        code = SOURCE.format(
            typedefs=typedefs(types, dtypes), support=SUPPORT, preamble=self.preamble, name=self.name,
            parameters=", ".join(declared), declarations="".join([*declarations, indexer("_ind", "_extent", shape)]),
            position="    _ind.set(i);\n" if uses_position("_ind", self.operation) else "",
            loop_prep=self.loop_prep, elements="".join(elements), operation=self.operation, after_loop=self.after_loop,
        )  # fmt: skip
        return refsim.RawKernel(code, self.name, options=self.options, file=f"<{self.name}>")


def declaration(parameter: Parameter, dtype: str, ndim: int | None, index: str = "i") -> tuple[list[str], str]:
    """Parameters of the C++ kernel that carry one of the definition, and the text that gives it its name.

    Parameters
    ----------
    parameter, dtype
        The parameter and its dtype.
    ndim
        Axes of the array; None for a number, which is passed by value.
    index
        Which element the name stands for.
    """
    c_type = C_NAMES[dtype]
    if ndim is None:
        return [f"const {c_type} {parameter.name}"], ""
    const = "const " if parameter.const else ""
    pointer = f"{const}{c_type}* _raw_{parameter.name}"
    if parameter.raw:
        extents = numbers(f"_{parameter.name}_extent", (0,) * ndim)[0]
        return [pointer, *extents], raw_array(parameter, c_type, ndim)
    return [pointer], f"    {const}{c_type}& {parameter.name} = _raw_{parameter.name}[{index}];\n"
