"""Load: tiles of an affine view of an off-chip tensor, once or once per reference element."""

from collections.abc import Mapping
from typing import NamedTuple

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from step_lang.memory_config import MemoryConfig

from ..beat import STOP_WIDTH, BeatLayout
from ..hbm.affine import AFFINE_REGISTERS, AffineCounter
from ..hbm.ports import ReadData, ReadPort
from ..unit import ErrorCode, Unit

__all__ = ["Load"]


class _Token(NamedTuple):
    """Token that the generator makes. Signals of their own: Icarus loops for ever where two processes write parts of
    one."""

    stop: Signal
    empty: Signal
    done: Signal


class Load(Unit):
    """Hardware of ``step_lang.ops.linear_offchip_load``: address generator and reorder window.

    The generator makes one token a cycle (an element, a bare stop or done), asks every channel of the element for
    its bursts and gives the token the next slot of the window; bursts land in their slot in any order; tokens leave
    in order when whole.

    Parameters
    ----------
    layout : BeatLayout
        Payload of the output. Its data bits are the low bits of the element in memory.
    memory : MemoryConfig
    element_bytes : int
        Bytes of an element in memory, a power of two.
    window : int
        Tokens in flight, a power of two.
    reference : BeatLayout or None
        Payload of the reference stream ``in0``; None: one pass, begun by ``start``.
    tokens : int
        Size of the token memory, a power of two; 0 for none (see ``step_hw.units.input``).

    Registers
    ---------
    base : byte address of the tensor, at a line
    dims : loops of the affine view
    count0..5, stride0..5 : iterations of each loop, loop 0 innermost, and elements from one to the next (two's
        complement); see ``step_hw.hbm.affine``
    limit : elements of the tensor; an index outside, or a base within a line, sets ADDRESS_RANGE.

    Further members
    ---------------
    mem : Out(ReadPort), data : In(ReadData)
    start : In(1), a run begins; only without reference

    ``state``, from the low bit: a token is to be made, the window holds tokens, one is at the output, the window is
    full.
    """

    kind = "load"
    registers: Mapping[str, int] = {"base": 32, "limit": 32} | AFFINE_REGISTERS
    """Configuration registers that every form of this unit has."""

    def __init__(
        self,
        layout: BeatLayout,
        *,
        memory: MemoryConfig,
        element_bytes: int,
        window: int = 64,
        reference: BeatLayout | None = None,
        tokens: int = 0,
    ):
        if layout.data_width > 8 * element_bytes:
            raise ValueError(f"{element_bytes} bytes in memory are too few for {layout.data_width} data bits")
        if tokens & (tokens - 1) or (tokens and reference is not None):
            raise ValueError(
                f"a token memory holds a power of two of tokens and needs a load without reference, not {tokens}"
            )
        self.layout = layout
        self.memory = memory
        self.port = ReadPort(memory, element_bytes, window)
        self.window = window
        self.reference = reference
        self.tokens = tokens
        extra: dict = {"mem": Out(self.port), "data": In(ReadData(memory))}
        cfg = dict(self.registers)
        if reference is None:
            extra["start"] = In(1)
        if tokens:
            cfg["regular"] = 1
            extra |= {"token_write": In(1), "token_address": In(exact_log2(tokens)), "token_data": In(STOP_WIDTH + 2)}
        super().__init__([] if reference is None else [reference], [layout], cfg=cfg, state_width=4, extra=extra)

    @property
    def module_name(self) -> str:
        ref = "" if self.reference is None else f"_ref{self.reference.key}"
        tokens = f"_t{self.tokens}" if self.tokens else ""
        size = f"e{self.port.elements.element_bytes}w{self.window}"
        place = f"c{self.memory.channels}b{self.memory.burst_bytes}a{self.memory.lines.bit_length() - 1}"
        return f"{self.kind}_{self.layout.key}_{size}_{place}{ref}{tokens}"

    def elaborate(self, platform):
        m = Module()
        elements = self.port.elements
        group_bits, share_bits = exact_log2(elements.groups), exact_log2(elements.per_burst)
        token_layout = data.StructLayout(
            {
                "stop": STOP_WIDTH,
                "empty": 1,
                "done": 1,
                "share": share_bits,
                "group": group_bits,
            }
        )
        error = Signal(4)
        have = Signal()  # a token is to be made
        advance = Signal()  # it is made
        tok = _Token(Signal(STOP_WIDTH, name="tok_stop"), Signal(name="tok_empty"), Signal(name="tok_done"))
        index = Signal(40)
        group = Signal(max(1, group_bits))
        m.d.comb += [self.error.eq(error), group.eq(index[share_bits : share_bits + group_bits])]
        self._generate(m, have, advance, tok, index)

        # Requests: to every channel of the element, each as soon as it has room.
        head = Signal(range(self.window))
        tail = Signal(range(self.window))
        level = Signal(range(self.window + 1))
        outside = Signal()
        offered = Signal()
        line_bits = exact_log2(self.memory.alignment)
        taken, took, targets = (Signal(self.memory.channels, name=n) for n in ("taken", "took", "targets"))
        line = Signal(32)
        m.d.comb += [
            # A negative index is a large one; a base within a line would be another element's.
            outside.eq((index >= self.cfg.limit) | self.cfg.base[:line_bits].any()),
            offered.eq(have & (level != self.window) & (error == 0)),
            targets.eq(Mux(tok.empty | outside, 0, self._targets(group))),
            line.eq(
                (self.cfg.base >> line_bits)
                + (index >> (group_bits + share_bits)) * elements.bursts
            ),
        ]
        for c in range(self.memory.channels):
            req = getattr(self.mem, f"req{c}")
            m.d.comb += [
                req.valid.eq(offered & targets[c] & ~taken[c]),
                req.payload.line.eq(line),
                req.payload.slot.eq(tail),
                took[c].eq(req.valid & req.ready),
            ]
        m.d.comb += advance.eq(offered & (tok.empty | ~outside) & ((taken | took | ~targets).all()))
        m.d.sync += taken.eq(Mux(advance, 0, taken | took))
        with m.If(offered & ~tok.empty & outside):
            m.d.sync += error.eq(ErrorCode.ADDRESS_RANGE)

        # Window: tokens in order, and which of their bursts are there.
        m.submodules.tokens = tokens = Memory(shape=token_layout, depth=self.window, init=[])
        made = Cat(tok.stop, tok.empty, tok.done, index[:share_bits], group[:group_bits])
        token_write = tokens.write_port()
        token_read = tokens.read_port(domain="comb")
        first = Signal(token_layout)
        whole = Signal()
        leaves = Signal()
        m.d.comb += [
            token_write.addr.eq(tail),
            token_write.data.eq(made),
            token_write.en.eq(advance),
            token_read.addr.eq(head),
            first.eq(token_read.data),
        ]
        m.d.sync += level.eq(level + advance - leaves)
        with m.If(advance):
            m.d.sync += tail.eq(tail + 1)
        with m.If(leaves):
            m.d.sync += head.eq(head + 1)
        present = Signal(self.memory.channels)
        expected = Signal(self.memory.channels)
        m.d.comb += [
            expected.eq(Mux(first.empty, 0, self._targets(first.group))),
            whole.eq((level != 0) & ((present | ~expected).all())),
        ]
        banks = [self._bank(m, c, head, leaves & expected[c], present[c]) for c in range(self.memory.channels)]

        # Output register: the banks' read registers hold the data, these the token.
        o = self.out0
        shown = Signal(token_layout)
        element = (
            Array(self._gather(banks, g) for g in range(elements.groups))[shown.group]
            if group_bits
            else self._gather(banks, 0)
        )
        if share_bits:
            element = element.word_select(shown.share, 8 * elements.element_bytes)
        m.d.comb += [
            leaves.eq(whole & (~o.valid | o.ready)),
            o.payload.data.eq(Mux(shown.empty, 0, element[: self.layout.data_width])),
            o.payload.rows.eq(Mux(shown.empty, 0, self.layout.max_rows)),
            o.payload.stop.eq(shown.stop),
            o.payload.empty.eq(shown.empty),
            o.payload.done.eq(shown.done),
            self.state.eq(Cat(have, level != 0, o.valid, level == self.window)),
        ]
        with m.If(leaves):
            m.d.sync += [o.valid.eq(1), shown.eq(first)]
        with m.Elif(o.ready):
            m.d.sync += o.valid.eq(0)
        return m

    def _targets(self, group):
        """Channels of an element of this group."""
        return Const((1 << self.port.elements.span) - 1, self.memory.channels) << (group * self.port.elements.span)

    def _gather(self, banks, group):
        """Element at the banks' outputs: burst k is the k // span-th of channel ``group * span + k % span``."""
        span = self.port.elements.span
        return Cat(banks[group * span + j][q] for q in range(self.port.elements.bursts) for j in range(span))

    def _bank(self, m, c, head, leaves, present):
        """Storage of channel ``c``, one memory per burst of an element; returns the read data."""
        bursts, q_bits = self.port.elements.bursts, self.port.q_width
        resp = getattr(self.mem, f"resp{c}")
        # Bit slot * bursts + q: this burst is there. It goes when its element leaves.
        arrived = Signal(self.window * bursts, name=f"arrived{c}")
        place = Cat(resp.q[:q_bits], resp.slot)
        m.d.comb += present.eq(arrived.word_select(head, bursts).all())
        m.d.sync += arrived.eq((arrived | (resp.valid << place)) & ~(leaves.replicate(bursts) << (head * bursts)))
        out = []
        for q in range(bursts):
            m.submodules[f"bank{c}_{q}"] = bank = Memory(shape=8 * self.memory.burst_bytes, depth=self.window, init=[])
            write = bank.write_port()
            read = bank.read_port()
            m.d.comb += [
                write.addr.eq(resp.slot),
                write.data.eq(getattr(self.data, f"channel{c}")),
                write.en.eq(resp.valid & (resp.q[:q_bits] == q)),
                read.addr.eq(head),
                read.en.eq(leaves),
            ]
            out.append(read.data)
        return out

    def _generate(self, m, have, advance, tok, index):
        """Say which token is to be made (``have``, ``tok``, ``index``), go to the next with ``advance``."""
        (self._with_reference if self.reference is not None else self._without_reference)(m, have, advance, tok, index)

    def _counter(self, m, index):
        m.submodules.counter = counter = AffineCounter()
        for name in AFFINE_REGISTERS:
            m.d.comb += getattr(counter.cfg, name).eq(getattr(self.cfg, name))
        m.d.comb += index.eq(counter.index)
        return counter

    def _with_reference(self, m, have, advance, tok, index):
        """One view for each element at the head of the reference stream, which leaves with the view's last token."""
        counter = self._counter(m, index)
        ref = self.in0
        m.d.comb += [have.eq(ref.valid), tok.done.eq(ref.payload.done)]
        with m.If(ref.payload.empty):
            m.d.comb += [
                tok.empty.eq(1),
                tok.stop.eq(Mux(ref.payload.done, 0, ref.payload.stop + self.cfg.dims)),
                ref.ready.eq(advance),
            ]
        with m.Else():
            m.d.comb += [
                tok.empty.eq(counter.hollow | counter.barren),
                tok.stop.eq(Mux(counter.last, ref.payload.stop + self.cfg.dims, counter.wraps)),
                ref.ready.eq(advance & counter.last),
                counter.step.eq(advance),
            ]

    def _without_reference(self, m, have, advance, tok, index):
        """One view after ``start``, its outermost loop being the stream itself, then done."""
        counter = self._counter(m, index)
        nothing = Signal()  # the stream is empty
        if self.tokens:
            step_list = Signal()
            entry, element = self._token_memory(m, step_list)
        m.d.comb += nothing.eq(counter.barren | (counter.hollow & (self.cfg.dims == 1)))
        with m.FSM(name="phase"):
            with m.State("IDLE"):
                with m.If(self.start):
                    m.next = "VIEW"
                    if self.tokens:
                        with m.If(~self.cfg.regular):
                            m.next = "LISTED"
            with m.State("VIEW"):
                m.d.comb += have.eq(~nothing)
                m.d.comb += [
                    tok.empty.eq(counter.hollow),
                    tok.stop.eq(Mux(counter.last & (self.cfg.dims != 0), self.cfg.dims - 1, counter.wraps)),
                    counter.step.eq(advance),
                ]
                with m.If(nothing | (advance & counter.last)):
                    m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += [have.eq(1), tok.empty.eq(1), tok.done.eq(1)]
                with m.If(advance):
                    m.next = "IDLE"
            if self.tokens:
                with m.State("LISTED"):
                    m.d.comb += [
                        have.eq(1),
                        index.eq(element),
                        *(part.eq(given) for part, given in zip(tok, entry, strict=True)),
                        step_list.eq(advance),
                    ]
                    with m.If(advance & tok.done):
                        m.next = "IDLE"

    def _token_memory(self, m, advance):
        """The list of tokens; returns the present one and the place of the next element."""
        m.submodules.listed = listed = Memory(shape=STOP_WIDTH + 2, depth=self.tokens, init=[])
        write = listed.write_port()
        read = listed.read_port(domain="comb")
        position = Signal(range(self.tokens))
        element = Signal(32)
        entry = _Token(read.data[:STOP_WIDTH], read.data[STOP_WIDTH], read.data[STOP_WIDTH + 1])
        m.d.comb += [
            write.en.eq(self.token_write),
            write.addr.eq(self.token_address),
            write.data.eq(self.token_data),
            read.addr.eq(position),
        ]
        with m.If(advance):
            m.d.sync += [
                position.eq(Mux(entry.done, 0, position + 1)),
                element.eq(Mux(entry.done, 0, element + (entry.empty == 0))),
            ]
        return entry, element
