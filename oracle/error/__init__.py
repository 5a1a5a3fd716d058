"""Running error analysis behind plain NumPy code: `ErrorBounded` arrays carry value, guaranteed bound and sigma.

``exact`` lifts the inputs, the operator runs on them as on NumPy arrays, ``envelope`` reads the result::

    x = exact(np.float32([1.0, 2.0, 4.0]), NUMERICS["float32"])
    envelope(np.sum(x * x), "float32")     # value 21, bound 0: every order is exact

Rules exist for ``+ - * / ** abs negative square``, ``exp exp2 expm1 log log2 log1p sqrt tanh sin cos``,
``maximum minimum clip where``, comparisons, ``isfinite isnan isinf``, ``sum mean var max min prod cumsum argmax
argmin``, ``matmul dot einsum`` (one or two operands), ``reshape ravel transpose swapaxes moveaxis expand_dims squeeze
broadcast_to concatenate stack vstack hstack split take take_along_axis repeat tile tril triu pad flip roll
diff diagonal copy``, indexing and assignment, in-place operators, ``zeros_like empty_like ones_like full_like``.
Anything else raises `UnsupportedOperationError`; a decision the error leaves open raises `UndecidableError`.
Words for legal rewrites are in `oracle.vocabulary`.
"""

# importing these modules fills the tables of rules
from oracle.error import arithmetic, comparison, contraction, functions, reductions, selection, structure
from oracle.error.array import ErrorBounded, exact
from oracle.error.comparison import ThreeValued
from oracle.error.envelope import Envelope, envelope
from oracle.error.registry import UndecidableError, UnsupportedOperationError

__all__ = [
    "Envelope",
    "ErrorBounded",
    "ThreeValued",
    "UndecidableError",
    "UnsupportedOperationError",
    "arithmetic",
    "comparison",
    "contraction",
    "envelope",
    "exact",
    "functions",
    "reductions",
    "selection",
    "structure",
]
