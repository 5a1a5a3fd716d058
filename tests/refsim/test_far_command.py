"""``refsim check --far``: who addresses memory in 32 bits is found, who cannot be asked says so."""

import pytest
from click.testing import CliRunner

from refsim.cli import main

KERNEL = '''
import numpy as np

def my_greedy(logits):
    """Reads rows by their address, in {integer}s."""
    rows, size = logits.shape
    far = logits.base is not None and not isinstance(logits.base, np.ndarray)
    step = logits.strides[0] // logits.itemsize if far else size
    memory = np.ndarray(((rows - 1) * step + size,), logits.dtype, logits.base) if far else logits.reshape(-1)
    with np.errstate(over="ignore"):
        starts = np.arange(rows).astype(np.{integer}) * np.int64(step).astype(np.{integer})
    place = (starts[:, np.newaxis].astype(np.int64) + np.arange(size)) % max(len(memory), 1)
    return np.argmax(memory[place], axis=1).astype(np.int32)
'''


def check(*arguments):
    return CliRunner().invoke(main, ["check", "--far", "--cases", "4", "--dtype", "float32", *arguments])


@pytest.fixture
def mine(tmp_path):
    def write(integer):
        file = tmp_path / "mine.py"
        file.write_text(KERNEL.format(integer=integer))
        return f"{file}:my_greedy"

    return write


@pytest.mark.parametrize(("integer", "code"), [("int64", 0), ("int32", 1)])
def test_functions_on_the_host(mine, integer, code):
    result = check("greedy", "--backend", mine(integer))
    assert result.exit_code == code, result.output
    assert ("greedy float32" in result.output and " far " in result.output) == (code == 1)


def test_a_simulated_device_refuses():
    result = check("softmax")
    assert result.exit_code == 3, result.output
    assert "a simulated device holds 1 GiB" in result.output


def test_a_process_of_its_own_is_refused(mine):
    result = check("greedy", "--backend", mine("int64"), "--isolated")
    assert result.exit_code == 2, result.output
    assert "--far and --isolated exclude each other" in result.output
