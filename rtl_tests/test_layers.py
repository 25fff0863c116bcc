"""Layers with experts and requests that have nothing to do, on RTL: interpreter, model and symbolic traffic agree."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from examples import attention, moe, simplified_moe
from rtl_tests.cosim import RtlRun, build_rtl, check, run_rtl
from sim.prediction import predict
from step_hw.design import Design
from step_lang import metrics
from step_lang.hwconfig import HardwareConfig

T = 2
HW = HardwareConfig(tile=T, link_depth=32)
"""Links hold what experts and regions wait for; `step_hw size-fifos` would find fewer beats."""

MOE: dict[str, Any] = {"top_k": 2, "hidden": 4, "intermediate": 4, "tile_f": 2}
ATTENTION: dict[str, Any] = {"batch": 4, "regions": 2, "queries": 2, "dim": 4, "kv_tile": 4, "capacity": 12}
STATIC = pytest.param({"tiling": "static", "tile_rows": 2}, marks=pytest.mark.deep)
SIMPLIFIED: dict[str, Any] = {"link_depths": {"route__to__from_experts": 10}}
"""What `step_hw size-fifos` finds for full throughput."""


def agree(design: Design, module: ModuleType, simulator: str) -> RtlRun:
    """RTL's values, tokens and traffic are the program's, its cycles, grants and scratchpad peaks the model's. Icarus
    shows the element of every beat on every link; those are compared too."""
    tensors = module.inputs(design.program)
    options: dict[str, Any] = {}
    if simulator == "icarus":
        options["payloads"] = [f"{link.name}_link" for link in design.graph.links]
    native = simulator == "verilator"
    run = run_rtl(design, tensors, build_rtl(design, simulator, native=native), simulator=simulator, native=native,
                  **options)
    logical = design.interpret(tensors, lowered=False, arbitration=run.arbitration)
    found = check(design, run, design.interpret(tensors, arbitration=run.arbitration), logical)
    assert found.bit_exact, found.differences
    model = predict(design.graph, design.hw)
    assert (model.cycles, model.peak_frames, model.arbitration) == (run.cycles, run.peak_frames, run.arbitration)
    assert run.offchip_bytes == model.offchip_bytes == int(metrics(design.program).substitute(logical.symbols)
                                                           .offchip_bytes)
    return run


@pytest.mark.long
@pytest.mark.parametrize("tiling", [{"tiling": "dynamic"}, STATIC], ids=["dynamic", "static"])
def test_experts_without_tokens(simulator, tiling):
    """Sixteen experts, six of them without a token, take turns in one region."""
    program = moe.build(batch=5, experts=16, regions=1, **tiling, **MOE)
    streams = moe.streams(program, idle=6)
    used = set().union(*streams["route"])
    assert len(used) <= 10
    run = agree(Design(program, HW, streams), moe, simulator)
    assert set(run.arbitration["merge0"]) == used


@pytest.mark.deep
@pytest.mark.parametrize("regions", [16, 4])
def test_experts_without_tokens_in_regions(regions):
    """Regions of their own for sixteen experts, where six stand idle, and four that each serve four."""
    program = moe.build(batch=5, experts=16, regions=regions, **MOE)
    agree(Design(program, HW, moe.streams(program, idle=6)), moe, "verilator")


@pytest.mark.long
@pytest.mark.parametrize("tiling", [{"tiling": "dynamic"}, STATIC], ids=["dynamic", "static"])
def test_one_token(simulator, tiling):
    """A batch of one: two of four experts have a row, the others none."""
    program = moe.build(batch=1, experts=4, regions=2, **tiling, **MOE)
    agree(Design(program, HW, moe.streams(program)), moe, simulator)


@pytest.mark.long
@pytest.mark.parametrize("schedule", [pytest.param("interleaved", marks=pytest.mark.deep), "dynamic"])
def test_requests_of_length_0(simulator, schedule):
    """Of a request without tokens in its cache nothing is read but the tile that the new one goes to."""
    program = attention.build(**ATTENTION, schedule=schedule)
    design = Design(program, HW, attention.request_streams(program, [0, 9, 4, 0]))
    agree(design, attention, simulator)


@pytest.mark.deep
@pytest.mark.parametrize("tile", [4, 16])
def test_simplified_moe_of_the_paper(simulator, tile):
    """Ten tokens of 64, two experts of 64 x 256, tiles of 4 rows: the sizes of the paper's figures 6 and 7."""
    program = simplified_moe.build()
    design = Design(program, HardwareConfig(tile=tile, **SIMPLIFIED), simplified_moe.streams(program))
    agree(design, simplified_moe, simulator)
