"""The harness against units with known faults: each must be found, by its own message, on both simulators."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rtl_tests.harness import (
    Case,
    LinkLayout,
    after_valid,
    assert_same_on_both,
    beats,
    bench_unit,
    bench_verilog,
    bernoulli,
    bursts,
    failures,
    never,
    random_element,
    random_stream,
    show,
)
from rtl_tests.harness.build import build, cache_directory, find_simulator, installed
from rtl_tests.harness.errors import BuildError, SimulationFailed, SimulationTimeout, SimulatorError
from rtl_tests.harness.run import run_cocotb
from step_hw.beat import BeatLayout
from step_hw.link import LinkFIFO

LAYOUT = LinkLayout(8, 1)

# One register between input and output (latency 1, a beat a cycle), with a fault chosen by a register (so that one
# build shows all of them).
TOY = """
module toy(
  input clk, input rst,
  input [14:0] in0__payload, input in0__valid, output in0__ready,
  output [14:0] out0__payload, output out0__valid, input out0__ready,
  input [3:0] cfg__add, input [3:0] cfg__fault, output reg [3:0] error, output [3:0] state
);
  reg full, ready_seen, unknown, stalled;
  reg [14:0] held;
  reg [3:0] count;
  wire take = in0__valid & in0__ready;
  wire done = in0__payload[14];
  wire drop = cfg__fault == 1 & count == 3;
  assign in0__ready = ~full | (out0__ready & out0__valid);
  assign out0__valid = cfg__fault == 3 ? full & ~stalled :
                       cfg__fault == 4 ? full & out0__ready :
                       cfg__fault == 5 ? full & ready_seen :
                       cfg__fault == 6 ? full | (unknown & count > 3) : full;
  assign out0__payload = held;
  assign state = count;
  always @(posedge clk) begin
    ready_seen <= out0__ready;
    stalled <= out0__valid & ~out0__ready;
    if (cfg__fault == 2 & full & ~out0__ready) held[7:0] <= held[7:0] + 1;
    if (out0__valid & out0__ready) begin
      full <= cfg__fault == 7 & held[14];
      if (cfg__fault == 7) held <= 15'h100;
    end
    if (take) begin
      full <= ~drop;
      held <= in0__payload + (in0__payload[13] ? 0 : cfg__add);
      if (cfg__fault == 8 & in0__payload[13] & ~done) held[0] <= 1;
      if (cfg__fault == 9 & count == 5) error <= 3;
      count <= done ? 0 : count + 1;
    end
    if (rst) begin
      full <= 0; count <= 0; error <= 0; stalled <= 0; ready_seen <= 0;
    end
  end
endmodule
"""

STREAM = beats("1 2 S1 S1 3 S2 4 5 6 S2 D")


VERILOG = {"toy.v": TOY}


def bench_toy(simulator: str, cases: list[Case], **options):
    registers = {"add": "cfg__add", "fault": "cfg__fault"}
    return bench_verilog(simulator, VERILOG, "toy", {"in0": LAYOUT, "out0": LAYOUT}, cases, cfg=registers, **options)


def run_toy(simulator: str, fault: int, case: Case) -> str | None:
    """The problem that the bench finds."""
    (result,) = bench_toy(simulator, [replace(case, cfg={"fault": fault})], check=False)
    return result.problem


def pressed(**changes) -> Case:
    settings: dict[str, Any] = {"inputs": {"in0": STREAM}, "expected": {"out0": STREAM}, "sink": bursts(2, 4)} | changes
    return Case("pressed", **settings)


def test_sound_toy_passes_and_is_measured(simulator):
    plus = [beat if beat.empty else beat._replace(data=beat.data + 3) for beat in STREAM]
    cases = [
        Case("free", {"in0": STREAM}, {"out0": STREAM}),
        Case("configured", {"in0": STREAM}, {"out0": plus}, cfg={"add": 3}, drive=bernoulli(0.5), sink=bernoulli(0.5)),
        Case("goes on", {"in0": STREAM * 2}, {"out0": STREAM * 2}, reset=False, sink=after_valid(3)),
        Case("not compared", {"in0": STREAM}, quiet=20),
    ]
    results = bench_toy(simulator, cases)
    free = results[0]
    assert free.latency("in0", "out0") == [1] * len(STREAM) and free.interval("in0") == [1] * (len(STREAM) - 1)
    assert free.latency("in0", "out0", [(0, 2)]) == [3]
    assert free.stamps["in0"][0] == 0 and free.blocked == {"in0": 0, "out0": 0}
    assert show(results[3].beats["out0"]) == show(STREAM)
    assert results[2].blocked["out0"] >= 3 * len(STREAM)


@pytest.mark.parametrize(
    "fault, case, message",
    [
        (1, pressed(), r"out0: 7 of 8 given[\s\S]*out0: beat 3 differs in data, stop"),
        (2, pressed(), "payload changed in cycle"),
        (3, pressed(), "valid dropped in cycle"),
        (4, pressed(), "valid or payload depends on ready in cycle"),
        (5, pressed(sink=after_valid()), "ready was withheld: valid must not wait for it"),
        (7, pressed(sink=None), "after done, before the next stream began"),
        (8, pressed(), "malformed beat .* empty with data"),
        (9, pressed(), r"the unit raised error 3 \(ADDRESS_RANGE\)"),
        (0, pressed(expected={"out0": beats("1 2 S1 S1 3 S2 4 9 6 S2 D")}), "out0: beat 5 differs in data"),
        (0, pressed(expected={"out0": STREAM[:-1]}), "out0: beat 7 is one too many"),
        (0, pressed(expected={"out0": STREAM[:-1]}, sink=bursts(1, 90), tail=2), "out0: offers D after all 7 expected"),
        (0, pressed(error=3, quiet=30), "did not raise error 3"),
        (0, pressed(sink=never(), quiet=30), "stuck: no transfer for 30 cycles"),
        (0, pressed(max_rank={"out0": 1}), "above the stream's rank 1"),
        (0, pressed(max_cycles=5), "not finished after 5 cycles"),
    ],
)
def test_fault_is_found_by_its_message(simulator, fault, case, message):
    found = run_toy(simulator, fault, case)
    assert found is not None and re.search(message, found), found


def test_unknown_bits_are_found():
    """Only Icarus has X."""
    if installed("icarus") is not None:
        pytest.skip(str(installed("icarus")))
    assert "out0: valid is X in cycle" in str(run_toy("icarus", 6, pressed(drive=bernoulli(0.3), sink=None)))


def test_expected_error_is_accepted(simulator):
    assert run_toy(simulator, 9, pressed(error=3)) is None


def test_all_failing_cases_are_listed(simulator):
    cases = [pressed(expected={"out0": beats("9")}), Case("fine", {"in0": STREAM}, {"out0": STREAM})]
    with pytest.raises(AssertionError, match=r"(?s)1 of 2 cases failed.*case pressed: out0: beat 0 differs in data"):
        bench_toy(simulator, cases)


def test_case_naming_an_unknown_port_is_refused():
    with pytest.raises(ValueError, match="no input 'in1'; it has in0"):
        bench_toy("icarus", [Case("x", {"in1": STREAM})])


def test_link_is_the_same_on_both(both_simulators):
    layout = LinkLayout(16, 3)
    rng = Random(7)
    cases = []
    for number in range(6):
        stream = random_stream(rng, 2, lambda: random_element(rng, layout), 4) * 3
        cases.append(
            Case(f"random {number}", {"in0": stream}, {"out0": stream}, drive=bernoulli(0.7), sink=bursts(4, 4))
        )
    unit = LinkFIFO(BeatLayout(16, 4), depth=3)
    one, other = (bench_unit(simulator, unit, cases) for simulator in both_simulators)
    assert_same_on_both(one, other)
    assert not failures(one)
    moved = other[0].stamps["out0"]
    moved[-1] += 1
    with pytest.raises(AssertionError, match="case random 0, out0, transfer"):
        assert_same_on_both(one, other)


def test_payload_of_thousands_of_bits_arrives(simulator):
    """Verilator's VPI drops, by default without a word, what is wider than 2048 bits."""
    layout = LinkLayout(12345, 5)
    rng = Random(9)
    stream = random_stream(rng, 1, lambda: random_element(rng, layout, 16), 3, outer=3)
    bench_unit(simulator, LinkFIFO(BeatLayout(12345, 16)), [Case("wide", {"in0": stream}, {"out0": stream})])


def test_seed_changes_the_cycles_and_repeats_them(simulator):
    stream = STREAM * 4
    case = [Case("c", {"in0": stream}, {"out0": stream}, drive=bernoulli(0.5))]
    runs = [bench_toy(simulator, case, seed=seed) for seed in (1, 1, 2)]
    assert_same_on_both(runs[0], runs[1])
    assert runs[0][0].stamps != runs[2][0].stamps


class _AddWriter:
    """Agent that changes a register in mid-run, and notes when."""

    def __init__(self, dut, case):
        self.port, self.when = dut.cfg__add, case.extra

    def clear(self) -> None:
        self.note: int | None = None

    def drive(self, cycle: int) -> None:
        from cocotb.handle import Immediate

        if cycle == self.when:
            self.port.set(Immediate(1))
            self.note = cycle

    def sample(self, cycle: int) -> None:
        pass


def add_writer(dut, case) -> list:
    """Further agents of the test below."""
    return [_AddWriter(dut, case)]


def test_further_agents_serve_and_note(simulator):
    stream, expected = beats("1 2 3 4 D"), beats("1 2 4 5 D")
    case = Case("changed from cycle 2 on", {"in0": stream}, {"out0": expected}, extra=2)
    (result,) = bench_toy(simulator, [case], agents="rtl_tests.test_harness:add_writer")
    assert result.notes == [2]


# Building and running


def test_build_is_found_again_and_depends_on_content(simulator, tmp_path):
    first = build(simulator, VERILOG, "toy", cache=tmp_path)
    again = build(simulator, VERILOG, "toy", cache=tmp_path)
    assert not first.cached and again.cached and first.executable == again.executable and first.executable.exists()
    assert [path.name for path in (tmp_path / "builds").iterdir()] == [first.directory.name], (
        "nothing half-built is left"
    )
    before = first.executable.stat().st_mtime_ns
    if simulator == "icarus":  # the same rules for both; one compilation is enough
        other = build(simulator, VERILOG, "toy", defines={"CHANGED": 1}, cache=tmp_path)
        assert other.directory != first.directory and first.executable.stat().st_mtime_ns == before


def _build_in_a_process(simulator: str, cache: Path) -> subprocess.Popen:
    script = f"""
from rtl_tests.harness.build import build
print(build({simulator!r}, {VERILOG!r}, "toy", cache={str(cache)!r}).cached)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", script], stdout=pipe, stderr=pipe, text=True, env=environment)


def test_processes_at_once_build_once(tmp_path):
    if installed("icarus") is not None:
        pytest.skip(str(installed("icarus")))
    children = [_build_in_a_process("icarus", tmp_path) for _ in range(3)]
    outputs = sorted(child.communicate(timeout=120)[0].strip() for child in children)
    assert outputs == ["False", "True", "True"]


def test_interrupted_build_leaves_nothing(tmp_path):
    if installed("verilator") is not None:
        pytest.skip(str(installed("verilator")))
    child = _build_in_a_process("verilator", tmp_path)
    builds = tmp_path / "builds"
    deadline = time.monotonic() + 60
    while not list(builds.glob(".building-*/obj/Vtop.mk")):  # into the C++ compilation
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors and list(builds.iterdir()) == []


def test_builds_unused_for_a_month_are_cleared(tmp_path):
    if installed("icarus") is not None:
        pytest.skip(str(installed("icarus")))
    first = build("icarus", VERILOG, "toy", cache=tmp_path)
    left = tmp_path / "builds" / ".building-killed"
    left.mkdir()
    for directory, days in ((first.directory, 31), (left, 2)):
        os.utime(directory, (time.time() - days * 86400,) * 2)
    second = build("icarus", VERILOG, "toy", defines={"OTHER": 1}, cache=tmp_path)
    assert [path.name for path in (tmp_path / "builds").iterdir()] == [second.directory.name]


def test_bad_verilog_is_a_build_error_and_leaves_nothing(simulator, tmp_path):
    with pytest.raises(BuildError, match=r"could not compile toy.*broken\.v:2"):
        build(simulator, {"broken.v": "module toy;\n  wire = ;\nendmodule\n"}, "toy", cache=tmp_path)
    assert list((tmp_path / "builds").iterdir()) == []


def test_directory_that_cannot_be_written_is_a_build_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    with pytest.raises(BuildError, match=r"build directory .*fix: set STEP_HW_CACHE"):
        build("icarus", VERILOG, "toy", cache=blocked / "cache")


def test_missing_and_old_simulators_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        SimulatorError, match="icarus: programs iverilog, vvp not found on PATH; fix: apt install iverilog"
    ):
        find_simulator("icarus")
    for name, text in (("verilator", "Verilator 4.200 2021-03-12"), ("make", ""), ("g++", "")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho '{text}'\n")
        program.chmod(0o755)
    with pytest.raises(SimulatorError, match=r"version 4\.200 vs at least 5\.006"):
        find_simulator("verilator")
    with pytest.raises(SimulatorError, match="'vcs' vs one of icarus, verilator"):
        find_simulator("vcs")


def test_cache_directory_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("STEP_HW_CACHE", str(tmp_path / "here"))
    assert cache_directory() == tmp_path / "here"
    assert cache_directory(tmp_path / "there") == tmp_path / "there"


FAILING_BENCH = """
import random
import cocotb
from cocotb.triggers import Timer

@cocotb.test()
async def passes(dut):
    await Timer(1, "ns")

@cocotb.test()
async def fails(dut):
    await Timer(1, "ns")
    assert dut.rst.value == 7, f"this very message {random.randint(0, 10**9)}"

@cocotb.test()
async def hangs(dut):
    while True:
        await Timer(1, "ns")
"""


OWN_BENCH = """
import cocotb
from rtl_tests.harness import LinkLayout, beats, bernoulli, bursts
from rtl_tests.harness.links import Clocking, LinkDriver, LinkMonitor, LinkSink, ProtocolChecker, Scoreboard

LAYOUT = LinkLayout(8, 1)
STREAM = beats("1 2 S1 S1 3 S2 D")

async def run(dut, fault, expected):
    clocking = Clocking(dut)
    driver = clocking.add(LinkDriver(dut, "in0", LAYOUT, pattern=bernoulli(0.5), seed=1))
    sink = clocking.add(LinkSink(dut, "out0", LAYOUT, pattern=bursts(3, 5), seed=1))
    watch = [clocking.add(LinkMonitor(dut, name, LAYOUT)) for name in ("in0", "out0")]
    clocking.add(ProtocolChecker(watch[1], max_rank=2))
    await clocking.reset()
    dut.cfg__fault.value, dut.cfg__add.value = fault, 0
    driver.send(STREAM)
    await clocking.run(lambda: len(sink.beats) == len(STREAM), max_cycles=200, what="the end of the stream")
    assert (watch[0].beats, watch[0].stamps, watch[0].blocked) == (driver.beats, driver.stamps, driver.blocked)
    assert (watch[1].beats, watch[1].stamps, watch[1].starved) == (sink.beats, sink.stamps, sink.starved)
    Scoreboard("out0", expected).compare(sink.beats, sink.stamps)

@cocotb.test()
async def sound(dut):
    await run(dut, 0, STREAM)

@cocotb.test()
async def differs(dut):
    await run(dut, 0, beats("1 2 S1 S1 4 S2 D"))

@cocotb.test()
async def drops(dut):
    await run(dut, 1, STREAM)

@cocotb.test()
async def unstable(dut):
    await run(dut, 2, STREAM)
"""


def test_agents_in_a_bench_of_ones_own(simulator, tmp_path, monkeypatch):
    (tmp_path / "own_bench.py").write_text(OWN_BENCH)
    monkeypatch.syspath_prepend(str(tmp_path))
    run = run_cocotb(build(simulator, VERILOG, "toy"), "own_bench", check=False)
    found = {outcome.name: outcome.failure for outcome in run.outcomes}
    assert found["sound"] is None
    assert "out0: beat 3 differs in data" in found["differs"]
    assert "the end of the stream was not reached in 200 cycles" in found["drops"]
    assert "out0: payload changed in cycle" in found["unstable"]


@pytest.fixture
def bench_module(tmp_path, monkeypatch) -> str:
    (tmp_path / "failing_bench.py").write_text(FAILING_BENCH)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "failing_bench"


def test_failing_assertion_comes_up_with_its_message(simulator, bench_module, capsys):
    built = build(simulator, VERILOG, "toy")
    with pytest.raises(SimulationFailed, match=rf"fails on {simulator}, seed 5:\nthis very message \d+") as caught:
        run_cocotb(built, bench_module, testcase=["passes", "fails"], seed=5)
    assert "STEP_HW_SEED=5" in capsys.readouterr().out
    run = run_cocotb(built, bench_module, testcase=["passes", "fails"], seed=5, check=False)
    assert [(outcome.name, outcome.failure is None) for outcome in run.outcomes] == [("passes", True), ("fails", False)]
    assert run.outcomes[1].failure in str(caught.value), "the seed repeats the run"
    with pytest.raises(SimulationFailed, match="no cocotb test named 'absent'"):
        run_cocotb(built, bench_module, testcase="absent")


def test_hanging_simulation_is_ended(simulator, bench_module):
    with pytest.raises(SimulationTimeout, match="took more than 2 s"):
        run_cocotb(build(simulator, VERILOG, "toy"), bench_module, testcase="hangs", timeout_s=2)


def test_waveform_is_written_where_it_is_said(simulator, bench_module, tmp_path, capsys):
    built = build(simulator, VERILOG, "toy", trace=True)
    waves = tmp_path / "deep" / "toy.fst"
    run = run_cocotb(built, bench_module, testcase="passes", waves=waves)
    assert run.waves == waves and waves.stat().st_size > 0
    assert f"waveform: {waves}" in capsys.readouterr().out
    plain = build(simulator, VERILOG, "toy", trace=False)
    with pytest.raises(BuildError, match="without waveforms"):
        run_cocotb(plain, bench_module, testcase="passes", waves=waves)


def test_interrupt_ends_every_child(bench_module, tmp_path):
    """Ctrl-C during a simulation: no process of ours stays behind."""
    if installed("icarus") is not None:
        pytest.skip(str(installed("icarus")))
    script = textwrap.dedent(
        f"""
        from rtl_tests.harness.build import build
        from rtl_tests.harness.run import run_cocotb
        import subprocess
        real = subprocess.Popen
        class Noted(real):
            def __init__(self, *a, **k):
                super().__init__(*a, **k)
                print("child", self.pid, flush=True)
        built = build("icarus", {VERILOG!r}, "toy")
        subprocess.Popen = Noted
        run_cocotb(built, "failing_bench", testcase="hangs")
        """
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1])])}
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    watchdog = threading.Timer(60, child.kill)
    watchdog.start()
    line = next(line for line in child.stdout if line.startswith("child"))
    simulation = int(line.split()[1])
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate()
    watchdog.cancel()
    assert "KeyboardInterrupt" in errors
    with pytest.raises(ProcessLookupError):
        os.killpg(simulation, 0)
