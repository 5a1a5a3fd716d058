// The standard library's parts that kernels use: the host has its own. Every namespace has a function `result`, which
// the host's compiler and refsim run.
#include <algorithm>
#include <array>
#include <bit>
#include <complex>
#include <concepts>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tuples_and_pairs {
DEVICE std::tuple<int, float, short> make(int a) { return {a, 2.5f, (short)(a * 3)}; }
DEVICE int add(int a, int b, int c) { return a + 2 * b + 3 * c; }
DEVICE int result(int a, int b) {
    auto [x, y, z] = make(a);
    std::tuple t(a, (long long)b, 'c');
    std::get<1>(t) += 5;
    auto [u, v, w] = t;
    std::pair p(a, 1.5f);
    auto& [first, second] = p;
    first ^= b;
    auto [k, l, m] = std::array<int, 3>{a, b, 7};
    const auto made = std::make_pair(b, std::make_tuple(a, 2));
    auto q = std::exchange(p.first, 3);
    std::swap(x, k);
    return x + (int)(y * 2) + z + u + (int)v + w + q + l * m + k + std::get<0>(made.second) + std::apply(add, std::tuple(a, b, 1)) +
           (int)std::tuple_size_v<decltype(t)> * 100 + (std::pair(a, b) < std::pair(b, a)) * 1000;
}
}

namespace sequences {
template <std::size_t... I> DEVICE int weigh(const int* x, std::index_sequence<I...>) {
    return ((x[I] * (int)(I + 1)) + ... + 0);
}
template <int... N> DEVICE int last(std::integer_sequence<int, N...>) { return (0, ..., N); }
template <typename T, std::size_t N> DEVICE int total(const T (&x)[N]) {
    return weigh(x, std::make_index_sequence<N>{}) + weigh(x, std::make_index_sequence<0>{});
}
DEVICE int result(int a, int b) {
    const int data[5] = {a, b, 3, a - b, 9};
    return total(data) + last(std::make_integer_sequence<int, 7>{}) + weigh(data + 1, std::index_sequence<0, 2>{});
}
}

namespace algorithms {
DEVICE int result(int a, int b) {
    std::array x{a, b, a ^ b, 17, a & 255, -b};
    std::sort(x.begin(), x.end());
    int r = x[0] * 3 + (int)(std::lower_bound(x.begin(), x.end(), 17) - x.begin());
    r += (int)std::count_if(x.begin(), x.end(), [](int v) { return v & 1; }) * 100;
    std::reverse(x.begin(), x.end());
    r = r * 31 + x.front() + x.back();
    r += *std::max_element(x.begin(), x.end()) + std::accumulate(x.begin(), x.end(), 0);
    int y[6];
    std::copy(x.begin(), x.end(), y);
    std::fill(y + 1, y + 3, b);
    r ^= std::inner_product(x.begin(), x.end(), y, 1u) + (int)(std::find(y, y + 6, b) - y);
    std::iota(y, y + 4, 5);
    r += std::clamp(a, -5, y[3]) + std::min(a, b, std::greater<int>{});
    return r + std::any_of(y, y + 6, [&](int v) { return v == a; });
}
}

namespace bit_functions {
DEVICE unsigned result(unsigned a, unsigned char b, unsigned long long c, float x) {
    return std::popcount(a) + std::countl_zero(b) * 3 + std::countr_zero(c) * 5 + std::countr_one(a) * 7 +
           std::rotl(a, 5) + std::rotr(b, 3) + std::bit_width(c) * 11 + std::bit_floor(a) + (unsigned)std::bit_ceil((unsigned char)(b >> 1)) +
           std::has_single_bit(a) + std::bit_cast<unsigned>(x);
}
}

namespace spans {
DEVICE int sum(std::span<const int> s) {
    int r = 0;
    for (int v : s) r = r * 3 + v;
    return r + (int)s.size();
}
DEVICE int result(int a, int b) {
    int data[6] = {a, b, 3, 4, a ^ b, 6};
    std::span all(data);
    std::span<int> part(data + 1, 4);
    part[a & 3] += 7;
    all.front()--;
    std::array<int, 3> more{1, b, a};
    return sum(all) + sum(part.subspan(1, 2)) * 5 + sum(all.last(3)) + sum(std::span<int>(more)) + part.back() +
           (int)part.size_bytes();
}
}

namespace traits_and_limits {
template <std::integral T> DEVICE int of(T) { return std::is_signed_v<T> ? 1 : 2; }
template <std::floating_point T> DEVICE int of(T) { return 3; }
template <typename T> DEVICE std::enable_if_t<std::is_pointer_v<T>, int> pick(T) { return 5; }
template <typename T> DEVICE std::enable_if_t<!std::is_pointer_v<T>, int> pick(T) { return 6; }
template <typename F, typename... T> DEVICE auto call(F f, T... x) { return f(x...); }
DEVICE long long result(int a, unsigned short b) {
    using U = std::make_unsigned_t<decltype(a)>;
    using C = std::conditional_t<(sizeof(b) > 2), char, long long>;
    static_assert(std::is_same_v<std::remove_cvref_t<const int&>, int>);
    C big = (U)a;
    return of(a) + of(b) * 10 + of(1.5) * 100 + pick(&a) * 1000 + pick(a) + big + std::numeric_limits<short>::min() +
           std::numeric_limits<U>::max() + call(std::plus<>{}, a, (long long)b) + std::multiplies<int>{}(b, 3) +
           std::bit_xor<>{}(a, 5);
}
}

namespace complex_numbers {
DEVICE double result(double a, int b) {
    std::complex<double> x(b & 255, 3), y(2, b & 15);
    x += y * 2.0;
    x = x * y - std::conj(x) + 1.0;
    y *= x;
    return y.real() + 3 * y.imag() + std::norm(x) + (x == y) + std::real(-x);
}
}
