"""Warp operations, and instructions that mean nothing here."""

from __future__ import annotations

from refsim.dialect import Assert, Break, Const, Expr, Intrinsic, Warp, WarpBarrier
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.assembly.forms import Form
from refsim.frontends.cuda_cpp.assembly.machine import Machine
from refsim.frontends.cuda_cpp.assembly.parsing import Instruction
from refsim.frontends.cuda_cpp.intrinsics.warps import lane_number

SHUFFLES = {"up": "shfl_up_sync", "down": "shfl_down_sync", "bfly": "shfl_xor_sync", "idx": "shfl_sync"}
VOTES = {"all": "all_sync", "any": "any_sync", "uni": "eq_sync", "ballot": "ballot_sync"}


def _mask(m: Machine, text: object) -> Expr:
    return m.keep(folding.convert(m.read(str(text), "uint32"), "int64"))


def _warp_barrier(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    m.emit(WarpBarrier(_mask(m, i.operands[0]), m.where))


def _shuffle(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    """``shfl.sync d|p, a, b, c, mask``: c holds the segment mask above the clamp."""
    count = len(i.operands) - 4
    a, b, c, mask = i.operands[count:]
    mode = parts[0]
    control = m.known(c)
    segments, clamp = control >> 8 & 31, control & 31
    size = m.t.device.warp_size
    if size != 32 or clamp != (0 if mode == "up" else 31):
        raise m.unsupported(f"c = {control:#x}: only whole segments of a warp of 32 are supported")
    width = 32 - segments
    if width & (width - 1):
        raise m.unsupported(f"c = {control:#x}: segments of {width} lanes are not supported")
    value = m.keep(m.read(a, "uint32"))
    amount = m.keep(folding.convert(m.read(b, "uint32"), "int64"))
    moved = Warp(SHUFFLES[mode], (_mask(m, mask), value, amount, Const(width, type="int64")), m.where, type="uint32")
    if count == 2:
        m.write(i.operands[1], _in_segment(m, mode, amount, width))
    m.write(i.operands[0], m.keep(moved))


def _in_segment(m: Machine, mode: str, amount: Expr, width: int) -> Expr:
    """Whether the lane that a shuffle reads lies in the own segment."""
    last = folding.integer(width - 1, "int64")
    lane = folding.binary("&", folding.convert(lane_number(m.t), "int64"), last)
    if mode == "up":
        return folding.compare(">=", lane, amount)
    if mode == "idx":
        return Const(True, type="bool")
    source = folding.binary("+" if mode == "down" else "^", lane, amount)
    return folding.compare("<=", source, last)


def _vote(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    vote = m.keep(folding.convert(m.predicate(str(i.operands[1])), "int32"))
    ballot = parts[0] == "ballot"
    result = Warp(VOTES[parts[0]], (_mask(m, i.operands[2]), vote), m.where, type="int64" if ballot else "bool")
    value = m.keep(result)
    m.write(i.operands[0], folding.convert(value, "uint32") if ballot else value)


def _match(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    kind = {"b32": "uint32", "b64": "uint64"}[parts[0]]
    value = m.keep(m.read(i.operands[1], kind))
    found = m.keep(Warp("match_any_sync", (_mask(m, i.operands[2]), value), m.where, type="int64"))
    m.write(i.operands[0], folding.convert(found, "uint32"))


def _active(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    m.write(i.operands[0], folding.convert(m.keep(Warp("activemask", (), m.where, type="int64")), "uint32"))


def _elect(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    """``elect.sync d|p, mask``: the lowest lane of the mask."""
    mask = m.keep(m.read(i.operands[2], "uint32"))
    first = folding.binary("-", Intrinsic("ffs", "uint32", (mask,), type="int64"), folding.integer(1, "int64"))
    leader = m.keep(folding.convert(first, "uint32"))
    m.emit(WarpBarrier(folding.convert(mask, "int64"), m.where))
    m.write(i.operands[0], leader)
    m.write(i.operands[1], folding.compare("==", folding.convert(lane_number(m.t), "uint32"), leader))


def _trap(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    m.emit(Assert(Const(False, type="bool"), "trap", m.where))
    m.emit(Break("kernel"))


def _nothing(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    return None


TABLE: tuple[Form, ...] = (
    Form("bar.warp.sync", "mask", _warp_barrier),
    Form("shfl.sync.{up,down,bfly,idx}.b32", "d|p, a, b, c, mask", _shuffle),
    Form("vote.sync.{all,any,uni}.pred", "p, q, mask", _vote),
    Form("vote.sync.{ballot}.b32", "d, p, mask", _vote),
    Form("match.any.sync.{b32,b64}", "d, a, mask", _match),
    Form("activemask.b32", "d", _active),
    Form("elect.sync", "d|p, mask", _elect),
    Form("trap", "", _trap),
    Form("nanosleep.u32", "t", _nothing),
    Form("griddepcontrol.{wait,launch_dependents}", "", _nothing),
    Form("setmaxnreg.{inc,dec}.sync.aligned.u32", "n", _nothing),
    Form("prefetch[.global].{L1,L2}", "[a]", _nothing),
    Form("prefetchu.L1", "[a]", _nothing),
    Form("fence.proxy.async[.{global,shared::cta,shared::cluster}]", "", _nothing),
    Form("pmevent", "n", _nothing),
)
