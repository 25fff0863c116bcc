"""Bufferize, scratchpad and streamifies joined as a netlist joins them; their inputs at random; what the interpreter
expects."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from rtl_tests.harness import DONE, Beat, bare
from rtl_tests.pad_reference import PadReference, connect_events, event_ports, read_events
from sim.units.scratchpad import ST_PEAK
from step_hw.beat import BeatLayout
from step_hw.link import LinkFIFO
from step_hw.unit import Unit
from step_hw.units.bufferize import Bufferize
from step_hw.units.fork import Fork
from step_hw.units.partition import Partition
from step_hw.units.scratchpad import Scratchpad, ScratchpadShape
from step_hw.units.streamify import LOOPS, Streamify
from step_lang import ops
from step_lang.dims import dynamic, ragged
from step_lang.program import Program
from step_lang.tokens import TokenStream
from step_lang.types import int32, scalar
from step_lang.unitgraph import LinkSpec, Payload, UnitSpec

__all__ = [
    "LAYOUT",
    "REF_LAYOUT",
    "Buffers",
    "MemoryTile",
    "RoutedTile",
    "expected_passes",
    "no_view",
    "ragged_buffers",
    "random_buffers",
    "ref_stream",
    "routed",
]

LAYOUT = BeatLayout(16, 4)
"""Elements of these benches."""

REF_LAYOUT = BeatLayout(8, 1)
"""Reference streams of these benches."""


class MemoryTile(Unit):
    """One bufferize, its scratchpad, and ``len(refs)`` streamifies; a link between any two.

    in0: elements. in1..: the reference stream of each streamify that has one (``refs[k]``), in order. out<k>: elements
    of streamify k. Registers: ``rank``, ``uses``, and those of streamify k with the prefix ``r<k>_``.

    With ``routed`` the references do not go from bufferize to the (only) streamify: they leave at out1, and the bench,
    in the place of routing operators, brings them to the streamify by a last input.
    """

    kind = "memory_tile"

    def __init__(self, shape: ScratchpadShape, refs: Sequence[bool] = (False,), routed: bool = False):
        self.shape, self.refs, self.routed = shape, tuple(refs), routed
        self.bufferize = Bufferize(shape)
        self.scratchpad = Scratchpad(shape, len(self.refs))
        self.streamifies = [Streamify(shape, REF_LAYOUT if has_ref else None) for has_ref in self.refs]
        cfg = dict(self.bufferize.cfg_widths)
        for k, unit in enumerate(self.streamifies):
            cfg |= {f"r{k}_{name}": width for name, width in unit.cfg_widths.items()}
        extra = {name: Out(self.scratchpad.signature.members[name].shape) for name in ("used", "peak")}
        extra |= event_ports(self.scratchpad)
        inputs = [shape.layout] + [REF_LAYOUT] * sum(self.refs) + [shape.reference_layout] * routed
        outputs = [shape.layout] * len(self.refs) + [shape.reference_layout] * routed
        super().__init__(inputs, outputs, cfg, shape.references, extra)

    @property
    def module_name(self) -> str:
        refs = "".join("r" if has_ref else "s" for has_ref in self.refs)
        return f"memory_tile_{self.shape.key}_{refs}{'_routed' if self.routed else ''}"

    def elaborate(self, platform):
        m = Module()
        n, pad = len(self.refs), self.scratchpad
        m.submodules.bufferize, m.submodules.scratchpad = self.bufferize, pad
        wiring.connect(m, wiring.flipped(self.in0), self.bufferize.in0)
        wiring.connect(m, self.bufferize.port, pad.write)
        m.d.comb += [getattr(self.bufferize.cfg, name).eq(getattr(self.cfg, name))
                     for name in self.bufferize.cfg_widths]

        def link(source, layout, name):
            fifo = LinkFIFO(layout)
            m.submodules[name] = fifo
            wiring.connect(m, source, fifo.in0)
            return fifo.out0

        references = [self.bufferize.out0]
        if n > 1:
            m.submodules.copies = fork = Fork(self.shape.reference_layout, n)
            wiring.connect(m, link(self.bufferize.out0, self.shape.reference_layout, "references"), fork.in0)
            references = fork.outs
        if self.routed:
            wiring.connect(m, self.bufferize.out0, wiring.flipped(self.out1))
        port = 1
        errors = [self.bufferize.error, pad.error]
        for k, unit in enumerate(self.streamifies):
            m.submodules[f"streamify{k}"] = unit
            wiring.connect(m, unit.port, pad.reads[k])
            if not self.routed:
                wiring.connect(m, link(references[k], self.shape.reference_layout, f"references{k}"), unit.in0)
            if self.refs[k]:
                wiring.connect(m, wiring.flipped(self.ins[port]), unit.in1)
                port += 1
            wiring.connect(m, unit.out0, wiring.flipped(self.outs[k]))
            m.d.comb += [getattr(unit.cfg, name).eq(getattr(self.cfg, f"r{k}_{name}")) for name in unit.cfg_widths]
            errors.append(unit.error)
        if self.routed:
            wiring.connect(m, wiring.flipped(self.ins[port]), self.streamifies[0].in0)
        total = errors[0]
        for error in errors[1:]:
            total = total | error
        m.d.comb += [self.error.eq(total), self.state.eq(pad.state), self.used.eq(pad.used), self.peak.eq(pad.peak)]
        connect_events(m, self, pad)
        return m

    def add_units(self, graph, inputs: list[int], outputs: list[int], cfg: Mapping[str, int]) -> None:
        """The same units and links in the model (`model_bench.AddUnits`)."""
        n, shape = len(self.refs), self.shape

        def add(kind, ins=(), outs=(), params=None, config=None):
            spec = UnitSpec(len(graph.units), kind, kind, list(ins), list(outs), params or {}, config or {})
            graph.units.append(spec)
            return spec.index

        def link():
            graph.links.append(LinkSpec(len(graph.links), "inner", Payload(shape.reference_bits, 1)))
            return len(graph.links) - 1

        # The scratchpad last and the streamifies first, where a netlist has another order: it does not matter.
        pad = len(graph.units) + n + 1 + (n > 1)
        heads = [inputs[-1]] if self.routed else [link() for _ in range(n)]
        port = 1
        for k, has_ref in enumerate(self.refs):
            config = {name[len(f"r{k}_"):]: value for name, value in cfg.items() if name.startswith(f"r{k}_")}
            ins = [heads[k]] + ([inputs[port]] if has_ref else [])
            port += has_ref
            add("streamify", ins, [outputs[k]], {"ports": ((pad, k),), "has_ref": has_ref}, config)
        trunk = outputs[1] if self.routed else heads[0] if n == 1 else link()
        if n > 1:
            add("fork", [trunk], heads)
        add("bufferize", [inputs[0]], [trunk], {"scratchpad": pad},
            {"rank": cfg["rank"], "uses": cfg.get("uses", 1), "hollow": cfg.get("hollow", 0)})
        params = {"frames": shape.frames, "page_frames": shape.page_frames, "references": shape.references}
        assert add("scratchpad", params=params | {"readers": n}) == pad


class RoutedTile(Unit):
    """One bufferize, whose references a partition hands on; at its output k a fork brings them to ``branches[k]``
    streamifies. Links between any two. Where there are none (0) the references leave.

    in0: elements. in1: selectors. out<j>: elements of streamify j, numbered through the branches, then the references
    of the branches without any. Registers: ``rank``,
    ``uses``, ``chunk`` (the partition's rank), and those of streamify j with the prefix ``r<j>_``.
    """

    kind = "routed_tile"

    def __init__(self, shape: ScratchpadShape, branches: Sequence[int]):
        self.shape, self.branches = shape, tuple(branches)
        self.readers = sum(branches)
        self.bufferize = Bufferize(shape)
        self.scratchpad = Scratchpad(shape, self.readers, 1)
        n = len(branches)
        self.partition = Partition(shape.reference_layout, n, n, shape, branches)
        self.streamifies = [Streamify(shape) for _ in range(self.readers)]
        cfg = dict(self.bufferize.cfg_widths) | {"chunk": self.partition.cfg_widths["rank"]}
        for k, unit in enumerate(self.streamifies):
            cfg |= {f"r{k}_{name}": width for name, width in unit.cfg_widths.items()}
        extra = {name: Out(self.scratchpad.signature.members[name].shape) for name in ("used", "peak")}
        extra |= event_ports(self.scratchpad)
        outputs = [shape.layout] * self.readers + [shape.reference_layout] * self.branches.count(0)
        super().__init__([shape.layout, BeatLayout(n)], outputs, cfg, shape.references, extra)

    @property
    def module_name(self) -> str:
        return f"routed_tile_{self.shape.key}_{'_'.join(map(str, self.branches))}"

    def elaborate(self, platform):
        m = Module()
        pad, references = self.scratchpad, self.shape.reference_layout
        m.submodules.bufferize, m.submodules.scratchpad, m.submodules.partition = self.bufferize, pad, self.partition

        def link(source, destination, name):
            fifo = LinkFIFO(references)
            m.submodules[name] = fifo
            wiring.connect(m, source, fifo.in0)
            wiring.connect(m, fifo.out0, destination)

        wiring.connect(m, wiring.flipped(self.in0), self.bufferize.in0)
        wiring.connect(m, wiring.flipped(self.in1), self.partition.in1)
        wiring.connect(m, self.bufferize.port, pad.write)
        wiring.connect(m, self.partition.port, pad.routes[0])
        link(self.bufferize.out0, self.partition.in0, "references")
        m.d.comb += [self.bufferize.cfg.rank.eq(self.cfg.rank), self.bufferize.cfg.uses.eq(self.cfg.uses),
                     self.partition.cfg.rank.eq(self.cfg.chunk)]
        errors = [self.bufferize.error, pad.error, self.partition.error]
        j = 0
        unread = iter(self.outs[self.readers:])
        for k, branches in enumerate(self.branches):
            sources = [self.partition.outs[k]]
            if not branches:
                wiring.connect(m, sources.pop(), wiring.flipped(next(unread)))
            if branches > 1:
                m.submodules[f"copies{k}"] = fork = Fork(references, branches)
                link(sources[0], fork.in0, f"branch{k}")
                sources = fork.outs
            for source in sources:
                unit = m.submodules[f"streamify{j}"] = self.streamifies[j]
                link(source, unit.in0, f"references{j}")
                wiring.connect(m, unit.port, pad.reads[j])
                wiring.connect(m, unit.out0, wiring.flipped(self.outs[j]))
                m.d.comb += [getattr(unit.cfg, name).eq(getattr(self.cfg, f"r{j}_{name}")) for name in unit.cfg_widths]
                errors.append(unit.error)
                j += 1
        total = errors[0]
        for error in errors[1:]:
            total = total | error
        m.d.comb += [self.error.eq(total), self.state.eq(pad.state), self.used.eq(pad.used), self.peak.eq(pad.peak)]
        connect_events(m, self, pad)
        return m

    def add_units(self, graph, inputs: list[int], outputs: list[int], cfg: Mapping[str, int]) -> None:
        """The same units and links in the model (`model_bench.AddUnits`)."""
        shape = self.shape

        def add(kind, ins=(), outs=(), params=None, config=None):
            spec = UnitSpec(len(graph.units), kind, kind, list(ins), list(outs), params or {}, config or {})
            graph.units.append(spec)
            return spec.index

        def link():
            graph.links.append(LinkSpec(len(graph.links), "inner", Payload(shape.reference_bits, 1)))
            return len(graph.links) - 1

        pad = add("scratchpad", params={"frames": shape.frames, "page_frames": shape.page_frames,
                                        "references": shape.references, "readers": self.readers, "routers": 1})
        unread = iter(outputs[self.readers:])
        trunk, parts = link(), [link() if branches else next(unread) for branches in self.branches]
        add("bufferize", [inputs[0]], [trunk], {"scratchpad": pad}, {"rank": cfg["rank"], "uses": cfg["uses"]})
        j = 0
        for part, branches in zip(parts, self.branches, strict=True):
            heads = [part] * branches if branches < 2 else [link() for _ in range(branches)]
            if branches > 1:
                add("fork", [part], heads)
            for head in heads:
                config = {name[len(f"r{j}_"):]: value for name, value in cfg.items() if name.startswith(f"r{j}_")}
                add("streamify", [head], [outputs[j]], {"ports": ((pad, j),), "has_ref": False}, config)
                j += 1
        add("partition", [trunk, inputs[1]], parts, {"ports": ((pad, 0),), "uses": self.branches},
            {"rank": cfg["chunk"]})


@dataclass
class Usage:
    """What an `UsageAgent` saw: pages in use at the end and at most (the hardware's own counters), whether all pages,
    and whether all references were in use at a time; and what a `PadReference` made of the same requests, at last how
    many buffers are still to be used."""

    used: int = 0
    peak: int = 0
    no_page: bool = False
    no_reference: bool = False
    fragmented: int = 0
    crowded: int = 0
    overtaken: int = 0
    dropped: int = 0
    buffers: int = 0
    unfreed: int = 0


class UsageAgent:
    """Agent that watches a `MemoryTile` or `RoutedTile`, and in every cycle compares the pages in use with those of a
    `PadReference`; its ``note`` is a `Usage`."""

    def __init__(self, dut):
        self.dut = dut
        self.pages = int(dut.pages.value)
        self.clear()

    def clear(self) -> None:
        self.note = Usage()
        self.reference = PadReference(self.pages, len(self.dut.state))

    def drive(self, cycle: int) -> None:
        pass

    def sample(self, cycle: int) -> None:
        note = self.note
        note.used, note.peak = int(self.dut.used.value), int(self.dut.peak.value)
        note.no_page |= note.used == self.pages
        note.no_reference |= "0" not in str(self.dut.state.value)
        reference = self.reference
        assert (note.used, note.peak) == (reference.used, reference.peak), (
            f"cycle {cycle}: {note.used} pages in use, at most {note.peak}, vs {reference.used}, {reference.peak}")
        if not int(self.dut.error.value):
            reference.step(read_events(self.dut))
        for name in ("fragmented", "crowded", "overtaken", "dropped", "buffers"):
            setattr(note, name, getattr(reference, name))
        note.unfreed = len(reference.uses)


def usage_agent(dut, case) -> list[UsageAgent]:
    """``agents`` of `model_bench.assert_model_equals_rtl`."""
    return [UsageAgent(dut)]


def modelled_peak(tile: MemoryTile | RoutedTile, outcome) -> int:
    """Pages in use at most in the model's run of ``tile``: its scratchpad comes after the sources, in a `MemoryTile`
    after the other units too."""
    others = len(tile.input_layouts)
    if isinstance(tile, MemoryTile):
        others += len(tile.refs) + 1 + (len(tile.refs) > 1)
    return int(outcome.st[others, ST_PEAK])


@dataclass(frozen=True)
class Buffers:
    """A stream to be buffered: its beats, the length of each buffer, and each reference's stop."""

    beats: list[Beat]
    lengths: list[int]
    stops: list[int]
    rank: int
    outer_rank: int


def random_buffers(rng: Random, rank: int, lengths: Sequence[int], outer_rank: int = 0,
                   layout: BeatLayout = LAYOUT) -> Buffers:
    """Buffers of ``rank`` dimensions, the outermost of the given ``lengths`` (0: empty), inner ones regular at random;
    their references form a stream of rank ``outer_rank``, ragged."""
    return ragged_buffers(rng, [rng.randint(1, 3) for _ in range(rank - 1)], lengths, outer_rank, layout)


def ragged_buffers(rng: Random, inner: Sequence[int], lengths: Sequence[int], outer_rank: int = 0,
                   layout: BeatLayout = LAYOUT) -> Buffers:
    """Buffers of the given ``lengths`` (0: empty) of blocks of ``inner`` dimensions, outermost first."""
    rank = len(inner) + 1
    stops = [rng.randint(0, outer_rank) for _ in lengths]
    if stops:
        stops[-1] = outer_rank
    made: list[Beat] = []
    totals = []
    for length, stop in zip(lengths, stops, strict=True):
        total = length * math.prod(inner)
        totals.append(total)
        for i in range(total):
            level, period = 0, 1
            for k, size in enumerate(reversed(inner), start=1):
                period *= size
                if (i + 1) % period == 0:
                    level = k
            level = rank + stop if i == total - 1 else level
            made.append(Beat(rng.getrandbits(layout.data_width), rng.randint(1, layout.max_rows), level))
        if total == 0:
            if rank > 1:  # an empty buffer may have inner vectors, all of them empty
                made += [bare(1)] * rng.randint(0, 2)
            made.append(bare(rank + stop))
    return Buffers([*made, DONE], totals, stops, rank, outer_rank)


def routed(buffers: Buffers, chosen: Sequence[bool], chunk: int = 0) -> Buffers:
    """The buffers that a partition of rank ``chunk`` hands on to an output: ``chosen`` says which, by buffer."""
    parts: list[list[Beat]] = [[]]
    for beat in buffers.beats[:-1]:
        parts[-1].append(beat)
        if beat.stop >= buffers.rank:
            parts.append([])
    kept = [i for i, goes in enumerate(chosen) if goes]
    stops = [min(buffers.stops[i], chunk) for i in kept]
    beats = [beat for i, stop in zip(kept, stops, strict=True)
             for beat in [*parts[i][:-1], parts[i][-1]._replace(stop=buffers.rank + stop)]]
    return Buffers([*beats, DONE], [buffers.lengths[i] for i in kept], stops, buffers.rank, chunk)


def ref_stream(rng: Random, stops: Sequence[int], c: int, most: int = 3) -> list[Beat]:
    """A reference stream that reads each buffer up to ``most`` times by each of its ``c`` dimensions, at times not at
    all."""
    made: list[Beat] = []
    for stop in stops:
        if c == 0:
            made.append(Beat(rng.getrandbits(8), 1, stop))
            continue
        vectors = rng.randint(1, most) if c > 1 else 1
        for v in range(vectors):
            level = c + stop if v == vectors - 1 else rng.randint(1, c - 1)
            n = rng.randint(0, most)
            made += [Beat(rng.getrandbits(8), 1, level if i == n - 1 else 0) for i in range(n)]
            if n == 0:
                made.append(bare(level))
    return [*made, DONE]


def _tokens(stream: Sequence[Beat], rank: int) -> TokenStream:
    """Stops of ``stream``, with the position of each element as its value."""
    import numpy as np

    body = [beat for beat in stream if not beat.done]
    count = sum(not beat.empty for beat in body)
    values = np.arange(count, dtype=np.int32).reshape(-1, 1, 1)
    return TokenStream(rank, [beat.stop for beat in body], [bool(beat.empty) for beat in body], values)


def expected_passes(buffers: Buffers, cfg: Mapping[str, int], ref: Sequence[Beat] | None = None,
                    shape: Sequence[int] = ()) -> list[Beat]:
    """What the interpreter gives for streamify with the registers ``cfg`` (those of `Streamify`); ``shape`` are the
    buffers' dimensions where it is an affine view."""
    rank = buffers.rank
    inner = tuple(shape) if shape else (ragged("l"), *(dynamic(f"n{k}") for k in range(rank - 1)))
    outer = tuple(ragged(f"o{k}") for k in range(buffers.outer_rank + 1))
    view = {}
    if cfg.get("affine"):
        n = cfg["n"]
        view = {"shape": [cfg[f"count{k}"] or None for k in reversed(range(n))],
                "stride": [cfg[f"stride{k}"] for k in reversed(range(n))]}
    with Program("bench"):
        stored = ops.bufferize(ops.input_stream("x", scalar(int32), outer + inner), rank=rank)
        if ref is None:
            made = ops.streamify(stored, repeat=cfg["repeat"], **view)
        else:
            passes = tuple(ragged(f"p{k}") for k in range(cfg["c"]))
            made = ops.streamify(stored, ops.input_stream("r", scalar(int32), outer + passes), **view)
    tokens = stored.producer.interpret(None, [_tokens(buffers.beats, buffers.outer_rank + rank)])
    if ref is not None:
        tokens.append(_tokens(ref, buffers.outer_rank + cfg["c"]))
    result = made.producer.interpret(None, tokens)[0]
    elements = [beat for beat in buffers.beats if not beat.empty]
    values = iter(result.data.reshape(-1).tolist())
    beats = [bare(stop) if empty else elements[next(values)]._replace(stop=stop)
             for stop, empty in zip(result.stop.tolist(), result.empty.tolist(), strict=True)]
    return [*beats, DONE]


def no_view() -> dict[str, int]:
    """Registers of a streamify in order."""
    return {"affine": 0} | {f"count{k}": 1 for k in range(LOOPS)} | {f"stride{k}": 0 for k in range(LOOPS)}
