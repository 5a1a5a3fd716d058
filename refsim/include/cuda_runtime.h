// Nothing beyond the prelude, and the constants that nvcc includes with it.
#pragma once
#include "math.h"
