"""Accum: folds the dimensions above the inner ones into a state that leaves when they close."""

from collections.abc import Mapping

from amaranth.hdl import Const, Module, Mux, Signal

from ..beat import STOP_WIDTH
from ..compute import FoldUnit, Position, masked

__all__ = ["Accum"]


class Accum(FoldUnit):
    """Hardware of ``step_lang.ops.accum`` (docs/DESIGN.md, section 6).

    Join, contribution pipeline, read-modify-write of the state memory, drain. The state is a tensor of
    n1 x n0 elements (``inner`` = c of whose dimensions are used). Every element is folded into the entry of its
    position. When the element (or bare stop) with stop s >= rank + inner has been folded, a drain emits
    entries 0 .. n1 * n0 - 1, one a cycle, with inner stops by position and s - rank on the last. An empty group drains
    ``init``, or, where ``hollow``, leaves as a bare stop s - rank. The next fold starts at once and chases the drain:
    it overwrites an entry in the cycle at whose end the drain has let it go, or later. There is one drain at a time;
    done leaves through it too, so that it comes last.

    Where the outermost inner size is 0 (open) a tensor ends with a stop >= inner. The first tensor of a fold gives the
    size, which the others must have, and the drain then goes as far.

    Parameters (``UnitSpec.params`` of kinds "accum" and "scan")
    ------------------------------------------------------------
    function, in_types, out_type, tile, rows_per_cycle, k_per_cycle : as for ``map``; ``out_type`` is the state's
    entries : elements the state memory holds (1 = a register); n1 * n0 <= entries is the unit graph builder's to check,
        and EXHAUSTED when it is not so
    init : bit pattern of the state's elements before the first fold (``0`` for a sum, minus infinity for a maximum)
    masked : tiles have fewer valid rows than there is room for, all that are folded into one entry the same; rows that
        are not valid leave as zeros, and the ``init`` of an empty group is one row

    ========== ===== ===================================================
    register   width meaning
    ========== ===== ===================================================
    rank       4     dimensions folded (b)
    inner      2     inner dimensions of the state (c): 0, 1 or 2
    n1, n0     12    inner sizes, n0 innermost; 1 when unused, 0 when open
    hollow     1     an empty group leaves as a bare stop
    ========== ===== ===================================================

    Errors: MISALIGNED (inputs disagree), SHAPE (a stop that the inner sizes do not allow, a tensor or tile of
    another size than the fold's first, an empty group of an open state that is not hollow, or one that is hollow but
    leaves no stop), EXHAUSTED (a tensor of more elements than entries), STOP_RANGE (done inside a fold).
    Latency (closing beat to first beat out) and interval: ``step_lang.timing.compute_timing("accum", params)``.
    ``state``: bit 0 draining, bit 1 a fold has begun, bit 2 the token before the state waits for the drain.
    """

    kind = "accum"
    opens = True
    registers: Mapping[str, int] = {**FoldUnit.registers, "hollow": 1}

    def elaborate(self, platform):
        m = Module()
        o, rank, inner = self.out0, self.cfg.rank, self.cfg.inner
        en = Signal()
        go = Signal()
        valid, token, position, state = self._fold(m, en)
        started = Signal()
        closing = Signal()
        element = Signal()
        is_open = Signal()
        unfit = Signal()
        size = Signal.like(position.index)      # index of the last element of the fold's first tensor
        differs = state.differs if self.compares else Const(0)
        m.d.comb += [
            closing.eq(token.stop >= rank + inner),
            element.eq(~token.empty),
            is_open.eq((self.cfg.n1 == 0) | (self.cfg.n0 == 0)),
            position.close.eq(token.stop >= inner),
            unfit.eq(Mux(element, started & (is_open & (position.last != (position.index == size)) | differs),
                         ~started & closing & Mux(self.cfg.hollow, token.stop == rank, is_open))),
        ]
        wrong = self._check(m, valid, token, position, started, unfit)
        m.d.comb += en.eq(~valid | go)

        draining = Signal()
        drain_done = Signal()
        drain_bare = Signal()
        drain_init = Signal()
        drain_stop = Signal(STOP_WIDTH)
        drain_size = Signal.like(size)
        m.submodules.drain = drain = Position(self.entries, self.opens)
        drain_last = Signal()
        free = Signal()
        passed = Signal()
        m.d.comb += [
            *self._sizes(drain),
            drain.close.eq(drain.index == drain_size),
            drain_last.eq(drain_done | drain_bare | drain.last),
            drain.next.eq(draining & o.ready & ~drain_done & ~drain_bare),
            free.eq(~draining | (drain_last & o.ready)),
            # The entry at this position has left, or leaves in this cycle.
            passed.eq(~draining | (drain.index > position.index) | ((drain.index == position.index) & o.ready)),
        ]

        complete = Signal()
        leave = Signal()
        m.d.comb += [
            # What closes waits for the drain to be over, which a smaller tensor's last element could else overtake.
            go.eq(~wrong & (free | ~(closing | token.done)) & (passed | ~element)),
            state.first.eq(~started),
            state.write.eq(valid & go & element),
            complete.eq(valid & go & token.last),
            position.next.eq(complete & element),
            leave.eq(complete & (token.done | (closing & (position.last | token.empty)))),
        ]
        with m.If(leave):
            m.d.sync += started.eq(0)
        with m.Elif(position.next & position.last):
            m.d.sync += [started.eq(1), size.eq(position.index)]

        with m.If(leave):
            m.d.sync += [
                draining.eq(1),
                drain_done.eq(token.done),
                drain_bare.eq(token.empty & ~token.done & ~started & self.cfg.hollow),
                drain_init.eq(token.empty & ~started),
                drain_stop.eq(token.stop - rank),
                drain_size.eq(Mux(element, position.index, size)),
            ]
        with m.Elif(draining & o.ready & drain_last):
            m.d.sync += draining.eq(0)

        entry, entry_rows, init, init_rows = state.read_data, 1, self.init_tile, 1
        if self.max_rows:
            entry_rows, init_rows = state.read_rows, 1 if self.masked else self.max_rows
        if self.masked:
            entry = masked(entry, entry_rows, self.out_type)
            init &= (1 << (self.width // int(self.out_type.rows))) - 1
        m.d.comb += [
            state.read_index.eq(drain.index),
            o.valid.eq(draining),
            self.state.eq(draining | started << 1 | (valid & ~go) << 2),
        ]
        with m.If(drain_done):
            m.d.comb += [o.payload.empty.eq(1), o.payload.done.eq(1)]
        with m.Elif(drain_bare):
            m.d.comb += [o.payload.empty.eq(1), o.payload.stop.eq(drain_stop)]
        with m.Else():
            m.d.comb += [
                o.payload.data.eq(Mux(drain_init, Const(init, self.width), entry)),
                o.payload.rows.eq(Mux(drain_init, init_rows, entry_rows)),
                o.payload.stop.eq(Mux(drain.last, drain_stop, drain.stop)),
            ]
        return m
