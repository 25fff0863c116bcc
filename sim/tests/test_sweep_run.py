"""Points on workers: rows, the store, refused points, and what ends a sweep early."""

import dataclasses
import socket
import time
from pathlib import Path

import pytest

from sim.prediction import predict
from sim.sweep import store as store_module
from sim.sweep.cluster import connect, watched
from sim.sweep.evaluate import NUMBERS, Case, evaluate, numbers_of, prepare
from sim.sweep.pareto import objectives_of
from sim.sweep.run import run
from sim.sweep.store import Store
from sim.sweep.table import rows_of, table_of_rows, write_csv, write_parquet
from sim.sweep.work import Outcome, work
from sim.tests.sweep_cases import HW, copy_program, tasks_of
from sim.tile import RooflineMachine
from step_hw.design import Design
from step_lang import metrics
from step_lang.errors import BadParameter, BuildError, SweepError


@pytest.fixture(scope="module")
def client():
    with connect(2, processes=False) as client:
        yield client


def test_numbers_are_the_models():
    program = copy_program(3, 2)
    found, design = evaluate(Case(program, HW)), Design(program, HW)
    expected = predict(design.graph, HW)
    assert list(found) == list(NUMBERS)
    assert found["cycles"] == expected.cycles and found["total_cycles"] == expected.total_cycles
    assert found["offchip_read_bytes"] == found["offchip_write_bytes"] == 3 * 2 * 32
    assert found["traffic_exact"] and found["onchip_bytes"] == 4 * 32 and found["flops"] == 0
    with pytest.raises(BadParameter, match="'none' vs one of beat, tile"):
        evaluate(Case(program, HW), "none")


def test_sizes_that_the_run_tells():
    """Costs of a dynamic program: as with what its tensors hold, in the order in which the model merges."""
    from examples import moe

    program = moe.build(batch=8, experts=4, hidden=8, intermediate=16, tile_f=8, regions=2)
    streams, hw = moe.streams(program), dataclasses.replace(HW, link_depth=64)
    found, design = evaluate(Case(program, hw, streams)), Design(program, hw, streams)
    result = design.interpret(moe.inputs(program), lowered=False, arbitration=predict(design.graph, hw).arbitration)
    costs = metrics(program).substitute(result.symbols)
    assert found["onchip_bytes"] == int(costs.onchip_bytes) and found["flops"] == int(costs.flops)
    assert found["offchip_read_bytes"] == result.offchip_read_bytes and found["traffic_exact"]
    assert 0 < found["compute_utilisation"] < 1 and found["peak_frames"] > 0
    assert found["peak_bytes"] <= found["peak_frames"] * 4 * 4 * 4


def test_tile_fidelity():
    from examples import swiglu

    program = swiglu.build(batch=16, hidden=16, intermediate=32, tile_b=8, tile_f=16)
    beat, tile = (evaluate(Case(program, HW), fidelity) for fidelity in ("beat", "tile"))
    assert list(beat) == list(NUMBERS) and tuple(tile) == numbers_of("tile") and "peak_frames" not in tile
    with pytest.raises(BadParameter, match="objective: 'peak_frames' vs one of cycles"):
        objectives_of("peak_frames", "tile")
    [task] = tasks_of(Path("."), (1,))
    [row] = rows_of([task.point], [Outcome(0, tile, None)], objectives_of("cycles"), numbers_of("tile"))
    assert "peak_frames" not in row and "peak_frames" not in table_of_rows([row]).column_names
    for name in ("offchip_read_bytes", "offchip_write_bytes", "traffic_exact", "onchip_bytes", "flops"):
        assert tile[name] == beat[name], name
    assert abs(tile["cycles"] - beat["cycles"]) <= 0.2 * beat["cycles"]
    assert tile["cycles"] * tile["compute_utilisation"] == pytest.approx(beat["cycles"] * beat["compute_utilisation"],
                                                                         rel=1e-3)
    roofline = evaluate(Case(program, RooflineMachine(compute_bw=64)), "tile")
    assert 0 < roofline["compute_utilisation"] <= 1 and roofline["offchip_read_bytes"] == beat["offchip_read_bytes"]
    assert roofline["cycles"] > evaluate(Case(program, RooflineMachine(compute_bw=512)), "tile")["cycles"]
    with pytest.raises(BadParameter, match="roofline machine vs a hardware"):
        evaluate(Case(program, RooflineMachine()), "beat")
    keys = [prepare(Case(program, hw), fidelity).content for fidelity in ("beat", "tile")
            for hw in (HW, dataclasses.replace(HW, link_depth=8))]
    again = swiglu.build(batch=16, hidden=16, intermediate=32, tile_b=8, tile_f=16)
    other = swiglu.build(batch=16, hidden=16, intermediate=32, tile_b=4, tile_f=16)
    assert len(set(keys)) == 4 and prepare(Case(again, HW), "tile").content == keys[2]
    assert prepare(Case(other, HW), "tile").content != keys[2]


def test_rows_come_in_order_and_from_the_store_next_time(client, tmp_path):
    tasks, store, seen = tasks_of(tmp_path, (3, 1, 13, 2), (2, 9)), Store(tmp_path), []
    first = run(client, tasks, store, seen.append)
    assert [outcome.index for outcome in first] == list(range(8)) and sorted(o.index for o in seen) == list(range(8))
    assert [outcome.error is None for outcome in first] == [True] * 4 + [False] * 2 + [True] * 2
    assert "13 vs a number that brings luck" in first[4].error and not first[4].key
    for task, outcome in zip(tasks, first):
        if outcome.error is None:
            direct = evaluate(Case(task.builder(task.point.parameters)[0], task.hw))
            assert {**direct, "wall_seconds": 0} == {**outcome.numbers, "wall_seconds": 0}
    second = run(client, tasks, store, seen.append)
    assert [o.cached for o in second] == [True] * 4 + [False] * 2 + [True] * 2
    assert [o.numbers for o in second] == [o.numbers for o in first]


def test_only_the_rest_is_evaluated(client, tmp_path):
    tasks, store = tasks_of(tmp_path, (1, 2, 3, 4)), Store(tmp_path)
    run(client, tasks[1:3], store, lambda _: None)
    assert [o.cached for o in run(client, tasks, store, lambda _: None)] == [False, True, True, False]


def test_a_deadlock_is_a_row_and_is_kept(tmp_path):
    from step_hw.tests.command import FORK_JOIN

    scope: dict = {}
    exec(FORK_JOIN, scope)
    [task] = tasks_of(tmp_path, (1,))
    task = dataclasses.replace(task, builder=lambda parameters: (scope["build"](), {}))
    first, second = work(task), work(task)
    assert first.error.startswith("deadlock") and not first.numbers and not first.cached
    assert second.cached and second.error == first.error


def test_a_worker_of_another_version_refuses(client, tmp_path):
    tasks = [dataclasses.replace(task, model="older") for task in tasks_of(tmp_path, (1, 2))]
    with pytest.raises(SweepError, match="another version of step-hw"):
        run(client, tasks, Store(tmp_path), lambda _: None)


def test_full_disk_keeps_what_is_finished(client, tmp_path, monkeypatch):
    tasks, store, seen = tasks_of(tmp_path, (1, 2, 3, 4, 5)), Store(tmp_path), []
    run(client, tasks[:2], store, seen.append)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(store_module.tempfile, "mkstemp", full)
        with pytest.raises(BuildError, match="No space left on device vs room"):
            run(client, tasks, store, seen.append)
    assert [o.cached for o in run(client, tasks, store, seen.append)][:2] == [True, True]


def test_interrupted_between_points(client, tmp_path):
    tasks, store, seen = tasks_of(tmp_path, tuple(range(1, 13))), Store(tmp_path), []

    def stop(outcome):
        seen.append(outcome)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(client, tasks, store, stop)
    again = run(client, tasks, store, lambda _: None)
    assert all(again[o.index].cached for o in seen)


def test_an_unreachable_scheduler_is_told_soon(monkeypatch):
    with socket.socket() as taken:  # a port that nobody listens on
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setattr("sim.sweep.cluster.CONNECT_SECONDS", 1)
        began = time.monotonic()
        with pytest.raises(SweepError, match=rf"scheduler {address}: .* vs a Dask scheduler that answers; fix: start"):
            with connect(1, scheduler=address):
                pass
        assert time.monotonic() - began < 20
    with pytest.raises(SweepError, match="scheduler nonsense:"):
        with connect(1, scheduler="nonsense:://"):
            pass


def test_tables(tmp_path):
    from pyarrow import parquet

    tasks = tasks_of(tmp_path, (1, 13, 2))
    outcomes = [work(task) for task in tasks]
    rows = rows_of([task.point for task in tasks], list(reversed(outcomes)), objectives_of("cycles,onchip_bytes"))
    assert [row["rows"] for row in rows] == [1, 13, 2] and [row["pareto"] for row in rows] == [True, False, False]
    assert rows[1]["cycles"] is None and "13 vs" in rows[1]["error"]
    for i in range(2):
        write_parquet(rows, tmp_path / f"{i}.parquet")
        write_csv(rows, tmp_path / f"{i}.csv")
    for kind in ("parquet", "csv"):
        assert (tmp_path / f"0.{kind}").read_bytes() == (tmp_path / f"1.{kind}").read_bytes()
    assert parquet.read_table(tmp_path / "0.parquet").to_pylist() == rows
    assert (tmp_path / "0.csv").read_text().splitlines()[0].startswith('"rows","memory.interval","cycles"')


def test_columns_of_mixed_values_and_taken_names():
    from sim.sweep.points import Point

    points = [Point({"cycles": 1, "a": 1, "b": True}), Point({"cycles": 2, "a": 2.5, "c": "x"}), Point({"b": 7})]
    outcomes = [Outcome(i, {}, "refused") for i in range(3)]
    table = table_of_rows(rows_of(points, outcomes, objectives_of("cycles")))
    assert table.column("set.cycles").to_pylist() == [1, 2, None] and table.column("a").to_pylist() == [1.0, 2.5, None]
    assert table.column("b").to_pylist() == ["True", None, "7"] and table.column("cycles").null_count == 3


class Faulty:
    """A builder in which one point raises what nobody foresaw."""

    def __call__(self, parameters):
        if parameters["rows"] == 2:
            raise ZeroDivisionError("no\nrows")
        return copy_program(**parameters), {}


def test_a_fault_is_its_points_outcome(client, tmp_path):
    """The others go on; it is not kept, so that it is tried again."""
    tasks = [dataclasses.replace(task, builder=Faulty()) for task in tasks_of(tmp_path, (1, 2, 3))]
    outcomes = run(client, tasks, Store(tmp_path), lambda outcome: None)
    assert [outcome.failed for outcome in outcomes] == [False, True, False]
    assert outcomes[1].error.startswith("ZeroDivisionError: no rows (test_sweep_run.py:") and not outcomes[1].key
    assert outcomes[0].error is outcomes[2].error is None
    with pytest.raises(SweepError, match="another version"):  # is no point's
        work(dataclasses.replace(tasks[0], model="older"))


def test_workers_that_do_not_come(tmp_path):
    from distributed import Client, LocalCluster

    told: list[str] = []
    cluster = LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0")
    with cluster, Client(cluster) as alone, watched(alone, told.append, 0.1, 0.3) as watch:
        with pytest.raises(SweepError, match=r"none for 0.3 s vs at least one; fix: .*--wait"):
            run(alone, tasks_of(tmp_path, (1,)), Store(tmp_path), lambda outcome: None, watch.check)
    assert told == ["there are no workers: waiting for them, at most 0.3 s"]


def _not_here():
    raise ModuleNotFoundError("No module named 'step_hw'")


class Unreadable:
    """A builder that nobody but this process can read."""

    def __reduce__(self):
        return _not_here, ()


def test_a_scheduler_without_step_hw(client, tmp_path):
    tasks = [dataclasses.replace(task, builder=Unreadable()) for task in tasks_of(tmp_path, (1,))]
    with pytest.raises(SweepError, match=r"cannot read the points.* vs an installed step-hw; fix: start"):
        run(client, tasks, Store(tmp_path), lambda outcome: None)
