"""Records as arguments of kernels in scripts: copied to the device and back, as numba.cuda does."""

from refsim.hosts import Session, run_script

SCRIPT = """
import numpy as np
from numba import cuda

rows = np.zeros(3, np.dtype([("a", "f4"), ("b", "i8")], align=True))

@cuda.jit
def one(record):
    record.a = 2.5
    record.b += 7

@cuda.jit
def many(records):
    i = cuda.grid(1)
    records[i].b += i

one[1, 1](rows[1])
device = cuda.to_device(rows)
many[1, 3](device)
many[1, 3](rows)
print(rows.tolist(), device.copy_to_host()["b"].tolist())
"""


def test_records_are_copied_back(tmp_path, capsys):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    assert run_script(path, [], Session()) == 0
    assert "[(0.0, 0), (2.5, 8), (0.0, 2)] [0, 8, 2]" in capsys.readouterr().out
