"""The harness's own parts that need no simulator: beats, streams, tokens, patterns, checks, coverage."""

import json
from random import Random

import numpy as np
import pytest

from rtl_tests.harness import (
    DONE,
    STREAM_BINS,
    Beat,
    Coverage,
    LinkLayout,
    after_valid,
    bare,
    beats,
    bernoulli,
    bursts,
    corner_streams,
    from_beats,
    layout_for,
    random_element,
    random_stream,
    restop,
    show,
    stream_bins,
    to_beats,
    withhold,
)
from rtl_tests.harness.beats import streams_of
from rtl_tests.harness.checks import LinkChecks, compare_beats
from step_lang.tokens import TokenStream, parse_tokens
from step_lang.types import Selector, Tile, Tuple, bf16, bool_, fp32, int32, scalar, u32

SPEC = "1 2 S1 S1 3 S2 4 S2 D"


def test_notation_round_trip():
    made = beats(SPEC)
    assert made == [Beat(1), Beat(2, 1, 1), bare(1), Beat(3, 1, 2), Beat(4, 1, 2), DONE]
    assert show(made) == SPEC


def test_layout_puts_data_lowest():
    layout = LinkLayout(16, 3)
    assert layout.width == 16 + 3 + 4 + 2
    assert layout.pack(Beat(0xABCD, 5, 9, 0, 0)) == 0xABCD | 5 << 16 | 9 << 19
    assert layout.pack(DONE) == 1 << 23 | 1 << 24
    rng = Random(1)
    for _ in range(200):
        word = rng.getrandbits(layout.width)
        assert layout.pack(layout.unpack(word)) == word
    with pytest.raises(ValueError, match="rows = 0x8 does not fit 3 bits"):
        layout.pack(Beat(0, 8))


def _tokens(stream: list[Beat], rank: int) -> TokenStream:
    return from_beats(stream, scalar(int32), rank)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_generated_streams_are_well_formed(rank):
    rng = Random(rank)
    layout = LinkLayout(32)
    seen = set()
    for _ in range(200):
        stream = random_stream(rng, rank, lambda: random_element(rng, layout), 3)
        _tokens(stream, rank).check()
        assert to_beats(_tokens(stream, rank), scalar(int32)) == stream
        seen |= stream_bins(stream)
    wanted = {"empty stream", "single element stream"}
    if rank:
        wanted |= {"bare stop", "starts with bare stop", "bare stop after bare stop", "fused stop", "highest stop"}
    assert wanted <= seen


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_corner_streams_are_well_formed(rank):
    rng = Random(rank)
    seen = set()
    for stream in corner_streams(rank, lambda: random_element(rng, LinkLayout(32))).values():
        for one in streams_of(stream):
            assert one[-1] == DONE
            _tokens(one, rank).check()
        seen |= stream_bins(stream)
    if rank:
        assert seen == set(STREAM_BINS)


def test_restop_leaves_done():
    assert show(restop(beats("1 S1 2 D"), lambda stop: stop + 1)) == "1 S2 2 S1 D"


def test_tile_bits_are_row_major_lowest_first():
    tile = np.arange(4, dtype=np.int32).reshape(1, 2, 2)
    made = to_beats(TokenStream(0, [0], [False], tile), Tile(2, 2, int32))
    assert made == [Beat(0 | 1 << 32 | 2 << 64 | 3 << 96, 2), DONE]
    assert layout_for(Tile(2, 2, int32)) == LinkLayout(128, 2)
    one = np.asarray([[[1.0, -2.0]]], dtype=bf16.numpy)
    assert to_beats(TokenStream(0, [0], [False], one), Tile(1, 2, bf16))[0] == Beat(0x3F80 | 0xC000 << 16, 1)


def test_short_tile_is_padded_with_zero_rows():
    short = TokenStream(0, [0], [False], [np.asarray([[7, 8]], dtype=np.int32)])
    made = to_beats(short, Tile(2, 2, int32))
    assert made[0] == Beat(7 | 8 << 32, 1)
    assert from_beats(made, Tile(2, 2, int32), 0).data[0].tolist() == [[7, 8]]


def test_selector_flag_and_tuple_bits():
    selectors = parse_tokens("{0} {0,2} {} S1 D", type_=Selector(3))
    assert [beat.data for beat in to_beats(selectors, Selector(3))] == [1, 5, 0, 0]
    flags = TokenStream(0, [0, 0], [False, False], np.asarray([[[True]], [[False]]]))
    assert [beat.data for beat in to_beats(flags, scalar(bool_))] == [1, 0, 0]
    both = Tuple((scalar(bool_), scalar(u32)))
    pair = TokenStream(0, [0, 0], [False, False], (flags.data, np.asarray([[[5]], [[6]]], dtype=np.uint32)))
    assert [beat.data for beat in to_beats(pair, both)] == [1 | 5 << 1, 6 << 1, 0]
    for tokens, type_, rank in ((selectors, Selector(3), 1), (flags, scalar(bool_), 0), (pair, both, 0)):
        assert from_beats(to_beats(tokens, type_), type_, rank) == tokens


def test_random_tiles_round_trip():
    rng = np.random.default_rng(3)
    data = rng.standard_normal((5, 4, 4)).astype(fp32.numpy)
    tokens = TokenStream(1, [0, 1, 0, 0, 1], [False] * 5, data)
    assert from_beats(to_beats(tokens, Tile(4, 4, fp32)), Tile(4, 4, fp32), 1) == tokens


def test_patterns_repeat_and_differ_by_seed():
    for pattern in (bernoulli(0.5), bursts(3, 5)):
        one, same, other = (pattern.gate(seed) for seed in ("a", "a", "b"))
        first = [one(False) for _ in range(64)]
        assert first == [same(False) for _ in range(64)] != [other(False) for _ in range(64)]
        assert 0 < sum(first) < 64
    gate = withhold(3).gate(0)
    assert [gate(False) for _ in range(5)] == [False] * 3 + [True] * 2
    gate = after_valid(2).gate(0)
    assert [gate(valid) for valid in (False, True, True, True, True)] == [False, False, True, False, True]


LAYOUT = LinkLayout(8)


def _check(*cycles: tuple[bool, bool, Beat], may_begin: int = 1, max_rank: int | None = None,
           layout: LinkLayout = LAYOUT) -> str | None:
    checks = LinkChecks("out0", layout, max_rank)
    for number, (valid, ready, beat) in enumerate(cycles):
        problem = checks.cycle(number, valid, ready, layout.pack(beat), lambda: may_begin)
        if problem:
            return problem
    return None


@pytest.mark.parametrize(
    "cycles, message",
    [
        ([(True, False, Beat(1)), (False, False, Beat())], "valid dropped in cycle 1"),
        ([(True, False, Beat(1)), (True, False, Beat(2))], "payload changed in cycle 1 .*data 0x1 -> 0x2"),
        ([(True, True, DONE), (True, True, Beat(1))], "after done"),
        ([(True, True, Beat(3, 0, 1, 1))], "empty with data"),
        ([(True, True, Beat(0, 1, 1, 1))], "empty with rows"),
        ([(True, True, Beat(0, 0, 0, 1))], "empty without stop"),
        ([(True, True, Beat(0, 0, 2, 1, 1))], "done with a stop"),
        ([(True, True, Beat(0, 0, 0, 0, 1))], "done without empty"),
        ([(True, True, Beat(1, 0))], "no rows"),
    ],
)
def test_protocol_breach_is_named(cycles, message):
    import re

    found = _check(*cycles)
    assert found is not None and re.search(message, found), found


def test_protocol_accepts_what_is_legal():
    assert _check((True, False, Beat(1)), (True, True, Beat(1)), (False, True, Beat()), (True, True, DONE)) is None
    assert _check((True, True, DONE), (True, True, Beat(1)), may_begin=2) is None
    assert _check((True, True, Beat(0, 0)), layout=LinkLayout(8, 3)) is None
    assert "above the stream's rank 1" in _check((True, True, Beat(1, 1, 2)), max_rank=1)


def test_comparison_shows_first_difference():
    problem = compare_beats("out0", beats("1 2 S1 3 D"), beats("1 2 S2 3 D"), [4, 5, 6, 7])
    assert problem.startswith("out0: beat 1 differs in stop")
    assert "expected 2 S1" in problem and "cycle 5" in problem
    assert "beat 3 is missing: got 3 of 4" in compare_beats("out0", beats("1 2 3 D"), beats("1 2 3"))
    assert "one too many" in compare_beats("out0", beats("1"), beats("1 2"))
    assert compare_beats("out0", beats("1 2"), beats("2 1"), unordered=True) is None
    assert "missing 2 x 1, not expected 2" in compare_beats("out0", beats("1 1"), beats("2"), unordered=True)


def test_coverage_names_what_was_missed_and_merges(tmp_path):
    coverage = Coverage("unit", ["a", "b"])
    coverage.hit("a", 2)
    with pytest.raises(AssertionError, match="never hit: b"):
        coverage.check()
    with pytest.raises(KeyError, match="no bin 'c'"):
        coverage.hit("c")
    file = tmp_path / "deep" / "coverage.json"
    coverage.save(file)
    coverage.hit("b")
    coverage.check()
    coverage.save(file)
    assert json.loads(file.read_text()) == {"unit": {"a": 4, "b": 1}}
    other = Coverage("unit", ["a", "b"])
    other.merge(coverage)
    assert other.counts == coverage.counts
