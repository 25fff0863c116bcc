"""Both accountings of on-chip memory against values counted by hand."""

import pytest

from examples import moe
from sim.tile import RooflineMachine, predict
from sim.tile.accounting import allocated_compute, onchip_by_operator, onchip_bytes
from step_lang import Program, bf16, fn, ops
from step_lang.errors import BadParameter

SIZES = {"batch": 16, "experts": 4, "top_k": 2, "hidden": 32, "intermediate": 64, "tile_f": 16}


def run(**parameters):
    program = moe.build(**SIZES, **parameters)
    streams = moe.streams(program, idle=1)
    counts = [sum(e in row for row in streams["route"]) for e in range(4)]
    return predict(program, RooflineMachine(compute_bw=256), streams), counts


def expert_bytes(rows):
    """Three weight tiles of 32 x 16 in bf16; packed rows, repeated rows and the down product in 4 bytes."""
    return 3 * 32 * 16 * 2 + 3 * rows * 32 * 4


def shared_bytes():
    """x, scores, y, the combined row; selectors of 4 bits."""
    return 32 * 2 + 2 + 32 * 2 + 32 * 4 + 2 * 1


def test_static_tiles_count_for_all_experts():
    prediction, counts = run(tiling="static", tile_rows=8)
    assert min(counts) == 0
    flags = 4 * 4  # a count of padding rows an expert
    assert onchip_bytes(prediction, "figures") == 4 * expert_bytes(8) + shared_bytes() + flags
    used = sum(n > 0 for n in counts)
    assert onchip_bytes(prediction, "figures-used") == used * expert_bytes(8) + shared_bytes() + flags - 4 * (4 - used)


def test_dynamic_tiles_count_with_their_sizes_for_experts_with_tokens():
    prediction, counts = run(tiling="dynamic")
    assert onchip_bytes(prediction, "figures") == sum(expert_bytes(n) for n in counts if n) + shared_bytes()
    held = onchip_by_operator(prediction, "figures")
    busiest, idle = counts.index(max(counts)), counts.index(0)
    assert held[f"pack{busiest}"] == max(counts) * 32 * 4
    assert held[f"load_gate{idle}"] == 0
    assert held[f"gate_matmul{busiest}"] == 0


def test_a_shared_region_counts_its_largest_tile():
    prediction, counts = run(tiling="dynamic", regions=1)
    held = onchip_by_operator(prediction, "figures")
    assert held["again0"] == held["down_matmul0"] == max(counts) * 32 * 4
    assert held["load_up0"] == 32 * 16 * 2


def test_spec_is_the_symbolic_expression():
    prediction, _ = run(tiling="dynamic")
    assert onchip_bytes(prediction, "spec") == prediction.onchip_bytes == int(prediction.costs.onchip_bytes)
    assert onchip_bytes(prediction) == prediction.onchip_bytes


def test_allocated_compute_leaves_out_counts():
    prediction, _ = run(tiling="static", tile_rows=8)
    # gate, up, silu, mul, down and the weighting of each expert; the sum over a token's experts
    assert allocated_compute(prediction) == 256 * (4 * 6 + 1)


def test_buffers_and_scans():
    with Program("kept") as p:
        x, y = p.tensor("x", (16, 8), bf16), p.tensor("y", (32, 8), bf16)
        tiles = ops.linear_offchip_load(x, (4, 8), shape=(2, 2), stride=(2, 1), name="load")
        sums = ops.scan(fn.add(), tiles, rank=1, name="sums")
        twice = ops.streamify(ops.bufferize(sums, rank=1, name="keep"), repeat=2, name="twice")
        ops.linear_offchip_store(twice, y, name="store")
    prediction = predict(p, RooflineMachine(), {})
    assert onchip_by_operator(prediction, "figures") == {
        "load": 64, "sums": 128, "keep": 64 + 2 * 2 * 64, "twice": 0, "store": 64}


def test_an_unknown_accounting_is_named():
    prediction, _ = run(tiling="dynamic")
    with pytest.raises(BadParameter, match=r"'papers' vs one of spec, figures, figures-used"):
        onchip_bytes(prediction, "papers")


def test_a_region_whose_experts_have_no_tokens():
    program = moe.build(**SIZES, tiling="dynamic", regions=2)
    streams = {"route": [{0, 1}] * 16, "choice": [[{0}, {1}]] * 16}
    prediction = predict(program, RooflineMachine(), streams)
    held = onchip_by_operator(prediction, "figures")
    assert held["again0"] == 16 * 32 * 4 and held["again1"] == 0
    assert prediction.offchip_bytes == int(prediction.costs.offchip_bytes)
    assert prediction.onchip_bytes > 0
