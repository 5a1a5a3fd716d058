// Not there.
#error "cub has no device/device_reduce in refsim: there are reductions and scans of warps and blocks, BlockLoad and BlockStore"
