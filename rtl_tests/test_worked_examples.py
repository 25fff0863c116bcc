"""SPEC section 3 in every layer: interpreter, lowered interpreter, Icarus, Verilator and model.

All examples lie side by side in one program, their inputs and outputs off-chip, so that each simulator builds and
runs once. SPEC's tokens are asked of every layer, stop by stop and value by value. Where order is timing, an input
waits for another (`after`) such that RTL's own grants are SPEC's, one example for each order of SPEC; of further
examples RTL's grants are replayed.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest

from rtl_tests.cosim import RtlRun, build_rtl, check, run_rtl
from rtl_tests.explain import explain
from rtl_tests.harness.beats import LinkLayout
from rtl_tests.harness.build import installed
from rtl_tests.harness.tokens import to_beats
from sim.network import ROWS_SHIFT
from sim.prediction import Prediction, predict
from step_hw.design import Design
from step_lang import Program, Result, Stream, TokenStream, fn, int32, ops, parse_tokens, ragged, scalar, u32
from step_lang.dims import is_static
from step_lang.hwconfig import HardwareConfig
from step_lang.mapping.operators import MAPPERS
from step_lang.memory_config import MemoryConfig
from step_lang.types import BufferRef, Selector, Tile, bool_
from step_lang.worked_examples import EXAMPLES, WorkedExample

HW = HardwareConfig(tile=2, memory=MemoryConfig(capacity_bytes=1 << 13, channels=2, burst_bytes=8),
                    scratchpad_frames=16, load_window=4, accumulator_entries=4, input_tokens=16)
LAYERS = ("interpreter", "lowered", "icarus", "verilator", "model")

ROWS = {
    "flatten(0,1)": "flatten", "flatten(0,1), empty vector": "flatten_empty_vector", "reshape(2)": "reshape",
    "promote": "promote", "promote, empty": "promote_empty", "expand(b=1)": "expand", "repeat(2)": "repeat",
    "accum(1,+,0)": "accum", "scan(1,+,0)": "scan", "bufferize(1)": "bufferize", "streamify": "streamify",
    "partition(1,3)": "partition", "reassemble(0)": "reassemble", "reassemble(0), other order":
    "reassemble_other_order", "eager_merge": "eager_merge", "eager_merge, other order": "eager_merge_other_order",
    "load 2x2 grid": "load",
}
"""SPEC's table, a line of it or one of its alternatives, and the example that it is."""

BY_TIMING = ("reassemble", "reassemble_other_order", "eager_merge", "eager_merge_other_order")
"""Both orders of both rows: RTL and model are to grant as SPEC writes it."""

AFTER = {"reassemble_other_order": (0, 1), "eager_merge_other_order": (0, 1)}
"""Which input waits for the end of which other, by example, so that RTL comes to SPEC's order by itself."""


@dataclass
class Placed:
    """An example in the program of all: the streams that SPEC writes out, with their tokens (of buffer references the
    stops alone), and the names of its operators that arbitrate with SPEC's grants."""

    streams: Sequence[Stream]
    tokens: Sequence[TokenStream]
    grants: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def after(stream: Stream, other: Stream) -> Stream:
    """``stream``, not before ``other`` has ended: a zero that is known only then is added to its elements."""
    depth = other.rank + 1
    zero = ops.accum(fn.add(), ops.promote(ops.map(fn.sub(), other, other)), rank=depth, init=0)
    for _ in range(stream.rank + 1):
        zero = ops.repeat(zero, 1)
    ref = ops.promote(stream)
    zero = zero.assume((ref.shape[0],) + (1,) * (stream.rank + 1))
    late = ops.map(fn.add(), ref, ops.expand(zero, ref, rank=stream.rank + 1))
    return ops.flatten(late, stream.rank, stream.rank + 1).assume(stream.shape)


def stored(program: Program, name: str, streams: Sequence[Stream], tokens: Sequence[TokenStream]) -> None:
    """Every stream goes to a tensor of its own that its elements just fill."""
    for i, (stream, expected) in enumerate(zip(streams, tokens, strict=True)):
        if isinstance(stream.type, Selector):  # a merge's, which says how to part what it merged
            parts = ops.partition(streams[0], stream, rank=streams[0].rank, name=f"{name}_part")
            stored(program, f"{name}_part", parts, [tokens[0]] * len(parts))
            continue
        if isinstance(stream.type, BufferRef):  # what it refers to is stored
            continue
        if stream.type == scalar(bool_):
            stream = ops.map(fn.cast(dtype="int32"), stream, name=f"{name}_number{i}")
        assert isinstance(stream.type, Tile)
        room = program.tensor(f"{name}_y{i}", (max(1, expected.elements), 1), stream.type.dtype)
        ops.linear_offchip_store(stream, room, name=f"{name}_store{i}")


def worked(program: Program, inputs: dict[str, TokenStream], example: WorkedExample) -> Placed:
    tokens = example.output_tokens()
    shapes = example.shapes or tuple(
        tuple(ragged(f"d{i}_{k}") for k in range(rank, -1, -1)) for i, rank in enumerate(example.ranks))
    # Symbols of its own for each example: one name has one size in a program.
    shapes = tuple(tuple(dim if is_static(dim) else ragged(f"{example.name}_{dim}") for dim in shape)
                   for shape in shapes)
    given = []
    for i, (type_, shape, values) in enumerate(zip(example.input_types, shapes, example.input_tokens(), strict=True)):
        stream = ops.input_stream(f"{example.name}_x{i}", type_, shape)
        inputs[stream.name] = values
        given.append(stream)
    if example.name in AFTER:
        late, other = AFTER[example.name]
        given[late] = after(given[late], given[other])
    made = example.apply(*given)
    streams = list(made) if isinstance(made, tuple) else [made]
    operator = streams[0].producer
    stored(program, example.name, streams, tokens)
    grants = {}
    if operator.arbitrates:
        default = example.arbitration or _index_order(example)
        grants = {operator.name: tuple(default)}
    return Placed(streams, tokens, grants)


def _index_order(example: WorkedExample) -> list[int]:
    """Grants of SPEC's tokens where index order leads to them."""
    if example.kind == "eager_merge":
        chunks = [int((tokens.stop == rank).sum()) for tokens, rank in zip(example.input_tokens(), example.ranks)]
        return [i for i, n in enumerate(chunks) for _ in range(n)]
    selectors = example.input_tokens()[-1].data
    return [int(i) for bits in np.asarray(selectors).reshape(len(selectors), -1) for i in np.flatnonzero(bits)]


def bufferized(program: Program, inputs: dict[str, TokenStream]) -> Placed:
    """The row's two buffers, A with [1, 2] and B with [3], and what a pass over each gives."""
    x = ops.input_stream("bufferize_x", scalar(int32), (ragged("bufferize_2"), ragged("bufferize_1"), ragged("v")))
    inputs[x.name] = parse_tokens("1 2 S1 3 S2 D", 2)
    references = ops.bufferize(x, rank=1)
    passes = ops.streamify(references, repeat=1)
    tokens = [parse_tokens("7 8 S1 D", 1), parse_tokens("1 2 S2 3 S3 D", 3)]
    stored(program, "bufferize", [passes], tokens[1:])
    return Placed([references, passes], tokens)


def loaded(program: Program, inputs: dict[str, TokenStream]) -> Placed:
    ref = ops.input_stream("load_ref", scalar(u32), (ragged("load_n"), ragged("load_m")))
    inputs[ref.name] = parse_tokens("9 S1 D", 1, scalar(u32))
    tiles = ops.linear_offchip_load(program.tensor("grid", (2, 2), int32), (1, 1), ref=ref, name="load_grid")
    tokens = [parse_tokens("10 11 S1 12 13 S3 D", 3)]
    stored(program, "load", [tiles], tokens)
    return Placed([tiles], tokens)


TENSORS = {"grid": np.array([[10, 11], [12, 13]], dtype=np.int32)}
SPECIAL: dict[str, Callable[[Program, dict[str, TokenStream]], Placed]] = {"bufferize": bufferized, "load": loaded}


def _has_hardware(example: WorkedExample) -> bool:
    # An accum over inner dimensions is what lowering makes; nobody writes one. Its unit is tested in test_accum.py.
    return example.kinds <= set(MAPPERS) and not example.name.startswith("accum_inner")


ON_HARDWARE = {example.name: example for example in EXAMPLES if _has_hardware(example)}
NAMES = [*ON_HARDWARE, *SPECIAL]


@cache
def together() -> tuple[Design, dict[str, Placed]]:
    """All examples, side by side."""
    inputs: dict[str, TokenStream] = {}
    with Program("worked_examples") as program:
        placed = {name: worked(program, inputs, example) for name, example in ON_HARDWARE.items()}
        placed |= {name: place(program, inputs) for name, place in SPECIAL.items()}
    return Design(program, HW, inputs), placed


def spec_grants() -> dict[str, tuple[int, ...]]:
    return {name: order for each in together()[1].values() for name, order in each.grants.items()}


@cache
def interpreted(lowered: bool, grants: str) -> Result:
    return together()[0].interpret(TENSORS, lowered=lowered, arbitration=json.loads(grants))


@cache
def modelled() -> Prediction:
    design, _ = together()
    return predict(design.graph, design.hw, trace=True)


@cache
def simulated(simulator: str) -> RtlRun:
    """The run on RTL, which equals both interpreters given its grants, on every link and in every tensor."""
    design, _ = together()
    options: dict[str, Any] = {}
    if simulator == "icarus":
        options["payloads"] = [f"{link.name}_link" for link in design.graph.links]
    run = run_rtl(design, TENSORS, build_rtl(design, simulator), simulator=simulator, **options)
    grants = json.dumps(run.arbitration)
    found = check(design, run, interpreted(True, grants), interpreted(False, grants))
    assert found.bit_exact, found.differences
    return run


def expected(placed: Placed, arbitration: Mapping[str, Sequence[int]]) -> list[TokenStream]:
    """SPEC's tokens, or where this run granted in another order the interpreter's for that order."""
    if all(tuple(arbitration[name]) == order for name, order in placed.grants.items()):
        return list(placed.tokens)
    result = interpreted(False, json.dumps(dict(arbitration)))
    return [result.stream(stream) for stream in placed.streams]


def by_interpreter(name: str, layer: str) -> None:
    _, every = together()
    placed = every[name]
    result = interpreted(layer == "lowered", json.dumps({k: list(v) for k, v in spec_grants().items()}))
    for stream, tokens in zip(placed.streams, placed.tokens, strict=True):
        found = result.streams[stream.name]
        if isinstance(stream.type, BufferRef):
            assert (found.stop.tolist(), found.empty.any()) == (tokens.stop.tolist(), False)
            values = [np.ravel(buffer.data).tolist() for buffer in found.data]
            assert values == [[1, 2], [3]]
        else:
            assert found == tokens
    for operator, order in placed.grants.items():
        assert tuple(result.arbitration[operator]) == order


def by_rtl(name: str, layer: str) -> None:
    design, every = together()
    run, placed = simulated(layer), every[name]
    for stream, tokens in zip(placed.streams, expected(placed, run.arbitration), strict=True):
        for link in (link for link in design.graph.links if link.stream == stream.name):
            moved = run.native.of_link(link.index)
            assert moved["stop"].tolist() == [*tokens.stop.tolist(), 0], link.name
            assert moved["flags"].tolist() == [*tokens.empty.astype(int).tolist(), 3], link.name
            if run.native.payloads is not None and not isinstance(stream.type, BufferRef):
                layout = LinkLayout(link.payload.data_bits, link.payload.max_rows.bit_length())
                words = [layout.unpack(word) for word in run.native.payloads[link.index]]
                assert words == list(to_beats(tokens, stream.type)), link.name
        tensor = run.tensors.get(f"{name}_y{placed.streams.index(stream)}")
        if tensor is not None and tokens.elements and not isinstance(stream.type, BufferRef):
            values = [beat.data for beat in to_beats(tokens, stream.type) if not beat.empty]
            assert tensor.ravel().tolist() == values
    if name in BY_TIMING:
        assert {k: tuple(run.arbitration[k]) for k in placed.grants} == placed.grants


def by_model(name: str, layer: str) -> None:
    design, every = together()
    prediction, placed = modelled(), every[name]
    trace = prediction.outcome.trace
    for stream, tokens in zip(placed.streams, expected(placed, prediction.arbitration), strict=True):
        for link in (link for link in design.graph.links if link.stream == stream.name):
            words = trace[trace[:, 1] == link.index, 2] & ((1 << ROWS_SHIFT) - 1)
            wanted = tokens.stop.astype(int) | tokens.empty.astype(int) << 4
            assert words.tolist() == [*wanted.tolist(), 3 << 4], link.name
    if name in BY_TIMING:
        assert {k: tuple(prediction.arbitration[k]) for k in placed.grants} == placed.grants


BY_LAYER = {"interpreter": by_interpreter, "lowered": by_interpreter, "icarus": by_rtl, "verilator": by_rtl,
            "model": by_model}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layer", LAYERS)
def test_worked_example(layer, name):
    if layer in ("icarus", "verilator") and installed(layer):
        pytest.skip(installed(layer))
    BY_LAYER[layer](name, layer)


def test_every_row_of_spec_is_among_them():
    assert set(ROWS.values()) <= set(NAMES)


@pytest.mark.parametrize("simulator", ["icarus", "verilator"], indirect=True)
def test_model_has_the_same_cycles(simulator):
    """Every beat of every link in the same cycle, the same grants, the same traffic."""
    design, _ = together()
    run, prediction = simulated(simulator), modelled()
    assert (prediction.cycles, prediction.offchip_bytes) == (run.cycles, run.offchip_bytes)
    assert prediction.arbitration == run.arbitration
    assert not explain(design, run, prediction, TENSORS, simulator=simulator).divergences
