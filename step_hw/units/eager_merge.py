"""Eager merge: chunks of several streams in the order in which they arrive."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import Out

from ..arbiter import ChunkArbiter
from ..beat import STOP_WIDTH, BeatLayout
from ..unit import ErrorCode, Unit

__all__ = ["EagerMerge"]


class EagerMerge(Unit):
    """Hardware of ``step_lang.ops.eager_merge``: ``out0`` chunks, ``out1`` the source of each, one-hot. Latency 0, one
    beat a cycle, no bubble between chunks.

    Parameters
    ----------
    layout : BeatLayout
    n : int
        Inputs, 1 to 128.
    selector : bool
        Whether ``out1`` exists.

    ========== ===== ===================================================
    register   width meaning
    ========== ===== ===================================================
    rank       4     a, dimensions of a chunk; 0: an element
    ========== ===== ===================================================

    Inputs that are not empty are served whole chunk by whole chunk with rotating priority (`ChunkArbiter`). The outputs
    are eager: the selector is offered from the chunk's first beat on, and the chunk's last beat is accepted when both
    have been taken. Done leaves when all inputs are done.

    Grants: ``grant_valid`` in the cycle in which input ``grant_index`` is chosen, once a chunk.

    Errors: PROTOCOL when an input ends inside a chunk; STOP_RANGE for a stop above a.
    """

    kind = "eager_merge"

    def __init__(self, layout: BeatLayout, n: int, selector: bool = True):
        if not 1 <= n <= 128:
            raise ValueError(f"an eager merge has 1 to 128 inputs, not {n}")
        self.layout = layout
        self.n = n
        self.selector = selector
        super().__init__([layout] * n, [layout] + [BeatLayout(n)] * selector, cfg={"rank": STOP_WIDTH}, state_width=3,
                         extra={"grant_valid": Out(1), "grant_index": Out(range(max(2, n)))})

    @property
    def module_name(self) -> str:
        return f"eager_merge{self.n}_{self.layout.key}" + ("" if self.selector else "_noselector")

    def elaborate(self, platform):
        m = Module()
        ins, o, rank = self.ins, self.out0, self.cfg.rank
        taken = Signal()    # the data output has this beat
        named = Signal()    # the selector output has this chunk
        present, dones = Signal(self.n), Signal(self.n)
        m.d.comb += [
            present.eq(Cat(i.valid for i in ins)),
            dones.eq(Cat(i.valid & i.payload.done for i in ins)),
        ]
        arbiter = ChunkArbiter(m, present & ~dones)
        head, there = Signal(self.layout), Signal()
        with m.Switch(arbiter.turn):
            for k, i in enumerate(ins):
                with m.Case(k):
                    m.d.comb += [head.eq(i.payload), there.eq(arbiter.serving & i.valid)]
        over, ends, wrong, accept, has_data, has_name = (Signal(name=name) for name in (
            "over", "ends", "wrong", "accept", "has_data", "has_name"))
        ended = Signal()                    # all inputs are done
        m.d.comb += [
            ended.eq(~arbiter.locked & dones.all()),
            ends.eq(head.stop == rank),
            wrong.eq(head.done | (head.stop > rank)),
            o.valid.eq((ended | there & ~wrong) & ~taken),
            has_data.eq(taken | o.valid & o.ready),
            accept.eq(there & has_data & (has_name | ~ends)),
            over.eq(ended & has_data & has_name),
            arbiter.finish.eq(accept & ends),
            arbiter.clear.eq(over),
            self.grant_valid.eq(arbiter.granted),
            self.grant_index.eq(arbiter.turn),
            self.state.eq(Cat(arbiter.locked, taken, named)),
        ]
        with m.If(ended):
            m.d.comb += [o.payload.empty.eq(1), o.payload.done.eq(1)]
        with m.Else():
            m.d.comb += o.payload.eq(head)
        if self.selector:
            name = self.out1
            m.d.comb += [
                name.valid.eq((ended | arbiter.serving) & ~named),
                name.payload.data.eq(arbiter.chosen),
                name.payload.rows.eq(~ended),
                name.payload.empty.eq(ended),
                name.payload.done.eq(ended),
                has_name.eq(named | name.valid & name.ready),
            ]
        else:
            m.d.comb += has_name.eq(1)
        for k, i in enumerate(ins):
            m.d.comb += i.ready.eq(over | accept & arbiter.chosen[k])
        m.d.sync += [
            taken.eq(has_data & ~accept & ~over),
            named.eq(has_name & ~arbiter.finish & ~over & int(self.selector)),
        ]
        with m.If(there & head.done):
            m.d.sync += self.error.eq(ErrorCode.PROTOCOL)
        with m.Elif(there & wrong):
            m.d.sync += self.error.eq(ErrorCode.STOP_RANGE)
        return m
