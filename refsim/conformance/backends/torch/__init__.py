"""Backends over the installed PyTorch, on CPU or ``cuda:N``: each operator as a user would write it, and compiled."""

from __future__ import annotations

import importlib
import pkgutil

from refsim.conformance.backends.library import LibraryBackend
from refsim.conformance.backends.torch.absent import ABSENT
from refsim.conformance.backends.torch.arrays import TorchArrays, compiled
from refsim.conformance.backends.torch.table import TABLE

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

backend = LibraryBackend("torch", TorchArrays(), TABLE.rows, ABSENT)
compiled_backend = backend.variant("torch-compile", "compiled", compiled)
