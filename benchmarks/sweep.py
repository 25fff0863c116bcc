"""How much faster two workers sweep than one: ``python benchmarks/sweep.py [--rounds N] [--json FILE]``.

The same 200 points on one worker and on two, in turn, each from an empty store with the engine compiled. The start of
the command and its workers is part of it. On a machine that does other things meanwhile the ratio says little: how many
times as far two busy processes get as one is measured beside it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from sim.dispatch import cache_directory  # noqa: E402

GRID = ("examples/swiglu.py", "--set", "batch=512", "--set", "tile_b=16,32", "--set", "tile_f=16,32,64,128,256",
        "--hw", "link.depth=2,4,8,16,32", "--hw", "memory.channels=1,2,4,8")
"""200 points: a SwiGLU layer, 512 x 256 x 512, in ten tilings, on T = 16."""


ONE = ("examples/swiglu.py",)
"""One point, to have the engine compiled."""


def sweep(workers: int, grid: tuple[str, ...] = GRID) -> dict[str, Any]:
    """Numbers of the sweep of ``grid`` on ``workers``, from an empty store."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        cache = directory / "cache"
        cache.mkdir()
        (cache / "engine").symlink_to((cache_directory() / "engine").resolve())
        command = [sys.executable, "-m", "step_hw", "sweep", *grid, "--workers", str(workers), "-o", str(directory)]
        began = time.perf_counter()
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True,
                       env={**os.environ, "STEP_HW_CACHE": str(cache)})
        seconds = time.perf_counter() - began
        document = json.loads((directory / "sweep.json").read_text())
        assert document["evaluated"] == document["points"] == (200 if grid is GRID else 1) and not document["refused"]
        return {"seconds": seconds, "worker_peak_bytes": document["worker_peak_bytes"]}


def spin(seconds: float) -> int:
    """How far a busy loop counts."""
    end, count = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        count += 1
    return count


def cores(seconds: float = 3.0) -> float:
    """How many times as far two busy processes count together as one alone: 2 where nothing else runs."""
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(spin, [0.1, 0.1], chunksize=1)
        [one] = pool.map(spin, [seconds])
        return sum(pool.map(spin, [seconds] * 2, chunksize=1)) / one


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sweep(1, ONE)
    rounds = []
    for _ in range(options.rounds):
        one, two, free = sweep(1), sweep(2), cores()
        rounds.append({"one_worker_seconds": one["seconds"], "two_workers_seconds": two["seconds"],
                       "ratio": one["seconds"] / two["seconds"], "cores": free,
                       "worker_peak_bytes": max(one["worker_peak_bytes"], two["worker_peak_bytes"])})
        print(json.dumps(rounds[-1]), flush=True)
    numbers = {name: statistics.median(row[name] for row in rounds) for name in rounds[0]}
    for name, value in numbers.items():
        print(f"{name:24} {value:,.2f}")
    if options.json:
        options.json.write_text(json.dumps({"median": numbers, "rounds": rounds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
