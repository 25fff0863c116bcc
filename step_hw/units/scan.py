"""Scan: folds like accum and emits the state after every element."""

from amaranth.hdl import Module, Signal

from ..compute import FoldUnit, masked

__all__ = ["Scan"]


class Scan(FoldUnit):
    """Hardware of ``step_lang.ops.scan``: parameters, registers and errors as `Accum`.

    The state after an element leaves with the element's own stop; the state starts anew after a stop >= rank + inner.
    The pipeline's last stage is the entry just written, read from the state memory; it advances as a whole and stalls
    only when that stage holds a beat that the output does not take. Bare stops and done pass in order.

    Latency (element to the state after it) and interval: ``step_lang.timing.compute_timing("scan", params)``.
    ``state``: bit 0 the last stage holds a beat, bit 1 a fold has begun, bit 2 the pipeline is stalled.
    """

    kind = "scan"
    keeps_rows = False

    def elaborate(self, platform):
        m = Module()
        o = self.out0
        en = Signal()
        valid, token, position, state = self._fold(m, en)
        started = Signal()
        closing = Signal()
        go = Signal()
        unfit = ~token.empty & started & state.differs if self.compares else None
        wrong = self._check(m, valid, token, position, started, unfit)
        m.d.comb += [
            go.eq(en & valid & ~wrong),
            closing.eq(token.stop >= self.cfg.rank + self.cfg.inner),
            state.first.eq(~started),
            state.write.eq(go & ~token.empty),
            position.next.eq(go & ~token.empty & token.last),
        ]
        with m.If(go & token.last & closing):
            m.d.sync += started.eq(0)
        with m.Elif(position.next & position.last):
            m.d.sync += started.eq(1)

        out_valid, out, _ = self._pipe(m, 1, en, go & token.last, token)
        out_index = Signal.like(position.index)
        with m.If(en):
            m.d.sync += out_index.eq(position.index)
        result = masked(state.read_data, out.rows, self.out_type) if self.masked else state.read_data
        m.d.comb += [
            en.eq(~out_valid | o.ready),
            state.read_index.eq(out_index),
            o.valid.eq(out_valid),
            o.payload.data.eq(result & (~out.empty).replicate(self.width)),
            o.payload.rows.eq(out.rows),
            o.payload.stop.eq(out.stop),
            o.payload.empty.eq(out.empty),
            o.payload.done.eq(out.done),
            self.state.eq(out_valid | started << 1 | (out_valid & ~o.ready) << 2),
        ]
        return m
