"""The simulator's side of `model_bench`: runs the cases on the linked unit and records every transfer's cycle."""

import importlib
import os
import pickle
from pathlib import Path

import cocotb
from cocotb.handle import Immediate
from cocotb.triggers import Timer

from rtl_tests.harness.links import Clocking, LinkDriver, LinkSink, ProtocolChecker
from rtl_tests.model_cases import ModelCase, RtlRun

__all__ = ["model_bench"]

TAIL = 4
"""Cycles that RTL runs on after the model's end: whatever moves then is a difference."""


class _ScheduledDriver(LinkDriver):
    """Offers beat i from cycle ``starts[i]`` on, as the model's source does."""

    starts: list[int] | None = None

    def drive(self, cycle: int) -> None:
        due = self.starts is None or self.idle or self.starts[len(self.beats)] <= cycle
        if self.offering or due:
            super().drive(cycle)
        elif self._valid_is:
            self._valid_is = False
            self._valid.set(Immediate(0))


class _RepeatingSink(LinkSink):
    """Ready as a repeating pattern says, as the model's sink is."""

    repeats: list[int] = [1]

    def drive(self, cycle: int) -> None:
        self._gate = lambda valid: bool(self.repeats[cycle % len(self.repeats)])
        super().drive(cycle)


class _Pushes:
    """Records the unit's writes into the links behind its outputs, and its error."""

    def __init__(self, dut, outputs: list[str]):
        self.dut = dut
        self.outputs = outputs
        self.clear()

    def clear(self) -> None:
        self.stamps: dict[str, list[int]] = {name: [] for name in self.outputs}
        self.error_cycle: int | None = None
        self.error = 0

    def drive(self, cycle: int) -> None:
        """Nothing: a monitor is passive."""

    def sample(self, cycle: int) -> None:
        pushes = int(str(self.dut.pushes.value), 2)
        for k, name in enumerate(self.outputs):
            if pushes >> k & 1:
                self.stamps[name].append(cycle)
        error = int(str(self.dut.error.value), 2)
        if error and self.error_cycle is None:
            self.error_cycle, self.error = cycle, error


@cocotb.test()
async def model_bench(dut) -> None:
    """Run all cases of the file named by STEP_HW_CASES, write the runs to STEP_HW_RESULTS."""
    request = pickle.loads(Path(os.environ["STEP_HW_CASES"]).read_bytes())
    await Timer(1, "ns")
    clocking = Clocking(dut)
    layouts = request["layouts"]
    drivers, sinks = {}, {}
    for name, layout in layouts.items():
        if name.startswith("in"):
            drivers[name] = clocking.add(_ScheduledDriver(dut, name, layout))
        else:
            sinks[name] = clocking.add(_RepeatingSink(dut, name, layout))
    begun = lambda: max((driver.streams_begun for driver in drivers.values()), default=1)  # noqa: E731
    for sink in sinks.values():
        clocking.add(ProtocolChecker(sink, may_begin=begun))
    pushes = clocking.add(_Pushes(dut, list(sinks)))
    serve = None
    if request["agents"]:
        module, _, function = request["agents"].partition(":")
        serve = getattr(importlib.import_module(module), function)
    fixed = list(clocking.agents)
    runs = []
    for case, cycles in zip(request["cases"], request["cycles"], strict=True):
        runs.append(await _run(dut, clocking, fixed, serve, case, cycles, drivers, sinks, pushes, request["cfg"]))
        if request["first_failure"] and not case.error and any(
                runs[-1].beats[name] != list(expected) for name, expected in case.expected.items()):
            break
    Path(os.environ["STEP_HW_RESULTS"]).write_bytes(pickle.dumps(runs))


async def _run(dut, clocking, fixed, serve, case: ModelCase, cycles: int, drivers, sinks, pushes, cfg) -> RtlRun:
    for name, port in cfg.items():
        getattr(dut, port).set(Immediate(case.cfg.get(name, 0)))
    extra = list(serve(dut, case)) if serve else []
    clocking.agents[:] = [*extra, *fixed]
    for name, driver in drivers.items():
        starts = case.starts.get(name)
        driver.starts = list(starts) if starts is not None else None
    for name, sink in sinks.items():
        sink.repeats = list(case.ready.get(name, [1]))
    await clocking.reset()
    for name, stream in case.inputs.items():
        drivers[name].send(stream)
    end = cycles + (case.after_error if case.error else TAIL)
    while clocking.cycle < end:
        await clocking.step()
    agents = {**drivers, **sinks}
    return RtlRun(
        beats={name: agent.beats for name, agent in agents.items()},
        stamps={name: agent.stamps for name, agent in agents.items()},
        pushes=dict(pushes.stamps),
        error_cycle=pushes.error_cycle,
        error=pushes.error,
        notes=[getattr(agent, "note", None) for agent in extra],
    )
