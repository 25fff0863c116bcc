"""What the model reports, against sums done by hand."""

import signal
import time

import numpy as np
import pytest

from sim import engine
from sim.engine import run_graph
from sim.prediction import predict, warm_up
from step_hw.design import Design
from step_lang import Program, bf16, dynamic, fn, ops, scalar, u32
from step_lang.errors import DeadlockError, RtlError, ShapeMismatch
from step_lang.hwconfig import HardwareConfig
from step_lang.memory_config import MemoryConfig

T = 4
TILE = T * T * 2


def copy(tiles: int, **memory) -> Design:
    with Program("copy") as p:
        x = p.tensor("x", (T, tiles * T), bf16)
        y = p.tensor("y", (T, tiles * T), bf16)
        ops.linear_offchip_store(ops.linear_offchip_load(x, (T, T), name="load_x"), y, name="store_y")
    return Design(p, HardwareConfig(tile=T, memory=MemoryConfig(**memory)))


@pytest.mark.parametrize("assumed", [3, 4])
def test_what_is_assumed_of_a_shape_is_checked(assumed):
    with Program("assume") as p:
        counts = ops.input_stream("n", scalar(u32), (dynamic("N"),))
        each = ops.flat_map(fn.counter(), counts, name="each").assume((assumed,))
        ops.linear_offchip_store(ops.map(fn.add(), each, each), p.tensor("y", (8, 1), u32))
    design = Design(p, HardwareConfig(tile=2), {"n": [1, 2]})
    if assumed == 3:
        assert predict(design.graph, design.hw).offchip_write_bytes == 12
        return
    with pytest.raises(ShapeMismatch, match=r"unit 'each' \(each .*: stream 'each': 3 elements in the model vs 4 by"):
        predict(design.graph, design.hw)


def test_traffic_beats_and_stalls():
    design = copy(16)
    found = predict(design.graph, design.hw)
    assert (found.offchip_read_bytes, found.offchip_write_bytes, found.offchip_bytes) == (
        16 * TILE,
        16 * TILE,
        32 * TILE,
    )
    assert found.beats == {"load_x": 17}
    assert set(found.stalls) == {"load_x", "store_y", "hbm"}
    for counts in found.stalls.values():
        assert sum(counts.values()) == found.total_cycles
    assert found.utilisation == {} and found.peak_frames == {}
    assert found.as_json()["cycles"] == found.cycles


def test_latency_counts_once_and_interval_per_burst():
    """A slower path moves the end; a slower channel stretches what it serves: here 8 bursts a channel."""

    def cycles(**memory) -> int:
        design = copy(16, **memory)
        return predict(design.graph, design.hw).cycles

    assert cycles(latency=34) - cycles(latency=14) == 20
    assert cycles(interval=40) - cycles(interval=20) == pytest.approx(8 * 20, abs=20)
    assert cycles(startup=10) >= cycles()


def test_constants_of_a_calibration_are_added():
    design = copy(1)
    plain = predict(design.graph, design.hw)
    read = predict(design.graph, design.hw, {"hbm.read_overhead": 5, "hbm.write_overhead": 0})
    assert read.cycles - plain.cycles == 5


def test_a_trace_has_every_beat():
    design = copy(8)
    found = predict(design.graph, design.hw, trace=True)
    assert len(found.outcome.trace) == sum(found.beats.values()) == 9
    assert len(predict(design.graph, design.hw).outcome.trace) == 0


def fork_join() -> Design:
    with Program("fork_join") as p:
        x = p.tensor("x", (T, 8 * T), bf16)
        tiles = ops.linear_offchip_load(x, (T, T), shape=(1, 8), stride=(0, 1), name="load_x")
        back = ops.repeat(ops.accum(fn.max(), tiles, rank=1, name="fold"), 8, name="back")
        ops.linear_offchip_store(ops.map(fn.max(), tiles, back, name="join"), p.tensor("y", (T, 8 * T), bf16))
    return Design(p, HardwareConfig(tile=T))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_slices_of_cycles_make_one_run(size, monkeypatch):
    """A run that ends and one that hangs, whose last activity is cycles before a slice ends."""
    design, hangs = copy(8), fork_join()
    whole, hung = predict(design.graph, design.hw, trace=True), run_graph(hangs.graph, hangs.hw)
    monkeypatch.setattr(engine, "SLICE", size)
    sliced = predict(design.graph, design.hw, trace=True)
    assert sliced.as_json() | {"wall_seconds": 0} == whole.as_json() | {"wall_seconds": 0}
    assert np.array_equal(sliced.outcome.trace, whole.outcome.trace)
    again = run_graph(hangs.graph, hangs.hw)
    assert (hung.reason, hung.cycles) == (again.reason, again.cycles) and hung.reason == "deadlock"
    assert np.array_equal(hung.stat, again.stat)


def test_a_long_run_can_be_interrupted():
    """The compiled engine ran to the end, for minutes, before Python saw a Ctrl-C."""
    with Program("long") as p:
        x = p.tensor("x", (T, T), bf16)
        tiles = ops.repeat(ops.repeat(ops.linear_offchip_load(x, (T, T)), 1 << 20), 1 << 20)
        ops.linear_offchip_store(ops.accum(fn.last(), tiles, rank=3), p.tensor("y", (T, T), bf16))
    design = Design(p, HardwareConfig(tile=T))
    with pytest.raises(DeadlockError, match="stopped after 100 cycles"):
        predict(design.graph, design.hw, max_cycles=100)  # compiled by now
    began = time.monotonic()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            predict(design.graph, design.hw)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 30


def test_the_same_every_time():
    design = copy(8)
    first, second = (predict(design.graph, design.hw).as_json() for _ in range(2))
    for result in (first, second):
        result.pop("wall_seconds")
    assert first == second


def test_deadlock_and_cut_short():
    with Program("p") as p:
        x = p.tensor("x", (T, 8 * T), bf16)
        tiles = ops.linear_offchip_load(x, (T, T), shape=(1, 8), stride=(0, 1), name="load_x")
        largest = ops.accum(fn.max(), tiles, rank=1, name="fold")
        back = ops.repeat(largest, 8, name="back")
        ops.linear_offchip_store(ops.map(fn.max(), tiles, back, name="join"), p.tensor("y", (T, 8 * T), bf16))
    design = Design(p, HardwareConfig(tile=T))
    with pytest.raises(DeadlockError, match="fix: give load_x__to__join more than 2 beats"):
        predict(design.graph, design.hw)
    design = copy(8)
    with pytest.raises(DeadlockError, match="stopped after 10 cycles"):
        predict(design.graph, design.hw, max_cycles=10)


def test_a_units_error_names_it():
    design = copy(8)
    store = design.graph.unit("store_y")
    store.config = {**store.config, "limit": 3}
    with pytest.raises(RtlError, match=r"unit 'store_y' \(.*\) raises ADDRESS_RANGE in cycle \d+"):
        predict(design.graph, design.hw)


def test_warm_up_leaves_nothing_to_load():
    warm_up()
    assert warm_up() < 0.5
    design = copy(1)
    assert predict(design.graph, design.hw).wall_seconds < 0.5
