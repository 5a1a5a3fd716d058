// Objects whose destructors do something. Every namespace has a function `result`, which the host's compiler and refsim
// run; the order in which lives end shows in a number.

namespace guards {
struct Guard {
    unsigned* log;
    unsigned mark;
    DEVICE Guard(unsigned* log, unsigned mark) : log(log), mark(mark) { *log = *log * 7 + mark; }
    DEVICE ~Guard() { *log = *log * 13 ^ mark; }
    DEVICE unsigned read() const { return *log + mark; }
};
DEVICE unsigned early(unsigned* log, unsigned a) {
    Guard outer(log, 1);
    if (a & 1) return *log;
    Guard second(log, 2);
    for (unsigned i = 0; i < (a & 7); ++i) {
        Guard inner(log, i + 3);
        if (i == 2 && (a & 8)) continue;
        if (i == 4) break;
        if (i == 3 && (a & 16)) return *log ^ second.read();
        Guard late(log, 50 + i);
    }
    return *log + outer.read();
}
DEVICE unsigned result(unsigned a, unsigned b) {
    unsigned log = b;
    unsigned value = early(&log, a);
    {
        Guard g(&log, 9);
        value += g.read();
    }
    if (Guard g(&log, 11); a & 2) {
        value ^= g.read();
    } else {
        value -= log;
    }
    int rounds = 0;
    do {
        Guard g(&log, 17);
        if (++rounds > (int)(b & 3)) break;
    } while (rounds < 3);
    switch (b & 3) {
        case 0: {
            Guard g(&log, 21);
            value += 1;
            break;
        }
        case 1: {
            Guard g(&log, 22);
            value += g.read();
        }
        default: value *= 3;
    }
    return value ^ log;
}
}

namespace members_and_bases {
struct Trace {
    unsigned& log;
    unsigned mark;
    DEVICE Trace(unsigned& log, unsigned mark) : log(log), mark(mark) { log = log * 3 + mark; }
    DEVICE Trace(const Trace& o) : log(o.log), mark(o.mark + 100) { log = log * 5 + mark; }
    DEVICE ~Trace() { log = log * 11 + mark; }
};
struct Whole : Trace {
    Trace first;
    int plain = 3;
    Trace second;
    DEVICE Whole(unsigned& log) : Trace(log, 1), first(log, 2), second(log, 3) {}
    DEVICE ~Whole() { first.log ^= 0x1234; }
};
struct Holder {
    Trace parts[3];
};
DEVICE unsigned by_value(Trace t, unsigned x) { return t.log + x * t.mark; }
DEVICE unsigned result(unsigned a) {
    unsigned log = a;
    {
        Whole w(log);
        log += w.plain;
        Whole copy = w;
        Holder holder{{Trace(log, 4), Trace(log, 5), {log, 6}}};
        log -= holder.parts[1].mark;
    }
    unsigned r = by_value(Trace(log, 7), 2);
    Trace named(log, 8);
    r ^= by_value(named, 3);
    return r + log * 3;
}
}

namespace temporaries {
struct Temp {
    unsigned* log;
    DEVICE explicit Temp(unsigned* log) : log(log) { *log += 1; }
    DEVICE ~Temp() { *log = *log * 2 + 1; }
    DEVICE unsigned value() const { return *log * 5; }
    DEVICE Temp& self() { return *this; }
};
DEVICE Temp make(unsigned* log, unsigned k) {
    Temp t(log);
    *t.log ^= k;
    return t;
}
DEVICE Temp direct(unsigned* log) { return Temp(log); }
DEVICE unsigned result(unsigned a, unsigned b) {
    unsigned log = a;
    unsigned r = Temp(&log).value() + 1;
    r += make(&log, b).self().value() ^ log;
    Temp kept = make(&log, 3);
    const Temp& extended = direct(&log);
    r = r * 31 + extended.value();
    Temp{&log};
    direct(&log);
    make(&log, r & 15), r += log;
    int rounds = 0;
    while (Temp(&log).value() & 64) {
        r += log;
        if (++rounds > 3) break;
    }
    auto f = [&, t = Temp(&log)](unsigned x) { return t.value() + x; };
    return r + f(log) + log;
}
}

namespace copies_are_elided {
struct Counted {
    int copies = 0;
    int value = 0;
    DEVICE Counted() {}
    DEVICE Counted(const Counted& o) : copies(o.copies + 1), value(o.value) {}
};
DEVICE Counted named(int a) {
    Counted c;
    c.value = a;
    if (a & 1) {
        c.value *= 3;
        return c;
    }
    c.value += 7;
    return c;
}
DEVICE Counted parameter(Counted c) { return c; }
DEVICE int result(int a) {
    Counted c = named(a);
    Counted d = c;
    Counted e = parameter(d);
    Counted f = parameter(named(a + 1));
    return c.value + 1000 * c.copies + 10000 * d.copies + 100000 * e.copies + 1000000 * f.copies + f.value;
}
}
