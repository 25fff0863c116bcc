"""How fast step-hw itself is, on the SwiGLU layer of figure 8: ``python benchmarks/speed.py [--json FILE]``.

Medians of several runs in this process, except the cold start, which is one fresh process with empty caches. Numbers
depend on the machine: compare those of one run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import examples.swiglu as swiglu  # noqa: E402
from sim.prediction import predict, warm_up  # noqa: E402
from step_hw.design import Design  # noqa: E402
from step_lang.hwconfig import HardwareConfig  # noqa: E402

COLD = """import time
began = time.perf_counter()
import examples.swiglu as swiglu
from sim.prediction import predict
from step_hw.design import Design
from step_lang.hwconfig import HardwareConfig
predict(Design(swiglu.build(), HardwareConfig()).graph, HardwareConfig())
print(time.perf_counter() - began)"""


def median_seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Median wall time of ``work``."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def cold_start_seconds() -> float:
    """A first prediction in a fresh process with empty caches: imports, lowering and compiling the engine included."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"STEP_HW_CACHE": cache, "NUMBA_CACHE_DIR": cache}
        done = subprocess.run([sys.executable, "-c", COLD], cwd=ROOT, env=environment, check=True, capture_output=True,
                              text=True)
    return float(done.stdout)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    hw = HardwareConfig(tile=16)
    designs = [Design(swiglu.build(**point), hw) for point in swiglu.SWEEPS["fig8"]]
    graphs = [design.graph for design in designs]
    last = designs[-1]
    tensors = swiglu.inputs(last.program)
    warm_up()
    cycles = sum(predict(graph, hw).total_cycles for graph in graphs)
    beats = sum(sum(predict(graph, hw).beats.values()) for graph in graphs)
    model = median_seconds(lambda: [predict(graph, hw) for graph in graphs])
    numbers = {
        "model_cold_start_seconds": cold_start_seconds(),
        "model_fig8_seconds": model,
        "model_cycles_per_second": cycles / model,
        "model_beats_per_second": beats / model,
        "interpreter_seconds": median_seconds(lambda: last.interpret(tensors, lowered=False), 3),
        "lowered_interpreter_seconds": median_seconds(lambda: last.interpret(tensors), 3),
        "lowering_seconds": median_seconds(lambda: Design(swiglu.build(tile_b=64, tile_f=256), hw).graph),
    }
    for name, value in numbers.items():
        print(f"{name:32} {value:,.3f}")
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
