"""Streamify: whole passes over buffers, one for each reference element."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import Out

from ..beat import STOP_WIDTH
from ..unit import ErrorCode, Unit
from .scratchpad import COUNT_WIDTH, ReadPort, ScratchpadShape, read_port

__all__ = ["LOOPS", "Streamify"]

LOOPS = 4
"""Loops of an affine view: dimensions that a pass over a buffer can have when it is not in order."""


class Streamify(Unit):
    """Hardware of ``step_lang.ops.streamify`` (SPEC section 2, On-chip memory).

    A pass reads every element of the buffer in order, with the stops that it was stored with, or an affine view of it:
    element ``sum(i_k * stride_k)`` over ``LOOPS`` loops of ``count_k``, loop 0 innermost, stop k + 1 where loops 0..k
    end together. A loop of count 0 is open: it goes on while the element where it stands, those inside it at their
    start, is in the buffer. The last element of a pass carries n + s. Latency 1, one element a cycle, no bubble
    between passes or buffers.

    ================= ===== ==========================================================================
    register          width meaning
    ================= ===== ==========================================================================
    n                 4     dimensions of a pass (the buffer's rank, or the view's)
    c                 4     with a reference: a stop s >= c ends the use of the buffer (reference rank less buffers'
                            rank); without: 1 adds the dimension of ``repeat`` (0: none, ``repeat`` = 1)
    repeat            24    passes over each buffer, >= 1; ignored with a reference
    affine            1     0: in order; 1: by loops
    count0..count3    24    size of each loop; 1 where it is not used; 0: open; ignored when in order
    stride0..stride3  24    elements from one iteration to the next, modulo 2**24 (negative ones too); 0 where not used
    ================= ===== ==========================================================================

    s is the reference element's stop; without a reference, passes before a buffer's last have s = 0 and the last has
    c + the stop of the buffer's reference. A bare reference stop s leaves a bare n + s and, when s >= c, ends the use
    of the buffer at the head without a pass (or passes the bare stop at the head). An empty buffer's pass is a bare n
    + s.

    Ports: ``in0`` buffer references (``shape.reference_layout``), ``in1`` the reference stream if ``ref`` gives its
    layout, ``out0`` elements, ``port`` to the scratchpad (``port0, port1, ..`` where ``shape.owners`` are several).

    Errors: MISALIGNED when buffers and reference disagree in stop, emptiness or done; FREED for a reference whose
    buffer was freed; ADDRESS_RANGE when a view leaves its buffer; STOP_RANGE when n + s does not fit a stop.
    """

    kind = "streamify"

    def __init__(self, shape: ScratchpadShape, ref=None):
        self.shape = shape
        self.ref = ref
        cfg = {"n": STOP_WIDTH, "c": STOP_WIDTH, "repeat": COUNT_WIDTH, "affine": 1}
        cfg |= {f"count{k}": COUNT_WIDTH for k in range(LOOPS)} | {f"stride{k}": COUNT_WIDTH for k in range(LOOPS)}
        super().__init__([shape.reference_layout] + ([] if ref is None else [ref]), [shape.layout], cfg=cfg,
                         state_width=3, extra={name: Out(ReadPort(shape.own)) for name in shape.port_names})

    @property
    def module_name(self) -> str:
        return f"streamify_{self.shape.key}" + ("" if self.ref is None else f"_ref{self.ref.key}")

    def elaborate(self, platform):
        m = Module()
        cfg, head = self.cfg, self.in0
        p = read_port(m, [getattr(self, name) for name in self.shape.port_names], self.shape)
        buffer = head.payload

        # What drives the passes: each element of the reference, or the buffers' own references repeated.
        passes = Signal(COUNT_WIDTH)
        driver_bare = Signal()             # no element, so no pass
        stop = Signal(STOP_WIDTH + 1)      # s
        ends_use = Signal()                # the buffer is not needed after this pass
        misaligned = Signal()
        present = Signal()
        done = buffer.done
        if self.ref is None:
            last_pass = buffer.empty | (passes + 1 >= cfg.repeat)
            m.d.comb += [
                present.eq(head.valid), driver_bare.eq(buffer.empty),
                stop.eq(Mux(last_pass, buffer.stop + cfg.c, 0)), ends_use.eq(last_pass),
            ]
        else:
            ref = self.in1.payload
            m.d.comb += [
                present.eq(head.valid & self.in1.valid), driver_bare.eq(ref.empty),
                stop.eq(ref.stop), ends_use.eq(ref.stop >= cfg.c),
                misaligned.eq((ref.done != buffer.done) | (~ref.empty & buffer.empty)
                              | (~ref.done & ends_use & (buffer.stop != ref.stop - cfg.c))),
            ]

        # Position in the pass. In order, loop 0 is open and runs over the whole buffer.
        at = [Signal(COUNT_WIDTH, name=f"at{k}") for k in range(LOOPS)]
        start = [Signal(COUNT_WIDTH, name=f"start{k}") for k in range(LOOPS)]   # element at which loop k now stands
        index = start[0]
        counts = [Mux(cfg.affine, getattr(cfg, f"count{k}"), int(k > 0)) for k in range(LOOPS)]
        strides = [Mux(cfg.affine, getattr(cfg, f"stride{k}"), 1) for k in range(LOOPS)]
        stepped = [Signal(COUNT_WIDTH + 1, name=f"stepped{k}") for k in range(LOOPS)]   # start of the next iteration
        ending = Signal(LOOPS)   # loop k is in its last iteration
        for k in range(LOOPS):
            m.d.comb += [
                stepped[k].eq(start[k] + strides[k]),
                ending[k].eq(Mux(counts[k] == 0, stepped[k] >= p.length, at[k] + 1 == counts[k])),
            ]
        hollow = p.length == 0   # a pass over nothing, whatever its view, is a bare stop
        reads = ~done & ~driver_bare & ~hollow
        last = ~reads | ending.all()
        freed = ~buffer.empty & ~p.live
        out_of_range = reads & (index >= p.length)
        view_stop = Signal(STOP_WIDTH)
        for k in reversed(range(LOOPS)):
            with m.If(~ending[k]):
                m.d.comb += view_stop.eq(k)
        pass_stop = Signal(STOP_WIDTH + 2)
        m.d.comb += pass_stop.eq(Mux(done, 0, stop + cfg.n))
        too_high = pass_stop >= 1 << STOP_WIDTH

        with m.If(present & (self.error == ErrorCode.NONE)):
            with m.If(misaligned):
                m.d.sync += self.error.eq(ErrorCode.MISALIGNED)
            with m.Elif(freed):
                m.d.sync += self.error.eq(ErrorCode.FREED)
            with m.Elif(out_of_range):
                m.d.sync += self.error.eq(ErrorCode.ADDRESS_RANGE)
            with m.Elif(too_high):
                m.d.sync += self.error.eq(ErrorCode.STOP_RANGE)

        # Stage 0: issue the read, or a beat without an element; stage 1 is the scratchpad's output register.
        o = self.out0
        full = Signal()   # stage 1 holds a beat
        wants = Signal()
        fire = Signal()
        good = ~misaligned & ~freed & ~out_of_range & ~too_high & (self.error == ErrorCode.NONE)
        m.d.comb += [
            wants.eq(present & good & (~full | o.ready)),
            p.ref.eq(buffer.data), p.index.eq(index), p.request.eq(wants & reads),
            fire.eq(wants & (~reads | p.grant)),
            head.ready.eq(fire & last & (ends_use | done)),
            p.release.eq(head.ready & ~buffer.empty),
        ]
        if self.ref is not None:
            m.d.comb += self.in1.ready.eq(fire & last)

        with m.If(fire & last):
            m.d.sync += passes.eq(Mux(ends_use, 0, passes + 1))
            for k in range(LOOPS):
                m.d.sync += [at[k].eq(0), start[k].eq(0)]
        with m.Elif(fire):
            # The innermost loop that goes on steps; those inside it begin again where it then stands.
            for k in range(LOOPS):
                with (m.Elif if k else m.If)(~ending[k]):
                    m.d.sync += at[k].eq(at[k] + 1)
                    m.d.sync += [start[j].eq(stepped[k]) for j in range(k + 1)]
                    m.d.sync += [at[j].eq(0) for j in range(k)]

        stored_stop = Signal()   # the stop is the stored one
        stage_stop = Signal(STOP_WIDTH)
        bare = Signal()
        stage_done = Signal()
        with m.If(~full | o.ready):
            m.d.sync += full.eq(fire)
        with m.If(fire):
            m.d.sync += [
                stored_stop.eq(~cfg.affine & ~last),
                stage_stop.eq(Mux(last, pass_stop, view_stop)),
                bare.eq(~reads), stage_done.eq(done),
            ]
        m.d.comb += [
            o.valid.eq(full),
            o.payload.data.eq(Mux(bare, 0, p.frame.data)),
            o.payload.rows.eq(Mux(bare, 0, p.frame.rows)),
            o.payload.stop.eq(Mux(stored_stop, p.frame.stop, stage_stop)),
            o.payload.empty.eq(bare),
            o.payload.done.eq(stage_done),
            self.state.eq(Cat(full, present, p.request & ~p.grant)),
        ]
        return m
