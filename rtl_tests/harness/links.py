"""cocotb agents for the link protocol: clocking, driver, sink, monitor, protocol checker, scoreboard.

Use them on your own units. One `Clocking` owns clock and reset and calls every agent twice a cycle, always in the same
order, which is what makes a run give the same cycles on every simulator::

    @cocotb.test()
    async def my_unit(dut):
        clocking = Clocking(dut)
        driver = clocking.add(LinkDriver(dut, "in0", layout, pattern=bernoulli(0.5)))
        sink = clocking.add(LinkSink(dut, "out0", layout, pattern=bursts(3, 5)))
        clocking.add(ProtocolChecker(sink))
        await clocking.reset()
        driver.send(beats("1 2 S1 3 S1 D"))
        await clocking.run(lambda: len(sink.beats) == 4, max_cycles=200)
        Scoreboard("out0", expected).compare(sink.beats)

A cycle: the clock rises; agents ``drive`` what they offer in this cycle; the clock falls; logic settles; agents
``sample`` the settled signals, which are what the next rising edge takes. A transfer's **stamp** is the number of
its cycle, counted from the first cycle after reset.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from cocotb.triggers import Timer

from .beats import Beat, LinkLayout
from .checks import LinkChecks, compare_beats
from .patterns import Pattern, always
from .signals import UnknownBits, reader, unsigned, writer

__all__ = [
    "Agent",
    "Clocking",
    "LinkDriver",
    "LinkMonitor",
    "LinkSink",
    "ProtocolChecker",
    "Scoreboard",
    "UnknownBits",
]

_HALF_PERIOD_NS = 5


class Agent(Protocol):
    """What `Clocking` calls: ``drive`` after the rising edge, ``sample`` before the next one, ``clear`` at reset."""

    def drive(self, cycle: int) -> None:
        """Set the signals of this cycle."""

    def sample(self, cycle: int) -> None:
        """Look at the settled signals of this cycle."""

    def clear(self) -> None:
        """Forget everything: the design is being reset."""


class Clocking:
    """Clock and reset of a design, and the agents that live by it.

    ``cycle`` counts from 0 at the first cycle after reset. ``probe`` is called in the middle of a cycle when it is
    set, for checks that move an input and look at the combinational answer.
    """

    def __init__(self, dut, clock: str = "clk", reset: str | None = "rst"):
        self.dut = dut
        self.cycle = 0
        self.agents: list[Agent] = []
        self._put_clock = writer(getattr(dut, clock))
        self._put_reset = writer(getattr(dut, reset)) if reset is not None else None
        self._half = Timer(_HALF_PERIOD_NS, "ns")

    def add(self, agent):
        """Register ``agent`` (and return it); agents are called in the order of registration."""
        self.agents.append(agent)
        return agent

    async def reset(self, cycles: int = 2) -> None:
        """Hold reset for ``cycles`` cycles with every agent cleared, and begin to count cycles anew."""
        await (
            self._half
        )  # Icarus 11 breaks on what is written to an input at time 0 (X for good): nothing is, before this
        for agent in self.agents:
            agent.clear()
        if self._put_reset is not None:
            self._put_reset("1")
        for _ in range(cycles):
            self._put_clock("0")
            await self._half
            self._put_clock("1")
            await self._half
        if self._put_reset is not None:
            self._put_reset("0")
        self.cycle = 0

    async def step(self) -> None:
        """One clock cycle."""
        cycle = self.cycle
        for agent in self.agents:
            agent.drive(cycle)
        # The design answers before the clock falls: a clock gate takes its enable with the falling edge.
        await self.settle()
        self._put_clock("0")
        await self._half
        for agent in self.agents:
            agent.sample(cycle)
        await self.between()
        self._put_clock("1")
        await self._half
        self.cycle = cycle + 1

    async def between(self) -> None:
        """Hook between sampling and the rising edge; a subclass may move inputs here if it puts them back."""

    async def settle(self) -> None:
        """Let combinational logic answer a change made in `between`."""
        await Timer(1, "step")

    async def run(self, until: Callable[[], bool], max_cycles: int, what: str = "the end of the test") -> None:
        """Clock until ``until()`` holds; AssertionError after ``max_cycles`` cycles."""
        for _ in range(max_cycles):
            if until():
                return
            await self.step()
        if not until():
            raise AssertionError(f"{what} was not reached in {max_cycles} cycles")


class _Port:
    """The signals of one link."""

    def __init__(self, dut, name: str, layout: LinkLayout):
        self.name = name
        self.layout = layout
        payload, valid, ready = (getattr(dut, f"{name}__{part}") for part in ("payload", "valid", "ready"))
        width = len(payload)
        if width != layout.width:
            raise ValueError(f"{name}: payload has {width} bits, the layout {layout} has {layout.width}")
        self._valid = valid
        self.read_payload, self.read_valid, self.read_ready = reader(payload), reader(valid), reader(ready)
        self.put_payload, self.put_valid, self.put_ready = writer(payload), writer(valid), writer(ready)


class LinkDriver(_Port):
    """Offers beats to an input of the design.

    A beat that is offered stays until it is taken; ``pattern`` decides when the next is offered. ``beats`` and
    ``stamps`` hold what was taken and when, ``pending`` is what is left, ``blocked`` counts cycles of valid without
    ready.
    """

    def __init__(self, dut, name: str, layout: LinkLayout, pattern: Pattern | None = None, seed: int | str = 0):
        super().__init__(dut, name, layout)
        self.use(pattern or always(), seed)
        self._forget()

    def use(self, pattern: Pattern, seed: int | str) -> None:
        """Take up another pattern."""
        self._gate = pattern.gate(f"{seed}:{self.name}")

    def clear(self) -> None:
        """Forget everything and withdraw the offer (reset)."""
        self._forget()
        self.put_valid("0")
        self.put_payload("0" * self.layout.width)

    def _forget(self) -> None:
        self.beats: list[Beat] = []
        self.stamps: list[int] = []
        self.blocked = 0
        self.offering = False
        self._queue: list[Beat] = []
        self._words: list[str] = []
        self._next = 0
        self._dones = 0
        self._valid_is = False

    def send(self, stream: Iterable[Beat]) -> None:
        """Append beats to be driven."""
        for beat in stream:
            self._words.append(f"{self.layout.pack(beat):0{self.layout.width}b}")
            self._queue.append(beat)

    @property
    def pending(self) -> list[Beat]:
        """Beats not taken yet."""
        return self._queue[self._next :]

    @property
    def idle(self) -> bool:
        """Everything sent has been taken."""
        return self._next == len(self._queue)

    @property
    def streams_begun(self) -> int:
        """How many streams (ended by done) have had a beat offered."""
        inside = self.offering or (self._next > 0 and not self._queue[self._next - 1].done)
        return self._dones + inside

    def due(self, cycle: int) -> bool:
        """Whether the next beat may be offered in this cycle, as the pattern says; a subclass may know better."""
        return self._gate(False)

    def drive(self, cycle: int) -> None:
        """Offer the next beat, or keep offering."""
        if self.offering:
            return
        if self._next < len(self._queue) and self.due(cycle):
            self.offering = True
            self.put_payload(self._words[self._next])
        if self._valid_is != self.offering:
            self._valid_is = self.offering
            self.put_valid("1" if self.offering else "0")

    def sample(self, cycle: int) -> None:
        """See whether the beat is taken."""
        if not self.offering:
            return
        ready = self.read_ready()
        if ready == "1":
            beat = self._queue[self._next]
            self.beats.append(beat)
            self.stamps.append(cycle)
            self._next += 1
            self._dones += beat.done
            self.offering = False
        elif ready == "0":
            self.blocked += 1
        else:
            raise UnknownBits(f"{self.name}: ready is {ready} in cycle {cycle}, while valid is 1")


class LinkMonitor(_Port):
    """Watches a link that others drive, recording its transfers.

    ``beats`` and ``stamps`` hold the transfers, ``blocked`` counts cycles of valid without ready, ``starved`` cycles
    without valid. ``seen`` is what the last sample saw: (valid, ready, payload bits; 0 when not valid).
    """

    def __init__(self, dut, name: str, layout: LinkLayout):
        super().__init__(dut, name, layout)
        self._forget()

    def clear(self) -> None:
        """Forget all transfers (reset)."""
        self._forget()

    def _forget(self) -> None:
        self.beats: list[Beat] = []
        self.stamps: list[int] = []
        self.blocked = 0
        self.starved = 0
        self.seen = (False, False, 0)

    def drive(self, cycle: int) -> None:
        """Nothing: a monitor is passive."""

    def ready_now(self, cycle: int) -> bool:
        """The link's ready in this cycle."""
        ready = self.read_ready()
        if ready not in "01":
            raise UnknownBits(f"{self.name}: ready is {ready} in cycle {cycle}")
        return ready == "1"

    def sample(self, cycle: int) -> None:
        """Record a transfer, if there is one."""
        valid = self.read_valid()
        ready = self.ready_now(cycle)
        if valid == "0":
            self.starved += 1
            self.seen = (False, ready, 0)
            return
        if valid != "1":
            raise UnknownBits(f"{self.name}: valid is {valid} in cycle {cycle}")
        word = unsigned(self.read_payload(), f"{self.name}: payload, while valid, in cycle {cycle},")
        self.seen = (True, ready, word)
        if ready:
            self.beats.append(self.layout.unpack(word))
            self.stamps.append(cycle)
        else:
            self.blocked += 1


class LinkSink(LinkMonitor):
    """Takes beats from an output of the design; ``pattern`` says when, without a look at this cycle's valid."""

    def __init__(self, dut, name: str, layout: LinkLayout, pattern: Pattern | None = None, seed: int | str = 0):
        self._is_ready = False
        super().__init__(dut, name, layout)
        self.use(pattern or always(), seed)

    def use(self, pattern: Pattern, seed: int | str) -> None:
        """Take up another pattern."""
        self._gate = pattern.gate(f"{seed}:{self.name}")

    def clear(self) -> None:
        """Forget all transfers, and be not ready (reset)."""
        super().clear()
        self._is_ready = False
        self.put_ready("0")

    def due(self, cycle: int) -> bool:
        """Whether to be ready in this cycle, as the pattern says; a subclass may know better."""
        return self._gate(self.seen[0])

    def drive(self, cycle: int) -> None:
        """Be ready, or not."""
        ready = self.due(cycle)
        if ready != self._is_ready:
            self._is_ready = ready
            self.put_ready("1" if ready else "0")

    def ready_now(self, cycle: int) -> bool:
        """What this sink drives."""
        return self._is_ready

    def flip_ready(self) -> None:
        """Invert ready until `unflip_ready`, inside one cycle."""
        self.put_ready("0" if self._is_ready else "1")

    def unflip_ready(self) -> None:
        """Put ready back."""
        self.put_ready("1" if self._is_ready else "0")

    def offer_now(self) -> tuple[str, str]:
        """Valid and (while it is 1) payload as they stand now, for a look in mid-cycle."""
        valid = self.read_valid()
        return valid, self.read_payload() if valid == "1" else ""


class ProtocolChecker:
    """Holds a monitored link to the protocol (see `checks.LinkChecks`); raises AssertionError in the cycle of a breach.

    ``may_begin`` says how many streams the link may have begun by now; default: one a reset.
    """

    def __init__(self, monitor: LinkMonitor, max_rank: int | None = None, may_begin: Callable[[], int] | None = None):
        self.monitor = monitor
        self.max_rank = max_rank
        self._may_begin = may_begin or (lambda: 1)
        self.clear()

    def clear(self) -> None:
        """Begin anew (reset)."""
        self._checks = LinkChecks(self.monitor.name, self.monitor.layout, self.max_rank)

    def drive(self, cycle: int) -> None:
        """Nothing: a checker is passive."""

    def sample(self, cycle: int) -> None:
        """Check this cycle; register the checker after its monitor."""
        problem = self._checks.cycle(cycle, *self.monitor.seen, self._may_begin)
        if problem is not None:
            raise AssertionError(problem)


class Scoreboard:
    """Expected beats of one link against those it gave."""

    def __init__(self, name: str, expected: Sequence[Beat], *, unordered: bool = False):
        self.name = name
        self.expected = list(expected)
        self.unordered = unordered

    def compare(self, got: Sequence[Beat], stamps: Sequence[int] | None = None) -> None:
        """AssertionError that shows the first difference and what surrounds it."""
        problem = compare_beats(self.name, self.expected, got, stamps, unordered=self.unordered)
        if problem is not None:
            raise AssertionError(problem)
