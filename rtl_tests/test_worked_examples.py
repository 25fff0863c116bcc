"""SPEC section 3 on all layers at once: each example as a program whose inputs and outputs lie off-chip, through the
interpreter, the lowered interpreter, RTL (every beat with its element) and the model.

Where order is timing the interpreters give SPEC's order from its grants, and RTL's from RTL's.
"""

from typing import Any

import numpy as np
import pytest

from rtl_tests.cosim import build_rtl, check, run_rtl
from sim.prediction import predict
from step_hw.design import Design
from step_lang import Program, fn, int32, ops, parse_tokens, ragged, scalar, u32
from step_lang.hwconfig import HardwareConfig
from step_lang.memory_config import MemoryConfig
from step_lang.types import Selector, bool_
from step_lang.worked_examples import EXAMPLES

HW = HardwareConfig(tile=2, memory=MemoryConfig(capacity_bytes=1 << 12, channels=1, burst_bytes=8),
                    scratchpad_frames=16, load_window=4, accumulator_entries=4, input_tokens=16)
ON_HARDWARE = ("flatten", "reshape", "promote", "expand", "repeat", "zip", "accum", "scan", "streamify", "bufferize",
               "partition", "reassemble", "eager_merge")


def stored(program: Program, streams, tokens, name: str = "y") -> None:
    """Every stream goes to a tensor of its own that its elements just fill."""
    for i, (stream, expected) in enumerate(zip(streams, tokens, strict=True)):
        if isinstance(stream.type, Selector):  # a merge's, which says how to part what it merged
            parts = ops.partition(streams[0], stream, rank=streams[0].rank, name="part")
            stored(program, parts, [tokens[0]] * len(parts), "part")
            continue
        if stream.type == scalar(bool_):
            stream = ops.map(fn.cast(dtype="int32"), stream, name=f"number{i}")
        room = program.tensor(f"{name}{i}", (max(1, expected.elements), 1), stream.type.dtype)
        ops.linear_offchip_store(stream, room, name=f"store_{name}{i}")


def everywhere(design: Design, tensors, streams, expected, simulator: str, grants=None) -> None:
    """All layers move ``expected`` on ``streams``, and model and RTL take the same cycles and grants."""
    logical = design.interpret(tensors, lowered=False, arbitration=grants)
    lowered = design.interpret(tensors, arbitration=grants)
    for stream, tokens in zip(streams, expected, strict=True):
        assert logical.stream(stream) == tokens
        assert lowered.streams[stream.name] == tokens
    options: dict[str, Any] = {}
    if simulator == "icarus":
        options["payloads"] = [f"{link.name}_link" for link in design.graph.links]
    run = run_rtl(design, tensors, build_rtl(design, simulator), simulator=simulator, **options)
    if design.arbitrates:
        logical = design.interpret(tensors, lowered=False, arbitration=run.arbitration)
        lowered = design.interpret(tensors, arbitration=run.arbitration)
    found = check(design, run, lowered, logical)
    assert found.bit_exact, found.differences
    model = predict(design.graph, design.hw)
    assert (model.cycles, model.arbitration) == (run.cycles, run.arbitration)


def example_design(example) -> tuple[Design, list, list]:
    tokens = example.output_tokens()
    shapes = example.shapes or tuple(
        tuple(ragged(f"d{i}_{k}") for k in range(rank, -1, -1)) for i, rank in enumerate(example.ranks))
    with Program(example.kind) as program:
        made = example.apply(*(ops.input_stream(f"x{i}", type_, shape)
                               for i, (type_, shape) in enumerate(zip(example.input_types, shapes))))
        streams = list(made) if isinstance(made, tuple) else [made]
        stored(program, streams, tokens)
    inputs = {f"x{i}": given for i, given in enumerate(example.input_tokens())}
    return Design(program, HW, inputs), streams, tokens


# An accum over inner dimensions is what lowering makes; nobody writes one. Its unit is tested in ``test_accum.py``.
RUN = [e for e in EXAMPLES if e.kinds <= {*ON_HARDWARE, "input_stream"} and not e.name.startswith("accum_inner")]
SIMULATORS = ["icarus", pytest.param("verilator", marks=pytest.mark.deep)]


@pytest.mark.parametrize("example", RUN, ids=lambda example: example.name)
@pytest.mark.parametrize("simulator", SIMULATORS, indirect=True)
def test_example(simulator, example):
    design, streams, tokens = example_design(example)
    everywhere(design, {}, streams, tokens, simulator, example.traces)


@pytest.mark.parametrize("simulator", SIMULATORS, indirect=True)
def test_load_with_reference(simulator):
    with Program("load") as program:
        grid = program.tensor("grid", (2, 2), int32)
        ref = ops.input_stream("ref", scalar(u32), (ragged("n"), ragged("m")))
        tiles = ops.linear_offchip_load(grid, (1, 1), ref=ref, name="load_grid")
        ops.linear_offchip_store(tiles, program.tensor("y", (4, 1), int32), name="store_y")
    design = Design(program, HW, {"ref": parse_tokens("9 S1 D", 1, scalar(u32))})
    values = np.array([[10, 11], [12, 13]], dtype=np.int32)
    everywhere(design, {"grid": values}, [tiles], [parse_tokens("10 11 S1 12 13 S3 D", 3)], simulator)
