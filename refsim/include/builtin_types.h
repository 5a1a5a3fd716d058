// Vector types are built in.
#pragma once
