"""Puts the stand-ins where ``import numba.cuda`` and ``import cupy`` find them, and takes them away again."""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

from refsim.hosts.missing import NotSimulatedImportError

# Real submodules of numba.cuda that are imported by numba itself, and hold nothing that needs a device.
_NUMBA_RANDOM = "numba.cuda.random"


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds cupy and its modules, and numba.cuda.random; refuses cupyx and what else there is of cupy, by name."""

    def __init__(self, cupy: bool) -> None:
        self.cupy = cupy

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A spec for the names that are ours."""
        if fullname == _NUMBA_RANDOM:
            return importlib.machinery.ModuleSpec(fullname, self)
        top = fullname.partition(".")[0]
        if not self.cupy or top not in ("cupy", "cupyx", "cupy_backends"):
            return None
        if top != "cupy":
            raise NotSimulatedImportError(fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """The module itself; it needs no executing."""
        if spec.name == _NUMBA_RANDOM:
            from refsim.hosts.numba_host import random

            return random
        from refsim.hosts.cupy_host import cupy_module

        module: Any = cupy_module()
        for part in spec.name.split(".")[1:]:
            found = vars(module).get(part)
            if not isinstance(found, types.ModuleType):
                raise NotSimulatedImportError(spec.name)
            module = found
        return module  # type: ignore[no-any-return]

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing left to do."""


@contextlib.contextmanager
def stand_ins(simulate: bool = True) -> Iterator[None]:
    """Within the block, ``numba.cuda`` and ``cupy`` are the stand-ins.

    Parameters
    ----------
    simulate
        Whether they replace the real ones. If not, only what is absent, or has no GPU, is replaced.
    """
    import numba
    import numba.cuda as real_cuda

    from refsim.hosts.numba_host import CudaModule
    from refsim.hosts.numba_host.ufuncs import refusing

    numba_too = simulate or not real_cuda.is_available()
    cupy_too = simulate or importlib.util.find_spec("cupy") is None
    ours = ("cupy", "cupyx", "cupy_backends")
    hidden = {
        name: module
        for name, module in sys.modules.items()
        if (cupy_too and name.partition(".")[0] in ours) or (numba_too and name in ("numba.cuda", _NUMBA_RANDOM))
    }
    for name in hidden:
        del sys.modules[name]
    finder = _Finder(cupy_too)
    sys.meta_path.insert(0, finder)
    vectorizers = numba.vectorize, numba.guvectorize
    if numba_too:
        module = CudaModule(real_cuda)
        sys.modules["numba.cuda"] = module
        numba.cuda = module
        numba.vectorize, numba.guvectorize = (refusing(function) for function in vectorizers)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        numba.cuda = real_cuda
        numba.vectorize, numba.guvectorize = vectorizers
        for name in [name for name in sys.modules if name in (*ours, _NUMBA_RANDOM) or name.startswith("cupy.")]:
            if cupy_too or name == _NUMBA_RANDOM:
                del sys.modules[name]
        sys.modules.update(hidden)
