"""Launching a kernel that must run without a finding."""

import numpy as np

import refsim


def launch_clean(kernel, grid, block, *arguments, **options):
    """Launch on the simulated device; any finding, even a note, is a failure."""
    report = refsim.launch(kernel, grid, block, *arguments, **options)
    assert not report.findings, "\n".join(f"{f.kind} {f.file}:{f.line} {f.message}" for f in report.findings)
    assert report.ok


def mapped(kernel, x, out_dtype, block=None):
    """Run an elementwise kernel ``kernel(x, out)`` with one thread per element; returns ``out``."""
    x = np.asarray(x)
    out = np.zeros(x.shape, out_dtype)
    launch_clean(kernel, 1, block or x.size, x, out)
    return out
