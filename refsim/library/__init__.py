"""What a kernel registers about itself, and the launcher that runs it."""

from refsim.library.kernel import Kernel
from refsim.library.launcher import Launcher, SimulatedLauncher

__all__ = ["Kernel", "Launcher", "SimulatedLauncher"]
