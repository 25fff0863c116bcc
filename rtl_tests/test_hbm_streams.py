"""Bandwidth of address streams with the default banked memory: RTL against the performance model.

The test prints the table and asserts what issue 2 asks for (within 2 %); in fact the two agree to the cycle, refreshes
included, which `assert_model_equals_rtl` demands of every beat. Elements are of 512 bytes, a tile of 16 x 16 bf16: two
bursts on each of four channels. The link carries only 32 of the bits, so that the test is about memory.
"""

from random import Random

import pytest

from rtl_tests.harness import DONE, Beat
from rtl_tests.memory_rig import MemoryRig, Port, view
from rtl_tests.model_bench import ModelCase, assert_model_equals_rtl
from step_hw.beat import BeatLayout
from step_lang.memory_config import MemoryConfig

BYTES = 512
MEMORY = MemoryConfig(model="banked")
TILES = MEMORY.capacity_bytes // BYTES
PER_ROW = MEMORY.row_bytes * MEMORY.channels // BYTES
"""Elements in an open row (of one bank on every channel)."""


def _random(n):
    rng = Random(1)
    return [rng.randrange(TILES) for _ in range(n)]


def _streams(n: int) -> dict[str, tuple[int, list[int]]]:
    """Name to (stride, 0 for addresses on a link; indices)."""
    strides = {"sequential": 1, "strided, a bank each": PER_ROW, "strided, one bank": PER_ROW * MEMORY.banks}
    found = {name: (k, [i * k for i in range(min(n, -(-TILES // k)))]) for name, k in strides.items()}
    return found | {"random": (0, _random(n))}


def _measure(simulator, n):
    port = {"element_bytes": BYTES, "window": 64}
    rig = MemoryRig(MEMORY, [Port("load", BeatLayout(32), **port), Port("random_load", BeatLayout(32), **port)])
    cases = []
    for name, (stride, indices) in _streams(n).items():
        count = len(indices) if stride else 0
        addresses = [] if stride else [Beat(index) for index in indices]
        cases.append(ModelCase(
            name, {"in0": [*addresses, DONE]},
            rig.cfg_for(view(0, TILES, (count,), (stride,)), {"base": 0, "limit": TILES}), runs=1,
            max_cycles=1_000_000,
        ))
    runs = assert_model_equals_rtl(simulator, rig, cases, add_units=rig.add_units,
                                   agents="rtl_tests.memory_rig:agents")
    rows = []
    for (name, (stride, indices)), (model, rtl) in zip(_streams(n).items(), runs, strict=True):
        out = "out0" if stride else "out1"
        assert rtl.notes[0]["read_bytes"] == len(indices) * BYTES
        link = 1 if stride else 2
        modelled = [cycle for cycle, pushed, _ in model.trace.tolist() if pushed == link]
        rows.append((name, len(indices), rtl.pushes[out][-1], modelled[-1]))
    return rows


def _table(rows) -> str:
    peak = MEMORY.peak_bytes_per_cycle
    lines = ["| addresses | tiles | RTL cycles | model cycles | error | RTL bytes/cycle | of peak |",
             "|---|---|---|---|---|---|---|"]
    for name, n, rtl, model in rows:
        rate = n * BYTES / rtl
        lines.append(f"| {name} | {n} | {rtl} | {model} | {100 * (model - rtl) / rtl:.2f} % | {rate:.1f} "
                     f"| {100 * rate / peak:.1f} % |")
    return "\n".join(lines)


def _check(rows, capsys) -> dict[str, float]:
    """Print and judge; returns the share of the peak by stream."""
    with capsys.disabled():
        print("\n" + _table(rows))
    peak = MEMORY.peak_bytes_per_cycle
    share = {name: n * BYTES / rtl / peak for name, n, rtl, _ in rows}
    for name, _, rtl, model in rows:
        assert abs(model - rtl) <= 0.02 * rtl, name
        assert share[name] <= 1
    assert share["sequential"] > share["random"] > share["strided, one bank"]
    return share


@pytest.mark.parametrize("simulator", ["verilator"], indirect=True)
def test_streams(simulator, capsys):
    """Short: a refresh falls into the slowest stream. (The units are compared on both simulators elsewhere.)"""
    _check(_measure(simulator, 100), capsys)


@pytest.mark.deep
@pytest.mark.parametrize("simulator", ["verilator"], indirect=True)
def test_long_streams(simulator, capsys):
    """Every bank is opened anew many times, and there are several refreshes in every stream."""
    share = _check(_measure(simulator, 3000), capsys)
    # The scheduler's queue sees the 32 cycles of a row ahead, which hides that the bank's old row is closed and this
    # one opened: nothing but refresh is lost.
    lost = MEMORY.trfc / MEMORY.trefi
    assert 1 - lost - 0.01 <= share["sequential"] <= 1 - lost
