"""Whole-program runs: a netlist's top, configured, started and clocked to its end, with every transfer recorded.

`build_native` compiles the native main (``native_main.cpp``: Verilator, no cocotb); `run_native` runs it.
`build_program` and `run_program` do the same on either simulator through cocotb (``program_bench.py``): slow, for
small programs, and equal byte for byte.

Ports of the top: ``clk rst cfg_valid cfg_addr[15:0] cfg_data[31:0] start finished error_any status_addr[15:0]
status_data[31:0]``, ``probe_valid[L-1:0] probe_ready[L-1:0] probe_stop[4L-1:0] probe_empty[L-1:0] probe_done[L-1:0]
unit_state[..]``, and optionally ``mem_busy`` (memory activity that is no deadlock), ``dump`` (high in one cycle
after the run: memories write their files) and ``grant_valid[A-1:0] grant_index[8A-1:0]`` (grants of A units that
arbitrate). L is the number of links.

**Cycles** count from 0, the cycle in which ``start`` is high; ``cycles`` is the number of the cycle in which
``finished`` was seen.
"""

import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .build import Build, build
from .errors import BuildError, SimulationFailed, SimulationTimeout
from .process import run_group
from .run import run_cocotb

__all__ = [
    "GRANT",
    "RECORD",
    "NativeRun",
    "ProgramBuild",
    "build_native",
    "build_program",
    "parse_result",
    "run_native",
    "run_program",
]

NATIVE_MAIN = Path(__file__).parent / "native_main.cpp"

#: One transfer in ``records.bin``; flags: 1 empty, 2 done.
RECORD = np.dtype([("cycle", "<u4"), ("link", "<u2"), ("stop", "u1"), ("flags", "u1")])

#: One grant in ``grants.bin``: the arbitrating unit's number and the input that it begins to serve.
GRANT = np.dtype([("cycle", "<u4"), ("unit", "<u2"), ("input", "u1"), ("unused", "u1")])


@dataclass(frozen=True)
class ProgramBuild:
    """A compiled program top: the `Build`, and the number of links."""

    build: Build
    links: int


@dataclass
class NativeRun:
    """What a run left.

    reason : ``"finished"``, ``"error"``, ``"deadlock"``, ``"max_cycles"`` or ``"interrupted"``
    cycles : number of the last cycle, counted from start
    records : every transfer, dtype `RECORD`, by cycle, then link
    transfers, blocked, starved : int64 per link; cycles that moved a beat, of valid without ready, without valid
    valid, ready : bool per link, as they stood in the last cycle
    unit_state : the port's bits
    status : address -> value of the status registers that were asked for
    wall_seconds : of the simulation, its start included
    waves : path of the waveform, if one was asked for
    payloads : per link the payload of every transfer, if they were asked for
    grants : every grant, dtype `GRANT`, by cycle, then unit
    """

    reason: str
    cycles: int
    records: np.ndarray
    transfers: np.ndarray
    blocked: np.ndarray
    starved: np.ndarray
    valid: np.ndarray
    ready: np.ndarray
    unit_state: int
    status: dict[int, int]
    wall_seconds: float = 0.0
    waves: Path | None = None
    payloads: list[list[int]] | None = None
    grants: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=GRANT))

    @property
    def finished(self) -> bool:
        """Whether the program came to its end."""
        return self.reason == "finished"

    def same_as(self, other: "NativeRun") -> bool:
        """Whether another run (on another simulator) did the same: every transfer, every count, every final value."""
        arrays = ("records", "grants", "transfers", "blocked", "starved", "valid", "ready")
        return (self.reason, self.cycles, self.unit_state, self.status) == (
            other.reason,
            other.cycles,
            other.unit_state,
            other.status,
        ) and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays)

    def of_link(self, link: int) -> np.ndarray:
        """Transfers of one link, in order."""
        return self.records[self.records["link"] == link]


def parse_result(directory: Path) -> NativeRun:
    """Read ``result.txt`` and ``records.bin`` of a run."""
    reason, cycles, state = "", 0, 0
    links: list[tuple[int, int, int, int]] = []
    status: dict[int, int] = {}
    for line in (directory / "result.txt").read_text().splitlines():
        key, *rest = line.split()
        if key == "reason":
            reason = rest[0]
        elif key == "cycles":
            cycles = int(rest[0])
        elif key == "link":
            _, transfers, blocked, valid, ready = map(int, rest)
            links.append((transfers, blocked, valid, ready))
        elif key == "unit_state":
            state = int(rest[0], 16)
        elif key == "status":
            status[int(rest[0], 16)] = int(rest[1], 16)
    table = np.asarray(links, dtype=np.int64).reshape(-1, 4)
    grants = directory / "grants.bin"
    return NativeRun(
        reason=reason,
        cycles=cycles,
        records=np.fromfile(directory / "records.bin", dtype=RECORD),
        transfers=table[:, 0],
        blocked=table[:, 1],
        starved=cycles + 1 - table[:, 0] - table[:, 1],
        valid=table[:, 2].astype(bool),
        ready=table[:, 3].astype(bool),
        unit_state=state,
        status=status,
        grants=np.fromfile(grants, dtype=GRANT) if grants.exists() else np.zeros(0, dtype=GRANT),
    )


def build_native(
    verilog: Mapping[str, str] | Sequence[str | os.PathLike],
    top: str,
    links: int,
    *,
    mem_busy: bool = False,
    dump: bool = False,
    grants: int = 0,
    opt: str | None = None,
    trace: bool | None = None,
    arguments: Sequence[str] = (),
    jobs: int = 2,
    cache: str | os.PathLike | None = None,
) -> ProgramBuild:
    """Compile a program top with the native main (Verilator).

    ``mem_busy`` and ``dump`` say which optional ports it has, ``grants`` how many units that arbitrate; ``opt`` is the
    environment's ``STEP_HW_OPT``, else ``"fast"``; see `build.build` for the other parameters and errors.
    """
    flags = ["-CFLAGS", f"-DSTEP_LINKS={links}"]
    if mem_busy:
        flags += ["-CFLAGS", "-DSTEP_MEM_BUSY"]
    if dump:
        flags += ["-CFLAGS", "-DSTEP_DUMP"]
    if grants:
        flags += ["-CFLAGS", f"-DSTEP_GRANTS={grants}"]
    built = build(
        "verilator",
        verilog,
        top,
        vpi=False,
        main=NATIVE_MAIN,
        opt=opt or os.environ.get("STEP_HW_OPT") or "fast",
        trace=trace,
        arguments=[*flags, *arguments],
        jobs=jobs,
        cache=cache,
    )
    return ProgramBuild(built, links)


def build_program(
    simulator: str,
    verilog: Mapping[str, str] | Sequence[str | os.PathLike],
    top: str,
    links: int,
    **options,
) -> ProgramBuild:
    """Compile a program top for a run under cocotb (`run_program`), on either simulator."""
    return ProgramBuild(build(simulator, verilog, top, **options), links)


def _inputs(work: Path, registers: Sequence[tuple[int, int]], status: Sequence[int]) -> list[str]:
    for address, value in registers:
        if not (0 <= address < 1 << 16 and 0 <= value < 1 << 32):
            raise ValueError(f"register write {address:#x} = {value:#x}: addresses have 16 bits, values 32")
    (work / "config.txt").write_text("".join(f"{address:x} {value:x}\n" for address, value in registers))
    (work / "status.txt").write_text("".join(f"{address:x}\n" for address in status))
    return [f"+step_config={work / 'config.txt'}", f"+step_status={work / 'status.txt'}", f"+step_out={work}"]


def _settings(quiet_cycles: int, max_cycles: int, record: bool) -> list[str]:
    return [f"+step_quiet={quiet_cycles}", f"+step_max_cycles={max_cycles}", f"+step_records={int(record)}"]


def run_native(
    program: ProgramBuild,
    registers: Sequence[tuple[int, int]],
    *,
    status: Sequence[int] = (),
    plusargs: Sequence[str] = (),
    quiet_cycles: int = 5000,
    max_cycles: int = 100_000_000,
    record: bool = True,
    waves: str | os.PathLike | None = None,
    trace_from: int = 0,
    trace_to: int | None = None,
    progress: bool = False,
    timeout_s: float | None = None,
) -> NativeRun:
    """Run a program natively.

    ``registers``: (address, value) writes in order. ``status``: addresses to read at the end. ``plusargs`` go to the
    design (memory contents). ``quiet_cycles`` without a transfer (and without ``mem_busy``) are a deadlock.
    ``waves`` with ``trace_from`` .. ``trace_to``: cycles to draw. ``progress``: lines on stderr.

    On Ctrl-C the simulation saves what it has, marked ``interrupted``, and `KeyboardInterrupt` goes on up with the
    `NativeRun` in its ``run``.
    """
    if waves is not None and not program.build.trace:
        raise BuildError(f"{program.build.top} was built without waveforms", fix="build it with trace=True")
    with tempfile.TemporaryDirectory(prefix="step-hw-native-") as temporary:
        work = Path(temporary)
        command: list[str | os.PathLike] = [program.build.executable, *_inputs(work, registers, status)]
        command += _settings(quiet_cycles, max_cycles, record)
        command += [f"+step_progress={int(progress)}", *plusargs]
        path = None
        if waves is not None:
            path = Path(waves).resolve()
            path.parent.mkdir(parents=True, exist_ok=True)
            command += [f"+trace_file={path}", f"+trace_from={trace_from}"]
            command += [] if trace_to is None else [f"+trace_to={trace_to}"]
        began = time.monotonic()
        try:
            done = run_group(
                command,
                cwd=work,
                log=work / "run.log",
                timeout_s=timeout_s,
                interrupt=signal.SIGINT,
                grace_s=30.0,
                stderr=sys.stderr if progress else None,
            )
        except KeyboardInterrupt as interrupt:
            if (work / "result.txt").exists():
                interrupt.run = _read(work, began, path)  # type: ignore[attr-defined]
            raise
        if done.timed_out:
            raise SimulationTimeout(f"{program.build.top}: took more than {timeout_s:g} s")
        if not (work / "result.txt").exists():
            tail = "\n".join(done.output.strip().splitlines()[-15:])
            raise SimulationFailed(f"{program.build.top} left no result (exit {done.returncode}); output:\n{tail}")
        return _read(work, began, path)


def run_program(
    program: ProgramBuild,
    registers: Sequence[tuple[int, int]],
    *,
    status: Sequence[int] = (),
    plusargs: Sequence[str] = (),
    quiet_cycles: int = 5000,
    max_cycles: int = 1_000_000,
    record: bool = True,
    waves: str | os.PathLike | None = None,
    timeout_s: float = 3600.0,
    payloads: Sequence[str] = (),
) -> NativeRun:
    """`run_native` under cocotb, for `build_program` builds (Icarus or Verilator).

    ``payloads``: instance names of all links in order, to have every payload; Verilator needs a build with
    ``public="all"``.
    """
    with tempfile.TemporaryDirectory(prefix="step-hw-program-") as temporary:
        work = Path(temporary)
        arguments = [*_inputs(work, registers, status), *_settings(quiet_cycles, max_cycles, record), *plusargs]
        began = time.monotonic()
        run = run_cocotb(
            program.build,
            "rtl_tests.harness.program_bench",
            env={"STEP_HW_PROGRAM": str(work), "STEP_HW_LINKS": str(program.links),
                 "STEP_HW_PAYLOADS": " ".join(payloads)},
            plusargs=arguments,
            waves=waves,
            timeout_s=timeout_s,
        )
        made = _read(work, began, run.waves)
        if payloads:
            lines = (work / "payloads.txt").read_text().splitlines()
            made.payloads = [[int(word, 16) for word in line.split()] for line in lines]
        return made


def _read(work: Path, began: float, waves: Path | None) -> NativeRun:
    run = parse_result(work)
    run.wall_seconds = time.monotonic() - began
    run.waves = waves
    return run
