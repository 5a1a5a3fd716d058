"""The .cu files: their element types, the instantiations that launchers may ask for, and the kernels made of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import refsim

FOLDER = Path(__file__).parent

DTYPES = ("float16", "bfloat16", "float32", "float64")

NUMERICS = {"float16": "float32", "bfloat16": "float32", "float32": "float32", "float64": "float64"}
"""What each input dtype promises, as a key of ``oracle.numerics.NUMERICS``: the type of every intermediate value."""

CPP_TYPES = {
    "float16": "Half",
    "bfloat16": "BFloat16",
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "int64": "Index",
}
"""Dtypes as portable.cuh names them."""

OPTIONS = ("--std=c++17", f"-I{FOLDER}")


def cpp(dtype: Any) -> str:
    """The C++ type of a dtype."""
    return CPP_TYPES[np.dtype(dtype).name]


def accumulator_of(array: Any) -> np.dtype[Any]:
    """The dtype in which a kernel computes with the elements of ``array``."""
    return np.dtype(NUMERICS[array.dtype.name])


def strides_of(array: Any) -> tuple[np.int64, ...]:
    """Strides in elements, as kernels take them."""
    return tuple(np.int64(stride // array.itemsize) for stride in array.strides)


@dataclass(frozen=True)
class Source:
    """One .cu file.

    Attributes
    ----------
    file : str
        Its name, beside this module.
    instantiations : tuple of str
        Every name expression that launchers use, such as ``rmsnorm<Half>``.
    """

    file: str
    instantiations: tuple[str, ...]

    @property
    def code(self) -> str:
        """The text to compile, whose lines say that they are the file's."""
        path = FOLDER / self.file
        return f'#line 1 "{path.as_posix()}"\n{path.read_text(encoding="utf-8")}'

    def kernel(self, template: str, *arguments: str) -> Any:
        """The kernel ``template<arguments>``, which a launcher launches.

        Raises
        ------
        KeyError
            The instantiation is not in the list, so no test compiles it.
        """
        name = instantiation(template, *arguments)
        if name not in self.instantiations:
            raise KeyError(f"{name} is not among the instantiations of {self.file}; add it to its Source")
        return _module(self.code, OPTIONS, self.instantiations).get_function(name)


def instantiation(template: str, *arguments: str) -> str:
    """The name expression of a template with arguments."""
    return f"{template}<{', '.join(arguments)}>"


@cache
def _module(code: str, options: tuple[str, ...], instantiations: tuple[str, ...]) -> Any:
    """One module for all instantiations, so that the source is parsed once."""
    return refsim.RawModule(code=code, options=options, name_expressions=instantiations)
