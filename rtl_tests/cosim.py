"""Whole programs on RTL: build, run, read back, and compare with the interpreter, beat for beat and bit for bit."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from step_hw.design import Design
from step_hw.hbm.image import MemoryImage
from step_lang import Result, TokenStream
from step_lang.deadlock import deadlock_report
from step_lang.errors import DeadlockError, RtlError, SimulatorError
from step_lang.exhaustion import exhausted_scratchpads, unit_error
from step_lang.interpreter import check_tensors
from step_lang.types import BufferRef

from .harness.beats import LinkLayout
from .harness.errors import SimulationFailed
from .harness.native import NativeRun, ProgramBuild, build_native, build_program, run_native, run_program
from .harness.tokens import to_beats

__all__ = ["PULSE", "Check", "RtlRun", "build_rtl", "check", "run_rtl"]

_NO_CYCLE = (1 << 48) - 1

PULSE = 1
"""Cycles from the start pulse (cycle 0 of an RTL record) to cycle 0 of the model and of the memory's counters."""

MANY_UNITS = 150
"""Units from which on a netlist is compiled for a short build rather than for a fast simulation."""

SHARED_CODE = ("-fno-inline", "-fno-gate", "--expand-limit", "64")
"""Verilator's options for that: instances of a module share their code as long as it names nothing outside of them,
which inlining and the replacing of wires by what drives them undo. The 403 units of a Mixtral layer at T = 8 are 43 MB
of C++ instead of 73 MB, most of it wiring, and no longer grow with the compute units."""


@dataclass
class RtlRun:
    """What RTL did.

    cycles : from the first off-chip read to the last off-chip write, both included
    total_cycles : from start to finished
    start_cycle : cycle of the first off-chip read, counted from the cycle after the start pulse
    tensors : stored tensors by name
    peak_frames : scratchpad name to the most frames in use, whole pages
    bursts : bursts served by each channel
    arbitration : grants of each operator that arbitrates, by its name (`step_lang.arbitration`)
    native : transfers of every link with their cycles, blocked and starved counts
    """

    cycles: int
    total_cycles: int
    start_cycle: int
    offchip_read_bytes: int
    offchip_write_bytes: int
    tensors: dict[str, np.ndarray]
    peak_frames: dict[str, int]
    bursts: list[int]
    arbitration: dict[str, list[int]]
    native: NativeRun = field(repr=False)

    @property
    def offchip_bytes(self) -> int:
        """Read and written bytes."""
        return self.offchip_read_bytes + self.offchip_write_bytes

    @property
    def beats(self) -> np.ndarray:
        """int64 [n, 3] of (cycle, link, token) of every beat, by cycle: cycles and tokens as the model counts and
        writes them (without rows)."""
        records = self.native.records
        token = records["stop"].astype(np.int64) | records["flags"].astype(np.int64) << 4
        return np.stack([records["cycle"].astype(np.int64) - PULSE, records["link"].astype(np.int64), token], axis=1)


def build_rtl(
    design: Design, simulator: str = "verilator", *, native: bool = True, trace: bool = False, **options: Any
) -> ProgramBuild:
    """Compile the design (cached by content). ``native``: without cocotb, Verilator only. ``trace``: for waveforms."""
    verilog = design.verilog
    links = len(verilog.link_names)
    if native and simulator == "verilator":
        if len(design.graph.units) > MANY_UNITS:
            options = {"arguments": SHARED_CODE, "opt": os.environ.get("STEP_HW_OPT") or "quick"} | options
        return build_native(verilog.files, verilog.top, links, mem_busy=True, dump=True,
                            grants=len(verilog.arbiter_names), trace=trace, **options)
    return build_program(simulator, verilog.files, verilog.top, links, trace=trace, **options)


def run_rtl(
    design: Design,
    tensors: Mapping[str, np.ndarray],
    build: ProgramBuild | None = None,
    *,
    simulator: str = "verilator",
    native: bool = True,
    record: bool = True,
    progress: bool = False,
    max_cycles: int = 100_000_000,
    waves: Path | None = None,
    partial: bool = False,
    **options: Any,
) -> RtlRun:
    """Run the design on RTL; with ``partial`` a run that ``max_cycles`` cuts short is a result too.

    Raises `TensorError` for bad tensors, `RtlError` for a unit's error code or a run that was stopped, `DeadlockError`
    with the links that wait for one another, `SimulatorError` when the simulator fails.
    """
    tensors = check_tensors(design.lowered.program, tensors)
    build = build or build_rtl(design, simulator, native=native, trace=waves is not None)
    image = MemoryImage(design.hw.memory)
    for name, placement in design.graph.tensors.items():
        if placement.is_input:
            _put_input(image, placement, design.physical_inputs[name])
        elif name in tensors:
            image.put(placement, tensors[name])
    status = design.verilog.status_map
    addresses = [field.address + word for field in status.values() for word in range(field.words)]
    with tempfile.TemporaryDirectory(prefix="step-hw-memory-") as work:
        image.write(Path(work) / "load")
        arguments: dict[str, Any] = {
            "status": addresses,
            "record": record,
            "max_cycles": max_cycles,
            "waves": waves,
            **options,
            "plusargs": [f"+hbm_load={work}/load", f"+hbm_dump={work}/dump"],
        }
        try:
            if native and simulator == "verilator":
                run = run_native(build, design.registers, progress=progress, **arguments)
            else:
                run = run_program(build, design.registers, **arguments)
        except SimulationFailed as error:
            raise SimulatorError(f"{simulator} on '{design.program.name}': {error}") from error
        values = {
            name: sum(run.status[field.address + i] << (32 * i) for i in range(field.words))
            for name, field in status.items()
        }
        _raise_for(design, run, values, partial)
        stored = MemoryImage.read(design.hw.memory, Path(work) / "dump")
    written = {t.name for op in design.lowered.program.operators for t in op.tensors_written}
    first, last = values["hbm.first_read_cycle"], values["hbm.last_write_cycle"]
    first = 0 if first == _NO_CYCLE else first
    return RtlRun(
        cycles=last - first + 1 if last != _NO_CYCLE else run.cycles,
        total_cycles=run.cycles,
        start_cycle=first,
        offchip_read_bytes=values["hbm.read_bytes"],
        offchip_write_bytes=values["hbm.write_bytes"],
        tensors={
            name: stored.get(placement, design.program.tensors[name].shape, design.program.tensors[name].dtype.numpy)
            for name, placement in design.graph.tensors.items()
            if name in written
        },
        peak_frames={
            unit.name: values[f"{unit.name}.peak"] * unit.params["page_frames"]
            for unit in design.graph.units
            if unit.kind == "scratchpad"
        },
        bursts=[values[f"hbm.bursts{c}"] for c in range(design.hw.memory.channels)],
        arbitration={
            name: run.grants["input"][run.grants["unit"] == i].tolist()
            for i, name in enumerate(design.verilog.arbiter_names)
        },
        native=run,
    )


def _put_input(image: MemoryImage, placement: Any, tokens: TokenStream) -> None:
    """Elements of an input stream, as they travel on its link, one after the other."""
    raw = b"".join(
        beat.data.to_bytes(placement.element_bytes, "little")
        for beat in to_beats(tokens, placement.type)
        if not beat.empty
    )
    image.data[placement.base : placement.base + len(raw)] = np.frombuffer(raw, dtype=np.uint8)
    image.used = max(image.used, placement.base + placement.nbytes)


def _raise_for(design: Design, run: NativeRun, values: Mapping[str, int], partial: bool) -> None:
    graph = design.graph
    filled, waits = (
        {unit.index: values[f"{unit.name}.{name}"] for unit in graph.units if unit.kind == "bufferize"}
        for name in ("filled", "waits")
    )
    for unit in graph.units:
        code = values.get(f"{unit.name}.error", 0)
        if code:
            raise unit_error(graph, unit, code, f"raised {{}} by cycle {run.cycles}", filled)
    if run.reason == "deadlock":
        levels = [values[f"{link.name}.level"] for link in graph.links]
        raise DeadlockError(deadlock_report(graph, levels, exhausted_scratchpads(graph, filled, waits)))
    if run.reason != "finished" and not (partial and run.reason == "max_cycles"):
        raise RtlError(f"the simulation of '{design.program.name}' ended early: {run.reason} in cycle {run.cycles}")


@dataclass
class Check:
    """RTL against the interpreter: ``bit_exact`` if every tensor's bits and every link's tokens agree; ``unfinished``:
    links whose last tokens were still on their way when the run was over (`UnitGraph.links_to_reassembles`)."""

    bit_exact: bool
    differences: list[str]
    unfinished: list[str] = field(default_factory=list)


def check(design: Design, run: RtlRun, expected: Result, logical: Result | None = None) -> Check:
    """Compare stored tensors bit for bit and the token stream of every link with ``expected``, the lowered program's
    result ``design.interpret(tensors, arbitration=run.arbitration)``; with ``logical`` also the lowered program with
    the program itself. Elements on links are compared where the run has them (`run_program`, ``payloads``)."""
    found: list[str] = []
    unfinished: list[str] = []
    for name, tensor in run.tensors.items():
        found += _tensor_difference(name, "RTL", tensor, expected.tensors[name])
        if logical is not None:
            found += _tensor_difference(name, "lowered program", expected.tensors[name], logical.tensors[name])
    if len(run.native.records):
        may_end = design.graph.links_to_reassembles()
        for link in design.graph.links:
            tokens = expected.streams[link.stream]
            if link.index in may_end and len(run.native.of_link(link.index)) <= len(tokens):
                unfinished.append(link.name)
            found += (_link_difference(link, run.native, tokens, link.index in may_end)
                      or _value_difference(link, run.native, tokens))
    for what in ("offchip_read_bytes", "offchip_write_bytes"):
        got, wanted = getattr(run, what), getattr(expected, what)
        if got > wanted or (got < wanted and not (unfinished and what == "offchip_read_bytes")):
            found.append(f"{what}: RTL {got} vs {wanted}")
    return Check(not found, found, unfinished)


def _tensor_difference(name: str, who: str, tensor: np.ndarray, wanted: np.ndarray) -> list[str]:
    got, want = (np.frombuffer(t.tobytes(), dtype=np.uint8).reshape(-1, t.dtype.itemsize) for t in (tensor, wanted))
    unequal = (got != want).any(axis=1)
    if not unequal.any():
        return []
    where = np.unravel_index(int(unequal.argmax()), tensor.shape)
    return [
        f"tensor '{name}' differs at {int(unequal.sum())} of {tensor.size} places, first at {tuple(map(int, where))}: "
        f"{who} {tensor[where]} vs {wanted[where]}"
    ]


def _link_difference(link: Any, run: NativeRun, tokens: TokenStream, may_end: bool) -> list[str]:
    moved = run.of_link(link.index)
    stop = np.append(np.asarray(tokens.stop, dtype=np.int64), 0)
    flags = np.append(np.asarray(tokens.empty, dtype=np.int64), 3)
    n = min(len(stop), len(moved))
    wrong = np.nonzero((moved["stop"][:n] != stop[:n]) | (moved["flags"][:n] != flags[:n]))[0]
    if len(wrong):
        i = int(wrong[0])
        return [
            f"link '{link.name}' differs first at beat {i} (cycle {moved['cycle'][i]}): RTL stop {moved['stop'][i]} "
            f"flags {moved['flags'][i]} vs stop {stop[i]} flags {flags[i]}"
        ]
    if len(stop) != len(moved) and not (may_end and len(moved) < len(stop)):
        return [f"link '{link.name}': RTL moved {len(moved)} beats vs {len(stop)}"]
    return []


def _value_difference(link: Any, run: NativeRun, tokens: TokenStream) -> list[str]:
    """The first element whose bits differ; references are the hardware's to number."""
    if run.payloads is None or isinstance(link.payload.type, BufferRef):
        return []
    layout = LinkLayout(link.payload.data_bits, link.payload.max_rows.bit_length())
    for i, (word, want) in enumerate(zip(run.payloads[link.index], to_beats(tokens, link.payload.type))):
        got = layout.unpack(word)
        if got != want:
            return [f"link '{link.name}' differs first at beat {i}: RTL {got} vs {want}"]
    return []
