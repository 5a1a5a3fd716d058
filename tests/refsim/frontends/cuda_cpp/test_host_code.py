"""Sources for nvcc: host code beside the kernels is passed over, and no error of device code with it."""

import numpy as np
import pytest

import refsim
from refsim.frontends.cuda_cpp.clang import CompileError

WHOLE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <vector>
#include <cuda_runtime.h>
#include <torch/extension.h>
#define CEIL_DIV(m, n) (((m) + (n) - 1) / (n))
#define CHECK(call) check(call, __FILE__, __LINE__)
using namespace std;

static vector<float> pool;
cudaStream_t main_stream;

void check(cudaError_t error, const char* file, int line) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "%s:%d %s\n", file, line, cudaGetErrorString(error));
    exit(EXIT_FAILURE);
}

struct Timer {
    float best;
    void start() { cudaEventCreate(&begin_); }
};

__device__ float twice(float x) { return 2.0f * x; }

template <typename T>
__global__ void scale(T* out, const T* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = twice(x[i]) * (T)M_PI;
}

template <typename T>
void launch(T* out, const T* x, int n, cudaStream_t stream) {
    scale<T><<<CEIL_DIV(n, 32), 32, 0, stream>>>(out, x, n);
    CHECK(cudaGetLastError());
}

torch::Tensor forward(torch::Tensor x) {
    auto out = torch::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", [&] {
        launch(out.data_ptr<scalar_t>(), x.data_ptr<scalar_t>(), 1, 0);
    });
    return out;
}

int main(int argc, char** argv) {
    std::vector<float> host(100);
    float* device;
    CHECK(cudaMalloc(&device, 400));
    launch(device, device, 100, 0);
    printf("%s %f\n", std::string("done").c_str(), fabs(host[0]));
    return 0;
}
"""


def test_a_whole_file_for_nvcc():
    x, out = np.arange(50, dtype=np.float32), np.zeros(50, np.float32)
    kernel = refsim.RawModule(code=WHOLE, name_expressions=["scale<float>"]).get_function("scale<float>")
    report = kernel((2,), (32,), (out, x, np.int32(50)))
    assert not report.findings
    np.testing.assert_array_equal(out, 2 * x * np.float32(np.pi))


def test_lines_of_findings_are_those_of_the_file():
    x, out = np.arange(40, dtype=np.float32), np.zeros(50, np.float32)
    kernel = refsim.RawModule(code=WHOLE, name_expressions=["scale<float>"]).get_function("scale<float>")
    (finding,) = kernel((2,), (32,), (out, x, np.int32(50))).findings
    assert finding.kind == "out_of_bounds"
    assert WHOLE.split("\n")[finding.line - 1].startswith("    if (i < n) out[i]")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("return 2.0f * x;", "return cudaGetLastError() * x;", "cudaGetLastError"),
        ("if (i < n) out", "if (i < m) out", "undeclared identifier 'm'"),
        ("const T* x, int n) {\n    const", "const T* x, unknown_t n) {\n    const", "unknown_t"),
        ("float best;", "unknown_t best;", "unknown_t"),
        ("__device__ float twice(float x)", "__device__ unknown_t twice(float x)", "unknown_t"),
        ("#include <string>", "#include <settings.h>", "-I/the/folder"),
        ("#include <string>", '#include "vectors.h"', "-I/the/folder"),
        ("    return 0;\n}", "    return 0;\n", "expected"),
    ],
)
def test_an_error_of_device_code_is_one(old, new, message):
    code = WHOLE.replace(old, new)
    assert code != WHOLE
    with pytest.raises(CompileError, match=message) as error:
        refsim.RawModule(code=code, name_expressions=["scale<float>"]).get_function("scale<float>")((1,), (32,), ())
    assert "cudaMalloc" not in str(error.value)


@pytest.mark.parametrize("name", ["scale<double, 3>", "nothing", "launch<float>"])
def test_a_kernel_that_is_not_there_is_an_error(name):
    with pytest.raises(refsim.RefsimError):
        refsim.RawModule(code=WHOLE, name_expressions=[name]).get_function(name)((1,), (32,), ())
