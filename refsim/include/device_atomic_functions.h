// Atomics are built in.
#pragma once
