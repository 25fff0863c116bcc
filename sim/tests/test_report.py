"""Records of runs, whoever ran them: what they hold is what the run did; and the timeline made of them."""

import json
from collections import defaultdict
from typing import Any

import jsonschema
import numpy as np
import pytest

from examples import swiglu
from sim.prediction import predict
from sim.report import Run, run_of_beats, run_of_tiles, run_of_transfers, summary, trace_json
from sim.report.record import POINTS
from sim.tile import BeatMachine, RooflineMachine
from sim.tile import predict as predict_tiles
from step_hw.design import Design
from step_lang import metrics
from step_lang.hwconfig import HardwareConfig

HW = HardwareConfig(tile=4)
SIZES: dict[str, Any] = {"batch": 16, "hidden": 32, "intermediate": 32, "tile_b": 8, "tile_f": 8}


@pytest.fixture(scope="module")
def design() -> Design:
    return Design(swiglu.build(**SIZES), HW)


@pytest.fixture(scope="module")
def prediction(design):
    return predict(design.graph, HW, trace=True)


@pytest.fixture(scope="module")
def beats(design, prediction) -> Run:
    return run_of_beats(design.lowered, design.graph, HW, metrics(design.program), {}, prediction)


def transfers(design, prediction, **changes) -> Run:
    """The record that RTL would give, had it moved the model's beats."""
    numbers = {"cycles": prediction.cycles, "start_cycle": 40, "total_cycles": prediction.total_cycles + 40,
               "offchip_read_bytes": prediction.offchip_read_bytes, "peak_frames": prediction.peak_frames,
               "offchip_write_bytes": prediction.offchip_write_bytes} | changes
    first = int(prediction.outcome.trace[0, 0])
    moved = prediction.outcome.trace + np.array([40 - _begin(design, prediction), 0, 0])
    assert moved[0, 0] >= first
    return run_of_transfers(design.lowered, design.graph, HW, metrics(design.program), {}, moved,
                            np.zeros(len(design.graph.links), dtype=np.int64), numbers, "made", prediction)


def _begin(design, prediction) -> int:
    return run_of_beats(design.lowered, design.graph, HW, metrics(design.program), {}, prediction).begin


@pytest.fixture(scope="module", params=["beat", "rtl", "tile", "paper"])
def run(request, design, prediction, beats) -> Run:
    if request.param == "beat":
        return beats
    if request.param == "rtl":
        return transfers(design, prediction)
    machine = BeatMachine(HW) if request.param == "tile" else RooflineMachine()
    return run_of_tiles(predict_tiles(swiglu.build(**SIZES), machine, record=True))


def curve(run: Run, name: str):
    return next(found for found in run.curves if found.name == name)


def test_cycles_are_all_accounted_for(run):
    assert len(run.units) > 10
    for unit in run.units:
        assert sum(unit.states.values()) == run.total_cycles, unit
        assert min(unit.states.values()) >= 0, unit
    assert 0 <= run.begin and run.begin + run.cycles <= run.total_cycles + 1


def test_traffic_over_time_is_the_traffic(run):
    costs = metrics(run.program)
    assert run.offchip_bytes == int(costs.offchip_bytes) == sum(unit.offchip_bytes for unit in run.units)
    for name, nbytes in (("off-chip read", run.read_bytes), ("off-chip write", run.write_bytes)):
        found = curve(run, name)
        assert len(found.values) <= POINTS and len(found.values) * found.width >= run.total_cycles
        assert found.values.sum() * found.width == pytest.approx(nbytes, abs=1e-6)


def test_operators_and_units_name_one_another(run):
    names = {op.name for op in run.program.operators}
    assert {unit.operator for unit in run.units} - {""} == names
    assert [cost.name for cost in run.costs] == [op.name for op in run.program.operators]
    for link in run.links:
        assert link.source is None or run.units[link.source] is not None
        assert link.destination is None or 0 <= link.destination < len(run.units)
    joined = {(run.units[link.source].name, run.units[link.destination].name) for link in run.links}
    assert ("gate_cast", "gate_silu") in joined or ("gate_cast", "gate_silu_silu") in joined


def test_slices_are_in_order_and_inside_the_run(run):
    keys = run.slices[:, 0] * (run.total_cycles + 1) + run.slices[:, 1]
    assert (np.diff(keys) > 0).all()
    assert (run.slices[:, 2] > run.slices[:, 1]).all()
    assert run.slices[:, 2].max() <= run.total_cycles + 8 and run.slices[:, 1].min() >= 0
    worked = {run.units[u].name for u in run.slices[:, 0]}
    assert {"gate_matmul", "down_matmul", "store_y"} <= worked


def test_work_is_what_was_taken_and_how_long_each_takes(beats, prediction):
    """4 x 4 x 4 a cycle: a product of tiles is one cycle, an elementwise tile of one row a cycle four."""
    units = {unit.name: unit for unit in beats.units}
    products = 16 * 32 * 32 // 4**3
    for name in ("gate_matmul", "up_matmul", "down_matmul"):
        assert units[name].states["busy"] == products + 1   # and done
        assert prediction.stalls[name]["busy"] >= products + 1
    assert units["gate_silu"].states["busy"] == 4 * (16 * 32 // 4**2) + 1


def test_work_is_when_beats_come_and_go(design, prediction, beats):
    """A store works in the cycle after a beat was written to its link, a function of four cycles in the four up to the
    one in which its result leaves."""
    trace, names = prediction.outcome.trace, [unit.name for unit in beats.units]
    slices = {name: beats.slices[beats.slices[:, 0] == names.index(name)] for name in ("store_y", "gate_silu")}
    written = trace[trace[:, 1] == design.graph.unit("store_y").inputs[0], 0]
    assert slices["store_y"][0, 1:3].tolist() == [written[0] + 1, written[0] + 2]
    left = trace[trace[:, 1] == design.graph.unit("gate_silu").outputs[0], 0]
    assert slices["gate_silu"][0, 1] == left[0] - 3 and slices["gate_silu"][-1, 2] == left[-1] + 1


def test_beats_tell_nearly_what_the_model_counts(design, prediction, beats):
    """RTL's record has no states of units: what its links tell of them is close to what units themselves say."""
    told = transfers(design, prediction)
    assert [unit.name for unit in told.units] == [unit.name for unit in beats.units]
    for mine, theirs in zip(told.units, beats.units):
        assert (mine.moved, mine.offchip_bytes) == (theirs.moved, theirs.offchip_bytes)
        if mine.category == "compute":
            assert mine.states["busy"] == theirs.states["busy"], mine.name


def test_scratchpads_over_time(design, prediction, beats):
    held = curve(beats, "scratchpads")
    assert len(prediction.peak_frames) == 2
    most = sum(n for n, _ in beats.onchip_peak.values())
    assert max(n for n, _ in beats.onchip_peak.values()) <= held.values.max() <= most
    assert held.values[-1] <= held.values.max() and held.limit == sum(size for _, size in beats.onchip_peak.values())
    same = curve(transfers(design, prediction), "scratchpads")
    assert same.values.max() == held.values.max()


def test_rtl_whose_beats_are_not_the_models_has_no_scratchpad_curve(design, prediction):
    other = transfers(design, prediction, start_cycle=41)
    assert "scratchpads" not in [found.name for found in other.curves]
    assert any("which is not so here" in note for note in other.notes)
    assert not any("which is not so here" in note for note in transfers(design, prediction).notes)


EVENT = {
    "type": "object",
    "required": ["ph", "pid", "tid", "name"],
    "properties": {"pid": {"type": "integer"}, "tid": {"type": "integer"}, "name": {"type": "string", "minLength": 1}},
    "oneOf": [
        {"properties": {"ph": {"const": "M"}, "args": {"type": "object", "minProperties": 1, "maxProperties": 1},
                        "name": {"enum": ["process_name", "process_sort_index", "thread_name", "thread_sort_index"]}},
         "required": ["args"]},
        {"properties": {"ph": {"const": "X"}, "ts": {"type": "integer", "minimum": 0},
                        "dur": {"type": "integer", "minimum": 1}, "args": {"type": "object"}},
         "required": ["ts", "dur"]},
        {"properties": {"ph": {"const": "C"}, "ts": {"type": "integer", "minimum": 0},
                        "args": {"type": "object", "minProperties": 1,
                                 "additionalProperties": {"type": "number", "minimum": 0}}},
         "required": ["ts", "args"]},
    ],
}
"""What Perfetto and chrome://tracing read of the Trace Event Format: metadata, complete events and counters."""


def test_trace_is_of_the_format(run):
    trace = json.loads(trace_json(run))
    jsonschema.validate(trace, {"type": "object", "required": ["traceEvents", "displayTimeUnit"], "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]}, "otherData": {"type": "object"},
        "traceEvents": {"type": "array", "items": EVENT}}})
    events = trace["traceEvents"]
    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert list(tracks.values()) == [unit.name for unit in run.units]
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) == len(run.slices) and {(e["pid"], e["tid"]) for e in slices} <= set(tracks)
    open_until: dict[tuple[int, int], int] = defaultdict(int)
    for event in slices:   # of a track one after the other: viewers nest those that overlap
        track = event["pid"], event["tid"]
        assert event["ts"] >= open_until[track], tracks[track]
        open_until[track] = event["ts"] + event["dur"]
    counters = {e["name"] for e in events if e["ph"] == "C"}
    assert {"off-chip read (B/cycle)", "off-chip write (B/cycle)"} < counters
    assert all(e["ts"] <= run.total_cycles for e in events if e["ph"] == "C")


def test_a_long_trace_is_bounded(beats, monkeypatch):
    import sim.report.beats as module

    monkeypatch.setattr(module, "SLICES", 60)
    design = Design(swiglu.build(**SIZES), HW)
    small = run_of_beats(design.lowered, design.graph, HW, metrics(design.program), {},
                         predict(design.graph, HW, trace=True))
    assert len(small.slices) <= 60 < len(beats.slices) and small.gap > beats.gap
    assert f"at most {small.gap} cycles apart" in json.loads(trace_json(small))["otherData"]["merged"]
    assert any("one slice" in note for note in small.notes)
    assert small.slices[:, 3].sum() == beats.slices[:, 3].sum()


def test_summary_has_the_numbers(run):
    from rich.console import Console

    console = Console(width=400, record=True, file=open("/dev/null", "w"))
    console.print(summary(run))
    text = console.export_text()
    assert f"{run.cycles:,} (first off-chip read" in text and "what limits this design" in text and "try:" in text
    assert max(run.units, key=lambda unit: unit.states["busy"]).name in text
