"""Backend over the installed ONNX Runtime on CPU: each operator as one ONNX node, or a few one after another."""

from __future__ import annotations

import importlib
import pkgutil

from refsim.conformance.backends.library import HostArrays, LibraryBackend
from refsim.conformance.backends.onnxruntime.absent import ABSENT
from refsim.conformance.backends.onnxruntime.table import TABLE

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

backend = LibraryBackend("onnxruntime", HostArrays(), TABLE.rows, ABSENT)
