"""Whole programs on RTL: what a comparison finds, deadlocks, errors of units."""

import dataclasses

import numpy as np
import pytest

from examples.data import random_tensors
from rtl_tests.cosim import build_rtl, check, run_rtl
from rtl_tests.microbenchmarks import FITTED
from sim.prediction import predict
from step_hw.design import Design
from step_lang import Program, bf16, dynamic, fn, ops, scalar, u32
from step_lang.errors import BuildError, DeadlockError, RtlError, TensorError
from step_lang.hwconfig import HardwareConfig

HW = HardwareConfig(tile=4)
COPY = next(bench for bench in FITTED if bench.name == "copy_16")


@pytest.fixture(scope="module")
def copied():
    """(design, tensors, RTL run, expected) of a copy."""
    design = Design(COPY.build(HW), HW)
    tensors = random_tensors(design.program, 1)
    return design, tensors, run_rtl(design, tensors), design.interpret(tensors)


def test_run(copied):
    design, tensors, run, expected = copied
    assert check(design, run, expected, design.interpret(tensors, lowered=False)).bit_exact
    assert (run.tensors["y"] == tensors["x"]).all()
    nbytes = tensors["x"].nbytes
    assert (run.offchip_read_bytes, run.offchip_write_bytes, run.offchip_bytes) == (nbytes, nbytes, 2 * nbytes)
    assert sum(run.bursts) == 2 * 16  # a tile of 32 bytes is a burst of its own
    assert 0 < run.start_cycle < run.start_cycle + run.cycles <= run.total_cycles


def test_check_names_what_differs(copied):
    design, _, run, expected = copied
    wrong = {"y": run.tensors["y"].copy()}
    wrong["y"].view(np.uint16)[2, 3] ^= 1
    wrong["y"].view(np.uint16)[5, 0] ^= 1
    found = check(design, dataclasses.replace(run, tensors=wrong), expected)
    assert not found.bit_exact
    assert len(found.differences) == 1
    assert found.differences[0].startswith("tensor 'y' differs at 2 of 256 places, first at (2, 3): RTL ")


def test_check_sees_not_a_number_and_signs_of_zero(copied):
    """Bits are compared, not values."""
    design, _, run, expected = copied
    y = run.tensors["y"].copy()
    y.view(np.uint16)[0, :2] = 0x7FC0, 0x8000
    same = dataclasses.replace(expected, tensors={"y": y.copy()})
    assert check(design, dataclasses.replace(run, tensors={"y": y}), same).bit_exact
    y2 = y.copy()
    y2[0, 1] = 0.0
    assert not check(design, dataclasses.replace(run, tensors={"y": y2}), same).bit_exact


def test_check_sees_a_wrong_stop_and_a_lost_beat(copied):
    design, _, run, expected = copied
    records = run.native.records.copy()
    link = design.graph.link("load_x").index
    i = np.flatnonzero(records["link"] == link)[3]
    records["stop"][i] ^= 4
    native = dataclasses.replace(run.native, records=records)
    [text] = check(design, dataclasses.replace(run, native=native), expected).differences
    assert text.startswith(f"link 'load_x' differs first at beat 3 (cycle {records['cycle'][i]}): RTL stop ")
    native = dataclasses.replace(run.native, records=run.native.records[:-1])
    [text] = check(design, dataclasses.replace(run, native=native), expected).differences
    assert text == "link 'load_x': RTL moved 16 beats vs 17"


def test_check_compares_the_lowered_program_with_the_program(copied):
    design, tensors, run, expected = copied
    logical = design.interpret(tensors, lowered=False)
    logical.tensors["y"] = logical.tensors["y"] + 1
    [text] = check(design, run, expected, logical).differences
    assert "lowered program" in text


def test_traffic_is_compared(copied):
    design, _, run, expected = copied
    [text] = check(design, dataclasses.replace(run, offchip_read_bytes=1), expected).differences
    assert text == f"offchip_read_bytes: RTL 1 vs {run.offchip_read_bytes}"


def test_a_run_cut_short(copied):
    design, tensors, _, _ = copied
    with pytest.raises(RtlError, match="ended early: max_cycles in cycle 19"):
        run_rtl(design, tensors, max_cycles=20)
    assert run_rtl(design, tensors, max_cycles=20, partial=True).native.reason == "max_cycles"


def test_bad_tensors(copied):
    design, tensors, _, _ = copied
    with pytest.raises(TensorError, match="missing"):
        run_rtl(design, {})
    with pytest.raises(TensorError, match="float32"):
        run_rtl(design, {"x": tensors["x"].astype(np.float32)})


def test_waves_need_a_build_with_waves(copied, tmp_path):
    design, tensors, _, _ = copied
    with pytest.raises(BuildError, match="without waveforms"):
        run_rtl(design, tensors, build_rtl(design), waves=tmp_path / "x.fst")


# Deadlock


def fork_join(n: int) -> Program:
    """``join`` wants a tile of x and the fold of all n tiles, so what passes meanwhile must find room before it."""
    t = HW.tile
    with Program("fork_join") as p:
        x = p.tensor("x", (2 * t, n * t), bf16)
        y = p.tensor("y", (2 * t, n * t), bf16)
        tiles = ops.linear_offchip_load(x, (t, t), shape=(2, n), stride=(n, 1), name="load_x")
        largest = ops.accum(fn.max(), tiles, rank=1, name="fold")
        ops.linear_offchip_store(
            ops.map(fn.max(), tiles, ops.repeat(largest, n, name="back"), name="join"), y, name="store_y"
        )
    return p


def outcome(design: Design) -> tuple[str, str]:
    """What RTL and model say: a message, or ``""``."""
    said = []
    for run in (lambda: run_rtl(design, random_tensors(design.program, 0)), lambda: predict(design.graph, design.hw)):
        try:
            run()
            said.append("")
        except DeadlockError as error:
            said.append(str(error))
    return said[0], said[1]


def test_deadlock_is_told_alike_by_rtl_and_model():
    rtl, model = outcome(Design(fork_join(8), HW))
    assert rtl == model
    lines = rtl.splitlines()
    assert lines[0] == "deadlock: 6 units wait for one another"
    assert "  load_x_fork writes to load_x__to__join (2/2, full), waits for join" in lines
    assert "  join reads from back (0/2, empty), waits for back" in lines
    assert "  fold reads from load_x__to__fold (0/2, empty), waits for load_x_fork" in lines
    assert lines[-1].startswith("  fix: give load_x__to__join more than 2 beats in [link.depths]; step-hw size-fifos")


def test_what_the_report_says_is_the_fix():
    """With room for a vector the same program runs, and RTL, interpreter and model agree."""
    design = Design(fork_join(8), dataclasses.replace(HW, link_depths={"load_x__to__join": 8}))
    tensors = random_tensors(design.program, 0)
    run = run_rtl(design, tensors)
    assert check(design, run, design.interpret(tensors), design.interpret(tensors, lowered=False)).bit_exact
    assert run.cycles == predict(design.graph, design.hw).cycles


def test_a_short_vector_does_not_deadlock():
    """On the very netlist that hangs with 8 tiles, 2 fit."""
    design = Design(fork_join(2), HW)
    tensors = random_tensors(design.program, 0)
    assert design.verilog.files == Design(fork_join(8), HW).verilog.files
    run = run_rtl(design, tensors)
    assert check(design, run, design.interpret(tensors)).bit_exact
    assert run.cycles == predict(design.graph, design.hw).cycles


# Errors of units


def test_a_units_error_is_told_with_its_operator_and_the_fix():
    """Registers that say the tensor is shorter than it is."""
    design = Design(COPY.build(HW), HW)
    store = design.graph.unit("store_y")
    store.config = {**store.config, "limit": 3}
    with pytest.raises(RtlError, match=r"unit 'store_y' \(.*store_y.*\) raised [A-Z_]+ by cycle \d+; fix: "):
        run_rtl(design, random_tensors(design.program, 0))
    with pytest.raises(RtlError, match=r"unit 'store_y' \(.*\) raises ADDRESS_RANGE in cycle \d+"):
        predict(design.graph, design.hw)


def test_input_streams_are_read_through_memory():
    t = HW.tile
    with Program("gather") as p:
        ref = ops.input_stream("ref", scalar(u32), (dynamic("n"),))
        x = p.tensor("x", (t, t), bf16)
        ops.linear_offchip_store(
            ops.linear_offchip_load(x, (t, t), ref=ref, name="load_x"), p.tensor("y", (8 * t, t), bf16)
        )
    design = Design(p, HW, {"ref": [7, 8, 9]})
    tensors = random_tensors(p, 0)
    run = run_rtl(design, tensors)
    assert check(design, run, design.interpret(tensors), design.interpret(tensors, lowered=False)).bit_exact
    assert run.offchip_read_bytes == 3 * (32 + 4)
    assert (run.tensors["y"][: 3 * t] == np.tile(tensors["x"], (3, 1))).all() and not run.tensors["y"][3 * t :].any()
    assert run.cycles == predict(design.graph, design.hw).cycles
