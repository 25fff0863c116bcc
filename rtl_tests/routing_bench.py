"""What the benches of the routing units share: trials with selectors, and expected beats by replaying recorded grants.

Elements are 32-bit words as in `shape_bench`. A trial has no expected beats where order is timing: they are what the
interpreter makes of the grants that the run recorded.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from rtl_tests.harness import Beat, Case, CaseResult, Coverage, bench_unit, from_beats, random_stream, stream_bins
from rtl_tests.harness.beats import streams_of
from rtl_tests.harness.checks import compare_beats
from rtl_tests.harness.tokens import to_beats
from rtl_tests.model_bench import ModelCase, assert_model_equals_rtl, pressed
from rtl_tests.shape_bench import PRESSURES, assert_rate, element, pressure_bins, word_beats, words
from step_lang.interpreter import Context
from step_lang.numerics import Numerics
from step_lang.timing import unit_timing
from step_lang.types import Selector
from step_lang.worked_examples import EXAMPLES, WorkedExample

__all__ = [
    "CHUNKS", "GRANTS", "Trial", "assert_no_latency", "assert_rates", "bench", "chunk", "compare_with_model",
    "examples", "replay", "selector_beat",
]

GRANTS = "rtl_tests.grant_probe:grants"

#: Chunks of the streams that a rate is measured with, by name: rank and beats.
CHUNKS: dict[str, tuple[int, list[Beat]]] = {
    "elements": (0, words("1")),
    "chunks of one beat": (1, words("1 S1")),
    "chunks of five beats": (1, words("1 2 3 4 5 S1")),
    "chunks of rank 2": (2, words("1 2 S1 3 S2")),
}


@dataclass
class Trial:
    """One run. ``apply`` makes the operator's outputs from input streams of ``ranks`` and ``types``; ``counts``: grants
    of each of the done-terminated runs, None where the operator does not arbitrate."""

    name: str
    apply: Callable
    ranks: Sequence[int]
    types: Sequence
    inputs: Sequence[Sequence[Beat]]
    cfg: Mapping[str, int]
    shapes: Any = None
    counts: Sequence[int] | None = None
    error: int = 0
    directed: bool = False
    outputs: int = field(default=0)
    """Outputs that the unit has; 0: as many as the operator."""

    @property
    def ports(self) -> dict[str, Sequence[Beat]]:
        return {f"in{k}": stream for k, stream in enumerate(self.inputs)}


def selector_beat(bits: set[int] | Sequence[int], stop: int = 0) -> Beat:
    """A selector with ``bits`` set."""
    return Beat(sum(1 << bit for bit in bits), 1, stop)


def chunk(rng: Random, rank: int, max_len: int = 3) -> list[Beat]:
    """The beats of one random chunk: its last has stop ``rank``."""
    return random_stream(rng, rank, lambda: element(rng), max_len, outer=1)[:-1]


def _beats(tokens, type_) -> list[Beat]:
    return to_beats(tokens, type_) if isinstance(type_, Selector) else word_beats(tokens)


def replay(trial: Trial, grants: Sequence[int]) -> dict[str, list[Beat]]:
    """Beats of every output, by the interpreter's operator, given all grants of the trial's runs."""
    _, operator = WorkedExample("golden", "golden", (), tuple(trial.ranks), trial.apply, (), trial.shapes,
                                tuple(trial.types)).build()
    count = trial.outputs or len(operator.outputs)
    made: list[list[Beat]] = [[] for _ in range(count)]
    runs = list(zip(*map(streams_of, trial.inputs), strict=True))
    first = 0
    for k, streams in enumerate(runs):
        size = trial.counts[k] if trial.counts is not None else 0
        ctx = Context(Numerics(), {}, {}, {operator.name: grants[first:first + size]})
        first += size
        tokens = [from_beats(stream, type_, rank).check()
                  for stream, type_, rank in zip(streams, trial.types, trial.ranks)]
        for out, stream, result in zip(made, operator.outputs, operator.interpret(ctx, tokens)):
            out += _beats(result.check(), stream.type)
        if trial.counts is not None:
            ctx.arbiter(operator).finish()
    assert first == len(grants), f"{trial.name}: {len(grants)} grants vs {first} chunks"
    return {f"out{k}": stream for k, stream in enumerate(made)}


def examples(kind: str, cfg: Callable[[WorkedExample], Mapping[str, int]],
             fits: Callable[[WorkedExample], bool] = lambda _: True) -> list[tuple[WorkedExample, Trial]]:
    """SPEC's worked examples of an operator for which the bench's unit ``fits``."""
    made = []
    for example in EXAMPLES:
        if example.kind != kind or not fits(example):
            continue
        streams = [_beats(tokens, type_) for tokens, type_ in zip(example.input_tokens(), example.input_types)]
        made.append((example, Trial(example.name, example.apply, example.ranks, example.input_types, streams,
                                    cfg(example), example.shapes, directed=True)))
    assert made, f"no worked example of {kind}"
    return made


def bench(simulator: str, unit, trials: Sequence[Trial], coverage: Coverage | None = None,
          pressures: Sequence[int] | None = None) -> list[CaseResult]:
    """All trials on the bare unit; what comes out is what the interpreter makes of the grants. ``pressures``: of
    `PRESSURES`, which every trial runs under; default: directed ones all, the others one that is not free of it."""
    arbitrates = hasattr(unit, "grant_valid")
    cases, of = [], []
    for i, trial in enumerate(trials):
        chosen = range(len(PRESSURES)) if trial.directed else [1 + i % (len(PRESSURES) - 1)]
        for k in chosen if pressures is None else pressures:
            drive, sink = PRESSURES[k]
            expected = {} if arbitrates or trial.error else replay(trial, [])
            cases.append(Case(f"{trial.name}/{k}", trial.ports, expected, trial.cfg, drive, sink, error=trial.error,
                              quiet=100))
            of.append(trial)
    results = bench_unit(simulator, unit, cases, agents=GRANTS if arbitrates else None)
    for trial, result in zip(of, results, strict=True):
        if trial.error:
            continue
        if arbitrates:
            for port, wanted in replay(trial, [k for _, k in result.notes[0]]).items():
                problem = compare_beats(port, wanted, result.beats[port], result.stamps[port])
                assert problem is None, f"{unit.module_name}, case {result.name}: {problem}"
        for port, stream in trial.ports.items():
            assert result.beats[port] == list(stream), f"{result.name}: {port} not taken whole"
            if coverage is not None:
                coverage.hit_if_declared(stream_bins(stream))
        if coverage is not None:
            coverage.hit_if_declared(pressure_bins(result))
    return results


def assert_rates(simulator: str, unit, trials: Sequence[Trial], port: str) -> None:
    """0.95 beats a cycle at ``port`` in every trial, inputs and outputs held up by nobody."""
    for result in bench(simulator, unit, trials, pressures=[0]):
        assert_rate(result, port)


def assert_no_latency(kind: str, results: Sequence[CaseResult]) -> dict[str, CaseResult]:
    """In the trials ``timing`` and ``turns`` of three inputs, held up by nobody, every beat leaves in the cycle in
    which it is taken, one a cycle. Returns all results by name."""
    assert unit_timing(kind).latency == 0, f"{kind}: latency {unit_timing(kind).latency} stated"
    found = {result.name: result for result in results}
    for name in ("timing/0", "turns/0"):
        result = found[name]
        taken = sorted(stamp for port in ("in0", "in1", "in2") for stamp in result.stamps[port][:-1])
        given = result.stamps["out0"]
        assert taken == given[:-1], f"{name}: taken in {taken}, given in {given[:-1]}"
        assert given == list(range(given[0], given[0] + len(given))), f"{name}: given in {given}"
    return found


def compare_with_model(simulator: str, unit, trials: Sequence[Trial], params: Mapping | None = None) -> None:
    """Every trial in model and RTL: the same transfers in the same cycles and the same grants."""
    rng = Random(f"model:{unit.module_name}")
    outputs = [f"out{k}" for k in range(len(unit.output_layouts))]
    arbitrates = hasattr(unit, "grant_valid")
    cases = []
    for trial in trials:
        runs = sum(beat.done for beat in trial.inputs[-1])
        for name in ([trial.name] if trial.directed else []) + [f"{trial.name}/pressed"]:
            case = ModelCase(name, trial.ports, trial.cfg, error=trial.error, runs=runs)
            if name.endswith("/pressed"):
                offer, take = rng.choice([(0.6, 0.6), (0.9, 0.4), (0.4, 0.9)])
                case = pressed(case, rng, offer, take, outputs=outputs)
                # A reassemble gives done with its selector's; the model's run must not end before the other inputs.
                selector = f"in{len(trial.inputs) - 1}"
                end = max(own[-1] + 8 for own in case.starts.values())
                case.starts = {**case.starts, selector: [*case.starts[selector][:-1], end]}
            cases.append(case)
    pairs = assert_model_equals_rtl(simulator, unit, cases, params=params, agents=GRANTS if arbitrates else None)
    if not arbitrates:
        return
    for case, (model, rtl) in zip(cases, pairs, strict=True):
        modelled = [(cycle, k) for cycle, _, k in model.grants.tolist()]
        recorded = [(cycle, k) for cycle, k in rtl.notes[0] if not case.error or cycle < model.cycles]
        assert modelled == recorded, f"case {case.name}: grants of the model {modelled} vs of RTL {recorded}"
