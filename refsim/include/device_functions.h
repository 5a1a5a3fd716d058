// Device functions are built in.
#pragma once
