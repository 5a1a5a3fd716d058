"""Tree reductions over one thread block, as device functions: every thread puts in a value and gets back the result.

One shared cell per thread, eight threads drawn; `+` is a sum or a maximum:

    cells      0   1   2   3   4   5   6   7
               │   │   │   │   │   │   │   │
    reach 4    0+4 1+5 2+6 3+7 ·   ·   ·   ·     threads 0..3 fold the upper half onto the lower
    reach 2    0+2 1+3 ·   ·                     threads 0..1
    reach 1    0+1 ·                             thread 0
               │
               └─► every thread reads cell 0
"""

from numba import cuda

THREADS = 128  # threads of a block, one cell each; a power of two


@cuda.jit(device=True)
def block_sum(cells, thread, value):
    """The sum of ``value`` over the block; ``cells`` is shared, of ``THREADS`` elements, and free again afterwards."""
    cells[thread] = value
    cuda.syncthreads()  # every thread's cell is written before the first fold reads its partner's
    reach = THREADS // 2
    while reach > 0:
        if thread < reach:
            cells[thread] += cells[thread + reach]
        cuda.syncthreads()  # this fold's sums are written before the next fold, or the last line, reads them
        reach //= 2
    total = cells[0]
    cuda.syncthreads()  # cell 0 is read by all before the caller's next reduction writes it
    return total


@cuda.jit(device=True)
def block_max(cells, thread, value):
    """The maximum of ``value`` over the block; ``cells`` as in ``block_sum``."""
    cells[thread] = value
    cuda.syncthreads()  # every thread's cell is written before the first fold reads its partner's
    reach = THREADS // 2
    while reach > 0:
        if thread < reach:
            cells[thread] = max(cells[thread], cells[thread + reach])
        cuda.syncthreads()  # this fold's maxima are written before the next fold, or the last line, reads them
        reach //= 2
    largest = cells[0]
    cuda.syncthreads()  # cell 0 is read by all before the caller's next reduction writes it
    return largest
