"""What the matrix units of a GPU answer to mma.sync, bit for bit: what refsim's are compared with.

``python benchmarks/matrix_units_on_gpu.py --output FILE.npz`` runs every instruction of `INSTRUCTIONS` on a GPU through
CuPy, on numbers of ordinary and of any size, subnormal ones, infinities and NaN among them, and keeps the results.
``--check FILE.npz`` runs the same source on the simulator, with no GPU, and says where it differs.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

TRIALS = 32
LANES = 32
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s32": 32, "f64": 64}
NUMPY = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32, "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8, "s32": np.int32,
}  # fmt: skip


@dataclass(frozen=True)
class Instruction:
    """One ``mma.sync``: its shape, and the types of d, a, b and c."""

    m: int
    n: int
    k: int
    types: tuple[str, str, str, str]

    @property
    def name(self) -> str:
        return f"mma.sync.aligned.m{self.m}n{self.n}k{self.k}.row.col.{'.'.join(self.types)}"

    def registers(self, operand: str) -> int:
        """Registers of an operand in each lane: of 32 bits, or of 64 for doubles."""
        kind = self.types["dabc".index(operand)]
        elements = {"a": self.m * self.k, "b": self.k * self.n}.get(operand, self.m * self.n)
        return max(1, elements * BITS[kind] // (LANES * (64 if kind == "f64" else 32)))

    def source(self, kernel: str) -> str:
        """A kernel that loads the fragments register by register, multiplies, and stores the result."""
        count = {o: self.registers(o) for o in "dabc"}
        letter = {o: {"f32": "f", "f64": "d"}.get(self.types["dabc".index(o)], "r") for o in "dabc"}
        number = 0
        texts = []
        for operand in "dabc":
            names = [f"%{number + i}" for i in range(count[operand])]
            texts.append("{" + ", ".join(names) + "}")
            number += count[operand]
        scalar = {"f": "float", "d": "double", "r": "unsigned"}
        outs = ", ".join(f'"={letter["d"]}"(d{i})' for i in range(count["d"]))
        ins = ", ".join(
            f'"{letter[o]}"({o}[(blockIdx.x * 32 + threadIdx.x) * {count[o]} + {i}])'
            for o in "abc"
            for i in range(count[o])
        )
        declared = "\n".join(f"    {scalar[letter['d']]} d{i};" for i in range(count["d"]))
        stores = "\n".join(
            f"    d[(blockIdx.x * 32 + threadIdx.x) * {count['d']} + {i}] = d{i};" for i in range(count["d"])
        )
        arguments = ", ".join(f"const {scalar[letter[o]]}* {o}" for o in "abc")
        return (
            f'extern "C" __global__ void {kernel}({arguments}, {scalar[letter["d"]]}* d) {{\n{declared}\n'
            f'    asm volatile("{self.name} {", ".join(texts)};" : {outs} : {ins});\n{stores}\n}}\n'
        )

    def arrays(self, seed: int) -> tuple[np.ndarray, ...]:
        """Registers of a, b and c for all trials, and room for d."""
        rng = np.random.default_rng(seed)
        made = []
        for operand in "abc":
            kind = self.types["dabc".index(operand)]
            shape = (TRIALS, LANES, self.registers(operand) * (64 if kind == "f64" else 32) // BITS[kind])
            made.append(_registers(_numbers(rng, kind, shape), kind))
        kind = self.types[0]
        room = np.zeros((TRIALS, LANES, self.registers("d")), _register(kind))
        return (*made, room)


def _numbers(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Any:
    """A quarter of the trials each: normal numbers, widely spread ones, any bits, small ones with a few specials."""
    dtype = np.dtype(NUMPY[kind])
    word = np.dtype(f"u{dtype.itemsize}")
    any_bits = rng.integers(0, 2 ** (8 * dtype.itemsize), shape, dtype=np.uint64).astype(word).view(dtype)
    if dtype.kind in "iu":
        return any_bits
    normal = rng.standard_normal(shape).astype(dtype)
    with np.errstate(all="ignore"):
        spread = (rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 6, shape)).astype(dtype)
        tiny = (rng.standard_normal(shape) * float(ml_dtypes.finfo(dtype).smallest_normal)).astype(dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan]).astype(dtype)
    tiny = np.where(rng.random(shape) < 0.02, special[rng.integers(0, 5, shape)], tiny)
    quarter = np.arange(shape[0])[:, None, None] % 4
    out = np.where(quarter == 0, normal, np.where(quarter == 1, spread, np.where(quarter == 2, any_bits, tiny)))
    return out.astype(dtype)


def _register(kind: str) -> Any:
    return {"f32": np.float32, "f64": np.float64}.get(kind, np.uint32)


def _registers(values: Any, kind: str) -> np.ndarray:
    return np.ascontiguousarray(values).view(_register(kind))


INSTRUCTIONS = [
    *(Instruction(16, 8, k, (d, "f16", "f16", d)) for k in (8, 16) for d in ("f16", "f32")),
    *(Instruction(16, 8, k, ("f32", "bf16", "bf16", "f32")) for k in (8, 16)),
    *(Instruction(16, 8, k, ("f32", "tf32", "tf32", "f32")) for k in (4, 8)),
    Instruction(8, 8, 4, ("f64",) * 4),
    *(Instruction(16, 8, k, ("f64",) * 4) for k in (4, 8, 16)),
    Instruction(8, 8, 16, ("s32", "s8", "s8", "s32")),
    Instruction(16, 8, 16, ("s32", "u8", "s8", "s32")),
    Instruction(16, 8, 32, ("s32", "s8", "u8", "s32")),
    *(Instruction(16, 8, 32, (d, a, b, d)) for d in ("f32", "f16") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
]


def source() -> str:
    """All kernels."""
    return "\n".join(instruction.source(f"mma_{i}") for i, instruction in enumerate(INSTRUCTIONS))


def on_gpu() -> dict[str, np.ndarray]:
    """The result of every instruction on the GPU at hand."""
    import cupy

    module = cupy.RawModule(code=source(), options=("--std=c++17",))
    found = {}
    for i, instruction in enumerate(INSTRUCTIONS):
        *given, room = (cupy.asarray(array) for array in instruction.arrays(i))
        module.get_function(f"mma_{i}")((TRIALS,), (LANES,), (*given, room))
        found[instruction.name] = cupy.asnumpy(room)
    return found


def on_simulator(device: str = "sim:sm_90") -> dict[str, np.ndarray]:
    """The same on the simulator."""
    import refsim

    module = refsim.RawModule(code=source(), options=("--std=c++17",))
    found = {}
    for i, instruction in enumerate(INSTRUCTIONS):
        arrays = instruction.arrays(i)
        report = refsim.launch(module.get_function(f"mma_{i}"), TRIALS, LANES, *arrays, device=device)
        assert not report.findings, report
        found[instruction.name] = arrays[-1]
    return found


def differing(got: np.ndarray, want: np.ndarray) -> int:
    """Registers with other bits."""
    word = np.dtype(f"u{got.dtype.itemsize}")
    return int(np.count_nonzero(got.view(word) != want.view(word)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, metavar="FILE.npz", help="run on the GPU and keep the results here")
    parser.add_argument("--check", type=Path, metavar="FILE.npz", help="run on the simulator and compare")
    options = parser.parse_args()
    if options.output:
        found = on_gpu()
        np.savez_compressed(options.output, **found)
        print(f"{len(found)} instructions, {sum(r.size for r in found.values())} registers")
    if not options.check:
        return 0
    measured = np.load(options.check)
    simulated = on_simulator()
    wrong = 0
    for name, got in simulated.items():
        count = differing(got, measured[name])
        wrong += count
        print(f"{name}: {count} of {got.size} registers differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
