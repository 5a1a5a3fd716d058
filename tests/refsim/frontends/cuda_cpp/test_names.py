"""What names mean: typedefs of unnamed records, aliases, namespaces, variable templates, our own headers."""

import numpy as np
import pytest

import refsim

PROGRAMS: dict[str, tuple[str, str, list[float]]] = {
    "typedef of an unnamed struct and enum": (
        "typedef struct { int q; } Box; typedef enum { FIRST, SECOND } Mode; typedef struct Tag { float x; } Named;",
        "Box b; b.q = 3; Mode m = SECOND; Named n{2}; x[0] = b.q; x[1] = m; x[2] = n.x;",
        [3, 1, 2],
    ),
    "names of one record in two namespaces": (
        "namespace a { struct S { float v; }; } namespace b { struct S { int pad[3]; int v; }; }\n"
        "__device__ float of(const a::S& s) { return s.v; } __device__ float of(const b::S& s) { return s.v + 0.5f; }",
        "a::S s{1.5f}; b::S t{}; t.v = 2; x[0] = of(s); x[1] = of(t); x[2] = sizeof(a::S) + 100 * sizeof(b::S);",
        [1.5, 2.5, 1604],
    ),
    "alias templates in parameters": (
        "template <typename T> struct Acc { using type = float; };\n"
        "template <> struct Acc<int> { using type = short; };\n"
        "template <typename T> using AccOf = typename Acc<T>::type;\n"
        "template <typename T> __device__ AccOf<T> first(const AccOf<T>* p, AccOf<T> (&a)[2]) { return p[0] + a[1]; }",
        "short s[2] = {32767, 1}; float f[2] = {1, 0.25f}; x[0] = first<int>(s, s); x[1] = first<double>(f, f);",
        [-32768, 1.25],
    ),
    "template arguments that differ in const only": (
        "template <typename T, int N> struct View { T* data; float tag() { return N; } };\n"
        "template <int N> struct View<const float, N> {\n"
        "  const float* data; float pad; float tag() { return 10 * N; }\n};\n"
        "using Fixed = const float; template <typename T> struct Holder { T inner; float more; };\n"
        "template <typename T> float size(T v) { return sizeof(v) + v.tag(); }\n"
        "float all(View<const float, 1> a, View<float, 1> b, View<Fixed, 2>* c, View<const float* const, 1> d,\n"
        "          View<const float*, 1> e, Holder<View<float, 1>> f, Holder<View<Fixed, 1>> g) {\n"
        "  return size(a) + 100 * size(b) + size(*c) + sizeof(d) + sizeof(e) + sizeof(f) + 1000 * sizeof(g);\n}",
        "View<float const, 2> c{x}; x[0] = all({}, {}, &c, {}, {}, {}, {}); x[1] = size(View<volatile float, 3>{});",
        [26 + 900 + 36 + 8 + 8 + 16 + 24000, 11],
    ),
    "variable templates and traits": (
        "#include <cuda/std/type_traits>\ntemplate <typename T> constexpr int bits = sizeof(T) * 8;",
        "x[0] = cuda::std::is_same_v<int, int>; x[1] = bits<short>; x[2] = cuda::std::is_signed_v<unsigned>;",
        [1, 16, 0],
    ),
    "alignment qualifiers": (
        "extern __shared__ __align__(16) unsigned char raw[]; struct __align__(16) Wide { float a; };",
        "x[0] = sizeof(Wide); x[1] = alignof(Wide); x[2] = alignof(float4);",
        [16, 16, 16],
    ),
    "two local records of one name in two instantiations": (
        "template <typename T> __device__ float run(T v) {\n"
        "  struct Local { T a, b; } l{v, T(v + 1)};\n"
        "  return l.a * l.b;\n}",
        "x[0] = run(3); x[1] = run(1.5f); x[2] = run((unsigned char)255);",
        [12, 3.75, 0],
    ),
    "lambdas of one place in two instantiations": (
        "template <typename F> __device__ float call(F f) { return f(2); }\n"
        "template <typename T> __device__ float run(T v) { return call([=](int k) { return v * k + sizeof(v); }); }",
        "x[0] = run(3); x[1] = run(1.5); x[2] = run((short)7);",
        [10, 11, 16],
    ),
    "standard headers": (
        "#include <algorithm>\n#include <array>\n#include <limits>\n#include <utility>",
        "std::array<float, 4> a{1, 2, 3, 4}; float s = 0; for (float v : a) s += v; std::swap(a[0], a[3]);\n"
        "x[0] = std::max(s, 2.f) + a.size(); x[1] = std::numeric_limits<short>::max(); x[2] = a[0];",
        [14, 32767, 4],
    ),
    "complex numbers": (
        "#include <cuComplex.h>\n#include <cupy/complex.cuh>",
        "cuFloatComplex a = make_cuFloatComplex(3, 4); x[0] = cuCabsf(a); x[1] = cuCrealf(cuCmulf(a, a));\n"
        "complex<float> b(1, 2); b *= b; x[2] = b.real() + b.imag();",
        [5, -7, 1],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_meaning(name: str) -> None:
    before, statements, expected = PROGRAMS[name]
    x = np.zeros(4, np.float32)
    code = f'{before}\nextern "C" __global__ void f(float* x) {{\n{statements}\n}}\n'
    assert refsim.RawKernel(code, "f", ("-default-device",))((1,), (1,), (x,)).ok
    assert x[: len(expected)].tolist() == expected
