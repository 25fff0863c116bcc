"""Is the model equal to the RTL? The same case in both, every transfer in the same cycle.

The RTL is the unit with its link FIFOs (`linked.Linked`), the model ``source -> link -> unit -> link -> sink`` in
`sim.engine.run_graph`. When beats may be offered and when outputs are ready is part of the case and the same in both::

    def test_repeat_model(simulator):
        case = ModelCase("spec", inputs={"in0": beats("1 S1 2 S1 D")}, cfg={"n": 2},
                         starts={"in0": [0, 3, 3]}, ready={"out0": [1, 0, 0]})
        assert_model_equals_rtl(simulator, Repeat(BeatLayout(8)), [case])

A unit with memory ports, or a composite of several units (a `Unit` that joins them with link FIFOs), passes
``add_units`` (puts the model's units between the given links) and ``agents`` (an importable ``"module:function"``,
called in the simulator as ``function(dut, case)``; returns harness agents that serve the further ports).
"""

import os
import pickle
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import cast

from rtl_tests.harness import Beat, layout_of, run_cocotb
from rtl_tests.harness.bench import FIRST_FAILURE
from rtl_tests.harness.build import build
from rtl_tests.harness.checks import compare_beats
from rtl_tests.linked import Linked
from rtl_tests.model_cases import ModelCase, RtlRun
from sim.engine import RunOutcome, run_graph
from sim.network import ROWS_SHIFT, Network
from step_lang.unitgraph import LinkSpec, Payload, UnitGraph, UnitSpec

__all__ = ["AddUnits", "ModelCase", "RtlRun", "assert_model_equals_rtl", "delay", "pressed", "run_model"]

AddUnits = Callable[[UnitGraph, list[int], list[int], Mapping[str, int]], None]
"""``add_units(graph, input links, output links, cfg)`` appends `UnitSpec` (and inner `LinkSpec`) to ``graph``."""


def pressed(case: ModelCase, rng: Random, offer: float = 0.6, take: float = 0.6, period: int = 29,
            outputs: Sequence[str] | None = None) -> ModelCase:
    """``case`` with random pauses at every input, and ``outputs`` (default: those of ``expected``) ready in ``take`` of
    the cycles of a repeating pattern of ``period``."""
    for port, stream in case.inputs.items():
        cycle, starts = 0, []
        for _ in stream:
            while rng.random() > offer:
                cycle += 1
            starts.append(cycle)
            cycle += 1
        case.starts = {**case.starts, port: starts}
    for port in case.expected if outputs is None else outputs:
        pattern = [int(rng.random() < take) for _ in range(period)]
        pattern[rng.randrange(period)] = 1  # never closed for good
        case.ready = {**case.ready, port: pattern}
    return case


def delay(case: ModelCase, cycles: int) -> None:
    """Offer every beat of ``case`` that many cycles later."""
    for port, stream in case.inputs.items():
        case.starts = {**case.starts, port: [cycles + at for at in case.starts.get(port, [0] * len(stream))]}


def run_model(linked: Linked, case: ModelCase, add_units: AddUnits, hw=None,
              calibration: dict | None = None) -> RunOutcome:
    """The model's run of ``case``: links are numbered inputs first, then outputs, then what ``add_units`` adds."""
    unit = linked.unit
    graph = UnitGraph([], [])
    names = list(linked.links)
    for index, name in enumerate(names):
        layout = linked.links[name].layout
        graph.links.append(LinkSpec(index, name, Payload(layout.data_width, layout.max_rows), linked.links[name].depth))
    n = len(unit.input_layouts)
    for index, name in enumerate(names[:n]):
        stream = case.inputs.get(name, ())
        starts = case.starts.get(name, [0] * len(stream))
        values = case.values.get(name, [beat.data for beat in stream])
        offers = [(start, _token(beat), value) for start, beat, value in zip(starts, stream, values, strict=True)]
        _add(graph, "source", name, outputs=[index], params={"beats": offers})
    add_units(graph, list(range(n)), list(range(n, len(names))), case.cfg)
    first = case.inputs.get("in0", ())
    runs = case.runs if case.runs is not None else max(1, sum(beat.done for beat in first))
    for index, name in enumerate(names[n:], start=n):
        params = {"pattern": list(case.ready.get(name, [1])), "runs": runs}
        _add(graph, "sink", name, inputs=[index], params=params, is_sink=True)
    for spec in graph.units:
        for port, link in enumerate(spec.outputs):
            graph.links[link].source = (spec.index, port)
        for port, link in enumerate(spec.inputs):
            graph.links[link].destination = (spec.index, port)
    return run_graph(graph, hw, calibration, trace=True, max_cycles=case.max_cycles, quiet_cycles=1000,
                     trace_size=200_000)


def assert_model_equals_rtl(
    simulator: str,
    unit,
    cases: Sequence[ModelCase],
    *,
    params: Mapping | None = None,
    add_units: AddUnits | None = None,
    depths: Mapping[str, int] | None = None,
    agents: str | None = None,
    hw=None,
    calibration: dict | None = None,
    timeout_s: float = 600.0,
    plusargs: Sequence[str] = (),
) -> list[tuple[RunOutcome, RtlRun]]:
    """Run ``cases`` in the model and (all in one simulation) in RTL; AssertionError lists every case that parts.

    ``params`` are the elaboration parameters of the model's ``UnitSpec`` of kind ``unit.kind``, which is what
    ``add_units`` makes by default. Beats of ``expected`` are compared with what RTL gave; with
    `harness.bench.FIRST_FAILURE` RTL stops behind the first case in which they differ.
    """
    cases = list(cases)
    linked = Linked(unit, depths)
    if add_units is None:
        def add_units(graph, inputs, outputs, cfg):
            _add(graph, unit.kind, "unit", inputs, outputs, dict(params or {}), cfg)
    models = [run_model(linked, case, add_units, hw, calibration) for case in cases]
    runs = _run_rtl(simulator, linked, cases, [model.cycles for model in models], agents, timeout_s, plusargs)
    problems = []
    for case, model, rtl in zip(cases, models, runs):  # no more runs than up to the first failure, if that is asked for
        problem = _difference(linked, case, model, rtl)
        if problem:
            problems.append(f"case {case.name}: {problem}")
    if problems:
        raise AssertionError(f"{unit.module_name} on {simulator}: model and RTL differ in {len(problems)} of "
                             f"{len(cases)} cases\n" + "\n".join(problems[:5]))
    return list(zip(models, runs, strict=True))


def _add(graph: UnitGraph, kind: str, name: str, inputs=(), outputs=(), params=None, config=None, is_sink=False):
    graph.units.append(UnitSpec(len(graph.units), kind, name, list(inputs), list(outputs), params or {}, config or {},
                                is_sink))


def _token(beat: Beat) -> int:
    return beat.stop | beat.empty << 4 | beat.done << 5 | beat.rows << ROWS_SHIFT


def _run_rtl(simulator: str, linked: Linked, cases: Sequence[ModelCase], cycles: Sequence[int], agents: str | None,
             timeout_s: float, plusargs: Sequence[str] = ()) -> list[RtlRun]:
    verilog = {f"{name}.v": text for name, text in linked.modules().items()}
    built = build(simulator, verilog, linked.module_name)
    request = {
        "layouts": {name: layout_of(link.layout) for name, link in linked.links.items()},
        "cfg": {name: f"cfg__{name}" for name in linked.cfg_widths},
        "cases": cases,
        "cycles": list(cycles),
        "agents": agents,
        "first_failure": FIRST_FAILURE in os.environ,
    }
    with tempfile.TemporaryDirectory(prefix="step-hw-model-") as temporary:
        asked, answer = Path(temporary) / "cases.pickle", Path(temporary) / "runs.pickle"
        asked.write_bytes(pickle.dumps(request))
        run_cocotb(built, "rtl_tests.model_bench_sim", timeout_s=timeout_s, plusargs=plusargs,
                   env={"STEP_HW_CASES": str(asked), "STEP_HW_RESULTS": str(answer)})
        return pickle.loads(answer.read_bytes())


def _difference(linked: Linked, case: ModelCase, model: RunOutcome, rtl: RtlRun) -> str | None:
    """None, or the first thing in which the two part."""
    names = list(linked.links)
    error = int(cast(Network, model.net).misc[4])
    wanted = "error" if case.error else "finished"
    if model.reason != wanted or error != case.error:
        return (f"the model ended with {model.reason} (error {error}) in cycle {model.cycles}, not {wanted} "
                f"(error {case.error})")
    if rtl.error != case.error or (case.error and rtl.error_cycle != model.cycles):
        return f"RTL shows error {rtl.error} in cycle {rtl.error_cycle}, the model {error} in cycle {model.cycles}"
    modelled: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    for cycle, link, tok in model.trace.tolist():
        if link < len(names):
            modelled[names[link]].append((cycle, tok))
    for name in names:
        if name.startswith("in"):
            stamps = rtl.stamps[name]
        else:
            stamps = rtl.pushes[name]
        tokens = [_token(beat) for beat in rtl.beats[name]]
        if case.error:  # what moves in the cycle in which the error shows is not part of the comparison
            stamps = [stamp for stamp in stamps if stamp < model.cycles]
        measured = [(stamp, tokens[i] if i < len(tokens) else None) for i, stamp in enumerate(stamps)]
        for i in range(max(len(measured), len(modelled[name]))):
            r = measured[i] if i < len(measured) else None
            s = modelled[name][i] if i < len(modelled[name]) else None
            same = r is not None and s is not None and r[0] == s[0] and (r[1] is None or r[1] == s[1])
            if not same:
                return f"link {name}, beat {i}: RTL writes {_told(r)}, the model {_told(s)}"
    for name, expected in case.expected.items():
        problem = compare_beats(name, list(expected), rtl.beats[name], rtl.stamps[name])
        if problem:
            return problem
    return None


def _told(transfer: tuple[int, int | None] | None) -> str:
    if transfer is None:
        return "nothing"
    cycle, tok = transfer
    if tok is None:
        return f"in cycle {cycle}"
    what = "done" if tok >> 5 & 1 else f"stop {tok & 15}{' bare' if tok >> 4 & 1 else ''} rows {tok >> ROWS_SHIFT}"
    return f"({what}) in cycle {cycle}"
