"""Cases: structure (shapes, layouts, value classes, seeds) from which the inputs of a run are drawn."""

from oracle.cases.case import Case
from oracle.cases.draw import curated_count, far_cases, make_cases
from oracle.cases.layouts import LAYOUTS, buffer_of

__all__ = ["LAYOUTS", "Case", "buffer_of", "curated_count", "far_cases", "make_cases"]
