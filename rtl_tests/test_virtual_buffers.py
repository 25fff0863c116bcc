"""Whole programs whose buffers' references are routed, and those that run out of room: RTL, model, interpreter."""

import re
from dataclasses import replace

import numpy as np
import pytest

from rtl_tests.cosim import build_rtl, check, run_rtl
from sim.prediction import predict
from step_hw.design import Design
from step_lang import Program, Selector, fn, int32, ops, ragged, scalar
from step_lang.errors import DeadlockError, RtlError
from step_lang.hwconfig import HardwareConfig
from step_lang.memory_config import MemoryConfig

pytestmark = pytest.mark.long

HW = HardwareConfig(tile=2, scratchpad_frames=24, page_frames=2, references=4, load_window=4, input_tokens=256,
                    memory=MemoryConfig(capacity_bytes=1 << 14))
INT = scalar(int32)
N, R = ragged("N"), ragged("R")
LENGTHS = [3, 1, 7, 2, 11, 5, 1, 4, 6, 2]
SELECTORS = [{0}, {1, 2}, set(), {2}, {0, 1, 2}, {1}, {0, 2}, {0}, set(), {1}]


def values(lengths=LENGTHS):
    counter = iter(range(1, 10_000))
    return [[next(counter) for _ in range(length)] for length in lengths]


def store(p, stream, name, size=160):
    ops.linear_offchip_store(stream, p.tensor(name, (size, 1), int32), name=f"store_{name}")


def routed() -> Program:
    """Buffers of any length to three branches: one reads twice, one has two readers, one goes a slower way."""
    with Program("routed") as p:
        x = ops.input_stream("x", INT, (N, R))
        selector = ops.input_stream("selector", Selector(3), (N,))
        a, b, c = ops.partition(ops.bufferize(x, rank=1, name="keep"), selector, rank=0, name="route")
        store(p, ops.streamify(a, repeat=2, name="read_a"), "a")
        store(p, ops.streamify(b, repeat=1, name="read_b"), "b")
        twice = ops.streamify(ops.repeat(b, 2), repeat=1, name="read_b2")
        store(p, ops.map(fn.mul(), twice, twice, name="square"), "b2")
        store(p, ops.streamify(c, repeat=3, name="read_c"), "c")
    return p


def gathered() -> Program:
    """The references of two branches meet again, in the order of arrival; those of another in groups."""
    with Program("gathered") as p:
        x = ops.input_stream("x", INT, (N, R))
        selector = ops.input_stream("selector", Selector(3), (N,))
        keep = ops.bufferize(x, rank=1, name="keep")
        a, b, c = ops.partition(keep, selector, rank=0, name="route")
        merged, _ = ops.eager_merge([a, b], name="merge")
        store(p, ops.streamify(merged, repeat=1, name="read_merged"), "merged")
        store(p, ops.streamify(c, repeat=1, name="read_c"), "c")
        groups = ops.reassemble(ops.partition(keep, selector, rank=0, name="again"), selector, rank=0, name="gather")
        store(p, ops.streamify(groups, repeat=2, name="read_groups"), "groups")
    return p


def columns() -> Program:
    """Rows of three, as many as there are, by columns."""
    with Program("columns") as p:
        x = ops.input_stream("x", INT, (N, R, 3))
        store(p, ops.streamify(ops.bufferize(x, rank=2, name="keep"), repeat=2, shape=(3, None), stride=(1, 3)), "y")
    return p


def copied() -> Program:
    """Each buffer as often as another stream has elements, none included; one copy in two is read twice."""
    with Program("copied") as p:
        x = ops.input_stream("x", INT, (N, R))
        counts = ops.input_stream("counts", INT, (N, ragged("C")))
        keep = ops.bufferize(x, rank=1, name="keep")
        copies = ops.expand(ops.repeat(keep, 1), counts, 1, name="copy")
        store(p, ops.streamify(copies, repeat=1, name="read"), "y", 400)
        a, b = ops.partition(copies, ops.input_stream("selector", Selector(2), (N, ragged("C"))), rank=0, name="route")
        store(p, ops.streamify(a, repeat=2, name="read_a"), "a", 400)
        store(p, ops.streamify(b, repeat=1, name="read_b"), "b", 400)
    return p


def met() -> Program:
    """References of three bufferizes in one stream, in the order of arrival and in groups; of each, some are read by
    others too, and some by none."""
    with Program("met") as p:
        kept = [ops.bufferize(ops.input_stream(name, INT, (ragged("N" + name), ragged("R" + name))), rank=1,
                              name=f"keep_{name}") for name in "xyz"]
        merged, _ = ops.eager_merge(kept, name="merge")
        store(p, ops.streamify(merged, repeat=2, name="read_merged"), "merged", 400)
        selector = ops.input_stream("selector", Selector(2), (ragged("S"),))
        groups = ops.reassemble(kept[:2], selector, rank=0, name="gather")
        copies = ops.expand(ops.repeat(groups, 1), ops.repeat(groups, 2), 1, name="copy")
        store(p, ops.streamify(copies, repeat=1, name="read_groups"), "groups", 400)
        store(p, ops.streamify(kept[1], repeat=1, name="read_y"), "y_again", 400)
    return p


COUNTS = [list(range(n)) for n in (12, 0, 1, 0, 0, 9, 2, 0, 5, 1)]
"""Elements for each buffer: more than the links hold, and none of as many buffers as there may be at once."""
ONE_EACH = [{0}, {1}, {0, 1}, {1}, {0, 1}, {0}]

PROGRAMS = {
    "copied": (copied, {"x": values(), "counts": COUNTS, "selector": [[{i % 3 % 2} if i % 3 else {0, 1} for i in its]
                                                                      for its in COUNTS]}),
    "met": (met, {"x": values([3, 1, 7, 2]), "y": values([5, 2, 0, 4]), "z": values([1, 8, 2]), "selector": ONE_EACH}),
    "routed": (routed, {"x": values(), "selector": SELECTORS}),
    "gathered": (gathered, {"x": values(), "selector": SELECTORS}),
    "columns": (columns, {"x": [[[i, j, i * j] for i in range(n)] for j, n in enumerate([3, 1, 4, 2])]}),
}


def agree(design: Design, **options):
    """RTL equals the interpreter, logical and lowered, and the model in cycles, traffic, grants and peak use."""
    run = run_rtl(design, {}, **options)
    expected = design.interpret({}, arbitration=run.arbitration)
    found = check(design, run, expected, design.interpret({}, lowered=False, arbitration=run.arbitration))
    assert found.bit_exact, found.differences
    model = predict(design.graph, design.hw)
    assert model.arbitration == run.arbitration
    assert (model.cycles, model.offchip_bytes, model.peak_frames) == (run.cycles, run.offchip_bytes, run.peak_frames)
    return run


def options(simulator: str) -> dict:
    return {"simulator": simulator, "native": simulator == "verilator"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(simulator, name):
    build, inputs = PROGRAMS[name]
    run = agree(Design(build(), HW, inputs), **options(simulator))
    assert all(0 < peak <= HW.scratchpad_frames for peak in run.peak_frames.values())


def test_one_netlist_serves_all_selectors(simulator):
    """No reference to some readers; all references to all."""
    netlist = None
    for selectors in ([{1}] * 10, [{0, 1, 2}] * 10, [set()] * 10):
        design = Design(routed(), HW, {"x": values(), "selector": selectors})
        netlist = netlist or build_rtl(design, **options(simulator))
        agree(design, build=netlist, **options(simulator))


def errors_of(design: Design, simulator: str, error: type) -> list[str]:
    """What RTL and model say."""
    with pytest.raises(error) as rtl:
        run_rtl(design, {}, **options(simulator))
    with pytest.raises(error) as model:
        predict(design.graph, design.hw)
    return [str(rtl.value), str(model.value)]


def test_buffer_larger_than_the_scratchpad(simulator):
    """Found at run time: the message has the buffer's operator and line, its size so far, and the scratchpad's."""
    design = Design(routed(), HW, {"x": values([3, 40, 2]), "selector": [{0}, {1}, {2}]})
    for message in errors_of(design, simulator, RtlError):
        assert re.search(
            r"unit 'keep' \(keep \(test_virtual_buffers.py:\d+\)\) raise[ds] EXHAUSTED (by|in) cycle \d+: a buffer of "
            r"24 tiles so far, and more to come, vs its scratchpad's 24 tiles \(12 pages of 2\); fix: raise "
            r"scratchpad.frames above 24 ", message), message


def test_a_copied_reference_whose_buffer_was_freed(simulator):
    """No use counted for who copies: its buffer is gone when the first copy is to leave."""
    design = Design(copied(), HW, PROGRAMS["copied"][1])
    design.graph.unit("keep").config["uses"] = 0
    for message in errors_of(design, simulator, RtlError):
        assert re.search(r"unit 'copy' .*FREED", message), message


def folded_first(lengths) -> Design:
    """Two streams are folded whole together, and only then read again: their buffers must all be kept until then."""
    with Program("folded_first") as p:
        kept = [ops.bufferize(ops.input_stream(name, INT, (4, R)), rank=1, name=f"keep_{name}") for name in "xy"]
        both = ops.map(fn.add(), *(ops.streamify(refs, repeat=1) for refs in kept))
        total = ops.accum(fn.add(), ops.promote(both), rank=3)
        for refs, name in zip(kept, "xy", strict=True):
            again = ops.streamify(refs, ops.flatten(ops.repeat(total, 4), 0, 1), name=f"again_{name}")
            store(p, ops.map(fn.add(), again, again), f"{name}_out")
    # Links that hold all references, lest they be the first to fill.
    return Design(p, replace(HW, link_depth=5), {"x": values(lengths), "y": values(lengths)})


def test_deadlock_by_exhaustion(simulator):
    """Two buffers half filled wait for room that only their own readers could give; with smaller ones all is well."""
    agree(folded_first([5, 6, 4, 5]), **options(simulator))
    for message in errors_of(folded_first([9, 9, 9, 9]), simulator, DeadlockError):
        lines = message.splitlines()
        assert re.fullmatch(r"deadlock by exhaustion: \d+ units wait for one another", lines[0]), message
        for k, name in enumerate("xy", start=1):
            assert re.fullmatch(
                rf"  unit 'keep_{name}' \(keep_{name} \(test_virtual_buffers.py:\d+\)\) has a buffer of 4 "
                r"tiles so far and needs a page: all of its scratchpad's 24 tiles \(12 pages of 2\) are taken",
                lines[k]), message
        assert "finds no room in keep_" in message and "waits for again_" in message
        assert lines[-1] == "  fix: raise scratchpad.frames or scratchpad.references in the hardware configuration"


def test_deadlock_for_want_of_references(simulator):
    """The same with buffers of one tile, of which only so many can be told apart."""
    design = folded_first([1, 1, 1, 1])
    design = Design(design.program, replace(design.hw, references=3), design.inputs)
    for message in errors_of(design, simulator, DeadlockError):
        assert re.search(r"unit 'keep_x' .* begins a buffer and needs a reference: all 3 of its scratchpad are taken",
                         message), message


def test_memory_of_dropped_references_is_free(simulator):
    """Nobody gets most of the buffers: far more than fit pass through."""
    lengths = [9] * 20
    design = Design(routed(), HW, {"x": values(lengths), "selector": [{0} if i % 7 == 6 else set() for i in range(20)]})
    run = agree(design, **options(simulator))
    assert np.count_nonzero(run.tensors["a"]) == 2 * 9 * 2
