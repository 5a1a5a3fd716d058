// A HIP compiler includes nothing here by itself but the keywords; hip/hip_runtime.h has the rest.
#pragma once
#include "../keywords.h"
