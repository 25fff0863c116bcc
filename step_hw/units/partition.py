"""Partition: each chunk to the outputs that its selector names."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import Out

from ..beat import STOP_WIDTH, BeatLayout
from ..unit import ErrorCode, Unit
from .scratchpad import ScratchpadShape, UsePort, use_port

__all__ = ["Partition"]


class Partition(Unit):
    """Hardware of ``step_lang.ops.partition``: ``in0`` data, ``in1`` selectors, an output for each consumer. Latency 0,
    one beat a cycle.

    Parameters
    ----------
    layout : BeatLayout
    bits : int
        Width of a selector, 1 to 128.
    n : int
        Outputs, at most ``bits``.
    shape : ScratchpadShape or None
        Where the data are references, that of the scratchpad they refer to.
    uses : sequence of int
        Then, uses that a reference has at each output: streamifies that get it there. The unit tells the scratchpad
        (``port``; ``port0, port1, ..`` where ``shape.owners`` are several) how many the outputs make in all, when it
        first offers the reference; none frees it.

    ========== ===== ===================================================
    register   width meaning
    ========== ===== ===================================================
    rank       4     b, inner dimensions of the stream that make a chunk; 0: an element
    ========== ===== ===================================================

    A beat goes to every output that is selected, eagerly: one that has taken it is remembered; it is accepted when all
    have. The selector leaves with the chunk's last beat. A bare stop on the selector faces a bare stop b higher.

    Errors: MISALIGNED when selector and stream disagree in stop, emptiness or done; SELECTOR for a bit that has no
    output; PROTOCOL when the stream ends inside a chunk; FREED for a reference whose buffer was freed. Nothing of that
    beat is accepted.
    """

    kind = "partition"

    def __init__(self, layout: BeatLayout, bits: int, n: int, shape: ScratchpadShape | None = None,
                 uses: Sequence[int] = ()):
        if not 1 <= n <= bits <= 128:
            raise ValueError(f"a partition has 1 to 128 outputs and a selector bit for each, not {n} and {bits} bits")
        self.layout = layout
        self.bits = bits
        self.n = n
        self.shape = shape
        self.uses = tuple(uses)
        if shape is not None and (len(self.uses) != n or not 0 <= sum(self.uses) < 1 << shape.uses_bits):
            raise ValueError(
                f"{n} outputs share fewer than {1 << shape.uses_bits} uses of a reference, not {self.uses}")
        super().__init__([layout, BeatLayout(bits)], [layout] * n, cfg={"rank": STOP_WIDTH}, state_width=2,
                         extra={} if shape is None else {name: Out(UsePort(shape.own)) for name in shape.port_names})

    @property
    def module_name(self) -> str:
        name = f"partition{self.n}_{self.layout.key}_s{self.bits}"
        if self.shape is None:
            return name
        return f"{name}_{self.shape.router_key}_u{'_'.join(map(str, self.uses))}"

    def elaborate(self, platform):
        m = Module()
        data, selector, outs, rank = self.in0, self.in1, self.outs, self.cfg.rank
        d, s = data.payload, selector.payload
        begun = Signal()                # a chunk is not complete
        taken = Signal(self.n)          # outputs that have this beat
        present, ends, unfinished, differ, beyond, good, goes = (Signal(name=name) for name in (
            "present", "ends", "unfinished", "differ", "beyond", "good", "goes"))
        freed = Signal()                # a reference whose buffer was freed
        to = Signal(self.n)
        alone = d.empty & ends
        m.d.comb += [
            present.eq(data.valid & selector.valid),
            ends.eq(~d.done & (d.stop >= rank)),
            unfinished.eq(d.done & begun),
            differ.eq((d.done != s.done) | ~d.done & (
                (ends & (d.stop != s.stop + rank))
                | Mux(s.empty, ~alone, d.empty & (rank == 0)))),
            beyond.eq(~s.empty & s.data[self.n:].any() if self.bits > self.n else 0),
            good.eq(present & ~unfinished & ~differ & ~beyond & ~freed),
            to.eq(Mux(d.done, (1 << self.n) - 1, Mux(s.empty, 0, s.data[:self.n]))),
        ]
        takes = Cat(o.valid & o.ready for o in outs)
        m.d.comb += [
            goes.eq(good & (taken | takes | ~to).all()),
            data.ready.eq(goes),
            selector.ready.eq(goes & (ends | d.done)),
            self.state.eq(Cat(begun, taken.any())),
        ]
        for k, o in enumerate(outs):
            m.d.comb += [
                o.valid.eq(good & to[k] & ~taken[k]),
                o.payload.eq(d),
                o.payload.stop.eq(Mux(ends, rank, d.stop)),
            ]
        m.d.sync += taken.eq(Mux(goes, 0, taken | takes))
        with m.If(goes):
            m.d.sync += begun.eq(~ends & ~d.done)
        with m.If(present):
            with m.If(unfinished):
                m.d.sync += self.error.eq(ErrorCode.PROTOCOL)
            with m.Elif(differ):
                m.d.sync += self.error.eq(ErrorCode.MISALIGNED)
            with m.Elif(beyond):
                m.d.sync += self.error.eq(ErrorCode.SELECTOR)
            if self.shape is not None:
                with m.Elif(freed):
                    m.d.sync += self.error.eq(ErrorCode.FREED)
        if self.shape is not None:
            # Before an output can pass the reference on, all its uses are counted. After that the buffer may be freed
            # while the reference waits: an output that has still to take it may have no use of it.
            counted = Signal()
            port = use_port(m, [getattr(self, name) for name in self.shape.port_names], self.shape)
            m.d.comb += [
                port.ref.eq(d.data), freed.eq(~d.empty & ~port.live & ~counted),
                port.change.eq(good & ~d.empty & ~counted),
                port.uses.eq(sum(Mux(to[k], uses, 0) for k, uses in enumerate(self.uses))),
            ]
            m.d.sync += counted.eq(~goes & (counted | port.change))
        return m
