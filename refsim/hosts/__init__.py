"""What stands in for a GPU's host-side interfaces while a script runs unmodified: ``numba.cuda`` and ``cupy``.

`run_script` runs a script as ``python script.py`` would. Device memory is host memory, streams run in order, and
every launch goes to the simulator; a `Session` gathers what the checks found. A name that has no stand-in raises
`NotSimulatedError`; nothing falls through to NumPy silently.
"""

from refsim.hosts.missing import NotSimulatedError
from refsim.hosts.script import run_script
from refsim.hosts.session import Session

__all__ = ["NotSimulatedError", "Session", "run_script"]
