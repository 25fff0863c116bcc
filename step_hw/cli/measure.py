"""One program on RTL, in the interpreter and in the model: the numbers of ``cosim`` and of a row of ``validate``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from step_hw.design import Design
from step_lang import Metrics, Result, metrics
from step_lang.errors import UnknownFunction
from step_lang.roofline import Roofline, roofline

if TYPE_CHECKING:
    from rtl_tests.cosim import Check, RtlRun
    from rtl_tests.harness.native import ProgramBuild
    from sim.prediction import Prediction

__all__ = ["Expected", "Measurement", "expect", "measure"]


@dataclass
class Expected:
    """What a design must do: the program's and its lowered form's results, and its costs at the sizes it ran with."""

    logical: Result
    lowered: Result
    costs: Metrics
    bound: Roofline


def expect(
    design: Design, tensors: Mapping[str, np.ndarray], arbitration: Mapping[str, Sequence[int]] | None = None
) -> Expected:
    """Interpret ``design``, given the grants of a run or in index order. Raises what the interpreter raises."""
    logical = design.interpret(tensors, lowered=False, arbitration=arbitration)
    lowered = design.interpret(tensors, arbitration=arbitration)
    costs = metrics(design.program).substitute(logical.symbols)
    return Expected(logical, lowered, costs, roofline(design.program, design.hw, logical.symbols))


@dataclass
class Measurement:
    """RTL, model and expectation of one run; ``prediction`` is None where values steer the program that the model does
    not compute (`sim.steering`)."""

    rtl: RtlRun
    prediction: Prediction | None
    expected: Expected
    verdict: Check

    @property
    def error(self) -> float | None:
        """Relative error of the model's cycles, signed."""
        return None if self.prediction is None else (self.prediction.cycles - self.rtl.cycles) / self.rtl.cycles

    @property
    def traffic_exact(self) -> bool:
        """Whether off-chip bytes of RTL, of the model and of the symbolic expression are the same."""
        if self.prediction is not None and self.prediction.offchip_bytes != self.rtl.offchip_bytes:
            return False
        return self.rtl.offchip_bytes == int(self.expected.costs.offchip_bytes)

    def as_json(self) -> dict[str, Any]:
        """The numbers, under the names of the command line's JSON."""
        rtl, prediction, expected = self.rtl, self.prediction, self.expected
        return {
            "rtl_cycles": rtl.cycles,
            "model_cycles": prediction and prediction.cycles,
            "error": self.error,
            "total_cycles": rtl.total_cycles,
            "roofline_cycles": expected.bound.cycles,
            "roofline_efficiency": expected.bound.cycles / rtl.cycles,
            "bit_exact": self.verdict.bit_exact,
            "differences": self.verdict.differences,
            "offchip_read_bytes": rtl.offchip_read_bytes,
            "offchip_write_bytes": rtl.offchip_write_bytes,
            "symbolic_offchip_bytes": int(expected.costs.offchip_bytes),
            "traffic_exact": self.traffic_exact,
            "onchip_bytes": int(expected.costs.onchip_bytes),
            "flops": int(expected.costs.flops),
            "peak_frames": rtl.peak_frames,
            "model_peak_frames": prediction and prediction.peak_frames,
            "arbitration": rtl.arbitration,
            "same_grants": prediction and prediction.arbitration == rtl.arbitration,
            "simulation_seconds": rtl.native.wall_seconds,
            "model_seconds": prediction and prediction.wall_seconds,
        }


def measure(
    design: Design,
    tensors: Mapping[str, np.ndarray],
    build: ProgramBuild,
    simulator: str,
    constants: Mapping[str, int],
    *,
    expected: Expected | None = None,
    progress: bool = False,
    waves: Path | None = None,
    trace: bool = False,
    needs_model: bool = True,
    go_on: Callable[[], bool] = lambda: True,
) -> Measurement:
    """Run ``design`` on RTL and in the model, and compare.

    ``trace``: keep the model's beats for ``explain``. ``needs_model``: raise `UnknownFunction` for a program that is
    steered by values that the model does not compute, after the run on RTL. ``go_on`` is asked before RTL starts;
    `KeyboardInterrupt` if it says no.
    """
    from rtl_tests.cosim import check, run_rtl
    from sim.prediction import predict

    expected = expected or expect(design, tensors)
    if not go_on():
        raise KeyboardInterrupt
    rtl = run_rtl(
        design, tensors, build, simulator=simulator, native=simulator == "verilator", progress=progress, waves=waves
    )
    if design.arbitrates:  # only now is it known in which order its streams were served
        expected = expect(design, tensors, rtl.arbitration)
    verdict = check(design, rtl, expected.lowered, expected.logical)
    prediction = None
    try:
        prediction = predict(design.graph, design.hw, constants, trace=trace)
    except UnknownFunction:
        if needs_model:
            raise
    return Measurement(rtl, prediction, expected, verdict)
