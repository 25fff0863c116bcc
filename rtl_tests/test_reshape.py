"""Bench of ``step_hw/units/reshape.py`` and its model."""

from functools import cache
from itertools import pairwise
from random import Random

import pytest

from rtl_tests.harness import Beat, Coverage, corner_streams, random_stream
from rtl_tests.shape_bench import (
    LAYOUT,
    Trial,
    assert_timing,
    bench,
    cached_results,
    compare_with_model,
    element,
    examples,
    golden,
    result_tests,
    rows_of,
    words,
)
from step_hw.beat import BeatLayout
from step_hw.unit import ErrorCode
from step_hw.units.reshape import Reshape
from step_lang import ops
from step_lang.dims import ragged
from step_lang.tokens import pass_stops

PAD = 0
UNIT = Reshape(LAYOUT, pad=PAD, pad_rows=rows_of(PAD))
STRICT = Reshape(LAYOUT, pad=None, flags=False)
NINE = Reshape(LAYOUT, pad=9)
BINS = [
    "empty stream", "single element stream", "bare stop", "starts with bare stop", "bare stop after bare stop",
    "back to back streams", "in0 blocked", "out0 blocked", "out1 blocked", "out0 starved", "data before flags",
    "flags before data", "dim 0", "dim 1", "dim 2", "chunk 1", "chunk of several", "padded at a stop",
    "padded at done", "several positions padded", "padded block of two dimensions", "chunk full at the end",
    "bare stop of an empty dimension above 0", "flag of a row", "flag of a block",
]


def _cfg(dim, chunk, inner=(), flag_rank=0) -> dict[str, int]:
    sizes = (1, 1, *inner)
    return {"dim": dim, "flag_rank": flag_rank, "chunk": chunk, "inner1": sizes[-2], "inner0": sizes[-1]}


def _trial(name, stream, rank, dim, chunk, inner=(), split=None, pad=PAD, directed=False,
           flag_rank=0) -> Trial:
    """``inner``: static sizes below ``dim`` (needed to pad); ``split``: static size of ``dim`` itself."""
    shape = [ragged(f"d{k}") for k in range(rank, -1, -1)]
    if inner:
        shape[rank + 1 - dim:] = inner
    if split is not None:
        shape[rank - dim] = split
    apply = lambda x: ops.reshape(x, chunk, dim, pad, flag_rank=flag_rank)  # noqa: E731
    outs = golden(apply, [rank], [stream], (tuple(shape),))
    expected = {f"out{k}": out for k, out in enumerate(outs)}
    return Trial(name, {"in0": stream}, expected, _cfg(dim, chunk, inner, flag_rank), directed=directed)


def _blocks(outer: list[Beat], inner, rng: Random) -> list[Beat]:
    """Each element of ``outer`` replaced by a whole block of static ``inner`` sizes; bare stops rise with it."""
    made = []
    for beat in outer:
        if beat.done:
            made.append(beat)
        elif beat.empty:
            made.append(beat._replace(stop=beat.stop + len(inner)))
        else:
            block = [element(rng)._replace(stop=s) for s in pass_stops(inner).tolist()]
            made += [*block[:-1], block[-1]._replace(stop=len(inner) + beat.stop)]
    return made


def _random(i: int, rng: Random, pad=PAD) -> Trial:
    runs = rng.randint(1, 3)
    rank = rng.randint(0, 2)
    chunk = rng.randint(1, 4)
    style = i % 4
    if style < 2:
        stream = [beat for _ in range(runs) for beat in random_stream(rng, rank, lambda: element(rng), 4)]
        return _trial(f"random {i}, dim 0", stream, rank, 0, chunk, pad=pad)
    if style == 2:
        inner = tuple(rng.randint(1, 3) for _ in range(rng.randint(1, 2)))
        outer = [beat for _ in range(runs) for beat in random_stream(rng, rank, lambda: element(rng), 4)]
        stream = _blocks(outer, inner, rng)
        return _trial(f"random {i}, dim {len(inner)}", stream, rank + len(inner), len(inner), chunk, inner, pad=pad,
                      flag_rank=rng.randint(0, len(inner)))
    # Ragged below, so nothing can be padded: the dimension is static and a multiple of the chunk.
    split = chunk * rng.randint(1, 2)
    stream = [beat for _ in range(runs) for beat in random_stream(rng, 1, lambda: element(rng), 3, outer=split)]
    return _trial(f"random {i}, ragged below", stream, 1, 1, chunk, split=split, pad=pad)


@cache
def trials() -> tuple[Trial, ...]:
    rng = Random("reshape")
    made = examples("reshape", lambda example: {
        "reshape": _cfg(0, 2), "reshape_dim_1": _cfg(1, 2, (2,)), "reshape_dim_1_padded": _cfg(1, 2, (2,)),
    }.get(example.name))
    made.append(_trial("timing", words("1 2 3 4 5 6 7 8 S1 9 10 S1 D"), 1, 0, 2, directed=True))
    blocks = _blocks(words("1 2 3 S1 4 S1 S1 5 6 S1 D"), (3, 2), rng)
    made.append(_trial("blocks", blocks, 3, 2, 2, (3, 2), directed=True))
    blocks = _blocks(words("1 2 3 4 5 D D 6 D"), (2, 3), rng)
    made.append(_trial("blocks at done", blocks, 2, 2, 4, (2, 3), directed=True))
    made.append(_trial("flags of blocks", blocks, 2, 2, 4, (2, 3), directed=True, flag_rank=2))
    made.append(_trial("flags of rows", blocks, 2, 2, 4, (2, 3), directed=True, flag_rank=1))
    for rank in (0, 1, 2):
        for name, stream in corner_streams(rank, lambda: element(rng)).items():
            made.append(_trial(f"{name}, rank {rank}", stream, rank, 0, rng.randint(1, 3)))
    made += [_random(i, rng) for i in range(48)]
    made += [
        # As repeat makes it from an empty vector: dimension 1 itself is empty.
        _trial("empty dimension 1", words("1 2 S1 3 4 S2 S2 5 6 S2 D"), 2, 1, 2, (2,), directed=True),
        Trial("no level above 15", {"in0": words("1 2 S15 D")}, {"out0": words("1"), "out1": words("0")}, _cfg(0, 2),
              ErrorCode.STOP_RANGE),
        Trial("bare stop behind an element", {"in0": words("1") + words("S1 D")},
              {"out0": words("1"), "out1": words("0")}, _cfg(0, 2), ErrorCode.PROTOCOL),
        Trial("empty position to pad", {"in0": words("1 S1 S2 D")}, {"out0": words("1 S1"), "out1": words("0 S1")},
              _cfg(1, 3, (2,)), ErrorCode.SHAPE),
        Trial("flag of nothing", {"in0": words("1 2 S1 S1 D")}, {"out0": words("1 2 S1"), "out1": words("0")},
              _cfg(1, 3, (2,), 1), ErrorCode.SHAPE),
        Trial("flag of an empty block", {"in0": words("1 S1 3 S2 S2 D")},
              {"out0": words("1 S1 3 S2"), "out1": words("0")}, _cfg(2, 3, (2, 1), 2), ErrorCode.SHAPE),
    ]
    return tuple(made)


@cache
def strict_trials() -> tuple[Trial, ...]:
    rng = Random("strict")
    made = []
    for i in range(12):
        chunk = rng.randint(1, 3)
        stream = [beat for _ in range(rng.randint(1, 4)) for beat in
                  random_stream(rng, 1, lambda: element(rng), 3, outer=2 * chunk)]
        trial = _trial(f"strict {i}", stream, 1, 1, chunk, split=2 * chunk, pad=None)
        made.append(Trial(trial.name, trial.inputs, {"out0": trial.expected["out0"]}, trial.cfg))
    return (*made,
            Trial("stop inside a chunk", {"in0": words("1 2 S1 3 4 5 S1 D")}, {"out0": words("1 2 S2 3 4 S1")},
                  _cfg(0, 2), ErrorCode.SHAPE, directed=True),
            Trial("done inside a chunk", {"in0": words("1 2 3 D")}, {"out0": words("1 2 S1 3")}, _cfg(0, 2),
                  ErrorCode.SHAPE, directed=True))


def nine_trials() -> list[Trial]:
    """The same padded with an element of two rows."""
    rng = Random("nine")
    made = examples("reshape", lambda example: _cfg(0, 2) if example.name == "reshape_done_inside_chunk" else None)
    return made + [_random(i, rng, pad=9) for i in range(8)]


def _cover(coverage: Coverage, found) -> None:
    for trial in trials():
        dim, chunk = trial.cfg["dim"], trial.cfg["chunk"]
        coverage.hit(f"dim {dim}")
        coverage.hit_if_declared([["", "flag of a row", "flag of a block"][trial.cfg["flag_rank"]]])
        coverage.hit("chunk 1" if chunk == 1 else "chunk of several")
        if trial.error:
            continue
        if dim and any(b.empty and b.stop > dim for b in trial.inputs["in0"]):
            coverage.hit("bare stop of an empty dimension above 0")
        flags = trial.expected["out1"]
        positions = 0
        for flag, after in pairwise(flags):
            padding = not flag.empty and flag.data == 1
            flag = flag._replace(stop=flag.stop + trial.cfg["flag_rank"])  # what the element has
            positions = positions + (flag.stop >= dim) if padding else 0
            if padding and dim == 2 and trial.cfg["inner1"] > 1 and trial.cfg["inner0"] > 1:
                coverage.hit("padded block of two dimensions")
            if positions > 1:
                coverage.hit("several positions padded")
            if padding and flag.stop > dim:
                coverage.hit("padded at done" if after.done and flag.stop == dim + 1 else "padded at a stop")
            if not flag.empty and not padding and flag.stop > dim + 1:
                coverage.hit("chunk full at the end")
    for result in found:
        for data, flag in zip(result.stamps["out0"], result.stamps["out1"]):
            if data != flag:
                coverage.hit("data before flags" if data < flag else "flags before data")


results = cached_results("reshape", UNIT, BINS, trials, _cover)
test_streams_against_the_interpreter, test_same_cycles_on_both = result_tests(results)


def test_without_padding_and_flags(simulator):
    bench(simulator, STRICT, strict_trials())


def test_padding_with_another_element(simulator):
    bench(simulator, NINE, nine_trials())


@pytest.mark.parametrize("output", ["out0", "out1"])
def test_latency_and_interval(simulator, output):
    found = {result.name: result for result in results(simulator)}
    assert_timing("reshape", found["timing/0"], output)
    # Padding takes a cycle an element: one output beat every cycle.
    padded = found["blocks/0"].stamps[output]
    assert padded == list(range(padded[0], padded[0] + len(padded)))


def test_model_has_the_same_cycles(simulator):
    compare_with_model(simulator, UNIT, trials(), {"pad": PAD, "pad_rows": rows_of(PAD)})


def test_model_without_padding_and_flags(simulator):
    compare_with_model(simulator, STRICT, strict_trials(), {"pad": None})


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="padding 0x100000000 does not fit 32 data bits"):
        Reshape(LAYOUT, pad=1 << 32)
    with pytest.raises(ValueError, match="padding has 1 to 2 valid rows, not 3"):
        Reshape(LAYOUT, pad_rows=3)


def test_names_tell_parameters_apart():
    wide = BeatLayout(64, 2)
    units = [UNIT, STRICT, NINE, Reshape(LAYOUT), Reshape(LAYOUT, flags=False), Reshape(wide),
             Reshape(wide, pad=0x1234567890), Reshape(wide, pad=0x1234567891)]
    names = [unit.module_name for unit in units]
    assert len(set(names)) == len(names), names
