"""``python -m refsim.compat.numba_tests``."""

from refsim.compat.numba_tests.runner import main

if __name__ == "__main__":
    main()
