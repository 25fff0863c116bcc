"""Whole-program runs of a toy top: natively and under cocotb, ended in every way a run can end."""

import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from rtl_tests.harness.build import installed
from rtl_tests.harness.errors import BuildError, SimulationTimeout
from rtl_tests.harness.native import build_native, build_program, run_native, run_program

LINKS = 70  # more than 64: the probes are wide ports

# A counter of beats on link 0 feeds a slow consumer on link 69, two cycles a beat; values come from a memory that a
# plusarg loads and sums go to one that a plusarg dumps. Register 0: how many beats; 1: trouble (1 stop feeding in
# the middle, 2 raise an error in the middle, 3 the same as 1 with mem_busy high for 300 cycles more, 4 never end);
# 2: words of memory in use.
TOP = f"""
module toy_top(
  input clk, input rst, input cfg_valid, input [15:0] cfg_addr, input [31:0] cfg_data, input start,
  output finished, output reg error_any, input [15:0] status_addr, output [31:0] status_data,
  output [{LINKS - 1}:0] probe_valid, output [{LINKS - 1}:0] probe_ready, output [{4 * LINKS - 1}:0] probe_stop,
  output [{LINKS - 1}:0] probe_empty, output [{LINKS - 1}:0] probe_done, output [39:0] unit_state,
  output mem_busy, input dump
);
  reg [31:0] registers [0:3];
  reg [31:0] memory [0:15];
  reg [31:0] sums [0:0];
  reg running, full, slow;
  reg [31:0] sent, got;
  reg [9:0] busy_left;
  integer i;
  string path;
  initial begin
    for (i = 0; i < 16; i = i + 1) memory[i] = 0;
    if ($value$plusargs("toy_load=%s", path)) $readmemh(path, memory);
  end
  wire trouble = sent == registers[0] / 2;
  wire feed = running & sent != registers[0] & ~(trouble & (registers[1] == 1 | registers[1] == 3));
  wire last = sent + 1 == registers[0];
  assign probe_valid = {{full, {LINKS - 2}'b0, feed}};
  assign probe_ready = {{slow, {LINKS - 2}'b0, ~full}};
  assign probe_stop = {{4'd7, {4 * LINKS - 8}'b0, last ? 4'd0 : sent[3:0]}};
  assign probe_empty = {{1'b0, {LINKS - 2}'b0, last}};
  assign probe_done = {{1'b0, {LINKS - 2}'b0, last}};
  assign finished = got == registers[0] & running & registers[1] != 4;
  assign status_data = status_addr == 16'h10 ? sums[0] : status_addr == 16'h11 ? got : 32'hdeadbeef;
  assign unit_state = {{8'hA5, got}};
  assign mem_busy = busy_left != 0;
  always @(posedge clk) begin
    if (cfg_valid) registers[cfg_addr[1:0]] <= cfg_data;
    if (start) running <= 1;
    slow <= ~slow & full;
    if (feed & ~full) begin full <= 1; sent <= sent + 1; end
    if (full & slow) begin full <= 0; got <= got + 1; sums[0] <= sums[0] + memory[got[3:0]]; end
    if (running & trouble & registers[1] == 2) error_any <= 1;
    if (running & trouble & busy_left != 0) busy_left <= busy_left - 1;
    if (start & registers[1] == 3) busy_left <= 300;
    if (dump & $value$plusargs("toy_dump=%s", path)) $writememh(path, sums);
    if (rst) begin
      running <= 0; full <= 0; slow <= 0; sent <= 0; got <= 0; error_any <= 0; sums[0] <= 0; busy_left <= 0;
    end
  end
endmodule
"""

pytestmark = pytest.mark.skipif(installed("verilator") is not None, reason=str(installed("verilator")))


@pytest.fixture(scope="module")
def native():
    return build_native({"toy_top.v": TOP}, "toy_top", LINKS, mem_busy=True, dump=True, opt="quick")


@pytest.fixture
def memory(tmp_path) -> list[str]:
    (tmp_path / "memory.hex").write_text("\n".join(f"{value:x}" for value in range(100, 116)) + "\n")
    return [f"+toy_load={tmp_path / 'memory.hex'}", f"+toy_dump={tmp_path / 'sums.hex'}"]


def test_run_to_the_end(native, memory, tmp_path):
    run = run_native(native, [(0, 6), (1, 0)], status=[0x10, 0x11, 0x12], plusargs=memory)
    assert run.reason == "finished" and run.finished
    # Start in cycle 0, first beat fed in 1; then it is taken 2 cycles later and the next is fed 1 after that.
    fed, taken = run.of_link(0), run.of_link(69)
    assert fed["cycle"].tolist() == [1 + 3 * i for i in range(6)]
    assert taken["cycle"].tolist() == [3 + 3 * i for i in range(6)]
    assert run.cycles == taken["cycle"][-1] + 1
    assert fed["stop"].tolist() == [0, 1, 2, 3, 4, 0] and fed["flags"].tolist() == [0, 0, 0, 0, 0, 3]
    assert taken["stop"].tolist() == [7] * 6
    assert run.records["cycle"].tolist() == sorted(run.records["cycle"])
    assert run.transfers[[0, 1, 69]].tolist() == [6, 0, 6]
    assert run.blocked[[0, 69]].tolist() == [10, 6] and run.starved[1] == run.cycles + 1
    assert (run.transfers + run.blocked + run.starved == run.cycles + 1).all()
    assert run.status == {0x10: sum(range(100, 106)), 0x11: 6, 0x12: 0xDEADBEEF}
    assert run.unit_state == 0xA5 << 32 | 6
    assert int(re.sub(r"//.*", "", (tmp_path / "sums.hex").read_text()).split()[-1], 16) == sum(range(100, 106))


@pytest.mark.parametrize(
    "registers, options, reason, cycles",
    [
        ([(0, 100), (1, 1)], {"quiet_cycles": 50}, "deadlock", 1 + 3 * 49 + 2 + 50),
        ([(0, 100), (1, 3)], {"quiet_cycles": 50}, "deadlock", 1 + 3 * 49 + 300 + 50),
        ([(0, 100), (1, 2)], {}, "error", 1 + 3 * 49 + 2),
        ([(0, 100), (1, 0)], {"max_cycles": 77}, "max_cycles", 76),
    ],
)
def test_run_that_does_not_come_to_its_end(native, registers, options, reason, cycles):
    run = run_native(native, registers, **options)
    assert (run.reason, run.cycles) == (reason, cycles)
    assert len(run.of_link(0)) == run.transfers[0] > 0
    if reason == "deadlock":
        assert not run.valid[0] and run.ready[0], "the feeder starves the link"


def test_both_simulators_write_the_same_bytes(native, memory, simulator):
    program = build_program(simulator, {"toy_top.v": TOP}, "toy_top", LINKS)
    for registers in ([(0, 6), (1, 0)], [(0, 20), (1, 2)], [(0, 20), (1, 1)], [(0, 20), (1, 3)]):
        options = {"status": [0x10, 0x12], "plusargs": memory, "quiet_cycles": 40}
        one, other = run_native(native, registers, **options), run_program(program, registers, **options)
        assert one.records.tobytes() == other.records.tobytes()
        assert one.same_as(other), f"{registers}: {one.reason, one.cycles} against {other.reason, other.cycles}"


def test_records_can_be_left_out(native):
    run = run_native(native, [(0, 6), (1, 0)], record=False)
    assert len(run.records) == 0 and run.transfers[0] == 6


def test_waveform_of_some_cycles(tmp_path):
    program = build_native({"toy_top.v": TOP}, "toy_top", LINKS, mem_busy=True, dump=True, opt="quick", trace=True)
    sizes = []
    for last in (40, 4000):
        waves = tmp_path / f"{last}.fst"
        run = run_native(program, [(0, 2000), (1, 0)], waves=waves, trace_from=20, trace_to=last)
        assert run.waves == waves
        sizes.append(waves.stat().st_size)
    assert 0 < sizes[0] < sizes[1]


def test_waveform_without_support_is_refused(native, tmp_path):
    with pytest.raises(BuildError, match="without waveforms; fix: build it with trace=True"):
        run_native(native, [(0, 6)], waves=tmp_path / "x.fst")


def test_run_without_end_is_ended(native):
    with pytest.raises(SimulationTimeout, match="took more than 1 s"):
        run_native(native, [(0, 5), (1, 4)], quiet_cycles=10**12, max_cycles=10**12, timeout_s=1)


def test_register_out_of_range_is_refused(native):
    with pytest.raises(ValueError, match="register write 0x10000"):
        run_native(native, [(1 << 16, 0)])


def test_interrupt_saves_what_there_is(native, tmp_path):
    script = textwrap.dedent(
        """
        import sys
        from rtl_tests.test_harness_native import TOP, LINKS
        from rtl_tests.harness.native import build_native, run_native
        native = build_native({"toy_top.v": TOP}, "toy_top", LINKS, mem_busy=True, dump=True, opt="quick")
        try:
            print("go", flush=True)
            run_native(native, [(0, 0xffffffff), (1, 0)], record=False)
        except KeyboardInterrupt as stop:
            print(stop.run.reason, stop.run.cycles, stop.run.transfers[0], flush=True)
        """
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment)
    assert child.stdout.readline() == "go\n"
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(2)
    child.send_signal(signal.SIGINT)
    reason, cycles, transfers = child.communicate(timeout=60)[0].split()
    assert reason == "interrupted" and int(cycles) > 1000
    assert abs(int(transfers) - int(cycles) / 3) < 2
