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
    "virtual bases": ("struct A { int a; }; struct B : virtual A {};", "B b; x[0] = b.a;", "virtual base"),
    "destructors of temporaries that not every thread makes": (
        "struct A { int* p; __device__ A(int* q) : p(q) {} __device__ ~A() { *p = 1; } };",
        "if (x[0] && A{x}.p[1]) x[2] = 1;",
        "destructor",
    ),
    "destructors of shared variables": (
        "struct A { int p; __device__ ~A() { p = 1; } };",
        "__shared__ A a[2]; x[0] = a[1].p;",
        "destructor",
    ),
    "pointers to members": ("struct A { int p; };", "int A::* p = &A::p; A a{1}; x[0] = a.*p;", "member"),
    "pointers to member functions": (
        "struct A { int p; __device__ int f() { return p; } };",
        "int (A::*p)() = &A::f; A a{1}; x[0] = (a.*p)();",
        "member",
    ),
    "goto": ("", "again: x[0] += 1; if (x[0] < 3) goto again;", "goto"),
    "unknown PTX": ("", 'int r; asm("vabsdiff4.u32 %0, %1, %2;" : "=r"(r) : "r"(1), "r"(2)); x[0] = r;', "vabsdiff4"),
    "case inside a loop": ("", "switch (x[0]) { case 0: do { x[1] = 1; case 1: x[2] = 1; } while (0); }", "case label"),
    "new": ("", "int* p = new int; x[0] = *p;", "memory allocated"),
    "malloc": ("", "int* p = (int*)malloc(4); x[0] = *p;", "memory allocated"),
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
