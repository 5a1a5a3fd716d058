// Nothing beyond the prelude.
#pragma once
