// cooperative_groups::inclusive_scan is in cooperative_groups.h.
#pragma once
#include "../cooperative_groups.h"
