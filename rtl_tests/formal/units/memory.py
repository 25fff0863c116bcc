"""The memory tile: passes of the buffers in order, and a page table that gives no page to two buffers and gets every
page back."""

from functools import partial

from amaranth.hdl import Array, Cat, Mux, Signal

from step_hw.beat import BeatLayout
from step_hw.units.streamify import LOOPS

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]

LAYOUT = BeatLayout(1)
KEPT = 8
"""Beats that the reference model can keep: more than frames, links and references hold."""


def _harness(module, frames: int, page_frames: int, references: int, repeat: int, readers: int = 1) -> Harness:
    """With ``readers`` streamifies of the same passes."""
    unit = module.MemoryTile(frames, page_frames, references, LAYOUT, readers)
    registers = {"rank": 1, "uses": readers, "hollow": 0, "n": 1, "affine": 0}
    registers |= {f"{name}{k}": 1 for name in ("count", "stride") for k in range(LOOPS)}     # ignored
    c = repeat - 1          # passes are a dimension
    h = Harness(unit, registers | {"c": c, "repeat": repeat})
    m, i, p = h.m, unit.in0, unit.in0.payload
    pages = frames // page_frames
    rank = h.constant("rank", 4)
    h.assume("few dimensions", (rank != 0) & (rank <= 2))
    h.legal(0, rank)
    accepted = i.valid & i.ready

    length = Signal(range(frames + 1))     # elements of the open buffer
    with m.If(accepted):
        m.d.sync += length.eq(Mux(p.stop != 0, 0, length + ~p.empty))
    h.assume("a buffer fits", ~i.valid | p.empty | (length < frames))

    # Beats that may be read again.
    kept = Array(Signal(LAYOUT, name=f"kept{k}") for k in range(KEPT))
    newest = Signal(range(KEPT))
    with m.If(accepted):
        m.d.sync += [kept[newest].eq(p), newest.eq(newest + 1)]
    for k in range(readers):
        _passes(h, k, kept, repeat, "" if readers == 1 else f"out{k} ")
        h.grammatical(k, rank + c)
    h.no_error()

    # Pages: whose they are and of how many uses, from the ports.
    uses = [Signal(range(readers + 1), name=f"uses{k}") for k in range(pages)]
    owned = Cat(left != 0 for left in uses)
    owner = Array(Signal(len(unit.owner), name=f"owner{k}") for k in range(pages))
    for k, left in enumerate(uses):
        ended = sum(getattr(unit, f"release{r}") & (left != 0) & (owner[k] == getattr(unit, f"released{r}"))
                    for r in range(readers))
        with m.If(unit.take & (unit.page == k)):
            m.d.sync += [left.eq(readers), owner[k].eq(unit.owner)]
        with m.Else():
            m.d.sync += left.eq(left - ended)
    mine = owned.bit_select(unit.written, 1) & (owner[unit.written] == unit.owner)
    h.prove("no page for two buffers", ~unit.take | ~owned.bit_select(unit.page, 1))
    h.prove("a buffer writes its own pages", ~unit.write | mine | unit.take & (unit.page == unit.written))
    h.prove("used pages are counted", unit.used >= sum(owned))
    h.within("freed pages come back", (unit.used != sum(owned)), pages + 1)
    h.moves(stall=pages + 4)
    for k, o in enumerate(unit.outs):
        complete = _complete(m, unit, k, repeat)
        name = "a whole buffer leaves" if readers == 1 else f"out{k} sends a whole buffer"
        h.within(name, complete & o.ready & ~o.valid & ~accepted, 8)
    return h


def _passes(h: Harness, k: int, kept: Array, repeat: int, name: str) -> None:
    """Output ``k`` is passes over what has been accepted: the beats since the oldest that it reads again."""
    m, unit = h.m, h.unit
    i, o = unit.in0, unit.outs[k]
    accepted, leaves = i.valid & i.ready, o.valid & o.ready
    oldest, at = (Signal(range(KEPT), name=f"{what}{k}") for what in ("oldest", "at"))
    count = Signal(range(KEPT + 1), name=f"count{k}")
    again = Signal(name=f"again{k}")                        # the first of two passes is over
    h.prove(f"{name}keeps no more than it has room for", (count < KEPT) | ~accepted)
    wanted = kept[(oldest + at)[:len(at)]]
    ends = wanted.done | (wanted.stop != 0)
    more = Signal(name=f"more{k}")
    m.d.comb += more.eq(ends & ~wanted.done & ~again & (repeat == 2))
    expected = Signal(LAYOUT, name=f"expected{k}")
    m.d.comb += expected.eq(wanted)
    with m.If(ends & ~wanted.done):
        m.d.comb += expected.stop.eq(Mux(more, 1, wanted.stop + repeat - 1))
    gone = leaves & ends & ~more
    with m.If(leaves):
        m.d.sync += [at.eq(Mux(ends, 0, at + 1)), again.eq(more | again & ~ends)]
    with m.If(gone):
        m.d.sync += oldest.eq(oldest + at + 1)
    m.d.sync += count.eq(count + accepted - Mux(gone, at + 1, 0))
    h.prove(f"{name}passes of the buffers, in order", ~leaves | (at < count) & (
        o.payload.as_value() == expected.as_value()))


def _complete(m, unit, k: int, repeat: int):
    """The oldest buffer of output ``k`` is complete: more buffers were closed (or done accepted) than have left."""
    i, o = unit.in0, unit.outs[k]
    closed = Signal(range(KEPT + 1), name=f"closed_buffers{k}")
    enters = i.valid & i.ready & (i.payload.done | (i.payload.stop != 0))
    final = Signal(name=f"final_beat{k}")
    passes = Signal(name=f"passes_over{k}")
    end = o.valid & o.ready & (o.payload.done | (o.payload.stop != 0))
    m.d.comb += final.eq(end & (o.payload.done | (repeat == 1) | passes))
    with m.If(end):
        m.d.sync += passes.eq(~final)
    m.d.sync += closed.eq(closed + enters - final)
    return closed != 0


PAD, BUF, READ = (f"step_hw.units.{name}" for name in ("scratchpad", "bufferize", "streamify"))

FAULTS = (
    Fault("a page is given back at once", "give.eq(dead.any() & has_page)", "give.eq(w.take)", PAD),
    Fault("the last page is not given back", "ends.eq(((walk_page + 1) << shape.offset_bits) >= length[now])",
          "ends.eq(((walk_page + 2) << shape.offset_bits) >= length[now])", PAD),
    Fault("a page taken again stays in the queue", "with m.If(w.take & reuse):", "with m.If(0):", PAD),
    Fault("a page begins one element late", "needs_page = fused & (offset == 0)", "needs_page = fused & (offset == 1)",
          BUF),
    Fault("one element less than there are", "w.length.eq(count + fused)", "w.length.eq(count)", BUF),
    Fault("the place is not put back after a pass", "m.d.sync += [at[k].eq(0), start[k].eq(0)]",
          "m.d.sync += [at[k].eq(0), start[k].eq(start[k])]", READ),
    Fault("a pass too few", "(passes + 1 >= cfg.repeat)", "(passes + 2 >= cfg.repeat)", READ),
    Fault("a stage that is full is overwritten", "wants.eq(present & good & (~full | o.ready))",
          "wants.eq(present & good)", READ),
)

SHARED_FAULTS = (
    Fault("the first use frees the buffer", "(ended != 0) & (made <= ended)", "ended != 0", PAD),
    Fault("two are served at once", "m.d.comb += [read.addr.eq(addresses[k]), p.grant.eq(p.request)]",
          "m.d.comb += [read.addr.eq(addresses[k]), *(r.grant.eq(r.request) for r in self.reads)]", PAD),
    Fault("the other's frame", "p.frame.eq(Mux(fresh, read.data, kept))", "p.frame.eq(read.data)", PAD),
    Fault("a read without a grant", "fire.eq(wants & (~reads | p.grant))", "fire.eq(wants)", READ),
    Fault("a page is given back at once", "give.eq(dead.any() & has_page)", "give.eq(w.take)", PAD),
)

CASES = (
    Case("bufferize, scratchpad, streamify: 2 pages of 1, one pass", "rtl_tests.formal.memory",
         partial(_harness, frames=2, page_frames=1, references=2, repeat=1), 9, None, 5,
         tuple(f for f in FAULTS if "pass" not in f.what and "late" not in f.what)),
    Case("bufferize, scratchpad, streamify: 2 pages of 2, two passes", "rtl_tests.formal.memory",
         partial(_harness, frames=4, page_frames=2, references=2, repeat=2), 8, None, 5,
         tuple(f for f in FAULTS if "last page" not in f.what)),
    Case("bufferize, scratchpad, 2 streamifies: 2 pages of 1, one pass", "rtl_tests.formal.memory",
         partial(_harness, frames=2, page_frames=1, references=2, repeat=1, readers=2), 8, None, 4, SHARED_FAULTS),
)
