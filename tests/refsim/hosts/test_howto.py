"""The page on running scripts shows what happens."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from refsim.cli import main
from refsim.hosts import Session
from refsim.hosts.script import run_script

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "howto" / "run_scripts.md").read_text(encoding="utf-8")


def block(language):
    (body,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return body


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "histogram.py"
    path.write_text(block("py"), encoding="utf-8")
    return path


def test_example_prints_what_the_page_shows(script):
    command, wanted = re.match(r"\$ refsim (.*)\n((?:.*\n)*)", block("console")).groups()
    result = CliRunner().invoke(main, shlex.split(command))
    assert result.exit_code == 1
    assert result.output.replace(f"{script.parent}/", "") == wanted


def test_cure_of_the_page_cures(script):
    lines = script.read_text(encoding="utf-8").splitlines()
    lines.insert(12, "  __syncthreads();")
    script.write_text("\n".join(lines), encoding="utf-8")
    result = CliRunner().invoke(main, ["run", "histogram.py", "1000"])
    assert result.exit_code == 0
    assert result.stderr == block("text")


def test_page_quotes_a_refusal_word_for_word(tmp_path, capsys):
    path = tmp_path / "script.py"
    path.write_text("import cupy\ncupy.fuse\n", encoding="utf-8")
    assert run_script(path, [], Session()) == 1
    (quoted,) = re.findall(r"names it, such as `(.*?)`", PAGE.replace("\n", " "))
    assert quoted in capsys.readouterr().err
