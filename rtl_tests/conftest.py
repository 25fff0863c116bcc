"""Fixtures of the RTL benches."""

import pytest

from rtl_tests.harness.build import installed

SIMULATORS = ("icarus", "verilator")


@pytest.fixture(params=SIMULATORS)
def simulator(request) -> str:
    """Each simulator in turn; skipped, with the reason, where it is not installed."""
    reason = installed(request.param)
    if reason is not None:
        pytest.skip(reason)
    return request.param


@pytest.fixture
def both_simulators() -> tuple[str, str]:
    """Both simulators, for a test that compares them; skipped where either is not installed."""
    for name in SIMULATORS:
        reason = installed(name)
        if reason is not None:
            pytest.skip(reason)
    return SIMULATORS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of benches marked ``long`` the default suite runs Icarus; Verilator, whose builds they are many of, is deep."""
    for item in items:
        chosen = getattr(item, "callspec", None)
        if chosen is not None and chosen.params.get("simulator") == "verilator" and item.get_closest_marker("long"):
            item.add_marker(pytest.mark.deep)
