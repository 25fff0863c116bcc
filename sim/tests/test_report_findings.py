"""What the rules say of runs made by hand: each rule where it applies, and not where it does not."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from sim.report.findings import findings
from sim.report.record import STATES, Curve, Link, OperatorCost, Run, Unit, level_curve
from step_lang import Program

KNOBS = {name: name for name in ("compute", "depth", "window", "latency", "bandwidth", "buffers", "references",
                                 "size_fifos")}


def unit(name: str, category: str = "compute", kind: str = "map", **shares: int) -> Unit:
    """A unit with some percent of 1,000 cycles in each state, idle else."""
    states = {state: 10 * shares.get(state, 0) for state in STATES}
    states["idle"] += 1_000 - sum(states.values())
    return Unit(name, kind, category, name, states, 1, shares.get("nbytes", 0))


def run(units: list[Unit], links: Sequence[tuple[int, int]] = (), **others) -> Run:
    """A run of 1,000 cycles, quiet in all that is not said."""
    made = Run(
        program=Program("made"), simulator="nobody", machine=(), cycles=1_000, begin=0, total_cycles=1_000,
        read_bytes=1_000, write_bytes=0, bandwidth=10.0, most_bytes=10_000, flops=900, peak_flops=1, memory_bound=500.0,
        compute_bound=100.0, busiest="-", onchip_required=0, onchip_peak={},
        costs=[OperatorCost("big", 0, 900, 0), OperatorCost("small", 0, 100, 0), OperatorCost("none", 900, 0, 0)],
        units=units, links=[Link(f"l{i}", a, b, 2, 1) for i, (a, b) in enumerate(links)],
        slices=np.zeros((0, 4), dtype=np.int64), gap=-1, curves=[], knobs=KNOBS)
    return dataclasses.replace(made, **others)


def kinds(of: Run) -> list[str]:
    return [found.kind for found in findings(of)]


def test_a_quiet_run_hears_of_the_bound_only():
    assert kinds(run([unit("a", busy=60)])) == ["off_the_bound"]
    found, = findings(run([unit("a", busy=60)], memory_bound=990.0))
    assert (found.kind, "990 cycles" in found.text, "99% reached" in found.text) == ("near_the_bound", True, True)


def test_memory_bound_names_who_moves_most():
    busy = run([unit("a")], read_bytes=9_000, memory_bound=900.0,
               costs=[OperatorCost("small", 0, 900, 0), OperatorCost("big", 0, 8_100, 0)])
    found = findings(busy)[0]
    assert found.kind == "memory_bound" and "90% of the 10 bytes a cycle" in found.text
    assert "big 90%, small 10%" in found.text.replace("10.0%", "10%")


def test_compute_bound_names_the_unit():
    found = findings(run([unit("a", busy=95), unit("b", busy=20), unit("m", "memory", busy=99)]))[0]
    assert found.kind == "compute_bound" and "a works in 95%" in found.text


@pytest.mark.parametrize(("end", "kind", "words"), [
    (unit("end", busy=90), "blocked_behind_busy", "end works in 90%"),
    (unit("end", "memory", "linear_offchip_store", memory=70, busy=30), "blocked_behind_memory", "memory in 70%"),
    (unit("end", starved=80, busy=5), "blocked_behind_waiting", "its other input in 80%"),
])
def test_what_blocks_is_followed_to_its_end(end, kind, words):
    units = [unit("x", blocked=10, starved=80), unit("a", blocked=60), unit("b", "shape", blocked=50), end]
    blocked = run(units, [(0, 1), (1, 2), (1, 0), (2, 3)])
    found = next(found for found in findings(blocked) if found.kind.startswith("blocked"))
    assert found.kind == kind and words in found.text and "a → b → end" in found.text
    assert ("size_fifos" in " ".join(found.tries)) == (kind == "blocked_behind_waiting")


def test_who_is_only_early_holds_nothing_up():
    """The end waits for a slow unit; that another input of it is there long before is no finding."""
    units = [unit("early", blocked=90), unit("slow", busy=60, starved=30), unit("late", starved=90, busy=5),
             unit("store_y", "memory", "store", starved=90, busy=5, nbytes=8), unit("load", "memory", blocked=50)]
    made = run(units, [(0, 3), (2, 3), (1, 2), (4, 0), (4, 1)])
    assert kinds(made) == ["late_results", "off_the_bound"]
    found = findings(made)[0]
    assert "store_y ← late ← slow. slow works in 60%" in found.text and "Make slow faster" in found.tries[0]
    assert len(found.tries) == 1
    units[1], units[4] = unit("slow", busy=30, starved=60), unit("load", "memory", memory=20)
    assert "long, not narrow" in findings(run(units, [(0, 3), (2, 3), (1, 2), (4, 0), (4, 1)]))[0].tries[1]


def test_a_fork_that_an_early_branch_blocks_is_followed_to():
    """The late branch starves since the fork before it waits for room in the early one."""
    units = [unit("load", "memory", blocked=80), unit("fork", "routing", "fork", blocked=80), unit("fold", starved=90),
             unit("join", starved=90), unit("pass", "shape", blocked=70)]
    made = run(units, [(0, 1), (1, 4), (4, 3), (1, 2), (2, 3)])
    found = next(found for found in findings(made) if found.kind.startswith("blocked"))
    assert found.kind == "blocked_behind_waiting" and "size_fifos" in found.tries[0]
    assert found.title == "fork is blocked while join waits"


def test_a_loop_of_blocked_units_is_left():
    assert kinds(run([unit("a", "memory", "load", blocked=60), unit("b")], [(0, 1)])) == ["off_the_bound"]
    ring = run([unit("a", blocked=60), unit("b", blocked=50)], [(0, 1), (1, 0)])
    assert "blocked_behind_waiting" in kinds(ring)


def test_loads_wait_for_a_memory_that_has_time():
    load = unit("load_x", "memory", "load", memory=80, nbytes=1_000)
    found = findings(run([load]))[0]
    assert found.kind == "load_latency" and "80%" in found.text and "moves 10%" in found.text
    assert "load_latency" not in kinds(run([load], read_bytes=9_500))
    tiny = unit("load_lengths", "memory", "load", memory=90, nbytes=4)
    assert "load_x waits for the memory in 80%" in findings(run([load, tiny]))[0].text


def test_unequal_work_of_experts():
    experts = [unit(f"expert{i}_mul", busy=share) for i, share in enumerate((70, 10, 20, 20))]
    found = next(found for found in findings(run(experts)) if found.kind == "imbalance")
    assert "expert0_mul works in 700 cycles, 2.3 times the mean; expert1_mul in 100" in found.text
    assert "imbalance" not in kinds(run([unit(f"expert{i}_mul", busy=40) for i in range(4)]))


def test_compute_that_is_idle():
    units = [unit("a", busy=50), unit("b", busy=5)]
    assert "idle_compute" in kinds(run(units, peak_flops=100))
    assert "idle_compute" not in kinds(run(units, peak_flops=2))


def test_a_late_first_store():
    values = np.zeros(100)
    values[60:] = 1.0
    late = run([unit("a")], curves=[Curve("off-chip write", "B/cycle", 10, values)])
    found = next(found for found in findings(late) if found.kind == "fill_and_drain")
    assert "about 600 cycles" in found.text
    early = run([unit("a")], curves=[Curve("off-chip write", "B/cycle", 10, np.ones(100))])
    assert "fill_and_drain" not in kinds(early)


def test_full_scratchpads():
    assert "full_buffers" in kinds(run([unit("a")], onchip_peak={"s": (64, 64)}))
    assert "full_buffers" not in kinds(run([unit("a")], onchip_peak={"s": (63, 64), "t": (64, None)}))


def test_level_curve():
    times, levels = np.array([3, 5, 12]), np.array([7, 2, 4])
    assert level_curve(times, levels, 4, 5).tolist() == [7, 7, 2, 4, 4]
    assert level_curve(times, levels, 100, 1).tolist() == [7]
    assert level_curve(times[:0], levels[:0], 4, 2).tolist() == [0, 0]
