"""The compiled engine: small for the first program, of every kind from the first one that needs more."""

import pytest

from sim import dispatch


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and no engine loaded."""
    monkeypatch.setenv("STEP_HW_CACHE", str(tmp_path))
    monkeypatch.setattr(dispatch, "_ENGINES", {})
    return tmp_path / "engine"


def test_first_program_gets_its_own_kinds_and_the_next_one_all(cache):
    first = dispatch.engine(["source", "fork", "sink"])
    assert first.KINDS == ("fork", "sink", "source")
    assert dispatch.engine(["sink", "source"]) is first
    whole = dispatch.engine(["source", "flatten", "sink"])
    assert whole.KINDS == tuple(dispatch.unit_modules())
    assert len(list(cache.glob("*.py"))) == 2


def test_an_engine_on_disk_is_found_again(cache, monkeypatch):
    whole = dispatch.engine()
    assert whole.KINDS == tuple(dispatch.unit_modules())
    monkeypatch.setattr(dispatch, "_ENGINES", {})
    assert dispatch.engine(["fork"]).KINDS == whole.KINDS
    assert len(list(cache.glob("*.py"))) == 1
