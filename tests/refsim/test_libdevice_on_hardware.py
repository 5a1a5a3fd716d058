"""The engine's libdevice functions against what an NVIDIA H200 answered (benchmarks/libdevice_on_gpu.py)."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from refsim.engine.intrinsics import CARRIER, INTRINSICS, convert, function
from refsim.frontends.numba_libdevice import functions

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("libdevice_on_gpu", ROOT / "benchmarks" / "libdevice_on_gpu.py")
MEASURED = json.loads((Path(__file__).parent / "libdevice_data" / "h200.json").read_text())
FUNCTIONS = functions()

# Most ulps between the two where it is not 2 plus the engine's own: the GPU's function is an approximation there
APPROXIMATE = {"fast_expf": 4, "fast_exp10f": 8, "fast_logf": 500, "fast_log2f": 700, "fast_log10f": 800,
               "fast_powf": 200, "powi": 2000, "powif": 2000, "fast_fdividef": 2}  # fmt: skip
# The fast sine and cosine have a documented error, 2**-21, for |x| up to pi only
FAST_ANGLES = ("fast_sinf", "fast_cosf", "fast_tanf", "fast_sincosf")
# Absolute errors, as CUDA documents them for |x| of 8 and more
ABSOLUTE = {f"{name}{suffix}": (2.2e-6 if suffix else 5e-12) for name in ("j0", "j1", "jn", "y0", "y1", "yn")
            for suffix in ("", "f")}  # fmt: skip


@pytest.fixture(scope="module")
def measuring():
    module = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(module)
    return module


def answers(name, inputs):
    """The engine's results for columns of arguments, each as an array of its declared type."""
    entry = FUNCTIONS[name]
    operands = []
    for column, declared, kind in zip(inputs, entry.args, entry.operands, strict=True):
        lanes = column.astype(CARRIER[declared])
        with np.errstate(over="ignore"):
            operands.append(lanes if declared == kind else convert(lanes, declared, kind))
    for position, (declared, produced) in enumerate(zip(entry.results, entry.engine_results, strict=True)):
        engine = entry.engine if len(entry.results) == 1 else f"{entry.engine}.{position}"
        with np.errstate(all="ignore"):
            result = function(engine, entry.operands[0])(*operands)
            result = (result if produced == declared else convert(result, produced, declared)).astype(declared)
        yield result


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_equals_the_hardware(name, measuring):
    entry = FUNCTIONS[name]
    inputs = measuring.arguments(name, list(entry.args))
    label = INTRINSICS[entry.engine, entry.operands[0]].ulps
    exact = label <= 0.5 and name not in APPROXIMATE
    for text, kind, got in zip(MEASURED["functions"][name], entry.results, answers(name, inputs), strict=True):
        gpu = measuring.decoded(text, kind)
        if entry.engine in ("isnan", "isinf", "isfinite", "signbit"):
            np.testing.assert_array_equal(got != 0, gpu != 0)  # any number but 0 is true
            continue
        if exact or "int" in kind:
            np.testing.assert_array_equal(got, gpu)
            if "float" in kind:
                np.testing.assert_array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(gpu[~np.isnan(got)]))
            continue
        checked = np.abs(inputs[0]) < np.pi if name in FAST_ANGLES else np.ones(got.shape, bool)
        ulps = np.full(got.shape, APPROXIMATE.get(name, 2 + label))
        if name in ("jn", "jnf", "yn", "ynf"):
            ulps = np.maximum(ulps, 2 + 2.5 * inputs[0])  # as documented for |x| below the order
            checked &= (inputs[0] < 2) | (np.abs(inputs[1]) > 1e-20)  # the hardware's recurrence overflows to NaN
        same = (got == gpu) | (np.isnan(got) & np.isnan(gpu))
        unit = np.spacing(np.maximum(np.abs(gpu), np.finfo(kind).tiny)).astype(np.float64)
        with np.errstate(all="ignore"):
            difference = np.abs(got.astype(np.float64) - gpu.astype(np.float64))
            near = difference <= np.maximum(ulps * unit, ABSOLUTE.get(name, 0.0))
            if name in FAST_ANGLES:
                near |= difference < 2.0**-21 * (1 + np.abs(got)) ** 2  # the tangent is a quotient of the two
        wrong = checked & ~same & ~near
        assert not wrong.any(), [([x[i] for x in inputs], got[i], gpu[i]) for i in np.flatnonzero(wrong)[:3]]


def test_all_functions_were_measured():
    assert MEASURED["failed"] == {}
    assert set(MEASURED["functions"]) == set(FUNCTIONS)
