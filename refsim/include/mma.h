// Matrix fragments.
#pragma once
#error "mma.h: matrix instructions are not supported on the simulator yet"
