"""Whole programs that route: RTL, model and interpreter, with the arbitration traces that RTL and model recorded."""

import json

import numpy as np
import pytest

from examples.data import random_tensors
from rtl_tests.cosim import build_rtl, check, run_rtl
from sim.prediction import predict
from step_hw.design import Design
from step_lang import Program, Selector, bf16, fn, ops, ragged
from step_lang.errors import ArbitrationError, RtlError
from step_lang.hwconfig import HardwareConfig

T = 2
HW = HardwareConfig(tile=T)
ROWS = 8
"""Elements that are routed."""


def experts(n: int = 3, tile=(T, 2 * T)) -> Program:
    """Rows of x go to the experts that a selector names (each scales by another number, one goes a longer way), and
    come back as groups."""
    rows, cols = tile
    with Program("experts") as p:
        x = p.tensor("x", (ROWS * rows, cols), bf16)
        y = p.tensor("y", (n * ROWS * rows, cols), bf16)
        selector = ops.input_stream("selector", Selector(n), (ragged("rows"),))
        tiles = ops.linear_offchip_load(x, tile, shape=(ROWS,), stride=(1,), name="load_x").assume(selector.shape)
        parts = ops.partition(tiles, selector, rank=0, name="route")
        results = []
        for i, part in enumerate(parts):
            result = ops.map(fn.scale(i + 2), part, name=f"expert{i}")
            if i == 1:
                result = ops.map(fn.exp(), result, name="expert1_exp")
            results.append(result)
        ops.linear_offchip_store(ops.reassemble(results, selector, rank=0, name="gather"), y, name="store_y")
    return p


def merged() -> Program:
    """Chunks of two streams in order of arrival, sent back by the selectors of the merge, and stored apart."""
    with Program("merged") as p:
        streams = []
        for name, n in (("a", 3), ("b", 5)):
            x = p.tensor(name, (2 * n * T, T), bf16)
            streams.append(ops.linear_offchip_load(x, (T, T), shape=(n, 2), stride=(2, 1), name=f"load_{name}"))
        slow = ops.map(fn.exp(), streams[0], name="slow")
        data, names = ops.eager_merge([slow, streams[1]], name="merge")
        for part, name, n in zip(ops.partition(data, names, rank=1, name="split"), "ab", (3, 5)):
            ops.linear_offchip_store(part, p.tensor(f"{name}_out", (2 * n * T, T), bf16), name=f"store_{name}")
        ops.linear_offchip_store(data, p.tensor("all", (16 * T, T), bf16), name="store_all")
    return p


def agree(design: Design, seed: int = 0, **options):
    """RTL equals the interpreter given RTL's grants, and the model's cycles and grants are RTL's; the RTL run."""
    tensors = random_tensors(design.program, seed)
    run = run_rtl(design, tensors, **options)
    expected = design.interpret(tensors, arbitration=run.arbitration)
    logical = design.interpret(tensors, lowered=False, arbitration=run.arbitration)
    found = check(design, run, expected, logical)
    assert found.bit_exact, found.differences
    model = predict(design.graph, design.hw)
    assert model.arbitration == run.arbitration
    assert (model.cycles, model.offchip_bytes) == (run.cycles, run.offchip_bytes)
    assert expected.arbitration == run.arbitration == logical.arbitration
    return run


ROUTINGS = {
    "one expert each": [{0}, {1}, {2}, {1}, {1}, {0}, {2}, {0}],
    "several experts": [{0, 1}, {1}, {0, 1, 2}, {2, 1}, {0, 2}, {0, 1, 2}, {1, 0}, {0, 1, 2}],
    "none for some": [{0, 1}, set(), set(), {2}, {0, 1, 2}, set(), {1}, set()],
    "one expert without rows": [{0}, {2}, {0, 2}, {2, 0}, {0}, {2}, {0, 2}, {0}],
}


@pytest.mark.parametrize("routing", ROUTINGS)
def test_rows_to_experts_and_back(routing):
    selectors = ROUTINGS[routing]
    run = agree(Design(experts(), HW, {"selector": selectors}))
    assert [sorted(group) for group in _groups(run.arbitration["gather"], selectors)] == list(map(sorted, selectors))


def _groups(order, selectors):
    at = iter(order)
    return [[next(at) for _ in selector] for selector in selectors]


def test_one_netlist_serves_all_routings():
    designs = [Design(experts(), HW, {"selector": selectors}) for selectors in ROUTINGS.values()]
    assert len({design.verilog.text for design in designs}) == 1


def test_larger_tiles():
    """Chunks of 2 x 4 physical tiles: longer than any link, so they are held where groups meet."""
    design = Design(experts(tile=(2 * T, 4 * T)), HW, {"selector": ROUTINGS["several experts"]})
    held = [unit.name for unit in design.graph.units if unit.kind == "bufferize"]
    assert len(held) == 3
    agree(design)


def test_chunks_of_several_elements_in_order_of_arrival():
    run = agree(Design(merged(), HW))
    order = run.arbitration["merge"]
    assert sorted(order) == [0] * 3 + [1] * 5
    assert order != sorted(order)


@pytest.mark.parametrize("build", [experts, merged])
def test_under_cocotb_on_icarus(build):
    """The same records and the same grants as the native run."""
    inputs = {"selector": ROUTINGS["several experts"]} if build is experts else {}
    design = Design(build(), HW, inputs)
    tensors = random_tensors(design.program, 0)
    native = run_rtl(design, tensors)
    other = run_rtl(design, tensors, simulator="icarus", native=False)
    assert other.native.same_as(native.native)
    assert other.arbitration == native.arbitration


def test_a_run_is_replayed_from_its_file(tmp_path):
    design = Design(merged(), HW)
    tensors = random_tensors(design.program, 0)
    run = run_rtl(design, tensors)
    path = tmp_path / "arbitration.json"
    path.write_text(json.dumps(run.arbitration))
    replayed = design.interpret(tensors, lowered=False, arbitration=json.loads(path.read_text()))
    assert all((replayed.tensors[name] == run.tensors[name]).all() for name in run.tensors)
    # Index order is another order, and a trace of another run does not fit.
    assert not (design.interpret(tensors).tensors["all"] == run.tensors["all"]).all()
    with pytest.raises(ArbitrationError):
        design.interpret(tensors, arbitration={"merge": run.arbitration["merge"][:-1]})


def test_selector_with_a_bit_too_many_is_told_by_rtl_and_model():
    with Program("beyond") as p:
        x = p.tensor("x", (2 * T, T), bf16)
        selector = ops.input_stream("selector", Selector(4), (2,))
        parts = ops.partition(ops.linear_offchip_load(x, (T, T), shape=(2,), stride=(1,)), selector, rank=0,
                              num_consumers=2, name="route")
        for i, part in enumerate(parts):
            ops.linear_offchip_store(part, p.tensor(f"y{i}", (2 * T, T), bf16))
    design = Design(p, HW, {"selector": [{0}, {3}]})
    with pytest.raises(RtlError, match=r"unit 'route' \(route .*\) raised SELECTOR by cycle \d+; fix: name only"):
        run_rtl(design, random_tensors(p, 0), build_rtl(design))
    with pytest.raises(RtlError, match=r"unit 'route' \(.*\) raises SELECTOR in cycle"):
        predict(design.graph, design.hw)


def test_values_are_what_the_experts_make_of_them():
    """Not only equal to the interpreter: the numbers themselves."""
    selectors = ROUTINGS["one expert each"]
    design = Design(experts(), HW, {"selector": selectors})
    tensors = random_tensors(design.program, 3)
    y = run_rtl(design, tensors).tensors["y"].astype(np.float32)
    x = tensors["x"].astype(np.float32)
    for k, (expert,) in enumerate(selectors):
        rows = slice(k * T, (k + 1) * T)
        if expert != 1:
            assert np.allclose(y[rows], x[rows] * (expert + 2), rtol=2**-8)
    assert not y[ROWS * T:].any()
