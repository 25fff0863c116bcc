"""Accum: folds the dimensions above the inner ones into a state that leaves when they close."""

from amaranth.hdl import Const, Module, Mux, Signal

from ..beat import STOP_WIDTH
from ..compute import FoldUnit, Position

__all__ = ["Accum"]


class Accum(FoldUnit):
    """Hardware of ``step_lang.ops.accum`` (docs/DESIGN.md, section 6).

    Join, contribution pipeline, read-modify-write of the state memory, drain. The state is a tensor of
    n1 x n0 elements (``inner`` = c of whose dimensions are used). Every element is folded into the entry of its
    position. When the element (or bare stop) with stop s >= rank + inner has been folded, a drain emits
    entries 0 .. n1 * n0 - 1, one a cycle, with inner stops by position and s - rank on the last. An empty group drains
    ``init``. The next fold starts at once and chases the drain: it overwrites an entry in the cycle at whose end the
    drain has let it go, or later. There is one drain at a time; done leaves through it too, so that it comes last.

    Parameters (``UnitSpec.params`` of kinds "accum" and "scan")
    ------------------------------------------------------------
    function, in_types, out_type, tile, rows_per_cycle, k_per_cycle : as for ``map``; ``out_type`` is the state's
    entries : elements the state memory holds (1 = a register); n1 * n0 <= entries is the unit graph builder's to check,
        and EXHAUSTED when it is not so
    init : bit pattern of the state's elements before the first fold (``0`` for a sum, minus infinity for a maximum)

    ========== ===== ===================================================
    register   width meaning
    ========== ===== ===================================================
    rank       4     dimensions folded (b)
    inner      2     inner dimensions of the state (c): 0, 1 or 2
    n1, n0     12    inner sizes, n0 innermost; 1 when unused
    ========== ===== ===================================================

    Errors: MISALIGNED (inputs disagree), SHAPE (a stop that the inner sizes do not allow), EXHAUSTED (n1 * n0 >
    entries), STOP_RANGE (done inside a fold).
    Latency (closing beat to first beat out) and interval: ``step_lang.timing.compute_timing("accum", params)``.
    ``state``: bit 0 draining, bit 1 a fold has begun, bit 2 the token before the state waits for the drain.
    """

    kind = "accum"

    def elaborate(self, platform):
        m = Module()
        o, rank, inner = self.out0, self.cfg.rank, self.cfg.inner
        en = Signal()
        go = Signal()
        valid, token, position, state = self._fold(m, en)
        started = Signal()
        wrong = self._check(m, valid, token, position, started)
        m.d.comb += en.eq(~valid | go)

        draining = Signal()
        drain_done = Signal()
        drain_init = Signal()
        drain_stop = Signal(STOP_WIDTH)
        m.submodules.drain = drain = Position(self.entries)
        drain_last = Signal()
        free = Signal()
        passed = Signal()
        m.d.comb += [
            *self._sizes(drain),
            drain_last.eq(drain_done | drain.last),
            drain.next.eq(draining & o.ready & ~drain_done),
            free.eq(~draining | (drain_last & o.ready)),
            # The entry at this position has left, or leaves in this cycle.
            passed.eq(~draining | (drain.index > position.index) | ((drain.index == position.index) & o.ready)),
        ]

        closing = Signal()
        element = Signal()
        complete = Signal()
        leave = Signal()
        m.d.comb += [
            closing.eq(token.stop >= rank + inner),
            element.eq(~token.empty),
            # An element that closes stands at the last position, which has passed only when the drain is over.
            go.eq(~wrong & Mux(element, passed, free | ~(closing | token.done))),
            state.first.eq(~started),
            state.write.eq(valid & go & element),
            complete.eq(valid & go & token.last),
            position.next.eq(complete & element),
            leave.eq(complete & (token.done | (closing & (position.last | token.empty)))),
        ]
        with m.If(leave):
            m.d.sync += started.eq(0)
        with m.Elif(position.next & position.last):
            m.d.sync += started.eq(1)

        with m.If(leave):
            m.d.sync += [
                draining.eq(1),
                drain_done.eq(token.done),
                drain_init.eq(token.empty & ~started),
                drain_stop.eq(token.stop - rank),
            ]
        with m.Elif(draining & o.ready & drain_last):
            m.d.sync += draining.eq(0)

        m.d.comb += [
            state.read_index.eq(drain.index),
            o.valid.eq(draining),
            self.state.eq(draining | started << 1 | (valid & ~go) << 2),
        ]
        with m.If(drain_done):
            m.d.comb += [o.payload.empty.eq(1), o.payload.done.eq(1)]
        with m.Else():
            m.d.comb += [
                o.payload.data.eq(Mux(drain_init, Const(self.init_tile, self.width), state.read_data)),
                o.payload.rows.eq(Mux(drain_init, self.max_rows, state.read_rows) if self.max_rows else 1),
                o.payload.stop.eq(Mux(drain.last, drain_stop, drain.stop)),
            ]
        return m
