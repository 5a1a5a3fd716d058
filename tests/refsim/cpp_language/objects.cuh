// Structures, pointers and memory. Every namespace has a function `result`, which the host's compiler and refsim run.

namespace methods_and_constructors {
struct Counter {
    static constexpr int STEP = 3;
    int value = 100;
    int calls{0};
    DEVICE Counter() {}
    DEVICE explicit Counter(int start) : value(start) { calls = 1; }
    DEVICE Counter(int start, int calls) : value(start), calls(calls) {}
    DEVICE int next() {
        calls++;
        return value += STEP;
    }
    DEVICE int peek() const { return this->value; }
    DEVICE static int twice(int x) { return 2 * x * STEP; }
    DEVICE Counter& add(int x) {
        value += x;
        return *this;
    }
};
DEVICE int result(int a, int b) {
    Counter first, second(a), third{a, b & 7};
    Counter copy = second;
    copy.next();
    first = third;
    first.add(1).add(2).next();
    return first.peek() + 3 * second.next() + 5 * copy.peek() + 7 * copy.calls + first.calls + Counter::twice(b) +
           Counter(b).next();
}
}

namespace operators {
struct Vector {
    int x, y;
    DEVICE Vector operator+(const Vector& o) const { return {x + o.x, y + o.y}; }
    DEVICE Vector operator-() const { return {-x, -y}; }
    DEVICE Vector& operator+=(int s) {
        x += s;
        y += s;
        return *this;
    }
    DEVICE bool operator==(const Vector& o) const { return x == o.x && y == o.y; }
    DEVICE int operator[](int i) const { return i == 0 ? x : y; }
    DEVICE int operator()(int a, int b) const { return a * x + b * y; }
    DEVICE Vector& operator++() {
        ++x;
        return *this;
    }
    DEVICE Vector operator++(int) {
        Vector old = *this;
        ++x;
        return old;
    }
    DEVICE operator bool() const { return x > y; }
};
DEVICE Vector operator*(int s, Vector v) { return {s * v.x, s * v.y}; }
DEVICE int result(int a, int b) {
    Vector v{a, b}, w = {b & 15, 2};
    Vector sum = v + 3 * w + -v;
    sum += 4;
    const Vector old = sum++;
    ++sum;
    return sum[0] + 3 * sum[1] + v(2, 3) + (old == sum) + 10 * (old == old) + (v ? 100 : 200) + old.x;
}
}

namespace inheritance_and_nesting {
struct Base {
    int id;
    DEVICE explicit Base(int id) : id(id) {}
    DEVICE int describe() const { return id * 2; }
};
struct Derived : Base {
    struct Part {
        short low;
        signed char high;
    } parts[2];
    DEVICE Derived(int id, short low) : Base(id + 1), parts{{low, 1}, {2, (signed char)low}} {}
    DEVICE int describe() const { return Base::describe() + parts[0].low + parts[1].high; }
};
template <typename Self> struct Twice {
    DEVICE int twice() const { return 2 * static_cast<const Self*>(this)->once(); }
};
struct Once : Twice<Once> {
    int value;
    DEVICE int once() const { return value + 1; }
};
DEVICE int result(int a, short b) {
    Derived derived(a, b);
    const Base& base = derived;
    derived.parts[1].low -= 7;
    Once once;
    once.value = b;
    return derived.describe() + 3 * base.describe() + derived.parts[1].low + once.twice();
}
}

namespace layout {
struct Mixed {
    char a;
    double b;
    short c[3];
    struct {
        int d;
        char e;
    } inner;
    bool f;
};
struct alignas(16) Wide {
    float x[3];
};
DEVICE long long result(int a) {
    Mixed mixed[2] = {};
    const char* start = reinterpret_cast<const char*>(&mixed[0]);
    return sizeof(Mixed) + 100 * alignof(Mixed) + 10000 * (reinterpret_cast<const char*>(&mixed[1].inner.e) - start) +
           1000000LL * (reinterpret_cast<const char*>(&mixed[0].c[a & 1]) - start) + 100000000LL * sizeof(Wide) +
           10000000000LL * alignof(Wide);
}
}

namespace aggregates {
struct Point {
    int x, y = 5, z;
};
struct Line {
    Point from, to;
    int weight[3];
};
DEVICE Line make(int a, int b) { return {{a, b, 1}, {b}, {7, a}}; }
DEVICE int result(int a, int b) {
    Line lines[2] = {make(a, b), {{1, 2}, {3, 4, 5}, {}}};
    lines[1].to = lines[0].from;
    lines[1].weight[2] = lines[0].weight[1] + 1;
    Line copy = lines[a & 1];
    int grid[2][3] = {{1, 2}, {a, b, 3}};
    int total = 0;
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 3; j++) {
            total = total * 3 + grid[i][j] + lines[i].weight[j];
        }
    }
    return total + copy.from.x + copy.to.y * 7 + copy.to.z + copy.weight[0];
}
}

namespace pointer_arithmetic {
DEVICE int sum(const int* begin, const int* end) {
    int total = 0;
    for (const int* p = begin; p != end; ++p) {
        total += *p;
    }
    return total;
}
DEVICE int result(int a, int b) {
    int cells[8];
    int* p = cells;
    while (p < cells + 8) {
        *p++ = a + int(p - cells) * 3;
    }
    int* middle = cells + 4;
    middle[-1] = b;
    *(middle + 2) -= 5;
    --p;
    *p += 11;
    p -= 2;
    const long long distance = p - cells;
    return sum(cells, middle) + 3 * sum(middle, cells + 8) + *p + int(distance) + (p > middle) + 2 * (middle == &cells[4]);
}
}

namespace unions_and_bit_casts {
union Bits {
    float number;
    unsigned word;
    unsigned char bytes[4];
};
DEVICE unsigned result(float a, unsigned b) {
    Bits bits;
    bits.number = a;
    const unsigned sign = bits.word >> 31;
    bits.word ^= b & 0xFF;
    unsigned copy;
    memcpy(&copy, &bits.number, sizeof copy);
    unsigned short halves[2];
    memcpy(halves, &copy, 4);
    return copy + bits.bytes[1] * 3 + halves[1] + sign;
}
}

namespace bytes_of_a_word {
DEVICE unsigned result(unsigned a, unsigned short b) {
    unsigned words[2] = {a, 0};
    unsigned char* bytes = reinterpret_cast<unsigned char*>(words);
    bytes[4] = bytes[3];
    bytes[5] = b & 0xFF;
    reinterpret_cast<unsigned short*>(words)[3] = b;
    return words[0] * 3 + words[1] + bytes[b & 7];
}
}

namespace multi_dimensional_arrays {
DEVICE int trace(const int (&matrix)[3][3]) { return matrix[0][0] + matrix[1][1] + matrix[2][2]; }
DEVICE int row_sum(int (*row)[3]) { return (*row)[0] + (*row)[1] + (*row)[2]; }
DEVICE int result(int a, int b) {
    int cube[2][3][3];
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 3; j++) {
            for (int k = 0; k < 3; k++) {
                cube[i][j][k] = (i + 1) * a + j * b + k;
            }
        }
    }
    int* flat = &cube[0][0][0];
    flat[10] += 5;
    return trace(cube[1]) + 3 * row_sum(&cube[0][1]) + flat[(unsigned)b % 18] + int(sizeof(cube) / sizeof(cube[0]));
}
}

namespace static_tables {
struct Table {
    static constexpr float scale[3] = {0.5f, 2.0f, 8.0f};
};
DEVICE float result(float a, unsigned b) {
    static const int offsets[4] = {10, 20, 40, 80};
    return a * Table::scale[b % 3] + offsets[b % 4];
}
}
