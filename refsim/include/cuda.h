// CUDA's driver types are not needed in kernels.
#pragma once
