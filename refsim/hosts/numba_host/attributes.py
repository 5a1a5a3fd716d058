"""The device's numbers by the names of CUDA's device attributes."""

from __future__ import annotations

from refsim.hosts.facts import Facts
from refsim.hosts.missing import NotSimulatedError
from refsim.hosts.session import active_session

# What is so for every simulated device: one discrete device without a display, one address space with the host's.
_ALWAYS = {
    "KERNEL_EXEC_TIMEOUT": 0, "TCC_DRIVER": 0, "INTEGRATED": 0, "CAN_MAP_HOST_MEMORY": 1, "UNIFIED_ADDRESSING": 1,
    "MANAGED_MEMORY": 1, "CONCURRENT_MANAGED_ACCESS": 1, "PAGEABLE_MEMORY_ACCESS": 1, "COMPUTE_MODE": 0,
    "COOPERATIVE_LAUNCH": 1,
}  # fmt: skip


def attribute(name: str) -> int:
    """A device attribute, such as ``WARP_SIZE``.

    Raises
    ------
    NotSimulatedError
        If the device model has no such number.
    """
    if name in _ALWAYS:
        return _ALWAYS[name]
    model = active_session().device
    facts = Facts(model)
    numbers = {
        "MAX_THREADS_PER_BLOCK": model.max_threads_per_block,
        **dict(zip(("MAX_BLOCK_DIM_X", "MAX_BLOCK_DIM_Y", "MAX_BLOCK_DIM_Z"), model.max_block, strict=True)),
        **dict(zip(("MAX_GRID_DIM_X", "MAX_GRID_DIM_Y", "MAX_GRID_DIM_Z"), model.max_grid, strict=True)),
        "MAX_SHARED_MEMORY_PER_BLOCK": model.shared_bytes_per_block,
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": model.shared_bytes_per_block,
        "WARP_SIZE": model.warp_size,
        "MULTIPROCESSOR_COUNT": facts.multiprocessors,
        "COMPUTE_CAPABILITY_MAJOR": facts.compute_capability[0],
        "COMPUTE_CAPABILITY_MINOR": facts.compute_capability[1],
    }
    if name not in numbers:
        raise NotSimulatedError(f"{name} of a numba.cuda device")
    return numbers[name]
