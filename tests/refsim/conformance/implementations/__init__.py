"""NumPy implementations of each operator: honest ones, which must pass, and wrong ones, which must not."""

from implementations import attention, matmul, rmsnorm, rope, softmax, sum

MODULES = {
    "attention": attention,
    "matmul": matmul,
    "rmsnorm": rmsnorm,
    "rope": rope,
    "softmax": softmax,
    "sum": sum,
}
"""Operator to module; each has HONEST and WRONG, name to function, and UNSEEN, the (name, dtype) of harmless wrongs."""
