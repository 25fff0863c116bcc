"""Run a cocotb test module on a build, and bring its failure up to pytest as it was said."""

import os
import re
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .build import Build
from .errors import BuildError, SimulationFailed, SimulationTimeout, SimulatorError
from .process import run_group

__all__ = ["CocotbRun", "TestOutcome", "default_seed", "run_cocotb"]

DEFAULT_SEED = 20260101


@dataclass(frozen=True)
class TestOutcome:
    """One cocotb test: its name, and the message it failed with (None: passed)."""

    __test__ = False  # not a class for pytest to collect

    name: str
    failure: str | None


@dataclass(frozen=True)
class CocotbRun:
    """Outcome of one simulation: the tests, the seed, the simulator's output, the waveform's path if one was made."""

    outcomes: tuple[TestOutcome, ...]
    seed: int
    log: str
    waves: Path | None


def default_seed() -> int:
    """The seed of every random choice: ``STEP_HW_SEED``, else a fixed one, so that a run can be repeated."""
    return int(os.environ.get("STEP_HW_SEED", DEFAULT_SEED))


def _environment(build: Build, module: str, seed: int, results: Path, extra: Mapping[str, str]) -> dict[str, str]:
    import cocotb.simulator
    import find_libpython

    library = find_libpython.find_libpython()
    if library is None:
        raise SimulatorError(
            "cocotb needs Python's shared library, which this Python does not have",
            fix=f"sudo apt-get install libpython3.{sys.version_info.minor}",
        )
    from cocotb_tools import config

    entry = f"{Path(cocotb.simulator.__file__).resolve()},initialize"
    environment = dict(os.environ)
    environment |= {
        "COCOTB_TEST_MODULES": module,
        "COCOTB_TOPLEVEL": build.top,
        "COCOTB_RANDOM_SEED": str(seed),
        "COCOTB_RESULTS_FILE": str(results),
        "COCOTB_LOG_LEVEL": environment.get("COCOTB_LOG_LEVEL", "WARNING"),
        "TOPLEVEL_LANG": "verilog",
        "PYGPI_PYTHON_BIN": sys.executable,
        "PYTHONPATH": os.pathsep.join([os.getcwd(), *filter(None, sys.path)]),
        "GPI_USERS": f"{library};{entry}",
        "PATH": environment.get("PATH", "") + os.pathsep + str(config.libs_dir),
        # The loop of vpi_main.cpp does not queue deposits; cocotb shall apply writes itself, in the read-write phase.
        "COCOTB_TRUST_INERTIAL_WRITES": "0",
    }
    environment.pop("COCOTB_TEST_FILTER", None)
    environment.pop("PYTEST_CURRENT_TEST", None)  # this is no pytest process
    environment |= extra
    return environment


def _outcomes(path: Path) -> tuple[TestOutcome, ...]:
    """Read cocotb's xUnit file."""
    found = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        failure = None
        for child in case:
            if child.tag in ("failure", "error"):
                failure = (child.get("message") or child.get("error_msg") or child.text or "failed").strip()
                kind = child.get("type") or child.get("error_type")
                if kind and kind != "AssertionError" and not failure.startswith(kind):
                    failure = f"{kind}: {failure}"
        found.append(TestOutcome(case.get("name", "?"), failure))
    return tuple(found)


def run_cocotb(
    build: Build,
    test_module: str,
    *,
    testcase: str | Sequence[str] | None = None,
    seed: int | None = None,
    env: Mapping[str, str] | None = None,
    waves: bool | str | os.PathLike | None = None,
    timeout_s: float = 600.0,
    plusargs: Sequence[str] = (),
    check: bool = True,
) -> CocotbRun:
    """Simulate ``build`` under the cocotb tests of ``test_module`` (an importable name).

    ``waves``: True, or a path, for a waveform; default is the environment's ``STEP_HW_WAVES``. The path is printed.
    ``seed``: default `default_seed`; printed, so that a failing run can be repeated with ``STEP_HW_SEED``.

    With ``check``, raises `SimulationFailed` with the message of the first failing test. Raises `SimulationTimeout`
    after ``timeout_s`` seconds of wall-clock time.
    """
    if seed is None:
        seed = default_seed()
    if waves is None:
        waves = os.environ.get("STEP_HW_WAVES", "0") not in ("", "0")
    with tempfile.TemporaryDirectory(prefix="step-hw-run-") as temporary:
        work = Path(temporary)
        results = work / "results.xml"
        extra = dict(env or {})
        if testcase is not None:
            names = [testcase] if isinstance(testcase, str) else list(testcase)
            extra["COCOTB_TEST_FILTER"] = r"\.(" + "|".join(map(re.escape, names)) + ")$"
        environment = _environment(build, test_module, seed, results, extra)

        waves_path = None
        arguments = list(plusargs)
        if waves:
            if not build.trace:
                raise BuildError(
                    f"{build.top} was built without waveforms; build it with trace=True or STEP_HW_WAVES=1"
                )
            if waves is True:
                waves_path = (
                    Path(os.environ.get("STEP_HW_WAVES_DIR", "waves")).resolve() / f"{build.top}-{build.simulator}.fst"
                )
            else:
                waves_path = Path(waves).resolve()
            waves_path.parent.mkdir(parents=True, exist_ok=True)
            arguments.append(f"+trace_file={waves_path}")

        if build.simulator == "icarus":
            from cocotb_tools import config

            command: list[str | os.PathLike] = [
                "vvp",
                "-m",
                config.lib_name_path("vpi", "icarus"),
                build.executable,
                "-fst" if waves else "-none",
            ]
        else:
            command = [build.executable]
        done = run_group(
            [*command, *arguments], cwd=work, log=work / "simulation.log", env=environment, timeout_s=timeout_s
        )
        print(f"{build.top} on {build.simulator}: seed {seed} (repeat with STEP_HW_SEED={seed})")
        if waves_path is not None:
            print(f"waveform: {waves_path}")
        tail = "\n".join(done.output.strip().splitlines()[-25:])
        if done.timed_out:
            raise SimulationTimeout(
                f"{build.top} on {build.simulator} took more than {timeout_s:g} s; last output:\n{tail}"
            )
        if not results.exists():
            raise SimulationFailed(
                f"{build.top} on {build.simulator} left no results (exit {done.returncode}); output:\n{tail}"
            )
        run = CocotbRun(_outcomes(results), seed, done.output, waves_path)
    if not run.outcomes:
        raise SimulationFailed(f"no cocotb test named {testcase!r} in {test_module}; output:\n{tail}")
    if check:
        failed = [outcome for outcome in run.outcomes if outcome.failure is not None]
        if failed:
            more = f"\n({len(failed) - 1} more tests failed)" if len(failed) > 1 else ""
            raise SimulationFailed(f"{failed[0].name} on {build.simulator}, seed {seed}:\n{failed[0].failure}{more}")
    return run
