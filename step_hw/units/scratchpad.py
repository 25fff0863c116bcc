"""Scratchpad: frames in pages, shared by the buffers that live in it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from step_lang.mapping.registers import GENERATION_WIDTH, USES_WIDTH

from ..beat import BeatLayout
from ..unit import Unit

__all__ = [
    "COUNT_WIDTH", "FrameLayout", "ReadPort", "Scratchpad", "ScratchpadShape", "UsePort", "WritePort", "read_port",
    "use_port",
]

COUNT_WIDTH = 24
"""Bits of every count, index and stride of elements: up to 16,777,215 elements a buffer or passes."""


class FrameLayout(data.StructLayout):
    """What one frame stores: an element with its stop, so that a pass in order needs no sizes of inner dimensions."""

    def __init__(self, layout: BeatLayout):
        super().__init__({name: layout[name].shape for name in ("data", "rows", "stop")})


@dataclass(frozen=True)
class ScratchpadShape:
    """Elaboration parameters that a scratchpad shares with the units at its ports.

    frames : elements it holds; a multiple of ``page_frames``
    page_frames : elements of a page, the unit of allocation; a power of two
    references : buffers that can exist at once, the one being filled included
    layout : beat layout of the stored elements
    owners : scratchpads whose references meet at the unit; a reference then says whose it is, and the unit has a port
        to each
    uses_bits : bits of a count of uses
    """

    frames: int
    page_frames: int
    references: int
    layout: BeatLayout
    owners: int = 1
    uses_bits: int = USES_WIDTH

    def __post_init__(self):
        if self.page_frames < 1 or self.page_frames & (self.page_frames - 1):
            raise ValueError(f"frames of a page must be a power of two, not {self.page_frames}")
        if self.frames < 2 or self.frames % self.page_frames:
            raise ValueError(f"a scratchpad holds 2 frames or more, in pages of {self.page_frames}, not {self.frames}")
        if self.frames >= 1 << (COUNT_WIDTH - 1):
            raise ValueError(f"a scratchpad holds fewer than {1 << (COUNT_WIDTH - 1)} frames, not {self.frames}")
        if self.references < 1:
            raise ValueError(f"a scratchpad has at least one reference, not {self.references}")

    @property
    def pages(self) -> int:
        """Pages in all."""
        return self.frames // self.page_frames

    @property
    def offset_bits(self) -> int:
        """Bits of a position inside a page."""
        return self.page_frames.bit_length() - 1

    @property
    def page_bits(self) -> int:
        """Bits of a page number."""
        return bits_for(self.pages - 1)

    @property
    def number_bits(self) -> int:
        """Bits of the number of a buffer, 0..references-1."""
        return bits_for(self.references - 1)

    @property
    def own_bits(self) -> int:
        """Bits of a reference that its scratchpad sees: a buffer's number, then its generation."""
        return self.number_bits + GENERATION_WIDTH

    @property
    def reference_bits(self) -> int:
        """Bits of a reference, the payload of a reference link: above those that its scratchpad sees, which it is."""
        return self.own_bits + bits_for(self.owners - 1) * (self.owners > 1)

    @property
    def port_names(self) -> tuple[str, ...]:
        """Names of a reader's or router's ports, one for each scratchpad."""
        return ("port",) if self.owners == 1 else tuple(f"port{k}" for k in range(self.owners))

    @property
    def own(self) -> "ScratchpadShape":
        """Of one of the scratchpads."""
        return replace(self, owners=1)

    @property
    def reference_layout(self) -> BeatLayout:
        """Beat layout of a reference link."""
        return BeatLayout(self.reference_bits, 1)

    @property
    def key(self) -> str:
        """Short text that tells shapes apart in module names."""
        key = f"{self.layout.key}_f{self.frames}p{self.page_frames}r{self.references}"
        key += f"u{self.uses_bits}" if self.uses_bits != USES_WIDTH else ""
        return key + (f"o{self.owners}" if self.owners > 1 else "")

    @property
    def router_key(self) -> str:
        """Short text that tells shapes apart in module names of routers, which see references only."""
        key = f"r{self.references}" + (f"w{self.uses_bits}" if self.uses_bits != USES_WIDTH else "")
        return key + (f"o{self.owners}" if self.owners > 1 else "")


class WritePort(wiring.Signature):
    """Bufferize's access to its scratchpad (directions as bufferize sees them).

    ========== === ===================================================================================
    member         meaning
    ========== === ===================================================================================
    ref        In  the reference that ``claim`` takes, valid while ``ref_free``
    page       In  the page that ``take`` takes, valid while ``page_free``
    alone      In  exactly one reference is in use: no other buffer can ever give a page back
    claim      Out take ``ref``
    take       Out take ``page`` as page ``number`` of buffer ``owner``
    write      Out store ``frame`` at ``address``
    close      Out buffer ``owner`` is complete: ``length`` elements, freed when ``uses`` uses are over (0: at once)
    ========== === ===================================================================================
    """

    def __init__(self, shape: ScratchpadShape):
        super().__init__({
            "ref": In(shape.reference_bits), "ref_free": In(1),
            "page": In(shape.page_bits), "page_free": In(1),
            "alone": In(1),
            "claim": Out(1),
            "owner": Out(shape.reference_bits),
            "take": Out(1), "number": Out(shape.page_bits),
            "write": Out(1), "address": Out(range(shape.frames)), "frame": Out(FrameLayout(shape.layout)),
            "close": Out(1), "length": Out(range(shape.frames + 1)), "uses": Out(shape.uses_bits),
        })


class ReadPort(wiring.Signature):
    """Streamify's access to its scratchpad (directions as streamify sees them).

    ========== === ===================================================================================
    member         meaning
    ========== === ===================================================================================
    ref        Out the buffer that is looked at
    live       In  it is complete and not freed (same cycle)
    length     In  its elements (same cycle)
    request    Out read element ``index``; only when its data can be taken in the next cycle
    grant      In  the read is done in this cycle; ``frame`` holds it from the next cycle on until the next grant
    release    Out one use of ``ref`` is over; may come with its last read
    ========== === ===================================================================================
    """

    def __init__(self, shape: ScratchpadShape):
        super().__init__({
            "ref": Out(shape.reference_bits), "live": In(1),
            "length": In(range(shape.frames + 1)),
            "request": Out(1), "index": Out(range(shape.frames)), "grant": In(1),
            "frame": In(FrameLayout(shape.layout)),
            "release": Out(1),
        })


class UsePort(wiring.Signature):
    """A router's access to the scratchpad whose references it hands on (directions as the router sees them).

    ========== === ===================================================================================
    member         meaning
    ========== === ===================================================================================
    ref        Out the buffer that is looked at
    live       In  it is complete and not freed (same cycle)
    change     Out the use of ``ref`` that the router holds becomes ``uses`` uses (0: it is over)
    ========== === ===================================================================================
    """

    def __init__(self, shape: ScratchpadShape):
        super().__init__({
            "ref": Out(shape.reference_bits), "live": In(1), "change": Out(1), "uses": Out(shape.uses_bits)})


def read_port(m: Module, ports: Sequence, shape: ScratchpadShape):
    """One port for a reader at the scratchpads of ``ports``: a reference is looked up in its own, and a frame comes
    from the one that granted last."""
    if len(ports) == 1:
        return ports[0]
    one = ReadPort(shape).create()
    owner, last = one.ref[shape.own_bits:], Signal(range(len(ports)), name="last_owner")
    with m.If(one.grant):
        m.d.sync += last.eq(owner)
    with m.Switch(owner):
        for k, port in enumerate(ports):
            m.d.comb += [port.ref.eq(one.ref[:shape.own_bits]), port.index.eq(one.index)]
            with m.Case(k):
                m.d.comb += [one.live.eq(port.live), one.length.eq(port.length), port.request.eq(one.request),
                             one.grant.eq(port.grant), port.release.eq(one.release)]
    with m.Switch(last):
        for k, port in enumerate(ports):
            with m.Case(k):
                m.d.comb += one.frame.eq(port.frame)
    return one


def use_port(m: Module, ports: Sequence, shape: ScratchpadShape):
    """One port for a router at the scratchpads of ``ports``."""
    if len(ports) == 1:
        return ports[0]
    one = UsePort(shape).create()
    with m.Switch(one.ref[shape.own_bits:]):
        for k, port in enumerate(ports):
            m.d.comb += [port.ref.eq(one.ref[:shape.own_bits]), port.uses.eq(one.uses)]
            with m.Case(k):
                m.d.comb += [one.live.eq(port.live), port.change.eq(one.change)]
    return one


def _lowest(m: Module, bits, name: str):
    """Number of the lowest set bit (0 when none is)."""
    found = Signal(range(max(len(bits), 2)), name=name)
    for i in reversed(range(len(bits))):
        with m.If(bits[i]):
            m.d.comb += found.eq(i)
    return found


class Scratchpad(Unit):
    """Storage, page table, free list and use counts of the buffers of one bufferize (docs/DESIGN.md, section 4).

    One write and one read a cycle. A page comes from the pages given back, oldest first, else from those never used; a
    buffer's number is the lowest free one, and its reference says of which generation it is, so that a reference to a
    buffer that was freed is not live though its number is another buffer's.

    Whoever holds a reference holds one of its buffer's uses: bufferize says how many there are, a reader ends one, a
    router makes of the one that it holds as many as it hands on. With its last use a buffer dies; one page of the dead
    buffers goes back to the free list a cycle (lowest number first, one buffer after the other), and with its last page
    the number is free. A page taken in cycle t + 2 at the earliest is one whose buffer's last use ended in cycle t.
    Several readers take turns: rotating priority, beginning after the one served last.

    Parameters
    ----------
    shape : ScratchpadShape
    readers : int
        Read ports ``read0, read1, ..``.
    routers : int
        Ports ``route0, route1, ..`` of routers that hand references on.

    Attributes
    ----------
    write : port, the other side of :class:`WritePort`
    reads : list of ports, the other sides of :class:`ReadPort`
    routes : list of ports, the other sides of :class:`UsePort`
    used, peak : Out
        Pages in use now, and the most there were since reset.
    """

    kind = "scratchpad"

    def __init__(self, shape: ScratchpadShape, readers: int = 1, routers: int = 0):
        if readers < 1:
            raise ValueError(f"a scratchpad has at least one reader, not {readers}")
        if shape.owners != 1:
            raise ValueError("a scratchpad does not know of others: give it its own shape")
        self.shape = shape
        self.readers = readers
        self.routers = routers
        ports = {"write": In(WritePort(shape))} | {f"read{k}": In(ReadPort(shape)) for k in range(readers)}
        ports |= {f"route{k}": In(UsePort(shape)) for k in range(routers)}
        counts = {"used": Out(range(shape.pages + 1)), "peak": Out(range(shape.pages + 1))}
        super().__init__([], [], state_width=shape.references, extra=ports | counts)

    @property
    def reads(self) -> Sequence:
        """Read ports in order."""
        return [getattr(self, f"read{k}") for k in range(self.readers)]

    @property
    def routes(self) -> Sequence:
        """Routers' ports in order."""
        return [getattr(self, f"route{k}") for k in range(self.routers)]

    @property
    def module_name(self) -> str:
        return f"scratchpad_{self.shape.key}_n{self.readers}" + (f"_u{self.routers}" if self.routers else "")

    def elaborate(self, platform):
        m = Module()
        shape, w = self.shape, self.write
        taken = Signal(shape.references)      # claimed and not yet given back
        complete = Signal(shape.references)   # closed and still to be used
        dead = Signal(shape.references)       # used for the last time, pages still to be given back
        length = Array(Signal(range(shape.frames + 1), name=f"length{r}") for r in range(shape.references))
        uses = Array(Signal(shape.uses_bits, name=f"uses{r}") for r in range(shape.references))
        generation = Array(Signal(GENERATION_WIDTH, name=f"generation{r}") for r in range(shape.references))

        # References: lowest free number first.
        free = _lowest(m, ~taken, "free")
        owner = self._number(w.owner)
        m.d.comb += [
            w.ref.eq(Cat(free, generation[free])), w.ref_free.eq(~taken.all()), w.alone.eq(sum(taken) == 1),
            self.state.eq(taken),
        ]
        with m.If(w.claim):
            m.d.sync += taken.bit_select(free, 1).eq(1)
        with m.If(w.close):
            m.d.sync += [length[owner].eq(w.length), uses[owner].eq(w.uses)]

        # Uses: a reader ends one, a router ends one and makes others; a buffer without any is dead.
        for r in range(shape.references):
            dies = Signal(name=f"dies{r}")
            ended = sum(p.release & (self._number(p.ref) == r) for p in self.reads)
            ended += sum(p.change & (self._number(p.ref) == r) for p in self.routes)
            made = sum((Mux(p.change & (self._number(p.ref) == r), p.uses, 0) for p in self.routes), uses[r])
            closed = w.close & (owner == r)
            m.d.comb += dies.eq(Mux(closed, w.uses == 0, (ended != 0) & (made <= ended)))
            with m.If(closed):
                m.d.sync += complete[r].eq(1)
            with m.Elif(ended != 0):
                m.d.sync += uses[r].eq(made - ended)
            with m.If(dies):
                m.d.sync += [complete[r].eq(0), dead[r].eq(1), generation[r].eq(generation[r] + 1)]
        for p in [*self.reads, *self.routes]:
            number = self._number(p.ref)
            m.d.comb += p.live.eq((number < shape.references) & complete.bit_select(number, 1)
                                  & (generation[number] == p.ref[shape.number_bits:]))

        # Page table: one entry a page a buffer can have; read in the same cycle.
        m.submodules.page_table = table = memory.Memory(
            shape=shape.page_bits, depth=shape.references << shape.page_bits, init=[])
        table_write = table.write_port()
        m.d.comb += [
            table_write.en.eq(w.take),
            table_write.addr.eq(Cat(w.number, owner)),
            table_write.data.eq(w.page),
        ]

        # Walker: gives back one page of a dead buffer a cycle.
        walking = Signal()
        walk_ref = Signal(shape.number_bits)
        walk_page = Signal(shape.page_bits)
        now = Mux(walking, walk_ref, _lowest(m, dead, "next_dead"))
        entry = table.read_port(domain="comb")
        has_page = Signal()
        ends = Signal()   # this is the buffer's last page
        give = Signal()
        m.d.comb += [
            entry.addr.eq(Cat(walk_page, now)),
            has_page.eq(length[now] != 0),
            ends.eq(((walk_page + 1) << shape.offset_bits) >= length[now]),
            give.eq(dead.any() & has_page),
        ]
        with m.If(dead.any()):
            with m.If(ends):
                m.d.sync += [
                    walking.eq(0), walk_page.eq(0),
                    dead.bit_select(now, 1).eq(0), taken.bit_select(now, 1).eq(0),
                ]
            with m.Else():
                m.d.sync += [walking.eq(1), walk_ref.eq(now), walk_page.eq(walk_page + 1)]

        # Free pages: a queue of those given back, and a count of those never used, which needs no start-up.
        m.submodules.free_pages = queue = memory.Memory(shape=shape.page_bits, depth=max(shape.pages, 2), init=[])
        push = queue.write_port()
        head_page = queue.read_port(domain="comb")
        head = Signal(range(max(shape.pages, 2)))
        tail = Signal(range(max(shape.pages, 2)))
        level = Signal(range(shape.pages + 1))   # pages in the queue
        fresh = Signal(range(shape.pages + 1))   # pages taken for the first time
        reuse = Signal()
        m.d.comb += [
            head_page.addr.eq(head), push.addr.eq(tail), push.data.eq(entry.data), push.en.eq(give),
            reuse.eq(level != 0),
            w.page.eq(Mux(reuse, head_page.data, fresh)),
            w.page_free.eq(reuse | (fresh != shape.pages)),
        ]
        m.d.sync += [level.eq(level + give - (w.take & reuse)), self.used.eq(self.used + w.take - give)]
        with m.If(give):
            m.d.sync += tail.eq(self._next(tail))
        with m.If(w.take & reuse):
            m.d.sync += head.eq(self._next(head))
        with m.If(w.take & ~reuse):
            m.d.sync += fresh.eq(fresh + 1)
        with m.If(w.take & ~give & (self.used == self.peak)):
            m.d.sync += self.peak.eq(self.peak + 1)

        for p in self.reads:
            m.d.comb += p.length.eq(length[self._number(p.ref)])
        self._storage(m, table)
        return m

    def _storage(self, m: Module, table: memory.Memory) -> None:
        """The frames: one write port, and one read port at which the readers take turns."""
        shape, w = self.shape, self.write
        frame_bits = FrameLayout(shape.layout).size
        m.submodules.storage = storage = memory.Memory(shape=frame_bits, depth=shape.frames, init=[])
        write = storage.write_port()
        read = storage.read_port()
        m.d.comb += [write.en.eq(w.write), write.addr.eq(w.address), write.data.eq(w.frame)]

        addresses = []
        for k, p in enumerate(self.reads):
            number = Signal(shape.page_bits, name=f"number{k}")
            entry = table.read_port(domain="comb")
            m.d.comb += [number.eq(p.index >> shape.offset_bits), entry.addr.eq(Cat(number, self._number(p.ref)))]
            addresses.append(Cat(p.index[:shape.offset_bits], entry.data))

        if self.readers == 1:
            only = self.reads[0]
            m.d.comb += [read.addr.eq(addresses[0]), read.en.eq(only.request), only.grant.eq(only.request),
                         only.frame.eq(read.data)]
            return

        # Rotating priority: first the reader after the one served last.
        served = Signal(range(self.readers), init=self.readers - 1)
        turn = Signal(range(self.readers))
        requests = Cat(p.request for p in self.reads)
        m.d.comb += read.en.eq(requests.any())
        with m.Switch(served):
            for last in range(self.readers):
                with m.Case(last):
                    for distance in reversed(range(self.readers)):
                        k = (last + 1 + distance) % self.readers
                        with m.If(requests[k]):
                            m.d.comb += turn.eq(k)
        with m.If(read.en):
            m.d.sync += served.eq(turn)
        with m.Switch(turn):
            for k, p in enumerate(self.reads):
                with m.Case(k):
                    m.d.comb += [read.addr.eq(addresses[k]), p.grant.eq(p.request)]
        # The memory's output register is shared; a reader that cannot pass its frame on at once keeps a copy.
        for k, p in enumerate(self.reads):
            fresh = Signal(name=f"fresh{k}")
            kept = Signal(len(read.data), name=f"kept{k}", reset_less=True)
            m.d.sync += fresh.eq(p.grant)
            with m.If(fresh):
                m.d.sync += kept.eq(read.data)
            m.d.comb += p.frame.eq(Mux(fresh, read.data, kept))

    def _number(self, ref):
        """The number in a reference."""
        return ref[:self.shape.number_bits]

    def _next(self, pointer):
        return Mux(pointer == self.shape.pages - 1, 0, pointer + 1)
