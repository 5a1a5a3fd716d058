"""CUDA and HIP C++ kernels to the kernel dialect, by way of clang's syntax tree."""

from refsim.frontends.cuda_cpp.clang import ClangError, CompileError
from refsim.frontends.cuda_cpp.translator import (
    Parameter,
    Translation,
    kernel_names,
    module_variable,
    translate_one,
    translate_source,
)

__all__ = [
    "ClangError", "CompileError", "Parameter", "Translation", "kernel_names", "module_variable", "translate_one",
    "translate_source",
]  # fmt: skip
