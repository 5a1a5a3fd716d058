"""A loop whose end was read out of bounds: the launch ends and says so."""

import numpy as np
import pytest
from numba import cuda

import refsim

ROWS = """
extern "C" __global__ void sums(const int* first, const double* x, double* out, int rows) {
  int row = threadIdx.x;
  if (row > rows) return;  // one too many
  double sum = 0;
  for (int i = first[row]; i < first[row + 1]; ++i) sum += x[i];
  out[row] = sum;
}"""
FIRST = np.array([0, 2, 5, 7], np.int32)


@cuda.jit
def sums(first, x, out):
    row = cuda.threadIdx.x
    if row <= out.size:  # one too many
        total = 0.0
        for i in range(first[row], first[row + 1]):
            total += x[i]
        out[row] = total


def judge(report):
    assert {finding.kind for finding in report.errors} == {"out_of_bounds"}
    (note,) = [finding for finding in report.findings if finding.severity == "note"]
    assert "the launch ended after 20,000 accesses out of bounds here" in note.message
    assert note.thread == (3, 0, 0)


@pytest.mark.parametrize("options", [{}, {"lanes": "thread"}])
def test_in_cpp(options):
    judge(refsim.RawKernel(ROWS, "sums")((1,), (8,), (FIRST, np.ones(7), np.zeros(3), 3), **options))


def test_in_numba():
    judge(refsim.launch(sums, 1, 8, FIRST, np.ones(7), np.zeros(3)))


def test_many_accesses_out_of_bounds_that_end_are_only_errors():
    out = np.zeros(3)
    first = np.array([0, 2, 5, 1000], np.int32)
    report = refsim.RawKernel(ROWS, "sums")((1,), (3,), (first, np.ones(7), out, 3))
    assert [finding.severity for finding in report.findings] == ["error"]
    assert out.tolist()[:2] == [2, 3]
