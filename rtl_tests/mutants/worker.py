"""``python -m rtl_tests.mutants.worker``: runs pytest for each request on its standard input, in a fork of itself.

Of a bench that ends at its first failure most time is imports. This process has imported everything but `step_hw`, in
which the faults are, and forks for each run. A request is a line of JSON, ``[arguments, environment, timeout_s]``;
so is the answer: ``[exit status of pytest or null where time ran out, output]``.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence

import pytest

__all__ = ["FORGOTTEN"]

FORGOTTEN = ("STEP_HW_FAULT", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST")
"""Environment variables that no run inherits."""

_PRELOADED = (
    "amaranth.back.verilog", "amaranth.hdl", "amaranth.lib.data", "amaranth.lib.fifo", "amaranth.lib.memory",
    "amaranth.lib.stream", "amaranth.lib.wiring", "cocotb", "cocotb_tools.config", "find_libpython", "platformdirs",
    "rtl_tests.harness", "rtl_tests.harness.bench", "sim.prediction", "step_lang.ops", "step_lang.worked_examples",
)
_GRACE_S = 10.0


def main() -> None:
    for name in _PRELOADED:
        importlib.import_module(name)
    faulty = sorted(name for name in sys.modules if name.partition(".")[0] == "step_hw")
    assert not faulty, f"{', '.join(faulty)} imported before a fault could be seeded"
    gc.collect()
    gc.freeze()  # what the children share with this process stays shared
    for line in sys.stdin:
        print(json.dumps(_run(*json.loads(line))), flush=True)


def _run(arguments: Sequence[str], environment: Mapping[str, str], timeout_s: float) -> tuple[int | None, str]:
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            _become_pytest(arguments, environment, output.fileno())
        ended = os.pidfd_open(child)
        status = None
        try:
            if select.select([ended], [], [], timeout_s)[0]:
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        finally:
            if status is None:
                _end(child, ended)
            os.close(ended)
        output.seek(0)
        return status, output.read().decode(errors="replace")


def _become_pytest(arguments: Sequence[str], environment: Mapping[str, str], output: int) -> None:
    """In the child: never returns."""
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which a process in the background ignores
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for name in FORGOTTEN:
            os.environ.pop(name, None)
        os.environ.update(environment)
        status = int(pytest.main(list(arguments)))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _end(child: int, ended: int) -> None:
    """Interrupt the child, which ends its simulator; kill it if it does not end."""
    os.kill(child, signal.SIGINT)
    if not select.select([ended], [], [], _GRACE_S)[0]:
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)


if __name__ == "__main__":
    main()
