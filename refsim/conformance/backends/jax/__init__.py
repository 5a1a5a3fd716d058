"""Backends over the installed JAX on CPU: each operator as a JAX user would write it, eager and under ``jax.jit``."""

from __future__ import annotations

import importlib
import pkgutil

from refsim.conformance.backends.jax.absent import ABSENT
from refsim.conformance.backends.jax.arrays import JaxArrays, jitted
from refsim.conformance.backends.jax.table import TABLE
from refsim.conformance.backends.library import LibraryBackend

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

backend = LibraryBackend("jax", JaxArrays(), TABLE.rows, ABSENT)
jit_backend = backend.variant("jax-jit", "jit", jitted)
