"""Reassemble: for each selector one chunk of every input it names, as a group."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import Out

from ..arbiter import ChunkArbiter
from ..beat import STOP_WIDTH, BeatLayout
from ..unit import ErrorCode, Unit

__all__ = ["Reassemble"]


class Reassemble(Unit):
    """Hardware of ``step_lang.ops.reassemble``: ``in0..`` data, the last input selectors, ``out0`` groups. Latency 0,
    one beat a cycle, no bubble between chunks or groups.

    Parameters
    ----------
    layout : BeatLayout
    bits : int
        Width of a selector, 1 to 128.
    n : int
        Data inputs, at most ``bits``.

    ========== ===== ==========================================================================
    register   width meaning
    ========== ===== ==========================================================================
    rank       4     a, dimensions of a chunk
    hollow     1     1: a selector without a bit leaves a bare stop; 0: it raises SELECTOR
    ========== ===== ==========================================================================

    Inputs that are selected, not yet served and not empty are served whole chunk by whole chunk with rotating priority
    (`ChunkArbiter`). The chunk after which no selected input is left ends with a + 1 + s, s the selector's stop, and
    the selector leaves with it. A selector without a bit, or a bare stop s, leaves a bare a + 1 + s. With the
    selector's done, done leaves at once and every input's done is taken when it comes.

    Grants: ``grant_valid`` in the cycle in which input ``grant_index`` is chosen, once a chunk.

    Errors: SELECTOR for a bit that has no input; MISALIGNED when a selected input is done, or an input has chunks left
    when the selector is; PROTOCOL when an input ends inside a chunk; STOP_RANGE for a stop above a on an input, or
    when a + 1 + s does not fit a stop.
    """

    kind = "reassemble"

    def __init__(self, layout: BeatLayout, bits: int, n: int):
        if not 1 <= n <= bits <= 128:
            raise ValueError(f"a reassemble has 1 to 128 inputs and a selector bit for each, not {n} and {bits} bits")
        self.layout = layout
        self.bits = bits
        self.n = n
        super().__init__([layout] * n + [BeatLayout(bits)], [layout], cfg={"rank": STOP_WIDTH, "hollow": 1},
                         state_width=2, extra={"grant_valid": Out(1), "grant_index": Out(range(max(2, n)))})

    @property
    def module_name(self) -> str:
        return f"reassemble{self.n}_{self.layout.key}_s{self.bits}"

    def elaborate(self, platform):
        m = Module()
        ins, selector, o, rank = self.ins[:self.n], self.ins[self.n], self.out0, self.cfg.rank
        s = selector.payload
        served = Signal(self.n)         # selected inputs whose chunk has left; at the end, those whose done was taken
        sent = Signal()                 # done has left
        present, dones, due, left = Signal(self.n), Signal(self.n), Signal(self.n), Signal(self.n)
        beyond, hollow, missing, waiting = Signal(), Signal(), Signal(), Signal(self.n)
        closing = Signal(STOP_WIDTH + 2)
        m.d.comb += [
            present.eq(Cat(i.valid for i in ins)),
            dones.eq(Cat(i.valid & i.payload.done for i in ins)),
            due.eq(Mux(selector.valid & ~s.empty, s.data[:self.n] & ~served, 0)),
            beyond.eq(selector.valid & ~s.empty & s.data[self.n:].any() if self.bits > self.n else 0),
            # A bare stop leaves: for a bare stop, or for a selector without a bit.
            hollow.eq(selector.valid & ~s.done & (s.empty | (s.data == 0))),
            closing.eq(rank + 1 + s.stop),
        ]
        arbiter = ChunkArbiter(m, waiting)
        m.d.comb += [
            # Looked at between chunks only: what is offered does not go away.
            missing.eq(~arbiter.locked & (due & dones).any()),
            waiting.eq(Mux(beyond | missing, 0, due & present & ~dones)),
            left.eq(due & ~arbiter.chosen),
            self.grant_valid.eq(arbiter.granted),
            self.grant_index.eq(arbiter.turn),
            self.state.eq(Cat(arbiter.locked, served.any())),
        ]

        head, there = Signal(self.layout), Signal()
        with m.Switch(arbiter.turn):
            for k, i in enumerate(ins):
                with m.Case(k):
                    m.d.comb += [head.eq(i.payload), there.eq(arbiter.serving & i.valid)]
        ends, last, wrong, refused, fires, over = (Signal(name=name) for name in (
            "ends", "last", "wrong", "refused", "fires", "over"))
        m.d.comb += [
            ends.eq(head.stop == rank),
            last.eq(ends & ~left.any()),
            wrong.eq(head.done | (head.stop > rank) | last & closing[STOP_WIDTH:].any()),
            refused.eq(~s.empty & ~self.cfg.hollow | closing[STOP_WIDTH:].any()),
            fires.eq(o.valid & o.ready),
            # The streams end when done has left, now or before, and every input's done is here or was taken.
            over.eq(selector.valid & s.done & (sent | fires) & (served | dones).all()),
            arbiter.finish.eq(there & fires & ends),
            arbiter.clear.eq(over),
            selector.ready.eq(over | fires & (hollow | there & last)),
        ]
        with m.If(there):
            m.d.comb += [o.valid.eq(~wrong), o.payload.eq(head), o.payload.stop.eq(Mux(last, closing, head.stop))]
        with m.Elif(hollow):
            m.d.comb += [o.valid.eq(~refused & ~beyond), o.payload.empty.eq(1), o.payload.stop.eq(closing)]
        with m.Elif(selector.valid & s.done):
            m.d.comb += [o.valid.eq(~sent), o.payload.empty.eq(1), o.payload.done.eq(1)]
        for k, i in enumerate(ins):
            m.d.comb += i.ready.eq(arbiter.chosen[k] & there & fires
                                   | selector.valid & s.done & i.payload.done & ~served[k])

        with m.If(selector.ready):
            m.d.sync += [served.eq(0), sent.eq(0)]
        with m.Elif(selector.valid & s.done):
            m.d.sync += [served.eq(served | dones), sent.eq(sent | fires)]
        with m.Elif(arbiter.finish):
            m.d.sync += served.eq(served | arbiter.chosen)

        with m.If(beyond | hollow & ~s.empty & ~self.cfg.hollow):
            m.d.sync += self.error.eq(ErrorCode.SELECTOR)
        with m.Elif(missing | selector.valid & s.done & (present & ~dones & ~served).any()):
            m.d.sync += self.error.eq(ErrorCode.MISALIGNED)
        with m.Elif(there & head.done):
            m.d.sync += self.error.eq(ErrorCode.PROTOCOL)
        with m.Elif(there & wrong | hollow & refused):
            m.d.sync += self.error.eq(ErrorCode.STOP_RANGE)
        return m
