"""What PyTorch serves: the table that the other files of this folder fill."""

from __future__ import annotations

from refsim.conformance.backends.library import Table

TABLE = Table()
