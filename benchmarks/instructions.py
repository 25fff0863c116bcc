"""Instructions that the models execute for each simulated beat (beat fidelity) and for each event (tile fidelity):
``python -m benchmarks.instructions [--only TEXT] [--record]``.

Counted by Valgrind, so that a noisy machine counts as a quiet one does: a process predicts a program once, another one
more often, and the difference is that of so many predictions, without start-up and compilation. The figures are
compared with those recorded in ``benchmarks/instructions.toml``; exit status 1 when one is more than `TOLERANCE` above.
``--record`` writes the new ones there. Numba compiles for a processor of x86-64-v2, which Valgrind knows whole, so the
figures say how the work grows or shrinks with a change; a newer processor executes fewer.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tomli_w
from rich.console import Console
from rich.progress import track
from rich.table import Table

from examples import attention, layer, moe, swiglu
from sim.prediction import predict
from sim.tile import RooflineMachine
from sim.tile import predict as predict_tiles
from step_hw.design import Design
from step_lang.hwconfig import HardwareConfig

__all__ = ["CASES", "judge", "main"]

ROOT = Path(__file__).resolve().parents[1]
RECORD = Path(__file__).with_suffix(".toml")

COUNTED = 500_000
"""Beats or events, at least, that a figure is of: start-up varies by as many instructions as some thousand of them."""

TOLERANCE = 0.03
"""Above the recorded figure. The same code counted twice differs by less than a hundredth: addresses and hashes."""


def _beats(module: Any, hw: HardwareConfig, **parameters: Any) -> Callable[[], int]:
    """A prediction at beat fidelity; returns the beats over all links."""
    program = module.build(**parameters)
    streams = module.streams(program, seed=1) if hasattr(module, "streams") else {}
    graph = Design(program, hw, streams).graph
    return lambda: sum(predict(graph, hw).beats.values())


def _events(module: Any, **parameters: Any) -> Callable[[], int]:
    """A prediction at tile fidelity on the paper's machine; returns its events."""
    program = module.build(**parameters)
    streams = module.streams(program, seed=1) if hasattr(module, "streams") else {}
    return lambda: predict_tiles(program, RooflineMachine(), streams).events


CASES: dict[str, tuple[str, Callable[[], Callable[[], int]]]] = {
    "swiglu": ("beat", lambda: _beats(swiglu, HardwareConfig(tile=16), **swiglu.SWEEPS["fig8"][-1])),
    "moe": ("beat", lambda: _beats(moe, HardwareConfig(tile=8, link_depth=256), tiling="dynamic", batch=40,
                                   experts=4, top_k=2, hidden=64, intermediate=192)),
    "attention": ("beat", lambda: _beats(attention, HardwareConfig(tile=8), schedule="dynamic", batch=10, regions=2,
                                         capacity=384)),
    "mixtral moe": ("event", lambda: _events(moe, model="mixtral-8x7b", tiling="dynamic", batch=64)),
    "mixtral layer": ("event", lambda: _events(layer, model="mixtral-8x7b", batch=64)),
}
"""What is predicted: the unit that is counted, and what makes the prediction."""


def _valgrind(name: str, runs: int, cache: str) -> tuple[int, int]:
    """Instructions of a process that predicts case ``name`` ``runs`` times, and the units of one prediction."""
    environment = os.environ | {
        "NUMBA_CPU_NAME": "x86-64-v2", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": cache, "STEP_HW_CACHE": cache,
        "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
    }
    child = [sys.executable, "-m", "benchmarks.instructions", "--child", name, str(runs)]
    if runs == 0:  # compile, at the machine's own speed
        subprocess.run([*child[:-1], "1"], cwd=ROOT, env=environment, check=True, capture_output=True)
        return 0, 0
    done = subprocess.run(
        ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={cache}/counts", *child], cwd=ROOT,
        env=environment, check=True, capture_output=True, text=True)
    counted = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    assert counted, done.stderr
    return int(counted[1].replace(",", "")), int(done.stdout)


def _measure(name: str, cache: str) -> tuple[float, int]:
    """Instructions for each unit, and the units of one prediction."""
    _valgrind(name, 0, cache)
    once, units = _valgrind(name, 1, cache)
    runs = -(-COUNTED // units)
    often, _ = _valgrind(name, 1 + runs, cache)
    return (often - once) / runs / units, units


def judge(measured: dict[str, float], recorded: dict[str, float]) -> list[str]:
    """What is worse than recorded by more than `TOLERANCE`, in words; cases that are not recorded are no worse."""
    return [f"{name}: {value:,.0f} instructions vs {recorded[name]:,.0f} recorded ({value / recorded[name] - 1:+.1%})"
            for name, value in measured.items() if name in recorded and value > recorded[name] * (1 + TOLERANCE)]


def _recorded() -> dict[str, Any]:
    return tomllib.loads(RECORD.read_text()) if RECORD.exists() else {}


def _table(rows: Iterable[tuple[str, float, int]], recorded: dict[str, float]) -> Table:
    table = Table("workload", "counted", "of them", "instructions each", "recorded", "change")
    for name, value, units in rows:
        before = recorded.get(name)
        table.add_row(name, CASES[name][0], f"{units:,}", f"{value:,.0f}", "-" if before is None else f"{before:,.0f}",
                      "-" if before is None else f"{value / before - 1:+.1%}")
    return table


def main(arguments: list[str] | None = None) -> int:
    """Measure, print and compare; 1 when something became slower, 2 when it cannot be measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--only", default="", help="workloads whose name has this text")
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RECORD.name}")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        name, runs = options.child
        made = CASES[name][1]()
        counts = {made() for _ in range(int(runs))}
        assert len(counts) == 1, counts
        print(*counts)
        return 0
    if shutil.which("valgrind") is None:
        print("error: valgrind is missing; install it (Debian, Ubuntu: apt-get install valgrind)", file=sys.stderr)
        return 2
    chosen = [name for name in CASES if options.only in name]
    console = Console(width=100)
    with tempfile.TemporaryDirectory() as cache:
        rows = [(name, *_measure(name, cache)) for name in track(chosen, console=Console(stderr=True))]
    record = _recorded()
    recorded = record.get("instructions", {})
    console.print(_table(rows, recorded))
    measured = {name: value for name, value, _ in rows}
    if options.record:
        figures = {
            "counted_with": {"python": platform.python_version(), "numba": version("numba"), "numpy": version("numpy")},
            "instructions": recorded | {name: round(value, 1) for name, value in measured.items()},
        }
        RECORD.write_text(tomli_w.dumps(figures))
        return 0
    worse = judge(measured, recorded)
    for line in worse:
        console.print(f"slower: {line}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
