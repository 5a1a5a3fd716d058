"""Explicit signatures of kernels: parsed and matched by numba's own rules, without compiling anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from refsim.frontends.numba_names import scalar_type
from refsim.hosts.memory import device_view


@dataclass(frozen=True)
class Signature:
    """Types of the parameters, as numba's type objects."""

    args: tuple[Any, ...]

    def __str__(self) -> str:
        return f"({', '.join(str(kind) for kind in self.args)})"


def is_signature(value: Any) -> bool:
    """Whether numba reads a value as a signature: a string, a tuple of types, or ``void(...)``."""
    from numba.cuda.core import sigutils

    return bool(sigutils.is_signature(value))


def signature_of(value: Any, device: bool) -> Signature:
    """Parse a signature.

    Raises
    ------
    TypeError
        If a kernel declares a return type other than void.
    """
    from numba.cuda import types
    from numba.cuda.core import sigutils

    args, result = sigutils.normalize_signature(value)
    if not device and result not in (None, types.void):
        raise TypeError("CUDA kernel must have void return type.")
    return Signature(tuple(args))


def converted(name: str, signatures: list[Signature], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments as the signature that fits them best declares them: scalars are cast, arrays must match.

    Raises
    ------
    TypeError
        If no signature fits, as numba raises it.
    """
    from numba.cuda import types
    from numba.cuda.descriptor import cuda_target
    from numba.cuda.typing import signature as make

    kinds = tuple(_typeof(value) for value in values)
    cases = [make(types.none, *signature.args) for signature in signatures if len(signature.args) == len(kinds)]
    context = cuda_target.typing_context
    chosen = context.resolve_overload(name, cases, kinds, {}, unsafe_casting=True) if cases else None
    if chosen is None:
        known = ", ".join(str(signature) for signature in signatures)
        given = ", ".join(str(kind) for kind in kinds)
        raise TypeError(f"No matching definition for argument type(s) {given}; {name}() is declared as {known}")
    return tuple(_cast(value, kind) for value, kind in zip(values, chosen.args, strict=True))


def _typeof(value: Any) -> Any:
    from numba.cuda.typing.typeof import Purpose, typeof

    view = device_view(value)
    if isinstance(value, tuple):
        from numba.cuda import types

        return types.BaseTuple.from_types([_typeof(item) for item in value], type(value))
    return typeof(value if view is None else view, Purpose.argument)


def _cast(value: Any, kind: Any) -> Any:
    """A scalar argument in the declared type, cast as C does; anything else as it is."""
    name = scalar_type(kind)
    if name is None or isinstance(value, (np.ndarray, tuple)) or device_view(value) is not None:
        return value
    with np.errstate(all="ignore"):
        if isinstance(value, int):
            value = np.array(value & (2**64 - 1), np.uint64) if not -(2**63) <= value < 2**63 else np.int64(value)
        return np.asarray(value).astype(np.dtype(name))[()]
