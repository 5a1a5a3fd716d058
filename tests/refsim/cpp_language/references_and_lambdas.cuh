// References that objects keep, and closures. Every namespace has a function `result`, which the host's compiler and
// refsim run.

namespace reference_members {
struct Pair {
    int& first;
    int& second;
    DEVICE Pair(int& a, int& b) : first(a), second(b) {}
    DEVICE void swap() {
        int t = first;
        first = second;
        second = t;
    }
    DEVICE int& larger() const { return first < second ? second : first; }
};
DEVICE Pair ordered(int& a, int& b) {
    if (a < b) return Pair(a, b);
    return Pair(b, a);
}
DEVICE int result(int a, int b) {
    int x = a, y = b & 1023;
    Pair p(x, y);
    p.swap();
    p.larger() += 3;
    Pair q = ordered(x, y);
    q.first -= 5;
    const Pair copy = q;
    copy.second ^= 1;
    return x * 3 + y * 7 + (&copy.first == &x);
}
}

namespace references_in_memory {
struct Slot {
    int& target;
    int weight;
};
DEVICE int result(int a, int b) {
    int values[4] = {a, b, a ^ b, 1};
    Slot slots[3] = {{values[a & 3], 2}, {values[b & 3], 3}, {values[3], 5}};
    for (int i = 0; i < 3; ++i) slots[(a + i) & 1].target += slots[i].weight;
    Slot* last = &slots[b & 1];
    last->target -= 7;
    Slot copy = slots[(a ^ b) & 1];
    copy.target ^= 0x55;
    return values[0] + 3 * values[1] + 5 * values[2] + 7 * values[3];
}
}

namespace reference_chosen_at_run_time {
struct Ref {
    int& r;
};
DEVICE Ref choose(bool c, int& a, int& b) { return c ? Ref{a} : Ref{b}; }
DEVICE int result(int a, int b) {
    int x = a, y = b;
    Ref ref = a > b ? Ref{x} : Ref{y};
    ref.r += 10;
    choose(a & 1, x, y).r *= 3;
    return x ^ (y << 1);
}
}

namespace pointers_in_structures {
struct Node {
    int value;
    Node* next;
};
struct Span {
    int* data;
    int size;
    DEVICE int& operator[](int i) const { return data[i]; }
    DEVICE int* begin() const { return data; }
    DEVICE int* end() const { return data + size; }
};
DEVICE int sum(Span s) {
    int total = 0;
    for (int v : s) total += v;
    return total;
}
DEVICE int result(int a, int b) {
    Node nodes[4];
    for (int i = 0; i < 4; ++i) {
        nodes[i].value = a + i * b;
        nodes[i].next = i < 3 ? &nodes[(i + 1 + (a & 1)) & 3] : nullptr;
    }
    int total = 0, steps = 0;
    for (Node* n = &nodes[b & 3]; n != nullptr && steps < 6; n = n->next, ++steps) total = total * 3 + n->value;
    int store[6] = {1, 2, 3, a, b, 6};
    Span spans[2] = {{store, 3}, {store + 2, 4}};
    spans[a & 1][1] += 9;
    Span copy = spans[b & 1];
    copy[0]--;
    return total + sum(copy) * 5 + sum({store + 1, 2}) + store[3];
}
}

namespace array_captured_by_copy {
DEVICE int result(int a, int b) {
    int table[5] = {1, a, b, 4, 5};
    int grid[2][3] = {{1, 2, 3}, {a, b, 6}};
    auto look = [=](int i) { return table[i % 5] * 3 + grid[i & 1][i % 3]; };
    table[1] = 100;
    grid[1][0] = -1;
    return look(a & 7) + 5 * look(b & 15) + [table](int k) { return table[k]; }(1);
}
}

namespace mutable_lambda {
DEVICE int result(int a, int b) {
    int count = a & 7;
    auto next = [count, step = 2]() mutable {
        count += step;
        step *= 2;
        return count;
    };
    int first = next();
    auto copy = next;
    for (int i = 0; i < (b & 3); ++i) first += next();
    return first * 31 + copy() * 7 + count + next();
}
}

namespace nested_lambdas {
DEVICE int result(int a, int b) {
    int total = 0;
    auto outer = [&total, b](int x) {
        int local = x + b;
        auto inner = [=, &total](int y) mutable {
            auto deepest = [&] { local += y; total ^= local; return local * b; };
            return deepest() + deepest();
        };
        return inner(x) + inner(2);
    };
    return outer(a) + 3 * outer(b & 3) + total;
}
}

namespace generic_lambdas {
template <typename F, typename... T> DEVICE int apply(F f, T... x) { return f(x...); }
DEVICE int result(int a, int b) {
    auto add = [](auto x, auto y) { return x + y; };
    auto size = [](auto... x) { return (int)(sizeof(x) + ... + 0); };
    auto all = [&](auto&&... x) { return (0 + ... + (int)x) * a; };
    short s = (short)b;
    return add(a, s) + (int)add(2.5f, (double)(b & 255)) + apply(size, 1, 2.0, 'c') + apply(all, a, s, (signed char)b);
}
}

namespace lambda_as_template_argument {
template <typename Op> struct Fold {
    Op op;
    int start;
    DEVICE int operator()(const int* x, int n) const {
        int r = start;
        for (int i = 0; i < n; ++i) r = op(r, x[i]);
        return r;
    }
};
template <typename Op> DEVICE Fold<Op> fold(Op op, int start) { return {op, start}; }
template <class F, class G> DEVICE auto compose(F f, G g) {
    return [=](auto... x) { return g(f(x...)); };
}
DEVICE int result(int a, int b) {
    int data[4] = {a, b, a - b, 3};
    int scale = b & 7;
    auto f = fold([scale](int x, int y) { return x * scale + y; }, 1);
    auto g = fold([&](int x, int y) { data[0]++; return x ^ y; }, a);
    auto h = compose([](int x, int y) { return x - y; }, [b](int x) { return x * x + b; });
    return f(data, 4) + 3 * g(data + 1, 3) + data[0] + h(a & 63, 5);
}
}

namespace lambda_captures_this {
struct Machine {
    int state;
    int table[3];
    DEVICE int run(int x) {
        auto step = [this](int k) { return state += table[k % 3]; };
        auto copy = [*this](int k) { return state + table[k % 3]; };
        return step(x & 7) + step(1) * 2 + copy(2) * 5;
    }
};
DEVICE int result(int a, int b) {
    Machine m{a, {1, b, 3}};
    return m.run(b) + m.state;
}
}

namespace lambdas_in_objects {
template <class F> struct Guarded {
    F f;
    int calls = 0;
    DEVICE int operator()(int x) { return ++calls, f(x) + calls; }
};
template <class F> Guarded(F) -> Guarded<F>;
DEVICE int result(int a, int b) {
    int seen = 0;
    Guarded g{[&, a](int x) { seen += x; return x * a; }};
    int r = 0;
    for (int i = 0; i < (b & 3); ++i) r += g(i + b);
    return r + seen * 3 + g.calls;
}
}
