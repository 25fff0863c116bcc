"""What the benches of accum and scan share: streams, expectations, cases."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, cycle
from random import Random

from rtl_tests.compute_bench import FoldConfig, dressed, fold_config, inner_streams, interpreted
from rtl_tests.harness import DONE, Beat, Case, bare, bernoulli, bursts, random_stream
from rtl_tests.harness.streams import corner_streams
from rtl_tests.model_bench import ModelCase, pressed
from step_hw.unit import ErrorCode

__all__ = ["WRONG", "WRONG_OPEN", "FoldRun", "bench_cases", "fold_runs", "model_cases", "steady"]


@dataclass(frozen=True)
class FoldRun:
    """One stream through the unit: ``rank`` is the stream's, ``fold_rank`` and ``sizes`` are the fold's."""

    name: str
    ports: list[list[Beat]]
    rank: int
    fold_rank: int
    sizes: tuple[int, ...]
    hollow: bool = False

    @property
    def inputs(self) -> dict[str, list[Beat]]:
        return {f"in{k}": port for k, port in enumerate(self.ports)}

    @property
    def cfg(self) -> dict[str, int]:
        return fold_config(self.fold_rank, self.sizes, self.hollow)

    def expected(self, kind: str, config: FoldConfig) -> dict[str, list[Beat]]:
        """What the interpreter says."""
        return {"out0": interpreted(kind, config, self.ports, self.rank, fold_rank=self.fold_rank, sizes=self.sizes,
                                    hollow=self.hollow)}


def fold_runs(kind: str, config: FoldConfig, rng: Random) -> Iterator[FoldRun]:
    """Random and corner streams for every shape of ``config``, in accum also hollow."""
    for fold_rank, sizes in config.shapes:
        for hollow in (False, True) if kind == "accum" else (False,):
            label = f"b{fold_rank} c{len(sizes)}{' open' * (0 in sizes)}{' hollow' * hollow}"
            for name, above, outer, partial in _outer_streams(rng, fold_rank, config):
                if hollow and not sizes:    # what is left out needs a stop to be left out with
                    outer = _without_empty_groups(outer, fold_rank, fold_rank)
                elif 0 in sizes and not hollow:
                    outer = _without_empty_groups(outer, fold_rank)
                most = config.entries // (sizes[1] if len(sizes) == 2 else 1)
                # Short groups are of many elements and of one in turn, so that a fold overtakes what still drains.
                lengths = cycle([most, 1]) if name == "short groups" else (rng.randint(1, most) for _ in count())
                shape = inner_streams(outer, sizes, fold_rank, lengths)
                ports = _dressed(rng, shape, config, fold_rank, len(sizes), partial)
                yield FoldRun(f"{label} {name}", ports, fold_rank + above + len(sizes), fold_rank, sizes, hollow)


def _outer_streams(rng: Random, fold_rank: int, config: FoldConfig) -> Iterator[tuple[str, int, list[Beat], bool]]:
    """(name, dimensions above the folded ones, streams of the dimensions above the inner ones, few valid rows)."""
    for above in (0, 1):
        streams = [beat for _ in range(2) for beat in random_stream(rng, fold_rank + above, lambda: Beat(0, 1), 3)]
        # Tiles with few valid rows: a sum of zero-padded tiles is zero-padded, as the interpreter's is on a link.
        yield f"random rank {fold_rank + above}", above, streams, config.function.name == "add" and above == 1
    corners: list[Beat] = []
    for shape in corner_streams(fold_rank + 1, lambda: Beat(0, 1)).values():
        corners += shape
    yield "corners", 1, corners, False
    # Groups of one and of no element, back to back: each closes while the last still drains.
    one, none = Beat(0, 1, fold_rank), bare(fold_rank)
    high, gap = one._replace(stop=fold_rank + 1), bare(fold_rank + 1)
    yield "bare stops", 1, [gap, gap, high, gap, gap, gap, one, high, high, gap, DONE], False
    yield "short groups", 0, [one, one, none, none, one, one, one, one, DONE], False


def _without_empty_groups(outer: Sequence[Beat], fold_rank: int, highest: int = 15) -> list[Beat]:
    """The same, but a bare stop of at most ``highest`` that would close an empty group has an element."""
    made, elements = [], 0
    for beat in outer:
        closes = not beat.done and beat.stop >= fold_rank
        if beat.empty and closes and not elements and beat.stop <= highest:
            beat = Beat(0, 1, beat.stop)
        made.append(beat)
        elements = 0 if closes or beat.done else elements + (not beat.empty)
    return made


def _dressed(rng: Random, shape: Sequence[Beat], config: FoldConfig, fold_rank: int, inner: int,
             partial: bool) -> list[list[Beat]]:
    """Random elements; of dynamic rows, those of one place in a group have the same count."""
    full = int(config.in_types[0].rows)
    if not config.dynamic:
        rows = rng.randint(1, full)
        return dressed(rng, shape, config.in_types, [rows] * len(shape) if partial else None)
    counts: list[int] = []
    known: list[int] = []
    position = 0
    for beat in shape:
        if position == len(known) or config.function.resizes:
            known[position:] = [rng.choice([0, 1, full, rng.randint(0, full)]), *known[position + 1:]]
        counts.append(0 if beat.empty else known[position])
        if beat.done or beat.stop >= fold_rank + inner:
            known = []
        position = 0 if beat.empty or beat.stop >= inner else position + 1
    return dressed(rng, shape, config.in_types, counts, config.dynamic)


def bench_cases(kind: str, config: FoldConfig, rng: Random) -> list[Case]:
    """Each stream free, and under back-pressure with pauses."""
    cases = []
    for i, run in enumerate(fold_runs(kind, config, rng)):
        expected = run.expected(kind, config)
        cases.append(Case(f"{run.name} free", run.inputs, expected, run.cfg))
        cases.append(Case(f"{run.name} pressed", run.inputs, expected, run.cfg, drive=bernoulli(0.7),
                          sink=bursts(2, 5) if i % 2 else bernoulli(0.4)))
    return cases


def model_cases(kind: str, config: FoldConfig, rng: Random) -> list[ModelCase]:
    """As `bench_cases`, then every error that the unit can raise."""
    cases = []
    for run in fold_runs(kind, config, rng):
        expected = run.expected(kind, config)
        cases.append(ModelCase(f"{run.name} free", run.inputs, run.cfg, expected=expected))
        cases.append(pressed(ModelCase(f"{run.name} pressed", run.inputs, run.cfg, expected=expected), rng, take=0.4))
    for name, (shape, cfg, error) in (WRONG | WRONG_OPEN if kind == "accum" else WRONG).items():
        ports = dressed(rng, shape, config.in_types)
        cases.append(ModelCase(name, {f"in{k}": port for k, port in enumerate(ports)}, cfg, error=error))
    if config.dynamic and not config.function.resizes:
        ports = dressed(rng, [Beat(0, 1, 1), Beat(0, 1, 2), DONE], config.in_types, [1, 2, 0], config.dynamic)
        cases.append(ModelCase("other rows", {f"in{k}": port for k, port in enumerate(ports)}, fold_config(2, ()),
                               error=ErrorCode.SHAPE))
    if len(config.in_types) > 1:
        ports = dressed(rng, [Beat(0, 1), Beat(0, 1, 1), DONE], config.in_types)
        ports[1][0] = ports[1][0]._replace(stop=1)
        cases.append(ModelCase("misaligned", {f"in{k}": port for k, port in enumerate(ports)}, fold_config(1, ()),
                               error=ErrorCode.MISALIGNED))
    return cases


#: Streams that the configured shape does not allow: beats, configuration, error. States have four entries.
WRONG = {
    "inner vector too short": ([Beat(0, 1), Beat(0, 1, 2), DONE], fold_config(1, (3,)), ErrorCode.SHAPE),
    "inner vector too long": ([Beat(0, 1), Beat(0, 1), Beat(0, 1), DONE], fold_config(1, (2,)), ErrorCode.SHAPE),
    "inner matrix ends early": ([Beat(0, 1), Beat(0, 1, 3), DONE], fold_config(1, (2, 2)), ErrorCode.SHAPE),
    "bare stop of an inner level": ([bare(1), DONE], fold_config(1, (2,)), ErrorCode.SHAPE),
    "bare stop inside a tensor": ([Beat(0, 1), bare(2), DONE], fold_config(1, (2,)), ErrorCode.SHAPE),
    "done inside a fold": ([Beat(0, 1), DONE], fold_config(1, ()), ErrorCode.STOP_RANGE),
    "done inside a tensor": ([Beat(0, 1), DONE], fold_config(1, (2,)), ErrorCode.STOP_RANGE),
    "more entries than memory": ([Beat(0, 1) for _ in range(4)] + [Beat(0, 1, 2), DONE], fold_config(1, (5,)),
                                 ErrorCode.EXHAUSTED),
}


#: The same of open states and hollow folds, which only accum has.
WRONG_OPEN = {
    "open tensor too short": ([Beat(0, 1), Beat(0, 1, 1), Beat(0, 1, 2), DONE], fold_config(1, (0,)), ErrorCode.SHAPE),
    "open tensor too long": ([Beat(0, 1, 1), Beat(0, 1), Beat(0, 1, 2), DONE], fold_config(1, (0,)), ErrorCode.SHAPE),
    "second group's tensor too long": (
        [Beat(0, 1), Beat(0, 1, 2), Beat(0, 1, 1), Beat(0, 1), Beat(0, 1, 2), DONE], fold_config(1, (0,)),
        ErrorCode.SHAPE),
    "fewer rows than the first": (
        [Beat(0, 1), Beat(0, 1, 1), Beat(0, 1), Beat(0, 1, 2), Beat(0, 1), Beat(0, 1, 3), DONE], fold_config(1, (0, 2)),
        ErrorCode.SHAPE),
    "row too short": ([Beat(0, 1, 1), Beat(0, 1, 3), DONE], fold_config(1, (0, 2)), ErrorCode.SHAPE),
    "open tensor ends inside a row": ([Beat(0, 1, 3), DONE], fold_config(1, (0, 2)), ErrorCode.SHAPE),
    "row too long": ([Beat(0, 1), Beat(0, 1), Beat(0, 1, 3), DONE], fold_config(1, (0, 2)), ErrorCode.SHAPE),
    "empty group of an open state": ([bare(2), DONE], fold_config(1, (0,)), ErrorCode.SHAPE),
    "empty group behind a full one": ([Beat(0, 1, 2), bare(2), DONE], fold_config(1, (0,)), ErrorCode.SHAPE),
    "bare stop inside an open tensor": ([Beat(0, 1), bare(2), DONE], fold_config(1, (0,), True), ErrorCode.SHAPE),
    "bare stop of an open level": ([bare(1), DONE], fold_config(1, (0,), True), ErrorCode.SHAPE),
    "hollow group without a vector": ([Beat(0, 1, 1), bare(1), DONE], fold_config(1, (), True), ErrorCode.SHAPE),
    "hollow group of rank 2 without a vector": ([bare(1), bare(2), DONE], fold_config(2, (), True), ErrorCode.SHAPE),
    "done inside an open tensor": ([Beat(0, 1), DONE], fold_config(1, (0,), True), ErrorCode.STOP_RANGE),
    "done inside an open fold": ([Beat(0, 1, 1), DONE], fold_config(1, (0,), True), ErrorCode.STOP_RANGE),
    "more open entries than memory": ([Beat(0, 1) for _ in range(4)] + [Beat(0, 1, 2), DONE], fold_config(1, (0,)),
                                      ErrorCode.EXHAUSTED),
    "more rows than memory": ([Beat(0, 1, i % 2) for i in range(4)] + [Beat(0, 1), Beat(0, 1, 3), DONE],
                              fold_config(1, (0, 2)), ErrorCode.EXHAUSTED),
}


def steady(config: FoldConfig, rng: Random, sizes: tuple[int, ...], is_open: bool = False,
           groups: int = 4) -> tuple[Case, int]:
    """Groups of one fold step each, free: what must go through at the stated interval, with the outermost size open or
    not. The case, and its elements."""
    shape = inner_streams([Beat(0, 1, 1)] * groups + [DONE], sizes)
    ports = dressed(rng, shape, config.in_types)
    cfg = fold_config(1, (0, *sizes[1:]) if is_open else sizes)
    return Case(f"steady {sizes}", {f"in{k}": port for k, port in enumerate(ports)}, cfg=cfg), len(shape) - 1
