"""Mistakes a user can make: one clear message, exit code 2, no traceback, nothing half-written."""

import os
import re
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import step_hw.cli as step_hw_cli
from sim.calibration import Calibration
from sim.memory import CALIBRATION
from step_hw.tests.command import COPY, FORK_JOIN, T4, Outcome, environment, step_hw, write
from step_lang.hwconfig import HardwareConfig

HEAD = """
from step_lang import Program, bf16, dynamic, fn, fp32, int8, ops, scalar, u32


def build(**parameters):
    with Program("p") as p:
        x = p.tensor("x", (8, 16), bf16)
        y = p.tensor("y", (8, 16), bf16)
"""


def refused(outcome: Outcome, *said: str) -> str:
    """Checks that a command ended in one message that says all of ``said``; the message."""
    assert outcome.code == 2, outcome
    assert "Traceback" not in outcome.err + outcome.out
    errors = [line for line in outcome.err.splitlines() if line.startswith(("error: ", "Error: "))]
    assert len(errors) == 1, outcome.err
    for text in said:
        assert re.search(text, errors[0]), f"{text!r} not in {errors[0]!r}"
    return errors[0]


@dataclass
class Case:
    """A body of ``build`` after `HEAD`, the line of the mistake in it (0: none), options, parts of the message."""

    name: str
    body: str
    line: int
    said: tuple[str, ...]
    options: tuple[str, ...] = ()
    command: str = "simulate"


PROGRAMS = [
    Case(
        "shape mismatch",
        """
a = ops.linear_offchip_load(x, (4, 4), name="a")
b = ops.linear_offchip_load(x, (4, 4), shape=(2,), stride=(1,), name="b")
ops.linear_offchip_store(ops.map(fn.add(), a, b, name="total"), y)
""",
        3,
        (r"map 'total'", r"\[2, 4\]", r"\[2\]", "fix: "),
    ),
    Case(
        "wrong rank",
        """
a = ops.linear_offchip_load(x, (4, 4))
ops.linear_offchip_store(ops.accum(fn.max(), a, rank=3, name="fold"), y)
""",
        2,
        ("accum 'fold'", "3", "1"),
    ),
    Case(
        "wrong type",
        """
a = ops.linear_offchip_load(x, (4, 4))
b = ops.linear_offchip_load(p.tensor("w", (8, 16), int8), (4, 4))
ops.linear_offchip_store(ops.map(fn.add(), a, b, name="total"), y)
""",
        3,
        ("map 'total'", "bf16", "int8"),
    ),
    Case(
        "tile does not divide",
        """
a = ops.linear_offchip_load(x, (4, 5), name="a")
ops.linear_offchip_store(a, y)
""",
        1,
        ("linear_offchip_load 'a'", "4 x 5 does not divide 8 x 16", "fix: "),
    ),
    Case(
        "stream used by nobody",
        """
a = ops.linear_offchip_load(x, (4, 4))
ops.map(fn.silu(), a, name="lost")
ops.linear_offchip_store(a, y)
""",
        2,
        ("map 'lost'", "used by nobody vs at least one consumer", "fix: "),
    ),
    Case(
        "stream of another program",
        """
with Program("other") as other:
    a = ops.linear_offchip_load(other.tensor("z", (8, 16), bf16), (4, 4))
ops.linear_offchip_store(a, y, name="store_y")
""",
        3,
        ("linear_offchip_store", "'p' vs 'other'"),
    ),
    Case(
        "unknown function",
        """
a = ops.linear_offchip_load(x, (4, 4))
ops.linear_offchip_store(ops.map(fn.swish(), a), y)
""",
        2,
        ("'swish'", "fix: use one of .*silu"),
    ),
    Case(
        "T not supported",
        """
ops.linear_offchip_store(ops.linear_offchip_load(x, (4, 4)), y)
""",
        0,
        (r"tile.size': 5 vs 2, 4, 8, 16",),
        ("--hw", "tile.size=5"),
    ),
    Case(
        "T does not divide the tile",
        """
ops.linear_offchip_store(ops.linear_offchip_load(x, (4, 4), name="a"), y)
""",
        1,
        ("4 x 4|4 rows|4 cols", "8"),
        ("--hw", "tile.size=8"),
    ),
    Case(
        "scratchpad too small",
        """
a = ops.linear_offchip_load(x, (4, 4), shape=(2, 4), stride=(4, 1))
ops.linear_offchip_store(ops.streamify(ops.bufferize(a, rank=1, name="keep"), repeat=1), y)
""",
        2,
        ("bufferize 'keep'", r"\b4\b", r"\b2\b", "scratchpad.frames"),
        (*T4, "--hw", "scratchpad.frames=2", "--hw", "scratchpad.page_frames=1"),
    ),
    Case(
        "accumulator too small",
        """
a = ops.linear_offchip_load(x, (8, 16), shape=(2,), stride=(0,))
ops.linear_offchip_store(ops.accum(fn.max(), ops.repeat(a, 1), rank=1, name="fold"), p.tensor("z", (16, 16), bf16))
""",
        2,
        ("accum 'fold'", r"vs 4 entries", "accumulator.entries"),
        (*T4, "--hw", "accumulator.entries=4"),
    ),
    Case(
        "off-chip memory too small",
        """
a = ops.linear_offchip_load(x, (4, 4))
ops.linear_offchip_store(a, y)
ops.linear_offchip_store(a, p.tensor("z", (8, 16), bf16))
""",
        3,
        ("off-chip memory for 'z'", "768 bytes vs 512", "memory.capacity_bytes"),
        (*T4, "--hw", "memory.capacity_bytes=512"),
    ),
    Case(
        "no such link",
        """
ops.linear_offchip_store(ops.linear_offchip_load(x, (4, 4), name="load_x"), y)
""",
        0,
        (r"link.depths.lod_x'", "no such link vs load_x"),
        (*T4, "--hw", "link.depths.lod_x=8"),
    ),
    Case(
        "unknown key",
        """
ops.linear_offchip_store(ops.linear_offchip_load(x, (4, 4)), y)
""",
        0,
        ("unknown key 'tile.sise'", "size"),
        ("--hw", "tile.sise=4"),
    ),
    Case(
        "override without a value",
        """
ops.linear_offchip_store(ops.linear_offchip_load(x, (4, 4)), y)
""",
        0,
        ("'tile.size' vs section.key=value",),
        ("--hw", "tile.size"),
    ),
    Case(
        "no configuration file",
        """
ops.linear_offchip_store(ops.linear_offchip_load(x, (4, 4)), y)
""",
        0,
        ("nowhere.toml", "No such file"),
        ("--config", "nowhere.toml"),
    ),
    Case(
        "no such sweep",
        """
ops.linear_offchip_store(ops.linear_offchip_load(x, (4, 4)), y)
""",
        0,
        ("'fig9' vs one of none", "fix: "),
        ("--sweep", "fig9"),
        "validate",
    ),
    Case(
        "the builder fails",
        """
x.nothing
""",
        1,
        ("AttributeError", "nothing"),
    ),
    Case(
        "the builder exits",
        """
raise SystemExit(0)
""",
        1,
        ("SystemExit",),
    ),
    Case(
        "no value",
        """
ops.linear_offchip_store(ops.linear_offchip_load(x, (4, 4)), y)
""",
        0,
        ("'rows' vs name=value",),
        ("--set", "rows"),
    ),
    Case(
        "input stream without values",
        """
ref = ops.input_stream("ref", scalar(u32), (dynamic("n"),))
ops.linear_offchip_store(ops.linear_offchip_load(x, (4, 4), ref=ref), y)
""",
        0,
        ("input stream 'ref'|'ref'", "missing"),
        T4,
    ),
    Case(
        "a tensor that no machine should make",
        """
z = p.tensor("z", (1 << 20, 1 << 20), bf16)
ops.linear_offchip_store(ops.linear_offchip_load(z, (4, 4), shape=(1,), stride=(1,)), y)
""",
        1,
        ("off-chip memory for 'z'", "2199023256064 bytes vs 8388608", "memory.capacity_bytes"),
        T4,
        "cosim",
    ),
    Case(
        "a negative seed",
        """
ops.linear_offchip_store(ops.linear_offchip_load(x, (4, 4)), y)
""",
        0,
        ("'--seed': -1 is not in the range x>=0",),
        (*T4, "--seed", "-1"),
    ),
]


@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case.name)
def test_program(case, tmp_path):
    head = HEAD.count("\n")
    body = "".join(f"        {line}\n" for line in case.body.strip().splitlines())
    path = write(tmp_path, f"{HEAD}{body}    return p\n", "mistake.py")
    outcome = step_hw(case.command, path, *case.options, "-o", tmp_path / "out")
    message = refused(outcome, *case.said)
    if case.line:
        assert f"mistake.py:{head + case.line}" in message
    assert not [p for p in (tmp_path / "out").rglob("*") if p.is_file()]


@pytest.mark.parametrize(
    ("text", "argument", "said"),
    [
        (None, "", ("program.py", "existing Python file", "fix: ")),
        ("", "", ("'build' in program.py: not found vs one of none",)),
        (COPY, ":make", ("'make' in program.py: not found vs one of build",)),
        ("def build(:\n", "", ("program.py does not import: SyntaxError", "line 1")),
        ("\nimport nothing_of_that_name\n", "", (r"program.py:2: .*ModuleNotFoundError",)),
        ("import sys\nsys.exit(3)\n", "", (r"program.py:2: .*SystemExit",)),
        ("def build(n): pass\n", "", ("missing 1 required positional argument: 'n'",)),
        ("def build(): return 7\n", "", ("int vs a Program",)),
    ],
    ids=["missing", "empty", "no such function", "syntax", "import", "exit", "parameter", "no program"],
)
def test_program_file(text, argument, said, tmp_path):
    path = tmp_path / "program.py"
    if text is not None:
        path.write_text(text)
    refused(step_hw("generate", f"{path}{argument}", *T4, "-o", tmp_path / "out"), *said)


@pytest.mark.parametrize(("program", "setting", "said"), [
    ("swiglu", "tile_b=0", "swiglu.py:.*tile_b: 0 vs an int of at least 1"),
    ("swiglu", "tile_f=wide", "parameter 'tile_f' of .* in swiglu.py: 'wide' vs an int"),
    ("swiglu", "hidden=None", "'None' vs an int"),
    ("matmul", "tile_k=0", "matmul.py:.*tile_k: 0 vs an int of at least 1"),
    ("matmul", "dtype=fp8", "matmul.py:.*dtype: 'fp8' vs one of bf16, int8"),
    ("matmul", "dtype=8", "parameter 'dtype' of .*: 8 vs a text"),
    ("simplified_moe", "tile_out=0", "tile_out: 0 vs an int of at least 1"),
    ("layer", "kv_heads=0", "kv_heads: 0 vs an int of at least 1"),
    ("moe", "trace=3", "parameter 'trace' of .*: 3 vs a text"),
    ("moe", "idle=1.5", "parameter 'idle' of .*: 1.5 vs an int"),
])
def test_parameters_of_the_examples(program, setting, said):
    path = Path(__file__).parents[2] / "examples" / f"{program}.py"
    message = refused(step_hw("simulate", path, "--set", setting, "--fidelity", "tile"), said)
    assert "Error: " not in message.removeprefix("error: ")


def test_the_line_of_a_file_given_by_a_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text("def build():\n    return 1 // 0\n")
    refused(step_hw("simulate", "program.py"), "error: program.py:2: .*ZeroDivisionError")


@pytest.mark.parametrize(("sweeps", "said"), [
    ("5", "SWEEPS of program.py: int vs a dict"), ("{'s': 5}", "sweep 's' of program.py: 5 vs a list of dicts"),
    ("{'s': [3]}", r"sweep 's' of program.py: \[3\] vs a list of dicts")])
@pytest.mark.parametrize("command", ["validate", "sweep"])
def test_sweeps_of_a_file_that_are_none(command, sweeps, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(f"{COPY}\nSWEEPS = {sweeps}\n")
    refused(step_hw(command, "program.py", "--sweep", "s"), said)


def test_calibration_file_that_cannot_be_written(tmp_path):
    """Said before minutes of RTL."""
    refused(step_hw("calibrate", tmp_path), "calibration file .*: Is a directory vs a writable place")


@pytest.mark.parametrize(("options", "said"), [
    (("--calibration", "c.toml"), "constants of beat fidelity vs --fidelity tile"),
    (("--machine", "paper", "--config", "hw.toml"), "vs --config, which is of the hardware"),
    (("--machine", "paper", *T4), "unknown key 'tile.size' vs memory, roofline"),
    (("--set", "rows=8", "--hw", "memory.capacity_bytes=1024"),
     "off-chip memory for 'y': 2048 bytes vs 1024; fix: set memory.capacity_bytes to at least 2048"),
])
def test_tile_fidelity(options, said, copy):
    refused(step_hw("simulate", copy, "--fidelity", "tile", *options), said)


def test_a_parameter_the_builder_does_not_take(copy):
    refused(step_hw("simulate", copy, "--set", "colour=3"), "'colour' vs one of rows, cols, t")


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("1 / 0", ("ZeroDivisionError", r"program.py:\d+")),
        ("[]", (r"inputs\(\) of program.py returns: list vs a dict",)),
        ("{}", ("tensor 'x'", "missing vs shape")),
        ("{'x': __import__('numpy').zeros((8, 16))}", ("tensor 'x'", "float64", "bf16")),
    ],
)
def test_inputs_of_the_file(returned, said, tmp_path):
    path = write(tmp_path, f"{COPY}\n\ndef inputs(program, seed):\n    return {returned}\n")
    for command in ("cosim", "validate"):
        refused(step_hw(command, path, *T4, "-o", tmp_path / "out"), *said)
    assert not {p.name for p in (tmp_path / "out").glob("*")} & {"result.json", "validate.json", "rows.jsonl"}


# Tensors given on the command line


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((8, 12), np.uint16), ("tensor 'x'", "8, 12", "8, 16")),
        (np.zeros((8, 16), np.float32), ("tensor 'x'", "float32", "bf16")),
        (b"", ("vs a readable .npy file",)),
        (b"nonsense", ("vs a readable .npy file",)),
        (None, ("vs a readable .npy file", "No such file")),
        ({}, ("an archive of arrays vs one array",)),
    ],
    ids=["shape", "dtype", "empty file", "no npy", "missing", "archive"],
)
def test_tensor_file(array, said, copy, tmp_path):
    path = tmp_path / "x.npy"
    if isinstance(array, dict):
        with path.open("wb") as file:
            np.savez(file, a=np.zeros(2))
    elif isinstance(array, bytes):
        path.write_bytes(array)
    elif array is not None:
        np.save(path, array)
    refused(step_hw("cosim", copy, *T4, "-o", tmp_path / "out", "--tensor", f"x={path}"), *said)
    assert not (tmp_path / "out").exists()


def test_a_value_that_stops_the_model_is_named(tmp_path):
    """The model knows the unit and its error code; simulate asks the interpreter for the value."""
    body = """
        at = ops.input_stream("at", scalar(u32), (2,))
        ops.linear_offchip_store(ops.random_offchip_load(at, x, (8, 16), name="get"), y)
    return p


def streams(program, seed):
    return {"at": [0, 1]}
"""
    path = write(tmp_path, HEAD + body.replace("y)", 'p.tensor("z", (16, 16), bf16))'), "mistake.py")
    message = refused(step_hw("simulate", path, *T4), "address 1 of element 1 vs tiles of tensor 'x' 0..0", "fix: ")
    assert f"random_offchip_load 'get' (mistake.py:{HEAD.count(chr(10)) + 3})" in message


def test_memory_that_the_machine_does_not_have(monkeypatch, capsys):
    """Not by asking for it: a machine that promises more memory than it has would kill the test."""

    def main(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 8.00 GiB for an array")

    monkeypatch.setattr(step_hw_cli.cli, "main", main)
    with pytest.raises(SystemExit) as stopped:
        step_hw_cli.main(["simulate"])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == ("error: Unable to allocate 8.00 GiB for an array vs the memory of this machine; "
                                       "fix: use smaller tensors or counts\n")


def test_tensor_of_no_such_name(copy, tmp_path):
    refused(step_hw("cosim", copy, *T4, "-o", tmp_path / "out", "--tensor", "z=z.npy"), "'z' vs one of x;", "fix: ")


def test_contents_of_a_tensor_that_is_stored(copy, tmp_path):
    refused(step_hw("cosim", copy, *T4, "-o", tmp_path / "out", "--tensor", "y=y.npy"), "contents of 'y' vs what the "
            "program stores", "fix: .*: x$")


# Calibration files


def _calibration(directory: Path, **change: tuple[str, str]) -> Path:
    path = directory / "c.toml"
    Calibration(HardwareConfig(tile=4).digest(), dict(CALIBRATION)).save(path)
    text = path.read_text()
    for old, new in change.values():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"a": ("version = 1", "version = 0")}, ("outdated", "version 0 vs 1")),
        ({"a": ("version = 1", "version = ")}, ("corrupt",)),
        ({"a": ("hbm.read_overhead", "hbm.overhead")}, ("corrupt", "hbm.read_overhead")),
        ({"a": ('read_overhead" = 0', 'read_overhead" = "much"')}, ("corrupt", "much")),
        ({"a": ("[constants]", "[[fitted]]\nname = 1\n[constants]")}, ("corrupt", "rtl_cycles")),
    ],
    ids=["outdated", "no toml", "constant missing", "constant no number", "comparison"],
)
def test_calibration_file(change, said, copy, tmp_path):
    path = _calibration(tmp_path, **change)
    for command in ("simulate", "cosim", "validate"):
        refused(
            step_hw(command, copy, *T4, "--calibration", path, "-o", tmp_path / "out"),
            *said,
            "fix: run 'step-hw calibrate'",
        )
    assert not (tmp_path / "out").exists()


def test_calibration_of_other_hardware(copy, tmp_path):
    path = _calibration(tmp_path)
    assert step_hw("simulate", copy, *T4, "--calibration", path).code == 0
    refused(step_hw("simulate", copy, "--hw", "tile.size=2", "--calibration", path), "of other hardware", "fix: ")
    refused(step_hw("simulate", copy, *T4, "--hw", "memory.latency=15", "--calibration", path), "of other hardware")


def test_no_calibration_file(copy, tmp_path):
    refused(
        step_hw("simulate", copy, *T4, "--calibration", tmp_path / "no.toml"), "missing vs an existing file", "fix: "
    )
    refused(step_hw("simulate", copy, *T4, "--calibration", tmp_path), "corrupt")


# Simulators


def _stub(directory: Path, **programs: str) -> str:
    """A PATH of stubs that print a version."""
    for name, output in programs.items():
        path = directory / name.replace("gxx", "g++")
        path.write_text(f"#!/bin/sh\necho '{output}'\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(directory)


@pytest.mark.parametrize(
    ("simulator", "programs", "said"),
    [
        ("verilator", {}, ("verilator, make, g\\+\\+ not found on PATH", "fix: apt install verilator")),
        (
            "verilator",
            {"verilator": "Verilator 4.038 2020", "make": "", "gxx": ""},
            ("version 4.038 vs at least 5.006", "fix: "),
        ),
        ("verilator", {"verilator": "what?", "make": "", "gxx": ""}, ("prints no version", "fix: ")),
        ("icarus", {"verilator": "Verilator 5.040"}, ("iverilog, vvp not found on PATH", "fix: apt install iverilog")),
        (
            "icarus",
            {"iverilog": "Icarus Verilog version 10.3 (stable)", "vvp": ""},
            ("version 10.3 vs at least 11.0", "fix: "),
        ),
    ],
    ids=["none", "too old", "no version", "no icarus", "icarus too old"],
)
def test_simulator(simulator, programs, said, copy, tmp_path, monkeypatch):
    stubs = tmp_path / "bin"
    stubs.mkdir()
    monkeypatch.setenv("PATH", _stub(stubs, **programs))
    for command in ("cosim", "validate"):
        refused(step_hw(command, copy, *T4, "-o", tmp_path / "out", "--simulator", simulator), *said)
    assert not {p.name for p in (tmp_path / "out").glob("*")} & {"result.json", "validate.json", "rows.jsonl"}
    if simulator == "verilator":
        refused(step_hw("calibrate", tmp_path / "c.toml", *T4), *said)
        assert not (tmp_path / "c.toml").exists()


def test_a_compiler_that_fails(copy, tmp_path, monkeypatch):
    stubs = tmp_path / "bin"
    stubs.mkdir()
    _stub(stubs, verilator="Verilator 5.040", make="", gxx="")
    (stubs / "verilator").write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo Verilator 5.040 && exit\necho '%Error: out of luck'\nexit 1\n"
    )
    monkeypatch.setenv("PATH", f"{stubs}:{os.environ['PATH']}")
    monkeypatch.setenv("STEP_HW_CACHE", str(tmp_path / "cache"))
    refused(step_hw("cosim", copy, *T4, "-o", tmp_path / "out"), "could not compile copy_top")
    assert list((tmp_path / "cache/builds").iterdir()) == []


# Places that cannot be written. (A file in place of a directory: it stops root as well.)


@pytest.mark.parametrize("command", ["generate", "simulate", "cosim", "validate"])
def test_output_directory(command, copy, tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file/below"):
        refused(step_hw(command, copy, *T4, "-o", place), re.escape(str(place)), "vs a writable place")
    assert (tmp_path / "file").read_text() == ""


def test_json_and_calibration_files(copy, tmp_path):
    (tmp_path / "file").write_text("")
    refused(step_hw("simulate", copy, *T4, "--json", tmp_path / "file/x.json"), "JSON file", "vs a writable place")
    refused(step_hw("simulate", copy, *T4, "--json", tmp_path), "JSON file", "vs a writable place")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "program.py"]


def test_build_directory(copy, tmp_path):
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "step_hw", "cosim", copy, *T4, "-o", tmp_path / "out"],
        capture_output=True,
        text=True,
        env=environment(STEP_HW_CACHE=str(tmp_path / "file"), NUMBA_CACHE_DIR=str(tmp_path / "numba")),
        check=False,
    )
    refused(Outcome(done.returncode, done.stdout, done.stderr), "build directory", "fix: set STEP_HW_CACHE")
    assert not (tmp_path / "out/result.json").exists()


# At run time


def test_results_of_an_older_run_do_not_survive_a_failed_one(tmp_path):
    path = write(tmp_path, FORK_JOIN)
    out = tmp_path / "out"
    out.mkdir()
    for name in ("validate.json", "rows.jsonl", "validate.svg"):
        (out / name).write_text("old")
    assert step_hw("validate", path, *T4, "-o", out).code == 2
    assert [p.name for p in out.iterdir()] == ["rows.jsonl"] and not (out / "rows.jsonl").read_text()
