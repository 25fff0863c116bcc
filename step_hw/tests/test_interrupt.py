"""Ctrl-C in the middle of a simulation: exit 2, one message, finished rows are there, and nothing runs on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from step_hw.tests.command import COPY, T4, environment, write

# A channel that takes a burst every 60,000 cycles: the second size takes hours, the first one hardly any time.
SLOW = (*T4, "--hw", "memory.interval=60000")
LONG = COPY + '\nSWEEPS["long"] = [{"rows": 1, "cols": 1}, {"rows": 64, "cols": 64}]\n'


def descendants(pid: int) -> list[int]:
    """Processes below ``pid``, from /proc."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):  # it ended while we looked
                pass
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(what, seconds: float = 240.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.05)


def interrupted(arguments: list, directory: Path, ready) -> tuple[int, str, str]:
    """Start a command, send SIGINT when it simulates and ``ready()``; exit code, stdout, stderr."""
    process = subprocess.Popen(
        [sys.executable, "-m", "step_hw", *map(str, arguments)],
        cwd=directory,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:

        def simulating() -> bool:
            assert process.poll() is None, process.communicate()
            return ready() and any(
                Path(f"/proc/{pid}/exe").exists() and os.readlink(f"/proc/{pid}/exe").endswith("/design")
                for pid in descendants(process.pid)
            )

        wait_for(simulating)
        below = descendants(process.pid)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert not [pid for pid in below if alive(pid)]
    return process.returncode, out, err


pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")


def test_validate(tmp_path):
    program = write(tmp_path, LONG)
    out = tmp_path / "out"
    rows = out / "rows.jsonl"
    code, _, err = interrupted(
        ["validate", program, *SLOW, "-o", out, "--sweep", "long", "--jobs", 1],
        tmp_path,
        lambda: rows.exists() and rows.read_text().endswith("\n"),
    )
    assert code == 2 and "Traceback" not in err
    assert [line for line in err.splitlines() if line.startswith("interrupted: ")] == [
        f"interrupted: 1 of 2 rows finished, in {rows}; finished builds are kept"
    ]
    [row] = [json.loads(line) for line in rows.read_text().splitlines()]
    assert row["parameters"] == {"rows": 1, "cols": 1} and row["bit_exact"]
    assert [p.name for p in out.iterdir()] == ["rows.jsonl"]


def test_cosim(tmp_path):
    program = write(tmp_path, LONG)
    out = tmp_path / "out"
    code, printed, err = interrupted(
        ["cosim", program, *SLOW, "-o", out, "--set", "rows=64", "--set", "cols=64"], tmp_path, lambda: True
    )
    assert (code, printed) == (2, "") and "Traceback" not in err
    assert len([line for line in err.splitlines() if line.startswith("interrupted: ")]) == 1
    assert not list(out.glob("*.part")) and not (out / "result.json").exists() and not (out / "y.npy").exists()
