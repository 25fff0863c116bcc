"""Keys of results, and the store that keeps them."""

import ast
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from examples import moe
from sim.sweep import content, evaluate
from sim.sweep.content import content_hash
from sim.sweep.evaluate import Case, prepare
from sim.sweep.store import Store
from sim.tests.sweep_cases import HW, copy_program
from step_lang import Program, Selector, bf16, fn, ops
from step_lang.errors import BuildError
from step_lang.hwconfig import HardwareConfig

KEY = "ab" + "0" * 62
ROOT = Path(__file__).resolve().parents[2]


def test_what_is_put_is_got(tmp_path):
    store = Store(tmp_path)
    assert store.get(KEY) is None
    store.put(KEY, {"numbers": {"cycles": 3, "share": 0.1}, "error": None})
    assert store.get(KEY) == Store(tmp_path).get(KEY) == {"numbers": {"cycles": 3, "share": 0.1}, "error": None}


@pytest.mark.parametrize("damage", [
    lambda text: text[: len(text) // 2],
    lambda text: "",
    lambda text: text.replace("3", "4"),
    lambda text: "\xff\xfe" + text,
], ids=["half", "empty", "changed", "not text"])
def test_damaged_entries_are_removed(tmp_path, damage):
    store = Store(tmp_path)
    store.put(KEY, {"numbers": {"cycles": 3}})
    path = store.path(KEY)
    path.write_bytes(damage(path.read_text()).encode("latin-1"))
    assert store.get(KEY) is None and not path.exists()
    store.put(KEY, {"numbers": {"cycles": 3}})
    assert store.get(KEY) == {"numbers": {"cycles": 3}}


def test_what_killed_writers_leave_is_removed(tmp_path):
    store = Store(tmp_path)
    store.put(KEY, {})
    old, young = (store.path(KEY).with_name(name) for name in ("old.part", "young.part"))
    for path in (old, young):
        path.write_text("half")
    os.utime(old, (time.time() - 7200,) * 2)
    assert store.clean() == 1 and not old.exists() and young.exists() and store.get(KEY) == {}


def test_full_disk_and_no_right(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildError, match=r"set STEP_HW_CACHE"):
        Store(tmp_path / "file" / "below").put(KEY, {})

    def full(*_):
        raise OSError(28, os.strerror(28))

    store = Store(tmp_path / "store")
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BuildError, match=r"No space left on device vs room for results; fix: make room"):
        store.put(KEY, {})
    assert not [path for path in (tmp_path / "store").rglob("*") if path.is_file()]


def test_content_hash_tells_values_apart():
    values = [None, 0, False, 0.0, "0", [], {}, (1,), [1, 2], [[1], 2], {"a": 1}, {"a": [1]}, np.arange(3),
              np.arange(3.0), np.arange(4)[:3].reshape(3, 1), fn.cast(dtype="bf16"), fn.cast(dtype="fp32"), HW,
              HardwareConfig(tile=8), bf16, Selector(3), Selector(4)]
    hashes = [content_hash(value) for value in values]
    assert len(set(hashes)) == len(values)
    assert content_hash({"a": 1, "b": 2}) == content_hash({"b": 2, "a": 1})
    assert content_hash("a", "b") != content_hash("ab") and content_hash([["a"], "b"]) != content_hash(["a", ["b"]])
    with pytest.raises(TypeError, match="object"):
        content_hash(object())


def program(rows=2):
    with Program("p") as p:
        x, y = p.tensor("x", (4 * rows, 8), bf16), p.tensor("y", (4 * rows, 4), bf16)
        tiles = ops.linear_offchip_load(x, (4, 4), shape=(rows, 2), stride=(2, 1))
        ops.linear_offchip_store(ops.accum(fn.max(), tiles, rank=1), y)
    return p


def moved():
    """The same as `program()`, on other lines."""
    with Program("p") as p:
        x, y = p.tensor("x", (8, 8), bf16), p.tensor("y", (8, 4), bf16)

        tiles = ops.linear_offchip_load(x, (4, 4), shape=(2, 2), stride=(2, 1))

        ops.linear_offchip_store(ops.accum(fn.max(), tiles, rank=1), y)
    return p


def key(p, hw=HW, constants=None, streams=None):
    return prepare(Case(p, hw, streams or {}, constants or {})).content


def test_the_key_is_of_the_content():
    base = key(program())
    assert key(program()) == base and key(moved()) == base
    assert prepare(Case(program(), HW)).places != prepare(Case(moved(), HW)).places
    assert key(program(rows=3)) != base
    assert key(program(), HardwareConfig(tile=4, link_depth=3)) != base
    assert key(program(), HardwareConfig(tile=4, scratchpad_frames=512)) != base
    assert key(program(), HW, {"read_latency": 1}) != base
    assert key(copy_program()) != base


def test_a_changed_model_changes_the_key(monkeypatch):
    base = key(copy_program())
    monkeypatch.setattr(evaluate, "model_hash", lambda: "other")
    assert key(copy_program()) != base


def test_comments_and_docstrings_are_no_model():
    text = Path(content.__file__).read_text()
    commented = "# a comment\n" + text.replace('"""Hashes of', '"""Sums of').replace("import ast\n", "import ast  #\n")
    assert ast.dump(ast.parse(commented)) != ast.dump(ast.parse(text))
    assert content._code(commented) == content._code(text)
    assert content._code(text.replace('yield b"tokens"', 'yield b"token"')) != content._code(text)


def test_the_models_hash(tmp_path, monkeypatch):
    monkeypatch.setenv("STEP_HW_CACHE", str(tmp_path))
    texts = content._sources()
    assert {"sim/engine.py", "sim/units/load.py", "sim/sweep/evaluate.py", "step_lang/timing.py"} <= set(texts)
    assert not [name for name in texts if "tests" in name or name == "sim/sweep/run.py"]

    def model_hash(**changed):
        monkeypatch.setattr(content, "_sources", lambda: texts | changed)
        content.model_hash.cache_clear()
        return content.model_hash()

    base = model_hash()
    try:
        commented = {"sim/engine.py": "# new\n" + texts["sim/engine.py"]}
        assert model_hash() == model_hash(**commented) == model_hash(**commented) == base
        assert model_hash(**{"sim/engine.py": texts["sim/engine.py"] + "\nx = 1\n"}) != base
        assert model_hash(**{"sim/units/new.py": ""}) != base
    finally:
        content.model_hash.cache_clear()


def test_the_key_is_the_same_in_every_process():
    p = moe.build(batch=8, experts=4, hidden=8, intermediate=16, tile_f=8)
    text = ("from sim.tests.test_sweep_store import *\n"
            "p = moe.build(batch=8, experts=4, hidden=8, intermediate=16, tile_f=8)\n"
            "print(prepare(Case(p, HW, moe.streams(p))).content)")
    found = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=True,
                           env={**os.environ, "PYTHONHASHSEED": "7"})
    assert found.stdout.strip() == key(p, streams=moe.streams(p))
    assert key(p, streams=moe.streams(p, seed=1)) != key(p, streams=moe.streams(p))
