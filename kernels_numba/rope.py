"""Rotary position embedding: a block per token turns every pair of every head by the token's angles.

One head of x[tokens, heads, head_dim], half = 4, and where the two members of pair p lie:

    neox   │ a0 a1 a2 a3 │ b0 b1 b2 b3 │ tail … │      a at p,    b at p + half
    gptj   │ a0 b0 a1 b1 │ a2 b2 a3 b3 │ tail … │      a at 2·p,  b at 2·p + 1

so a lies at p · pair_step and b at partner_offset behind it: (1, half) or (2, 1).

    a' = a · cos[position, p] - b · sin[position, p]
    b' = b · cos[position, p] + a · sin[position, p]         position = positions[token]

Threads of the block run over the token's heads · half pairs, then over its heads · tail untouched elements.
"""

from typing import Any

from numba import cuda

from kernels_numba.accumulator import DTYPES, NUMERICS, accumulator_of, per_accumulator
from refsim.library import Kernel, Launcher

THREADS = 128


@per_accumulator
def rope(real):
    @cuda.jit
    def rope(x, positions, cos, sin, pair_step, partner_offset, out):
        """Rotate x[tokens, heads, head_dim] into out of the same shape; one block per token."""
        thread = cuda.threadIdx.x
        token = cuda.blockIdx.x
        heads = x.shape[1]
        half = cos.shape[1]
        tail = x.shape[2] - 2 * half
        position = positions[token]

        for first in range(0, heads * half, THREADS):
            index = first + thread
            if index < heads * half:
                head = index // half
                pair = index % half
                at_a = pair * pair_step
                at_b = at_a + partner_offset
                a = real(x[token, head, at_a])
                b = real(x[token, head, at_b])
                cosine = real(cos[position, pair])
                sine = real(sin[position, pair])
                out[token, head, at_a] = a * cosine - b * sine
                out[token, head, at_b] = b * cosine + a * sine

        for first in range(0, heads * tail, THREADS):
            index = first + thread
            if index < heads * tail:
                head = index // tail
                at = 2 * half + index % tail
                out[token, head, at] = x[token, head, at]

    return rope


def run_rope(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    x, positions, cos, sin = (inputs[name] for name in ("x", "positions", "cos", "sin"))
    out = launcher.empty(x.shape, x.dtype)
    if x.size > 0:
        half = cos.shape[1]
        pair_step, partner_offset = (1, half) if params["pairing"] == "neox" else (2, 1)
        arrays = [launcher.array(array) for array in (x, positions, cos, sin)]
        launcher.launch(rope(accumulator_of(x)), x.shape[0], THREADS, *arrays, pair_step, partner_offset, out)
    return (out,)


KERNELS = [
    Kernel(
        name="rope",
        operators=("rope",),
        dtypes=DTYPES,
        run=run_rope,
        numerics=NUMERICS,
        doc="One block per token; both pairings are strides of one kernel.",
    ),
]
