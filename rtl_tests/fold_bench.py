"""What the benches of accum and scan share: streams, expectations, cases."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from rtl_tests.compute_bench import FoldConfig, aligned_streams, dressed, fold_config, inner_streams, interpreted
from rtl_tests.harness import DONE, Beat, Case, bare, bernoulli, bursts
from rtl_tests.harness.streams import corner_streams
from rtl_tests.model_bench import ModelCase, pressed
from step_hw.unit import ErrorCode

__all__ = ["WRONG", "FoldRun", "bench_cases", "fold_runs", "model_cases", "steady"]


@dataclass(frozen=True)
class FoldRun:
    """One stream through the unit: ``rank`` is the stream's, ``fold_rank`` and ``sizes`` are the fold's."""

    name: str
    ports: list[list[Beat]]
    rank: int
    fold_rank: int
    sizes: tuple[int, ...]

    @property
    def inputs(self) -> dict[str, list[Beat]]:
        return {f"in{k}": port for k, port in enumerate(self.ports)}

    @property
    def cfg(self) -> dict[str, int]:
        return fold_config(self.fold_rank, self.sizes)

    def expected(self, kind: str, config: FoldConfig) -> dict[str, list[Beat]]:
        """What the interpreter says."""
        return {"out0": interpreted(kind, config.function, config.in_types, self.ports, self.rank, group=config.group,
                                    fold_rank=self.fold_rank, sizes=self.sizes)}


def fold_runs(config: FoldConfig, rng: Random) -> Iterator[FoldRun]:
    """Random and corner streams for every shape of ``config``."""
    for fold_rank, sizes in config.shapes:
        label = f"b{fold_rank} c{len(sizes)}"
        for above in (0, 1):
            rank = fold_rank + len(sizes) + above
            # Tiles with few valid rows: a sum of zero-padded tiles is zero-padded, as the interpreter's is on a link.
            partial = config.function.name == "add" and above == 1
            streams = aligned_streams(rng, config.in_types, rank, sizes, partial=partial)
            yield FoldRun(f"{label} random rank {rank}", streams, rank, fold_rank, sizes)
        corners: list[Beat] = []
        for shape in corner_streams(fold_rank + 1, lambda: Beat(0, 1)).values():
            corners += shape
        rank = fold_rank + 1 + len(sizes)
        yield FoldRun(f"{label} corners", dressed(rng, inner_streams(corners, sizes), config.in_types), rank,
                      fold_rank, sizes)
        # Groups of one and of no element, back to back: each closes while the last still drains.
        one, none = Beat(0, 1, fold_rank), bare(fold_rank)
        short = [one, one, none, none, one, DONE]
        yield FoldRun(f"{label} short groups", dressed(rng, inner_streams(short, sizes), config.in_types),
                      fold_rank + len(sizes), fold_rank, sizes)


def bench_cases(kind: str, config: FoldConfig, rng: Random) -> list[Case]:
    """Each stream free, and under back-pressure with pauses."""
    cases = []
    for i, run in enumerate(fold_runs(config, rng)):
        expected = run.expected(kind, config)
        cases.append(Case(f"{run.name} free", run.inputs, expected, run.cfg))
        cases.append(Case(f"{run.name} pressed", run.inputs, expected, run.cfg, drive=bernoulli(0.7),
                          sink=bursts(2, 5) if i % 2 else bernoulli(0.4)))
    return cases


def model_cases(kind: str, config: FoldConfig, rng: Random) -> list[ModelCase]:
    """As `bench_cases`, then every error that the unit can raise."""
    cases = []
    for run in fold_runs(config, rng):
        expected = run.expected(kind, config)
        cases.append(ModelCase(f"{run.name} free", run.inputs, run.cfg, expected=expected))
        cases.append(pressed(ModelCase(f"{run.name} pressed", run.inputs, run.cfg, expected=expected), rng, take=0.4))
    for name, (shape, cfg, error) in WRONG.items():
        ports = dressed(rng, shape, config.in_types)
        cases.append(ModelCase(name, {f"in{k}": port for k, port in enumerate(ports)}, cfg, error=error))
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


def steady(config: FoldConfig, rng: Random, sizes: tuple[int, ...], groups: int = 4) -> tuple[Case, int]:
    """Groups of one fold step each, free: what must go through at the stated interval. The case, and its elements."""
    shape = inner_streams([Beat(0, 1, 1)] * groups + [DONE], sizes)
    ports = dressed(rng, shape, config.in_types)
    case = Case(f"steady {sizes}", {f"in{k}": port for k, port in enumerate(ports)}, cfg=fold_config(1, sizes))
    return case, len(shape) - 1
