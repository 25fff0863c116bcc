"""No command of the banked channel comes earlier than the timings allow, and refreshes are kept.

The rules are those of `dram_rules`, which the RTL and its model know nothing of. That the check can fail is shown in
three ways: by traces made by hand, by a channel built with a shorter timing, and by rules one cycle longer than the
channel's, each of which the trace must break (so each timing was met to the cycle, that is, tried).
"""

from dataclasses import replace
from functools import cache
from random import Random

import pytest

from rtl_tests.banked_rig import WRITE, BankedRig, commands_of
from rtl_tests.dram_rules import RULES, Command, refresh_slack, violations
from rtl_tests.harness import DONE, Beat, Coverage, bench_unit
from rtl_tests.harness.cases import Case
from rtl_tests.harness.patterns import bernoulli, withhold
from step_lang.memory_config import MemoryConfig

HBM2 = MemoryConfig(model="banked")
SMALL = MemoryConfig(
    model="banked", banks=4, row_bytes=256, queue=6, trcd=5, trp=4, tras=12, trtp=4, twr=6, twtr=5, trrd=3, tfaw=19,
    trfc=40, trefi=300, cl=7, cwl=3,
)
FIELDS = {"tRCD": "trcd", "tRP": "trp", "tRAS": "tras", "tRTP": "trtp", "tWR": "twr", "tRRD": "trrd", "tFAW": "tfaw",
          "tRFC": "trfc", "tCCD": "tccd", "tWTR": "twtr"}
"""Rules that are one number of the configuration."""


def _lines(memory: MemoryConfig) -> dict[str, list[Beat]]:
    """Bursts that try the timings: banks in turn (tRRD, tFAW), rows of a bank (tRP, tRAS, tRTP, tWR), reads after
    writes."""
    rng = Random(5)
    columns = memory.row_bytes // memory.burst_bytes
    row = columns * memory.banks
    return {
        "sequential": [Beat(i) for i in range(200)],
        "banks in turn": [Beat(i * columns) for i in range(60)],
        "rows of a bank": [Beat(i * row) for i in range(12)] + [Beat(i * row | WRITE) for i in range(12)],
        "read, write": [Beat(i // 2 % columns | WRITE * (i % 2)) for i in range(60)],
        "random": [Beat(rng.randrange(8 * row) | WRITE * (rng.random() < 0.4)) for _ in range(300)],
        "random, one bank": [Beat(rng.randrange(4) * row + rng.randrange(columns) | WRITE * (rng.random() < 0.3))
                             for _ in range(100)],
        "around the refresh": [Beat(rng.randrange(8 * row)) for _ in range(60)],
        "slow": [Beat(rng.randrange(8 * row)) for _ in range(40)],
    }


@cache
def _traces(simulator, memory, only=()):
    """Per stream, or those named: (commands, cycles of the run, bursts)."""
    patterns = {"slow": bernoulli(0.05), "around the refresh": withhold(memory.trefi - 60)}
    cases = [
        Case(name, {"in0": [*stream, DONE]}, drive=patterns.get(name), quiet=2 * memory.trefi, tail=900,
             max_cycles=3 * memory.trefi + 6000)
        for name, stream in _lines(memory).items() if name in only or not only
    ]
    results = bench_unit(simulator, BankedRig(memory), cases, agents="rtl_tests.banked_rig:agents")
    return {case.name: (commands_of(result.notes[0], memory), result.cycles - 1, len(case.inputs["in0"]) - 1)
            for case, result in zip(cases, results, strict=True)}


@pytest.mark.parametrize("memory", [SMALL, pytest.param(HBM2, marks=pytest.mark.deep)], ids=["small", "hbm2"])
def test_timings_are_kept(simulator, memory):
    bins = ["ACT", "PRE", "RD", "WR", "PREA", "REF", "row hit", "bypass", "all banks open"]
    coverage = Coverage(f"banked channel {memory.key}", bins)
    tried = set()
    traces = _traces(simulator, memory)
    for name, (commands, cycles, bursts) in traces.items():
        assert violations(commands, memory, cycles) == [], name
        columns = [c for c in commands if c.kind in ("RD", "WR")]
        assert len(columns) == bursts, f"{name}: a command for each burst"
        for command in commands:
            coverage.hit(command.kind)
        coverage.hit("row hit", len(columns) - sum(c.kind == "ACT" for c in commands))
        _cover_banks(coverage, commands, memory)
        for rule, field in FIELDS.items():
            stricter = replace(memory, **{field: getattr(memory, field) + 1})
            tried |= {rule for broken, _ in violations(commands, stricter, cycles) if broken == rule}
    asked = [beat.data % WRITE for beat in _lines(memory)["random"]]
    rows = [line // (memory.row_bytes // memory.burst_bytes) // memory.banks for line in asked]
    served = [c.row for c in traces["random"][0] if c.kind in ("RD", "WR")]
    assert sorted(rows) == sorted(served)
    coverage.hit("bypass", rows != served)
    coverage.check()
    # Where four activates at tRRD take tFAW already, no trace can tell.
    hidden = {"tFAW"} if memory.tfaw <= 4 * memory.trrd else set()
    assert set(FIELDS) - hidden <= tried, f"never met to the cycle: {sorted(set(FIELDS) - hidden - tried)}"


def _cover_banks(coverage, commands, memory):
    is_open = set()
    for command in commands:
        if command.kind == "ACT":
            is_open.add(command.bank)
        elif command.kind == "PRE":
            is_open.discard(command.bank)
        elif command.kind == "PREA":
            is_open.clear()
        coverage.hit("all banks open", len(is_open) == memory.banks)


@pytest.mark.parametrize(("field", "rule"), [("trcd", "tRCD"), pytest.param("trefi", "tREFI", marks=pytest.mark.deep)])
def test_a_shorter_timing_is_found(simulator, field, rule):
    """A channel built with one timing a cycle short breaks that rule of the true configuration."""
    wrong = replace(SMALL, **{field: getattr(SMALL, field) - 1})
    found = [violations(commands, SMALL, cycles)
             for commands, cycles, _ in _traces(simulator, wrong, ("random", "around the refresh")).values()]
    assert {broken for breaches in found for broken, _ in breaches} == {rule}


def _at(*commands):
    return [Command(*command) for command in commands]


BROKEN = {
    "tRCD": _at((0, "ACT"), (4, "RD")),
    "tCCD": _at((0, "ACT"), (5, "RD"), (6, "RD")),
    "bus": _at((0, "ACT"), (5, "RD"), (10, "WR")),
    "tWTR": _at((0, "ACT"), (5, "WR"), (14, "RD")),
    "tRAS": _at((0, "ACT"), (11, "PRE")),
    "tRTP": _at((0, "ACT"), (10, "RD"), (13, "PRE")),
    "tWR": _at((0, "ACT"), (5, "WR"), (15, "PRE")),
    "tRP": _at((0, "ACT"), (12, "PRE"), (15, "ACT")),
    "tRRD": _at((0, "ACT"), (2, "ACT", 1)),
    "tFAW": _at((0, "ACT"), (3, "ACT", 1), (6, "ACT", 2), (9, "ACT", 3), (12, "PRE"), (18, "ACT")),
    "tRFC": _at((300, "REF"), (339, "ACT")),
    "bank open": _at((0, "RD")),
    "bank closed": _at((0, "ACT"), (30, "ACT")),
    "row": _at((0, "ACT", 0, 1), (5, "RD", 0, 2)),
    "one at a time": _at((0, "ACT"), (0, "PRE", 1)),
}


@pytest.mark.parametrize("rule", list(BROKEN))
def test_the_rules_can_be_broken(rule):
    last = BROKEN[rule][-1].cycle
    assert rule in {broken for broken, _ in violations(BROKEN[rule], SMALL, last + 1)}


def test_refreshes_can_be_missed():
    slack = refresh_slack(SMALL)
    refresh = lambda *cycles: [Command(cycle, "REF") for cycle in cycles]  # noqa: E731
    assert violations(refresh(300, 600 + slack), SMALL, 700) == []
    for commands in (refresh(299), refresh(301 + slack), refresh(), refresh(300, 350)):
        assert {rule for rule, _ in violations(commands, SMALL, 400)} == {"tREFI"}
    assert set(BROKEN) | {"tREFI"} == set(RULES)
    assert violations(refresh(300), replace(SMALL, trefi=0), 400)[0][0] == "tREFI"
