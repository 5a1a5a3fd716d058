// complex<T> as CuPy's kernels have it, without thrust.
#pragma once
template <typename __R> struct alignas(2 * sizeof(__R)) complex {
  __R re, im;
  REFSIM_DEVICE constexpr complex(__R a = __R(), __R b = __R()) : re(a), im(b) {}
  template <typename __U> REFSIM_DEVICE constexpr explicit complex(const complex<__U>& a) : re(__R(a.re)), im(__R(a.im)) {}
  REFSIM_DEVICE __R real() const { return re; }
  REFSIM_DEVICE __R imag() const { return im; }
  REFSIM_DEVICE void real(__R a) { re = a; }
  REFSIM_DEVICE void imag(__R a) { im = a; }
  REFSIM_DEVICE complex& operator+=(complex a) { re += a.re; im += a.im; return *this; }
  REFSIM_DEVICE complex& operator-=(complex a) { re -= a.re; im -= a.im; return *this; }
  REFSIM_DEVICE complex& operator*=(complex a) { *this = complex(re * a.re - im * a.im, re * a.im + im * a.re); return *this; }
};
#define REFSIM_F template <typename __R> REFSIM_DEVICE inline
REFSIM_F complex<__R> operator+(complex<__R> a, complex<__R> b) { return complex<__R>(a.re + b.re, a.im + b.im); }
REFSIM_F complex<__R> operator-(complex<__R> a, complex<__R> b) { return complex<__R>(a.re - b.re, a.im - b.im); }
REFSIM_F complex<__R> operator-(complex<__R> a) { return complex<__R>(-a.re, -a.im); }
REFSIM_F complex<__R> operator*(complex<__R> a, complex<__R> b) {
  return complex<__R>(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
REFSIM_F complex<__R> operator*(complex<__R> a, __R b) { return complex<__R>(a.re * b, a.im * b); }
REFSIM_F complex<__R> operator*(__R a, complex<__R> b) { return complex<__R>(a * b.re, a * b.im); }
REFSIM_F complex<__R> operator+(complex<__R> a, __R b) { return complex<__R>(a.re + b, a.im); }
REFSIM_F complex<__R> operator/(complex<__R> a, __R b) { return complex<__R>(a.re / b, a.im / b); }
REFSIM_F complex<__R> operator/(complex<__R> a, complex<__R> b) {
  __R scale = fabs(b.re) + fabs(b.im), inverse = __R(1) / scale;
  __R ax = a.re * inverse, ay = a.im * inverse, bx = b.re * inverse, by = b.im * inverse;
  __R length = __R(1) / (bx * bx + by * by);
  return complex<__R>((ax * bx + ay * by) * length, (ay * bx - ax * by) * length);
}
REFSIM_F bool operator==(complex<__R> a, complex<__R> b) { return a.re == b.re && a.im == b.im; }
REFSIM_F bool operator!=(complex<__R> a, complex<__R> b) { return !(a == b); }
REFSIM_F complex<__R> conj(complex<__R> a) { return complex<__R>(a.re, -a.im); }
REFSIM_F __R real(complex<__R> a) { return a.re; }
REFSIM_F __R imag(complex<__R> a) { return a.im; }
REFSIM_F __R norm(complex<__R> a) { return a.re * a.re + a.im * a.im; }
REFSIM_F __R abs(complex<__R> a) { return hypot(a.re, a.im); }
#undef REFSIM_F
