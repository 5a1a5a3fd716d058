"""What ONNX Runtime serves: the table that the other files of this folder fill, and dtypes of its CPU kernels."""

from __future__ import annotations

from refsim.conformance.backends.library import Table

# Most CPU kernels know no bfloat16. Attributes that are floats are float32, so a node that has one with any value is
# another operator in float64.
USUAL = ("float16", "float32", "float64")
NARROW = ("float16", "float32")

TABLE = Table(dtypes=USUAL)
