"""Special registers: indices of the thread, its warp, and clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refsim.dialect import Assign, Binary, Const, Expr, Var
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.intrinsics.warps import lane_number

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations

INDICES = {"tid": "threadIdx", "ntid": "blockDim", "ctaid": "blockIdx", "nctaid": "gridDim"}
LANE_MASKS = ("eq", "lt", "le", "gt", "ge")
CLOCKS = ("clock", "clock64", "globaltimer")
NAMES = (
    *(f"%{name}.{axis}" for name in INDICES for axis in "xyz"),
    "%laneid", "%warpid", "%nwarpid",
    *(f"%lanemask_{name}" for name in LANE_MASKS),
    *(f"%{name}" for name in CLOCKS),
)  # fmt: skip


def special_register(t: Declarations, text: str) -> Expr | None:
    """Value of a special register; None for another name."""
    name = text.replace("%%", "%")
    if name not in NAMES:
        return None
    name = name[1:]
    if "." in name:
        base, _, axis = name.partition(".")
        return _index(t, f"{INDICES[base]}.{axis}")
    if name == "laneid":
        return folding.convert(lane_number(t), "uint32")
    if name == "warpid":
        return _warps(t, _thread(t))
    if name == "nwarpid":
        last = folding.integer(t.device.warp_size - 1, "uint32")
        return _warps(t, folding.binary("+", block_threads(t), last))
    if name in CLOCKS:
        return _clock(t, "uint32" if name == "clock" else "uint64")
    lane, one = folding.convert(lane_number(t), "uint32"), folding.integer(1, "uint32")
    own = folding.binary("<<", one, lane)
    below = folding.binary("-", own, one)
    upto = folding.binary("|", below, own)
    return {
        "eq": own, "lt": below, "le": upto, "gt": folding.unary("~", upto), "ge": folding.unary("~", below),
    }[name.removeprefix("lanemask_")]  # fmt: skip


def _index(t: Declarations, name: str) -> Expr:
    t.stable.add(name)
    return Var(name, type="uint32")


def block_threads(t: Declarations) -> Expr:
    """Number of threads of a block."""
    x, y, z = (_index(t, f"blockDim.{axis}") for axis in "xyz")
    return folding.binary("*", folding.binary("*", x, y), z)


def _thread(t: Declarations) -> Expr:
    x, y, z = (_index(t, f"threadIdx.{axis}") for axis in "xyz")
    row = folding.binary("+", folding.binary("*", z, _index(t, "blockDim.y")), y)
    return folding.binary("+", folding.binary("*", row, _index(t, "blockDim.x")), x)


def _warps(t: Declarations, threads: Expr) -> Expr:
    return folding.binary(">>", threads, folding.integer(t.device.warp_size.bit_length() - 1, "uint32"))


def _clock(t: Declarations, kind: str) -> Expr:
    """A clock that ticks whenever it is read."""
    t.types.setdefault("clock@", "int64")
    now = Var("clock@", type="int64")
    t.out.append(Assign("clock@", Binary("+", now, Const(1, type="int64"), type="int64")))
    return t.temporary(folding.convert(now, kind))
