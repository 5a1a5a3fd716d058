// Control flow. Every namespace has a function `result`, which the host's compiler and refsim both run.

namespace switch_with_fallthrough {
DEVICE int result(int a, int b) {
    int total = b & 1023;
    switch (((a % 7) + 7) % 7) {
        case 0:
            total += 1;
        case 1:
            total *= 3;
            break;
        default:
            total -= 100;
        case 2:
        case 3: {
            const int local = total / 2;
            if (local > 100) {
                break;
            }
            total += local;
        }
        case 5:
            total ^= 0x55;
    }
    return total;
}
}

namespace switch_in_a_loop {
DEVICE int result(int a, unsigned b) {
    int total = 0;
    for (int i = 0; i < 12; i++) {
        switch ((b >> i) & 3) {
            case 0: continue;
            case 1: total += a & 15; break;
            case 2:
                for (int k = 0; k < 3; k++) {
                    if (k == (a & 3)) {
                        break;
                    }
                    total += k + 10;
                }
                break;
            case 3:
                if (total > 60) {
                    return -total;
                }
        }
        total++;
    }
    return total;
}
}

namespace do_while {
DEVICE int result(unsigned a, unsigned char b) {
    int steps = 0;
    unsigned long long value = (a & 0xFFFF) + 1;
    do {
        steps++;
        if (value % 2) {
            value = 3 * value + 1;
            continue;
        }
        value /= 2;
    } while (value != 1 && steps < b);
    return steps * 7 + int(value & 3);
}
}

namespace loops {
DEVICE int result(int a, short b) {
    int total = 0;
#pragma unroll
    for (int i = 0, j = 10; i < j; i++, j -= 2) {
        total += i * j + (a & 7);
    }
#pragma unroll 4
    for (int i = b & 31; i; i >>= 1) {
        total = total * 2 + (i & 1);
    }
    int n = a & 63;
    while (n-- > 0) {
        if (n % 3 == 0) {
            continue;
        }
        if (total > 5000) {
            break;
        }
        for (;;) {
            total += 2 * n;
            if (total & 1) {
                break;
            }
            total++;
        }
    }
    return total + n;
}
}

namespace short_circuit {
DEVICE bool bump(int& counter, bool value) {
    counter++;
    return value;
}
DEVICE int result(int a, int b) {
    int counter = 0;
    int flags = (a > 0 && bump(counter, b > 0)) + 2 * (a > b || bump(counter, false));
    flags += bump(counter, a & 1) ? (bump(counter, b & 1) ? 16 : 32) : 64;
    const int* nothing = nullptr;
    if (nothing != nullptr && *nothing == a) {
        flags += 1000;
    }
    if (const int low = b & 3; low != 0) {
        flags += low * 128;
    }
    return flags + counter * 1024;
}
}

namespace order_of_evaluation {
DEVICE int next(int& state) { return state = state * 5 + 1; }
DEVICE int result(int a, int b) {
    int state = a & 255, cells[4] = {1, 2, 3, 4};
    int i = 0;
    cells[i++] += next(state);
    cells[i++] = cells[i] + b;
    int total = next(state);
    total = total * 3 + next(state);
    total += (i++, ++i);
    total = (a, b, total) + i--;
    cells[2] <<= (b & 3);
    return total + cells[0] + cells[1] * 2 + cells[2] * 3 + (b ? state : -state);
}
}

namespace conditional_operator {
DEVICE double result(int a, unsigned b, float c) {
    int x = 1, y = 2;
    (a > 0 ? x : y) = 10;
    const double mixed = a > 5 ? a : b > 5 ? c : 0.25;
    return mixed + (a < 0 ? a : b) + x * 3 + y;
}
}

namespace shadowed_names {
DEVICE int result(int a, int b) {
    int x = a;
    {
        int x = b;
        x += 5;
        for (int a = 0; a < 3; a++) {
            int b = x + a;
            x = b * 2;
        }
        b = x;
    }
    return x ^ b;
}
}
