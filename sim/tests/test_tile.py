"""Tile fidelity means what the interpreter means: tokens, traffic and FLOPs, in the order in which it arbitrated."""

import numpy as np
import pytest

from examples import attention, matmul, moe, ragged_softmax, simplified_moe, softmax, swiglu
from sim.tile import RooflineMachine, predict
from sim.tile import engine as tile_engine
from sim.tile.engine import run_tiles
from sim.tile.graph import tile_graph
from sim.tile.mistakes import disagreement
from sim.tile.network import BUFFER_BYTES, ERROR, ERROR_UNIT, GAP, GRANTED, MOST_BUFFERED, READ, SLICED, WIDTH, WRITTEN
from sim.tile.prediction import traced_streams
from step_lang import Program, Selector, bf16, dynamic, fn, interpret, ops, scalar, u32
from step_lang.errors import DeadlockError, RtlError, TensorError, UnknownFunction
from step_lang.interpreter import Context
from step_lang.numerics import Numerics
from step_lang.worked_examples import EXAMPLES

PROGRAMS = {
    "matmul": (matmul, {}), "softmax": (softmax, {}),
    "swiglu": (swiglu, {"batch": 64, "hidden": 32, "intermediate": 128}),
    "ragged_softmax": (ragged_softmax, {}), "simplified_moe": (simplified_moe, {}),
    "moe_static": (moe, {"tiling": "static", "batch": 16, "hidden": 16, "intermediate": 128}),
    "moe_dynamic": (moe, {"tiling": "dynamic", "batch": 16, "hidden": 16, "intermediate": 128}),
    "moe_regions": (moe, {"tiling": "static", "batch": 16, "hidden": 16, "intermediate": 128, "regions": 2}),
    **{f"attention_{schedule}": (attention, {"schedule": schedule, "batch": 8, "regions": 3, "capacity": 128})
       for schedule in attention.SCHEDULES},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_example_programs(name):
    module, parameters = PROGRAMS[name]
    program = module.build(**parameters)
    streams = module.streams(program) if hasattr(module, "streams") else {}
    predicted = predict(program, None, streams)
    expected = interpret(program, module.inputs(program), streams, arbitration=predicted.arbitration)
    tokens = traced_streams(predicted.run)
    for stream in program.streams:
        assert tokens[stream.name].stop.tolist() == expected.streams[stream.name].stop.tolist(), stream.name
        assert tokens[stream.name].empty.tolist() == expected.streams[stream.name].empty.tolist(), stream.name
    assert predicted.offchip_read_bytes == expected.offchip_read_bytes == predicted.costs.offchip_read_bytes
    assert predicted.offchip_write_bytes == expected.offchip_write_bytes == predicted.costs.offchip_write_bytes
    assert predicted.flops == expected.flops
    assert predicted.symbols == expected.symbols


WORKED = [example for example in EXAMPLES if not example.name.startswith("accum_inner")]
"""Inner dimensions of a fold are lowering's own."""


@pytest.mark.parametrize("example", WORKED, ids=lambda example: example.name)
def test_worked_example(example):
    program, operator = example.build()
    given = {f"x{i}": tokens for i, tokens in enumerate(example.input_tokens())}
    run = run_tiles(tile_graph(program, RooflineMachine(), given))
    assert run.net.misc[ERROR] == 0
    grants = {operator.name: run.net.grants[:run.net.misc[GRANTED], 2].tolist()} if operator.arbitrates else {}
    ctx = Context(Numerics(), {}, given, grants)
    values = {}
    for op in program.topological():
        values.update(zip([s.name for s in op.outputs], op.interpret(ctx, [values[s.name] for s in op.inputs])))
    tokens = traced_streams(run)
    for stream in operator.outputs:
        assert tokens[stream.name].stop.tolist() == values[stream.name].stop.tolist()
        assert tokens[stream.name].empty.tolist() == values[stream.name].empty.tolist()


def copy(channels=32):
    """A program that copies 64 tiles of 64 x 64, 8 KB each."""
    with Program("copy") as p:
        x, y = (p.tensor(name, (64 * 64, 64), bf16) for name in "xy")
        ops.linear_offchip_store(ops.linear_offchip_load(x, (64, 64), name="load"), y, name="store")
    return p


def test_the_memory_is_shared():
    """1 MB at 1024 B/cycle: 1,024 cycles, and the latency of the first tile: 14 cycles and its own 8."""
    predicted = predict(copy())
    assert 1024 <= predicted.cycles <= 1024 + 14 + 2 * 8 + 4
    assert predicted.memory_utilisation > 0.95


@pytest.mark.parametrize("size", [1, 5])
def test_slices_of_events_make_one_run(size, monkeypatch):
    """Between slices Python sees a Ctrl-C."""
    whole = predict(copy())
    monkeypatch.setattr(tile_engine, "_SLICE", size)
    sliced = predict(copy())
    assert (sliced.cycles, sliced.memory_utilisation) == (whole.cycles, whole.memory_utilisation)
    with pytest.raises(DeadlockError, match="stopped after 7 events"):
        run_tiles(tile_graph(copy(), RooflineMachine()), most_events=7)


def test_roofline_of_an_operator():
    """16 products of 64 x 64 x 64 at 64 FLOPs/cycle take 8,192 cycles each; all else is shorter."""
    with Program("product") as p:
        a, b = (p.tensor(name, (16 * 64, 64), bf16) for name in "ab")
        y = p.tensor("y", (16 * 64, 64), bf16)
        left, right = (ops.linear_offchip_load(t, (64, 64), name=f"load_{t.name}") for t in (a, b))
        product = ops.map(fn.matmul(), left, right, compute_bw=64, name="product")
        ops.linear_offchip_store(ops.map(fn.cast(bf16), product, name="cast", compute_bw=4096), y, name="store")
    predicted = predict(p)
    assert predicted.busy["product"] == 16 * 8192 + 1  # done
    assert 16 * 8192 < predicted.cycles < 16 * 8192 + 100
    assert predicted.flops == 16 * (2 * 64**3 + 64 * 64)


def test_deadlock_is_told_as_a_cycle():
    program = moe.build(batch=16, hidden=16, intermediate=128, tiling="static")
    with pytest.raises(DeadlockError, match=r"from_experts reads from weigh\d.*empty"):
        predict(program, RooflineMachine(control_depth=2), moe.streams(program))


def test_steering_by_contents_is_refused():
    with Program("indirect") as p:
        places, x, y = p.tensor("places", (8, 1), u32), p.tensor("x", (8, 8), bf16), p.tensor("y", (8, 8), bf16)
        address = ops.linear_offchip_load(places, (1, 1), name="load_places")
        ops.linear_offchip_store(ops.random_offchip_load(address, x, (1, 8), name="gather"), y, name="store")
    with pytest.raises(UnknownFunction, match=r"gather.*steers it"):
        predict(p)


def test_bad_selector_and_address():
    with Program("gather") as p:
        x, y = p.tensor("x", (8, 8), bf16), p.tensor("y", (8, 8), bf16)
        address = ops.input_stream("places", scalar(u32), (4,))
        ops.linear_offchip_store(ops.random_offchip_load(address, x, (1, 8), name="gather"), y, name="store")
    with pytest.raises(RtlError, match=r"gather.*: address 9 vs 0\.\.7, the tiles of tensor 'x'; fix: keep"):
        predict(p, None, {"places": [0, 1, 9, 2]})
    with Program("many") as p:
        x, y = p.tensor("x", (8, 8), bf16), p.tensor("y", (4, 8), bf16)
        address = ops.input_stream("places", scalar(u32), (dynamic("D"),))
        ops.linear_offchip_store(ops.random_offchip_load(address, x, (1, 8), name="gather"), y, name="store")
    with pytest.raises(RtlError, match=r"store.*: tile 4 of tensor 'y' is stored vs its tiles 0\.\.3; fix: store no"):
        predict(p, None, {"places": [0, 1, 2, 3, 4]})
    with pytest.raises(TensorError, match="places"):
        predict(p)


def test_selectors_of_128_bits():
    """Element i to output i, and back in order."""
    with Program("wide") as p:
        x, y = p.tensor("x", (128, 8), bf16), p.tensor("y", (128, 8), bf16)
        route = ops.input_stream("route", Selector(128), (128,))
        rows = ops.linear_offchip_load(x, (1, 8), shape=(128,), stride=(1,), name="load")
        parts = ops.partition(rows, route, rank=0, name="spread")
        back = ops.reassemble(parts, route, rank=0, name="gather").assume((128, 1))
        ops.linear_offchip_store(back, y, name="store")
    predicted = predict(p, None, {"route": [{i} for i in range(128)]})
    assert predicted.offchip_write_bytes == 128 * 16
    assert predicted.arbitration["gather"] == list(range(128))


def test_same_input_same_result():
    program = moe.build(batch=16, hidden=16, intermediate=128, tiling="dynamic", regions=2)
    first, second = (predict(program, None, moe.streams(program)) for _ in range(2))
    assert first.cycles == second.cycles and first.arbitration == second.arbitration
    assert np.array_equal(first.run.net.busy, second.run.net.busy)


def test_what_happens_when_is_recorded():
    """Slices hold all work, curves all bytes and the fullest the buffers get; recording changes nothing else."""
    with Program("passes") as program:
        x, y = program.tensor("x", (64, 16), bf16), program.tensor("y", (128, 16), bf16)
        buffers = ops.bufferize(ops.linear_offchip_load(x, (16, 16), shape=(2, 2), stride=(2, 1)), rank=1)
        ops.linear_offchip_store(ops.map(fn.exp(), ops.streamify(buffers, repeat=2)), y)
    plain, recorded = predict(program), predict(program, record=True)
    assert plain.total_cycles == recorded.total_cycles and plain.busy == recorded.busy
    net = recorded.run.net
    assert len(plain.run.net.slices) == plain.run.net.curves.shape[1] == 0
    slices = net.slices[:net.misc[SLICED]]
    work = np.bincount(slices[:, 0], slices[:, 3], minlength=len(net.busy))
    assert work.tolist() == net.busy.tolist()
    fits = slices[:, 3] <= slices[:, 2] - slices[:, 1]   # a load of this machine gives all tiles that have come at once
    assert fits[slices[:, 0] > 0].all() and recorded.run.graph.kinds[0] == "linear_offchip_load"
    assert slices[:, 2].max() <= recorded.total_cycles
    assert net.curves[READ].sum() == recorded.offchip_read_bytes
    assert net.curves[WRITTEN].sum() == recorded.offchip_write_bytes
    assert net.curves[MOST_BUFFERED].max() == sum(recorded.peak_buffer_bytes.values()) == 2 * 2 * 16 * 16 * 2
    assert net.misc[BUFFER_BYTES] == 0   # all are freed in the end
    assert (net.stalls.sum(axis=1) + net.busy)[[kind == "map" for kind in recorded.run.graph.kinds]].max() \
        <= recorded.total_cycles


def test_a_recording_that_gets_full_is_merged():
    program = swiglu.build(batch=64, hidden=32, intermediate=2048)
    graph = tile_graph(program, RooflineMachine())
    whole = run_tiles(graph, record=True).net
    graph.most_slices, graph.buckets = 60, 16
    small = run_tiles(graph, record=True).net
    assert small.misc[GAP] >= 0 and small.misc[SLICED] < whole.misc[SLICED]
    for net in (whole, small):
        work = np.bincount(net.slices[:net.misc[SLICED], 0], net.slices[:net.misc[SLICED], 3], minlength=len(net.busy))
        assert work.tolist() == net.busy.tolist()
    assert small.curves[[READ, WRITTEN]].sum() == whole.curves[[READ, WRITTEN]].sum() > 0
    assert small.curves[MOST_BUFFERED].max() == whole.curves[MOST_BUFFERED].max()
    assert small.misc[WIDTH] * 16 >= whole.misc[WIDTH] * (np.flatnonzero(whole.curves[READ])[-1])


def selectors(name, n=2, count=2):
    return ops.input_stream(name, Selector(n), (count,))


def numbers(name, *shape):
    return ops.input_stream(name, scalar(u32), shape or (dynamic("D"),))


def sums():
    n = dynamic("N")
    return ops.map(fn.add(), numbers("a", n), numbers("b", n), name="op")


MISTAKES = [
    (sums,
     {"a": [1, 2], "b": [1, 2, 3]},
     "the end of 'a', after 2 beats vs an element with stop 0, beat 2 of 'b'"),
    (lambda: ops.partition(numbers("a", 2), selectors("s", 3), 0, 2, name="op"), {"a": [1, 2], "s": [{0}, {2}]},
     "beat 1 of 's' names stream 2 vs streams 0..1"),
    (lambda: ops.reassemble([numbers(x, 1) for x in "ab"], selectors("s"), 0, hollow=False, name="op"),
     {"a": [1], "b": [1], "s": [{0}, set()]}, "beat 1 of 's' names no stream vs at least one"),
    (lambda: ops.reassemble([numbers(x, 1) for x in "ab"], selectors("s"), 0, name="op"),
     {"a": [1], "b": [1], "s": [{1}, {1}]},
     "the end of 'b', after 1 beats vs an element with stop 0, beat 1 of 's' (chunks of rank 0)"),
    (lambda: ops.reshape(numbers("a"), 2, name="op"), {"a": [1, 2, 3]},
     "dimension 0 of 'a' ends after 1 of a chunk vs chunk 2"),
]


@pytest.mark.parametrize(("make", "given", "told"), MISTAKES, ids=["map", "beyond", "nothing", "chunks", "reshape"])
def test_streams_that_disagree_are_named(make, given, told):
    with Program("mistake") as p:
        make()
    run = run_tiles(tile_graph(p, RooflineMachine(), given))
    unit, code = int(run.net.misc[ERROR_UNIT]), int(run.net.misc[ERROR])
    assert run.graph.names[unit] == "op"
    assert disagreement(run, unit, code) == told
