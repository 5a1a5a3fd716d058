// Calls whose target is found at run time: virtual functions and function pointers. Every namespace has a function
// `result`, which the host's compiler and refsim run.

namespace virtual_functions {
struct Shape {
    int id;
    DEVICE Shape(int id) : id(id) {}
    DEVICE virtual int area(int k) const { return id * k; }
    DEVICE virtual void grow(int by) { id += by; }
    DEVICE int twice(int k) const { return 2 * area(k); }
};
struct Square : Shape {
    int side;
    DEVICE Square(int id, int side) : Shape(id), side(side) {}
    DEVICE int area(int k) const override { return side * side + k; }
};
struct Tower final : Square {
    short floors;
    DEVICE Tower(int id, int side, short floors) : Square(id, side), floors(floors) {}
    DEVICE int area(int k) const override { return Square::area(k) * floors; }
    DEVICE void grow(int by) override {
        Shape::grow(by);
        floors += (short)by;
    }
};
DEVICE int of(const Shape& s, int k) { return s.area(k); }
DEVICE int result(int a, int b) {
    Shape shape(a);
    Square square(b, a & 31);
    Tower tower(a ^ b, b & 31, 3);
    Shape* all[3] = {&shape, &square, &tower};
    int r = 0;
    for (int i = 0; i < 3; ++i) {
        all[(a + i) & 1]->grow(i + b);
        r = r * 31 + all[i]->twice(b & 7);
    }
    all[(unsigned)a % 3]->grow(5);
    Shape sliced = tower;
    r += of(tower, 2) + of(*all[(unsigned)b % 3], 1) * 3 + sliced.twice(3) + tower.floors;
    tower.grow(1);
    return r +
           tower.area(1) + square.id + shape.id;
}
}

namespace abstract_interface {
struct Op {
    DEVICE virtual unsigned apply(unsigned x) const = 0;
};
struct Add : Op {
    unsigned k;
    DEVICE explicit Add(unsigned k) : k(k) {}
    DEVICE unsigned apply(unsigned x) const override { return x + k; }
};
struct Twist : Op {
    DEVICE unsigned apply(unsigned x) const override { return (x << 7) | (x >> 25); }
};
template <unsigned N> struct Repeat : Op {
    const Op* inner;
    DEVICE explicit Repeat(const Op* inner) : inner(inner) {}
    DEVICE unsigned apply(unsigned x) const override {
        for (unsigned i = 0; i < N; ++i) x = inner->apply(x);
        return x;
    }
};
DEVICE unsigned result(unsigned a, unsigned b) {
    Add add(b);
    Twist twist;
    const Op* simple[2] = {&add, &twist};
    Repeat<3> three(simple[a & 1]);
    unsigned r = three.apply(a);
    if (b & 1) {
        const Op& chosen = b & 2 ? static_cast<const Op&>(add) : twist;
        r ^= chosen.apply(r);
    }
    return r;
}
}

namespace virtual_in_constructors {
struct Base {
    int seen;
    DEVICE Base() { seen = kind(); }
    DEVICE virtual int kind() const { return 1; }
    DEVICE virtual ~Base() {}
};
struct Derived : Base {
    int later;
    DEVICE Derived() { later = kind() * 10 + seen; }
    DEVICE int kind() const override { return 2; }
};
DEVICE int result(int a) {
    Derived d;
    Base b;
    Base& r = a & 1 ? static_cast<Base&>(d) : b;
    return d.seen + 10 * d.later + 1000 * r.kind() + a;
}
}

namespace two_bases {
struct Left {
    int l;
    DEVICE virtual int left(int x) { return l + x; }
    DEVICE virtual int both(int x) { return l - x; }
};
struct Right {
    long long r;
    DEVICE virtual int right(int x) { return (int)r * x; }
    DEVICE virtual int both(int x) { return (int)r ^ x; }
};
struct Plain {
    char c;
};
struct Joined : Plain, Left, Right {
    int own;
    DEVICE int right(int x) override { return own + x + l; }
    DEVICE int both(int x) override { return own * x + (int)r + c; }
};
DEVICE int result(int a, int b) {
    Joined j;
    j.l = a;
    j.r = b;
    j.own = a ^ b;
    j.c = (char)a;
    Right right;
    right.r = 3;
    Left* left = &j;
    Right* rights[2] = {&j, &right};
    return left->left(1) + 3 * left->both(b) + 5 * rights[a & 1]->right(7) + 7 * rights[b & 1]->both(a) +
           (int)sizeof(Joined) * 1000;
}
}

namespace function_pointers {
using Op = int (*)(int, int);
DEVICE int add(int a, int b) { return a + b; }
DEVICE int sub(int a, int b) { return a - b; }
template <int K> DEVICE int scaled(int a, int b) { return a * K ^ b; }
DEVICE int unused(int a, int b) { return a / b; }
DEVICE int apply(Op op, int a, int b) { return op ? op(a, b) : -1; }
template <int (*F)(int, int)> DEVICE int fixed(int a, int b) { return F(b, a); }
DEVICE int through(int (&f)(int, int), int a) { return f(a, 2); }
DEVICE int result(int a, int b) {
    Op known = add;
    Op table[4] = {add, &sub, scaled<3>, nullptr};
    int r = known(a, b) + apply(table[a & 3], a, b) * 3;
    Op chosen = a > b ? sub : scaled<5>;
    for (int i = 0; i < (b & 3); ++i) {
        r = chosen(r, i);
        chosen = i & 1 ? add : chosen;
    }
    if (chosen == add) r += 1000;
    return r + fixed<sub>(a, b) + through(scaled<3>, b) + (*known)(1, 2);
}
}

namespace lambdas_as_function_pointers {
DEVICE int apply(int (*f)(int), int x) { return f(x); }
struct Entry {
    int key;
    int (*action)(int);
};
DEVICE int triple(int x) { return 3 * x; }
DEVICE int result(int a, int b) {
    Entry entries[3] = {{1, triple}, {2, [](int x) { return x - 100; }}, {3, +[](int x) { return ~x; }}};
    auto kept = [](int x) { return x * x; };
    int r = apply(kept, a & 255);
    for (int i = 0; i < 3; ++i) {
        if ((b & 3) >= entries[i].key) r = entries[i].action(r);
    }
    return r;
}
}
