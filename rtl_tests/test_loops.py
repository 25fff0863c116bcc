"""Programs with loops: interpreter, lowered interpreter, RTL on Icarus and model, with the grants of the run."""

import dataclasses

import numpy as np
import pytest

from examples.data import random_tensors
from rtl_tests.cosim import check, run_rtl
from sim.prediction import predict
from sim.sizing import size_fifos
from step_hw.design import Design
from step_lang import Program, Selector, bf16, fn, int32, ops, ragged, scalar
from step_lang.errors import DeadlockError
from step_lang.hwconfig import HardwareConfig

T = 2
HW = HardwareConfig(tile=T, input_tokens=512)


def wide(regions: int) -> HardwareConfig:
    """A request fits the link to its region, so that the next one gets past it."""
    return dataclasses.replace(HW, link_depths={f"give_{i}" if regions > 1 else "give": 16 for i in range(regions)})

NUMBER = scalar(int32)


def agree(design: Design, tensors=None):
    """RTL, model and interpreter, given RTL's grants, do the same; the RTL run."""
    tensors = random_tensors(design.program, 0) if tensors is None else tensors
    run = run_rtl(design, tensors, simulator="icarus", native=False, quiet_cycles=300)
    lowered = design.interpret(tensors, arbitration=run.arbitration)
    logical = design.interpret(tensors, lowered=False, arbitration=run.arbitration)
    found = check(design, run, lowered, logical)
    assert found.bit_exact, found.differences
    model = predict(design.graph, design.hw)
    assert model.arbitration == run.arbitration
    assert (model.cycles, model.total_cycles, model.offchip_bytes) == (run.cycles, run.total_cycles, run.offchip_bytes)
    return run


TIMES = 8


def regions_of(parts) -> list:
    """Each number `TIMES` times, summed."""
    return [ops.accum(fn.add(), ops.repeat(part, TIMES, name=f"work{i}"), rank=2, name=f"region{i}")
            for i, part in enumerate(parts)]


def dispatch(requests: int, regions: int) -> Program:
    """The paper's dynamic parallelization: a request, a vector of numbers to be summed, goes to whichever region has
    completed one: the first ones in turn, then in order of completion. A region takes `TIMES` cycles for a number."""
    first = min(requests, regions)
    with Program("dispatch") as p:
        start = ops.input_stream("start", Selector(regions), (first,))
        control = ops.input_stream("control", Selector(2), (requests,))
        keep = ops.input_stream("keep", Selector(1), (requests,))
        work = ops.input_stream("work", NUMBER, (requests, ragged("length")))
        free = ops.feedback(Selector(regions), (ragged("free"),), name="free")
        turns = ops.reassemble([start, free], control, rank=0, name="turns").assume((requests, 1))
        parts = ops.partition(work, ops.flatten(turns, 0, 1, name="turn"), rank=1, name="give")
        sums = regions_of(parts)
        data, source = ops.eager_merge(sums, name="completions")
        ops.linear_offchip_store(data.assume((requests,)), p.tensor("sums", (requests, 1), int32), name="store_sums")
        for i, part in enumerate(sums):
            ops.linear_offchip_store(part, p.tensor(f"done{i}", (requests, 1), int32), name=f"store_done{i}")
        (again,) = ops.partition(source.assume((requests,)), keep, rank=0, name="last_ones_stop")
        free.connect(again)
    return p


def dispatch_inputs(work, regions: int) -> dict:
    n, first = len(work), min(regions, len(work))
    return {"start": [{i} for i in range(first)], "control": [{0}] * first + [{1}] * (n - first), "work": work,
            "keep": [{0}] * (n - first) + [set()] * first}


def lengths(kind: str, requests: int) -> list[int]:
    rng = np.random.default_rng(requests)
    return {"random": rng.integers(0, 14, requests).tolist(),
            "one long": [15] + [1] * (requests - 1),
            "equal": [5] * requests}[kind]


@pytest.mark.parametrize("kind, requests, regions", [
    ("random", 24, 4), ("one long", 9, 3), ("equal", 9, 2), ("random", 6, 1), ("random", 3, 4)])
def test_dynamic_dispatch(kind, requests, regions):
    length = lengths(kind, requests)
    rng = np.random.default_rng(1)
    work = [rng.integers(-1000, 1000, n).tolist() for n in length]
    run = agree(Design(dispatch(requests, regions), wide(regions), dispatch_inputs(work, regions)))
    sums = run.tensors["sums"].ravel().tolist()
    assert sorted(sums) == sorted(TIMES * sum(numbers) for numbers in work)
    # Who did what, from the grants: a region's next request is the first one not given away when it completes.
    order = run.arbitration["completions"]
    assert sorted(run.arbitration) == ["completions", "turns"]
    waiting, running, mine = list(range(requests)), {}, [[] for _ in range(regions)]
    for region in range(min(regions, requests)):
        running[region] = waiting.pop(0)
    for region, total in zip(order, sums):
        request = running.pop(region)
        assert TIMES * sum(work[request]) == total
        mine[region].append(total)
        if waiting:
            running[region] = waiting.pop(0)
    for region, expected in enumerate(mine):
        assert run.tensors[f"done{region}"].ravel().tolist() == expected + [0] * (requests - len(expected))
    if kind == "one long":
        assert order.count(0) == 1, "the region with the long request should have got no other"
    if kind == "random" and regions == 4 and requests > 20:
        turns = [i % regions for i in range(requests)]
        assert order != turns


def test_dynamic_dispatch_beats_turns_in_advance():
    """The same work and regions, with selectors that the host gives instead of those that come back."""
    requests, regions = 16, 4
    work = [[1] * n for n in [12, 1, 1, 1] * 4]
    dynamic = predict(*_graph(Design(dispatch(requests, regions), wide(regions), dispatch_inputs(work, regions))))
    with Program("turns") as p:
        start = ops.input_stream("start", Selector(regions), (requests,))
        requested = ops.input_stream("work", NUMBER, (requests, ragged("length")))
        parts = ops.partition(requested, start, rank=1, name="give")
        data, _ = ops.eager_merge(regions_of(parts), name="completions")
        ops.linear_offchip_store(data.assume((requests,)), p.tensor("sums", (requests, 1), int32))
    turns = {"start": [{i % regions} for i in range(requests)], "work": work}
    static = predict(*_graph(Design(p, wide(regions), turns)))
    assert dynamic.cycles < static.cycles


def _graph(design: Design):
    return design.graph, design.hw


def halved(x, p: Program, count: int):
    return ops.map(fn.scale(0.5), x, name="half")


def shifted(x, p: Program, count: int):
    """A fork of what comes back, one branch of which needs a whole tile before it gives a column."""
    return ops.map(fn.sub(), x, ops.map(fn.row_max(), x, name="largest"), name="half")


def multiplied(x, p: Program, count: int):
    """A product wants its operand in another order than it leaves."""
    w = ops.linear_offchip_load(p.tensor("w", (2 * T, 2 * T), bf16), (2 * T, 2 * T), shape=(count,), stride=(0,))
    return ops.map(fn.cast(dtype="bf16"), ops.map(fn.matmul(), x, w, name="product"), name="half")


def rounds(count: int, tile=(2 * T, 2 * T), started: int = 1, body=halved) -> Program:
    """``started`` tiles, each halved (or what ``body`` does) again and again, ``count`` results in all: a loop of whole
    tiles."""
    rows, cols = tile
    with Program("rounds") as p:
        x, y = p.tensor("x", (started * rows, cols), bf16), p.tensor("y", (count * rows, cols), bf16)
        control = ops.input_stream("control", Selector(2), (count,))
        keep = ops.input_stream("keep", Selector(1), (count,))
        tiles = ops.linear_offchip_load(x, tile, shape=(started,), stride=(1,), name="load_x")
        again = ops.feedback(tiles.type, (ragged("again"),), name="again")
        either = ops.reassemble([tiles, again], control, rank=0, name="either").assume((count, 1))
        half = body(ops.flatten(either, 0, 1, name="flat").assume((count,)), p, count)
        ops.linear_offchip_store(half, y, name="store_y")
        (back,) = ops.partition(half, keep, rank=0, name="go_on")
        again.connect(back)
    return p


def rounds_inputs(count: int, started: int = 1) -> dict:
    return {"control": [{0}] * started + [{1}] * (count - started),
            "keep": [{0}] * (count - started) + [set()] * started}


def test_a_loop_of_tiles():
    """A tile of 2 x 2 physical ones in a loop that holds it; with links sized, four that follow each other."""
    for started, count in ((1, 3), (4, 8)):
        design = Design(rounds(count, started=started), HW, rounds_inputs(count, started))
        found = size_fifos(design)
        sized = Design(design.program, found.deadlock_free.apply(HW), design.inputs)
        run = agree(sized)
        x = random_tensors(design.program, 0)["x"].astype(np.float32).reshape(started, -1)
        for k, got in enumerate(run.tensors["y"].astype(np.float32).reshape(count, -1)):
            assert np.array_equal(got, x[k % started] * 0.5 ** (k // started + 1))
        assert bool(found.deadlock_free.depths) == (started == 4)
        for proof in found.deadlock_free.proof[-1:]:
            less = dataclasses.replace(HW, link_depths={**found.deadlock_free.depths, proof.link: proof.depth - 1})
            short = Design(design.program, less, design.inputs)
            with pytest.raises(DeadlockError, match="full"):
                run_rtl(short, random_tensors(design.program, 0), simulator="icarus", native=False, quiet_cycles=300)


@pytest.mark.parametrize("body", [shifted, multiplied])
def test_lowering_of_a_loop(body):
    count = 3
    design = Design(rounds(count, body=body), HW, rounds_inputs(count))
    found = size_fifos(design)
    run = agree(Design(design.program, found.deadlock_free.apply(HW), design.inputs))
    tensors = random_tensors(design.program, 0)
    x = tensors["x"]
    for got in run.tensors["y"].reshape(count, *x.shape):
        wide = x.astype(np.float32)
        want = wide - wide.max(axis=1, keepdims=True) if body is shifted else wide @ tensors["w"].astype(np.float32)
        assert np.allclose(got.astype(np.float32), want, rtol=2**-7, atol=2**-7)
        x = got


def test_a_loop_without_a_first_token_is_named_by_all():
    count = 4
    inputs = rounds_inputs(count) | {"control": [{1}] + [{0}] * 1 + [{1}] * (count - 2)}
    design = Design(rounds(count, tile=(T, T)), HW, inputs)
    tensors = random_tensors(design.program, 0)
    for lowered in (False, True):
        with pytest.raises(DeadlockError, match=r"feedback 'again' \(test_loops.py:\d+\): loop without an initial"):
            design.interpret(tensors, lowered=lowered)
    with pytest.raises(DeadlockError) as model:
        predict(design.graph, design.hw)
    with pytest.raises(DeadlockError) as rtl:
        run_rtl(design, tensors, simulator="icarus", native=False, quiet_cycles=300)
    assert str(rtl.value) == str(model.value)
    assert "  either reads from again (0/2, empty), waits for go_on" in str(rtl.value).splitlines()
    assert str(rtl.value).endswith("fix: the loop needs an initial token")
    with pytest.raises(DeadlockError, match="the loop needs an initial token"):
        size_fifos(design)


def test_a_loop_of_nothing():
    with Program("p") as p:
        again = ops.feedback(NUMBER, (ragged("n"),), name="again")
        again.connect(again)
    design = Design(p, HW)
    with pytest.raises(DeadlockError, match=r"feedback 'again' \(.*\): loop without an initial token: a feedback that"):
        design.graph.unit("again")


def test_links_of_a_loop_have_its_name():
    design = Design(rounds(3, tile=(T, T)), HW, rounds_inputs(3))
    link = design.graph.link("again")
    assert (link.stream, design.graph.units[link.destination[0]].name) == ("again", "either")
    assert "feedback" not in {unit.kind for unit in design.graph.units}
    # Fed back and stored as well: the fork's other link has the name of what is fed back.
    with Program("p") as p:
        start = ops.input_stream("start", NUMBER, (1,))
        again = ops.feedback(NUMBER, (ragged("n"),), name="again")
        control = ops.input_stream("control", Selector(2), (3,))
        either = ops.flatten(ops.reassemble([start, again], control, rank=0, name="either").assume((3, 1)), 0, 1)
        (back,) = ops.partition(either, ops.input_stream("keep", Selector(1), (3,)), rank=0, name="back")
        ops.linear_offchip_store(back, p.tensor("y", (3, 1), int32), name="store_y")
        again.connect(back)
    names = [link.name for link in Design(p, HW, {"control": [{0}] * 3, "keep": [{0}] * 3, "start": [1]}).graph.links]
    assert {"back", "again", "back__to__store_y"} <= set(names)
