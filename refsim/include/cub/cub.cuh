// The parts of cub that kernels call: reductions and scans of warps and blocks, tiles of memory. Its device-wide
// functions are for the host.
#pragma once
#include "block/block_load.cuh"
#include "block/block_reduce.cuh"
#include "block/block_scan.cuh"
#include "block/block_store.cuh"
#include "warp/warp_reduce.cuh"
#include "warp/warp_scan.cuh"
