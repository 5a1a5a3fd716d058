// Intrinsics are built in.
#pragma once
