// __half for code generation.
#pragma once
SIXTEEN_BITS(__half, _Float16, __half2float, __float2half)
