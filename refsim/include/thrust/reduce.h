// thrust is not there.
#error "thrust is not supported by refsim: use cuda/std headers, such as <cuda/std/complex>"
