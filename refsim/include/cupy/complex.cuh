// complex<T> as CuPy's kernels have it, without thrust.
#pragma once
template <typename R> struct alignas(2 * sizeof(R)) complex {
  R re, im;
  REFSIM_DEVICE constexpr complex(R a = R(), R b = R()) : re(a), im(b) {}
  template <typename U> REFSIM_DEVICE constexpr explicit complex(const complex<U>& a) : re(R(a.re)), im(R(a.im)) {}
  REFSIM_DEVICE R real() const { return re; }
  REFSIM_DEVICE R imag() const { return im; }
  REFSIM_DEVICE void real(R a) { re = a; }
  REFSIM_DEVICE void imag(R a) { im = a; }
  REFSIM_DEVICE complex& operator+=(complex a) { re += a.re; im += a.im; return *this; }
  REFSIM_DEVICE complex& operator-=(complex a) { re -= a.re; im -= a.im; return *this; }
  REFSIM_DEVICE complex& operator*=(complex a) { *this = complex(re * a.re - im * a.im, re * a.im + im * a.re); return *this; }
};
#define REFSIM_F template <typename R> REFSIM_DEVICE inline
REFSIM_F complex<R> operator+(complex<R> a, complex<R> b) { return complex<R>(a.re + b.re, a.im + b.im); }
REFSIM_F complex<R> operator-(complex<R> a, complex<R> b) { return complex<R>(a.re - b.re, a.im - b.im); }
REFSIM_F complex<R> operator-(complex<R> a) { return complex<R>(-a.re, -a.im); }
REFSIM_F complex<R> operator*(complex<R> a, complex<R> b) {
  return complex<R>(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
REFSIM_F complex<R> operator*(complex<R> a, R b) { return complex<R>(a.re * b, a.im * b); }
REFSIM_F complex<R> operator*(R a, complex<R> b) { return complex<R>(a * b.re, a * b.im); }
REFSIM_F complex<R> operator+(complex<R> a, R b) { return complex<R>(a.re + b, a.im); }
REFSIM_F complex<R> operator/(complex<R> a, R b) { return complex<R>(a.re / b, a.im / b); }
REFSIM_F complex<R> operator/(complex<R> a, complex<R> b) {
  R scale = fabs(b.re) + fabs(b.im), inverse = R(1) / scale;
  R ax = a.re * inverse, ay = a.im * inverse, bx = b.re * inverse, by = b.im * inverse;
  R length = R(1) / (bx * bx + by * by);
  return complex<R>((ax * bx + ay * by) * length, (ay * bx - ax * by) * length);
}
REFSIM_F bool operator==(complex<R> a, complex<R> b) { return a.re == b.re && a.im == b.im; }
REFSIM_F bool operator!=(complex<R> a, complex<R> b) { return !(a == b); }
REFSIM_F complex<R> conj(complex<R> a) { return complex<R>(a.re, -a.im); }
REFSIM_F R real(complex<R> a) { return a.re; }
REFSIM_F R imag(complex<R> a) { return a.im; }
REFSIM_F R norm(complex<R> a) { return a.re * a.re + a.im * a.im; }
REFSIM_F R abs(complex<R> a) { return hypot(a.re, a.im); }
#undef REFSIM_F
