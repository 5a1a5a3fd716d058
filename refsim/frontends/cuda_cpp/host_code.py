"""Sources as nvcc takes them whole: kernels beside host code, which is passed over.

clang reads on after an error, so host functions may use what refsim knows nothing of. What matters is that no error
lies in code of the device.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from refsim.devices import Device
from refsim.frontends.cuda_cpp.clang import CompileError, rejected
from refsim.frontends.cuda_cpp.options import Options
from refsim.frontends.cuda_cpp.source import NAMES_FILE, Preprocessed, preprocess, tolerated_tree
from refsim.frontends.cuda_cpp.tree import FUNCTIONS, Node, Tree

_HEADERS = """
any atomic cerrno charconv chrono condition_variable csignal cstdarg ctime cwchar deque exception execution filesystem
format forward_list fstream future iomanip ios iosfwd iostream istream iterator list locale map memory mutex optional
ostream queue random ranges ratio regex set shared_mutex sstream stack stdexcept streambuf string string_view
system_error thread typeindex typeinfo unordered_map unordered_set valarray variant vector
dirent.h dlfcn.h errno.h fcntl.h getopt.h inttypes.h libgen.h omp.h pthread.h sched.h signal.h stdarg.h strings.h
time.h unistd.h wchar.h mpi.h nccl.h rccl.h
cublas.h cublas_v2.h cublasLt.h cublasXt.h cudnn.h cudnn_frontend.h cufft.h cufftXt.h curand.h cusolverDn.h
cusparse.h nvml.h nvrtc.h nvToolsExt.h cuda_profiler_api.h cudaProfiler.h
hipblas.h hipblas/hipblas.h hipfft.h rocblas.h rocblas/rocblas.h miopen/miopen.h
"""
HOST_HEADERS = frozenset(_HEADERS.split())
"""Headers without anything for kernels."""
HOST_FOLDERS = ("ATen", "THC", "absl", "boost", "c10", "fmt", "gtest", "nvtx3", "pybind11", "spdlog", "sys", "torch")
MISSING = re.compile(r"'([^']+)' file not found")
ERROR = re.compile(r"(.+?):(\d+):\d+: (?:fatal )?error: ")
Line = tuple[str, int]
SCOPES = ("NamespaceDecl", "LinkageSpecDecl", "FunctionTemplateDecl")
OF_DEVICE = ("CUDADeviceAttr", "CUDAGlobalAttr")


def without_host_code(
    code: str, options: Options, names: tuple[str, ...], device: Device, file: str
) -> tuple[Preprocessed, Tree]:
    """A source that clang rejects, and its tree, if all that is wrong with it is host code.

    Raises
    ------
    CompileError
        If there is more; the message leaves out what is about host code.
    """
    source = _with_empty_headers(code, options, names, device, file)
    text, errors = tolerated_tree(source, options, device)
    tree = Tree(text, source) if text else None
    parts = re.split(r"(?m)^(?=.+?:\d+:\d+: (?:fatal )?error: )", errors)
    found = [match for part in parts if (match := ERROR.match(part))]
    places = {(match[1], int(match[2])) for match in found}
    wrong = places if tree is None else _not_for_hosts(tree, places)
    if tree is None or wrong:
        raise rejected("".join(m.string for m in found if (m[1], int(m[2])) in wrong) or errors, source.text.decode())
    return source, tree


def _with_empty_headers(code: str, options: Options, names: tuple[str, ...], device: Device, file: str) -> Preprocessed:
    """The preprocessed source, in which headers that only host code needs are empty where they are missing."""
    with TemporaryDirectory() as folder:
        more = replace(options, clang=(*options.clang, "-I", folder))
        while True:
            try:
                return preprocess(code, more, names, device, file)
            except CompileError as error:
                missing = MISSING.search(str(error))
                if missing is None or not _is_for_hosts(missing[1]) or Path(folder, missing[1]).exists():
                    raise
                empty = Path(folder, missing[1])
                empty.parent.mkdir(parents=True, exist_ok=True)
                empty.touch()


def _is_for_hosts(header: str) -> bool:
    return header in HOST_HEADERS or header.partition("/")[0] in HOST_FOLDERS


def _not_for_hosts(tree: Tree, places: set[Line]) -> set[Line]:
    """The lines that lie neither in a host function nor outside of all declarations that clang could keep."""
    nodes = list(tree.declarations.values())
    functions = [(node.has(*OF_DEVICE), _lines(tree, node)) for node in nodes if node.kind in FUNCTIONS]
    wrong = {place for place in places if place[0] == NAMES_FILE}
    wrong |= {place for place in places for of_device, lines in functions if of_device and place in lines}
    left = {place for place in places - wrong if not any(place in lines for _, lines in functions)}
    others = [node for node in nodes if node.kind not in (*FUNCTIONS, *SCOPES) and not _is_host_data(node)]
    return wrong | {place for place in left if any(place in _lines(tree, node) for node in others)}


def _is_host_data(node: Node) -> bool:
    return (
        node.kind == "VarDecl"
        and not node.get("constexpr")
        and not any(child.kind.startswith("CUDA") for child in node.inner)
    )


def _lines(tree: Tree, node: Node) -> set[Line]:
    """File and number of each line of a declaration."""
    if node.offset is None or node.end is None or node.get("isImplicit"):
        return set()
    first, last = tree.source.place(node.offset), tree.source.place(node.end - 1)
    return {(first.file, line) for line in range(first.line, last.line + 1)} if first.file == last.file else set()
