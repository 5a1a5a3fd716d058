"""Judging code that is not trusted: in a process of its own, with limits, that never holds what is expected."""

from refsim.conformance.isolation.backend import IsolatedBackend, Limits

__all__ = ["IsolatedBackend", "Limits"]
