"""What the benches of the shape units share: trials, golden results from the interpreter, pressure, timing.

Elements are 32-bit words that say themselves how many rows they have (`rows_of`), so that the interpreter, which runs
on 1 x 1 int32 elements here, decides the rows of every expected beat too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from random import Random
from typing import Protocol, TypeVar

from rtl_tests.harness import (
    Beat,
    Case,
    CaseResult,
    Coverage,
    after_valid,
    assert_same_on_both,
    beats,
    bench_unit,
    bernoulli,
    bursts,
    from_beats,
    random_stream,
    stream_bins,
    to_beats,
)
from rtl_tests.harness.beats import streams_of
from rtl_tests.model_bench import ModelCase, assert_model_equals_rtl, pressed
from step_hw.beat import BeatLayout
from step_lang.interpreter import Context
from step_lang.numerics import Numerics
from step_lang.timing import unit_timing
from step_lang.types import bool_, int32, scalar
from step_lang.worked_examples import EXAMPLES, WorkedExample

__all__ = [
    "LAYOUT", "PRESSURES", "WORD", "Trial", "assert_rate", "assert_timing", "bench", "cached_results",
    "compare_with_model", "element", "examples", "golden", "pressure_bins", "random_runs", "result_tests", "rows_of",
    "with_trials", "word_beats", "words",
]

LAYOUT = BeatLayout(32, 2)
WORD = scalar(int32)
PRESSURES = (
    (None, None),
    (bernoulli(0.6), bernoulli(0.6)),
    (bursts(4, 3), bursts(3, 5)),
    (bernoulli(0.9), after_valid(2)),
    (None, bernoulli(0.3)),
    (bernoulli(0.3), None),
)


@dataclass
class Trial:
    """One run: inputs, expected outputs (with ``error``: those before it) and registers; ``directed`` ones run under
    every pressure."""

    name: str
    inputs: Mapping[str, Sequence[Beat]]
    expected: Mapping[str, Sequence[Beat]]
    cfg: Mapping[str, int] = field(default_factory=dict)
    error: int = 0
    directed: bool = False


class _Named(Protocol):
    name: str


_Trial = TypeVar("_Trial", bound=_Named)


def rows_of(word: int) -> int:
    """Valid rows of the element ``word``: 1 or 2."""
    return 1 + (word & 1)


def element(rng: Random) -> Beat:
    """A random element."""
    word = rng.getrandbits(32)
    return Beat(word, rows_of(word))


def random_runs(rng: Random, rank: int, make: Callable[[], Beat] | None = None, max_len: int = 3) -> list[Beat]:
    """One to three random streams, one after another, of elements that ``make`` gives; default: `element`."""
    make = make or (lambda: element(rng))
    return [beat for _ in range(rng.randint(1, 3)) for beat in random_stream(rng, rank, make, max_len)]


def words(text: str) -> list[Beat]:
    """Beats of SPEC's notation, with the rows of their words."""
    return [beat if beat.empty else beat._replace(rows=rows_of(beat.data)) for beat in beats(text)]


def word_beats(tokens, type_=WORD) -> list[Beat]:
    """Beats of a token stream of int32 scalars (rows by `rows_of`) or of flags."""
    made = to_beats(tokens, type_)
    return made if type_ != WORD else [b if b.empty else b._replace(rows=rows_of(b.data)) for b in made]


def golden(apply: Callable, ranks: Sequence[int], inputs: Sequence[Sequence[Beat]], shapes=None) -> list[list[Beat]]:
    """Output beats of the interpreter's operator for input beats of one or more (done-terminated) runs."""
    _, operator = WorkedExample("golden", "golden", (), tuple(ranks), apply, (), shapes).build()
    ctx = Context(Numerics(), {}, {}, {})
    made: list[list[Beat]] = [[] for _ in operator.outputs]
    for streams in zip(*map(streams_of, inputs), strict=True):
        tokens = [from_beats(stream, WORD, rank).check() for stream, rank in zip(streams, ranks)]
        for out, stream, result in zip(made, operator.outputs, operator.interpret(ctx, tokens)):
            out += word_beats(result.check(), stream.type if stream.type == scalar(bool_) else WORD)
    return made


def examples(kind: str, cfg: Callable[[WorkedExample], Mapping[str, int] | None]) -> list[Trial]:
    """SPEC's worked examples of an operator; ``cfg`` gives the registers (None: not for this unit)."""
    made = []
    for example in EXAMPLES:
        registers = cfg(example) if example.kind == kind else None
        if registers is None:
            continue
        _, operator = example.build()
        types = [stream.type if stream.type == scalar(bool_) else WORD for stream in operator.outputs]
        made.append(Trial(
            example.name,
            {f"in{i}": word_beats(tokens) for i, tokens in enumerate(example.input_tokens())},
            {f"out{i}": word_beats(t, type_) for i, (t, type_) in enumerate(zip(example.output_tokens(), types))},
            registers, directed=True))
    assert made, f"no worked example of {kind}"
    return made


def bench(simulator: str, unit, trials: Sequence[Trial], coverage: Coverage | None = None) -> list[CaseResult]:
    """All trials under pressure on the bare unit; directed ones under every pressure, the first is none. Counts the
    bins of `stream_bins` of the inputs and of `pressure_bins` that ``coverage`` declares."""
    cases = []
    for i, trial in enumerate(trials):
        chosen = range(len(PRESSURES)) if trial.directed else [1 + i % (len(PRESSURES) - 1)]
        for k in chosen:
            drive, sink = PRESSURES[k]
            cases.append(Case(f"{trial.name}/{k}", trial.inputs, trial.expected, trial.cfg, drive, sink,
                              error=trial.error, quiet=100))
    results = bench_unit(simulator, unit, cases)
    if coverage is not None:
        for case, result in zip(cases, results, strict=True):
            for stream in case.inputs.values():
                coverage.hit_if_declared(stream_bins(stream))
            coverage.hit_if_declared(pressure_bins(result))
    return results


def with_trials(results: Iterable[CaseResult], trials: Sequence[_Trial]) -> Iterator[tuple[_Trial, CaseResult]]:
    """Every result of a bench behind its trial, under whatever pressure it was."""
    of = {trial.name: trial for trial in trials}
    assert len(of) == len(trials), "two trials have the same name"
    return ((of[result.name.rpartition("/")[0]], result) for result in results)


def cached_results(name: str, unit, bins: Iterable[str], trials: Callable[[], Sequence],
                   cover: Callable[[Coverage, list[CaseResult]], None], run: Callable = bench,
                   ) -> Callable[[str], list[CaseResult]]:
    """Results by simulator of ``trials()``, which ``run``, `bench` or one like it, runs on the unit once. ``cover``
    counts what they show; AssertionError unless every one of ``bins`` was hit."""
    @cache
    def results(simulator: str) -> list[CaseResult]:
        coverage = Coverage(name, bins)
        found = run(simulator, unit, trials(), coverage)
        cover(coverage, found)
        coverage.check()
        return found

    return results


def result_tests(results: Callable[[str], list[CaseResult]]) -> tuple[Callable, Callable]:
    """The tests that every bench has, of `cached_results`: they are as expected on each simulator, and the same on
    both, with the cycles and what further agents noted."""
    def as_expected(simulator: str) -> None:
        results(simulator)

    def same_on_both(both_simulators: tuple[str, str]) -> None:
        one, other = map(results, both_simulators)
        assert_same_on_both(one, other)
        for a, b in zip(one, other, strict=True):
            assert a.notes == b.notes, f"case {a.name}: notes {a.notes} against {b.notes}"

    return as_expected, same_on_both


def pressure_bins(result: CaseResult) -> set[str]:
    """``<port> blocked`` (valid without ready) and ``<port> starved`` (output without valid) in one case."""
    found = {f"{port} blocked" for port, cycles in result.blocked.items() if cycles}
    return found | {f"{port} starved" for port, cycles in result.starved.items() if cycles}


def assert_timing(kind: str, result: CaseResult, output: str = "out0", pairs=None, interval_of: str = "in0") -> None:
    """The unit's stated latency (of input/output positions ``pairs``, default equal ones) and interval, as measured in
    a case without pressure."""
    stated = unit_timing(kind)
    outs, ins = result.stamps[output], result.stamps["in0"]
    pairs = [(i, i) for i in range(len(ins))] if pairs is None else pairs
    latencies = {outs[o] - ins[i] for i, o in pairs}
    assert latencies == {stated.latency}, f"{kind}: latency {latencies} vs {stated.latency} stated"
    stamps = result.stamps[interval_of]
    assert len(stamps) >= 8, "too few beats for an interval"
    intervals = {b - a for a, b in pairwise(stamps)}
    assert intervals == {stated.interval}, f"{kind}: intervals {intervals} vs {stated.interval} stated"


def assert_rate(result: CaseResult, port: str, least: float = 0.95) -> None:
    """Beats a cycle at ``port``, from its first to its last."""
    stamps = result.stamps[port]
    assert len(stamps) > 100, f"{result.name}: {len(stamps)} beats at {port} are too few for a rate"
    rate = (len(stamps) - 1) / (stamps[-1] - stamps[0])
    worst = max(b - a for a, b in pairwise(stamps))
    assert rate >= least, f"{result.name}: {rate:.3f} beats a cycle at {port}, longest pause {worst} cycles"


def compare_with_model(simulator: str, unit, trials: Sequence[Trial], params: Mapping | None = None) -> None:
    """Every trial in model and RTL: directed ones without pressure and with, the others with."""
    rng = Random(f"model:{unit.module_name}")
    outputs = [f"out{k}" for k in range(len(unit.output_layouts))]
    cases = []
    for trial in trials:
        expected = {} if trial.error else trial.expected
        plain = ModelCase(trial.name, trial.inputs, trial.cfg, expected=expected, error=trial.error)
        if trial.directed:
            cases.append(plain)
        again = ModelCase(f"{trial.name}/pressed", trial.inputs, trial.cfg, expected=expected, error=trial.error)
        offer, take = rng.choice([(0.6, 0.6), (0.9, 0.4), (0.4, 0.9)])
        cases.append(pressed(again, rng, offer, take, outputs=outputs))
    assert_model_equals_rtl(simulator, unit, cases, params=params)
