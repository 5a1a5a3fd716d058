// Types of the host's interface are not needed in kernels.
#pragma once
