"""What compiles or links device code: it exists under its name, and refuses when it is called."""

from __future__ import annotations

from typing import Any

from refsim.hosts.missing import refuse

NO_COMPILER = "kernels are not compiled, so there is no PTX, SASS or object code"
NO_LINKER = "foreign device code cannot run without a GPU"

_COMPILERS = ("compile", "compile_all", "compile_for_current_device", "compile_ptx", "compile_ptx_for_current_device")

REFUSED: dict[str, Any] = {
    **{name: refuse(f"numba.cuda.{name}", NO_COMPILER) for name in _COMPILERS},
}
