// hipCUB: cub by another name.
#pragma once
#include "../cub/cub.cuh"
namespace hipcub = cub;
