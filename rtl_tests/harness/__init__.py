"""Harness for benches of hardware units on Icarus and on Verilator.

How to test a unit::

    # rtl_tests/test_flatten.py
    from rtl_tests.harness import Case, assert_same_on_both, bench_unit, beats, bernoulli, bursts

    CASES = [
        Case("spec", inputs={"in0": beats("1 2 S1 3 S2 4 S2 D")}, expected={"out0": beats("1 2 3 S1 4 S1 D")},
             cfg={"lo": 0, "hi": 1, "rank": 2}),
        Case("pressed", inputs=..., expected=..., cfg=..., drive=bernoulli(0.6), sink={"out0": bursts(3, 5)}),
    ]

    def test_flatten(simulator):                       # fixture: once for icarus, once for verilator
        results = bench_unit(simulator, Flatten(...), CASES)     # AssertionError shows every case that failed
        assert results[0].stamps["out0"][0] - results[0].stamps["in0"][0] == 0      # measured latency

    def test_flatten_same_cycles(both_simulators):
        assert_same_on_both(*(bench_unit(s, Flatten(...), CASES) for s in both_simulators))

All cases run in one simulation (its start is the cost); each is reset first unless ``reset=False``. Put many cases
into one call. `Case` says what else can be asked: a sticky error that must come up, ports compared as multisets,
ports not compared. Protocol rules are always checked on every output; see `checks.LinkChecks` and `unit_bench`.

Streams: `random_stream` (ragged, bare stops, single elements), `corner_streams` (named traps), `to_beats` /
`from_beats` (the interpreter's token streams to beats and back). Coverage: `Coverage(name, must_hit)`, ``hit``,
``check``; `stream_bins` counts what a stream shows.

Beats: `Beat(data, rows, stop, empty, done)`; ``beats("1 2 S1 S1 3 S2 D")`` reads SPEC's notation (``rows=T`` for
tiles). Patterns of drivers (when to offer) and sinks (when to be ready): `always`, `never`, `withhold`, `bernoulli`,
`bursts`, `after_valid`.

Environment: ``STEP_HW_SEED`` (all random choices), ``STEP_HW_WAVES=1`` (waveforms, under ``STEP_HW_WAVES_DIR``,
default ``waves``), ``STEP_HW_CACHE`` (where builds are kept). For a bench of your own in cocotb, see `links`.
"""

import importlib

from .beats import DONE, Beat, LinkLayout, bare, beats, layout_of, show
from .cases import Case, CaseResult
from .coverage import STREAM_BINS, Coverage, stream_bins
from .patterns import Pattern, after_valid, always, bernoulli, bursts, never, withhold
from .streams import corner_streams, random_element, random_stream, restop

# Names that pytest needs and a simulation does not: loaded when used, because every simulation imports this package.
_LATER = {
    "Build": "build",
    "assert_same_on_both": "bench",
    "bench_unit": "bench",
    "bench_verilog": "bench",
    "default_seed": "run",
    "failures": "bench",
    "from_beats": "tokens",
    "installed": "build",
    "layout_for": "tokens",
    "run_cocotb": "run",
    "to_beats": "tokens",
}


def __getattr__(name: str):
    if name in _LATER:
        return getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DONE",
    "STREAM_BINS",
    "Beat",
    "Build",
    "Case",
    "CaseResult",
    "Coverage",
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
    "bursts",
    "corner_streams",
    "default_seed",
    "failures",
    "from_beats",
    "installed",
    "layout_for",
    "layout_of",
    "never",
    "random_element",
    "random_stream",
    "restop",
    "run_cocotb",
    "show",
    "stream_bins",
    "to_beats",
    "withhold",
]
