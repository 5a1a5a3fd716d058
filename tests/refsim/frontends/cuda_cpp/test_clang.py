"""Finding clang, and what is said when there is none; options of the compiler."""

import stat
import sys
from pathlib import Path

import pytest

from refsim.devices import device_named
from refsim.frontends.cuda_cpp import ClangError, CompileError, translate_source
from refsim.frontends.cuda_cpp.clang import find_clang
from refsim.frontends.cuda_cpp.options import parse

SM_90 = device_named("sm_90")
KERNEL = 'extern "C" __global__ void f(float* x) { x[0] = VALUE; }\n'


def fake_clang(folder: Path, version: str) -> str:
    path = folder / "clang"
    path.write_text(f"#!{sys.executable}\nprint('clang version {version}')\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_a_clang_is_found() -> None:
    assert find_clang().version >= 17


def test_the_chosen_clang_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = fake_clang(tmp_path, "21.1.0")
    monkeypatch.setenv("REFSIM_CLANG", chosen)
    assert find_clang().command == (chosen,)
    assert find_clang().version == 21


def test_an_old_clang_is_refused_with_the_line_that_installs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFSIM_CLANG", fake_clang(tmp_path, "14.0.0"))
    with pytest.raises(ClangError, match=r"clang 14.*17 or later.*pip install 'refsim\[cpp\]'"):
        find_clang()


def test_a_missing_clang_is_an_error_with_the_line_that_installs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFSIM_CLANG", str(tmp_path / "nothing"))
    with pytest.raises(ClangError, match=r"nothing.*pip install 'refsim\[cpp\]'"):
        find_clang()


def test_source_that_clang_rejects_is_an_error_with_file_and_line() -> None:
    with pytest.raises(CompileError, match=r"my\.cu:2:.*undeclared_name"):
        translate_source("\n__global__ void f(int* x) { x[0] = undeclared_name; }", (), ["f"], SM_90, "my.cu")


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        ("__global__ void g(cudaTextureObject_t t, float* x) { *x = tex2D<float>(t, 0, 0); }", "textures and surfaces"),
        ("texture<float, 2> t; __global__ void f(float* x) { x[0] = tex2D(t, 0, 0); }", "textures and surfaces"),
        ("__global__ void f(cudaSurfaceObject_t s) { surf2Dwrite(1.f, s, 0, 0); }", "textures and surfaces"),
        ("__global__ void g() {} __global__ void f() { g<<<1, 1>>>(); }", "launch from the host"),
        ('#include "nowhere.h"\n__global__ void f() {}', "-I/the/folder"),
        ("#include <cub/block/no_such.cuh>\n__global__ void f() {}", "cub/block/no_such.cuh is not supported"),
        ("__global__ void f() { float* p; cudaMalloc(&p, 4); }", "on the host, in Python"),
        ("__global__ void g() {}\nextern \"C\" __global__ __launch_bounds__(32 * (2 + 2)) void h(int* x) {}",
         "nothing called 'f'; its kernels are g, h"),
        ("__device__ void g() {}", "defines no kernels"),
        ("template <typename T> __global__ void f(T* x) {}", "'f' is a template or has overloads.*f<float>"),
    ],
)  # fmt: skip
def test_an_error_of_clang_says_what_to_do(code: str, meaning: str) -> None:
    with pytest.raises(CompileError, match=meaning):
        translate_source(code, (), ["f"], SM_90)


@pytest.mark.parametrize(
    "options", [("-DVALUE=2",), ("-D", "VALUE=2"), ("--define-macro=VALUE=2",), ("-DVALUE=3", "-UVALUE", "-DVALUE=2")]
)
def test_definitions(options: tuple[str, ...]) -> None:
    assert "f" in translate_source(KERNEL, options, ["f"], SM_90)


def test_include_folders(tmp_path: Path) -> None:
    (tmp_path / "value.h").write_text("#define VALUE 7\n")
    code = '#include "value.h"\n' + KERNEL
    assert "f" in translate_source(code, (f"-I{tmp_path}",), ["f"], SM_90)
    assert "f" in translate_source(code, ("-I", str(tmp_path)), ["f"], SM_90)
    with pytest.raises(CompileError, match=r"value\.h"):
        translate_source(code, (), ["f"], SM_90)


def test_a_changed_include_file_is_read_again(tmp_path: Path) -> None:
    header = tmp_path / "value.h"
    code = '#include "value.h"\n' + KERNEL
    header.write_text("#define VALUE 7\n")
    first = translate_source(code, (f"-I{tmp_path}",), ["f"], SM_90)["f"]
    assert translate_source(code, (f"-I{tmp_path}",), ["f"], SM_90)["f"] is first
    header.write_text("#define VALUE 12345\n")
    assert translate_source(code, (f"-I{tmp_path}",), ["f"], SM_90)["f"] is not first


@pytest.mark.parametrize(
    ("option", "message"),
    [("-fno-such-thing", "-fno-such-thing"), ("-std=c++03", r"c\+\+03"), ("-D", "needs a value")],
)
def test_an_unknown_option_is_named(option: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse((option,))


def test_switches() -> None:
    assert parse(("--use_fast_math",)).fast_math
    assert parse(("-fmad=true",)).fmad
    assert not parse(("--fmad=false",)).fmad
    assert parse(("--device-as-default-execution-space",)).device_default
    assert parse(("--std=c++20",)).standard == "c++20"


def test_functions_without_a_qualifier_are_device_functions_if_asked_for() -> None:
    code = "int three() { return 3; }\n__global__ void f(int* x) { x[0] = three(); }"
    assert "f" in translate_source(code, ("-default-device",), ["f"], SM_90)
    with pytest.raises(CompileError, match="three"):
        translate_source(code, (), ["f"], SM_90)
