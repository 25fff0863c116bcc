"""Run a unit's bench against a fault."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache

from rtl_tests.harness.bench import FIRST_FAILURE

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
    """The bench up to its first failure, ``fault.first`` before the rest. Raises `FaultError` for a fault that cannot
    be seeded or that does not elaborate, which would prove nothing, and when time runs out."""
    fault.apply((ROOT / fault.file).read_text())
    began = time.monotonic()
    status: int | None = 0
    for chosen in filter(None, (fault.first, "icarus")):
        status, output = _pytest(unit, timeout_s, {VARIABLE: fault.name}, chosen)
        if status != 0:
            break
    seconds = time.monotonic() - began
    if status == 0:
        return Outcome(fault, None, "", seconds)
    if status is None:
        raise FaultError(f"fault {fault.name}: the bench of {unit.name} takes more than {timeout_s:g} s")
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


class _Worker:
    """A process of `rtl_tests.mutants.worker`; it ends with this one."""

    def __init__(self) -> None:
        self._process = subprocess.Popen([sys.executable, "-m", "rtl_tests.mutants.worker"], cwd=ROOT, text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, arguments: list[str], environment: dict[str, str], timeout_s: float) -> tuple[int | None, str]:
        """Exit status of pytest (None: time ran out) and its output. Raises `FaultError` when the worker is gone."""
        assert self._process.stdin is not None and self._process.stdout is not None
        answer = ""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps([arguments, environment, timeout_s]) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        if not answer:
            _worker.cache_clear()
            raise FaultError(f"rtl_tests.mutants.worker ended with status {self._process.wait()}; see its messages")
        status, output = json.loads(answer)
        return status, output


@cache
def _worker() -> _Worker:
    return _Worker()


def _pytest(unit: Unit, timeout_s: float, extra: dict[str, str], chosen: str = "icarus") -> tuple[int | None, str]:
    arguments = ["-q", "-x", "--tb=no", "-rfE", "-p", "no:cacheprovider", "-p", "no:unraisableexception",
                 "-p", "rtl_tests.mutants.hook", "-k", f"icarus and ({chosen})", "-m", "not deep", *unit.bench]
    # Hypothesis' plugin alone, which no bench needs, would take longer than most simulations.
    environment = {"COLUMNS": "400", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", FIRST_FAILURE: "1"}
    return _worker().run(arguments, environment | extra, timeout_s)
