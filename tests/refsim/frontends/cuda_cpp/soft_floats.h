// Floats of 16 and 8 bits for the host compiler: a float that holds the value, rounded after every operation.
#include <cmath>
#include <type_traits>

template <int DIGITS, int LOWEST, int LARGEST_TIMES_8, int EXPONENT, bool SATURATES>
struct Soft {
  float value;
  Soft() = default;
  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  Soft(T x) : value(rounded(x)) {}
  operator float() const { return value; }
  static float rounded(long double x) {
    if (std::isnan(x) || x == 0) return (float)x;
    const long double largest = std::ldexp((long double)LARGEST_TIMES_8 / 8, EXPONENT);
    if (!std::isinf(x)) {
      int exponent;
      std::frexp(x, &exponent);
      const int unit = (exponent - 1 < LOWEST ? LOWEST : exponent - 1) - (DIGITS - 1);
      x = std::ldexp(std::rint(std::ldexp(x, -unit)), unit);
    }
    if (std::fabs(x) > largest) x = std::copysign(SATURATES ? largest : (long double)INFINITY, x);
    return (float)x;
  }
};
using __half = Soft<11, -14, 2047, 8, false>;             // 2047 × 2^5
using __nv_bfloat16 = Soft<8, -126, 255, 123, false>;     // 255 × 2^120
using __nv_fp8_e4m3 = Soft<4, -6, 14, 8, true>;           // 1.75 × 2^8
using __nv_fp8_e5m2 = Soft<3, -14, 14, 15, true>;         // 1.75 × 2^15

template <typename T> struct IsHalf : std::false_type {};
template <> struct IsHalf<__half> : std::true_type {};
template <> struct IsHalf<__nv_bfloat16> : std::true_type {};
template <typename H> using Half = std::enable_if_t<IsHalf<H>::value, H>;
template <typename H, typename I> using WithInteger =
    std::enable_if_t<IsHalf<H>::value && std::is_integral<I>::value, H>;

#define SOFT_OPERATOR(op)                                                                                   \
  template <typename H> Half<H> operator op(H a, H b) { return H((double)a.value op (double)b.value); }     \
  template <typename H, typename I> WithInteger<H, I> operator op(H a, I b) { return a op H(b); }           \
  template <typename H, typename I> WithInteger<H, I> operator op(I a, H b) { return H(a) op b; }           \
  template <typename H> Half<H>& operator op##=(H& a, H b) { return a = a op b; }                           \
  template <typename H, typename T, typename = std::enable_if_t<IsHalf<H>::value && std::is_arithmetic<T>::value>> \
  H& operator op##=(H& a, T b) { return a = H(a op b); }
SOFT_OPERATOR(+)
SOFT_OPERATOR(-)
SOFT_OPERATOR(*)
SOFT_OPERATOR(/)
#define SOFT_COMPARISON(op)                                                                                   \
  template <typename H, typename = Half<H>> bool operator op(H a, H b) { return a.value op b.value; }         \
  template <typename H, typename I, typename = WithInteger<H, I>> bool operator op(H a, I b) { return a op H(b); } \
  template <typename H, typename I, typename = WithInteger<H, I>, typename = void>                            \
  bool operator op(I a, H b) { return H(a) op b; }
SOFT_COMPARISON(<)
SOFT_COMPARISON(<=)
SOFT_COMPARISON(>)
SOFT_COMPARISON(>=)
SOFT_COMPARISON(==)
SOFT_COMPARISON(!=)
template <typename H> Half<H> operator-(H a) { return H(-a.value); }
template <typename H> Half<H>& operator++(H& a) { return a = a + H(1); }
template <typename H> Half<H>& operator--(H& a) { return a = a - H(1); }
template <typename H> Half<H> operator++(H& a, int) { H old = a; ++a; return old; }
template <typename H> Half<H> operator--(H& a, int) { H old = a; --a; return old; }
