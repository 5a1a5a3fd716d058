// __nv_bfloat16 for code generation.
#pragma once
SIXTEEN_BITS(__nv_bfloat16, __bf16, __bfloat162float, __float2bfloat16)
