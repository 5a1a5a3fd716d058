"""Record layouts: sizes and offsets that the host's compiler gives."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

import refsim

from .host import have_compiler

RECORDS = {
    "BitsAlone": ("struct BitsAlone { int a : 3, : 5, b : 20; unsigned c : 9; };", ()),
    "BitsBetween": ("struct BitsBetween { char x; int a : 7; short y; long b : 33; char z; };", ("x", "y", "z")),
    "BitsApart": ("struct BitsApart { char a : 4; int : 0; char b : 4; char z; long : 40; short y; };", ("z", "y")),
    "BitsSmall": ("struct BitsSmall { bool a : 1; signed char b : 7; unsigned short c : 12; char z; };", ("z",)),
    "BitsUnion": ("union BitsUnion { int a : 5; short b; char c : 3; };", ("b",)),
    "Padded": ("struct Padded { char a; int b; char c; double d; short e; };", ("a", "b", "c", "d", "e")),
    "Aligned": ("struct alignas(16) Aligned { float a[3]; };", ("a",)),
    "AlignedMember": ("struct AlignedMember { char a; alignas(8) char b; char c; };", ("a", "b", "c")),
    "Derived": (
        "struct Base { int a; char b; Base() : a(1), b(2) {} };\nstruct Derived : Base { char c; short d; };",
        ("a", "b", "c", "d"),
    ),
    "PodDerived": ("struct Pod { int a; char b; };\nstruct PodDerived : Pod { char c; };", ("a", "b", "c")),
    "EmptyBase": ("struct Empty {};\nstruct EmptyBase : Empty { int a; };", ("a",)),
    "Nested": ("struct In { short a; char b; };\nstruct Nested { char x; In in[3]; long y; };", ("x", "in", "y")),
    "Variant": ("union Variant { char a; double b; int c[5]; };", ("a", "b", "c")),
    "Polymorphic": (
        "struct Polymorphic { char a; int b; virtual int f() { return 1; } char c; };\n",
        ("a", "b", "c"),
    ),
    "SecondBase": (
        "struct Plain { char p; }; struct One { int o; virtual void f() {} char t; };\n"
        "struct Two { virtual void g() {} short u; }; struct SecondBase : Plain, One, Two { char v; };",
        ("p", "o", "t", "u", "v"),
    ),
    "Wide": (
        "template <typename T, int N> struct Vec { T v[N]; };\nstruct Wide { char a; Vec<short, 3> b; };",
        ("a", "b"),
    ),
}


HOST = """
#include <cstdio>
{text}
int main() {{
  long values[] = {{{values}}};
  for (long v : values) printf("%ld\\n", v);
}}
"""


@pytest.mark.skipif(not have_compiler(), reason="expected values come from g++, which is not installed")
@pytest.mark.parametrize("name", RECORDS)
def test_size_alignment_and_offsets(name: str, tmp_path: Path) -> None:
    text, members = RECORDS[name]
    offsets = "".join(f", (long)(char*)&((({name}*)4096)->{member}) - 4096" for member in members)
    values = f"(long)sizeof({name}), (long)alignof({name}){offsets}"
    source, program = tmp_path / "layout.cpp", tmp_path / "layout"
    source.write_text(HOST.format(text=text, values=values))
    subprocess.run(["g++", "-std=c++17", "-w", str(source), "-o", str(program)], check=True)
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    expected = [int(value) for value in printed.split()]
    stores = [f"out[{i}] = (long)&((({name}*)0)->{member});" for i, member in enumerate(members, 2)]
    body = f"out[0] = sizeof({name}); out[1] = alignof({name}); {' '.join(stores)}"
    device = text.replace("Base() :", "__device__ Base() :").replace("virtual", "__device__ virtual")
    out = np.zeros(len(expected), np.int64)
    kernel = refsim.RawKernel(f'{device}\nextern "C" __global__ void layout(long* out) {{ {body} }}', "layout")
    assert kernel((1,), (1,), (out,)).ok
    assert out.tolist() == expected
