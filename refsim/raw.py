"""CUDA and HIP C++ kernels by CuPy's names: `RawKernel` and `RawModule`, run on the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np

from refsim.devices import Device, device_named
from refsim.dialect import ITEM_BYTES
from refsim.engine.codegen import LaneCode, generate
from refsim.frontends.cuda_cpp import Translation, module_variable, translate_one
from refsim.frontends.cuda_cpp.collection import collection_paused
from refsim.raw_arguments import leaf_values
from refsim.recent import Recent

# lane code by the identity of its translation, which is kept with it; translations are cached by their source
_lane_codes: Recent[int, tuple[Translation, LaneCode]] = Recent(256)


def _options(options: Any) -> tuple[str, ...]:
    """Options as a tuple; one string would be taken letter by letter."""
    if isinstance(options, str):
        raise TypeError(f"options must be a tuple of strings, such as ({options!r},), not the string {options!r}")
    return tuple(options)


class RawKernel:
    """A kernel written in CUDA or HIP C++, as ``cupy.RawKernel`` takes it.

    Parameters
    ----------
    code
        The source.
    name
        The kernel: a name, or a name expression such as ``"kernel<float, 4>"``.
    options
        Compiler options as NVRTC takes them: ``-D``, ``-I``, ``-std=``, ``--use_fast_math``, …
    file
        Name of the source in findings; relative includes are looked for next to it.

    Raises
    ------
    ClangError, CompileError, UnsupportedError
        When the kernel is first launched: no clang, source that it rejects, a construct that refsim does not run.

    Examples
    --------
    >>> import numpy as np
    >>> code = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }'
    >>> kernel = RawKernel(code, "twice")
    >>> x = np.arange(4, dtype=np.float32)
    >>> kernel((1,), (4,), (x,)).ok
    True
    >>> x
    array([0., 2., 4., 6.], dtype=float32)
    """

    def __init__(
        self,
        code: str,
        name: str,
        options: tuple[str, ...] = (),
        *,
        file: str | None = None,
        _module: RawModule | None = None,
        **ignored: Any,
    ) -> None:
        if not isinstance(code, str) or not isinstance(name, str):
            raise TypeError("RawKernel takes the source and the kernel's name as strings")
        unknown = set(ignored) - {"backend", "translate_cucomplex", "enable_cooperative_groups", "jitify"}
        if unknown:
            raise TypeError(f"RawKernel has no argument {sorted(unknown)[0]!r}")
        self.code = code
        self.name = name
        self.options = _options(options)
        self.file = file
        self.max_dynamic_shared_size_bytes = 0
        self._expressions = (name,) if _module is None else _module.name_expressions
        self._variables: dict[str, Any] = {} if _module is None else _module.variables
        self._translations: dict[str, Translation] = {}

    def translation(self, device: Device) -> Translation:
        """The kernel in the dialect."""
        if device.name not in self._translations:
            self._translations[device.name] = translate_one(
                self.code, self.options, self._expressions, self.name, device, self.file
            )
        return self._translations[device.name]

    def lane_code(self, args: tuple[Any, ...], device: Device) -> LaneCode:
        """The kernel compiled for a device."""
        translation = self.translation(device)
        if id(translation) in _lane_codes:
            return _lane_codes[id(translation)][1]
        with collection_paused():
            code = generate(translation.program, translation.types)
        _lane_codes[id(translation)] = translation, code
        return code

    def program_arguments(self, args: tuple[Any, ...], device: Device) -> tuple[Any, ...]:
        """Arguments as the program takes them: numbers of the declared types, structures taken apart.

        Raises
        ------
        TypeError
            For an argument that does not fit its parameter, or a wrong number of them.
        """
        parameters = self.translation(device).parameters
        if len(args) != len(parameters):
            names = ", ".join(parameter.name for parameter in parameters)
            raise TypeError(f"{self.name} takes {len(parameters)} arguments ({names}), {len(args)} were given")
        arrays = [arg for arg in args if isinstance(arg, np.ndarray)]
        pairs = zip(parameters, args, strict=True)
        values = [value for parameter, arg in pairs for value in leaf_values(parameter, arg, self.name, arrays)]
        for variable in self.translation(device).variables:
            values.append(self._variables.setdefault(variable.name, variable.initial.copy()))
        return tuple(values)

    @property
    def attributes(self) -> dict[str, int]:
        """What CuPy tells about a compiled kernel, where the simulator knows it: threads, and bytes of memory."""
        device = device_named("sim:sm_90")
        translation = self.translation(device)
        sizes = dict.fromkeys(("shared", "local", "constant"), 0)
        for allocation in translation.program.allocations:
            sizes[allocation.space] += allocation.size * ITEM_BYTES[allocation.dtype]
        return {
            "max_threads_per_block": translation.launch_bounds or device.max_threads_per_block,
            "shared_size_bytes": sizes["shared"],
            "local_size_bytes": sizes["local"],
            "const_size_bytes": sizes["constant"],
            "max_dynamic_shared_size_bytes": self.max_dynamic_shared_size_bytes or 48 * 1024,
        }

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: tuple[Any, ...],
        *,
        shared_mem: int = 0,
        **options: Any,
    ) -> Any:
        """Launch on the simulator.

        Parameters
        ----------
        grid, block
            Number of blocks, and threads per block: one to three integers.
        args
            NumPy arrays for pointers; NumPy scalars of the declared type for numbers (a Python float is a double, a
            Python int fits any integer); structured scalars or bytes for structures, or their members as a dictionary
            or a sequence, with arrays for pointers.
        shared_mem
            Dynamic shared memory per block, in bytes.
        **options
            Keyword arguments of `refsim.launch`, such as ``device`` and ``checks``.

        Returns
        -------
        The report of the launch.
        """
        from refsim.simulator import launch

        options.pop("stream", None)
        return launch(self, grid, block, *args, shared_bytes=shared_mem, **options)

    def __repr__(self) -> str:
        return f"RawKernel({self.name!r})"


class RawModule:
    """A source with several kernels, as ``cupy.RawModule`` takes it.

    Parameters
    ----------
    code
        The source.
    options
        Compiler options as NVRTC takes them.
    name_expressions
        Instantiations that will be asked for: ``["kernel<float>", "kernel<double>"]``.
    file
        Name of the source in findings; relative includes are looked for next to it.
    """

    def __init__(
        self,
        *,
        code: str,
        options: tuple[str, ...] = (),
        name_expressions: Any = None,
        file: str | None = None,
        **ignored: Any,
    ) -> None:
        self.code = code
        self.options = _options(options)
        self.name_expressions = tuple(name_expressions or ())
        self.file = file
        self._ignored = ignored
        self.variables: dict[str, Any] = {}
        self._kernels: dict[str, RawKernel] = {}

    def get_function(self, name: str) -> RawKernel:
        """A kernel by its name or name expression."""
        if name not in self._kernels:
            self._kernels[name] = RawKernel(
                self.code, name, self.options, file=self.file, _module=self, **self._ignored
            )
        return self._kernels[name]

    def get_global(self, name: str) -> Any:
        """A ``__device__`` or ``__constant__`` variable: the array that launches of this module read and write."""
        if name not in self.variables:
            found = module_variable(
                self.code, self.options, self.name_expressions, name, device_named("sim:sm_90"), self.file
            )
            self.variables[name] = found.initial.copy()
        return self.variables[name]


__all__ = ["RawKernel", "RawModule"]
