"""Depths found by running the model, against depths that can be told by hand."""

import dataclasses

import pytest

from sim.prediction import predict
from sim.sizing import UNBOUNDED, size_fifos
from step_hw.design import Design
from step_lang import Program, Selector, bf16, fn, ops
from step_lang.errors import BadParameter, ConfigError, DeadlockError, RtlError
from step_lang.hwconfig import HardwareConfig

T = 2
HW = HardwareConfig(tile=T)


def folded(tiles, n: int, name: str):
    """Every tile joined with the largest of its vector of ``n``."""
    back = ops.repeat(ops.accum(fn.max(), tiles, rank=1, name=f"{name}_fold"), n, name=f"{name}_back")
    return ops.map(fn.max(), tiles, back, name=f"{name}_join")


def fork_joins(n: int, stages: int = 1, width: int = 1, vectors: int = 3, hw: HardwareConfig = HW) -> Design:
    """``width`` copies of a chain of ``stages`` fork-joins over vectors of ``n`` tiles."""
    with Program("fork_joins") as p:
        for k in range(width):
            x, y = (p.tensor(f"{name}{k}", (vectors * T, n * T), bf16) for name in "xy")
            tiles = ops.linear_offchip_load(x, (T, T), shape=(vectors, n), stride=(n, 1), name=f"load_x{k}")
            for stage in range(stages):
                tiles = folded(tiles, n, f"s{k}_{stage}")
            ops.linear_offchip_store(tiles, y, name=f"store_y{k}")
    return Design(p, hw)


def with_depths(design: Design, depths) -> Design:
    return Design(design.program, dataclasses.replace(design.hw, link_depths=depths), design.inputs)


def cycles(design: Design, depths) -> int | None:
    other = with_depths(design, depths)
    try:
        return predict(other.graph, other.hw).total_cycles
    except DeadlockError:
        return None


@pytest.mark.parametrize("n", [4, 8, 20, 70])
def test_a_fork_join_holds_what_the_fold_takes(n):
    """The fold takes n tiles before it answers; the fork itself holds one that join has not taken yet."""
    design = fork_joins(n)
    found = size_fifos(design)
    assert found.deadlock_free.depths == {"load_x0__to__s0_0_join": n - 1}
    assert found.default == 2 and found.default_total_cycles is None
    assert found.default_deadlock.startswith("deadlock: ")
    [proof] = found.deadlock_free.proof
    assert (proof.depth, proof.cycles) == (n - 1, None)
    assert proof.outcome.startswith("deadlock: ") and "load_x0__to__s0_0_join full" in proof.outcome
    assert cycles(design, found.deadlock_free.depths) == found.deadlock_free.total_cycles
    assert found.full.depths["load_x0__to__s0_0_join"] > n - 1
    assert cycles(design, found.full.depths) == found.full.total_cycles == found.unbounded_total_cycles
    assert cycles(design, {link.name: UNBOUNDED for link in design.graph.links}) == found.unbounded_total_cycles
    # Said by runs of its own, not by the search: any deepened link one less.
    for goal, target in ((found.deadlock_free, None), (found.full, found.unbounded_total_cycles)):
        assert [proof.link for proof in goal.proof] == list(goal.depths)
        for proof in goal.proof:
            less = cycles(design, {**goal.depths, proof.link: proof.depth - 1})
            assert less == proof.cycles
            assert less is None or (target is not None and less > target)


def test_depths_follow_from_links_of_other_defaults():
    found = size_fifos(fork_joins(8, hw=HardwareConfig(tile=T, link_depth=5)))
    assert found.default == 5 and found.deadlock_free.depths == {"load_x0__to__s0_0_join": 7}
    assert found.deadlock_free.beats == 2 and found.deadlock_free.bits == 2 * T * T * 16
    found = size_fifos(fork_joins(8, hw=HardwareConfig(tile=T, link_depth=32)))
    assert found.deadlock_free.depths == {} == found.full.depths and found.default_total_cycles is not None


def test_depths_of_the_configuration_do_not_count():
    design = fork_joins(8, hw=HardwareConfig(tile=T, link_depths={"load_x0": 7, "load_x0__to__s0_0_join": 100}))
    assert size_fifos(design) == size_fifos(fork_joins(8))


def test_a_graph_as_well_as_a_design_and_the_same_every_time():
    design = fork_joins(6, stages=2)
    found = size_fifos(design)
    assert found == size_fifos(design.graph, design.hw)
    assert found.as_json()["full"]["total_cycles"] == found.unbounded_total_cycles
    applied = found.full.apply(design.hw)
    assert HardwareConfig.from_toml(applied.to_toml()) == applied
    assert Design(design.program, applied).graph.link("s0_0_join__to__s0_1_join").depth >= 5
    with pytest.raises(ConfigError, match="no hardware configuration"):
        size_fifos(design.graph)
    with pytest.raises(BadParameter, match=r"tolerance: -0\.1"):
        size_fifos(design, tolerance=-0.1)


def test_tolerance_saves_beats():
    design = fork_joins(24, vectors=6)
    exact, loose = size_fifos(design), size_fifos(design, tolerance=0.2)
    assert loose.full.beats < exact.full.beats
    assert exact.full.total_cycles < loose.full.total_cycles <= 1.2 * exact.unbounded_total_cycles
    for proof in loose.full.proof:
        assert proof.cycles is None or proof.cycles > 1.2 * exact.unbounded_total_cycles


def test_several_hundred_links_in_few_runs():
    """40 fork-joins, each with a depth of its own, and as many links that need none."""
    design = fork_joins(10, stages=4, width=10, vectors=2)
    assert len(design.graph.links) > 300
    seen = []
    found = size_fifos(design, report=lambda *progress: seen.append(progress))
    assert set(found.deadlock_free.depths.values()) == {9} and len(found.deadlock_free.depths) == 40
    assert found.full.total_cycles <= found.unbounded_total_cycles
    assert found.runs < 12 * 40
    assert {phase for phase, *_ in seen} == {"unbounded links", "free of deadlock", "full throughput",
                                             "proof, one beat less"}
    assert [progress[3] for progress in seen] == sorted(progress[3] for progress in seen)


def test_streams_merged_in_order_of_arrival():
    """Which chunk comes first depends on depths; the proof holds all the same."""
    with Program("p") as p:
        parts = []
        for name, n in (("a", 3), ("b", 5)):
            x = p.tensor(name, (n * 4 * T, T), bf16)
            tiles = ops.linear_offchip_load(x, (T, T), shape=(n, 4), stride=(4, 1), name=f"load_{name}")
            parts.append(folded(tiles, 4, name))
        data, names = ops.eager_merge(parts, name="merge")
        back = ops.partition(data, names, rank=1, name="split")
        for part, name, n in zip(back, "ab", (3, 5)):
            ops.linear_offchip_store(part, p.tensor(f"{name}_out", (n * 4 * T, T), bf16), name=f"store_{name}")
    design = Design(p, HW)
    found = size_fifos(design)
    assert {"load_a__to__a_join", "load_b__to__b_join"} <= set(found.deadlock_free.depths)
    for proof in (*found.deadlock_free.proof, *found.full.proof):
        goal = found.deadlock_free if proof in found.deadlock_free.proof else found.full
        assert cycles(design, {**goal.depths, proof.link: proof.depth - 1}) == proof.cycles
    assert all(proof.cycles is None for proof in found.deadlock_free.proof)
    assert all(proof.cycles is None or proof.cycles > found.unbounded_total_cycles for proof in found.full.proof)


def test_what_no_depth_cures():
    """The second reader begins when the first one has read all buffers, of which the scratchpad has room for half."""
    with Program("p") as p:
        x = p.tensor("x", (8 * T, T), bf16)
        tiles = ops.linear_offchip_load(x, (T, T), shape=(8, 1), stride=(1, 0), name="load_x")
        kept = ops.bufferize(tiles, rank=1, name="keep")
        once = ops.streamify(kept, repeat=1, name="once")
        last = ops.accum(fn.max(), ops.promote(ops.flatten(once, 0, 2)), rank=1, name="last")
        asked = ops.flatten(ops.repeat(last, 8), 0, 1)
        passes = ops.streamify(kept, ref=asked, name="again")
        ops.linear_offchip_store(passes, p.tensor("y", (8 * T, T), bf16))
    with pytest.raises(DeadlockError, match=r"(?s)finds no room in .*fix: raise scratchpad"):
        size_fifos(Design(p, HW))
    more = HardwareConfig(tile=T, references=8)
    assert size_fifos(Design(p, more)).unbounded_cycles > 0


def test_a_units_error_is_told():
    with Program("p") as p:
        x = p.tensor("x", (2 * T, T), bf16)
        selector = ops.input_stream("selector", Selector(4), (2,))
        tiles = ops.linear_offchip_load(x, (T, T), shape=(2,), stride=(1,))
        for i, part in enumerate(ops.partition(tiles, selector, rank=0, num_consumers=2, name="route")):
            ops.linear_offchip_store(part, p.tensor(f"y{i}", (2 * T, T), bf16))
    with pytest.raises(RtlError, match="raises SELECTOR"):
        size_fifos(Design(p, HW, {"selector": [{0}, {3}]}))
