"""Depths found by the model hold on RTL: what it sizes runs, in the cycles it says; one beat less deadlocks."""

import dataclasses

import pytest

from examples.data import random_tensors
from rtl_tests.cosim import check, run_rtl
from sim.prediction import predict
from sim.sizing import size_fifos
from step_hw.design import Design
from step_lang import Program, bf16, fn, ops
from step_lang.errors import DeadlockError
from step_lang.hwconfig import HardwareConfig

T = 2
HW = HardwareConfig(tile=T)


def fork_join(n: int) -> Program:
    """Two joins of tiles with a fold of theirs, the second one around the first."""
    with Program("fork_join") as p:
        x, y = (p.tensor(name, (2 * T, n * T), bf16) for name in "xy")
        tiles = ops.linear_offchip_load(x, (T, T), shape=(2, n), stride=(n, 1), name="load_x")
        inner = ops.repeat(ops.accum(fn.max(), tiles, rank=1, name="largest"), n, name="largest_again")
        inner = ops.map(fn.sub(), tiles, inner, name="inner")
        outer = ops.repeat(ops.accum(fn.add(), inner, rank=1, name="total"), n, name="total_again")
        ops.linear_offchip_store(ops.map(fn.mul(), tiles, outer, name="outer"), y, name="store_y")
    return p


def on_rtl(design: Design, depths) -> int:
    """Total cycles, the same in RTL and model, and every bit as the interpreter says."""
    sized = Design(design.program, dataclasses.replace(design.hw, link_depths=depths))
    tensors = random_tensors(design.program, 0)
    run = run_rtl(sized, tensors, quiet_cycles=300, simulator="icarus", native=False)
    verdict = check(sized, run, sized.interpret(tensors), sized.interpret(tensors, lowered=False))
    assert verdict.bit_exact, verdict.differences
    model = predict(sized.graph, sized.hw)
    assert (model.cycles, model.total_cycles) == (run.cycles, run.total_cycles)
    return run.total_cycles


@pytest.mark.parametrize("n", [5, 12])
def test_sized_links_on_rtl(n):
    """n = 12: links of more than 8 beats, which are memories."""
    design = Design(fork_join(n), HW)
    found = size_fifos(design)
    free, full = found.deadlock_free, found.full
    # Both hold what the first fold takes, but for the tile that the fork keeps.
    assert free.depths == {"load_x__to__inner": n - 1, "load_x__to__outer": n - 1}
    assert on_rtl(design, free.depths) == free.total_cycles
    assert on_rtl(design, full.depths) == full.total_cycles == found.unbounded_total_cycles
    for proof in free.proof:
        less = {**free.depths, proof.link: proof.depth - 1}
        with pytest.raises(DeadlockError) as rtl:
            on_rtl(design, less)
        with pytest.raises(DeadlockError) as model:
            sized = Design(design.program, dataclasses.replace(HW, link_depths=less))
            predict(sized.graph, sized.hw)
        # The same cycle of links; the fork is what both the deep link and the fold wait for.
        assert str(rtl.value) == str(model.value)
        assert "load_x_fork writes to load_x__to__inner" in str(rtl.value) and "full" in proof.outcome
    for proof in full.proof:
        less = {**full.depths, proof.link: proof.depth - 1}
        assert on_rtl(design, less) == proof.cycles > found.unbounded_total_cycles
