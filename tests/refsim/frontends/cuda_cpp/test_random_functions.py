"""Random C++ functions give the same bits on the simulator as on the host.

Thousands of them: ``python -m tests.refsim.frontends.cuda_cpp.test_random_functions 5000`` from the repository's root.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from . import control_flow_generator, expression_generator, object_generator
from .host import Function, difference, have_compiler, random_inputs

pytestmark = pytest.mark.skipif(not have_compiler(), reason="expected values come from g++, which is not installed")

PER_SOURCE = 20
INPUTS = 128

Writer = Callable[[np.random.Generator, str], tuple[str, Function]]


def write_expression(rng: np.random.Generator, name: str) -> tuple[str, Function]:
    return expression_generator.ExpressionGenerator(rng).function(name)


def write_half_expression(rng: np.random.Generator, name: str) -> tuple[str, Function]:
    return expression_generator.HalfExpressionGenerator(rng).function(name)


def write_control_flow(rng: np.random.Generator, name: str) -> tuple[str, Function]:
    return control_flow_generator.ControlFlowGenerator(rng).function(name)


def write_objects(rng: np.random.Generator, name: str) -> tuple[str, Function]:
    return object_generator.ObjectGenerator(rng).function(name)


GENERATORS: dict[str, tuple[str, Writer]] = {
    "expressions": (expression_generator.PRELUDE, write_expression),
    "small floats": (expression_generator.HALF_PRELUDE, write_half_expression),
    "control flow": (control_flow_generator.PRELUDE, write_control_flow),
    "objects": (object_generator.PRELUDE, write_objects),
}


def compare(generator: str, seed: int, folder: Path, count: int = PER_SOURCE) -> str | None:
    """Compare the functions of one seed; the first difference in words."""
    prelude, write = GENERATORS[generator]
    rng = np.random.default_rng(seed)
    texts, functions, inputs = [prelude], [], {}
    for number in range(count):
        text, function = write(rng, f"f{number}")
        texts.append(text)
        functions.append(function)
        inputs[function.name] = [random_inputs(rng, kind, INPUTS) for kind in function.parameters]
    return difference("\n".join(texts), functions, inputs, folder)


SEEDS = {"expressions": 8, "small floats": 4, "control flow": 5, "objects": 2}
CASES = [(generator, seed) for generator, count in SEEDS.items() for seed in range(count)]
FEWER = {"objects": 5}  # functions per source in CI, where they take long


@pytest.mark.parametrize(("generator", "seed"), CASES)
def test_same_bits_as_the_host(generator: str, seed: int, tmp_path: Path) -> None:
    found = compare(generator, seed, tmp_path, FEWER.get(generator, PER_SOURCE))
    assert found is None, found


def main(count: int, start: int) -> int:
    """Compare `count` functions of each generator; the number of sources with a difference."""
    failures = 0
    for generator in GENERATORS:
        for seed in range(start, start + -(-count // PER_SOURCE)):
            with tempfile.TemporaryDirectory() as folder:
                found = compare(generator, seed, Path(folder))
            if found is not None:
                failures += 1
                print(f"{generator}, seed {seed}: {found}")
    print(f"{count} functions of each generator: {failures or 'no'} sources differ")
    return failures


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, 1000)))
