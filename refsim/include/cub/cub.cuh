// cub is not there.
#error "cub is not supported by refsim: write the reduction or scan with shuffles and shared memory, or judge the kernel on a GPU"
