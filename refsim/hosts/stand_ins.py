"""Puts the stand-ins where ``import numba.cuda`` and ``import cupy`` find them, and takes them away again.

numba is imported when the script imports it, no sooner.
"""

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

CUPY = ("cupy", "cupyx", "cupy_backends")
NUMBA = ("numba", "numba.cuda")
NUMBA_RANDOM = "numba.cuda.random"


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds cupy and its modules, numba.cuda and its random numbers; refuses, by name, what else there is of cupy."""

    def __init__(self, simulate: bool) -> None:
        self.simulate = simulate
        self.cupy = simulate or importlib.util.find_spec("cupy") is None
        self.real_cuda: Any = None
        self.submodules = contextlib.ExitStack()
        self.vectorizers: tuple[Any, Any] | None = None
        self._specs: dict[str, Any] = {}
        self._looking = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A spec for the names that are ours."""
        if self._looking:
            return None
        if fullname in NUMBA:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        if fullname == NUMBA_RANDOM and self.real_cuda is not None:
            return importlib.machinery.ModuleSpec(fullname, self)
        top = fullname.partition(".")[0]
        if not self.cupy or top not in CUPY:
            return None
        if top != "cupy":
            raise NotSimulatedImportError(fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """The module itself; it needs no executing."""
        if spec.name in NUMBA:
            self._import_real(spec.name)
            return self.adopted_numba() if spec.name == "numba" else self.adopted_cuda()
        if spec.name == NUMBA_RANDOM:
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
        """Nothing left to do, but to leave a real module's own specification in place."""
        if module.__name__ in self._specs:
            module.__spec__ = self._specs[module.__name__]

    def _import_real(self, name: str) -> None:
        """Import the real module, as the other finders find it."""
        self._looking = True
        try:
            self._specs[name] = importlib.import_module(name).__spec__
        finally:
            self._looking = False

    def adopted_numba(self) -> types.ModuleType:
        """The real numba, its decorators without ``target="cuda"``."""
        from refsim.hosts.numba_host.ufuncs import adopting

        numba: Any = sys.modules["numba"]
        self.vectorizers = numba.vectorize, numba.guvectorize
        numba.vectorize, numba.guvectorize = (adopting(function) for function in self.vectorizers)
        return numba  # type: ignore[no-any-return]

    def adopted_cuda(self) -> types.ModuleType:
        """The stand-in for the real numba.cuda; or the real one, if that may be used and has a GPU."""
        from refsim.hosts.numba_host import CudaModule
        from refsim.hosts.numba_host.submodules import submodules

        real: Any = sys.modules["numba.cuda"]
        if not self.simulate and real.is_available():
            return real  # type: ignore[no-any-return]
        self.real_cuda = real
        module = CudaModule(real)
        self.submodules.enter_context(submodules(module))
        return module


@contextlib.contextmanager
def stand_ins(simulate: bool = True) -> Iterator[None]:
    """Within the block, ``numba.cuda`` and ``cupy`` are the stand-ins.

    Parameters
    ----------
    simulate
        Whether they replace the real ones. If not, only what is absent, or has no GPU, is replaced.
    """
    finder = _Finder(simulate)
    hidden = {name: sys.modules[name] for name in list(sys.modules) if finder.cupy and name.partition(".")[0] in CUPY}
    for name in hidden:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    if "numba" in sys.modules:
        finder.adopted_numba()
    if "numba.cuda" in sys.modules:
        _set_cuda(finder.adopted_cuda())
    try:
        yield
    finally:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
        finder.submodules.close()
        if finder.real_cuda is not None:
            _set_cuda(finder.real_cuda)
        if finder.vectorizers is not None:
            numba: Any = sys.modules["numba"]
            numba.vectorize, numba.guvectorize = finder.vectorizers
        for name in list(sys.modules):
            if (finder.cupy and name.partition(".")[0] in CUPY) or name == NUMBA_RANDOM:
                del sys.modules[name]
        sys.modules.update(hidden)


def _set_cuda(module: types.ModuleType) -> None:
    numba: Any = sys.modules["numba"]
    sys.modules["numba.cuda"] = numba.cuda = module
