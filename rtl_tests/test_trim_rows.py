"""Bench of ``step_hw/units/trim_rows.py`` and its model."""

from functools import cache
from random import Random

import pytest

from rtl_tests.harness import Beat, Coverage, bare, beats, corner_streams, random_stream
from rtl_tests.harness.beats import DONE
from rtl_tests.row_bench import TILE, TILE_TYPE, U32, T, assert_rates, beat, golden, pressed_bench, row_tiles
from rtl_tests.shape_bench import (
    Trial,
    assert_timing,
    cached_results,
    compare_with_model,
    random_runs,
    result_tests,
)
from step_hw.beat import BeatLayout
from step_hw.unit import ErrorCode
from step_hw.units.trim_rows import TrimRows
from step_lang import ops
from step_lang.errors import MisalignedStreams, StepError, StreamProtocolError
from step_lang.types import Tile, int8

UNIT = TrimRows(TILE, TILE)
WIDER = TrimRows(BeatLayout(32, 2), TILE)
BINS = [
    "empty stream", "single element stream", "bare stop", "starts with bare stop", "bare stop after bare stop",
    "back to back streams", "in0 blocked", "in1 blocked", "out0 blocked", "out0 starved", "rank 2", "rank 3", "rank 4",
    "padding", "no padding", "all rows stay", "no row stays", "no row of a tile of none", "last row tile is cut",
    "whole row tiles stay", "one block dropped", "several blocks dropped", "tile of several row tiles", "rows below T",
]


def _expected(inputs, rank, n, most=T, total=0) -> list[Beat]:
    apply = lambda x, c: ops.trim_rows(x, c, most, padding=total > 0)  # noqa: E731
    pieces = total // most if total else None
    type_ = TILE_TYPE if most == T else Tile(most, 2, int8) if total else TILE_TYPE
    return golden(apply, inputs, [type_, U32], [rank, rank - 2], n, TILE_TYPE, pieces)


def _cfg(most, total) -> dict[str, int]:
    return {"rows": most, "total": total}


def _trial(name, rng, outer, rank, n, heights, most=T, total=0, keep=None, directed=False) -> Trial:
    """``outer``: elements are tiles of ``heights()`` rows, ``keep(rows)`` their counts; its rank is ``rank`` - 2."""
    keep = keep or (lambda rows: rng.choice([0, rows, rng.randint(0, rows), rng.randint(0, rows)]))
    data, counts = [], []
    for item in outer:
        if item.done:
            data.append(item)
            counts.append(item)
        elif item.empty:
            data.append(bare(item.stop + 2))
            counts.append(item)
        else:
            height = total or heights()
            data += row_tiles(rng, height, n, item.stop + 2, most)
            counts.append(Beat(keep(height), 1, item.stop))
    expected = _expected([data, counts], rank, n, most, total)
    return Trial(name, {"in0": data, "in1": counts}, {"out0": expected}, _cfg(most, total), directed=directed)


def _wrong(name, data, counts, error, total=0, most=T, leave=()) -> Trial:
    """Streams of ranks 3 and 1, one column of tiles, right in their first tile; ``leave``: rows that are left of each
    beat of the second that still leaves."""
    first = next(i for i, b in enumerate(data) if b.stop >= 2) + 1
    begun = [*data[:first - 1], data[first - 1]._replace(stop=3), DONE]
    good = _expected([begun, [counts[0]._replace(stop=1), DONE]], 3, 1, most, total)[:-1]
    good[-1] = good[-1]._replace(stop=data[first - 1].stop)
    good += [b._replace(data=b.data % (1 << 16 * rows), rows=rows) for b, rows in zip(data[first:], leave)]
    return Trial(name, {"in0": data, "in1": counts}, {"out0": good}, _cfg(most, total), error, directed=True)


@cache
def wrong_trials() -> tuple[Trial, ...]:
    rng = Random("wrong")
    one = row_tiles(rng, 6, 1, 2)
    vector = row_tiles(rng, 6, 1, 3)
    tall = row_tiles(rng, 2 * T, 1, 2)
    counts = beats("5 6 S1 D")
    shape, misaligned, protocol = ErrorCode.SHAPE, ErrorCode.MISALIGNED, ErrorCode.PROTOCOL
    short = [beat(rng, 3, 1), beat(rng, 1, 3)]
    return (
        _wrong("count above the last block's", [*one, *vector, DONE], beats("5 7 S1 D"), shape, leave=[4]),
        _wrong("count above all blocks",
               [*one, *row_tiles(rng, 2 * T, 1, 3), DONE], beats("5 9 S1 D"), shape, leave=[4]),
        _wrong("padding above the rows", [*tall, *row_tiles(rng, 2 * T, 1, 3), DONE], beats("5 9 S1 D"), shape, 2 * T),
        _wrong("short block inside a tile", [*one, *short, DONE], beats("5 4 S1 D"), shape),
        _wrong("short block inside a tile, the last to stay", [*one, *short, DONE], beats("5 2 S1 D"), shape),
        _wrong("short block among the dropped", [*one, beat(rng, T, 1), *short, DONE], beats("5 2 S1 D"), shape),
        _wrong("block of too many rows", [*row_tiles(rng, 2, 1, 2, 2), beat(rng, 3, 3), DONE], beats("1 2 S1 D"), shape,
               most=2),
        _wrong("block without tiles", [*one, bare(1), *vector, DONE], counts, shape),
        _wrong("tile without tiles", [*one, bare(2), *vector, DONE], counts, shape),
        _wrong("tile that ends with a block without tiles",
               [*one, beat(rng, T, 1), bare(3), DONE], counts, shape, leave=[4]),
        _wrong("stops differ", [*one, *one, *vector, DONE], beats("5 6 S1 6 S1 D"), misaligned, leave=[4]),
        _wrong("count too few", [*one, *vector, *vector, DONE], beats("5 6 S1 D"), misaligned, leave=[4, 2]),
        _wrong("count too many", [*one, *vector, DONE], beats("5 6 S1 6 S1 D"), misaligned, leave=[4, 2]),
        _wrong("bare stop for a count",
               [*one, *vector, bare(3), DONE], beats("5 6 S1 6 S1 D"), misaligned, leave=[4, 2]),
        _wrong("tile for a bare stop", [*one, *vector, *vector, DONE], beats("5 6 S1 S1 D"), misaligned, leave=[4, 2]),
        _wrong("done for a bare stop", [*one, *vector, DONE], beats("5 6 S1 S1 D"), misaligned, leave=[4, 2]),
        _wrong("bare stop for done", [*one, *vector, bare(3), DONE], beats("5 6 S1 D"), misaligned, leave=[4, 2]),
        _wrong("tiles of different rows",
               [*one, beat(rng, 3), beat(rng, 2, 3), DONE], beats("5 1 S1 D"), misaligned, leave=[1]),
        _wrong("done inside a tile", [*one, beat(rng, T, 1), DONE], beats("5 1 S1 D"), protocol),
        _wrong("done inside a block", [*one, beat(rng, T), DONE], beats("5 1 S1 D"), protocol, leave=[1]),
        _wrong("bare stop inside a block", [*one, beat(rng, T), bare(3), DONE], beats("5 1 S1 D"), protocol, leave=[1]),
    )


@cache
def trials() -> tuple[Trial, ...]:
    rng = Random("trim_rows")
    made = [_trial("timing", rng, beats("1 2 3 4 5 6 7 8 9 D"), 2, 1, lambda: T, keep=lambda rows: rows - 1,
                   directed=True)]
    made.append(_trial("dropped", rng, beats("1 2 S1 S1 3 4 S1 D"), 3, 2, iter([9, 12, 13, 5]).__next__,
                       keep={9: 3, 12: 4, 13: 0, 5: 5}.__getitem__,
                       directed=True))
    for n, height in ((1, T), (1, 2 * T), (2, 3), (4, 3 * T - 1)):
        outer = [Beat() for _ in range(160 // n)] + [Beat(stop=1)] + [DONE]
        made.append(_trial(f"rate {n} {height}", rng, outer, 3, n, lambda height=height: height))
    for rank in (0, 1, 2):
        for name, outer in corner_streams(rank, Beat).items():
            made.append(_trial(f"{name}, rank {rank + 2}", rng, outer, rank + 2, rng.randint(1, 3),
                               lambda: rng.randint(0, 3 * T)))
    for i in range(60):
        rank, n, most = i % 3, rng.choice([1, 1, 2, 3]), rng.choice([T, T, 1, 2, 3])
        outer = random_runs(rng, rank, Beat, 4)
        total = most * rng.randint(1, 3) if i % 2 else 0
        made.append(_trial(f"random {i}, rank {rank + 2}", rng, outer, rank + 2, n,
                           lambda most=most: rng.randint(0, 3 * most), most, total))
    return (*made, *wrong_trials())


def _cover(coverage: Coverage, _) -> None:
    for trial in trials():
        if trial.error:
            continue
        coverage.hit_if_declared([f"rank {trial.name[-1]}"] if ", rank" in trial.name else [])
        most, total = trial.cfg["rows"], trial.cfg["total"]
        coverage.hit("padding" if total else "no padding")
        coverage.hit_if_declared(["rows below T"] if most < T else [])
        counts = iter([b.data for b in trial.inputs["in1"] if not b.empty])
        heights: list[int] = []
        for b in trial.inputs["in0"]:
            if b.empty or not b.stop:
                continue
            heights.append(b.rows)
            if b.stop < 2:
                continue
            count, height = next(counts), sum(heights)
            kept = height - count if total else count
            dropped = len(heights) - max(1, -(-kept // most))
            coverage.hit_if_declared(["tile of several row tiles"] if len(heights) > 1 else [])
            if height == 0:
                coverage.hit("no row of a tile of none")
            else:
                coverage.hit_if_declared(["all rows stay"] * (kept == height) + ["no row stays"] * (kept == 0))
                if 0 < kept < height:
                    coverage.hit("last row tile is cut" if kept % most else "whole row tiles stay")
            if dropped:
                coverage.hit("one block dropped" if dropped == 1 else "several blocks dropped")
            heights = []


results = cached_results("trim_rows", UNIT, BINS, trials, _cover, pressed_bench)
test_streams_against_the_interpreter, test_same_cycles_on_both = result_tests(results)


def test_latency_and_interval(simulator):
    found = {result.name: result for result in results(simulator)}
    assert_timing("trim_rows", found["timing/0"])


@cache
def wider_trials() -> tuple[Trial, ...]:
    """Tiles of up to two rows in, of up to four out."""
    rng = Random("wider")
    made = []
    for i in range(12):
        outer = [b for _ in range(2) for b in random_stream(rng, 1, Beat, 4)]
        made.append(_trial(f"wider {i}", rng, outer, 3, 1 + i % 2, lambda: rng.randint(0, 5), most=1 + i % 2))
    return tuple(made)


def test_tiles_of_fewer_rows_in_than_out(simulator):
    pressed_bench(simulator, WIDER, wider_trials(), Coverage("wider", ["in0 blocked"]))
    compare_with_model(simulator, WIDER, wider_trials())


def test_model_has_the_same_cycles(simulator):
    compare_with_model(simulator, UNIT, trials())


def test_rate(simulator):
    """A beat a cycle at the input, dropped or not."""
    assert_rates(simulator, UNIT, trials(), "in0")


@pytest.mark.parametrize("trial", wrong_trials(), ids=lambda trial: trial.name)
def test_the_interpreter_refuses_the_same(trial):
    most, total = trial.cfg["rows"], trial.cfg["total"]
    inside = trial.name in ("tiles of different rows",)
    wanted = MisalignedStreams if trial.error == ErrorCode.MISALIGNED and not inside else StreamProtocolError
    with pytest.raises(StepError) as raised:
        _expected([trial.inputs["in0"], trial.inputs["in1"]], 3, 1, most, total)
    assert type(raised.value) is wanted, raised.value


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="tiles of 4 rows and 64 bits do not fit 2 rows and 32 bits"):
        TrimRows(TILE, BeatLayout(32, 2))
    with pytest.raises(ValueError, match="tiles of 4 rows and 64 bits do not fit 4 rows and 32 bits"):
        TrimRows(TILE, BeatLayout(32, 4))
