"""Sustained rates, measured on RTL: one load fills all channels, several keep them busy, small elements leave one a
cycle.

Elements are of eight bursts on four channels, the ratio that 16 x 16 tiles of bf16 have with bursts of 64 bytes.
"""

import pytest

from rtl_tests.memory_rig import MemoryRig, Port, view
from rtl_tests.model_bench import ModelCase, assert_model_equals_rtl
from step_hw.beat import BeatLayout
from step_lang.memory_config import MemoryConfig

T = 4
TILE = BeatLayout(16 * T * T, T)
N = 120


def _run(simulator, memory, loads, stores=()):
    rig = MemoryRig(memory, loads, stores)
    whole = view(0, N, (N,), (1,))
    case = ModelCase("rate", cfg=rig.cfg_for(*[whole] * (len(loads) + len(stores))))
    [(model, rtl)] = assert_model_equals_rtl(
        simulator, rig, [case], add_units=rig.add_units, agents="rtl_tests.memory_rig:agents"
    )
    return model, rtl


def _rate(stamps, first=20, last=100):
    return (last - first) / (stamps[last] - stamps[first])


@pytest.mark.parametrize(("burst_bytes", "wanted"), [(4, 0.25), (32, 1.0)])
def test_one_load(simulator, burst_bytes, wanted):
    """Eight bursts: four cycles an element, which is 128 bytes a cycle for the default machine. One burst: an
    element a cycle."""
    memory = MemoryConfig(burst_bytes=burst_bytes, capacity_bytes=1 << 13)
    _, rtl = _run(simulator, memory, [Port("load", TILE, 32, window=32)])
    assert _rate(rtl.pushes["out0"]) >= 0.99 * wanted


def test_channels_stay_busy(simulator):
    """Two loads and a copy ask for more than there is: every channel serves a burst every interval."""
    memory = MemoryConfig(burst_bytes=4, capacity_bytes=1 << 13)
    model, rtl = _run(
        simulator,
        memory,
        [Port("load", TILE, 32), Port("load", TILE, 32), Port("load", TILE, 32, to=0)],
        [Port("store", TILE, 32)],
    )
    note = rtl.notes[0]
    cycles = note["last_write_cycle"] - note["first_read_cycle"]
    assert note["bursts0"] == 4 * N * 2
    assert note["bursts0"] * memory.interval >= 0.95 * cycles
    # While three loads wait, before the first of them runs dry:
    assert _rate(rtl.pushes["out0"]) + _rate(rtl.pushes["out1"]) >= 0.99 * 2 / 16
    assert model.reason == "finished"
