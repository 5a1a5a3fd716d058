// Bit-fields. Every namespace has a function `result`, which the host's compiler and refsim run.

namespace fields_of_many_types {
enum Color : unsigned char { RED, GREEN, BLUE };
struct Packed {
    int a : 3;
    unsigned b : 5;
    signed char before;
    long long wide : 37;
    bool flag : 1;
    Color color : 2;
    unsigned short s : 11;
    unsigned full : 32;
    int straddling : 30;
    DEVICE int sum() const { return a + (int)b + (int)wide + flag * 3 + color * 5 + s + straddling; }
};
DEVICE int result(int a, int b) {
    Packed p = {a, (unsigned)b, 7, a * 123456789LL, b > 0, GREEN, 77, (unsigned)a, b};
    p.b += 3;
    p.a ^= b;
    ++p.s;
    p.straddling--;
    int old = p.a++;
    p.color = (Color)(a & 3);
    p.flag = a & 4;
    Packed copy = p;
    copy.wide >>= 2;
    int chained = copy.a = copy.b = b;
    return p.sum() + 3 * copy.sum() + old + chained + (int)sizeof(Packed) * 100 + p.before + (p.full == (unsigned)a);
}
}

namespace chosen_fields {
struct Two {
    int low : 4, high : 20;
};
DEVICE int result(int a, int b) {
    Two t = {a, b}, more[2] = {{1, 2}, {b, a}};
    int x = a & 1 ? t.low : t.high;
    int y = b & 1 ? more[a & 1].high : b;
    return x + 3 * y + (a > b ? t.low : x);
}
}

namespace fields_in_memory {
struct Cell {
    unsigned key : 12;
    unsigned next : 4;
    int value : 16;
    DEVICE Cell() : key(1), next(2), value(-3) {}
};
union Word {
    unsigned all;
    struct {
        unsigned mantissa : 23;
        unsigned exponent : 8;
        unsigned sign : 1;
    } parts;
};
DEVICE unsigned result(unsigned a, float x) {
    Cell cells[4];
    for (unsigned i = 0; i < 4; ++i) {
        Cell& c = cells[(a + i) & 3];
        c.key = a >> i;
        c.next += i;
        c.value *= (int)a;
    }
    Cell* p = &cells[a & 3];
    Word w;
    memcpy(&w, &x, 4);
    w.parts.sign ^= 1;
    w.parts.exponent &= 0x7f;
    unsigned r = w.all ^ w.parts.mantissa;
    for (int i = 0; i < 4; ++i) r = r * 31 + cells[i].key + cells[i].next * 5 + (unsigned)cells[i].value;
    return r + p->next;
}
}
