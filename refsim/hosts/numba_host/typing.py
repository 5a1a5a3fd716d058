"""numba's own type inference, without the code generation that follows it.

It gives device functions with a signature their return types, and errors of kernels numba's own words.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any


def typed(function: Any, return_type: Any, args: tuple[Any, ...], **options: Any) -> Any:
    """What numba's compiler would return, as far as the types go: for ``numba.cuda.compiler.compile_cuda``.

    Raises
    ------
    numba's errors
        Where it would not compile the function.
    """
    from numba.cuda import utils
    from numba.cuda.compiler import compile_extra
    from numba.cuda.descriptor import cuda_target
    from numba.cuda.flags import CUDAFlags

    flags = CUDAFlags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.inline = options.get("inline", "never")
    flags.error_model = "python" if options.get("debug") else "numpy"
    with utils.numba_target_override():
        return compile_extra(
            typingctx=cuda_target.typing_context, targetctx=cuda_target.target_context, func=function, args=args,
            return_type=return_type, flags=flags, locals={}, pipeline_class=_typing_pipeline(),
        )  # fmt: skip


def numba_error(function: Any, args: tuple[Any, ...], debug: bool) -> Exception | None:
    """The error that numba has for a kernel with arguments of these types; None if it has none."""
    from numba.cuda import types
    from numba.cuda.core.errors import NumbaError

    try:
        typed(function, types.void, args, debug=debug)
    except (NumbaError, TypeError, NotImplementedError) as error:
        return error
    return None


@cache
def _typing_pipeline() -> Any:
    from numba.cuda.compiler import CUDACompiler
    from numba.cuda.core.compiler_machinery import LoweringPass, PassManager, register_pass
    from numba.cuda.core.typed_passes import AnnotateTypes, IRLegalization
    from numba.cuda.typing import signature

    @register_pass(mutates_CFG=False, analysis_only=True)
    class TypesOnly(LoweringPass):  # type: ignore[misc]
        """The end of a compilation that needs no code."""

        _name = "refsim_types_only"

        def __init__(self) -> None:
            LoweringPass.__init__(self)

        def run_pass(self, state: Any) -> bool:
            """Keep the signature."""
            state.cr = SimpleNamespace(
                signature=signature(state.return_type, *state.args),
                type_annotation=state.type_annotation,
                objectmode=False,
                entry_point=None,
                fndesc=None,
                library=_NoCode(),
                target_context=_NoCode(),
                metadata={},
            )
            return True

    class TypingPipeline(CUDACompiler):  # type: ignore[misc]
        """numba's pipeline up to the types."""

        def define_cuda_lowering_pipeline(self, state: Any) -> Any:
            """Stop before code is generated."""
            manager = PassManager("refsim_types")
            manager.add_pass(IRLegalization, "ensure IR is legal prior to lowering")
            manager.add_pass(AnnotateTypes, "annotate types")
            manager.add_pass(TypesOnly, "keep the types")
            manager.finalize()
            return manager

    return TypingPipeline


class _NoCode:
    """Where numba keeps compiled functions; there are none."""

    def insert_user_function(self, *_args: Any) -> None:
        """Nothing to keep."""

    def __getattr__(self, name: str) -> Any:
        from refsim.hosts.missing import NotSimulatedError
        from refsim.hosts.numba_host.compiling import NO_COMPILER

        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSimulatedError(f"{name} of a compiled numba.cuda function", NO_COMPILER)
