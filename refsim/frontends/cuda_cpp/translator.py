"""CUDA and HIP C++ to the kernel dialect: from a source text to one program per kernel."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import Any

from refsim.devices import Device
from refsim.dialect import PointerType, Program, Type, Var
from refsim.errors import KernelTypeError
from refsim.frontends.cuda_cpp import disk_cache
from refsim.frontends.cuda_cpp.clang import CompileError
from refsim.frontends.cuda_cpp.collection import collection_paused
from refsim.frontends.cuda_cpp.contraction import contract
from refsim.frontends.cuda_cpp.core import Frame, ModuleVariable
from refsim.frontends.cuda_cpp.disk_cache import Request
from refsim.frontends.cuda_cpp.flushing import flush_subnormals
from refsim.frontends.cuda_cpp.host_code import without_host_code
from refsim.frontends.cuda_cpp.options import Options, parse
from refsim.frontends.cuda_cpp.source import INCLUDE, NAME_PREFIX, Preprocessed, preprocess, syntax_tree
from refsim.frontends.cuda_cpp.statements import Statements
from refsim.frontends.cuda_cpp.tree import FUNCTIONS, Node, Tree
from refsim.frontends.cuda_cpp.types import CType, Function, Reference, Void
from refsim.frontends.cuda_cpp.values import InObject, LValue, Object
from refsim.recent import Recent

MOST_PASSES = 12
DEEPEST_NESTING = 20_000


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel as the source declares it.

    Attributes
    ----------
    name
        Its name.
    type
        Its C++ type.
    leaves
        Name of the program's parameter and byte offset of each number or pointer in it.
    bytes
        Its size.
    """

    name: str
    type: CType
    leaves: tuple[tuple[str, int, Type], ...]
    bytes: int


@dataclass
class Translation:
    """A translated kernel: its program, the types of its variables, and its parameters in C++.

    The program's parameters are the leaves of `parameters`, then a pointer for each of `variables`.
    """

    program: Program
    types: dict[str, Type]
    parameters: tuple[Parameter, ...] = ()
    variables: tuple[ModuleVariable, ...] = ()
    launch_bounds: int | None = None
    files: tuple[str, ...] = field(default=())


class Translator(Statements):
    """Translates one kernel."""

    def kernel(self, function: Node, name: str) -> Translation:
        """Translate a kernel; ask `wanted` whether it must be done again with more variables in memory."""
        place = self.place(function)
        self.kinds.scopes.append(function)
        signature = self.type_of(function)
        assert isinstance(signature, Function)
        if not isinstance(signature.result, Void):
            raise KernelTypeError(f"kernel {name} must return void", place)
        frame = Frame(function, place, signature.result, label="kernel")
        self.frames.append(frame)
        parameters = [self._kernel_parameter(node) for node in function.children("ParmVarDecl")]
        self._move_parameters(function, parameters)
        self.statement(function.children("CompoundStmt")[-1])
        self.frames.pop()
        self.kinds.scopes.pop()
        typed = (
            *((leaf, kind) for parameter in parameters for leaf, _, kind in parameter.leaves),
            *((name, PointerType(variable.dtype)) for name, variable in self.module_variables.items()),
        )
        allocations = tuple(self.allocations.values())
        bounds = self._launch_bounds(function)
        program = Program(
            name, place, typed, self.out, allocations, self.constants, wraps_negative=False, most_threads=bounds
        )
        names = {leaf for leaf, _ in typed}
        types = {variable: kind for variable, kind in self.types.items() if variable not in names}
        variables = tuple(self.module_variables.values())
        return Translation(program, types, tuple(parameters), variables, bounds)

    def _kernel_parameter(self, node: Node) -> Parameter:
        kind = self.type_of(node)
        if isinstance(kind, Reference):
            raise self.unsupported(f"kernel parameter {node.name!r} is a reference", node)
        name = self.fresh(node.name or "parameter")
        leaves: list[tuple[str, int, Type]] = []
        for leaf in self.ask(self.kinds.leaves, kind, node=node):
            leaves.append((f"{name}{leaf.path}", leaf.offset, self.ask(self.kinds.dialect, leaf.type, node=node)))
        holder = Object(kind, f"{node.id}:parameter", {o: Var(n, type=t) for n, o, t in leaves})
        self.types.update({n: t for n, _, t in leaves})
        self.variables[node.id] = InObject(holder, 0, kind)
        return Parameter(name, kind, tuple(leaves), self.kinds.bytes(kind))

    def _move_parameters(self, function: Node, parameters: list[Parameter]) -> None:
        """Parameters whose address is needed move to memory; those never written are known not to change."""
        shape = self._shape(function)
        self.in_memory |= shape.addressed
        for node, parameter in zip(function.children("ParmVarDecl"), parameters):
            source = self.variables[node.id]
            if f"{node.id}:parameter" in self.in_memory:
                target: LValue = self.allocate(parameter.type, node.name, "local", node)
                self.store(target, self.load(source, node), node)
                self.variables[node.id] = target
            elif node.id not in shape.changed:
                self.stable.update(leaf for leaf, _, _ in parameter.leaves)

    def _launch_bounds(self, function: Node) -> int | None:
        for attribute in function.children("CUDALaunchBoundsAttr"):
            frame = Frame(function, None, Void())
            self.frames.append(frame)
            value = self.number(attribute.inner[0])
            self.frames.pop()
            return int(getattr(value, "value", 0)) or None
        return None


@dataclass
class Unit:
    """A source that was parsed: its tree, and what its name expressions mean."""

    source: Preprocessed
    tree: Tree
    kernels: dict[str, Node]
    plain: dict[str, list[Node]]
    headers: tuple[str, ...]


_units: Recent[Any, tuple[Unit, dict[str, tuple[float, int]]]] = Recent(8)  # some MB each
_translations: Recent[Any, tuple[Translation, dict[str, tuple[float, int]]]] = Recent(256)


def translate_source(
    code: str, options: tuple[str, ...], names: list[str], device: Device, file: str | None = None
) -> dict[str, Translation]:
    """Translate kernels of a source.

    Parameters
    ----------
    code
        CUDA or HIP C++.
    options
        Options as NVRTC takes them.
    names
        Kernels as the source would name them: ``"kernel"``, ``"ns::kernel<float, 4>"``.
    device
        What it is compiled for: CUDA or HIP, and ``warpSize``.
    file
        Name of the source in findings; ``<kernel>`` if it has none.

    Returns
    -------
    A translation per name.

    Raises
    ------
    ClangError
        If there is no clang of version 17 or later.
    CompileError
        For source that clang rejects.
    UnsupportedError
        For a construct that refsim does not run; names it, with file and line.
    """
    expressions = tuple(names)
    return {name: translate_one(code, tuple(options), expressions, name, device, file) for name in names}


@collection_paused()
def translate_one(
    code: str, options: tuple[str, ...], expressions: tuple[str, ...], name: str, device: Device, file: str | None
) -> Translation:
    """Translate one kernel of a source that is parsed once for all its name expressions.

    `name` is one of the expressions, or a kernel that is no template. See `translate_source`.
    """
    request = Request(code, parse(options), expressions, name, device, file or "<kernel>")
    known = (request, os.environ.get("REFSIM_CLANG"))
    if known in _translations:
        translation, stamps = _translations[known]
        if all(_stamp(path) == stamp for path, stamp in stamps.items()):
            return translation
    stored = disk_cache.load(request)
    if stored is None:
        unit = _unit(code, request.options, expressions, device, request.file)
        translation, headers = _translate(unit, name, device, request.options), unit.headers
        disk_cache.store(request, translation, headers)
    else:
        translation, headers = stored
    _translations[known] = translation, {path: _stamp(path) for path in headers}
    return translation


@collection_paused()
def module_variable(
    code: str, options: tuple[str, ...], expressions: tuple[str, ...], name: str, device: Device, file: str | None
) -> ModuleVariable:
    """A ``__device__`` or ``__constant__`` variable of a source by its name, ``ns::name`` inside a namespace.

    Raises
    ------
    KeyError
        If there is none of that name.
    """
    parsed = parse(options)
    unit = _unit(code, parsed, expressions, device, file or "<kernel>")
    for node in unit.tree.declarations.values():
        spaces = [a.name for a in node.ancestors() if a.kind == "NamespaceDecl"]
        full = "::".join([*reversed(spaces), node.name])
        if node.kind == "VarDecl" and name in (full, node.get("mangledName")):
            translator = Translator(unit.tree, device, parsed, frozenset())
            translator.global_variable(node)
            for variable in translator.module_variables.values():
                return variable
    raise KeyError(f"there is no __device__ or __constant__ variable {name!r}")


@collection_paused()
def kernel_names(code: str, options: tuple[str, ...], device: Device, file: str | None = None) -> list[str]:
    """Names of the kernels of a source that are no templates."""
    return sorted(_unit(code, parse(options), (), device, file or "<kernel>").plain)


def _unit(code: str, options: Options, names: tuple[str, ...], device: Device, file: str) -> Unit:
    """The parsed source, from the cache if none of the files it includes has changed."""
    key = (code, options, names, device.name, file, os.environ.get("REFSIM_CLANG"))
    if key in _units:
        unit, stamps = _units[key]
        if all(_stamp(path) == stamp for path, stamp in stamps.items()):
            return unit
    try:
        source = preprocess(code, options, names, device, file)
        tree = Tree(syntax_tree(source, options, device), source)
    except CompileError:
        source, tree = without_host_code(code, options, names, device, file)
    included = [path for path in source.files if os.path.isfile(path) and not path.startswith(str(INCLUDE))]
    headers = tuple(sorted(path for path in included if path != file))
    unit = Unit(source, tree, _kernels(tree, names), _plain_kernels(tree), headers)
    _units[key] = unit, {path: _stamp(path) for path in headers}
    return unit


def _stamp(path: str) -> tuple[float, int]:
    try:
        status = os.stat(path)
    except OSError:
        return (0.0, -1)
    return (status.st_mtime, status.st_size)


def _kernels(tree: Tree, names: tuple[str, ...]) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for node in tree.root.children("VarDecl"):
        if not node.name.startswith(NAME_PREFIX):
            continue
        name = names[int(node.name.removeprefix(NAME_PREFIX))]
        reference = next(part for part in node.walk() if part.kind == "DeclRefExpr")
        function = tree.declaration(reference.get("referencedDecl")["id"])
        definition = tree.definition(function) if function is not None else None
        if definition is None or definition.kind not in FUNCTIONS:
            raise KernelTypeError(f"{name} is not a kernel with a body", tree.place(function or node))
        if not definition.has("CUDAGlobalAttr") and not (function is not None and function.has("CUDAGlobalAttr")):
            raise KernelTypeError(f"{name} is not a kernel: it lacks __global__", tree.place(definition))
        found[name] = definition
    return found


def _plain_kernels(tree: Tree) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in tree.declarations.values():
        outside = all(a.kind in ("TranslationUnitDecl", "NamespaceDecl", "LinkageSpecDecl") for a in node.ancestors())
        if node.kind == "FunctionDecl" and node.has("CUDAGlobalAttr") and node.has("CompoundStmt") and outside:
            found.setdefault(node.name, []).append(node)
    return found


def _translate(unit: Unit, name: str, device: Device, options: Options) -> Translation:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, DEEPEST_NESTING))
    try:
        return _translate_until_settled(unit, name, device, options)
    finally:
        sys.setrecursionlimit(limit)


def _translate_until_settled(unit: Unit, name: str, device: Device, options: Options) -> Translation:
    """Translate, again whenever a variable turns out to need an address."""
    in_memory: frozenset[str] = frozenset()
    function = unit.kernels.get(name)
    if function is None:
        candidates = unit.plain.get(name, [])
        if len(candidates) != 1:
            have = ", ".join([*unit.kernels, *unit.plain]) or "none"
            raise KernelTypeError(f"there is no kernel {name!r}, or several; kernels are: {have}")
        function = candidates[0]
    for _ in range(MOST_PASSES):
        translator = Translator(unit.tree, device, options, in_memory)
        translation = translator.kernel(function, function.name)
        if not translator.wanted:
            translation.program = _as_optioned(translation, options)
            translation.files = unit.source.files
            return translation
        in_memory |= translator.wanted
    raise RecursionError(f"kernel {name}: variables keep moving to memory")


def _as_optioned(translation: Translation, options: Options) -> Program:
    """The program with the float arithmetic that the options ask for."""
    program = translation.program
    if options.fmad:
        program = contract(program, translation.types)
    return flush_subnormals(program) if options.ftz else program
