"""A scratchpad's book-keeping in plain Python: who holds which page, cycle by cycle, from what its ports are asked."""

from dataclasses import dataclass, field

from amaranth.hdl import Cat, Module
from amaranth.lib.wiring import Out

from step_hw.units.scratchpad import Scratchpad
from step_lang.mapping.registers import USES_WIDTH

__all__ = ["PadEvents", "PadReference", "connect_events", "event_ports", "read_events"]


@dataclass
class PadEvents:
    """What happens in one cycle. Numbers are those of buffers, without their generation."""

    claim: int | None = None
    take: tuple[int, int] | None = None        # buffer, page
    close: tuple[int, int] | None = None       # buffer, uses
    ended: list[int] = field(default_factory=list)                # one use of each
    made: list[tuple[int, int]] = field(default_factory=list)     # buffer, new uses, of routers


class PadReference:
    """Pages and uses of every buffer.

    A buffer without uses gives its pages back one a cycle, beginning two cycles after its last use's; buffers give them
    one after the other, each time the lowest number that waits. Breaks of the rules are AssertionErrors.

    used, peak : pages in use, and the most there were
    fragmented : pages taken that do not follow the buffer's page before; crowded : cycles with at most a tenth free
    overtaken : buffers that died before one that was filled before them; dropped : those that a router handed to nobody
    """

    def __init__(self, pages: int, references: int):
        self.size, self.references = pages, references
        self.pages: dict[int, list[int]] = {}    # of buffers that have a number
        self.uses: dict[int, int] = {}           # of those complete
        self.dead: list[int] = []
        self.walked: int | None = None           # the dead buffer whose pages go back now
        self.age: dict[int, int] = {}
        self.used = self.peak = self.fragmented = self.crowded = self.overtaken = self.buffers = self.dropped = 0

    def step(self, events: PadEvents) -> None:
        """One cycle: decisions are made on the state at its start, as in hardware."""
        held = {page for pages in self.pages.values() for page in pages}
        self.crowded += 10 * self.used >= 9 * self.size
        given = self._give_back()
        if events.claim is not None:
            assert events.claim not in self.pages, f"number {events.claim} given twice"
            assert 0 <= events.claim < self.references, f"number {events.claim}"
            self.pages[events.claim] = []
            self.buffers += 1
            self.age[events.claim] = self.buffers
        if events.take is not None:
            number, page = events.take
            assert page not in held and 0 <= page < self.size, f"page {page} taken, in use: {sorted(held)}"
            own = self.pages[number]
            self.fragmented += bool(own) and page != own[-1] + 1
            own.append(page)
        self.used += (events.take is not None) - given
        self.peak = max(self.peak, self.used)
        if events.close is not None:
            number, uses = events.close
            assert number in self.pages and number not in self.uses, f"buffer {number} closed"
            self.uses[number] = uses
        for number, uses in events.made:
            self.uses[number] += uses
            self.dropped += uses == 0
        for number in events.ended:
            assert self.uses.get(number, 0) > 0, f"a use of buffer {number} ends that does not exist"
            self.uses[number] -= 1
        for number in sorted(self.uses):
            if self.uses[number] == 0:
                del self.uses[number]
                self.overtaken += any(self.age[other] < self.age[number] for other in self.uses)
                self.dead.append(number)

    def _give_back(self) -> int:
        if not self.dead:
            return 0
        number = min(self.dead) if self.walked is None else self.walked
        pages = self.pages[number]
        given = int(bool(pages))
        if pages:
            pages.pop(0)
        self.walked = number
        if not pages:
            self.dead.remove(number)
            self.walked = None
            del self.pages[number]
        return given


def event_ports(pad: Scratchpad) -> dict:
    """Ports of a bench's unit at which `connect_events` shows what a scratchpad inside it is asked for."""
    shape, routers = pad.shape, max(1, pad.routers)
    return {
        "claim": Out(1), "take": Out(1), "close": Out(1), "owner": Out(shape.number_bits), "page": Out(shape.page_bits),
        "uses_given": Out(USES_WIDTH), "pages": Out(range(shape.pages + 1)),
        "releases": Out(pad.readers), "released": Out(shape.number_bits * pad.readers),
        "changes": Out(routers), "changed": Out(shape.number_bits * routers), "made": Out(USES_WIDTH * routers),
    }


def connect_events(m: Module, unit, pad: Scratchpad) -> None:
    """Connect the `event_ports` of ``unit`` to ``pad``."""
    w, bits = pad.write, pad.shape.number_bits
    m.d.comb += [
        unit.claim.eq(w.claim), unit.take.eq(w.take), unit.close.eq(w.close), unit.owner.eq(w.owner[:bits]),
        unit.page.eq(w.page), unit.uses_given.eq(w.uses), unit.pages.eq(pad.shape.pages),
        unit.releases.eq(Cat(p.release for p in pad.reads)), unit.released.eq(Cat(p.ref[:bits] for p in pad.reads)),
        unit.changes.eq(Cat(p.change for p in pad.routes)), unit.changed.eq(Cat(p.ref[:bits] for p in pad.routes)),
        unit.made.eq(Cat(p.uses for p in pad.routes)),
    ]


def read_events(dut) -> PadEvents:
    """The events of this cycle at a simulated unit's `event_ports`."""
    def value(name: str) -> int:
        return int(getattr(dut, name).value)

    def numbers(name: str, of: str) -> list[tuple[int, int]]:
        valid, packed = value(name), value(of)
        return [(k, packed >> bits * k & (1 << bits) - 1) for k in range(len(getattr(dut, name))) if valid >> k & 1]

    bits = len(dut.owner)
    owner = value("owner")
    changed = numbers("changes", "changed")
    return PadEvents(
        claim=owner if value("claim") else None,
        take=(owner, value("page")) if value("take") else None,
        close=(owner, value("uses_given")) if value("close") else None,
        ended=[number for _, number in numbers("releases", "released") + changed],
        made=[(number, value("made") >> USES_WIDTH * k & (1 << USES_WIDTH) - 1) for k, number in changed],
    )
