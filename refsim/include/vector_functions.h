// make_float4 and its like are built in.
#pragma once
