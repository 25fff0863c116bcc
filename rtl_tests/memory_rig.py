"""A memory system with load, input and store units on it, as one design and as the model's units.

Loads without reference begin at `start`, which the agent of `agents` gives in cycle 0, so that their first token is
made in
cycle 1 (the model's ``start`` parameter).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from cocotb.handle import Immediate

from rtl_tests.harness.signals import reader, unsigned
from step_hw.beat import BeatLayout
from step_hw.hbm.affine import AFFINE_REGISTERS, LOOPS
from step_hw.hbm.system import MemorySystem
from step_hw.link import LinkFIFO
from step_hw.unit import Unit
from step_hw.units.input import Input
from step_hw.units.load import Load
from step_hw.units.random_load import RandomLoad
from step_hw.units.random_store import RandomStore
from step_hw.units.store import Store
from step_lang.memory_config import MemoryConfig
from step_lang.unitgraph import LinkSpec, Payload, UnitSpec

__all__ = ["MemoryRig", "Port", "agents", "view"]

REFERENCE = BeatLayout(32)


@dataclass(frozen=True)
class Port:
    """A unit on the memory: ``kind`` load, random_load, input, store or random_store; ``ref`` for loads; ``to``: a
    load's output goes to store number ``to`` of the rig instead of to a port; ``acknowledges`` for random stores."""

    kind: str
    layout: BeatLayout
    element_bytes: int
    ref: bool = False
    window: int = 16
    to: int | None = None
    acknowledges: bool = False

    @property
    def writes(self) -> bool:
        return self.kind in ("store", "random_store")


def view(base: int, limit: int, counts: Sequence[int], strides: Sequence[int]) -> dict[str, int]:
    """Registers of an affine view, sizes given outermost first as in the language."""
    made = {"base": base, "limit": limit, "dims": len(counts)}
    for k in range(LOOPS):
        made[f"count{k}"] = counts[-1 - k] if k < len(counts) else 1
        made[f"stride{k}"] = strides[-1 - k] % (1 << 32) if k < len(counts) else 0
    return made


class MemoryRig(Unit):
    """Outputs: of the loads and inputs without ``to``, then acknowledgements; inputs: references of loads and addresses
    of random loads, then data of stores without a load, a random store's addresses before its data. ``probes`` are what
    coverage asks of the inside, see `seen`.

    Registers of port n are named ``p<n>_<name>``; ``cfg_for`` makes them. Loads are ports 0.., stores follow.
    """

    kind = "rig"

    def __init__(self, memory: MemoryConfig, loads: Sequence[Port], stores: Sequence[Port] = ()):
        self.memory, self.loads, self.stores = memory, list(loads), list(stores)
        self.fed = {load.to for load in loads if load.to is not None}
        self.hbm = MemorySystem(memory, [(p.element_bytes, p.window) for p in loads], [p.element_bytes for p in stores])
        inputs = [REFERENCE for p in loads if self._has_input(p)]
        for i, p in enumerate(stores):
            inputs += [REFERENCE] * (p.kind == "random_store") + [p.layout] * (i not in self.fed)
        outputs = [p.layout for p in loads if p.to is None] + [BeatLayout(1) for p in stores if p.acknowledges]
        self.units: list[Unit] = []
        cfg: dict[str, int] = {}
        for n, port in enumerate([*self.loads, *self.stores]):
            if port.kind == "store":
                unit: Unit = Store(port.layout, memory=memory, element_bytes=port.element_bytes)
            elif port.kind == "random_store":
                unit = RandomStore(REFERENCE, port.layout, memory=memory, element_bytes=port.element_bytes,
                                   acknowledges=port.acknowledges)
            elif port.kind == "input":
                unit = Input(
                    port.layout, memory=memory, element_bytes=port.element_bytes, window=port.window, tokens=64
                )
            elif port.kind == "random_load":
                unit = RandomLoad(
                    port.layout,
                    address=REFERENCE,
                    memory=memory,
                    element_bytes=port.element_bytes,
                    window=port.window,
                )
            else:
                unit = Load(
                    port.layout,
                    memory=memory,
                    element_bytes=port.element_bytes,
                    window=port.window,
                    reference=REFERENCE if port.ref else None,
                )
            self.units.append(unit)
            cfg |= {f"p{n}_{name}": width for name, width in unit.cfg_widths.items()}
        extra = {
            "start": In(1),
            "dump": In(1),
            "finished": Out(max(1, len(stores))),
            "probes": Out(len(self.probe_names)),
            "token_write": In(1),
            "token_address": In(6),
            "token_data": In(6),
        }
        extra |= {
            name: Out(48) for name in ("read_bytes", "write_bytes", "first_read_cycle", "last_write_cycle", "bursts0")
        }
        super().__init__(inputs, outputs, cfg, extra=extra)

    @staticmethod
    def _has_input(port: Port) -> bool:
        return port.ref or port.kind == "random_load"

    @property
    def probe_names(self) -> list[str]:
        """Per load ``full<n>`` (window), ``held<n>`` (the output waits), ``reordered<n>`` (channels return bursts of
        different elements in one cycle); per port ``refused<n>`` (a channel's queue has no room) and ``split<n>`` (only
        some of an element's channels take it); ``conflict`` (a channel takes elements of two ports in one cycle)."""
        loads = [f"{name}{n}" for n in range(len(self.loads)) for name in ("full", "held", "reordered")]
        ports = [f"{name}{n}" for n in range(len(self.loads) + len(self.stores)) for name in ("refused", "split")]
        return [*loads, *ports, "conflict"]

    def seen(self, note: Mapping) -> set[str]:
        """Names of the probes that were 1 in some cycle of a run with these notes."""
        return {name for i, name in enumerate(self.probe_names) if note["probes"] >> i & 1}

    def _probe(self, m) -> None:
        found: dict[str, object] = {}
        taken: list[list] = [[] for _ in range(self.memory.channels)]
        for n, unit in enumerate(self.units):
            reqs = [getattr(unit.mem, f"req{c}") for c in range(self.memory.channels)]
            took = Cat(req.valid & req.ready for req in reqs)
            wanted = Cat(req.valid for req in reqs)
            found |= {f"refused{n}": (wanted & ~took).any(), f"split{n}": took.any() & (took != wanted)}
            for c, req in enumerate(reqs):
                taken[c].append(req.valid & req.ready)
            if n < len(self.loads):
                out, resps = unit.out0, [getattr(unit.mem, f"resp{c}") for c in range(self.memory.channels)]
                found |= {
                    f"full{n}": unit.state[3],
                    f"held{n}": out.valid & ~out.ready,
                    f"reordered{n}": Cat(
                        a.valid & b.valid & (a.slot != b.slot) for a, b in pairwise(resps)
                    ).any(),
                }
        conflicts = [a & b for ports in taken for i, a in enumerate(ports) for b in ports[i + 1 :]]
        found["conflict"] = Cat(conflicts).any()
        m.d.comb += [self.probes[i].eq(found[name]) for i, name in enumerate(self.probe_names)]

    @property
    def module_name(self) -> str:
        parts = [
            f"{p.kind}{p.element_bytes}w{p.window}{'r' if p.ref else ''}{'a' if p.acknowledges else ''}"
            f"{'' if p.to is None else f'to{p.to}'}"
            for p in [*self.loads, *self.stores]
        ]
        return "rig_" + "_".join(parts) + "_" + self.memory.key

    def dependencies(self) -> dict[str, str]:
        return self.hbm.dependencies()

    def elaborate(self, platform):
        m = Module()
        m.submodules.hbm = hbm = self.hbm
        inputs, outputs = iter(self.ins), iter(self.outs)
        m.d.comb += [hbm.start.eq(self.start), hbm.dump.eq(self.dump)]
        m.d.comb += [
            getattr(self, name).eq(getattr(hbm, name))
            for name in ("read_bytes", "write_bytes", "first_read_cycle", "last_write_cycle", "bursts0")
        ]
        error = 0
        links: dict[int, LinkFIFO] = {}
        for n, (unit, port) in enumerate(zip(self.units, [*self.loads, *self.stores], strict=True)):
            m.submodules[f"p{n}"] = unit
            for name in unit.cfg_widths:
                m.d.comb += getattr(unit.cfg, name).eq(getattr(self.cfg, f"p{n}_{name}"))
            error |= unit.error
            if port.writes:
                place = n - len(self.loads)
                wiring.connect(m, unit.mem, getattr(hbm, f"write{place}"))
                if port.kind == "random_store":
                    wiring.connect(m, wiring.flipped(next(inputs)), unit.in0)
                source = links[place].out0 if place in links else wiring.flipped(next(inputs))
                wiring.connect(m, source, unit.ins[-1])
                if port.acknowledges:
                    wiring.connect(m, unit.out0, wiring.flipped(next(outputs)))
                continue
            wiring.connect(m, unit.mem, getattr(hbm, f"read{n}"))
            wiring.connect(m, unit.data, hbm.data)
            if self._has_input(port):
                wiring.connect(m, wiring.flipped(next(inputs)), unit.in0)
            else:
                m.d.comb += unit.start.eq(self.start)
            if port.kind == "input":
                m.d.comb += [
                    unit.token_write.eq(self.token_write),
                    unit.token_address.eq(self.token_address),
                    unit.token_data.eq(self.token_data),
                ]
            if port.to is None:
                wiring.connect(m, unit.out0, wiring.flipped(next(outputs)))
            else:
                m.submodules[f"link{n}"] = links[port.to] = link = LinkFIFO(port.layout)
                wiring.connect(m, unit.out0, link.in0)
        m.d.comb += self.error.eq(error)
        self._probe(m)
        if self.stores:
            m.d.comb += self.finished.eq(Cat(unit.finished for unit in self.units[len(self.loads) :]))
        return m

    def cfg_for(self, *views: Mapping[str, int]) -> dict[str, int]:
        """Registers of all ports, one `view` (plus ``regular`` for inputs) for each."""
        return {f"p{n}_{name}": value for n, registers in enumerate(views) for name, value in registers.items()}

    def add_units(self, graph, inputs, outputs, cfg, tokens=None, start=1) -> None:
        """The model's units, for `model_bench`. ``tokens``: list of the input unit's token memory; ``start``: cycle
        in which
        loads begin, one after the start pulse."""
        inputs, outputs = iter(inputs), iter(outputs)
        inner: dict[int, int] = {}
        for n, port in enumerate([*self.loads, *self.stores]):
            config = {
                name: cfg[f"p{n}_{name}"]
                for name in [*AFFINE_REGISTERS, "base", "limit", "regular", "inner"]
                if f"p{n}_{name}" in cfg
            }
            params = {
                "element_bytes": port.element_bytes,
                "window": port.window,
                "ref": port.ref,
                "start": start,
                "port": n if n < len(self.loads) else n - len(self.loads),
                "tokens": tokens,
            }
            unit = UnitSpec(len(graph.units), port.kind, f"p{n}", params=params, config=config)
            if port.writes:
                unit.is_sink = True
                place = n - len(self.loads)
                unit.inputs = [next(inputs)] if port.kind == "random_store" else []
                unit.inputs.append(inner[place] if place in inner else next(inputs))
                unit.outputs = [next(outputs)] if port.acknowledges else []
            else:
                unit.inputs = [next(inputs)] if self._has_input(port) else []
                if port.to is None:
                    unit.outputs = [next(outputs)]
                else:
                    inner[port.to] = len(graph.links)
                    graph.links.append(
                        LinkSpec(len(graph.links), f"link{n}", Payload(port.layout.data_width, port.layout.max_rows))
                    )
                    unit.outputs = [inner[port.to]]
            graph.units.append(unit)
        graph.units.append(
            UnitSpec(
                len(graph.units),
                "hbm",
                "hbm",
                params={
                    "memory": self.memory,
                    "read_ports": len(self.loads),
                    "write_ports": len(self.stores),
                    "start": start,
                },
            )
        )


class _Host:
    """Writes the token memory, gives the start pulse, asks for the dump when every store has finished."""

    def __init__(self, dut, tokens: Sequence[int]):
        self.dut = dut
        self.tokens = tokens
        self.finished_in: int | None = None
        self.probes = 0
        self._probes = reader(dut.probes)
        self._dumped = False

    def clear(self) -> None:
        """Quiet."""
        for name in ("start", "dump", "token_write", "token_address", "token_data"):
            getattr(self.dut, name).set(Immediate(0))

    def drive(self, cycle: int) -> None:
        """The token memory is written first, a token a cycle; then comes the start pulse."""
        self.dut.start.set(Immediate(int(cycle == len(self.tokens))))
        if cycle <= len(self.tokens) and self.tokens:
            self.dut.token_write.set(Immediate(int(cycle < len(self.tokens))))
            if cycle < len(self.tokens):
                self.dut.token_address.set(Immediate(cycle))
                self.dut.token_data.set(Immediate(self.tokens[cycle]))
        if self.finished_in is not None:
            self.dut.dump.set(Immediate(int(not self._dumped)))
            self._dumped = True

    def sample(self, cycle: int) -> None:
        """What do the probes show, when do the stores finish?"""
        self.probes |= unsigned(self._probes(), "probes")
        bits = str(self.dut.finished.value)
        if self.finished_in is None and "0" not in bits:
            self.finished_in = cycle

    @property
    def note(self) -> dict[str, int | None]:
        """Counters at the end of the run."""
        names = ("read_bytes", "write_bytes", "first_read_cycle", "last_write_cycle", "bursts0")
        return {name: int(str(getattr(self.dut, name).value), 2) for name in names} | {
            "finished": self.finished_in,
            "probes": self.probes,
        }


def agents(dut, case):
    """For `model_bench`: the host; ``case.tokens``, if there is such an attribute, goes to the token memory."""
    return [_Host(dut, getattr(case, "tokens", ()))]
