"""What kernels call of cub: the results of its functions, and races where its storage is used again too early.

The results were the same with CUDA's own cub on an H200 (CuPy 14.2, in which operators such as ``cub::Max`` are
``cuda::maximum<>``).
"""

import numpy as np
import pytest

import refsim


def run(body, threads, *arrays, before="", device="sim:sm_90"):
    names = {"float32": "float", "int32": "int", "float64": "double", "int16": "short", "int64": "long long"}
    parameters = ", ".join(f"{names[x.dtype.name]}* {name}" for x, name in zip(arrays, "xyz", strict=False))
    code = f"""
    #include <cub/cub.cuh>
    {before}
    extern "C" __global__ void kernel({parameters}) {{
        const int t = threadIdx.x + blockDim.x * threadIdx.y;
        {body}
    }}"""
    block = threads if isinstance(threads, tuple) else (threads,)
    return refsim.RawKernel(code, "kernel")((1,), block, arrays, device=device)


def values(count, dtype=np.int32, seed=0):
    return np.random.default_rng(seed).integers(-50, 50, count).astype(dtype)


@pytest.mark.parametrize("threads", [32, 128, 48, 1])
@pytest.mark.parametrize("dtype", ["int32", "float64", "int16"])
def test_block_reductions(threads, dtype):
    x, y = values(threads, dtype), np.zeros(3, dtype)
    kind = {"int32": "int", "float64": "double", "int16": "short"}[dtype]
    body = f"""
    typedef cub::BlockReduce<{kind}, {threads}> Reduce;
    __shared__ typename Reduce::TempStorage storage;
    {kind} sum = Reduce(storage).Sum(x[t]);
    __syncthreads();
    {kind} largest = Reduce(storage).Reduce(x[t], cub::Max());
    __syncthreads();
    {kind} some = Reduce(storage).Reduce(x[t], cuda::minimum<>{{}}, {max(1, threads - 9)});
    if (t == 0) {{ y[0] = sum; y[1] = largest; y[2] = some; }}
    """
    report = run(body, threads, x, y, before="#include <cuda/functional>")
    assert not report.findings, str(report)
    assert list(y) == [x.sum(dtype=dtype), x.max(), x[: max(1, threads - 9)].min()]


def test_storage_used_again_without_a_barrier_is_a_race():
    body = """
    typedef cub::BlockReduce<int, 128> Reduce;
    __shared__ Reduce::TempStorage storage;
    int sum = Reduce(storage).Sum(x[t]);
    int more = Reduce(storage).Sum(2 * x[t]);
    if (t == 0) y[0] = sum + more;
    """
    report = run(body, 128, values(128), np.zeros(1, np.int32))
    assert {finding.kind for finding in report.findings} == {"race"}


def test_a_reduction_of_structures_by_a_functor_in_two_dimensions():
    before = """
    struct Best { float value; int at; };
    struct Better {
        __device__ Best operator()(const Best& a, const Best& b) const {
            return (b.value > a.value || (b.value == a.value && b.at < a.at)) ? b : a;
        }
    };"""
    body = """
    typedef cub::BlockReduce<Best, 16, cub::BLOCK_REDUCE_RAKING, 8> Reduce;
    __shared__ Reduce::TempStorage storage;
    Best best = Reduce(storage).Reduce(Best{x[t], t}, Better());
    if (t == 0) y[0] = best.at;
    """
    x, y = values(128, np.float32), np.zeros(1, np.int32)
    assert not run(body, (16, 8), x, y, before=before).findings
    assert y[0] == np.argmax(x)


@pytest.mark.parametrize("threads", [32, 96, 80])
def test_block_scans(threads):
    x, y = values(threads), np.zeros((5, threads), np.int32)
    body = f"""
    typedef cub::BlockScan<int, {threads}> Scan;
    __shared__ Scan::TempStorage storage;
    int a, b, c, d, total;
    Scan(storage).InclusiveSum(x[t], a);
    __syncthreads();
    Scan(storage).ExclusiveSum(x[t], b, total);
    __syncthreads();
    Scan(storage).InclusiveScan(x[t], c, cub::Max());
    __syncthreads();
    Scan(storage).ExclusiveScan(x[t], d, 1000, cub::Min());
    y[t] = a; y[t + {threads}] = b; y[t + 2 * {threads}] = c; y[t + 3 * {threads}] = d; y[t + 4 * {threads}] = total;
    """
    report = run(body, threads, x, y)
    assert not report.findings, str(report)
    np.testing.assert_array_equal(y[0], np.cumsum(x))
    np.testing.assert_array_equal(y[1], np.cumsum(x) - x)
    np.testing.assert_array_equal(y[2], np.maximum.accumulate(x))
    np.testing.assert_array_equal(y[3], np.minimum.accumulate(np.r_[1000, x[:-1]]))
    assert (y[4] == x.sum()).all()


def test_tiles_of_several_items():
    x, y = values(64 * 4), np.zeros((4, 64 * 4), np.int32)
    body = """
    typedef cub::BlockLoad<int, 64, 4, cub::BLOCK_LOAD_TRANSPOSE> Load;
    typedef cub::BlockStore<int, 64, 4, cub::BLOCK_STORE_VECTORIZE> Store;
    typedef cub::BlockScan<int, 64> Scan;
    typedef cub::BlockReduce<int, 64> Reduce;
    __shared__ union {
        Load::TempStorage load; Store::TempStorage store; Scan::TempStorage scan; Reduce::TempStorage reduce;
    } storage;
    int items[4], sums[4];
    Load(storage.load).Load(x, items);
    __syncthreads();
    Scan(storage.scan).InclusiveSum(items, sums);
    __syncthreads();
    Store(storage.store).Store(y, sums);
    __syncthreads();
    Scan(storage.scan).ExclusiveSum(items, sums);
    __syncthreads();
    Store(storage.store).Store(y + 256, sums, 100);
    int total = Reduce(storage.reduce).Sum(items);
    if (t == 0) y[512] = total;
    cub::BlockLoad<int, 64, 4, cub::BLOCK_LOAD_STRIPED>().Load(x, items, 200, -1);
    cub::BlockStore<int, 64, 4>().Store(y + 768, items);
    """
    report = run(body, 64, x, y)
    assert not report.findings, str(report)
    np.testing.assert_array_equal(y[0], np.cumsum(x))
    np.testing.assert_array_equal(y[1, :100], (np.cumsum(x) - x)[:100])
    assert not y[1, 100:].any()
    assert y[2, 0] == x.sum()
    np.testing.assert_array_equal(y[3], np.where(np.arange(256) < 200, x, -1).reshape(4, 64).T.reshape(-1))


def test_warps_of_any_size():
    x, y = values(64), np.zeros((5, 64), np.int32)
    body = """
    typedef cub::WarpReduce<int> Reduce;
    typedef cub::WarpReduce<int, 8> Eight;
    typedef cub::WarpScan<int> Scan;
    __shared__ Reduce::TempStorage reduce[2];
    __shared__ Eight::TempStorage eight[8];
    __shared__ Scan::TempStorage scan[2];
    y[t] = Reduce(reduce[t / 32]).Sum(x[t]);
    y[t + 64] = Eight(eight[t / 8]).Reduce(x[t], cub::Max());
    int sum, before, total;
    Scan(scan[t / 32]).InclusiveSum(x[t], sum, total);
    Scan(scan[t / 32]).ExclusiveSum(x[t], before);
    y[t + 128] = sum; y[t + 192] = before; y[t + 256] = total;
    """
    report = run(body, 64, x, y)
    assert not report.findings, str(report)
    by_warp = x.reshape(2, 32)
    np.testing.assert_array_equal(y[0, ::32], by_warp.sum(1))
    np.testing.assert_array_equal(y[1, ::8], x.reshape(8, 8).max(1))
    np.testing.assert_array_equal(y[2], np.cumsum(by_warp, axis=1).reshape(-1))
    np.testing.assert_array_equal(y[3], (np.cumsum(by_warp, axis=1) - by_warp).reshape(-1))
    np.testing.assert_array_equal(y[4], np.repeat(by_warp.sum(1), 32))


@pytest.mark.parametrize("device", ["sim:gfx942", "sim:warp16"])
def test_hipcub_and_other_warps(device):
    body = """
    #ifdef __HIPCC__
    typedef hipcub::BlockReduce<int, 96> Reduce;
    typedef hipcub::BlockScan<int, 96> Scan;
    #else
    typedef cub::BlockReduce<int, 96> Reduce;
    typedef cub::BlockScan<int, 96> Scan;
    #endif
    __shared__ Reduce::TempStorage reduce;
    __shared__ Scan::TempStorage scan;
    int sum = Reduce(reduce).Sum(x[t]), before;
    Scan(scan).ExclusiveSum(x[t], before);
    y[t] = before;
    if (t == 0) y[96] = sum;
    """
    x, y = values(96), np.zeros(97, np.int32)
    report = run(body, 96, x, y, before="#include <hipcub/hipcub.hpp>" if "gfx" in device else "", device=device)
    assert not report.findings, str(report)
    np.testing.assert_array_equal(y, np.r_[np.cumsum(x) - x, x.sum()])


def test_what_cub_has_for_hosts_is_refused_by_name():
    code = '#include <cub/device/device_reduce.cuh>\nextern "C" __global__ void kernel(int* x) {}'
    with pytest.raises(refsim.RefsimError, match="cub has no device/device_reduce"):
        refsim.RawKernel(code, "kernel")((1,), (32,), (np.zeros(1, np.int32),))
