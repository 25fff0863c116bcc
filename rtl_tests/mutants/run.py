"""Run a unit's bench against a fault."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass

from .fault import ROOT, Fault, FaultError, Unit
from .hook import UNUSED, VARIABLE

__all__ = ["Outcome", "baseline", "run"]

#: How a bench says that it caught something; anything else (a TypeError, say) means that the fault does not elaborate.
_CAUGHT = re.compile(r"^(AssertionError|assert |Failed|rtl_tests\.harness\.errors\.Simulation(Failed|Timeout)|"
                     r"step_lang\.errors\.(RtlError|DeadlockError|SimulatorError|ArbitrationError))")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?)(?: - (.*))?$", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What the bench made of a fault: the test that caught it (None: it survived), the message's beginning, seconds."""

    fault: Fault
    test: str | None
    message: str
    seconds: float

    @property
    def caught(self) -> bool:
        return self.test is not None


def run(unit: Unit, fault: Fault, timeout_s: float = 900.0) -> Outcome:
    """The bench up to its first failure. Raises `FaultError` for a fault that cannot be seeded or that does not
    elaborate, which would prove nothing."""
    fault.apply((ROOT / fault.file).read_text())
    began = time.monotonic()
    status, output = _pytest(unit, timeout_s, {VARIABLE: fault.name})
    seconds = time.monotonic() - began
    if status == 0:
        return Outcome(fault, None, "", seconds)
    if status == UNUSED:
        raise FaultError(f"fault {fault.name}: the bench of {unit.name} does not use {fault.file}")
    failed = _FAILED.search(output)
    if status != 1 or failed is None:
        raise FaultError(f"fault {fault.name}: pytest ended with status {status}\n{output[-2000:]}")
    test, message = failed[1], failed[2] or ""
    if not _CAUGHT.match(message):
        raise FaultError(f"fault {fault.name} does not elaborate, in {test}: {message}")
    return Outcome(fault, test, message, seconds)


def baseline(unit: Unit, timeout_s: float = 900.0) -> None:
    """The bench passes without a fault; else what it catches says nothing. Raises `FaultError`."""
    status, output = _pytest(unit, timeout_s, {})
    if status != 0:
        raise FaultError(f"the bench of {unit.name} does not pass without a fault\n{output[-2000:]}")


def _pytest(unit: Unit, timeout_s: float, extra: dict[str, str]) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-rfE", "-p", "no:cacheprovider",
               "-p", "rtl_tests.mutants.hook", "-k", "icarus", "-m", "not deep", *unit.bench]
    environment = {name: value for name, value in os.environ.items() if name not in (VARIABLE, "PYTEST_ADDOPTS")}
    environment |= {"COLUMNS": "400", **extra}
    done = subprocess.run(command, cwd=ROOT, env=environment, text=True, timeout=timeout_s, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout
