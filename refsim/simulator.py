"""The public way to run a kernel: `launch` and `simulate`."""

from __future__ import annotations

import math
import types
import weakref
from typing import Any

from refsim.checks.findings import Report, check_groups
from refsim.devices import Device, device_named
from refsim.engine.arguments import argument_type
from refsim.engine.codegen import LaneCode, generate
from refsim.engine.launch import LANES_PER_BATCH, execute
from refsim.engine.options import current_options
from refsim.engine.turns import turns_named
from refsim.frontends.numba_names import python_function
from refsim.frontends.numba_python import translate
from refsim.frontends.numba_scopes import Translation

Dimensions = int | tuple[int, ...]

_compiled: weakref.WeakKeyDictionary[types.FunctionType, dict[Any, list[tuple[Translation, LaneCode]]]] = (
    weakref.WeakKeyDictionary()
)


def compiled(kernel: Any, args: tuple[Any, ...], device: Device) -> LaneCode:
    """Lane code of a kernel for arguments like these, from the cache if its captured values are unchanged."""
    if hasattr(kernel, "lane_code"):
        return kernel.lane_code(args, device)  # type: ignore[no-any-return]
    function = python_function(kernel)
    if function is None:
        raise TypeError(f"{kernel!r} is not a kernel: expected a numba.cuda.jit function or a plain function")
    return compiled_for(function, tuple(argument_type(value) for value in args), device)


def compiled_for(function: types.FunctionType, kinds: tuple[Any, ...], device: Device) -> LaneCode:
    """Lane code of a kernel for arguments of the simulator's types, from the cache if it is there."""
    versions = _compiled.setdefault(function, {}).setdefault((kinds, device.warp_size), [])
    for translation, code in versions:
        if translation.is_current():
            return code
    translation = translate(function, list(kinds), device)
    code = generate(translation.program, translation.types)
    versions.append((translation, code))
    return code


def dimensions(value: Dimensions, what: str) -> tuple[int, int, int]:
    """A grid or block size as three numbers.

    Raises
    ------
    ValueError
        If it is not one to three positive integers.
    """
    parts = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    try:
        numbers = tuple(part.__index__() for part in parts)
    except AttributeError:
        raise ValueError(f"{what} must be one to three integers, not {value!r}") from None
    if not 1 <= len(numbers) <= 3 or any(n < 1 for n in numbers):
        raise ValueError(f"{what} must be one to three positive integers, not {value!r}")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def launch(
    kernel: Any,
    grid: Dimensions,
    block: Dimensions,
    *args: Any,
    device: str | Device = "sim:sm_90",
    checks: str | list[str] | tuple[str, ...] = "all",
    shared_bytes: int = 0,
    note_negative_indices: bool = False,
    raise_on_findings: bool = False,
    lanes_per_batch: int = LANES_PER_BATCH,
    counters: bool = False,
    lanes: str | None = None,
    schedule: str | None = None,
    witness: bool | None = None,
    processes: int | None = None,
    native: str | None = None,
) -> Report:
    """Run a CUDA kernel without a GPU, under checks.

    Parameters
    ----------
    kernel
        A ``numba.cuda.jit`` function, or a plain function written for it.
    grid, block
        Number of blocks, and threads per block: one to three integers.
    *args
        NumPy arrays (changed in place), numbers, None, or tuples of these.
    device
        Name of a device model, such as ``"sim:sm_90"``.
    checks
        ``"all"``, ``"none"``, or some of memcheck, racecheck, initcheck, synccheck.
    shared_bytes
        Dynamic shared memory per block, in bytes.
    note_negative_indices
        Note indices that wrap to the end of their array, as Numba's do.
    raise_on_findings
        Raise `refsim.errors.FindingError` if there are errors.
    lanes_per_batch
        Threads that run in lockstep at most, rounded to whole blocks.
    counters
        Count memory traffic, bank conflicts, instructions and divergence: `Report.counters`.
    lanes
        What runs in lockstep at first, and takes turns with the others: ``"blocks"`` (many at a time), a ``"block"``,
        a ``"warp"`` or a ``"thread"``; ``"auto"`` is the fastest. Groups that wait for each other in vain give way to
        smaller ones. None is what the command says, else ``"auto"``.
    schedule
        ``"seed:17"`` draws the order of blocks, warps, threads and accesses from a seed; the same seed gives the same
        order. None is what the command says, else the usual order.
    witness
        Look for a schedule that makes a race change the result, by running the launch again under up to 10 for each of
        the first 4 races: `Finding.witness`. None is what the command says, else False.
    processes
        Spread the blocks over so many processes, with the results and findings of one; `Report.processes` says how many
        it were. Kernels whose blocks meet, in atomic operations on global memory, fences between blocks or waiting
        loops, run in one, and so do launches with findings. None is what the command says, else 1.
    native
        When loops that only read arrays and compute run as machine code, with the same bits and findings:
        ``"auto"`` where they have cost enough and gain by it, ``"always"`` all at once, ``"never"`` none. None is what
        the command says, else ``"auto"``.

    Returns
    -------
    The report; `Report.ok` is True if there are no errors. A kernel with findings still runs to its end.

    Raises
    ------
    UnsupportedError
        For a construct that refsim does not run, with file and line.
    ValueError, TypeError
        For a bad device, check, grid, block or argument.

    Examples
    --------
    >>> import numpy as np
    >>> from numba import cuda
    >>> def shift(x, out):
    ...     i = cuda.grid(1)
    ...     out[i] = x[i + 1]
    """
    if not isinstance(shared_bytes, int) or shared_bytes < 0:
        raise ValueError(f"shared_bytes must be a number of bytes, not {shared_bytes!r}")
    model = device_named(device)
    groups = check_groups(checks)
    blocks, threads = dimensions(grid, "grid"), dimensions(block, "block")
    options = current_options().but(lanes=lanes, schedule=schedule, witness=witness, processes=processes, native=native)
    turns, lanes = turns_named(options.schedule), options.lanes
    code = compiled(kernel, args, model)
    if hasattr(kernel, "program_arguments"):
        args = kernel.program_arguments(args, model)
    counting = None
    if counters:
        from refsim.counters.code import counting_code
        from refsim.counters.counting import Counting

        variables = kernel.translation(model).variables if hasattr(kernel, "translation") else ()
        constants = frozenset(variable.name for variable in variables if variable.constant)
        code, counting = counting_code(code), Counting(constants)
    if lanes == "auto":
        lanes = "blocks" if turns is None else turns.lanes(math.prod(blocks) * math.prod(threads))
    report = execute(
        code,
        model,
        blocks,
        threads,
        args,
        groups,
        shared_bytes,
        note_negative_indices,
        lanes_per_batch,
        counting,
        lanes,
        turns,
        options.witness,
        options.processes,
        options.native,
    )
    if raise_on_findings:
        report.raise_if_findings()
    return report


class SimulatedKernel:
    """A kernel to be called as Numba calls kernels: ``simulate(kernel)[grid, block](*args)``."""

    def __init__(self, kernel: Any, **options: Any) -> None:
        if python_function(kernel) is None:
            raise TypeError(f"{kernel!r} is not a kernel: expected a numba.cuda.jit function or a plain function")
        self.kernel = kernel
        self.options = options

    def __getitem__(self, configuration: Any) -> Any:
        """Bind grid, block, stream (ignored) and dynamic shared memory in bytes."""
        parts = configuration if isinstance(configuration, tuple) else (configuration,)
        if not 2 <= len(parts) <= 4:
            raise ValueError(f"expected kernel[grid, block, stream, shared_bytes], got {len(parts)} values")
        shared_bytes = parts[3] if len(parts) == 4 else 0

        def call(*args: Any) -> Report:
            return launch(self.kernel, parts[0], parts[1], *args, shared_bytes=shared_bytes, **self.options)

        return call


def simulate(kernel: Any, **options: Any) -> SimulatedKernel:
    """A kernel that runs on the simulator when it is launched.

    Parameters
    ----------
    kernel
        A ``numba.cuda.jit`` function, or a plain function written for it.
    **options
        Keyword arguments of `launch`, such as ``device`` and ``checks``.

    Returns
    -------
    Object to be launched as ``simulate(kernel)[grid, block, stream, shared_bytes](*args)``; the call returns a
    `Report`.
    """
    return SimulatedKernel(kernel, **options)
