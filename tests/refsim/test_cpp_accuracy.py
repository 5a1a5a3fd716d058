"""The table of errors: every number for this simulator is measured, and the reference page is written from it."""

import math
from pathlib import Path

import numpy as np
from cpp_launch import launched

from refsim.frontends.cuda_cpp.intrinsics.accuracy import FAST, STANDARD, page, simulated_ulps
from refsim.frontends.cuda_cpp.intrinsics.fast import FORMULAS, REPLACED

COUNT = 256
TWO = ("atan2", "fmod", "hypot", "pow")
REFERENCE = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "cos": np.cos, "cosh": np.cosh,
    "erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc), "exp": np.exp, "exp10": lambda x: 10.0**x,
    "exp2": np.exp2, "expm1": np.expm1, "fmod": np.fmod, "hypot": np.hypot, "lgamma": np.vectorize(math.lgamma),
    "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "pow": np.power,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
    "tgamma": np.vectorize(math.gamma),
}  # fmt: skip
DOMAIN = {"acos": (-1, 1), "asin": (-1, 1), "acosh": (1, 9), "atanh": (-1, 1), "lgamma": (3, 30), "tgamma": (0.5, 30)}
POSITIVE = ("log", "log10", "log1p", "log2", "pow", "rsqrt", "sqrt")


def test_float32_functions_are_as_exact_as_the_table_says():
    rng = np.random.default_rng(3)
    names = [name for name in STANDARD if name != "fma"]
    x = np.stack([rng.uniform(*DOMAIN.get(n, (1e-3, 20) if n in POSITIVE else (-8, 8)), COUNT) for n in names])
    x, y = x.astype(np.float32), rng.uniform(0.5, 4, (len(names), COUNT)).astype(np.float32)
    out = np.zeros(x.size, np.float32)
    calls = [f"{n}f(a[k], b[k])" if n in TWO else f"{n}f(a[k])" for n in names]
    body = "int k = i;\n" + "".join(f"c[k] = {call}; k += {COUNT};\n" for call in calls)
    launched(body, x.reshape(-1), y.reshape(-1), out, block=COUNT)
    for name, row, second, got in zip(names, x, y, out.reshape(-1, COUNT), strict=True):
        wide = [row.astype(np.float64), *([second.astype(np.float64)] if name in TWO else [])]
        exact = REFERENCE[name](*wide)
        error = np.abs(got - exact) / np.spacing(np.abs(exact).astype(np.float32))
        assert error.max() <= simulated_ulps(name)[0] + 0.001, (name, error.max())


def test_nothing_here_is_less_exact_than_a_device():
    for name, documented in STANDARD.items():
        single, _ = simulated_ulps(name)
        assert single <= documented.cuda[0] + 0.51, name


def test_the_page_is_written_from_the_tables():
    file = Path(__file__).parents[2] / "docs" / "reference" / "accuracy.md"
    assert file.read_text(encoding="utf-8") == page(), "run python tools/accuracy_page.py"


def test_the_tables_name_every_fast_function():
    listed = {name.split("(")[0] for name in FAST} - {"__frsqrt_rn"}
    assert listed == {name for name in FORMULAS if name.startswith("__")}
    assert {f"__{name}f" for name in REPLACED} <= listed
