"""docs/reference/numba_api.md is what the front end's tables say, and lists what numba-cuda exports."""

import importlib.util
from pathlib import Path

from numba.cuda import bf16, cache_hints, fp16, libdevicefuncs, stubs

ROOT = Path(__file__).resolve().parents[2]
# names of the stubs that are no functions of their own
NOT_CALLED = {"Dim3", "Stub", "const", "local", "shared", "atomic", "threadIdx", "blockIdx", "blockDim", "gridDim"}


def written():
    spec = importlib.util.spec_from_file_location("write_numba_api", ROOT / "tools" / "write_numba_api.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PAGE.read_text(encoding="utf-8"), module.page()


def test_page_is_what_the_tables_say():
    page, now = written()
    assert page == now, "run python tools/write_numba_api.py"


def test_page_names_every_function_of_numba_cuda():
    page, _ = written()
    names = [name.removeprefix("__nv_") for name in libdevicefuncs.functions]
    names += [name for name in (*fp16.__all__, *bf16.__all__) if not name.endswith("registry") and name != "__half"]
    names += [name for name in dir(cache_hints) if name[:2] in ("ld", "st") and len(name) == 4]
    names += [
        name for name, value in vars(stubs).items()
        if isinstance(value, type) and issubclass(value, stubs.Stub) and name not in NOT_CALLED
    ]  # fmt: skip
    names += [name for name, value in vars(stubs.atomic).items() if isinstance(value, type)]
    names.remove("bfloat16")  # a type
    assert not [name for name in names if f"`{name}`" not in page and f"fp16.{name}`" not in page]
