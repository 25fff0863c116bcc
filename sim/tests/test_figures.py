"""Figures in small: their points run, their numbers hang together, and Pareto distances are right."""

import csv
import json
from dataclasses import replace

import pytest

from examples import layer, swiglu
from sim.figures import Claim, Figure, Lab, Traces, figure_module, figure_numbers
from sim.figures.pid import improvement_distance, pareto_front
from sim.figures.plot import draw
from sim.figures.ratios import static_ratios
from sim.figures.table import write_claims, write_rows
from sim.figures.workloads import MoeModel, attention_point, layer_point, layer_streams
from step_lang.errors import BadParameter
from step_lang.hwconfig import HardwareConfig

SMALL = MoeModel("small", "small", experts=8, top_k=2, hidden=32, intermediate=64)


@pytest.fixture
def lab(tmp_path):
    return Lab(directory=tmp_path)


def test_front_leaves_out_what_another_point_beats():
    assert pareto_front([(3, 1), (1, 3), (2, 2), (2, 3), (3, 3), (1, 3)]) == [(1, 3), (2, 2), (3, 1)]


def test_distance_by_hand():
    others = [(10.0, 1.0), (5.0, 2.0), (4.0, 8.0)]
    assert improvement_distance((5.0, 1.0), others) == 2.0           # (10,1) and (5,2) are both twice as far
    assert improvement_distance((4.0, 1.5), others) == max(5 / 4, 2 / 1.5)
    assert improvement_distance((5.0, 2.0), others) == 1.0
    assert improvement_distance((10.0, 4.0), others) == 0.5           # behind the frontier
    assert improvement_distance((5.0, 1.0), [*others, (20.0, 20.0)]) == 2.0


@pytest.mark.parametrize("point, others", [((1.0, 1.0), []), ((0.0, 1.0), [(1.0, 1.0)]), ((1.0, 1.0), [(1.0, -1.0)])])
def test_distance_needs_points_above_zero(point, others):
    with pytest.raises(BadParameter, match="Pareto improvement distance"):
        improvement_distance(point, others)


def test_claims_judge_themselves():
    assert Claim("a", 2.0, 2.1, "", bar=0.08).within is True
    assert Claim("a", 2.0, 2.2, "", bar=0.08).within is False
    assert Claim("a", (1.0, 2.0), (1.0, 2.3), "", bar=0.1).within is False
    assert Claim("a", (1.0, 2.0), (1.0, 2.3), "").within is None
    assert Claim("a", 0.05, 0.03, "", bar=0.0, at_most=True).within is True
    assert Claim("a", 0.05, 0.06, "", bar=0.0, at_most=True).within is False
    assert Claim("a", 0.99, 1.0, "", at_least=True).within is True
    assert Claim("a", 0.99, 0.98, "", at_least=True).within is False


def test_an_unknown_figure_is_named():
    with pytest.raises(BadParameter, match=r"figure 11 vs one of .*9, 10"):
        figure_module(11)


@pytest.mark.parametrize("number", [9, 10])
def test_tiling(number, lab, tmp_path):
    module = figure_module(number)
    figure = module.make(lab, Traces(), models=(SMALL,), batch=16, tiles=(2, 4, 8), tile_f=16)
    rows = {(r["tile"], r["compute_bw"]): r for r in figure.records()}
    dynamic = rows["dynamic", 4096]
    assert dynamic["offchip_bytes"] <= min(r["offchip_bytes"] for r in rows.values())
    assert rows["2", 4096]["offchip_bytes"] > rows["8", 4096]["offchip_bytes"]
    memory = [rows[tile, 4096]["onchip_bytes_figures"] for tile in ("2", "4", "8")]
    assert memory == sorted(memory) and len(set(memory)) == 3
    draw(figure, module.sketch, tmp_path / "a.svg", module.PANELS)
    draw(figure, module.sketch, tmp_path / "b.svg", module.PANELS)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_ratios(lab, tmp_path):
    for number in (19, 20):
        module = figure_module(number)
        figure = module.make(lab, Traces(), models=(SMALL,), batch=16, tiles=(2, 8), tile_f=16)
        assert {r["ratio_to_dynamic"] for r in figure.select(tile="dynamic")} == {1.0}
        traffic = {r["tile"]: r["value"] for r in figure.select(metric="offchip_bytes")}
        assert traffic["2"] > traffic["8"] >= traffic["dynamic"]
        assert static_ratios(figure.rows, "offchip_bytes") == [traffic[t] / traffic["dynamic"] for t in ("2", "8")]
        draw(figure, module.sketch, tmp_path / "a.svg", module.PANELS)


def test_sharing(lab, tmp_path):
    module = figure_module(12)
    small = {"model": SMALL, "batch": 16, "regions": (8, 4, 2), "tile_rows": 4, "tile_f": 16}
    figure = module.make(lab, Traces(), **small)
    for tiling in ("static", "dynamic"):
        records = figure.select(tiling=tiling)
        assert [r["regions"] for r in records] == [8, 4, 2]
        # five operators a region, one an expert, one for all
        assert [r["allocated_flops_per_cycle"] for r in records] == [1024 * (5 * n + 9) for n in (8, 4, 2)]
        assert len({r["offchip_bytes"] for r in records}) == 1
        assert records[0]["onchip_bytes_figures"] > records[2]["onchip_bytes_figures"]
        assert records[0]["overhead"] == 0
    gain = figure.claims[0]
    assert gain.what.startswith("static tiles: utilisation with 2 regions over 8")
    draw(figure, module.sketch, tmp_path / "a.svg", module.PANELS)

    resources = figure_module(13)
    figure = resources.make(lab, Traces(), **small)
    assert figure.claims[0].ours == 1 - (5 * 2 + 9) / (5 * 8 + 9)
    draw(figure, resources.sketch, tmp_path / "b.svg", resources.PANELS)


def test_model_against_hardware(lab, tmp_path):
    module = figure_module(8)
    sizes = [{"batch": 16, "hidden": 16, "intermediate": 32, "tile_b": 8, "tile_f": f} for f in (8, 16, 32)]
    figure = module.make(lab, Traces(), sizes=sizes, hw=HardwareConfig(tile=4))
    assert [r["tile_f"] for r in figure.records()] == [8, 16, 32]
    # x again for every intermediate tile, the weights for both batch tiles, y once; two bytes an element
    assert [r["offchip_bytes"] for r in figure.records()] == [
        2 * (16 * 16 * (32 // f) + 3 * 16 * 32 * 2 + 16 * 16) for f in (8, 16, 32)]
    for r in figure.records():
        assert r["hardware"] == "beat"
        assert abs(r["tile_error"]) < 0.25
    draw(figure, module.sketch, tmp_path / "a.svg", module.PANELS)


def test_recorded_rtl_is_used_when_it_is_whole(tmp_path):
    module = figure_module(8)
    rows = [{"parameters": size, "rtl_cycles": 1000 + i, "offchip_read_bytes": 3, "offchip_write_bytes": 4}
            for i, size in enumerate(swiglu.SWEEPS["fig8"])]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert module._recorded(path)[16, 32] == (1001, 7)
    path.write_text("\n".join(map(json.dumps, rows[1:])))
    assert module._recorded(path) == {}
    path.write_text("half a li")
    assert module._recorded(path) == {}


def test_attention_by_variation(lab, tmp_path):
    module = figure_module(14)
    groups = {"low": ((20, 0), (20, 1)), "high": ((400, 0), (400, 1))}
    figure = module.make(lab, Traces(), batch=8, groups=groups, regions=2)
    low, high = (figure.select(variation=name) for name in ("low", "high"))
    assert [r["deviation"] for r in low + high] == [20, 20, 400, 400]
    assert all(min(r["queued_cycles"], r["interleaved_cycles"], r["dynamic_cycles"]) > 0 for r in low + high)
    assert figure.claims[2].ours == (min(r["queued_over_dynamic"] for r in high),
                                     max(r["queued_over_dynamic"] for r in high))
    draw(figure, module.sketch, tmp_path / "a.svg", module.PANELS)


def test_a_queue_keeps_requests_from_a_free_region(lab):
    """Round robin, each region has one long request. Of their own lists they do these at the same time; from one queue
    region 1 gets its long one only when region 0 has done its own and taken those in front."""
    lengths = [2000, 10, 10, 10, 10, 2000]
    queued, own = (lab.run(attention_point(lengths, schedule, regions=2)).cycles
                   for schedule in ("queued", "interleaved"))
    assert queued > 1.6 * own


def test_attention_by_batch(lab, tmp_path):
    module = figure_module(15)
    figure = module.make(lab, Traces(), batches=(4, 8), of=8, regions=2)
    four, eight = figure.records()
    assert four["tokens"] < eight["tokens"] and four["dynamic_cycles"] < eight["dynamic_cycles"]
    assert four["coarse_over_dynamic"] > 1  # one block of 16: a region has it all
    draw(figure, module.sketch, tmp_path / "a.svg", module.PANELS)


def test_attention_schedules(lab, tmp_path):
    module = figure_module(21)
    group = {"low": ((20, 0),), "high": ((400, 0),)}
    figure = module.make(lab, Traces(), groups={4: group, 8: group}, regions=2)
    assert [(r["batch"], r["variation"]) for r in figure.records()] == [
        (batch, variation) for batch in ("4", "8", "8+4") for variation in ("low", "high")]
    four, eight, both = (figure.select(batch=batch, variation="high")[0] for batch in ("4", "8", "8+4"))
    assert both["dynamic_cycles"] == pytest.approx(four["dynamic_cycles"] + eight["dynamic_cycles"])
    draw(figure, module.sketch, tmp_path / "a.svg", module.PANELS)


def test_whole_models(lab, tmp_path):
    module = figure_module(17)
    figure = module.make(lab, Traces(), models=(replace(SMALL, layers=3),), batch=8, tiles=(2, 8),
                         regions={"small": (0, 4)}, tile_f=16, attention_regions=2)
    narrow, wide, dynamic, shared = figure.records()
    assert [r["regions"] for r in figure.records()] == [8, 8, 8, 4] and dynamic["over_dynamic"] == 1
    assert narrow["model_cycles"] == 3 * narrow["layer_cycles"]
    assert narrow["offchip_bytes"] > wide["offchip_bytes"] and dynamic["offchip_bytes"] == shared["offchip_bytes"]
    assert wide["onchip_bytes_figures"] - narrow["onchip_bytes_figures"] == 8 * 3 * (8 - 2) * 32 * 4
    # Regions of five operators that the experts share; the FLOPs/cycle of all else are the same.
    assert dynamic["allocated_flops_per_cycle"] - shared["allocated_flops_per_cycle"] == 4096 * 5 * 4
    draw(figure, module.sketch, tmp_path / "a.svg", module.PANELS)


def test_the_static_tile_that_is_compared():
    """Where the paper says how much memory dynamic tiles save over it, the tile over which ours save about as much."""
    module = figure_module(17)
    model = replace(SMALL, name="Qwen3-30B-A3B")
    figure = module.make(Lab(), Traces(), models=(model,), batch=8, tiles=(2, 8, 32), regions={}, tile_f=16,
                         attention_regions=2)
    memory = {r["tile"]: r["onchip_bytes_figures"] for r in figure.records()}
    over = {r["tile"]: r["over_dynamic"] for r in figure.records()}
    saved = {tile: 1 - memory["dynamic"] / memory[tile] for tile in ("2", "8", "32")}
    tile = min(saved, key=lambda tile: abs(saved[tile] - 0.69))
    claim = next(c for c in figure.claims if c.bar is not None)
    assert claim.what == f"{model.name}: static with memory of which dynamic saves 69% (tile {tile}) over dynamic"
    assert claim.ours == over[tile] and claim.paper == 1.15


def test_every_figure_counts_its_points():
    for number in figure_numbers():
        assert figure_module(number).points() > 0


def test_points_are_run_once(lab, tmp_path):
    module = figure_module(9)
    first = module.make(lab, Traces(), models=(SMALL,), batch=16, tiles=(4,), tile_f=16)
    assert (lab.finished, lab.reused) == (2, 0)
    again = Lab(directory=tmp_path)
    assert module.make(again, Traces(), models=(SMALL,), batch=16, tiles=(4,), tile_f=16) == first
    assert (again.finished, again.reused) == (2, 2)
    damaged = next((tmp_path / "figures").glob("*.json"))
    damaged.write_text(damaged.read_text().replace('"cycles": ', '"cycles": 1'))
    third = Lab(directory=tmp_path)
    assert module.make(third, Traces(), models=(SMALL,), batch=16, tiles=(4,), tile_f=16) == first
    assert (third.finished, third.reused) == (2, 1)


def test_tables(tmp_path):
    figure = Figure(9, "t", ("a", "b"), [(1, 0.5), ("x", None)], [Claim("c", (1.0, 2.0), (1.1, 2.5), "s", bar=0.2)])
    write_rows(figure, tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text() == "a,b\n1,0.5\nx,\n"
    write_claims(figure, tmp_path / "claims.csv")
    with (tmp_path / "claims.csv").open() as file:
        low, high = csv.DictReader(file)
    assert (low["what"], low["ratio"], high["ratio"], high["within"]) == ("c, low end", "1.1", "1.25", "False")


def test_data_that_is_not_there(tmp_path):
    with pytest.raises(BadParameter, match="no such directory"):
        Traces(tmp_path / "none")
    with pytest.raises(BadParameter, match=r"0 files '\*.npz' .* fix: give the directory"):
        Traces(tmp_path).routing("mixtral", 64, 2, 8)
    with pytest.raises(BadParameter, match=r"0 files '\*stdev0477_"):
        Traces(tmp_path).lengths(64, 477)


def test_requests_of_a_layer_head_by_head():
    model = replace(SMALL, kv_heads=2)
    given = {"schedule": "queued", "tile_rows": None, "tile_f": 16}
    made = []
    for by_head in (True, False):
        point = layer_point(model, [[0, 1]] * 3, [5, 70, 9], by_head=by_head, **given)
        made.append(layer_streams(layer.build(**point.parameters), point.given))
    assert made[0]["number"] == [0, 2, 4, 1, 3, 5] and made[0]["length"] == [5, 70, 9] * 2
    assert made[1]["number"] == list(range(6)) and made[1]["length"] == [5, 5, 70, 70, 9, 9]
    assert made[0]["full"] == [0, 2, 0] * 2 and made[0]["order"] == made[1]["order"]
