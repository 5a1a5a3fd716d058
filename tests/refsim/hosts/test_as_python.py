"""A script sees and prints what it would under ``python script.py``."""

import subprocess
import sys

import pytest

TRACEBACKS = {
    "error in a function": """
        def half(x):
            return 1 / x

        print("before")
        half(0)
    """,
    "error from another": """
        def find(table, key):
            try:
                return table[key]
            except KeyError as error:
                raise ValueError(f"no {key}") from error

        find({}, "key")
    """,
    "error while another was handled": """
        try:
            int("x")
        except ValueError:
            print(undefined)
    """,
    "error in a library": """
        import json
        json.loads("{")
    """,
    "wrong syntax": """
        x = (1,
        def
    """,
    "group of errors": """
        raise ExceptionGroup("several", [ValueError(1), TypeError(2)])
    """,
    "message at exit": """
        import sys
        sys.exit("nothing to do")
    """,
    "own hook": """
        import sys
        sys.excepthook = lambda kind, error, trace: print(kind.__name__, error, trace.tb_lineno, file=sys.stderr)
        raise RuntimeError("told")
    """,
}


def write(folder, text, name="script.py"):
    lines = text.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    path = folder / name
    path.write_text("\n".join(one[indent:] for one in lines) + "\n", encoding="utf-8")
    return path


def python(folder, *arguments):
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False)


def simulated(folder, *arguments):
    """Run on the simulator; what refsim adds to the standard error stream is the last line."""
    done = python(folder, "-m", "refsim", "run", *arguments)
    *errors, last = done.stderr.splitlines(keepends=True)
    assert last == "refsim: the script launched no kernel\n", done.stderr
    return done.returncode, done.stdout, "".join(errors)


@pytest.mark.parametrize("text", TRACEBACKS.values(), ids=TRACEBACKS)
def test_errors_are_printed_as_python_prints_them(text, tmp_path):
    write(tmp_path, text)
    plain = python(tmp_path, "script.py")
    assert plain.returncode == 1
    assert simulated(tmp_path, "script.py") == (plain.returncode, plain.stdout, plain.stderr)


def test_script_sees_what_python_shows_it(tmp_path):
    folder = tmp_path / "below"
    folder.mkdir()
    (folder / "neighbour.py").write_text("NAME = 'neighbour'\n", encoding="utf-8")
    write(
        folder,
        """
        import inspect
        import os
        import sys

        import __main__
        import neighbour

        def function():
            return 1

        print(sys.argv, __name__, __file__, sys.path[0], os.getcwd(), neighbour.NAME, __package__, __spec__)
        print(__main__.function is function, inspect.getsource(function), sys.modules["__main__"].__doc__)
        sys.exit(7)
        """,
    )
    arguments = ["below/script.py", "--device", "x", "-h", "--", "last"]
    plain = python(tmp_path, *arguments)
    assert plain.returncode == 7
    assert simulated(tmp_path, *arguments) == (plain.returncode, plain.stdout, plain.stderr)


def test_refused_launch_shows_the_line_of_the_script_only(tmp_path):
    write(
        tmp_path,
        """
        from numba import cuda

        @cuda.jit
        def kernel(x):
            yield x

        kernel[1, 1](1)
        """,
    )
    done = python(tmp_path, "-m", "refsim", "run", "script.py")
    assert done.returncode == 1
    assert done.stderr.startswith(
        f'Traceback (most recent call last):\n  File "{tmp_path}/script.py", line 7, in <module>\n    kernel[1, 1](1)\n'
    )
    assert f"{tmp_path}/script.py:5: " in done.stderr
    assert done.stderr.count(", in ") == 1  # numba's own error names the file too


def test_threads_are_waited_for(tmp_path):
    write(
        tmp_path,
        """
        import threading
        import time
        import numpy as np
        from numba import cuda

        @cuda.jit
        def fill(x):
            x[cuda.grid(1)] = 1

        def work():
            time.sleep(0.1)
            fill[1, 4](np.zeros(4))

        threading.Thread(target=work).start()
        """,
    )
    done = python(tmp_path, "-m", "refsim", "run", "script.py")
    assert done.returncode == 0
    assert done.stderr == "refsim: 1 launch of 1 kernel on sim:sm_90: no findings\n"
