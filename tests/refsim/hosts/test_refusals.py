"""What is not simulated is refused by name, never computed by something else."""

import pytest

from refsim.hosts import NotSimulatedError, Session, run_script

REFUSED = {
    "numba.cuda.compile_ptx": "from numba import cuda\ncuda.compile_ptx(lambda: None, ())",
    "argument 'link' of numba.cuda.jit()": "from numba import cuda\n@cuda.jit('()', link=['f.cu'])\ndef f(): pass",
    "inspect_asm of a numba.cuda kernel": "from numba import cuda\n@cuda.jit('()')\ndef f(): pass\nf.inspect_asm()",
    "regs_per_thread of a numba.cuda kernel": (
        "from numba import cuda\n@cuda.jit('()')\ndef f(): pass\nf.get_regs_per_thread()"
    ),
    "cuIpcGetMemHandle of the CUDA driver": "from numba import cuda\ncuda.device_array(3).get_ipc_handle()",
    "PCI_BUS_ID of a numba.cuda device": "from numba import cuda\ncuda.get_current_device().PCI_BUS_ID",
    "cupy.fuse": "import cupy\n@cupy.fuse()\ndef f(x): return x",
    "cupy.fft": "import cupy\ncupy.fft.fft",
    "cupy.no_such_function": "import cupy\ncupy.no_such_function(1)",
    "cupy.linalg.eig": "import cupy\ncupy.linalg.eig",
    "cupy.random.zipf": "import cupy\ncupy.random.zipf",
    "cupy.cuda.graph": "import cupy\ncupy.cuda.graph",
    "cupy.ndarray.toDlpack": "import cupy\ncupy.zeros(3).toDlpack()",
    "argument 'where' of cupy.add()": "import cupy\ncupy.add(cupy.ones(2), 1, where=True)",
    "argument 'initial' of cupy.sum()": "import cupy\ncupy.sum(cupy.ones(2), initial=1)",
    "numpy.add.accumulate() of a cupy.ndarray": "import cupy, numpy\nnumpy.add.accumulate(cupy.ones(3))",
    "cupy.RawModule(path='kernel.cubin')": "import cupy\ncupy.RawModule(path='kernel.cubin')",
    "cupy.cuda.MemoryPool.set_limit": "import cupy\ncupy.get_default_memory_pool().set_limit(8)",
    "module cupyx.scipy": "import cupyx.scipy.sparse",
    "module cupy.sparse": "import cupy.sparse",
    "module cupyx": "from cupyx import jit",
}


@pytest.mark.parametrize(("name", "script"), REFUSED.items(), ids=REFUSED)
def test_refused_by_name(name, script, tmp_path, capsys):
    path = tmp_path / "script.py"
    path.write_text(script, encoding="utf-8")
    assert run_script(path, [], Session()) == 1
    printed = capsys.readouterr().err
    last = printed.splitlines()[-1]
    assert last.startswith("refsim.hosts.missing.NotSimulated"), printed
    assert name.split(".scipy")[0] in last
    assert f'File "{path}"' in printed


def test_feature_tests_of_scripts_work(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(
        "import cupy\nfrom numba import cuda\n"
        "assert not hasattr(cupy, 'fft') and not hasattr(cuda, 'no_such_name') and hasattr(cupy, 'sin')\n"
        "try:\n    import cupyx\nexcept ImportError:\n    cupyx = None\n"
        "try:\n    from cupy import fuse\nexcept ImportError:\n    fuse = None\n"
        "assert cupyx is fuse is None\n",
        encoding="utf-8",
    )
    assert run_script(path, [], Session()) == 0


def test_kinds_of_refusal():
    from refsim.errors import UnsupportedError
    from refsim.hosts.missing import NotSimulatedImportError

    assert issubclass(NotSimulatedError, (AttributeError,))
    assert issubclass(NotSimulatedError, UnsupportedError)
    assert issubclass(NotSimulatedImportError, ImportError)


def test_stand_ins_work_in_scripts_only():
    from refsim.hosts.stand_ins import stand_ins

    def kernel(x):
        x[0] = 1

    with stand_ins():
        from numba import cuda

        with pytest.raises(RuntimeError, match="refsim run SCRIPT"):
            cuda.jit(kernel)[1, 1](None)
