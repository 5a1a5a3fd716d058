"""How many blocks cover an extent, and how far a grid reaches."""

MAX_BLOCKS_YZ = 65535
"""Most blocks of a grid in its second and third dimension; the first takes 2**31 - 1."""


def cover(extent: int, tile: int) -> int:
    """The number of tiles of ``tile`` elements that cover ``extent`` elements."""
    return (extent + tile - 1) // tile
