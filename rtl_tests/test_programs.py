"""The examples on RTL: values on every link, cycles on both simulators, cycles of the model."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from examples import matmul, softmax, swiglu
from rtl_tests.cosim import RtlRun, build_rtl, check, run_rtl
from sim.prediction import predict
from step_hw.design import Design
from step_lang.hwconfig import HardwareConfig
from step_lang.memory_config import MemoryConfig
from step_lang.roofline import roofline

SMALL = HardwareConfig(tile=2, memory=MemoryConfig(capacity_bytes=1 << 14), scratchpad_frames=32, load_window=8,
                       accumulator_entries=16)


def bit_exact(design: Design, module, simulator: str = "verilator") -> RtlRun:
    """A run whose tensors, token streams and traffic are the interpreter's and whose cycles are the model's. Icarus
    shows the element of every beat on every link; those are compared too."""
    tensors = module.inputs(design.program)
    options: dict[str, Any] = {}
    if simulator == "icarus":
        options["payloads"] = [f"{link.name}_link" for link in design.graph.links]
    run = run_rtl(design, tensors, build_rtl(design, simulator), simulator=simulator, **options)
    found = check(design, run, design.interpret(tensors), design.interpret(tensors, lowered=False))
    assert found.bit_exact, found.differences
    model = predict(design.graph, design.hw)
    assert (run.cycles, run.offchip_bytes) == (model.cycles, model.offchip_bytes)
    assert run.peak_frames == model.peak_frames
    assert run.cycles >= roofline(design.program, design.hw).cycles
    return run


def test_swiglu_is_the_same_everywhere(both_simulators):
    """16 x 32 x 32 on tiles of 4 x 4: every element on every link, every transfer in its cycle on both simulators."""
    hw = replace(SMALL, tile=4, k_per_cycle=4, rows_per_cycle=1, scratchpad_frames=64, accumulator_entries=32)
    design = Design(swiglu.build(16, 32, 32, 8, 16), hw)
    runs = [bit_exact(design, swiglu, simulator) for simulator in both_simulators]
    assert runs[0].native.same_as(runs[1].native)
    elements = {link.name for link in design.graph.links if runs[0].native.payloads[link.index]}
    assert elements == {link.name for link in design.graph.links}


def test_softmax():
    """Rows of several tiles and of one, on one netlist."""
    designs = [Design(softmax.build(*sizes), SMALL) for sizes in ((8, 8, 4), (4, 2, 2))]
    assert designs[0].verilog.files == designs[1].verilog.files
    for design in designs:
        bit_exact(design, softmax)


class WideRange:
    """Operands of the matrix product whose magnitudes differ so much that it shows which products are summed first."""

    @staticmethod
    def inputs(program):
        tensors = matmul.inputs(program)
        if program.tensors["a"].dtype.is_float:
            rng = np.random.default_rng(1)
            for name, tensor in tensors.items():
                tensors[name] = (tensor * 2.0 ** rng.integers(-9, 10, tensor.shape)).astype(tensor.dtype)
        return tensors


@pytest.mark.parametrize("dtype", ["bf16", "int8"])
def test_matmul_by_groups_of_products(dtype):
    """Two products a cycle, tiles of four: a tile product takes two cycles, and bf16 is rounded between them."""
    hw = replace(SMALL, tile=4, k_per_cycle=2, rows_per_cycle=1)
    run = bit_exact(Design(matmul.build(8, 16, 8, 8, 8, 4, dtype=dtype), hw), WideRange)
    if dtype == "bf16":
        whole = Design(matmul.build(8, 16, 8, 8, 8, 4), replace(hw, k_per_cycle=4))
        other = whole.interpret(WideRange.inputs(whole.program)).tensors["c"]
        assert (run.tensors["c"] != other).any()  # the grouping shows in these very values


def test_banked_memory():
    """A whole program before memory with rows and refresh: same values, and the model's cycles are RTL's."""
    program = matmul.build(8, 16, 8, 4, 8, 4)
    banked = replace(SMALL, memory=replace(SMALL.memory, model="banked"))
    run = bit_exact(Design(program, banked), matmul)
    assert run.cycles != predict(Design(program, SMALL).graph, SMALL).cycles


@pytest.mark.deep
@pytest.mark.parametrize("module, sizes", [
    (swiglu, (8, 16, 16, 4, 8)), (swiglu, (8, 8, 8, 8, 8)), (swiglu, (4, 8, 16, 2, 4)), (softmax, (16, 16, 8)),
    (matmul, (8, 8, 8, 2, 4, 8)), (matmul, (16, 4, 4, 8, 2, 2))],
    ids=lambda value: value.__name__.split(".")[-1] if hasattr(value, "__name__") else "x".join(map(str, value)))
@pytest.mark.parametrize("model", ["simple", "banked"])
def test_sizes(module, sizes, model):
    """More shapes, before both memories."""
    bit_exact(Design(module.build(*sizes), replace(SMALL, memory=replace(SMALL.memory, model=model))), module)
