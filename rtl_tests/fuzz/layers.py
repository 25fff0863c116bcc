"""One random program through every layer: where do they disagree?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rtl_tests.cosim import build_rtl, check, run_rtl
from rtl_tests.explain import explain
from rtl_tests.harness.native import ProgramBuild
from sim.prediction import Prediction, predict
from step_hw.design import Design
from step_lang import Program, Result, metrics
from step_lang.errors import DeadlockError, StepError, UnknownFunction
from step_lang.hwconfig import HardwareConfig

from .kitchen import Cooked

__all__ = ["Outcome", "run"]


@dataclass
class Outcome:
    """``refused``: what a layer said to a program it cannot run; ``wrong``: where layers disagree; ``grants``: of the
    operators that arbitrate, together."""

    refused: str = ""
    wrong: list[str] = field(default_factory=list)
    grants: int = 0
    rtl: bool = False


def run(made: Cooked, hw: HardwareConfig, *, simulators: Sequence[str] = ()) -> Outcome:
    """Run ``made`` through interpreter, lowering, unit graph and model, and on RTL on each of ``simulators``."""
    tensors = made.tensors
    try:
        design = Design(made.program, hw, made.inputs)
        logical = design.interpret(tensors, lowered=False)
        graph = design.graph
    except StepError as error:
        return Outcome(refused=f"{type(error).__name__}: {error}")
    try:
        prediction = predict(graph, design.hw, trace=True)
    except DeadlockError as error:
        wrong = _same_end(design, tensors, str(error), simulators, DeadlockError, str)
        return Outcome(f"DeadlockError: {error}", wrong, rtl=bool(simulators))
    except UnknownFunction as error:  # values steer it that the model does not compute
        return Outcome(f"{type(error).__name__}: {error}")
    except StepError as error:
        try:
            design.interpret(tensors)
        except StepError as other:  # what lowering makes of it is no sound program (DESIGN section 6, open dimensions)
            wrong = _same_end(design, tensors, str(error), simulators, StepError, _unit_of)
            return Outcome(f"{type(other).__name__}: {other}", wrong, rtl=bool(simulators))
        return Outcome("", [f"the program is sound, the model says {error}"])
    grants = prediction.arbitration
    try:
        if design.arbitrates:
            logical = design.interpret(tensors, lowered=False, arbitration=grants)
        lowered = design.interpret(tensors, arbitration=grants)
    except StepError as error:
        return Outcome("", [f"the program is sound, an interpreter says {error}"])
    wrong = [*_lowering(design, logical, lowered), *_traffic(made.program, logical, lowered, prediction),
             *_model(design, lowered, prediction)]
    for simulator in simulators:
        wrong += [f"{simulator}: {text}" for text in _rtl(design, tensors, lowered, logical, prediction, simulator)]
    return Outcome("", wrong, sum(map(len, grants.values())), bool(simulators))


def _lowering(design: Design, logical: Result, lowered: Result) -> list[str]:
    """Every tensor, and every logical stream as its physical ones give it."""
    wrong = [f"tensor '{name}': lowered program vs program" for name, values in logical.tensors.items()
             if values.tobytes() != lowered.tensors[name].tobytes()]
    views = design.lowered.logical_streams(lowered.streams)
    for stream in design.program.streams:
        wrong += [f"stream '{stream.name}': lowered {view} vs {logical.streams[stream.name]}"
                  for view in views.get(stream.name, []) if view != logical.streams[stream.name]]
    return wrong


def _traffic(program: Program, logical: Result, lowered: Result, prediction: Prediction) -> list[str]:
    costs = metrics(program).substitute(logical.symbols)
    counts = {"symbolic": int(costs.offchip_bytes), "interpreter": logical.offchip_bytes,
              "lowered": lowered.offchip_bytes}
    routed = any(op.kind == "reassemble" for op in program.operators)
    if not routed or prediction.offchip_bytes > lowered.offchip_bytes:  # see `UnitGraph.links_to_reassembles`
        counts["model"] = prediction.offchip_bytes
    int(costs.onchip_bytes), int(costs.flops)  # have a value
    return [f"off-chip bytes: {counts}"] if len(set(counts.values())) > 1 else []


def _model(design: Design, lowered: Result, prediction: Prediction) -> list[str]:
    """The model's tokens on every link."""
    trace, early = prediction.outcome.trace, design.graph.links_to_reassembles()
    for link in design.graph.links:
        tokens = lowered.streams[link.stream]
        found = (trace[trace[:, 1] == link.index, 2] & 63).tolist()
        wanted = [*(tokens.stop.astype(int) | tokens.empty.astype(int) << 4).tolist(), 3 << 4]
        if found != (wanted[:len(found)] if link.index in early else wanted):
            return [f"link '{link.name}': model {found} vs {wanted}"]
    return []


def _built(design: Design, simulator: str) -> ProgramBuild:
    """Without the C++ compiler's optimiser: a run of some hundred cycles is over before it has optimised."""
    return build_rtl(design, simulator, opt="quick") if simulator == "verilator" else build_rtl(design, simulator)


def _rtl(design: Design, tensors: dict[str, np.ndarray], lowered: Result, logical: Result, prediction: Prediction,
         simulator: str) -> list[str]:
    """Values, tokens, traffic, grants, and the cycle of every beat."""
    options: dict[str, Any] = {}
    if simulator == "icarus":
        options["payloads"] = [f"{link.name}_link" for link in design.graph.links]
    try:
        run = run_rtl(design, tensors, _built(design, simulator), simulator=simulator, **options)
    except StepError as error:
        return [f"the program is sound, RTL says {error}"]
    wrong = []
    if run.arbitration != prediction.arbitration:
        wrong.append(f"grants: RTL {run.arbitration} vs model {prediction.arbitration}")
    else:
        wrong += check(design, run, lowered, logical).differences
    if run.cycles != prediction.cycles:
        wrong.append(f"cycles: RTL {run.cycles} vs model {prediction.cycles}")
    if run.peak_frames != prediction.peak_frames:
        wrong.append(f"scratchpad peaks: RTL {run.peak_frames} vs model {prediction.peak_frames}")
    parted = explain(design, run, prediction, tensors, simulator=simulator)
    return wrong + ([parted.text] if parted.divergences else [])


def _same_end(design: Design, tensors: dict[str, np.ndarray], said: str, simulators: Sequence[str],
              kind: type[StepError], part: Callable[[str], str]) -> list[str]:
    """RTL ends with an error of ``kind`` where the model does; ``part`` of what they say is the same."""
    wrong = []
    for simulator in simulators:
        try:
            run_rtl(design, tensors, _built(design, simulator), simulator=simulator, quiet_cycles=1000)
            wrong.append(f"{simulator} ran, the model says {said}")
        except kind as error:
            if part(str(error)) != part(said):
                wrong.append(f"{simulator} says {error}\nthe model says {said}")
    return wrong


def _unit_of(said: str) -> str:
    """An error's message up to the unit in which it is."""
    return said.partition(")")[0]
