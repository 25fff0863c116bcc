"""What the benches of the row units share: streams of tiles in row order, and the interpreter's results for them.

Tiles are ``T`` x ``COLS`` int8; every element differs from the others of its stream with high probability.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from rtl_tests.harness import Beat, CaseResult, Coverage, bare, from_beats, to_beats
from rtl_tests.harness.beats import streams_of
from rtl_tests.shape_bench import Trial, assert_rate, bench, with_trials
from step_hw.beat import BeatLayout
from step_lang import Program, ops
from step_lang.dims import Dim, ragged
from step_lang.interpreter import Context
from step_lang.numerics import Numerics
from step_lang.types import Tile, Type, int8, scalar, u32

__all__ = [
    "COLS",
    "COLUMNS",
    "ROW",
    "ROW_TYPE",
    "TILE",
    "TILE_TYPE",
    "U32",
    "T",
    "assert_rates",
    "beat",
    "golden",
    "pressed_bench",
    "row_tiles",
    "rows",
    "tiles",
]

T = 4
COLS = 2
COLUMNS = 8
ROW_BITS = 8 * COLS
ROW = BeatLayout(ROW_BITS)
TILE = BeatLayout(T * ROW_BITS, T)
ROW_TYPE = Tile(1, COLS, int8)
TILE_TYPE = Tile(T, COLS, int8)
U32 = scalar(u32)


def beat(rng: Random, height: int = 1, stop: int = 0) -> Beat:
    """A tile of ``height`` rows of random bits."""
    return Beat(rng.getrandbits(ROW_BITS * height) if height else 0, height, stop)


def rows(rng: Random, outer: Sequence[Beat], n: int) -> list[Beat]:
    """A row of ``n`` tiles for every element of ``outer``; stops rise by 1."""
    made: list[Beat] = []
    for item in outer:
        if item.empty:
            made.append(item if item.done else bare(item.stop + 1))
        else:
            made += [beat(rng) for _ in range(n - 1)] + [beat(rng, 1, item.stop + 1)]
    return made


def row_tiles(rng: Random, height: int, n: int, stop: int, most: int = T) -> list[Beat]:
    """A tile of ``height`` rows as row tiles of up to ``most`` rows, at least one, of ``n`` tiles each."""
    heights = [min(most, height - first) for first in range(0, max(1, height), most)]
    made = [beat(rng, h, 1 if j == n - 1 else 0) for h in heights for j in range(n)]
    return [*made[:-1], made[-1]._replace(stop=stop)]


def tiles(rng: Random, outer: Sequence[Beat], height: Callable[[], int], n: int, most: int = T) -> list[Beat]:
    """`row_tiles` of ``height()`` rows for every element of ``outer``; stops rise by 2."""
    made: list[Beat] = []
    for item in outer:
        if item.empty:
            made.append(item if item.done else bare(item.stop + 2))
        else:
            made += row_tiles(rng, height(), n, item.stop + 2, most)
    return made


def golden(apply: Callable, inputs: Sequence[Sequence[Beat]], types: Sequence[Type], ranks: Sequence[int], n: int,
           result: Type, pieces: Dim | None = None) -> list[Beat]:
    """Output beats of the interpreter's operator for (done-terminated) runs; ``pieces``: a static number of row tiles.

    The input of tiles has the static innermost dimension ``n``.
    """
    outer = tuple(ragged(f"d{k}") for k in range(max(ranks) + 1))
    with Program("golden"):
        streams = []
        for k, (type_, rank) in enumerate(zip(types, ranks)):
            shape: tuple[Dim, ...] = outer[:rank + 1]
            if type_ != U32:
                shape = (*shape[:-1], n) if pieces is None else (*shape[:-2], pieces, n)
            loose = type_ if type_ != TILE_TYPE or pieces is not None else Tile(ragged("rho"), COLS, int8)
            streams.append(ops.input_stream(f"x{k}", loose, shape))
        operator = apply(*streams).producer
    made: list[Beat] = []
    for run in zip(*map(streams_of, inputs), strict=True):
        tokens = [from_beats(stream, type_, rank).check() for stream, type_, rank in zip(run, types, ranks)]
        [out] = operator.interpret(Context(Numerics(), {}, {}, {}), tokens)
        made += to_beats(out.check(), result)
    return made


def pressed_bench(simulator: str, unit, trials: Sequence[Trial], coverage: Coverage) -> list[CaseResult]:
    """`bench`, every input having been taken whole."""
    found = bench(simulator, unit, trials, coverage)
    for trial, result in with_trials(found, trials):
        for port, stream in trial.inputs.items():
            assert trial.error or result.beats[port] == list(stream), f"{result.name}: {port} not taken whole"
    return found


def assert_rates(simulator: str, unit, trials: Sequence[Trial], port: str) -> None:
    """0.95 beats a cycle at ``port`` in every trial whose name begins with ``rate``, inputs and outputs held up by
    nobody; under every pressure the right beats."""
    run = [replace(trial, directed=True) for trial in trials if trial.name.startswith("rate")]
    found = pressed_bench(simulator, unit, run, Coverage("rate", ["in0 blocked"]))
    plain = [result for result in found if result.name.endswith("/0")]
    assert len(plain) == len(run) > 0, f"{len(plain)} results without pressure of {len(run)} trials"
    for result in plain:
        assert_rate(result, port)
