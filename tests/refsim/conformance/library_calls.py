"""What adapters call of libraries that need a GPU, and the signatures of it, both read from source text.

``python tests/refsim/conformance/library_calls.py FOLDER…`` writes ``library_signatures.json`` beside this file, from
the libraries unpacked in these folders (``pip download --no-deps``, ``unzip``); nothing is imported.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
TABLE = HERE / "library_signatures.json"
ADAPTERS = HERE.parents[2] / "refsim" / "conformance" / "backends"
# Adapter and root package of each library, and the distribution that a package comes in.
LIBRARIES = {
    "liger": "liger_kernel",
    "flag_gems": "flag_gems",
    "fla": "fla",
    "flashinfer": "flashinfer",
    "aiter": "aiter",
    "vllm": "vllm",
}
DISTRIBUTIONS = {"fla": "fla_core", "flashinfer": "flashinfer_python", "aiter": "amd_aiter"}
# Methods that hand on to another one what they are given by keyword.
HANDED_ON = {"flashinfer.BatchDecodeWithPagedKVCacheWrapper.plan": "_plan_impl"}


@dataclass(frozen=True)
class Called:
    """One call: the function's full name, how many positional arguments (and whether more may be spread), keywords."""

    name: str
    line: int
    positional: int
    spread: bool
    keywords: tuple[str, ...]

    def problem(self, signature: inspect.Signature) -> str | None:
        """Why the call does not fit a signature, or None."""
        bind = signature.bind_partial if self.spread else signature.bind
        try:
            bind(*[None] * self.positional, **dict.fromkeys(self.keywords))
        except TypeError as error:
            return f"{self.name} at line {self.line}: {error}"
        return None


def calls(text: str, root: str) -> list[Called]:
    """Every call of a name of package ``root`` in an adapter's source; methods of objects that it makes too."""
    tree = ast.parse(text)
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known.update({alias.asname or alias.name.split(".")[0]: alias.name for alias in node.names})
        elif isinstance(node, ast.ImportFrom):
            known.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    found = []
    scopes = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for scope in [*scopes, ast.Module([node for node in tree.body if node not in scopes], [])]:
        inside = {**known, **_made(scope, known, root)}
        for node in ast.walk(scope):
            name = _dotted(node.func, inside) if isinstance(node, ast.Call) else None
            if isinstance(node, ast.Call) and name and name.split(".")[0] == root:
                plain = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
                keywords = tuple(word.arg for word in node.keywords if word.arg)
                found.append(Called(name, node.lineno, len(plain), len(plain) < len(node.args), keywords))
    return found


def _made(scope: ast.AST, known: dict[str, str], root: str) -> dict[str, str]:
    """Variables that hold objects of the library's classes, and the classes."""
    made = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            name = _dotted(node.value.func, known)
            if name and name.split(".")[0] == root and name.split(".")[-1][0].isupper():
                made[node.targets[0].id] = name
    return made


def _dotted(node: ast.expr, known: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value, known)
        return f"{before}.{node.attr}" if before else None
    return None


def parsed(text: str) -> inspect.Signature:
    """The signature that a line of the table says."""
    space: dict[str, object] = {}
    exec(f"def function({text}): ...", space)
    return inspect.signature(space["function"])  # type: ignore[arg-type]


def signature_text(folder: Path, name: str) -> str:
    """The parameters of a function, a class or a method by its full name, defaults as ``...``, without annotations."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        for path in (
            folder.joinpath(*parts[:length], "__init__.py"),
            folder.joinpath(*parts[:length]).with_suffix(".py"),
        ):
            if path.exists():
                return _parameters(folder, path, parts[length:], name)
    raise LookupError(f"{name} is not in {folder}")


def _parameters(folder: Path, path: Path, parts: list[str], name: str) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = path.relative_to(folder).with_suffix("").parts
    package = package[:-1] if package[-1] == "__init__" else package
    inside = package if path.name == "__init__.py" else package[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == parts[0]:
                    base = inside[: len(inside) - node.level + 1] if node.level else ()
                    module = ".".join([*base, *(node.module.split(".") if node.module else [])])
                    return signature_text(folder, ".".join([module, alias.name, *parts[1:]]))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == parts[0]:
            found = [other for other in tree.body if isinstance(other, ast.FunctionDef) and other.name == parts[0]]
            return _text(found[-1].args)
        if isinstance(node, ast.ClassDef) and node.name == parts[0]:
            method = parts[1] if len(parts) > 1 else "__init__"
            method = HANDED_ON.get(f"flashinfer.{node.name}.{method}", method)
            own = [other for other in node.body if isinstance(other, ast.FunctionDef) and other.name == method]
            arguments = own[-1].args
            arguments.args = arguments.args[1:]
            return _text(arguments)
    raise LookupError(f"{name} is not defined in {path}")


def _text(arguments: ast.arguments) -> str:
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None:
            argument.annotation = None
    arguments.defaults = [ast.Constant(...) for _ in arguments.defaults]
    arguments.kw_defaults = [None if default is None else ast.Constant(...) for default in arguments.kw_defaults]
    return ast.unparse(arguments)


def _version(folder: Path, root: str) -> str:
    (info,) = folder.glob(f"{DISTRIBUTIONS.get(root, root)}-*.dist-info")
    return info.name.removesuffix(".dist-info").replace("-", " ")


def main(folders: list[str]) -> None:
    """Write the table."""
    table = {}
    for adapter, root in LIBRARIES.items():
        folder = next(Path(name) for name in folders if (Path(name) / root).is_dir())
        names = sorted({called.name for called in calls((ADAPTERS / f"{adapter}.py").read_text(), root)})
        functions = {name: signature_text(folder, name) for name in names}
        table[adapter] = {"source": _version(folder, root), "functions": functions}
    TABLE.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
