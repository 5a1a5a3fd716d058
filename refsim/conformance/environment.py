"""What a report says of where it was made: versions and machine. Nothing in it changes from one run to the next."""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version

# Module and distribution of every library that takes part where it is imported.
ALWAYS = (("refsim", "refsim"), ("numpy", "numpy"), ("ml_dtypes", "ml_dtypes"))
WHERE_IMPORTED = (
    ("numba", "numba"),
    ("numba.cuda", "numba-cuda"),
    ("cupy", "cupy"),
    ("torch", "torch"),
    ("jax", "jax"),
    ("onnxruntime", "onnxruntime"),
    ("triton", "triton"),
)


def environment(backend: object = None) -> dict[str, str]:
    """Versions by name of the distribution, the machine, and ``facts`` of the backend, where it has some."""
    libraries = [*ALWAYS, *(entry for entry in WHERE_IMPORTED if entry[0] in sys.modules)]
    versions = {name: _version(name) for _, name in libraries}
    return {
        "python": platform.python_version(),
        **{name: text for name, text in versions.items() if text},
        "system": _system(),
        "processors": str(os.cpu_count()),
        **getattr(backend, "facts", {}),
    }


@cache
def _version(name: str) -> str:
    """The version of a distribution; empty where it is not installed as one."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


@cache
def _system() -> str:
    return f"{platform.system()} {platform.release()} {platform.machine()}"
