"""Harness for benches of hardware units on Icarus and on Verilator.

How to test a unit::

    # rtl_tests/test_flatten.py
    from rtl_tests.harness import Case, assert_same_on_both, bench_unit, beats, bernoulli, bursts

    CASES = [
        Case("spec", inputs={"in0": beats("1 2 S1 3 S2 4 S2 D")}, expected={"out0": beats("1 2 3 S1 4 S1 D")},
             cfg={"lo": 0, "hi": 1}),
        Case("pressed", inputs=..., expected=..., cfg=..., drive=bernoulli(0.6), sink={"out0": bursts(3, 5)}),
    ]

    def test_flatten(simulator):                       # fixture: once for icarus, once for verilator
        results = bench_unit(simulator, Flatten(...), CASES)     # AssertionError shows every case that failed
        assert results[0].stamps["out0"][0] - results[0].stamps["in0"][0] == 0      # measured latency

    def test_flatten_same_cycles(both_simulators):
        assert_same_on_both(*(bench_unit(s, Flatten(...), CASES) for s in both_simulators))

All cases run in one simulation (its start is the cost); each is reset first unless ``reset=False``. Put many cases into one call.
`Case` says what else can be asked: a sticky error that must come up, ports compared as multisets, ports not compared.
Protocol rules are always checked on every output; see `checks.LinkChecks` and `unit_bench`.

Beats: `Beat(data, rows, stop, empty, done)`; ``beats("1 2 S1 S1 3 S2 D")`` reads SPEC's notation (``rows=T`` for tiles).
Patterns of drivers (when to offer) and sinks (when to be ready): `always`, `never`, `withhold`, `bernoulli`, `bursts`, `after_valid`.

Environment: ``STEP_HW_SEED`` (all random choices), ``STEP_HW_WAVES=1`` (waveforms, under ``STEP_HW_WAVES_DIR``, default ``waves``),
``STEP_HW_CACHE`` (where builds are kept). For a bench of your own in cocotb, see `links`.
"""

from .beats import DONE, Beat, LinkLayout, bare, beats, layout_of, show
from .bench import assert_same_on_both, bench_unit, bench_verilog, failures
from .build import Build, build, installed
from .cases import Case, CaseResult
from .patterns import Pattern, after_valid, always, bernoulli, bursts, never, withhold
from .run import default_seed, run_cocotb

__all__ = [
    "DONE",
    "Beat",
    "Build",
    "Case",
    "CaseResult",
    "LinkLayout",
    "Pattern",
    "after_valid",
    "always",
    "assert_same_on_both",
    "bare",
    "beats",
    "bench_unit",
    "bench_verilog",
    "bernoulli",
    "build",
    "bursts",
    "default_seed",
    "failures",
    "installed",
    "layout_of",
    "never",
    "run_cocotb",
    "show",
    "withhold",
]
