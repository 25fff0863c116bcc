"""Generic cocotb test of a unit: runs the cases of a pickle file in one simulation and writes what it measured.

Started by `bench.bench_unit`; the process of a simulator costs far more than a case, hence many cases a process.
Nothing is asserted here: what goes wrong is recorded per case, and pytest shows all of it.
"""

import importlib
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from random import Random

import cocotb
from cocotb.handle import Immediate
from cocotb.triggers import Timer

from .beats import LinkLayout
from .cases import Case, CaseResult
from .checks import compare_beats
from .links import Clocking, LinkDriver, LinkSink, ProtocolChecker
from .patterns import Pattern, always
from .signals import reader, unsigned

__all__ = ["unit_bench"]


class _ProbingClocking(Clocking):
    """Clocking that, in some cycles, flips every output's ready in mid-cycle: no valid and no payload may answer."""

    def __init__(self, dut, sinks: list[LinkSink], rng: Random):
        super().__init__(dut)
        self.sinks = sinks
        self.rng = rng
        self.problem: str | None = None

    async def between(self) -> None:
        if self.cycle >= 16 and self.rng.random() > 0.125:
            return
        before = [sink.offer_now() for sink in self.sinks]
        for sink in self.sinks:
            sink.flip_ready()
        await self.settle()
        for sink, was in zip(self.sinks, before, strict=True):
            now = sink.offer_now()
            if now != was and self.problem is None:
                what = f"valid {was[0]} -> {now[0]}" if now[0] != was[0] else "payload changes"
                self.problem = (
                    f"{sink.name}: valid or payload depends on ready in cycle {self.cycle}: {what} when ready flips"
                )
        for sink in self.sinks:
            sink.unflip_ready()
        await self.settle()


class _UnitBench:
    def __init__(self, dut, ports: Mapping, seed: int, agents: str | None):
        self.dut = dut
        self.seed = seed
        self.cfg = {name: getattr(dut, port) for name, port in ports["cfg"].items()}
        layouts: dict[str, LinkLayout] = ports["layouts"]
        self.error_names: dict[int, str] = ports["errors"]
        self.drivers = {name: LinkDriver(dut, name, layouts[name]) for name in ports["inputs"]}
        self.sinks = {name: LinkSink(dut, name, layouts[name]) for name in ports["outputs"]}
        self.clocking = _ProbingClocking(dut, list(self.sinks.values()), Random(f"probe:{seed}"))
        self.checkers = {}
        # Sinks before checkers, which look at what their sink saw.
        for agent in (*self.drivers.values(), *self.sinks.values()):
            self.clocking.add(agent)
        for name, sink in self.sinks.items():
            self.checkers[name] = self.clocking.add(ProtocolChecker(sink, may_begin=self._streams_begun))
        self.fixed = list(self.clocking.agents)
        self.make_agents = None
        if agents is not None:
            module, _, function = agents.partition(":")
            self.make_agents = getattr(importlib.import_module(module), function)
        self.error, self.state = (
            reader(getattr(dut, name)) if hasattr(dut, name) else lambda: "0" for name in ("error", "state")
        )

    def _streams_begun(self) -> int:
        # A unit without inputs is started by reset, once.
        return max((driver.streams_begun for driver in self.drivers.values()), default=1)

    def _pattern(self, chosen, name: str) -> Pattern:
        if isinstance(chosen, Mapping):
            chosen = chosen.get(name)
        return chosen or always()

    async def run(self, case: Case) -> CaseResult:
        seed = case.seed if case.seed is not None else f"{self.seed}:{case.name}"
        for name, handle in self.cfg.items():
            handle.set(Immediate(case.cfg.get(name, 0)))
        for name, driver in self.drivers.items():
            driver.use(self._pattern(case.drive, name), seed)
        for name, sink in self.sinks.items():
            sink.use(self._pattern(case.sink, name), seed)
        for name, checker in self.checkers.items():
            checker.max_rank = case.max_rank.get(name)
        extra = list(self.make_agents(self.dut, case)) if self.make_agents else []
        self.clocking.agents[:] = [*extra, *self.fixed]
        if case.reset:
            await self.clocking.reset()
        else:
            for agent in self.clocking.agents:
                agent.clear()
            self.clocking.cycle = 0
        for name, stream in case.inputs.items():
            self.drivers[name].send(stream)
        self.clocking.problem = None
        problem = None
        try:
            problem = await self._clock(case)
        except (AssertionError, ValueError) as breach:
            problem = str(breach)
        if problem and not case.error:
            # Stuck for want of a beat is often a beat gone wrong before; say so.
            wrong = self._compare(case, prefix=True)
            problem = f"{problem}\n{wrong}" if wrong else problem
        problem = problem or self.clocking.problem or self._compare(case, prefix=bool(case.error))
        agents: dict[str, LinkDriver | LinkSink] = {**self.drivers, **self.sinks}
        return CaseResult(
            name=case.name,
            beats={name: agent.beats for name, agent in agents.items()},
            stamps={name: agent.stamps for name, agent in agents.items()},
            blocked={name: agent.blocked for name, agent in agents.items()},
            starved={name: sink.starved for name, sink in self.sinks.items()},
            cycles=self.clocking.cycle,
            error=self._final(self.error),
            state=self._final(self.state),
            notes=[getattr(agent, "note", None) for agent in extra],
            problem=problem,
        )

    def _final(self, read) -> int:
        bits = read()
        return int(bits, 2) if set(bits) <= {"0", "1"} else -1

    async def _clock(self, case: Case) -> str | None:
        """Run to the end of the case; a message if it does not get there."""
        wanted = {name: len(stream) for name, stream in case.expected.items() if stream is not None}
        complete = len(wanted) == len(self.sinks)  # every output has an expectation: their counts say when it ends
        beats = sum(len(stream) for stream in (*case.inputs.values(), *filter(None, case.expected.values())))
        limit = case.max_cycles or 2000 + 200 * beats
        agents: list[LinkDriver | LinkSink] = [*self.drivers.values(), *self.sinks.values()]
        moved = idle = 0
        while self.clocking.cycle < limit:
            await self.clocking.step()
            error = unsigned(self.error(), f"error in cycle {self.clocking.cycle}")
            if error:
                if error == case.error:
                    return None
                name = self.error_names.get(error, "unknown")
                expected = f" (expected {case.error})" if case.error else ""
                what = f"the unit raised error {error} ({name}) in cycle {self.clocking.cycle}{expected}"
                return f"{what}\n{self._where(case)}"
            now = sum(len(agent.stamps) for agent in agents)
            idle = idle + 1 if now == moved else 0
            moved = now
            fed = all(driver.idle for driver in self.drivers.values())
            if complete and not case.error and fed and all(len(self.sinks[n].beats) >= k for n, k in wanted.items()):
                if idle >= case.tail:  # a little longer, for beats that nobody expects
                    return self._left_over()
            elif idle >= case.quiet:
                if case.error:
                    name = self.error_names.get(case.error, "unknown")
                    return f"the unit did not raise error {case.error} ({name})\n{self._where(case)}"
                short = [name for name, count in wanted.items() if len(self.sinks[name].beats) < count]
                if fed and not short:
                    return None
                return f"stuck: no transfer for {idle} cycles\n{self._where(case)}"
        return f"not finished after {limit} cycles\n{self._where(case)}"

    def _left_over(self) -> str | None:
        """A beat that is offered beyond the last expected one, and that the sink just did not take."""
        for name, sink in self.sinks.items():
            valid, _, word = sink.seen
            if valid:
                return f"{name}: offers {sink.layout.unpack(word)} after all {len(sink.beats)} expected beats"
        return None

    def _where(self, case: Case) -> str:
        """State of every port, for messages."""
        lines = []
        for name, driver in self.drivers.items():
            doing = f"offers {driver.pending[0]}, ready {driver.read_ready()}" if driver.offering else "offers nothing"
            lines.append(f"  {name}: {len(driver.beats)} of {len(driver.beats) + len(driver.pending)} taken, {doing}")
        for name, sink in self.sinks.items():
            valid, ready, word = sink.seen
            doing = f"valid 1 with {sink.layout.unpack(word)}" if valid else "valid 0"
            expected = case.expected.get(name)
            of = f" of {len(expected)}" if expected is not None else ""
            hint = ""
            if not valid and expected is not None and len(sink.beats) < len(expected) and not ready:
                hint = " (ready was withheld: valid must not wait for it)"
            lines.append(f"  {name}: {len(sink.beats)}{of} given, {doing}, ready {int(ready)}{hint}")
        lines.append(f"  state {self._final(self.state)}, error {self._final(self.error)}, cycle {self.clocking.cycle}")
        return "\n".join(lines)

    def _compare(self, case: Case, prefix: bool = False) -> str | None:
        """The first difference; with ``prefix``, beats that are merely missing at the end do not count."""
        for name, expected in case.expected.items():
            if expected is None or (prefix and name in case.unordered):
                continue
            sink = self.sinks[name]
            wanted = expected[: len(sink.beats)] if prefix else expected
            problem = compare_beats(name, wanted, sink.beats, sink.stamps, unordered=name in case.unordered)
            if problem:
                return problem
        return None


@cocotb.test()
async def unit_bench(dut) -> None:
    """Run all cases of the file named by STEP_HW_CASES, write the results to STEP_HW_RESULTS."""
    request = pickle.loads(Path(os.environ["STEP_HW_CASES"]).read_bytes())
    await Timer(1, "ns")  # no writes at time 0, see Clocking.reset
    bench = _UnitBench(dut, request["ports"], request["seed"], request["agents"])
    results = []
    for case in request["cases"]:
        results.append(await bench.run(case))
        if results[-1].problem and request["first_failure"]:
            break
    Path(os.environ["STEP_HW_RESULTS"]).write_bytes(pickle.dumps(results))
