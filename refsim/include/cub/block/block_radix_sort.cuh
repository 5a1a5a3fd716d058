// cub is not there.
#include "../cub.cuh"
