"""Variants under numerics of their own: tensor cores and narrow partial sums; fp8 on Hopper is wrong as float32."""

from __future__ import annotations

from oracle.variants.gemm import WRONG, over
from oracle.variants.gemm_quantised import a8w8, block_scaled
from oracle.variants.gemm_scaled import Style
from oracle.variants.tensor_core import fused_dots
from oracle.variants.variant import control, mutant

OCP_FLOAT8 = ("float8_e4m3fn", "float8_e5m2")

for _unit in ("sm70", "sm80", "sm90"):
    _numerics = f"tensor_core_{_unit}"
    control("matmul", name=_numerics, numerics=_numerics, dtypes=("float16", "bfloat16"))(
        over(fused_dots(_numerics), "Products on a tensor core, which cuts off what it aligns.")
    )
control("matmul", name="split_k_bfloat16", numerics="split_k_bfloat16", dtypes=("float16", "bfloat16", "float32"))(
    over(WRONG["narrow_partials"][0], "Two partial sums are stored in bfloat16, which these numerics allow.")
)
for _operator, _made in (("matmul_a8w8", a8w8), ("matmul_a8w8_block_scaled", block_scaled)):
    for _unit in ("sm90", "sm100"):
        _numerics = f"tensor_core_{_unit}_fp8"
        control(_operator, name=_numerics, numerics=_numerics, dtypes=OCP_FLOAT8)(
            _made(
                Style(fused_dots(_numerics), "sums"), "Sums of codes on a tensor core, which cuts off what it aligns."
            )
        )
    mutant(_operator, name="hopper_fp8_as_float32", dtypes=OCP_FLOAT8)(
        _made(
            Style(fused_dots("tensor_core_sm90_fp8"), "sums"),
            "Sums of codes keep 13 bits, as Hopper's tensor cores do, where float32 is promised.",
        )
    )
