"""Fixtures of the command tests."""

import pytest

from step_hw.tests.command import COPY, write


@pytest.fixture
def copy(tmp_path) -> str:
    """Path of the copy program."""
    return write(tmp_path, COPY)


@pytest.fixture
def both_simulators() -> tuple[str, str]:
    """Both simulators; skipped where either is not installed."""
    from rtl_tests.harness.build import SIMULATORS, installed

    for name in SIMULATORS:
        if reason := installed(name):
            pytest.skip(reason)
    return tuple(SIMULATORS)  # type: ignore[return-value]
