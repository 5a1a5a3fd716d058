"""What is not translated is refused at translation, by name, with file and line."""

import pytest

from refsim.devices import device_named
from refsim.errors import KernelTypeError, UnsupportedError
from refsim.frontends.cuda_cpp import translate_source

SM_90 = device_named("sm_90")

REFUSED = {
    "recursion": (
        "__device__ int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }",
        "x[0] = fact(x[0]);",
        "recursive",
    ),
    "virtual functions": ("struct A { __device__ virtual int f() { return 1; } };", "A a; x[0] = a.f();", "virtual"),
    "destructors": ("struct A { int* p; __device__ ~A() { *p = 1; } };", "A a{x};", "destructor"),
    "destructors of temporaries": (
        "struct A { int* p; __device__ A(int* q) : p(q) {} __device__ ~A() { *p = 1; } };",
        "A{x}.p[1] = 2;",
        "destructor",
    ),
    "bit-fields": ("struct A { int a : 3; int b : 5; };", "A a; a.a = 1; x[0] = a.a;", "bit-field"),
    "goto": ("", "again: x[0] += 1; if (x[0] < 3) goto again;", "Label|Goto"),
    "function pointers": ("__device__ int f(int a) { return a; }", "int (*p)(int) = f; x[0] = p(1);", "function"),
    "unknown PTX": ("", 'int r; asm("vabsdiff4.u32 %0, %1, %2;" : "=r"(r) : "r"(1), "r"(2)); x[0] = r;', "vabsdiff4"),
    "case inside a loop": ("", "switch (x[0]) { case 0: do { x[1] = 1; case 1: x[2] = 1; } while (0); }", "case label"),
    "new": ("", "int* p = new int; x[0] = *p;", "CXXNewExpr"),
    "static variables": ("", "static int calls; x[0] = ++calls;", "static variable"),
    "an unknown function": ("__device__ int elsewhere(int);", "x[0] = elsewhere(1);", r"elsewhere\(\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_file_and_line(name: str) -> None:
    before, statement, message = REFUSED[name]
    code = f"{before}\n__global__ void f(int* x) {{\n  {statement}\n}}\n"
    with pytest.raises(UnsupportedError, match=message) as caught:
        translate_source(code, (), ["f"], SM_90, "refused.cu")
    assert caught.value.place is not None
    assert caught.value.place.file == "refused.cu"
    assert caught.value.place.line in (1, 2, 3)
    assert caught.value.place.text in code


def test_a_device_function_is_not_a_kernel() -> None:
    with pytest.raises(KernelTypeError, match="__global__"):
        translate_source("__device__ void f(int* x) {}", (), ["f"], SM_90)
