"""``step-hw report``: its files and numbers for the model and for RTL, and what it refuses."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from rtl_tests.harness.build import installed
from step_hw.tests.command import COPY, FORK_JOIN, MERGE, T4, environment, step_hw, write
from step_hw.tests.test_bad_input import refused

ENOUGH = ("--hw", "link.depth=8")


def test_files_and_numbers(tmp_path):
    program = write(tmp_path, FORK_JOIN)
    outcome = step_hw("report", program, *T4, *ENOUGH, "-o", tmp_path / "out", "--json", tmp_path / "r.json")
    assert outcome.code == 0, outcome.err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["report.html", "trace.json"]
    found = json.loads((tmp_path / "r.json").read_text())
    assert step_hw("simulate", program, *T4, *ENOUGH, "--json", tmp_path / "s.json").code == 0
    predicted = json.loads((tmp_path / "s.json").read_text())
    for name in ("cycles", "total_cycles", "offchip_read_bytes", "offchip_write_bytes", "flops", "roofline_cycles"):
        assert found[name] == predicted[name], name
    assert found["findings"] and set(found["busy"]) == {"load_x", "fold", "back", "join", "store_y"}
    page = (tmp_path / "out/report.html").read_text()
    assert f"{found['cycles']:,} (first off-chip read" in page and f"{found['cycles']:,} (first off" in outcome.out
    for said in found["findings"]:
        assert said["title"] in page and said["try"]
    assert found["findings"][0]["text"] in outcome.out and str(tmp_path / "out/report.html") in outcome.out
    assert json.loads((tmp_path / "out/trace.json").read_text())["otherData"]["cycles"] == found["cycles"]


def test_same_run_same_bytes(copy, tmp_path):
    assert step_hw("report", copy, *T4, "-o", tmp_path / "0").code == 0
    subprocess.run([sys.executable, "-m", "step_hw", "report", copy, *T4, "-o", tmp_path / "1"], check=True,
                   env=environment(PYTHONHASHSEED="1"), cwd=tmp_path, capture_output=True)
    for name in ("report.html", "trace.json"):
        text = (tmp_path / "0" / name).read_bytes()
        assert text == (tmp_path / "1" / name).read_bytes(), name
        assert str(tmp_path).encode() not in text   # it can be given away


@pytest.mark.parametrize("machine", ["hardware", "paper"])
def test_tile_fidelity(machine, tmp_path):
    program = write(tmp_path, COPY)
    options = T4 if machine == "hardware" else ()
    outcome = step_hw("report", program, *options, "--fidelity", "tile", "--machine", machine, "-o", tmp_path / "out",
                      "--json", tmp_path / "r.json")
    assert outcome.code == 0, outcome.err
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["simulator"] == "model, tile fidelity" and found["offchip_read_bytes"] == 2 * 4 * 16 * 2
    assert set(found["units"]) == {"load_x", "store_y"}
    assert (tmp_path / "out/report.html").exists() and (tmp_path / "out/trace.json").exists()


@pytest.mark.skipif(installed("icarus") is not None, reason="Icarus Verilog is not installed")
def test_rtl_from_its_record(tmp_path):
    """RTL's report, made of its beats, and the model's, made of its own, say the same where the runs are the same."""
    program, size = write(tmp_path, MERGE), ("--hw", "tile.size=2")
    assert step_hw("cosim", program, *size, "--simulator", "icarus", "-o", tmp_path / "out").code == 0
    cosim = json.loads((tmp_path / "out/result.json").read_text())
    recorded = step_hw("report", "--run", tmp_path / "out/run", "-o", tmp_path / "rtl", "--json", tmp_path / "rtl.json")
    assert recorded.code == 0, recorded.err
    assert step_hw("report", program, *size, "-o", tmp_path / "beat", "--json", tmp_path / "beat.json").code == 0
    rtl, beat = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("rtl", "beat"))
    assert (rtl["simulator"], beat["simulator"]) == ("RTL, icarus", "model, beat fidelity")
    for name in ("cycles", "total_cycles", "offchip_read_bytes", "offchip_write_bytes", "flops"):
        assert rtl[name] == cosim[name]
    assert cosim["cycles"] == cosim["model_cycles"] == beat["cycles"]
    assert rtl["units"].keys() == beat["units"].keys()
    for name, counts in rtl["units"].items():
        assert sum(counts.values()) == rtl["total_cycles"], name
    assert rtl["units"]["late"]["busy"] == beat["units"]["late"]["busy"] > 0

    def slices(name: str) -> list[tuple[str, int, int]]:
        events = json.loads((tmp_path / name / "trace.json").read_text())["traceEvents"]
        begin = min(event["ts"] for event in events if event["ph"] == "X")
        return [(event["tid"], event["ts"] - begin, event["dur"]) for event in events if event["ph"] == "X"]

    assert slices("rtl") == slices("beat")
    assert "What this record is" in (tmp_path / "rtl/report.html").read_text()

    # What is missing or broken is told.
    run = tmp_path / "out/run/run.json"
    whole = run.read_text()
    for name, value in {"cycles": "9", "total_cycles": -1, "peak_frames": [], "offchip_read_bytes": None}.items():
        document = json.loads(whole)
        document["numbers"][name] = value
        run.write_text(json.dumps(document))
        refused(step_hw("report", "--run", tmp_path / "out/run"), rf"run: {name} .* in run.json vs", "cosim again")
    run.write_text(whole)
    beats = tmp_path / "out/run/beats.npz"
    with np.load(beats) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(beats, **{**arrays, "blocked": arrays["blocked"][:-1]})
    refused(step_hw("report", "--run", tmp_path / "out/run"), "links vs the .* of the program now", "cosim again")
    beats.write_bytes(beats.read_bytes()[:100])
    refused(step_hw("report", "--run", tmp_path / "out/run"), re.escape(str(tmp_path / "out/run")))
    beats.unlink()
    refused(step_hw("report", "--run", tmp_path / "out/run"), "without beats", "fix: run step-hw cosim again")


@pytest.mark.parametrize(("options", "said"), [
    ((), "PROGRAM.py vs --run DIR"),
    (("PROGRAM", "--run", "DIR"), "PROGRAM.py vs --run DIR"),
    (("--run", "DIR", "--set", "t=4"), "--run: a recorded run vs options that make another run"),
    (("--run", "DIR"), "run record .*DIR"),
    (("PROGRAM", "--machine", "paper"), "--machine paper vs --fidelity beat"),
    (("PROGRAM", "--fidelity", "tile", "--machine", "paper", *T4), "unknown key 'tile.size' vs memory, roofline"),
    (("PROGRAM", "--fidelity", "tile", "--machine", "paper", "--config", "DIR"), "vs --config, which is of the hard"),
    (("PROGRAM", "--fidelity", "tile", "--machine", "none.toml"), "machine 'none.toml': No such file"),
    (("PROGRAM", "--fidelity", "tile", "--calibration", "DIR"), "--calibration: constants of beat fidelity"),
    (("PROGRAM", "--set", "nothing=1"), "'nothing' vs one of rows"),
])
def test_what_it_refuses(options, said, copy, tmp_path):
    places = {"PROGRAM": copy, "DIR": tmp_path / "DIR"}
    refused(step_hw("report", *(places.get(option, option) for option in options)), said)


def test_output_directory(copy, tmp_path):
    (tmp_path / "file").write_text("")
    refused(step_hw("report", copy, *T4, "-o", tmp_path / "file"), "vs a writable place")
