"""The record of a run on files: what is damaged, missing or changed is told by the file's name."""

import json
import re

import numpy as np
import pytest

from sim.tests.sweep_cases import copy_program
from step_hw.run_record import RunRecord
from step_lang.errors import BuildError, StepError, TensorError
from step_lang.hwconfig import HardwareConfig

FILES = ("run.json", "run.npz", "beats.npz", "hw.toml", "copy.py", "beside.py")


@pytest.fixture
def directory(tmp_path):
    program = copy_program()
    arrays = {name: np.zeros(tensor.shape, tensor.dtype.numpy) for name, tensor in program.tensors.items()}
    record = RunRecord("copy.py", "text\n", "build", {}, HardwareConfig(tile=4), {"x": arrays["x"]}, {}, {},
                       {"y": arrays["y"]}, {"cycles": 9}, {"beside.py": "more\n"}, np.array([[1, 0, 0], [3, 1, 0]]),
                       np.array([0, 0]))
    return record.save(tmp_path / "run")


def load(directory):
    return RunRecord.load(directory, lambda path, function, parameters: copy_program())[0]


def test_what_is_saved_is_loaded(directory):
    record = load(directory)
    assert (record.file, record.hardware.tile, record.numbers) == ("copy.py", 4, {"cycles": 9})
    assert record.beats.tolist() == [[1, 0, 0], [3, 1, 0]] and set(record.tensors) == {"x"}


@pytest.mark.parametrize("name", FILES)
def test_damaged_files(directory, name):
    path = directory / name
    whole = path.read_bytes()
    damage = [whole[:len(whole) // 2], b"", b"hello\n", b"\xff" * 80, whole[:70] + bytes(8) + whole[78:], None]
    for content in damage:
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        if content is None and name == "beats.npz":
            assert load(directory).beats is None    # a run that kept none
            continue
        with pytest.raises(StepError, match=re.escape(name)) as told:
            load(directory)
        assert isinstance(told.value, (BuildError, TensorError)) and "\n" not in str(told.value)


@pytest.mark.parametrize(("content", "told"), [
    ("[]", "run.json: damaged (not an object)"),
    ("{}", "run.json: damaged (without 'version', int)"),
    ('{"version": 999}', "version 999 vs 1; fix: run step-hw cosim again"),
])
def test_other_documents(directory, content, told):
    (directory / "run.json").write_text(content)
    with pytest.raises(BuildError, match=re.escape(told)):
        load(directory)


def test_another_configuration(directory):
    """One that is whole is not taken for that of the run."""
    (directory / "hw.toml").write_text(HardwareConfig(tile=8).to_toml())
    with pytest.raises(TensorError, match=r"hw\.toml was changed since vs what ran"):
        load(directory)


@pytest.mark.parametrize("key", ["program", "parameters", "streams", "arbitration", "numbers", "beside"])
def test_keys_of_another_sort(directory, key):
    path = directory / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: 5}))
    with pytest.raises(BuildError, match=rf"run\.json: damaged .*'{key}'"):
        load(directory)
