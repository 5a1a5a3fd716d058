// Not there.
#error "cub has no block/block_radix_sort in refsim: there are reductions and scans of warps and blocks, BlockLoad and BlockStore"
