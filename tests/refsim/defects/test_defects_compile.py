"""Numba's own compiler takes every kernel of the corpus: what is wrong with the wrong ones is not the language.

No GPU is needed, but NVVM is: ``pip install "numba-cuda[cu13]"``.
"""

import numba
import numpy as np
import pytest
from defect_corpus import DEFECTS
from numba import cuda


def nvvm_is_missing():
    """Why nothing can be compiled here, or an empty string."""

    def empty():
        pass

    try:
        cuda.compile_ptx(empty, (), cc=(9, 0))
    except Exception as error:  # whichever library of the toolkit is looked for first, each with its own exception
        return f"no NVVM to compile with: {type(error).__name__}"
    return ""


MISSING = nvvm_is_missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.mark.parametrize("twin", ["wrong", "right"])
@pytest.mark.parametrize("pair", [pytest.param(pair, id=pair.name) for pair in DEFECTS if not pair.marked_functions])
def test_numba_compiles(pair, twin):
    types = [numba.typeof(np.asarray(a) if isinstance(a, np.ndarray) else a) for a in pair.arguments()]
    code, _ = cuda.compile_ptx(getattr(pair, twin), tuple(types), cc=(9, 0))
    assert ".entry" in code or ".func" in code
