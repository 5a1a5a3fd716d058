"""A call of a provided function, and what translates it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from refsim.dialect import Const, Expr
from refsim.errors import UnsupportedError
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.types import CType, Scalar, Void
from refsim.frontends.cuda_cpp.values import LValue, Value

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations


@dataclass(frozen=True, eq=False)
class Call:
    """A call: its node, the function's name, the arguments' values and nodes, and the result type."""

    node: Node
    name: str
    arguments: list[Any]
    nodes: list[Node]
    result: CType

    @property
    def dtype(self) -> str:
        """Dialect type of a result that is a number."""
        if not isinstance(self.result, Scalar):
            raise TypeError(f"{self.name} does not return a number")
        return self.result.dtype

    @property
    def is_void(self) -> bool:
        """True for a function without a result."""
        return isinstance(self.result, Void)


Handler = Callable[["Declarations", Call], "Value | LValue"]


def numbers(t: Declarations, call: Call, *dtypes: str) -> list[Expr]:
    """The arguments as numbers of the given dialect types."""
    return [t.scalar(value, dtype, call.node) for value, dtype in zip(call.arguments, dtypes)]


def known(t: Declarations, value: Value, what: str, call: Call) -> int:
    """An argument that must be a known integer."""
    expression = t.expression(value, call.node)
    if not isinstance(expression, Const):
        raise UnsupportedError(f"{call.name}: {what} must be known at translation", t.place(call.node))
    return int(expression.value)
