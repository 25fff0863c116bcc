"""What each command does when all is well: files, JSON names, tables."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples.data import random_tensors
from step_hw.cli import COMMANDS, options
from step_hw.cli.program_file import ProgramFile
from step_hw.tests.command import FORK_JOIN, MERGE, T4, environment, step_hw, write
from step_lang import interpret
from step_lang.hwconfig import HardwareConfig

BYTES = 2 * 4 * 16 * 2  # of the copied tensor, rows x cols tiles of 16 bf16


def digest(directory: Path) -> dict[str, str]:
    return {
        str(p.relative_to(directory)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(directory.rglob("*"))
        if p.is_file()
    }


def rows_of(table: str) -> dict[str, str]:
    """Rows of a two-column table by their first column."""
    return {
        line.split("  ")[1]: line.strip().split("  ", 1)[1].strip()
        for line in table.splitlines()
        if line.startswith("  ")
    }


# Help


def test_without_arguments_shows_help():
    outcome = step_hw()
    assert outcome.code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in outcome.out


def test_help_is_whole():
    """No summary is cut, every option says what it does."""
    assert "..." not in step_hw("-h").out.split("Commands:")[1]
    for name in COMMANDS:
        outcome = step_hw(name, "--help")
        assert outcome.code == 0 and outcome.out.startswith(f"Usage: step-hw {name} ")
        for option in re.findall(r"^  (-[^\n]*)\n(?=  -|$)", outcome.out, re.M):
            assert "  " in option, f"{name}: {option} has no help"


def test_version():
    assert re.fullmatch(r"step-hw(, not installed| \d+\.\d+.*)\n", step_hw("--version").out)


# generate


def test_generate_writes_everything(copy, tmp_path):
    outcome = step_hw("generate", copy, *T4, "-o", tmp_path / "out", "--json", tmp_path / "facts.json")
    assert outcome.code == 0, outcome.err
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert (facts["program"], facts["tile"], facts["warnings"]) == ("copy", 4, [])
    files = digest(tmp_path / "out")
    assert {str(tmp_path / "out" / name) for name in files} == set(facts["files"])
    assert {"manifest.json", "registers.txt", "hw.toml", "program.svg", "lowered.svg", "verilog/files.f"} <= set(files)
    listed = (tmp_path / "out/verilog/files.f").read_text().split()
    assert {f"verilog/{name}" for name in listed} == {name for name in files if name.endswith(".v")}
    assert sum((tmp_path / "out/verilog" / name).read_text().count("\n") for name in listed) == facts["verilog_lines"]
    assert HardwareConfig.load(tmp_path / "out/hw.toml") == HardwareConfig(tile=4)
    assert rows_of(outcome.out)["units / links"] == f"{facts['units']} / {facts['links']}"


def test_generate_is_deterministic(copy, tmp_path):
    """Same bytes again, and with other hash seeds."""
    assert step_hw("generate", copy, *T4, "-o", tmp_path / "0").code == 0
    wanted = digest(tmp_path / "0")
    assert len(wanted) > 6
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-m", "step_hw", "generate", copy, *T4, "-o", tmp_path / seed],
            check=True,
            env=environment(PYTHONHASHSEED=seed),
            cwd=tmp_path,
            capture_output=True,
        )
        assert digest(tmp_path / seed) == wanted


def test_sizes_change_registers_not_verilog(copy, tmp_path):
    for rows in (1, 4):
        assert step_hw("generate", copy, *T4, "--set", f"rows={rows}", "-o", tmp_path / str(rows)).code == 0
    few, many = digest(tmp_path / "1"), digest(tmp_path / "4")
    differing = {name for name in few if few[name] != many[name]}
    assert few.keys() == many.keys()
    assert "registers.txt" in differing
    assert not any(name.startswith("verilog/") for name in differing)


# simulate


def test_simulate(copy, tmp_path):
    outcome = step_hw("simulate", copy, *T4, "--json", tmp_path / "p.json")
    assert outcome.code == 0, outcome.err
    found = json.loads((tmp_path / "p.json").read_text())
    assert (found["offchip_read_bytes"], found["offchip_write_bytes"], found["flops"]) == (BYTES, BYTES, 0)
    assert found["symbolic_offchip_bytes"] == 2 * BYTES
    assert found["onchip_bytes"] == 2 * 2 * 32  # SPEC section 5: twice a tile for each off-chip operator
    assert found["beats"] == {"load_x": 9}  # 8 tiles and done
    assert 0 < found["roofline_cycles"] < found["cycles"] < found["total_cycles"]
    for counts in found["stalls"].values():
        assert sum(counts.values()) == found["total_cycles"]
    assert rows_of(outcome.out)["cycles"].startswith(f"{found['cycles']} ")
    assert "where each unit's cycles went" in outcome.out
    assert "where each unit" not in step_hw("simulate", copy, *T4, "--no-stalls").out


def test_a_deadlock_is_told_before_and_after(tmp_path):
    program = write(tmp_path, FORK_JOIN)
    warning = "warning: map 'join' of join (program.py:12): 'back' takes 8 before its first element"
    outcome = step_hw("simulate", program, *T4)
    assert outcome.code == 2
    assert 0 <= outcome.err.index(warning) < outcome.err.index("error: deadlock")
    assert "fix: give load_x__to__join 7 beats in [link.depths], or run step-hw size-fifos" in outcome.err
    assert step_hw("generate", program, *T4, "-o", tmp_path / "o").out.count("'back' takes 8 before its first") == 1
    manifest = json.loads((tmp_path / "o" / "manifest.json").read_text())
    assert manifest["warnings"][0].startswith(warning.removeprefix("warning: "))
    enough = ("--hw", "link.depth=8")
    assert "warning" not in step_hw("simulate", program, *T4, *enough).err


def test_simulate_with_sizes_known_at_run_time(tmp_path):
    path = tmp_path / "dynamic.py"
    path.write_text("""
from step_lang import Program, bf16, dynamic, ops, scalar, u32

def build(t: int = 4):
    with Program("gather") as p:
        ref = ops.input_stream("ref", scalar(u32), (dynamic("n"),))
        x = p.tensor("x", (t, t), bf16)
        y = p.tensor("y", (8 * t, t), bf16)
        ops.linear_offchip_store(ops.linear_offchip_load(x, (t, t), ref=ref, name="load_x"), y)
    return p

def streams(program, seed=0):
    return {"ref": [seed] * (3 + seed)}
""")
    for seed in (0, 2):
        outcome = step_hw("simulate", path, *T4, "--seed", seed, "--json", tmp_path / "p.json")
        assert outcome.code == 0, outcome.err
        found = json.loads((tmp_path / "p.json").read_text())
        reads = (3 + seed) * (32 + 4)
        assert (found["offchip_read_bytes"], found["symbolic_offchip_bytes"]) == (reads, reads + (3 + seed) * 32)


def test_a_static_program_is_predicted_without_values(tmp_path):
    """The bandwidth that an operator does not state was taken for a size that only a run knows."""
    outcome = step_hw("simulate", write(tmp_path, FORK_JOIN + "\n\ndef inputs(program, seed):\n    raise ValueError\n"),
                      *T4, "--hw", "link.depth=16")
    assert outcome.code == 0, outcome.err


def test_piped_lines_are_not_broken(copy):
    """Output is as wide as it needs to be, whatever rich takes for the width of a pipe."""
    done = subprocess.run(
        [sys.executable, "-m", "step_hw", "simulate", copy, *T4],
        env=environment(COLUMNS="40"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "copy on T = 4, predicted from the units' stated timing (no calibration file)\n" in done.stdout
    assert not any(line.endswith(" ") for line in done.stdout.splitlines())


def test_brackets_and_colons_are_printed(copy, tmp_path, capsys):
    """They were markup to rich: ``[link.depths]`` vanished from warnings, a folder ``a[/b]`` was a traceback."""
    where = tmp_path / "a[/b] :smile: [link.depths]"
    outcome = step_hw("generate", copy, *T4, "-o", where)
    assert outcome.code == 0, outcome.err
    assert f"registers        {where}/registers.txt, named in {where}/manifest.json" in outcome.out
    options.console.print("[link.depths] [/b] :smile:")
    assert capsys.readouterr().err == "[link.depths] [/b] :smile:\n"


# size-fifos


def test_size_fifos(tmp_path):
    program = write(tmp_path, FORK_JOIN)
    outcome = step_hw("size-fifos", program, *T4, "-o", tmp_path / "o", "--json", tmp_path / "s.json")
    assert outcome.code == 0, outcome.err
    found = json.loads((tmp_path / "s.json").read_text())
    assert found["deadlock_free"]["depths"] == {"load_x__to__join": 7}
    assert found["default_total_cycles"] is None and found["default_deadlock"].startswith("deadlock: ")
    for goal, text in (("deadlock_free", "no deadlock"), ("full", "full throughput")):
        [proof] = found[goal]["proof"]
        assert re.search(rf"^{text}; written.*\n.*\n *{proof['link']} +{proof['depth']} +{proof['outcome'][:20]}",
                         outcome.out, re.M)
    # The files are configurations for the other commands.
    for name, goal in (("deadlock_free", "deadlock_free"), ("full_throughput", "full")):
        config = tmp_path / "o" / f"{name}.toml"
        assert HardwareConfig.load(config).link_depths == found[goal]["depths"]
        assert step_hw("simulate", program, "--config", config, "--json", tmp_path / "p.json").code == 0
        assert json.loads((tmp_path / "p.json").read_text())["total_cycles"] == found[goal]["total_cycles"]
    assert found["full"]["cycles"] == found["unbounded_cycles"]
    before = digest(tmp_path / "o")
    assert step_hw("size-fifos", program, *T4, "-o", tmp_path / "o").code == 0
    assert digest(tmp_path / "o") == before
    assert "no link deeper" in step_hw("size-fifos", program, *T4, "--hw", "link.depth=64", "-o", tmp_path / "q").out


# cosim


def test_cosim(copy, tmp_path):
    outcome = step_hw("cosim", copy, *T4, "-o", tmp_path / "out", "--seed", 3)
    assert outcome.code == 0, outcome.err
    found = json.loads((tmp_path / "out/result.json").read_text())
    assert found["bit_exact"] is True and found["differences"] == [] and found["traffic_exact"] is True
    assert (found["offchip_read_bytes"], found["offchip_write_bytes"]) == (BYTES, BYTES)
    assert found["cycles"] == found["model_cycles"] and found["error"] == 0
    assert found["flops"] == 0 and found["onchip_bytes"] == 128
    assert 0 < found["simulation_seconds"] < found["wall_seconds"]
    rows = rows_of(outcome.out)
    assert rows["cycles"].startswith(f"{found['cycles']} ") and rows["bit-exact"].startswith("yes")
    file = ProgramFile.open(copy)
    stored = np.load(tmp_path / "out/y.npy")
    assert (stored == random_tensors(file.build(), 3)["x"].view(np.uint16)).all()


ROUTED = """
from step_lang import Program, Selector, bf16, ops

def build(count=4, skip=0):
    with Program("routed") as p:
        x = ops.linear_offchip_load(p.tensor("x", (count, 2), bf16), (1, 2), shape=(count,), stride=(1,))
        route = ops.input_stream("route", Selector(1), (count,))
        (kept,) = ops.partition(x, route, rank=0)
        ops.linear_offchip_store(kept, p.tensor("y", (count, 2), bf16))
    return p

def streams(program, seed, skip=0):
    count = program.tensors["x"].shape[0]
    return {"route": [{0} if i >= skip else set() for i in range(count)]}
"""


def test_values_of_input_streams_may_depend_on_parameters(tmp_path):
    """What ``streams`` asks for by name it gets, from --set and from the points of a sweep."""
    path = write(tmp_path, ROUTED)
    file = ProgramFile.open(path, {"count": 3, "skip": 1})
    assert file.stream_inputs(file.build()) == {"route": [set(), {0}, {0}]}
    program = file.build(skip=2)
    assert file.stream_inputs(program, skip=2) == {"route": [set(), set(), {0}]}
    assert file.tensors(program, skip=2)["x"].shape == (3, 2)  # a maker that does not ask is not told


def test_run_is_replayed_from_its_files(tmp_path):
    """The grants of RTL, the inputs, the program and what it imports from its folder, be it in ``build``, lie beside
    the results; a byte changed in any is told."""
    (tmp_path / "sizes").mkdir()
    (tmp_path / "sizes/__init__.py").write_text("")
    (tmp_path / "sizes/few.py").write_text("FEW = 2\n")
    (tmp_path / "late.py").write_text("LATE = 3\n")
    build = "def build(t: int = 2):\n"
    assert MERGE.count(build) == 1
    program_file = write(tmp_path, "from sizes.few import FEW\n" + MERGE.replace(
        build, f"{build}    from late import LATE\n    assert (FEW, LATE) == (2, 3)\n"))
    outcome = step_hw("cosim", program_file, "--hw", "tile.size=2", "--simulator", "icarus", "-o", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    found = json.loads((tmp_path / "out/result.json").read_text())
    record = json.loads((tmp_path / "out/run/run.json").read_text())
    assert found["bit_exact"] is True and found["same_grants"] is True and found["cycles"] == found["model_cycles"]
    order = record["arbitration"]["merge"]
    assert sorted(order) == [0, 0, 1, 1, 1, 1] != order
    assert record["arbitration"] == found["arbitration"] and record["numbers"]["cycles"] == found["cycles"]
    # The order is RTL's, not index order.
    program = ProgramFile.open(program_file).build()
    tensors = random_tensors(program, 0)
    assert not np.array_equal(interpret(program, tensors).tensors["y"],
                              interpret(program, tensors, arbitration=record["arbitration"]).tensors["y"])

    assert set(record["beside"]) == {"late.py", "sizes/__init__.py", "sizes/few.py"}
    Path(program_file).unlink()  # the record holds all that is needed
    (tmp_path / "late.py").unlink()
    shutil.rmtree(tmp_path / "sizes")
    for name in ("late", "sizes", "sizes.few"):  # a process of its own would not have them
        del sys.modules[name]
    again = step_hw("replay", tmp_path / "out/run", "--json", tmp_path / "again.json")
    assert again.code == 0, again.err
    numbers = json.loads((tmp_path / "again.json").read_text())
    assert numbers["bit_exact"] and numbers["cycles"] == found["cycles"]

    with np.load(tmp_path / "out/run/run.npz") as file:
        arrays = {name: file[name] for name in file.files}
    arrays["output.y"][0, 0] ^= 1
    np.savez(tmp_path / "out/run/run.npz", **arrays)
    changed = step_hw("replay", tmp_path / "out/run")
    assert changed.code == 2 and "tensor 'y': recorded vs repeated" in changed.err

    for name in ("sizes/few.py", "program.py"):
        with (tmp_path / "out/run" / name).open("a") as file:
            file.write("\n")
        edited = step_hw("replay", tmp_path / "out/run")
        assert edited.code == 2 and f"{name} was changed since" in edited.err
    missing = step_hw("replay", tmp_path / "nothing")
    assert missing.code == 2 and "run.json: No such file or directory" in missing.err


RACE = """
from step_lang import Program, fn, int32, ops, scalar, u32


def build():
    with Program("race") as p:
        x, d = p.tensor("x", (4, 1), int32), p.tensor("d", (4, 1), int32)
        tiles = ops.linear_offchip_load(d, (1, 1), shape=(4,), stride=(1,))
        for _ in range(3):
            tiles = ops.map(fn.scale(1), tiles)
        at = ops.input_stream("at", scalar(u32), (4,))
        ops.random_offchip_store(at, tiles, x).optional = True
        ops.linear_offchip_store(ops.random_offchip_load(at, x, (1, 1)), p.tensor("y", (4, 1), int32))
    return p


def inputs(program, seed):
    import numpy
    return {"x": numpy.zeros((4, 1), "i4"), "d": numpy.ones((4, 1), "i4")}


def streams(program, seed):
    return {"at": [0, 1, 2, 3]}
"""


def test_a_read_that_does_not_wait_for_its_store(tmp_path):
    """RTL reads what was there before, the interpreter what is stored: the message says what orders them."""
    outcome = step_hw("cosim", write(tmp_path, RACE), "--hw", "tile.size=2", "--simulator", "icarus",
                      "-o", tmp_path / "out")
    assert outcome.code == 2 and "RTL of 'race' differs from the interpreter: tensor 'y' differs" in outcome.err
    assert "fix: make what reads or overwrites tensor 'x' wait for the acknowledgement of the store" in outcome.err


CHASE = """
import numpy as np
from step_lang import Program, Selector, ops, ragged, scalar, u32

N = 5


def build():
    with Program("chase") as p:
        first = ops.input_stream("first", scalar(u32), (1,))
        back = ops.feedback(scalar(u32), (ragged("b"),), name="back")
        turn = ops.input_stream("turn", Selector(2), (N,))
        at = ops.flatten(ops.reassemble([first, back], turn, rank=0), 0, 1, name="at").assume((N,))
        following = ops.random_offchip_load(at, p.tensor("next", (8, 1), u32), (1, 1), name="following")
        keep = ops.input_stream("keep", Selector(1), (N,))
        back.connect(ops.partition(following, keep, rank=0)[0])
        ops.linear_offchip_store(at, p.tensor("y", (N, 1), u32))
    return p


def inputs(program, seed):
    return {"next": np.array([[3], [0], [5], [7], [1], [4], [2], [6]], dtype=np.uint32)}


def streams(program, seed):
    return {"first": [0], "turn": [{0}] + [{1}] * (N - 1), "keep": [{0}] * (N - 1) + [set()]}
"""


def test_values_from_memory_steer_a_loop(tmp_path):
    """RTL runs it, the model does not. The last address is read although nobody waits for what is there."""
    program = write(tmp_path, CHASE)
    outcome = step_hw("cosim", program, "--hw", "tile.size=2", "--simulator", "icarus", "-o", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    assert np.load(tmp_path / "out/y.npy").ravel().tolist() == [0, 3, 7, 6, 2]
    assert "none: values steer the program that the model does not compute" in outcome.out
    assert "with the last store: following, back" in " ".join(outcome.out.split())
    found = json.loads((tmp_path / "out/result.json").read_text())
    assert found["bit_exact"] and found["model_cycles"] is found["error"] is found["same_grants"] is None
    assert step_hw("report", "--run", tmp_path / "out/run", "-o", tmp_path / "page").code == 0
    assert step_hw("replay", tmp_path / "out/run").code == 0
    predicted = step_hw("simulate", program, "--hw", "tile.size=2")
    assert predicted.code == 2 and "which 'at__to__following' steers" in predicted.err
    assert "fix: run it on RTL (step-hw cosim), or steer by" in predicted.err


def test_cosim_of_a_given_tensor(copy, tmp_path):
    x = np.arange(8 * 16, dtype=np.uint16).reshape(8, 16)
    np.save(tmp_path / "x.npy", x)
    outcome = step_hw(
        "cosim", copy, *T4, "-o", tmp_path / "out", "--tensor", f"x={tmp_path / 'x.npy'}", "--json", tmp_path / "r.json"
    )
    assert outcome.code == 0, outcome.err
    assert (np.load(tmp_path / "out/y.npy") == x).all()
    assert json.loads((tmp_path / "r.json").read_text())["bit_exact"] is True


def test_icarus_agrees_with_verilator(copy, tmp_path, both_simulators):
    for simulator in both_simulators:
        outcome = step_hw("cosim", copy, *T4, "-o", tmp_path / simulator, "--simulator", simulator)
        assert outcome.code == 0, outcome.err
    results = [json.loads((tmp_path / s / "result.json").read_text()) for s in both_simulators]
    for result in results:
        for name in ("simulator", "simulation_seconds", "model_seconds", "wall_seconds"):
            result.pop(name)
    assert results[0] == results[1]


# validate


def test_validate_sweep(copy, tmp_path):
    out = tmp_path / "out"
    outcome = step_hw("validate", copy, *T4, "-o", out, "--sweep", "sizes", "--explain")
    assert outcome.code == 0, outcome.err
    found = json.loads((out / "validate.json").read_text())
    assert [row["parameters"] for row in found["rows"]] == [{"rows": 1}, {"rows": 2}, {"rows": 4}]
    for row in found["rows"]:
        assert row["rtl_cycles"] == row["model_cycles"] > 0 and row["error"] == 0
        assert row["bit_exact"] and row["traffic_exact"]
        assert row["offchip_read_bytes"] == row["parameters"]["rows"] * 4 * 32
    assert (found["pearson"], found["mape"], found["max_error"]) == (pytest.approx(1.0), 0, 0)
    # Loading the model (seconds, also when it lies compiled in the cache) is in no row: these runs take milliseconds.
    assert found["model_load_seconds"] > 0 and found["model_seconds"] < 1
    written = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    assert sorted(written, key=lambda row: row["parameters"]["rows"]) == found["rows"]
    assert "<svg" in (out / "validate.svg").read_text()
    for row in found["rows"]:
        beats = row["parameters"]["rows"] * 4 + 1
        assert (
            f"rows={row['parameters']['rows']}: RTL and model agree: {beats} beats on 1 link, each in the same cycle"
        ) in outcome.out
    assert "3 configurations, 1 netlist;" in outcome.err


def test_validate_finds_the_wrong_constant(copy, tmp_path):
    """A model told that reads take three cycles more parts from RTL at the first loaded beat, and is said to."""
    from sim.calibration import Calibration
    from sim.memory import CALIBRATION

    wrong = tmp_path / "wrong.toml"
    Calibration(HardwareConfig(tile=4).digest(), dict(CALIBRATION) | {"hbm.read_overhead": 3}).save(wrong)
    outcome = step_hw("validate", copy, *T4, "-o", tmp_path / "out", "--calibration", wrong, "--explain")
    assert outcome.code == 0, outcome.err
    row = json.loads((tmp_path / "out/validate.json").read_text())["rows"][0]
    assert row["bit_exact"] and row["model_cycles"] - row["rtl_cycles"] == 3
    said = re.search(
        r"part on 1 of 1 links; first on link 'load_x', beat 0: RTL moves it in cycle (\d+), model moves it in "
        r"cycle (\d+)",
        outcome.out,
    )
    assert said and int(said[2]) - int(said[1]) == 3
    assert "<-- first difference" in outcome.out
    assert re.search(r"load_x \(load, .*program.py:\d+.*\): RTL state 0x[0-9a-f]+; model", outcome.out)
    assert "store_y (store, " in outcome.out


# calibrate


def test_calibrate(tmp_path, copy):
    from rtl_tests.microbenchmarks import FITTED, HELD_OUT
    from sim.calibration import Calibration

    texts = []
    for name in ("a.toml", "b.toml"):
        outcome = step_hw("calibrate", tmp_path / name, *T4, "--json", tmp_path / "c.json")
        assert outcome.code == 0, outcome.err
        texts.append((tmp_path / name).read_bytes())
    assert texts[0] == texts[1]
    hw = HardwareConfig(tile=4)
    loaded = Calibration.load(tmp_path / "a.toml", hw)
    assert loaded.constants == {"hbm.read_overhead": 0, "hbm.write_overhead": 0}
    assert [row.name for row in loaded.fitted] == [bench.name for bench in FITTED]
    assert [row.name for row in loaded.held_out] == [bench.name for bench in HELD_OUT]
    found = json.loads((tmp_path / "c.json").read_text())
    assert found["max_error"] <= 0.02 and found["constants"] == loaded.constants
    simulated = step_hw("simulate", copy, *T4, "--calibration", tmp_path / "a.toml")
    assert simulated.code == 0 and f"from calibration {tmp_path / 'a.toml'}" in simulated.out


SOFTMAX = Path(__file__).parents[2] / "examples" / "softmax.py"


def test_simulate_at_tile_fidelity(tmp_path):
    """The same traffic as at beat fidelity."""
    done = step_hw("simulate", SOFTMAX, "--fidelity", "tile", *T4, "--json", tmp_path / "tile.json")
    assert done.code == 0, done.err
    beat = step_hw("simulate", SOFTMAX, *T4, "--json", tmp_path / "beat.json")
    assert beat.code == 0, beat.err
    numbers = [json.loads((tmp_path / f"{name}.json").read_text()) for name in ("tile", "beat")]
    for name in ("offchip_read_bytes", "offchip_write_bytes", "onchip_bytes", "flops", "symbolic_offchip_bytes"):
        assert numbers[0][name] == numbers[1][name], name
    assert 0 < numbers[0]["compute_utilisation"] <= 1 and f"of {numbers[0]['allocated_compute']:,} a cycle" in done.out
    refused = step_hw("simulate", SOFTMAX, "--machine", "paper")
    assert refused.code == 2 and "fix: add --fidelity tile" in refused.err
