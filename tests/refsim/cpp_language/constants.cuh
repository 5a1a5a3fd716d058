// Constants that the compiler computes by running functions.

namespace recursive_constant_functions {
constexpr int factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1); }
constexpr long long power(long long base, int exponent) { return exponent == 0 ? 1 : base * power(base, exponent - 1); }
DEVICE long long result(int a) {
    constexpr int product = factorial(5);
    constexpr long long cube = power(7, 3);
    return a * cube + product;
}
}
