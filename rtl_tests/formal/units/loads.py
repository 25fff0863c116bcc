"""Loads: a view's elements, those addressed, or those of a list, in order, whatever order and time the memory answers
in."""

from functools import partial

from amaranth.hdl import Array, Cat, Const, Mux, Shape, Signal, Value, unsigned

from step_hw.beat import BeatLayout
from step_hw.hbm.affine import LOOPS
from step_hw.unit import ErrorCode

from ..case import Case
from ..faults import Fault
from ..harness import Harness
from ..tensors import COUNTER, LOOPS_GO_ON, MEMORY, assume_base

__all__ = ["CASES"]

BURSTS = 16
"""Bursts that the memory has room for, on both channels."""
WINDOW = 2
MOST = 2
"""Largest count of a loop."""
TOKENS = 4
"""Of the list of an input."""


def _harness(module, dims: int = 1) -> Harness:
    """Of a load whose elements have a burst on each of two channels, over views of ``dims`` loops."""
    unit = module.Load(BeatLayout(2), memory=MEMORY, element_bytes=8, window=WINDOW, reference=BeatLayout(1))
    h = Harness(unit, _loops(dims) | {"dims": dims, "limit": 4})
    m, p, cfg = h.m, unit.in0.payload, unit.cfg
    rank = h.constant("rank", 4)
    h.legal(0, rank)
    h.assume("a stop for the view", rank + dims <= 15)
    assume_base(h)
    contents, held = _memory(h)
    arrives = h.arrives()
    if dims == 1:
        h.assume("a view", (cfg.count0 != 0) & (cfg.count0 <= MOST))
    else:
        _assume_view(h)
    positions = _view(cfg, dims)
    owed = h.owes(0, WINDOW + len(positions) + 2)
    for k, (there, hollow, index, ends, over) in enumerate(positions):
        beat = Signal(unit.output_layouts[0], name=f"beat{k}")
        m.d.comb += beat.stop.eq(Mux(over, p.stop + dims, ends))
        with m.If(hollow):
            m.d.comb += beat.empty.eq(1)
        with m.Else():
            m.d.comb += [beat.data.eq(contents(index)), beat.rows.eq(1)]
        owed.append(arrives & ~p.empty & there, beat)
    bare = Signal(unit.output_layouts[0])
    m.d.comb += [bare.empty.eq(1), bare.done.eq(p.done), bare.stop.eq(Mux(p.done, 0, p.stop + dims))]
    if dims > 1:
        m.d.comb += bare.empty.eq(1)
        owed.append(arrives & ~p.empty & (cfg.count1 == 0), bare)
    owed.append(arrives & p.empty, bare)
    owed.close(held=held, stall=4)
    h.grammatical(0, rank + dims)
    h.no_error()
    return h


def _loops(dims: int) -> dict[str, int | Shape]:
    """Registers of ``dims`` loops, small, those from there on, and the stride of a single one."""
    registers: dict[str, int | Shape] = {f"{name}{k}": 1 for name in ("count", "stride") for k in range(dims, LOOPS)}
    small = {f"{name}{k}": unsigned(2) for name in ("count", "stride") for k in range(dims)}
    return registers | small | ({"stride0": 1} if dims == 1 else {})


def _assume_view(h: Harness, most: int = MOST) -> None:
    """Two loops, which may be empty, of positions 0 .. 3."""
    cfg = h.unit.cfg
    for register in (cfg.count0, cfg.count1):
        h.assume(f"{register.name} is small", register <= most)
    reach = [Mux(count == 2, stride, 0) for count, stride in ((cfg.count0, cfg.stride0), (cfg.count1, cfg.stride1))]
    h.assume("the view is in the tensor", reach[0] + reach[1] < 4)


def _view(cfg, dims: int) -> list[tuple[Value, Value | int, Value, Value, Value]]:
    """The positions of a view of one or two loops: of each whether it is there, whether it stands for an empty vector,
    the element, its stop if it is not the last, and whether it is."""
    made = []
    for k1 in range(MOST if dims > 1 else 1):
        for k0 in range(MOST):
            hollow = (cfg.count0 == 0) if dims > 1 else 0
            row_ends = (k0 + 1 == cfg.count0) | hollow
            over = row_ends & (k1 + 1 == cfg.count1) if dims > 1 else row_ends
            there = ((k0 < cfg.count0) | (hollow if k0 == 0 else 0)) & ((k1 < cfg.count1) if dims > 1 else 1)
            index = Const(0, 1) + (cfg.stride0[:2] if k0 else 0) + (cfg.stride1[:2] if k1 else 0)
            made.append((there, hollow, index, row_ends, over))
    return made


def _memory(h: Harness):
    """A memory with any contents, which never change, that answers each request of the unit once, burst by burst, when
    and in which order it likes. Returns the contents by element of the tensor, and whether it has an answer to give or
    a request to take.

    The first two bits of each burst are any, or of each element where several share one; the others are 0.
    """
    m, unit = h.m, h.unit
    elements = unit.port.elements
    size = elements.element_bytes
    width = unit.layout.data_width
    shared = [h.constant(f"burst{b}", 2 * elements.per_burst) for b in range(BURSTS)]
    bursts = Array(Cat(Cat(burst[k:k + 2], Const(0, 8 * size - 2)) for k in range(0, len(burst), 2))[
        :8 * MEMORY.burst_bytes] for burst in shared)

    outstanding = []
    free = []
    for c in range(MEMORY.channels):
        request, answer = getattr(unit.mem, f"req{c}"), getattr(unit.mem, f"resp{c}")
        h.watch(f"req{c}", request)
        pending = Signal(WINDOW * elements.bursts, name=f"pending{c}")
        lines = Array(Signal(range(BURSTS // 2), name=f"line{c}_{k}") for k in range(WINDOW))
        answers, slot = h.any(f"answer{c}"), h.any(f"slot{c}", 1)
        which = h.any(f"which{c}", 1) if elements.bursts > 1 else 0
        place = slot * elements.bursts + which
        h.assume(f"channel {c} answers what was asked", ~answers | pending.bit_select(place, 1))
        asks = request.valid & request.ready
        h.prove(f"channel {c}: a slot in use is not asked for",
                ~asks | ~pending.word_select(request.payload.slot, elements.bursts).any())
        line = Signal(range(BURSTS // 2), name=f"answered{c}")
        m.d.comb += [
            line.eq(lines[slot] + which), answer.valid.eq(answers), answer.slot.eq(slot), answer.q.eq(which),
            getattr(unit.data, f"channel{c}").eq(bursts[2 * line + c]),
        ]
        asked = ((1 << elements.bursts) - 1) << (request.payload.slot * elements.bursts)
        m.d.sync += pending.eq((pending | Mux(asks, asked, 0)) & ~(answers << place))
        with m.If(asks):
            m.d.sync += lines[request.payload.slot].eq(request.payload.line)
        outstanding.append(pending)
        free.append(request.ready)

    def contents(index) -> Value:
        """Element ``index``."""
        at = index * size
        first = (unit.cfg.base >> 2) + (at >> 2)
        words = Cat(bursts[(first + k)[:4]] for k in range(max(1, size // MEMORY.burst_bytes)))
        return (words.word_select(index & (elements.per_burst - 1), 8 * size) if elements.per_burst > 1
                else words)[:width]

    return contents, Cat(outstanding).any() | ~Cat(free).all()


def _random_harness(module, element_bytes: int = 8) -> Harness:
    """Of a load of elements at any addresses. Of those of 8 bytes, with a burst on each of two channels, only the first
    bits leave."""
    unit = module.RandomLoad(BeatLayout(2 if element_bytes == 8 else 8 * element_bytes), address=BeatLayout(3),
                             memory=MEMORY, element_bytes=element_bytes, window=WINDOW)
    h = Harness(unit)
    m, i, p, cfg = h.m, unit.in0, unit.in0.payload, unit.cfg
    rank = h.constant("rank", 4)
    h.legal(0, rank)
    assume_base(h)
    h.assume("and ends in it", (cfg.limit <= 8) & (cfg.limit[:4] * element_bytes + cfg.base[:5] <= 64))
    contents, held = _memory(h)
    arrives = h.arrives()
    outside = Signal()
    m.d.comb += outside.eq(i.valid & ~p.empty & (p.data >= cfg.limit))
    beat = Signal(unit.output_layouts[0])
    m.d.comb += [
        beat.data.eq(Mux(p.empty, 0, contents(p.data))), beat.rows.eq(~p.empty),
        beat.stop.eq(p.stop), beat.empty.eq(p.empty), beat.done.eq(p.done),
    ]
    owed = h.owes(0, WINDOW + 3)
    owed.append(arrives & ~outside, beat)
    owed.close(held=held, stall=4)
    h.grammatical(0, rank)
    h.prove("an address outside stays", ~outside | ~i.ready)
    h.prove("the right error", (unit.error == 0) | outside & (unit.error == ErrorCode.ADDRESS_RANGE))
    h.within("an address outside is an error", outside & (owed.queue.count == 0) & (unit.error == 0))
    return h


def _input_harness(module, listed: bool) -> Harness:
    """Of an input: runs of the tokens of a list that the host writes while the unit is idle, or of a view of two
    loops."""
    unit = module.Input(BeatLayout(2), memory=MEMORY, element_bytes=8, window=WINDOW, tokens=TOKENS)
    h = Harness(unit, _loops(2) | {"limit": 4, "regular": int(not listed)} | (
        {f"{name}{k}": 1 for name in ("count", "stride") for k in range(2)} | {"dims": 1} if listed else {}))
    m, cfg = h.m, unit.cfg
    rank = h.constant("rank", 4)
    assume_base(h)
    contents, held = _memory(h)
    start = h.any("start")
    m.d.comb += unit.start.eq(start)
    running, layout = Signal(), unit.output_layouts[0]
    h.assume("one run at a time", ~start | ~running)
    o = unit.out0
    with m.If(start):
        m.d.sync += running.eq(1)
    with m.Elif(o.valid & o.ready & o.payload.done):
        m.d.sync += running.eq(0)
    owed = h.owes(0, MOST * MOST + 2)
    done = Signal(layout)
    m.d.comb += [done.empty.eq(1), done.done.eq(1)]
    if listed:
        entries = [Signal(6, name=f"entry{k}") for k in range(TOKENS)]
        writes, at, given = h.any("writes"), h.any("at", range(TOKENS)), h.any("given", 6)
        h.assume("the host writes while the unit is idle", ~writes | ~running & ~start)
        m.d.comb += [unit.token_write.eq(writes), unit.token_address.eq(at), unit.token_data.eq(given)]
        for k, entry in enumerate(entries):
            with m.If(writes & (at == k)):
                m.d.sync += entry.eq(given)
        # A stream of the rank, and done.
        legal, ended, opened, inside, count = Const(1), Const(0), Const(0), Const(0), Const(0)
        for k, entry in enumerate(entries):
            stop, empty, last = entry[:4], entry[4], entry[5]
            may = Mux(last, empty & (stop == 0) & ~inside, (stop <= rank) & (~empty | (stop != 0) & ~opened))
            legal = legal & (ended | may)
            beat = Signal(layout, name=f"beat{k}")
            m.d.comb += [beat.stop.eq(stop), beat.empty.eq(empty), beat.done.eq(last)]
            with m.If(~empty):
                m.d.comb += [beat.data.eq(contents(count)), beat.rows.eq(1)]
            owed.append(start & ~ended, beat)
            ended, opened, inside, count = ended | last, ~empty & (stop == 0), stop < rank, count + ~empty
        h.assume("the list is a stream", ~start | legal & ended)
        h.grammatical(0, rank)
    else:
        h.assume("the stream's rank", (cfg.dims <= 2) & (cfg.dims != 0) & (rank + 1 == cfg.dims))
        _assume_view(h)
        two = cfg.dims == 2
        for k, (two_there, hollow, index, row_ends, _) in enumerate(_view(cfg, 2)):
            k1, k0 = divmod(k, MOST)
            beat = Signal(layout, name=f"beat{k}")
            with m.If(two & hollow):
                m.d.comb += beat.empty.eq(1)
            with m.Else():
                m.d.comb += [beat.data.eq(contents(index)), beat.rows.eq(1)]
            m.d.comb += beat.stop.eq(two & row_ends)
            owed.append(start & Mux(two, two_there, (k0 < cfg.count0) if k1 == 0 else 0), beat)
        owed.append(start, done)
        h.grammatical(0, rank)
    owed.close(held=held, stall=5)
    h.no_error()
    return h


FAULTS = (
    Fault("a channel is asked twice", "req.valid.eq(offered & targets[c] & ~taken[c])",
          "req.valid.eq(offered & targets[c])"),
    Fault("made when one channel is asked", "((taken | took | ~targets).all()))", "((taken | took | ~targets).any()))"),
    Fault("leaves when one burst is there", "((present | ~expected).all())", "((present | ~expected).any())"),
    Fault("a full window takes a token", "offered.eq(have & (level != self.window) & (error == 0))",
          "offered.eq(have & (error == 0))"),
    Fault("a burst that has left stays", "& ~(leaves.replicate(bursts) << (head * bursts)))", ")"),
    Fault("the view's stop is lost", "Mux(counter.last, ref.payload.stop + self.cfg.dims, counter.wraps)",
          "Mux(counter.last, ref.payload.stop, counter.wraps)"),
)

_LOAD = "step_hw.units.load"
RANDOM_FAULTS = (
    Fault("an address outside is read", "outside.eq((index >= self.cfg.limit)", "outside.eq((index > self.cfg.limit)",
          _LOAD),
    Fault("a burst counts for the next element", "& ~(leaves.replicate(bursts) << (head * bursts)))", ")", _LOAD),
    Fault("one channel is not awaited", "((present | ~expected).all())", "((present | ~expected)[0])", _LOAD),
    Fault("the stop is lost", "tok.stop.eq(address.payload.stop)", "tok.stop.eq(0)"),
    Fault("a bare stop is an element", "tok.empty.eq(address.payload.empty)", "tok.empty.eq(address.payload.done)"),
    Fault("the address leaves before it is asked for", "address.ready.eq(advance)", "address.ready.eq(have)"),
    Fault("a full window takes a token", "offered.eq(have & (level != self.window) & (error == 0))",
          "offered.eq(have & (error == 0))", _LOAD),
)

GROUP_FAULTS = (
    Fault("elements that share a burst are not told apart", "element.word_select(shown.share, ",
          "element.word_select(0, ", _LOAD),
    Fault("the channel awaited is that of the newest element", "self._targets(first.group)", "self._targets(group)",
          _LOAD),
    Fault("every channel is awaited", "expected.eq(Mux(first.empty, 0, self._targets(first.group)))",
          "expected.eq(Mux(first.empty, 0, (1 << self.memory.channels) - 1))", _LOAD),
    Fault("the line is the element's number", "(index >> (group_bits + share_bits)) * elements.bursts",
          "index * elements.bursts", _LOAD),
    RANDOM_FAULTS[0], RANDOM_FAULTS[1],
)
BURST_FAULTS = (
    Fault("whole when one burst of a channel is there", "arrived.word_select(head, bursts).all()",
          "arrived.word_select(head, bursts).any()", _LOAD),
    Fault("bursts of a channel go to one place", "write.en.eq(resp.valid & (resp.q[:q_bits] == q))",
          "write.en.eq(resp.valid)", _LOAD),
    Fault("elements overlap", "(index >> (group_bits + share_bits)) * elements.bursts",
          "(index >> (group_bits + share_bits))", _LOAD),
    Fault("bursts are put together channel by channel",
          "for q in range(self.port.elements.bursts) for j in range(span))",
          "for j in range(span) for q in range(self.port.elements.bursts))", _LOAD),
    RANDOM_FAULTS[2],
)
VIEW_FAULTS = (
    LOOPS_GO_ON,
    Fault("inner stops are lost", "Mux(counter.last, ref.payload.stop + self.cfg.dims, counter.wraps)",
          "Mux(counter.last, ref.payload.stop + self.cfg.dims, 0)"),
    Fault("an empty vector is an element", "tok.empty.eq(counter.hollow | counter.barren)",
          "tok.empty.eq(counter.barren)"),
    Fault("an empty view goes round its loops", "self.last.eq(ends_to[LOOPS - 1] | self.barren)",
          "self.last.eq(ends_to[LOOPS - 1])", COUNTER),
    FAULTS[0], FAULTS[3], FAULTS[5],
)
INPUT_FAULTS = (
    Fault("the list is not begun anew", "position.eq(Mux(entry.done, 0, position + 1))", "position.eq(position + 1)",
          _LOAD),
    Fault("a bare stop has a place", "element + (entry.empty == 0)", "element + 1", _LOAD),
    Fault("the list goes on by itself", "step_list.eq(advance)", "step_list.eq(have)", _LOAD),
    Fault("the list does not end", "with m.If(advance & tok.done):", "with m.If(advance & tok.done & tok.stop.any()):",
          _LOAD),
)
REGULAR_FAULTS = (
    Fault("done is not sent", "with m.If(nothing | (advance & counter.last)):\n                    m.next = \"DONE\"",
          "with m.If(nothing | (advance & counter.last)):\n                    m.next = \"IDLE\"", _LOAD),
    Fault("nothing is an element", "have.eq(~nothing)", "have.eq(1)", _LOAD),
    Fault("the stream's stop is one too high", "self.cfg.dims - 1, counter.wraps)", "self.cfg.dims, counter.wraps)",
          _LOAD),
    Fault("an empty vector is nothing", "counter.barren | (counter.hollow & (self.cfg.dims == 1))",
          "counter.barren | counter.hollow", _LOAD),
    Fault("the place moves while the channels wait",
          "- 1, counter.wraps)),\n                    counter.step.eq(advance)",
          "- 1, counter.wraps)),\n                    counter.step.eq(have)", _LOAD),
)

CASES = (
    Case("load with reference, 2 channels", _LOAD, _harness, 9, None, 6, FAULTS),
    Case("random_load, 2 channels", "step_hw.units.random_load", _random_harness, 10, None, 6, RANDOM_FAULTS),
    Case("load with reference, a view of 2 loops", _LOAD, partial(_harness, dims=2), 7, None, 0, VIEW_FAULTS),
    Case("random_load, elements of half a burst", "step_hw.units.random_load",
         partial(_random_harness, element_bytes=2), 8, None, 0, GROUP_FAULTS),
    Case("random_load, elements of 2 bursts on each of 2 channels", "step_hw.units.random_load",
         partial(_random_harness, element_bytes=16), 7, None, 0, BURST_FAULTS),
    Case("input, a list", "step_hw.units.input", partial(_input_harness, listed=True), 10, None, 5, INPUT_FAULTS),
    Case("input, a view of up to 2 loops", "step_hw.units.input", partial(_input_harness, listed=False), 9, None, 0,
         REGULAR_FAULTS),
)
