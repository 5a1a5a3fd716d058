"""Shadows: per element, who wrote it last and whether it was written at all.

A tag is ``serial << 24 | agent``: the number of the access in the launch, which names its source line, and
the thread (shared memory) or lane of the batch (global memory) plus one. Tag 0 means never written. Accesses
of one block are ordered by barriers, those of different blocks never are, unless `refsim.checks.order` finds
a chain of fences and atomics.
"""

from __future__ import annotations

SHIFT = 24
AGENT = (1 << SHIFT) - 1
UNKNOWN = AGENT - 1  # an agent that stands for several threads, minus one
OF_WARP = UNKNOWN - 1  # and minus the warp's number: several threads of one warp of the block
MOST_WARPS = 64
RANK = 60  # bits of a tag; where tags compete, what is rather kept is marked above
MOST_LANES = OF_WARP - MOST_WARPS  # of a batch, whose numbers plus one are agents
