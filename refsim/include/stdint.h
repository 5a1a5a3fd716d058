// Integer types of fixed width; the prelude has them, <cstdint> adds namespace std.
#pragma once
#include "refsim_stdint.h"
