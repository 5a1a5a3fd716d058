"""An operator's definition as one file of Python that needs nothing of ours: its own source, and what that uses."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from functools import cache
from types import ModuleType
from typing import Any

from oracle.operator import Operator
from refsim.conformance.exports import plain

# Their names mean those of `plain.py` in a file that stands alone.
OURS = ("oracle.formats", "oracle.signature", "oracle.choices")


def standalone_source(
    record: Operator, params: Mapping[str, Any], formats: Mapping[str, str], present: Sequence[str]
) -> str:
    """The source of a module with a function ``run``: the operator's inputs in order, to its outputs.

    Parameters
    ----------
    record : Operator
        What it computes: the float64 value of the definition, each output rounded once to its format.
    params : mapping
        All parameters; they become constants.
    formats : mapping
        The formats of inputs and outputs by name.
    present : sequence of str
        The inputs that ``run`` takes; the operator's other ones are absent.

    Returns
    -------
    source : str
        ``run`` takes tensors of PyTorch and returns such, on the same device; the work is done by NumPy in float64.
        It takes NumPy arrays, too, and then returns float64 arrays of the numbers, and arrays of integers.
    """
    parts = _Parts({*record.inputs, *(output.name for output in record.outputs), "given", "run"})
    stages = [parts.name_of(stage.function) for stage in record.stages]
    body = _run(record, stages, params, formats, present)
    for name in ("rounded", "numbers", "integers", "like"):
        if f"{name}(" in body:
            parts.name_of(getattr(plain, name))
    heading = "\n".join([f'"""{record.name}: {record.summary}"""', "", *parts.imports()])
    return "\n\n\n".join([heading, *parts.sources(), body]) + "\n"


def _run(
    record: Operator,
    stages: Sequence[str],
    params: Mapping[str, Any],
    formats: Mapping[str, str],
    present: Sequence[str],
) -> str:
    """The function that turns tensors into arrays, goes through the stages, and turns arrays into tensors."""
    lines = [f"def run({', '.join(present)}):", f"    given = {present[0]}"]
    for name, spec in record.inputs.items():
        reader = "integers" if spec.kind == "integer" else "numbers"
        lines.append(f"    {name} = {reader}({name})" if name in present else f"    {name} = None")
    lines.append("    with np.errstate(all='ignore'):")
    dtypes = {name: formats[source] for name, source in record.signature.dtype_arguments.items()}
    for stage, function in zip(record.stages, stages, strict=True):
        keywords = "".join(f", {name}={({**params, **dtypes})[name]!r}" for name in stage.params)
        names = ", ".join(output.name for output in stage.outputs)
        lines.append(f"        {names} = {function}({', '.join(stage.arrays)}{keywords})")
        lines += [f"        {out.name} = rounded({out.name}, {formats[out.name]!r})" for out in stage.outputs]
    results = [f"like(given, {out.name}, {formats[out.name]!r})" for out in record.outputs]
    return "\n".join([*lines, f"    return {', '.join(results)}"])


class _Parts:
    """What a file needs: functions, constants and imports, each found by following the names of those before."""

    def __init__(self, reserved: Set[str]) -> None:
        self._reserved = {*reserved, *dir(builtins)}
        self._names: dict[tuple[str, str], str] = {}
        self._sources: dict[str, str] = {}
        self._imports: set[str] = set()

    def sources(self) -> list[str]:
        """Definitions in an order in which each comes after what it uses."""
        return list(self._sources.values())

    def imports(self) -> list[str]:
        """The import statements that they need."""
        return sorted(self._imports, key=lambda line: (line.startswith("from"), line))

    def name_of(self, function: Callable[..., Any]) -> str:
        """The name in the file of a function of a module."""
        return self._named(sys.modules[function.__module__], function.__name__)

    def _named(self, module: ModuleType, name: str) -> str:
        node = _definitions(module).get(name)
        if isinstance(node, ast.ImportFrom):
            return self._imported(name, node)
        if isinstance(node, ast.Import):
            self._imports.add(ast.unparse(node))
            return name
        if node is None:
            raise LookupError(f"{module.__name__} defines no {name}")
        if module.__name__.startswith(OURS):
            module, node = plain, _definitions(plain)[name]
        key = module.__name__, name
        if key not in self._names:
            fresh = name
            while fresh in self._reserved:
                fresh += "_"
            self._reserved.add(fresh)
            self._names[key] = fresh
            self._sources[fresh] = self._rewritten(module, node, fresh)
        return self._names[key]

    def _imported(self, name: str, node: ast.ImportFrom) -> str:
        assert node.module is not None
        original = next(entry.name for entry in node.names if (entry.asname or entry.name) == name)
        if node.module.startswith(OURS):
            return self._named(plain, original)
        if node.module.startswith("oracle."):
            return self._named(sys.modules[node.module], original)
        self._imports.add(f"from {node.module} import {original}")
        return original

    def _rewritten(self, module: ModuleType, node: ast.stmt, fresh: str) -> str:
        """A definition without annotations and decorators, under its name in the file, as are all that it uses."""
        bare = _Bare().visit(ast.parse(ast.unparse(node)).body[0])
        if isinstance(bare, ast.FunctionDef) and module.__name__.startswith("oracle.vocabulary"):
            bare.body = _on_plain_arrays(bare.body, set())
        known = _definitions(module)
        local = _bound(bare)
        for part in ast.walk(bare):
            if isinstance(part, ast.Name) and part.id in known and part.id not in local:
                part.id = self._named(module, part.id)
        if isinstance(bare, ast.FunctionDef | ast.ClassDef):
            bare.name = fresh
        else:
            bare.targets[0].id = fresh
        return ast.unparse(ast.fix_missing_locations(bare))


class _Bare(ast.NodeTransformer):
    """Takes off annotations and decorators, and all of a docstring but its first line."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.decorator_list, node.returns = [], None
        doc = ast.get_docstring(node)
        if doc is not None:
            node.body[0] = ast.Expr(ast.Constant(doc.partition("\n")[0]))
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | None:
        if node.value is None:
            return None
        return ast.Assign([node.target], node.value)


def _on_plain_arrays(body: Sequence[ast.stmt], nothing: set[str]) -> list[ast.stmt]:
    """What is left of a word's body where no array carries errors; the names in `nothing` hold None."""
    left: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.Assign) and _calls(statement.value, "arithmetic_of"):
            nothing.update(target.id for target in statement.targets if isinstance(target, ast.Name))
            continue
        folded = _Decided(nothing).visit(statement)
        if isinstance(folded, ast.If) and isinstance(folded.test, ast.Constant):
            left += _on_plain_arrays(folded.body if folded.test.value else folded.orelse, nothing)
        else:
            for name in ("body", "orelse"):
                if inner := getattr(folded, name, None):
                    setattr(folded, name, _on_plain_arrays(inner, nothing))
            left.append(folded)
        if left and isinstance(left[-1], ast.Return | ast.Raise):
            break
    return left


def _calls(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


class _Decided(ast.NodeTransformer):
    """Conditions whose outcome on plain arrays is known, and what follows from them."""

    def __init__(self, nothing: set[str]) -> None:
        self._nothing = nothing

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        of_errors = _calls(node, "isinstance") and ast.unparse(node.args[1]) == "ErrorBounded"
        return ast.Constant(False) if of_errors else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if isinstance(node.left, ast.Name) and node.left.id in self._nothing and isinstance(node.ops[0], ast.Is):
            return ast.Constant(True)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        known = isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant)
        return ast.Constant(not node.operand.value) if known else node  # type: ignore[attr-defined]

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        decisive = isinstance(node.op, ast.Or)
        known = [value for value in node.values if isinstance(value, ast.Constant)]
        return ast.Constant(decisive) if any(bool(value.value) is decisive for value in known) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node


def _bound(node: ast.AST) -> set[str]:
    """Names that a definition binds itself."""
    names = {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
    if isinstance(node, ast.FunctionDef):
        names |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        names |= {part.name for part in ast.walk(node) if isinstance(part, ast.FunctionDef) and part is not node}
    return names


@cache
def _definitions(module: ModuleType) -> Mapping[str, ast.stmt]:
    """What a module defines and imports, by name."""
    found: dict[str, ast.stmt] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.update({entry.asname or entry.name: node for entry in node.names})
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node
    return found
