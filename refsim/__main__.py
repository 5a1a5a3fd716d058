"""``python -m refsim``: the command line."""

from refsim.entry import main

main()
