// Arithmetic and conversions. Every namespace has a function `result`, which the host's compiler and refsim both run.

namespace integer_promotions {
DEVICE int result(unsigned char a, signed char b, unsigned short c, short d) {
    return (a + b) * 3 + (a << 4) + (~a >> 1) + (c * d >> 3) + (-c) + !d + (a - c < 0) + (+b);
}
}

namespace unsigned_wraps {
DEVICE unsigned long long result(unsigned a, unsigned b, unsigned char c) {
    unsigned short narrow = c - b;
    unsigned product = a * b;
    a -= 1;
    c--;
    return product + (a - b) * 3ull + narrow + c + (0u - b) / 3 + (unsigned char)(c + 255);
}
}

namespace signed_wraps_as_on_the_device {
DEVICE int result(int a, int b, short c) {
    c += a;
    return a * b + (a - b) * 31 + c + (short)(a * c);
}
}

namespace narrowing {
DEVICE long long result(long long a, int b, double c) {
    const signed char byte = a;
    const unsigned short word = b;
    const int whole = a;
    const bool flag = b & 6;
    const float single = c;
    return byte + word * 2LL + whole + flag * 5 + (signed char)b + (unsigned char)word + (single > c);
}
}

namespace shifts {
DEVICE long long result(int a, unsigned b, long long c, unsigned char d) {
    const int by = d & 31;
    return (a >> by) + (long long)(b >> by) + (c >> (d & 63)) + (long long)((unsigned long long)c >> (d & 63)) +
           (b << by) + ((1ll << (d & 61)) | (d << 3)) + (a < 0 ? 0 : (a & 0xFFFF) << (by & 15));
}
}

namespace division_and_remainder {
DEVICE long long result(int a, int b, unsigned c, long long d) {
    if (b == 0 || c == 0 || (b == -1)) {
        return 0;
    }
    return a / b * 3LL + a % b + (unsigned)a / c + (unsigned)a % c + d / b + d % b * 5 + (short)a / 7 + (signed char)a % 5;
}
}

namespace mixed_comparisons {
DEVICE int result(int a, unsigned b, short c, long long d, float e) {
    return (a < b) + 2 * (c < b) + 4 * (a < d) + 8 * (b == a) + 16 * (c != a) + 32 * (e >= a) + 64 * (b > c) +
           128 * (a <= e) + 256 * (true > (a > 0));
}
}

namespace compound_assignment {
DEVICE int result(int a, float b, unsigned char c) {
    int i = a & 1023;
    i *= 1.5f;
    i += 0.75;
    unsigned char u = c;
    u += 200;
    u >>= 1;
    u ^= 0x1FF;
    short s = c;
    s *= 300;
    s -= i;
    float f = 1;
    f /= 3;
    f += i;
    return i + u * 3 + s + (int)f + (u |= 3);
}
}

namespace bits {
DEVICE unsigned result(unsigned a, int b, unsigned short c) {
    return (a & b) ^ (a | ~c) ^ (b ^ c) ^ (~b & 0xF0F0) ^ (!a << 7) ^ (a >> 16 | a << 16);
}
}

namespace booleans {
DEVICE int result(int a, float b, unsigned c) {
    bool x = a, y = b, z = c > 3;
    bool w = x ^ y;
    w |= z;
    return x + y * 2 + z * 4 + w * 8 + (!x || !y) * 16 + (bool)0.5f * 32 + -z;
}
}

namespace characters {
DEVICE int result(unsigned a) {
    const char digits[] = "0123456789abcdef";
    const char c = digits[a & 15];
    return c >= 'a' ? c - 'a' + 10 : c - '0' + '\n' + '\x41' * (c == '7') + int(sizeof digits);
}
}

namespace literals {
DEVICE double result(int a) {
    return a * 0x1F + 0b101 + 1'000'000 + 017 + 3u + 2.5e-3 + 1.5f + 0x1.8p3 + (a < 0xFFFFFFFF) + 10000000000 + 'A';
}
}

namespace float_arithmetic {
DEVICE float result(float a, float b, float c) {
    const float x = a * b + c;
    return (x - a / (b + 0.1f)) * 0.3f + -c;
}
}

namespace float_and_double_mixed {
DEVICE double result(float a, double b, int c) {
    float x = a * 0.1;
    float y = a * 0.1f;
    x += b;
    return x - y + (a + c) * b + c / 3 + c / 3.0f;
}
}

namespace integer_to_float {
DEVICE double result(int a, unsigned b, long long c, unsigned long long d) {
    return (float)a + (double)(float)b + (float)c * 0.5 + (double)d + (float)d;
}
}

namespace float_to_integer {
DEVICE long long result(float a, double b) {
    const float x = a > 1e6f || a < -1e6f || a != a ? 1.75f : a;
    const double y = b > 1e9 || b < -1e9 || b != b ? -2.5 : b;
    return (int)x + (long long)y * 3 + (unsigned char)(int)x + (short)(int)y + static_cast<unsigned>(x < 0 ? -x : x) + int(y < 0);
}
}

namespace float_comparisons {
DEVICE int result(float a, double b) {
    const float nan = (a - a) / 0.0f * 0.0f;
    return (a < b) + 2 * (a == a) + 4 * (nan == nan) + 8 * (nan < a) + 16 * !(nan >= a) + 32 * (a != b) + 64 * (0.0f == -0.0f) +
           128 * (nan ? 1 : 0);
}
}

namespace sixty_four_bits {
DEVICE unsigned long long result(long long a, unsigned long long b, int c) {
    return a * 6364136223846793005LL + (b ^ b >> 33) * 0xFF51AFD7ED558CCDull + c * a + (b > a) + (a < c);
}
}

namespace float_increments {
DEVICE float result(float a, double b) {
    float x = a;
    x++;
    --x;
    double y = b;
    y -= 1;
    return x++ + --x + float(y++);
}
}
