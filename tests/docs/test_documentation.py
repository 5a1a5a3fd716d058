"""What the documentation shows is what happens, and what it lists is what there is."""

import inspect
import json
import re
import runpy
import shlex
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

import refsim
from refsim.checks.findings import CHECK_GROUPS, KINDS
from refsim.cli import main
from refsim.conformance.verdicts import Verdict
from refsim.frontends.cuda_cpp.assembly.special import NAMES as SPECIAL_REGISTERS
from refsim.frontends.cuda_cpp.assembly.table import GROUPS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = [page for page in PAGES if "```python\n# " in page.read_text(encoding="utf-8")]
FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?P<target>[^)#* ]+)\)")


def blocks(page):
    return [(match["language"], match["body"]) for match in FENCE.finditer(page.read_text(encoding="utf-8"))]


def page_name(page):
    return str(page.relative_to(ROOT))


def shown(text, folder):
    """Output as the documentation prints it: without the test's folder and without spaces at line ends."""
    return "\n".join(line.rstrip() for line in text.replace(f"{folder}/", "").splitlines()).rstrip()


def same(printed, wanted):
    """Equal; in the documentation a line of … stands for any number of lines, … within a line for any text."""
    lines = [
        "(.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + "\n"
        for line in wanted.rstrip().splitlines()
    ]
    return re.fullmatch("".join(lines), "".join(f"{line}\n" for line in printed.rstrip().splitlines())) is not None


def unmeasured(table):
    """A report without its margins, whose last digits are the processor's, and without the padding of columns."""
    return re.sub(r"[\d.e-]+ +(?=[A-Z]{4})", "margin ", re.sub(r" +", " ", table)).strip()


def patch(change, folder):
    """Make a change that a page shows as a diff, without line numbers, in a file that it showed before."""
    name, *hunks = re.split(r"^@@.*\n", change, flags=re.MULTILINE)
    path = folder / re.search(r"^\+\+\+ (\S+)", name, re.MULTILINE)[1]
    content = path.read_text(encoding="utf-8")
    for hunk in hunks:
        lines = [(line[:1], line[1:]) for line in hunk.splitlines(keepends=True)]
        old, new = ("".join(text or "\n" for sign, text in lines if sign != gone) for gone in "+-")
        assert content.count(old) == 1, f"the page has no text\n{old}\nbefore this change"
        content = content.replace(old, new)
    path.write_text(content, encoding="utf-8")


def forget_modules(folder):
    """The next command reads the files of the page anew, as a process of its own would."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(folder)):
            del sys.modules[name]


@pytest.mark.parametrize("page", EXAMPLES, ids=page_name)
def test_examples_print_what_the_page_shows(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    ran = 0
    output = ""
    for language, body in blocks(page):
        if language == "python" and not body.startswith(">>>"):  # a session is run where its page belongs
            name = re.match(r"# (\w+\.py)\n", body)
            assert name, f"an example starts with the name of its file:\n{body}"
            path = tmp_path / name[1]
            path.write_text(body, encoding="utf-8")
            capsys.readouterr()
            runpy.run_path(str(path))
            output = shown(capsys.readouterr().out, tmp_path)
            ran += 1
        elif language == "toml" and body.startswith("# "):
            (tmp_path / body.split()[1]).write_text(body, encoding="utf-8")
        elif language == "text" and ran:
            assert same(output, body), f"{page_name(page)} shows\n{body}\nbut this is printed:\n{output}"
        elif language == "diff":
            patch(body, tmp_path)
        elif language == "console":
            for command, wanted, status in re.findall(
                r"^\$ (.*)\n((?:(?!\$ ).*\n)*)(?:\$ echo \$\?\n(\d+)\n)?", body, re.MULTILINE
            ):
                if not command.startswith("refsim "):
                    continue  # installation: .ci/run runs these
                forget_modules(tmp_path)
                result = CliRunner().invoke(main, shlex.split(command)[1:])
                assert result.exit_code == int(status or 0), result.output
                printed = unmeasured(shown(result.stdout, tmp_path))
                assert same(printed, unmeasured(wanted)), f"prints\n{result.stdout}"
    assert ran


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page):
    for match in LINK.finditer(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if not match["target"].startswith("http"):
            assert (page.parent / match["target"]).exists(), match["target"]


def test_readme_and_ci_run_the_same_two_commands():
    commands = [
        "python -m pip install -e . && refsim check",
        "python -m pip install -e '.[test]' && python -m pytest -n 2",
    ]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for command in commands:
        assert f"$ {command}\n" in readme
        assert f'step "{command}"\n' in script


def test_command_line_reference_is_complete():
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    sections = dict.fromkeys(main.commands, "")
    for section in page.split("\n## ")[1:]:
        name = re.match(r"`refsim (\w+)", section)
        if name:
            sections[name[1]] = section
    for name, command in main.commands.items():
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("-"):
                    assert f"`{option}`" in sections[name], f"{name} {option}"
            default = parameter.default
            if name != "replay" and isinstance(default, int | str) and not isinstance(default, bool):
                rows = sections[name].splitlines()
                (row,) = [line for line in rows if line.startswith(f"| `{parameter.opts[0]}`")]
                assert str(default) in row, row


def test_findings_reference_is_complete():
    page = (ROOT / "docs" / "reference" / "findings.md").read_text(encoding="utf-8")
    for field in fields(refsim.Finding):
        assert f"`{field.name}`" in page, field.name
    for name in inspect.signature(refsim.launch).parameters:
        assert f"`{name}`" in page, name
    for group, kinds in CHECK_GROUPS.items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{group}`")]
        assert set(re.findall(r"`(\w+)`", row)) == {group, *kinds}
    howto = (ROOT / "docs" / "howto" / "read_findings.md").read_text(encoding="utf-8")
    assert all(f"| `{kind}`" in howto for kind in KINDS)


def test_json_reference_is_complete():
    from refsim.conformance import reports

    page = (ROOT / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
    schema = json.loads((Path(reports.__file__).parent / "check.schema.json").read_text(encoding="utf-8"))
    parts = [schema, *schema["$defs"].values()]
    keys = {key for part in parts for key in part.get("properties", {})}
    assert {"results", "worst_margin", "around", "places"} <= keys
    assert schema["$id"] == schema["properties"]["schema"]["const"] == reports.SCHEMA
    assert reports.SCHEMA in page
    for key in keys:
        assert f"`{key}`" in page, key
    for verdict in Verdict:
        assert f"`{verdict.value}`" in page
        assert verdict.value in (ROOT / "docs" / "howto" / "judge_your_kernel.md").read_text(encoding="utf-8")


def test_architecture_names_files_that_exist():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/.]+(?:\.py|\.json|/))`", page))
    assert len(named) > 10
    for name in named:
        assert (ROOT / name).exists() or (ROOT / "refsim" / name).exists(), name


def test_the_ptx_page_lists_the_instructions_of_the_table():
    text = (ROOT / "docs" / "reference" / "ptx.md").read_text(encoding="utf-8")
    listed = {}
    for title, section in re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
        rows = re.findall(r"^\| `(.*?)` \| (?:`(.*)`)? ?\| (?:sm_(\d+))? ?\|$", section, re.MULTILINE)
        listed[title] = [(name, operands.replace("\\|", "|"), int(since or 0)) for name, operands, since in rows]
    registers = listed.pop("Special registers")
    assert not registers
    assert listed == {
        title: [(form.pattern, form.operands, form.capability) for form in forms] for title, forms in GROUPS.items()
    }
    assert re.findall(r"`(%[\w.]+)`", text) == list(SPECIAL_REGISTERS)


def test_operators_page_is_what_the_command_prints():
    page = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    again = "run: refsim ops --format markdown > docs/operators.md"
    assert CliRunner().invoke(main, ["ops", "--format", "markdown"]).stdout == page, again
