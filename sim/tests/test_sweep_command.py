"""``step-hw sweep`` as a process: its files, its messages, and that no kill loses a finished point."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyarrow import parquet

from sim.calibration import Calibration
from sim.memory import CALIBRATION
from sim.tests.sweep_cases import fresh_cache
from step_hw.tests.command import COPY, environment, step_hw, write
from step_hw.tests.test_interrupt import alive, descendants, wait_for

SLOW = ("--set", "rows=21,22,23,24,25,26,27,28", "--set", "cols=16", "--hw", "tile.size=4", "--hw",
        "memory.interval=6000")
"""Eight points that take long enough to be caught at it."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")


class Sweep:
    """A sweep of ``COPY`` as a process, in a session of its own, with a cache of its own."""

    def __init__(self, directory: Path, *arguments: object):
        self.directory, self.out = directory, directory / "out"
        self.cache = directory / "cache"
        if not self.cache.exists():
            fresh_cache(self.cache)
            write(directory, COPY)
        self.arguments = [sys.executable, "-m", "step_hw", "sweep", "program.py", "-o", str(self.out),
                          *map(str, arguments)]

    def start(self) -> subprocess.Popen:
        return subprocess.Popen(self.arguments, cwd=self.directory, start_new_session=True, text=True,
                                env=environment(STEP_HW_CACHE=str(self.cache)), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def finished(self) -> list[dict]:
        """Rows that are finished while it runs."""
        path = self.out / "rows.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def entries(self) -> dict[str, int]:
        """Entries of the store, and when they were written."""
        return {path.name: path.stat().st_mtime_ns for path in (self.cache / "sweep").glob("*/*.json")}

    def result(self) -> dict:
        return json.loads((self.out / "sweep.json").read_text())


def workers(pid: int) -> list[int]:
    """Worker processes below a sweep."""
    found = []
    for child in descendants(pid):
        try:
            text = Path(f"/proc/{child}/cmdline").read_text()
        except OSError:
            continue
        if "spawn_main" in text or "forkserver" in text:
            found.append(child)
    return found


def test_files_and_numbers(tmp_path):
    sweep = Sweep(tmp_path, "--set", "rows=2,7,1,3", "--hw", "tile.size=4,5", "--json", tmp_path / "numbers.json")
    write(tmp_path, COPY.replace("    with", "    if rows == 7:\n        __import__('os')._exit(1)\n    with", 1))
    process = sweep.start()
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    document = json.loads((tmp_path / "numbers.json").read_text())
    rows = document["rows"]
    assert [(row["rows"], row["tile.size"]) for row in rows] == [(n, t) for n in (2, 7, 1, 3) for t in (4, 5)]
    good = [True, False, False, False, True, False, True, False]
    assert [row["error"] is None for row in rows] == good and "tile.size': 5 vs 2, 4" in rows[1]["error"]
    assert rows[2]["error"].startswith("its worker died each time")
    assert document["points"] == 8 and document["refused"] == 5 and document["complete"]
    assert [row["pareto"] for row in rows] == [False] * 4 + [True] + [False] * 3
    assert parquet.read_table(sweep.out / "sweep.parquet").to_pylist() == rows
    assert len((sweep.out / "sweep.csv").read_text().splitlines()) == 9
    # A point that the dead worker had finished, but not told, comes from the cache.
    assert re.search(r"points: 8, of which [01] from the cache, 5 refused", out) and "refused: " in out
    picture = (sweep.out / "pareto.svg").read_bytes()
    sweep.arguments[sweep.arguments.index("rows=2,7,1,3")] = "rows=2,1,3"
    sweep.arguments += ["--search", "6", "--workers", "1"]  # once more, from what is kept, in another order
    process = sweep.start()
    assert process.communicate(timeout=240) and process.returncode == 0
    again = json.loads((tmp_path / "numbers.json").read_text())
    assert again["from_cache"] == 3 and again["searched"] and again["saved"] == 0
    assert again["rows"] == [row for row in rows if row["rows"] != 7]
    assert (sweep.out / "pareto.svg").read_bytes() == picture


def test_kills_lose_no_finished_point(tmp_path):
    sweep = Sweep(tmp_path, *SLOW)
    process = sweep.start()

    def runs_until(ready) -> None:
        wait_for(lambda: process.poll() is not None or ready())
        assert process.poll() is None, process.communicate()

    try:
        runs_until(lambda: sweep.finished())
        first = workers(process.pid)
        os.kill(first[-1], signal.SIGKILL)
        before = sweep.entries()
        runs_until(lambda: len(sweep.finished()) >= len(before) + 2 and set(workers(process.pid)) - set(first))
        below = descendants(process.pid)
    finally:
        process.kill()
    process.communicate(timeout=240)
    finished = sweep.finished()
    wait_for(lambda: not any(map(alive, below)), 60)
    kept = sweep.entries()
    assert 3 <= len(finished) <= len(kept) < 8
    process = sweep.start()
    assert process.communicate(timeout=240) and process.returncode == 0
    document = sweep.result()
    assert document["complete"] and document["refused"] == 0 and len(document["rows"]) == 8
    assert document["from_cache"] == len(kept) and document["evaluated"] == 8 - len(kept)
    assert {name: sweep.entries()[name] for name in kept} == kept, "a finished point was evaluated again"
    by_rows = {row["rows"]: row for row in document["rows"]}
    for row in finished:
        assert {name: by_rows[row["rows"]][name] for name in row} == row


def test_interrupt_leaves_finished_rows(tmp_path):
    sweep = Sweep(tmp_path, *SLOW, "--workers", 1)
    process = sweep.start()
    try:
        wait_for(lambda: process.poll() is not None or len(sweep.finished()) >= 2)
        below = descendants(process.pid)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
        _, err = process.communicate(timeout=240)
    finally:
        process.kill()
    assert process.returncode == 2 and "Traceback" not in err, err
    wait_for(lambda: not any(map(alive, below)), 60)
    rows = sweep.finished()
    [told] = [line for line in err.splitlines() if line.startswith("interrupted: ")]
    assert told == (f"interrupted: {len(rows)} of 8 points finished, in {sweep.out}; "
                    "the same command goes on from there")
    document = sweep.result()
    assert not document["complete"] and len(document["rows"]) == len(rows) < 8
    assert parquet.read_table(sweep.out / "sweep.parquet").num_rows == len(rows)


CASES = {
    "no such parameter": (("--set", "depth=1,2"), r"'depth' vs one of rows, cols, t"),
    "no such key": (("--hw", "tile.sise=4"), r"--hw tile.sise=4: unknown key 'tile.sise' vs tile.size, tile.k"),
    "no hardware at all": (("--hw", "tile.size=5,6"), r"'tile.size': 5 vs 2, 4, 8, 16"),
    "value twice": (("--set", "rows=1,1"), r"'rows' of the sweep: value 1 twice"),
    "objective": (("--objectives", "speed"), r"objective: 'speed' vs one of cycles"),
    "fidelity": (("--fidelity", "exact"), r"--fidelity: 'exact' vs one of beat, tile"),
    "two places": (("--scheduler", "tcp://a:1", "--cluster", "x.toml"), r"both vs one of them"),
    "no profile": (("--cluster", "none.toml"), r"cluster profile none.toml: No such file"),
    "machine at beat fidelity": (("--machine", "paper"), r"--machine paper vs --fidelity beat; fix: add"),
    "key of another machine": (("--fidelity", "tile", "--machine", "paper", "--hw", "roofline.depht=1"),
                               r"unknown key 'roofline.depht' vs roofline.compute_bw"),
    "no such machine": (("--fidelity", "tile", "--machine", "none.toml"), r"machine 'none.toml': No such file"),
    "little memory": (("--memory", "10MB"), r"--memory: 10MB vs at least 512MiB"),
    "memory": (("--memory", "much"), r"--memory: 'much' vs a size"),
}


@pytest.mark.parametrize("name", CASES)
def test_mistakes(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, told = CASES[name]
    found = step_hw("sweep", write(tmp_path, COPY), "-o", tmp_path / "out", *arguments)
    assert found.code == 2 and found.out == "" and not (tmp_path / "out" / "sweep.json").exists()
    assert len(found.err.splitlines()) == 1
    assert re.search(told, found.err), found.err


def test_a_calibration_of_other_hardware(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Calibration("0" * 16, dict.fromkeys(CALIBRATION, 0)).save(tmp_path / "other.toml")
    found = step_hw("sweep", write(tmp_path, COPY), "--hw", "tile.size=2,4", "--calibration", "other.toml")
    assert found.code == 2 and "calibration file other.toml is of other hardware" in found.err
    assert len(found.err.splitlines()) == 1


def test_unreachable_scheduler(tmp_path, monkeypatch):
    monkeypatch.setattr("sim.sweep.cluster.CONNECT_SECONDS", 1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        began = time.monotonic()
        found = step_hw("sweep", write(tmp_path, COPY), "-o", tmp_path / "out", "--scheduler", address)
    assert found.code == 2 and time.monotonic() - began < 30
    assert [line for line in found.err.splitlines() if line.startswith("error:")] == found.err.splitlines()[-1:]
    assert f"error: scheduler {address}: " in found.err
