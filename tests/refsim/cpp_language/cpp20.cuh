// What C++17 and C++20 brought. Every namespace has a function `result`, which the host's compiler and refsim run.

namespace concepts_and_requires {
template <typename T> concept Scalable = requires(T x) {
    x * 2;
    requires sizeof(T) <= 8;
};
template <typename T> concept HasScale = requires(const T& x) {
    { x.scale() };
};
struct Box {
    int v;
    DEVICE int scale() const { return v * 3; }
};
DEVICE int of(Scalable auto x) { return (int)(x * 2); }
template <HasScale T> DEVICE int of(const T& x) { return x.scale(); }
template <typename T> DEVICE int size(T)
    requires(sizeof(T) == 2)
{
    return 2;
}
template <typename T> DEVICE int size(T) { return 100; }
DEVICE int result(int a, short b) { return of(a) + of(Box{b}) + of(1.5f) + size(b) + size(a); }
}

namespace evaluated_by_the_compiler {
DEVICE consteval int cube(int x) { return x * x * x; }
DEVICE constexpr unsigned operator""_k(unsigned long long x) { return (unsigned)x * 1000; }
DEVICE constexpr double operator""_half(long double x) { return (double)x / 2; }
struct Table {
    unsigned v[16];
};
DEVICE constexpr Table table() {
    Table t{};
    for (unsigned i = 0; i < 16; ++i) {
        unsigned c = i;
        for (int k = 0; k < 3; ++k) c = c & 1 ? (c >> 1) ^ 0xEDB88320u : c >> 1;
        t.v[i] = c;
    }
    return t;
}
DEVICE unsigned result(unsigned a) {
    constexpr Table t = table();
    static constexpr int primes[] = {2, 3, 5, 7, 11};
    constexpr int count = sizeof(primes) / sizeof(primes[0]);
    return t.v[a & 15] * cube(3) + 2_k + (unsigned)(3.0_half * 8) + primes[a % count];
}
}

namespace structured_bindings_and_initialisers {
struct Point {
    int x, y = 5;
    short z;
};
DEVICE Point make(int a) { return {.x = a, .z = 3}; }
template <typename T> struct Range {
    T lo, hi;
};
template <typename T> Range(T, T) -> Range<T>;
DEVICE int result(int a, int b) {
    auto [x, y, z] = make(a);
    int pair[2] = {a, b};
    auto& [first, second] = pair;
    first += y;
    const auto& [lo, hi] = Range{a, b};
    int total = 0;
    for (const auto& [p, q, r] : {make(1), make(b)}) total = total * 3 + p + q - r;
    if (auto [m, n] = Range{b, a}; m < n) total += m;
    for (int k = 0; int v : pair) total += v * ++k;
    return x + 3 * pair[0] + z + lo - hi * 7 + total + second;
}
}

namespace packs {
template <typename... T> DEVICE long long sum(T... x) { return (0LL + ... + (long long)x); }
template <int... I> struct Ints {};
template <int N, int... I> struct Make : Make<N - 1, N - 1, I...> {};
template <int... I> struct Make<0, I...> {
    using type = Ints<I...>;
};
template <int... I> DEVICE int dot(const int* x, Ints<I...>) { return ((x[I] * (I + 1)) + ... + 0); }
template <typename T> DEVICE int count(T) { return 1; }
template <typename T, typename... R> DEVICE int count(T, R... r) { return 1 + count(r...); }
template <typename... F> struct All : F... {
    using F::operator()...;
};
template <typename... F> All(F...) -> All<F...>;
DEVICE long long result(int a, unsigned b) {
    int data[4] = {a, (int)b, 3, a ^ (int)b};
    All all{[](int x) { return x + 1; }, [](float x) { return (int)(x * 4); }};
    return sum(a, b, (short)a, true) + dot(data, typename Make<4>::type{}) + count(1, 2.f, 'c') * 10 + all(a) + all(2.5f);
}
}

namespace enumerations_and_unions {
enum class Level : signed char { low = -1, mid, high = 100 };
struct Tagged {
    Level level;
    union {
        float f;
        unsigned u;
        struct {
            unsigned short low, high;
        };
    };
};
DEVICE unsigned result(float x, int a) {
    using enum Level;
    Tagged t{high};
    t.f = x;
    t.high ^= 0x8000;
    Level chosen = a > 0 ? low : mid;
    switch (chosen) {
        case low: t.u += 1; break;
        case mid: t.u ^= 5; break;
        case high: t.u = 0;
    }
    unsigned r = (a & 1 ? t.u : t.u)++;
    int p = 1, q = 2;
    (a & 2 ? p : q) = (r += 3, a);
    return r + t.low + (unsigned)(signed char)t.level + p * 3 + q;
}
}

namespace placement_new {
struct Item {
    int v;
    unsigned* log;
    DEVICE Item(int v, unsigned* log) : v(v), log(log) {}
    DEVICE ~Item() { *log = *log * 3 + (unsigned)v; }
};
DEVICE unsigned result(int a) {
    unsigned log = 1;
    alignas(Item) unsigned char space[2 * sizeof(Item)];
    Item* one = new (space) Item(a, &log);
    Item* two = new (space + sizeof(Item)) Item{a + 1, &log};
    one->v ^= two->v;
    two->~Item();
    one->~Item();
    one = new (space) Item(7, &log);
    return log + one->v;
}
}
