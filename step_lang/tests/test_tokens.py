"""Token streams: notation, nesting, well-formedness, equality."""

import numpy as np
import pytest
from hypothesis import given, settings

from step_lang import Selector, Tile, TokenStream, Tuple, bf16, format_tokens, fp32, int32, parse_tokens, scalar
from step_lang.errors import StreamProtocolError, TensorError
from step_lang.tests.nested import nested_streams
from step_lang.tokens import data_nbytes, pass_stops


@pytest.mark.parametrize("text", ["1 2 S1 3 S2 4 S1 5 6 7 S2 D", "S1 D", "1 S1 S1 2 S2 D", "7 D", "S2 1 S2 D"])
def test_notation_round_trip(text):
    assert format_tokens(parse_tokens(text)) == text


def test_fused_form_of_spec():
    tokens = parse_tokens("1 2 S1 3 S2 4 S1 5 6 7 S2 D")
    assert tokens.stop.tolist() == [0, 1, 2, 1, 0, 0, 2] and not tokens.empty.any()
    assert tokens.to_nested() == [[[1, 2], [3]], [[4], [5, 6, 7]]]


def test_bare_stops():
    tokens = parse_tokens("1 S1 S1 2 S2 D")
    assert tokens.empty.tolist() == [False, True, False] and tokens.to_nested() == [[[1], [], [2]]]
    assert parse_tokens("D", 3).to_nested() == [] and parse_tokens("S2 D").to_nested() == [[[]]]


def test_selectors():
    tokens = parse_tokens("{0} {0,2} S1 {} S1 D", type_=Selector(3))
    assert tokens.data.tolist() == [[True, False, False], [True, False, True], [False] * 3]
    assert format_tokens(tokens) == "{0} {0,2} S1 {} S1 D" and data_nbytes(tokens.data) == 3


@pytest.mark.parametrize("text, word", [
    ("1 2", "D at the end"), ("1 D 2 D", "D at the end"), ("1 x D", "'x'"), ("1 S0 D", "S0"), ("1 S2 2 S1 D", "S?2"),
])
def test_bad_notation(text, word):
    with pytest.raises(StreamProtocolError, match=word):
        parse_tokens(text)


@pytest.mark.parametrize("rank, stop, empty, word", [
    (1, [2], [0], "rank 1"), (1, [0], [0], "last beat"), (1, [0, 1], [1, 0], "neither"),
    (1, [0, 1], [0, 1], "bare stop after"), (0, [-1], [0], "rank 0"),
])
def test_ill_formed(rank, stop, empty, word):
    data = np.zeros((len(empty) - sum(empty), 1, 1), np.int32)
    with pytest.raises(StreamProtocolError, match=word):
        TokenStream(rank, stop, empty, data).check()


def test_too_few_elements():
    with pytest.raises(StreamProtocolError, match="0 elements vs 1"):
        TokenStream(0, [0], [False], np.zeros((0, 1, 1), np.int32)).check()


def test_equality_is_of_bits():
    def one(value, dtype=np.float32):
        return TokenStream(0, [0], [False], np.full((1, 1, 1), value, dtype))

    assert one(np.nan) == one(np.nan) and one(0.0) != one(-0.0) and one(1) != one(1, np.int32)
    assert one(1) != TokenStream(1, [1], [False], one(1).data)
    tiles = [np.zeros((2, 1), np.float32), np.zeros((3, 1), np.float32)]
    varying = TokenStream(0, [0, 0], [0, 0], tiles)
    assert varying == TokenStream(0, [0, 0], [0, 0], [tile.copy() for tile in tiles])
    assert varying != TokenStream(0, [0, 0], [0, 0], tiles[::-1])
    assert TokenStream(0, [0], [0], (one(1).data, one(2).data)) != TokenStream(0, [0], [0], (one(1).data, one(3).data))


def test_values_of_types():
    tokens = TokenStream.from_nested([(1.5, {1})], 0, Tuple((scalar(bf16), Selector(2))))
    assert tokens.data[0].dtype == bf16.numpy and tokens.data[1].tolist() == [[False, True]]
    assert format_tokens(tokens) == "(1.5, {1}) D"
    for value, type_ in ((1.5, scalar(int32)), ({2}, Selector(2)), (np.zeros((2, 3), np.float32), Tile(3, 2, fp32)),
                         (np.zeros((1, 1), np.float64), scalar(fp32))):
        with pytest.raises(TensorError, match="vs"):
            TokenStream.from_nested([value], 0, type_)


def test_pass_stops():
    assert pass_stops((2, 3)).tolist() == [0, 0, 1, 0, 0, 2] and pass_stops((1, 1)).tolist() == [2]
    assert pass_stops(()).tolist() == [0]


@settings(max_examples=200, deadline=None)
@given(nested_streams())
def test_nesting_round_trip(sample):
    rank, nested = sample
    tokens = TokenStream.from_nested(nested, rank).check()
    assert tokens.to_nested() == nested and parse_tokens(format_tokens(tokens), rank) == tokens
