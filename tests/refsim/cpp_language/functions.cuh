// Functions and templates. Every namespace has a function `result`, which the host's compiler and refsim both run.

namespace overloads {
DEVICE int size_of(signed char) { return 1; }
DEVICE int size_of(short) { return 2; }
DEVICE int size_of(int) { return 4; }
DEVICE int size_of(long long) { return 8; }
DEVICE int size_of(unsigned) { return 40; }
DEVICE int size_of(float) { return 400; }
DEVICE int size_of(double) { return 800; }
DEVICE int result(short a, signed char b, unsigned c, float d) {
    return size_of(a) + 3 * size_of(b) + 5 * size_of(a + b) + 7 * size_of(a + c) + 11 * size_of(b * d) +
           13 * size_of(d * 1.0) + 17 * size_of(c + 1LL) + 19 * size_of('c' + 'd');
}
}

namespace default_arguments {
DEVICE int offset() { return 7; }
DEVICE int scaled(int x, int factor = 3, int shift = offset() + 1) { return x * factor + shift; }
DEVICE int result(int a, int b) { return scaled(a) ^ scaled(a, b) ^ scaled(a, b, a - b); }
}

namespace early_returns {
DEVICE int classify(int x) {
    if (x < 0) {
        return -1;
    }
    for (int d = 2; d < 10; d++) {
        if (x % d == 0) {
            return d;
        }
    }
    return x & 1 ? 100 : 200;
}
DEVICE int result(int a, int b) { return classify(a) * 1000 + classify(b); }
}

namespace void_functions_and_out_parameters {
DEVICE void divide(int a, int b, int& quotient, int* remainder) {
    if (b == 0) {
        quotient = 0;
        return;
    }
    quotient = a / b;
    *remainder = a % b;
}
DEVICE long long result(int a, short b) {
    int quotient = -1, remainder = -2;
    divide(a, b, quotient, &remainder);
    return quotient * 100003LL + remainder;
}
}

namespace template_of_types_and_values {
template <typename T, int N = 4, typename Wide = long long> struct Sum {
    DEVICE static Wide of(const T* values) {
        Wide total = N;
        for (int i = 0; i < N; i++) {
            total += values[i];
        }
        return total;
    }
};
DEVICE long long result(short a, int b, signed char c) {
    const int ints[4] = {a, b, c, 7};
    const signed char bytes[3] = {c, 1, c};
    return Sum<int>::of(ints) + Sum<signed char, 3>::of(bytes) * 3 + Sum<int, 2, unsigned char>::of(ints);
}
}

namespace explicit_specialisation {
template <typename T> DEVICE int kind(T) { return 0; }
template <> DEVICE int kind<float>(float) { return 1; }
template <> DEVICE int kind<int>(int x) { return x; }
template <typename T> struct Limits { static constexpr long long largest = -1; };
template <> struct Limits<short> { static constexpr long long largest = 32767; };
template <> struct Limits<unsigned> { static constexpr long long largest = 4294967295; };
template <typename T> struct Limits<T*> { static constexpr long long largest = Limits<T>::largest + 1; };
DEVICE long long result(int a, float b, double c) {
    return kind(a) + 2 * kind(b) + 4 * kind(c) + Limits<short>::largest + Limits<unsigned*>::largest + Limits<int>::largest;
}
}

namespace if_constexpr {
template <typename T> struct IsFloat { static constexpr bool value = false; };
template <> struct IsFloat<float> { static constexpr bool value = true; };
template <typename T> DEVICE T half_of(T x) {
    if constexpr (IsFloat<T>::value) {
        return x * 0.5f;
    } else if constexpr (sizeof(T) == 1) {
        return x >> 1;
    } else {
        return x / 2;
    }
}
DEVICE float result(float a, int b, unsigned char c) { return half_of(a) + half_of(b) + half_of(c); }
}

namespace fold_expressions {
template <typename... T> DEVICE long long sum(T... values) { return (values + ... + 0LL); }
template <typename... T> DEVICE int difference(T... values) { return (values - ...); }
template <typename... T> DEVICE bool any_negative(T... values) { return ((values < 0) || ...); }
template <int... POWERS> DEVICE int polynomial(int x) { return (0 + ... + (x * POWERS)); }
template <typename... T> DEVICE int count(T...) { return sizeof...(T); }
template <typename First, typename... Rest> DEVICE int last(First first, Rest... rest) {
    if constexpr (sizeof...(rest) == 0) {
        return first;
    } else {
        return last(rest...);
    }
}
DEVICE long long result(int a, short b, signed char c) {
    return sum(a, b, c) + difference(a, b, c) + 3 * any_negative(a, b) + polynomial<1, 2, 3>(b) + count(a, b, c, 1) +
           last(a, c, b) + sum();
}
}

namespace constexpr_and_static_assert {
constexpr int factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1); }
constexpr int SIZE = factorial(4);
static_assert(SIZE == 24, "computed by the compiler");
static_assert(sizeof(long long) == 8);
constexpr int PRIMES[] = {2, 3, 5, 7, 11};
DEVICE int result(int a, int b) {
    constexpr int last = PRIMES[4];
    int cells[SIZE / 8] = {a, b, SIZE * 5};
    return cells[0] + cells[1] * last + cells[2] + PRIMES[(unsigned)a % 5];
}
}

namespace enumerations {
enum Colour { RED, GREEN = 5, BLUE };
enum class Mode : unsigned char { ADD = 250, SUBTRACT, MULTIPLY };
enum Bits : unsigned { LOW = 1u, HIGH = 0x80000000u };
DEVICE int apply(Mode mode, int a, int b) {
    switch (mode) {
        case Mode::ADD: return a + b;
        case Mode::SUBTRACT: return a - b;
        case Mode::MULTIPLY: return a * b;
    }
    return 0;
}
DEVICE long long result(int a, int b) {
    const Mode mode = static_cast<Mode>(250 + (unsigned)a % 3);
    Colour colour = a > b ? RED : BLUE;
    return apply(mode, a, b) + colour * 10LL + (HIGH | LOW) + static_cast<int>(mode) + GREEN;
}
}

namespace lambdas {
template <typename F> DEVICE int twice(F f, int x) { return f(f(x)); }
DEVICE int result(int a, int b) {
    int calls = 0;
    const auto add = [=](int x) { return x + b; };
    auto count = [&calls, b](int x) { calls += 2; return x ^ b; };
    auto generic = [](auto x, auto y) { return x * 2 + y; };
    auto counter = [n = a & 7]() mutable { return ++n; };
    int total = twice(add, a) + twice(count, a) + generic(a, 1) + int(generic(1.5f, 2)) + counter() + counter();
    auto nested = [&](int x) {
        auto inner = [&](int y) { total += y; return total; };
        return inner(x) - x;
    };
    return nested(b) + calls;
}
}

namespace references {
DEVICE int& larger(int& a, int& b) { return a > b ? a : b; }
template <typename T> DEVICE void exchange(T& a, T& b) {
    T old = a;
    a = b;
    b = old;
}
DEVICE int first(const int& x) { return x + 1; }
DEVICE int result(int a, int b) {
    int cells[3] = {a, b, 0};
    larger(cells[0], cells[1]) += 10;
    int& alias = cells[2];
    alias = cells[0] - 1;
    exchange(cells[1], alias);
    int&& temporary = a + 1;
    temporary++;
    return cells[0] * 3 + cells[1] * 5 + cells[2] * 7 + first(a * 2) + temporary;
}
}

namespace range_for_and_bindings {
struct Pair { int first; float second; };
DEVICE Pair make(int a) { return {a + 1, a * 0.5f}; }
DEVICE float result(int a, short b) {
    int cells[4] = {a & 255, b, 3, 4};
    float total = 0;
    for (int& cell : cells) {
        cell += 1;
    }
    for (const auto cell : cells) {
        total += cell;
    }
    auto [whole, half] = make(b);
    return total + whole - half;
}
}
