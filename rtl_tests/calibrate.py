"""Calibration: run micro-benchmarks on RTL, fit what the units do not state, report the error on others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from examples.data import random_tensors
from sim.calibration import Calibration, Comparison
from sim.memory import CALIBRATION
from sim.prediction import Prediction, predict
from step_hw.design import Design
from step_lang.hwconfig import HardwareConfig

from .cosim import RtlRun, run_rtl
from .explain import PULSE, model_start
from .microbenchmarks import FITTED, HELD_OUT, Microbenchmark

__all__ = ["calibrate"]


def calibrate(hw: HardwareConfig, progress: Callable[[str], None] = lambda name: None, **build_options) -> Calibration:
    """Measure ``hw`` on RTL; ``progress`` is told each micro-benchmark's name before it runs.

    ``hbm.read_overhead`` is the median over the fitted programs of what RTL takes longer than the model from the
    first read burst to the first loaded beat, ``hbm.write_overhead`` the same from the last write burst to the end.
    """
    measured = [_measure(bench, hw, progress) for bench in FITTED]
    constants = dict(CALIBRATION) | {
        "hbm.read_overhead": _median(_read_path(d, r) - _model_read_path(d, m) for d, r, m in measured),
        "hbm.write_overhead": _median(
            (r.total_cycles - r.start_cycle - r.cycles) - (m.total_cycles - model_start(d, m) - m.cycles)
            for d, r, m in measured
        ),
    }
    calibration = Calibration(hw.digest(), constants)
    for bench, (design, rtl, _) in zip(FITTED, measured):
        calibration.fitted.append(Comparison(bench.name, rtl.cycles, predict(design.graph, hw, constants).cycles))
    for bench in HELD_OUT:
        design, rtl, _ = _measure(bench, hw, progress)
        calibration.held_out.append(Comparison(bench.name, rtl.cycles, predict(design.graph, hw, constants).cycles))
    return calibration


def _measure(
    bench: Microbenchmark, hw: HardwareConfig, progress: Callable[[str], None]
) -> tuple[Design, RtlRun, Prediction]:
    progress(bench.name)
    design = Design(bench.build(hw), hw)
    rtl = run_rtl(design, random_tensors(design.program, 0))
    return design, rtl, predict(design.graph, hw, dict.fromkeys(CALIBRATION, 0), trace=True)


def _load_link(design: Design) -> int:
    return next(link.index for link in design.graph.links if design.graph.units[link.source[0]].kind == "load")  # type: ignore[index]


def _read_path(design: Design, run: RtlRun) -> int:
    return int(run.native.of_link(_load_link(design))["cycle"][0]) - PULSE - run.start_cycle


def _model_read_path(design: Design, prediction: Prediction) -> int:
    trace = prediction.outcome.trace
    return int(trace[trace[:, 1] == _load_link(design)][0, 0]) - model_start(design, prediction)


def _median(values) -> int:
    return max(0, int(np.median(list(values))))
