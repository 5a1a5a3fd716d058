"""``python -m refsim``: the command line."""

from refsim.cli import main

main(prog_name="refsim")
