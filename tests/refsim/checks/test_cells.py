"""Cells that are evenly spaced along the axes of threads and blocks are found as such, and only those."""

from types import SimpleNamespace

import numpy as np
import pytest

from refsim.checks.cells import Window, located
from refsim.engine.lanes import LaneSet


def lanes(address):
    return SimpleNamespace(shape=address.shape)


def sums(*axes):
    """Addresses of threads × blocks from (extent, step) of the axes of each."""
    parts = []
    for side in axes:
        values = np.zeros(1, np.int64)
        for extent, step in side:
            values = (values[:, None] + np.arange(extent) * step).reshape(-1)
        parts.append(values)
    return parts[0][:, None] + parts[1]


EVEN = [
    sums([(8, 1)], [(4, 8)]),
    sums([(4, 64), (4, 1)], [(3, 256), (5, 4)]),
    sums([(4, 1), (4, 64)], [(3, 4), (5, 256)]),
    sums([(1, 0)], [(7, 3)]),
    sums([(7, 3)], [(1, 0)]),
    sums([(1, 0)], [(1, 0)]) + 9,
]


@pytest.mark.parametrize("address", EVEN)
def test_even_cells_are_a_view(address):
    cells = located(lanes(address), address)
    assert isinstance(cells, Window)
    np.testing.assert_array_equal(cells.index, address)
    array, values = np.arange(2000), np.random.default_rng(0).integers(0, 99, address.shape)
    np.testing.assert_array_equal(cells.get(array), address)
    want = array.copy()
    want[address] = values
    cells.put(array, values)
    np.testing.assert_array_equal(array, want)
    cells.moved(3).put(array, 7)
    assert (array[address + 3] == 7).all()
    cells.put(array, values[:, :1])
    assert (array[address] == values[:, :1]).all()


ODD = [
    sums([(8, 1)], [(4, 7)]),  # blocks share a cell
    sums([(8, 0)], [(4, 8)]),  # threads share one
    sums([(8, -1)], [(4, 8)]) + 8,
    np.random.default_rng(0).permutation(64).reshape(8, 8),
    sums([(8, 1)], [(4, 8)]) + (np.arange(32).reshape(8, 4) == 31),
    sums([(7, 1)], [(4, 8)])[[0, 1, 2, 4, 5, 6, 6]],
]


@pytest.mark.parametrize("address", ODD)
def test_others_are_not(address):
    cells = located(lanes(address), address)
    assert not isinstance(cells, Window)
    np.testing.assert_array_equal(cells.index, address)


def test_drawn_nests():
    rng = np.random.default_rng(1)
    windows = 0
    for _ in range(500):
        sides = [[(int(rng.integers(1, 5)), int(rng.integers(0, 40))) for _ in range(rng.integers(1, 4))] for _ in "ab"]
        address = sums(*sides)
        cells = located(lanes(address), address)
        np.testing.assert_array_equal(cells.index, address)
        if isinstance(cells, Window):
            windows += 1
            assert len(np.unique(address)) == address.size
    assert windows > 50


LARGE = [
    sums([(128, 1)], [(512, 128)]),  # threads are neighbours, rows of values collide in a cache
    sums([(128, 1)], [(500, 128)]),
    sums([(128, 1)], [(128, 1024), (2, 131072 + 64)]),
    sums([(16, 4096), (16, 1)], [(256, 16)]),
    sums([(128, 1024)], [(512, 1)]),  # blocks are
    sums([(16, 512)], [(512, 1)]),
    sums([(32, 1), (4, 40000)], [(512, 64)]),
]


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float64, np.uint8, np.float16, np.complex128])
@pytest.mark.parametrize("address", LARGE)
def test_values_and_tags_are_put_where_their_addresses_say(address, dtype):
    cells = located(lanes(address), address)
    assert isinstance(cells, Window)
    rng = np.random.default_rng(0)
    array = rng.integers(0, 99, address.max() + 10).astype(dtype)
    values = rng.integers(0, 99, address.shape).astype(dtype)
    for value in (values, np.asfortranarray(values), values[::-1], values[:, :1], values[:1], values[3, 5]):
        want = array.copy()
        want[address] = value
        cells.put(array, value)
        np.testing.assert_array_equal(array, want)
        np.testing.assert_array_equal(cells.get(array), np.broadcast_to(value, address.shape))
        copied = cells.copy(array)
        np.testing.assert_array_equal(copied, array[address])
        assert copied.flags.c_contiguous
        assert not np.shares_memory(copied, array)
    np.testing.assert_array_equal(cells.copy(np.repeat(array, 3)[1::3]), array[address])  # a field of records


@pytest.mark.parametrize("address", [*LARGE, *EVEN, *ODD])
def test_tags_are_those_of_each_lane(address):
    batch = SimpleNamespace(
        threads=address.shape[0],
        columns=address.shape[1],
        all_threads=np.arange(address.shape[0]).reshape(-1, 1),
        all_columns=np.arange(address.shape[1]).reshape(1, -1),
    )
    everyone = LaneSet(batch, None, None)
    cells = located(everyone, address)
    tags = np.arange(address.max() + 10)
    want = tags.copy()
    want[address] = 77 << 24 | (np.arange(address.size).reshape(address.shape) + 1)
    before = cells.get(tags).max()
    if isinstance(cells, Window):
        assert cells.most(tags) == before
    cells.put_tags(tags, 77, everyone)
    np.testing.assert_array_equal(tags, want)
