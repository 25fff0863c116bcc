"""``step-hw figures``: files, numbers and messages; what an interrupt leaves."""

import csv
import json

import pytest

from sim.figures import figure_module
from step_hw.tests.command import step_hw


def test_a_figure_and_its_files(tmp_path):
    outcome = step_hw("figures", "15", "-o", tmp_path / "out", "--json", tmp_path / "f.json")
    assert outcome.code == 0, outcome.err
    assert "coarse over dynamic, 16 requests" in outcome.out and "2.72" in outcome.out
    assert "generated (no --data)" in outcome.out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "figure15.csv", "figure15.svg", "figure15_claims.csv"]
    (document,) = json.loads((tmp_path / "f.json").read_text())["figures"]
    assert (document["figure"], len(document["rows"])) == (15, 4) and document["wall_seconds"] > 0
    with (tmp_path / "out" / "figure15.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["dynamic_cycles"]) for row in rows] == [row["dynamic_cycles"] for row in document["rows"]]
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    again = step_hw("figures", "15", "-o", tmp_path / "out")
    assert "8 runs, 8 of them known before" in again.err
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_an_interrupt_leaves_finished_figures(tmp_path, monkeypatch):
    def interrupted(lab, traces):
        raise KeyboardInterrupt

    monkeypatch.setattr(figure_module(21), "make", interrupted)
    outcome = step_hw("figures", "15", "21", "-o", tmp_path)
    assert outcome.code == 2
    assert "interrupted: 1 of 2 figures finished" in outcome.err and "8 runs are kept" in outcome.err
    assert (tmp_path / "figure15.svg").exists() and not (tmp_path / "figure21.svg").exists()


@pytest.mark.parametrize("arguments, message", [
    (["11"], "figure 11 vs one of 8, 9, 10, 12, 13, 14, 15, 17, 19, 20, 21"),
    (["9", "--data", "nowhere"], "--data nowhere: no such directory"),
    (["9", "--data", "."], "0 files '*.npz' in expert_routing/mixtral_b64 vs 1"),
])
def test_mistakes(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = step_hw("figures", *arguments)
    assert outcome.code == 2 and message in outcome.err and "Traceback" not in outcome.err
