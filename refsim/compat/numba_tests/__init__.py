"""The tests that ship inside the numba-cuda wheel, run on the simulator: ``python -m refsim.compat.numba_tests``.

The tests believe that they run on a device, not on Numba's own simulator. Those that cannot pass are listed, sorted
by reason, in ``refsim/compat/numba_tests_known.toml``.
"""
