"""``mma.sync`` on the simulator against what an H200 answered, bit for bit.

The results were recorded by ``python benchmarks/matrix_units_on_gpu.py --output FILE.npz``.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import refsim

ROOT = Path(__file__).resolve().parents[2]


def script():
    spec = importlib.util.spec_from_file_location("matrix_units_on_gpu", ROOT / "benchmarks" / "matrix_units_on_gpu.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


measuring = script()
MEASURED = np.load(Path(__file__).with_name("data") / "matrix_units_h200.npz")
MODULE = refsim.RawModule(code=measuring.source(), options=("--std=c++17",))


def test_every_instruction_was_measured():
    assert sorted(MEASURED.files) == sorted(instruction.name for instruction in measuring.INSTRUCTIONS)


@pytest.mark.parametrize("number", range(len(measuring.INSTRUCTIONS)), ids=lambda n: measuring.INSTRUCTIONS[n].name)
def test_same_bits_as_on_the_gpu(number):
    instruction = measuring.INSTRUCTIONS[number]
    arrays = instruction.arrays(number)
    kernel = MODULE.get_function(f"mma_{number}")
    report = refsim.launch(kernel, measuring.TRIALS, measuring.LANES, *arrays)
    assert not report.findings
    assert measuring.differing(arrays[-1], MEASURED[instruction.name]) == 0
