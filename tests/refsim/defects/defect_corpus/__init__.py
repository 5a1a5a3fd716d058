"""Seeded defects: small Numba CUDA kernels, each wrong in one way, and for each a right twin."""

from . import (
    barriers,
    initialisation,
    launch_limits,
    memory_bounds,
    races_global,
    races_shared,
    races_tiles,
    values_index,
    values_numeric,
    warp_operations,
)
from .record import DEFECTS, Defect, Launch

__all__ = ["DEFECTS", "Defect", "Launch"]

_REGISTERED_BY = (
    barriers,
    initialisation,
    launch_limits,
    memory_bounds,
    races_global,
    races_shared,
    races_tiles,
    values_index,
    values_numeric,
    warp_operations,
)
