"""Tile fidelity means what the interpreter means: tokens, traffic and FLOPs, in the order in which it arbitrated."""

import re

import numpy as np
import pytest

from examples import attention, matmul, moe, ragged_softmax, simplified_moe, softmax, swiglu
from sim.tile import BeatMachine, RooflineMachine, predict
from sim.tile import engine as tile_engine
from sim.tile.engine import run_tiles
from sim.tile.graph import tile_graph
from sim.tile.mistakes import disagreement
from sim.tile.network import (
    BUFFER_BYTES,
    BUFFERS_LEFT,
    ERROR,
    ERROR_UNIT,
    GAP,
    GRANTED,
    MOST_BUFFERED,
    NODES_LEFT,
    READ,
    SLICED,
    WIDTH,
    WRITTEN,
)
from sim.tile.operators import UNKNOWN
from sim.tile.prediction import traced_streams
from step_lang import Program, Selector, bf16, dynamic, fn, interpret, ops, ragged, scalar, u32
from step_lang.errors import DeadlockError, HardwareTooSmall, RtlError, TensorError, UnknownFunction
from step_lang.hwconfig import HardwareConfig
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


def same_as_interpreted(program, streams, tensors=None):
    """What the model says and the interpreter, in its order of grants; all that both know is the same."""
    predicted = predict(program, None, streams)
    expected = interpret(program, tensors or {}, streams, arbitration=predicted.arbitration)
    tokens = traced_streams(predicted.run)
    for stream in program.streams:
        assert tokens[stream.name].stop.tolist() == expected.streams[stream.name].stop.tolist(), stream.name
        assert tokens[stream.name].empty.tolist() == expected.streams[stream.name].empty.tolist(), stream.name
    assert predicted.offchip_read_bytes == expected.offchip_read_bytes == predicted.costs.offchip_read_bytes
    assert predicted.offchip_write_bytes == expected.offchip_write_bytes == predicted.costs.offchip_write_bytes
    assert predicted.flops == expected.flops
    assert predicted.symbols == expected.symbols
    return predicted, expected


@pytest.mark.parametrize("name", PROGRAMS)
def test_example_programs(name):
    module, parameters = PROGRAMS[name]
    program = module.build(**parameters)
    streams = module.streams(program) if hasattr(module, "streams") else {}
    same_as_interpreted(program, streams, module.inputs(program))


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
    with pytest.raises(DeadlockError, match=r"from_experts reads from weigh\d.*empty") as told:
        predict(program, RooflineMachine(control_depth=2), moe.streams(program))
    assert re.search(r"fix: raise roofline\.control_depth, by which a link of '\w+' holds 2 elements$", str(told.value))


@pytest.mark.parametrize("depth", [2, 8])
def test_a_deadlock_s_fix_fixes_it(depth):
    with Program("fork_join") as p:
        chunks, _ = ops.reshape(ops.input_stream("a", scalar(u32), (20,)), chunk=5)
        sums = ops.repeat(ops.accum(fn.add(), chunks, rank=1), 1)
        ops.linear_offchip_store(ops.map(fn.sub(), chunks, ops.expand(sums, chunks, rank=1)),
                                 p.tensor("y", (20, 1), u32))
    machine, given = BeatMachine(HardwareConfig(tile=2, link_depth=depth)), {"a": list(range(20))}
    if depth == 8:
        assert predict(p, machine, given).cycles > 20
        return
    with pytest.raises(DeadlockError, match=r"fix: raise link\.depth, by which a link of 'reshape_0_data' holds 2 el"):
        predict(p, machine, given)


def test_values_for_no_input_stream():
    with pytest.raises(TensorError, match="input stream 'b': given vs the program's none"):
        predict(copy(), None, {"b": [1]})


def test_a_loop_without_a_token():
    with Program("loop") as p:
        back = ops.feedback(scalar(u32), (dynamic("n"),))
        twice = ops.map(fn.add(), back, back)
        back.connect(twice)
        ops.linear_offchip_store(twice, p.tensor("y", (2, 1), u32))
    with pytest.raises(DeadlockError, match=r"fix: the loop needs an initial token$"):
        predict(p)


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


def counted_references(way):
    """A buffer's references on a way on which their uses have to be counted; the result is stored."""
    with Program("references") as p:
        numbers = ops.input_stream("numbers", scalar(u32), (ragged("N"), ragged("R")))
        kept = ops.bufferize(numbers, rank=1, name="keep")
        if way == "repeated":
            read = [ops.streamify(each, repeat=2) for each in (ops.repeat(kept, 3), ops.repeat(ops.repeat(kept, 2), 2))]
        elif way == "copied":
            each = ops.input_stream("each", scalar(u32), (ragged("N"), ragged("E")))
            copies = ops.expand(ops.repeat(kept, 1), each, rank=1)
            read = [ops.streamify(copies, repeat=2), ops.streamify(copies, repeat=1)]
        elif way == "met":
            other = ops.bufferize(ops.map(fn.add(), numbers, numbers), rank=1, name="other")
            read = [ops.streamify(ops.eager_merge([kept, other])[0], repeat=1), ops.streamify(other, repeat=1)]
        elif way == "routed":
            selector = ops.input_stream("selector", Selector(2), (ragged("N"),))
            read = [ops.streamify(part, repeat=1) for part in ops.partition(kept, selector, rank=0)]
        else:   # a reference that only says that there is an element is no use
            copies = ops.expand(ops.repeat(kept, 1), ops.repeat(kept, 2), rank=1)
            read = [ops.streamify(kept, kept), ops.streamify(copies, repeat=1)]
        for k, stream in enumerate(read):
            ops.linear_offchip_store(stream, p.tensor(f"y{k}", (80, 1), u32))
    return p


@pytest.mark.parametrize("way", ["repeated", "copied", "met", "routed", "present"])
def test_uses_of_references(way):
    """Buffers live until their last use and no longer: at the end none does, and what was read was there."""
    numbers = [[1, 2, 3], [4], [], [5, 6, 7, 8], [9, 10]]
    streams = {"numbers": numbers} | {"copied": {"each": [[1, 2], [], [3], [4, 5, 6], [7]]},
                                      "routed": {"selector": [{0}, {1}, set(), {0, 1}, {0}]}}.get(way, {})
    predicted, _ = same_as_interpreted(counted_references(way), streams)
    net = predicted.run.net
    assert net.misc[BUFFERS_LEFT] == len(net.buffers) and net.misc[NODES_LEFT] == len(net.nodes)


def test_references_in_a_loop_are_refused():
    with Program("loop") as p:
        kept = ops.bufferize(ops.input_stream("numbers", scalar(u32), (3, 2)), rank=1, name="keep")
        loop = ops.feedback(kept.type, (ragged("n"),), name="loop")
        merged = ops.eager_merge([kept, loop], name="merge")[0].assume((4,))
        once, again = ops.partition(merged, ops.input_stream("selector", Selector(2), (4,)), rank=0)
        loop.connect(again)
        ops.linear_offchip_store(ops.streamify(once, repeat=1, name="read"), p.tensor("y", (6, 1), u32))
    with pytest.raises(UnknownFunction, match=r"references that pass feedback 'loop' vs through partition, expand, .*; "
                                              r"fix: hand references on by those only, or bufferize behind it"):
        predict(p, None, {"numbers": [[1, 2], [3, 4], [5, 6]], "selector": [{0}, {1}, {0}, {0}]})


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


def valid(name, *counts):
    """Tiles of 4 x 2 of which so many rows are valid."""
    with_rows = ops.linear_offchip_load(tensor(f"t{name}", 4, 2), (4, 2), shape=(len(counts),), stride=(0,))
    return ops.map(fn.set_offset(), with_rows, numbers(name, len(counts)))


def tensor(name, rows, cols):
    return Program.current().tensor(name, (rows, cols), bf16)


def joined(name, count):
    """Tiles of 2 x 2k."""
    return ops.accum(fn.concat_cols(), ops.random_offchip_load(numbers(name, count, ragged(f"k{name}")),
                                                               tensor(f"t{name}", 2, 2), (2, 2)), rank=1)


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
    (lambda: ops.map(fn.add(), valid("a", 3, 3), valid("b", 1, 2), name="op"), {"a": [3, 3], "b": [1, 2]},
     "an element of 3 x 2 with stop 0, beat 1 of 'map_0' vs an element of 2 x 2 with stop 0, beat 1 of 'map_1'"),
    (lambda: ops.accum(fn.add(), ops.promote(valid("a", 3, 2)), rank=1, name="op"), {"a": [3, 2]},
     "an element of 2 x 2 with stop 1, beat 1 of 'promote_0' vs a state of 3 x 2, as of the elements before it in its "
     "group"),
    (lambda: ops.scan(fn.add(), ops.promote(valid("a", 3, 2)), rank=1, name="op"), {"a": [3, 2]},
     "an element of 2 x 2 with stop 1, beat 1 of 'promote_0' vs a state of 3 x 2, as of the elements before it in its "
     "group"),
    (lambda: ops.map(fn.set_offset(), valid("a", 3), numbers("n", 1), name="op"), {"a": [3], "n": [4]},
     "4 rows, beat 0 of 'n' vs an element of 3 x 2 with stop 0, beat 0 of 'map_0'"),
    (lambda: ops.map(fn.append_row(capacity=4), valid("a", 3, 4), ops.linear_offchip_load(
        tensor("r", 1, 2), (1, 2), shape=(2,), stride=(0,)), name="op"), {"a": [3, 4]},
     "one row more than an element of 4 x 2 with stop 0, beat 1 of 'map_0' vs capacity 4"),
    (lambda: ops.map(fn.concat_rows(), joined("a", 1), joined("b", 1), name="op"), {"a": [[0, 0]], "b": [[0]]},
     "an element of 2 x 4 with stop 0, beat 0 of 'accum_0' vs an element of 2 x 2 with stop 0, beat 0 of 'accum_1'"),
    (lambda: ops.flat_map(fn.address_range(stride=3), ops.zip(numbers("a"), numbers("b")), name="op"),
     {"a": [2**32 - 4], "b": [3]}, "address 4294967298 vs 0..4294967295"),
    (lambda: ops.flat_map(fn.affine_addresses(shape=(2, 2), stride=(1, 2), scale=2, base=-1), numbers("a"), name="op"),
     {"a": [0]}, "address -1 vs 0..4294967295"),
    (lambda: ops.map(fn.selector_index(), selectors("s"), name="op"), {"s": [{0}, {0, 1}]},
     "beat 1 of 's' names streams {0, 1} vs exactly one"),
    (lambda: ops.map(fn.selector_index(), selectors("s"), name="op"), {"s": [{0}, set()]},
     "beat 1 of 's' names streams {} vs exactly one"),
]


@pytest.mark.parametrize(("make", "given", "told"), MISTAKES, ids=[
    "map", "beyond", "nothing", "chunks", "reshape", "rows", "state", "states", "more rows", "capacity", "across",
    "range", "affine", "two streams", "no stream"])
def test_streams_that_disagree_are_named(make, given, told):
    with Program("mistake") as p:
        make()
    run = run_tiles(tile_graph(p, RooflineMachine(), given))
    unit, code = int(run.net.misc[ERROR_UNIT]), int(run.net.misc[ERROR])
    assert run.graph.names[unit] == "op"
    assert disagreement(run, unit, code) == told


def test_tiles_joined_in_a_map():
    """Which no hardware does."""
    with Program("joined") as p:
        tiles = ops.linear_offchip_load(p.tensor("x", (4, 4), bf16), (2, 4), shape=(2,), stride=(1,))
        for name in ("concat_rows", "concat_cols"):
            pair = ops.map(fn.get(name), tiles, tiles)
            ops.linear_offchip_store(pair, p.tensor(f"y_{name}", (8, 8), bf16))
    assert predict(p, BeatMachine(HardwareConfig(tile=2))).offchip_write_bytes == 4 * 2 * 4 * 2 * 2


def test_a_count_of_rows_that_nobody_knows():
    with Program("unknown") as p:
        counts = ops.flatten(ops.linear_offchip_load(p.tensor("n", (1, 1), u32), (1, 1)), 0, 1)
        tiles = ops.linear_offchip_load(p.tensor("t", (4, 2), bf16), (4, 2), shape=(1,), stride=(0,))
        ops.map(fn.set_offset(), tiles, counts, name="op")
    run = run_tiles(tile_graph(p, RooflineMachine()))
    assert run.net.misc[ERROR] == UNKNOWN and run.graph.names[int(run.net.misc[ERROR_UNIT])] == "op"


def test_a_buffer_that_its_scratchpad_does_not_hold():
    with Program("large") as p:
        buffers = ops.bufferize(ops.input_stream("a", scalar(u32), (2, ragged("r"))), rank=1)
        ops.linear_offchip_store(ops.streamify(buffers, repeat=2), p.tensor("y", (16, 1), u32))
    machine = BeatMachine(HardwareConfig(tile=2, scratchpad_frames=4, page_frames=2))
    assert predict(p, machine, {"a": [[1], [2, 3, 4, 5]]}).cycles > 0
    with pytest.raises(RtlError, match="beat 5 of 'a' no longer fits into vs its scratchpad's 4 tiles; fix"):
        predict(p, machine, {"a": [[1], [2, 3, 4, 5, 6]]})


def test_more_dimensions_than_a_stop_can_end():
    with Program("deep") as p:
        stream = ops.input_stream("a", scalar(u32), (1,))
        for _ in range(16):
            stream = ops.repeat(stream, 1)
        ops.linear_offchip_store(stream, p.tensor("y", (1, 1), u32))
    with pytest.raises(HardwareTooSmall, match="stream 'repeat_15': rank 16 vs at most 15; fix: flatten"):
        predict(p, None, {"a": [0]})


def test_a_row_repeats_for_as_many_rows_as_there_are():
    """None of them, where there is none."""
    with Program("rows") as p:
        row = ops.linear_offchip_load(tensor("r", 1, 2), (1, 2), shape=(3,), stride=(0,))
        tiles = valid("n", 0, 1, 3)
        for i, pair in enumerate(((row, tiles), (tiles, row))):
            rows = ops.flat_map(fn.split_rows(rows=1), ops.map(fn.sub(), *pair, name=f"op{i}"))
            ops.linear_offchip_store(rows, tensor(f"y{i}", 4, 2))
    made = {"r": np.ones((1, 2), dtype=bf16.numpy), "tn": np.ones((4, 2), dtype=bf16.numpy)}
    predicted, expected = same_as_interpreted(p, {"n": [0, 1, 3]}, made)
    tokens = traced_streams(predicted.run)
    for name in ("op0", "op1"):
        assert [len(x) for x in tokens[name].data] == [len(x) for x in expected.streams[name].data] == [0, 1, 3]
