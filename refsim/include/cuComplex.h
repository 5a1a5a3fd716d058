// Complex numbers as CUDA's C interface has them.
#pragma once
typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;
#define REFSIM_F REFSIM_DEVICE inline
REFSIM_F cuFloatComplex make_cuFloatComplex(float a, float b) { return cuFloatComplex{a, b}; }
REFSIM_F cuComplex make_cuComplex(float a, float b) { return cuComplex{a, b}; }
REFSIM_F cuDoubleComplex make_cuDoubleComplex(double a, double b) { return cuDoubleComplex{a, b}; }
#define REFSIM_COMPLEX(V, __R, s, root)                                                                   \
  REFSIM_F __R cuCreal##s(V a) { return a.x; }                                                           \
  REFSIM_F __R cuCimag##s(V a) { return a.y; }                                                           \
  REFSIM_F V cuConj##s(V a) { return V{a.x, -a.y}; }                                                   \
  REFSIM_F V cuCadd##s(V a, V b) { return V{a.x + b.x, a.y + b.y}; }                                   \
  REFSIM_F V cuCsub##s(V a, V b) { return V{a.x - b.x, a.y - b.y}; }                                   \
  REFSIM_F V cuCmul##s(V a, V b) { return V{a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }           \
  REFSIM_F V cuCdiv##s(V a, V b) {                                                                     \
    __R scale = fabs(b.x) + fabs(b.y);                                                                   \
    __R inverse = __R(1) / scale;                                                                          \
    __R ax = a.x * inverse, ay = a.y * inverse, bx = b.x * inverse, by = b.y * inverse;                  \
    __R length = __R(1) / (bx * bx + by * by);                                                             \
    return V{(ax * bx + ay * by) * length, (ay * bx - ax * by) * length};                              \
  }                                                                                                    \
  REFSIM_F __R cuCabs##s(V a) { return root(a.x, a.y); }
REFSIM_COMPLEX(cuFloatComplex, float, f, hypotf)
REFSIM_COMPLEX(cuDoubleComplex, double, , hypot)
#undef REFSIM_COMPLEX
#undef REFSIM_F
