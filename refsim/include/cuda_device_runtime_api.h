// Kernels launch no kernels.
#pragma once
