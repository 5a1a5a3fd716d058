"""What a launch did to the machine: memory traffic, bank conflicts, instruction mix, divergence.

``refsim.launch(..., counters=True).counters`` is a `Counters`. Nothing of this runs when counters are off: a launch
that counts runs a second variant of the lane code, over memories that count.
"""

from refsim.counters.record import Counters, Counts, Line, SharedArray, Traffic

__all__ = ["Counters", "Counts", "Line", "SharedArray", "Traffic"]
