// float16 by HIP's names: the same.
#pragma once
#include "../cuda_fp16.h"
