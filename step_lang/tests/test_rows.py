"""pack_rows, unpack_rows and trim_rows against nested lists; what they refuse; flags of a reshape for whole tensors."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from step_lang import (
    BadParameter,
    MisalignedStreams,
    Program,
    ShapeMismatch,
    StreamProtocolError,
    Tile,
    TokenStream,
    TypeMismatch,
    bf16,
    bool_,
    dynamic,
    fn,
    int32,
    ops,
    ragged,
    scalar,
    u32,
)
from step_lang.dims import Ragged
from step_lang.interpreter import Context, measure_symbols
from step_lang.numerics import Numerics
from step_lang.tests.nested import flat, map_level, nested_streams
from step_lang.tests.test_routing import in_steps
from step_lang.tests.test_worked_examples import run
from step_lang.tokens import data_pack, parse_tokens

SETTINGS = settings(max_examples=150, deadline=None)
COLS = 2
U32 = scalar(u32)


def tile(row, height, column):
    """Rows ``row``, ``row`` + 1, ..: all elements differ."""
    return [[10 * (row + i) + column, -(10 * (row + i) + column)] for i in range(height)]


def tokens_of(nested, rank, rows):
    """Tokens of ``nested`` lists whose leaves are tiles as lists of rows."""
    stops = TokenStream.from_nested(map_level(lambda v: [0] * len(v), nested, rank), rank)
    leaves = [np.array(leaf, np.int32).reshape(len(leaf), COLS) for leaf in flat(nested, rank)]
    type_ = Tile(rows, COLS, int32)
    if type_.is_static:
        data = np.array(leaves, np.int32).reshape(len(leaves), rows, COLS)
    else:
        data = data_pack(leaves)
    return TokenStream(rank, stops.stop, stops.empty, data)


def lists(tokens):
    """Nested lists of ``tokens``, tiles as lists of rows."""
    return tokens.to_nested([np.asarray(element).tolist() for element in tokens.data])


def apply(make, inputs, types, n):
    """Tokens of the operator that ``make`` makes, whole and in steps, shapes and counts checked at run time."""
    with Program("p") as program:
        outer = tuple(ragged(f"d{k}") for k in range(max(t.rank for t in inputs)))
        streams = []
        for k, (tokens, type_) in enumerate(zip(inputs, types)):
            shape = (*outer[:tokens.rank], n) if type_ != U32 else outer[:tokens.rank + 1]
            streams.append(ops.input_stream(f"x{k}", type_, shape))
        out = make(*streams)
    values = run(program, {f"x{k}": tokens for k, tokens in enumerate(inputs)})
    made = values[out.name].check()
    symbols = measure_symbols(program, values)
    if not any(tokens.empty.any() for tokens in (*inputs, made)):
        assert int(out.elements.subs(symbols)) == made.elements
    for seed in range(3):
        assert lists(in_steps(out.producer, list(inputs), {}, Random(seed))[0][0]) == lists(made)
    return lists(made)


def blocks(row, height, rows, n):
    """A logical tile as row tiles: at least one."""
    return [[tile(row + first, min(rows, height - first), j) for j in range(n)]
            for first in range(0, max(1, height), rows)]


@SETTINGS
@given(nested_streams(0, 2), st.integers(1, 4), st.integers(1, 3))
def test_pack(sample, rows, n):
    rank, nested = sample
    counter = iter(range(1000))
    numbers = map_level(lambda group: [next(counter) for _ in group], nested, rank)
    given_ = map_level(lambda group: [[tile(row, 1, j) for j in range(n)] for row in group], numbers, rank)

    def packed(group):
        made = [[[line for row in group[k:k + rows] for line in tile(row, 1, j)] for j in range(n)]
                for k in range(0, len(group), rows)]
        return made or ([[[[0, 0]]] * n] if rank else [])

    found = apply(lambda x: ops.pack_rows(x, rows), [tokens_of(given_, rank + 1, 1)], [Tile(1, COLS, int32)], n)
    assert found == map_level(packed, numbers, rank)


@SETTINGS
@given(nested_streams(0, 2), st.integers(1, 3), st.integers(1, 3))
def test_unpack(sample, rows, n):
    rank, nested = sample
    row = iter(range(0, 100000, 10))
    tiles = map_level(lambda vector: [(next(row), abs(h)) for h in vector], nested, rank)
    given_ = map_level(lambda vector: [blocks(first, h, rows, n) for first, h in vector], tiles, rank)

    def unpacked(vector):
        made = [[tile(first + i, 1, j) for j in range(n)] for first, h in vector for i in range(h)]
        return made or ([[]] if rank else [])

    tokens = tokens_of(given_, rank + 2, ragged("rho"))
    assert apply(ops.unpack_rows, [tokens], [Tile(ragged("rho"), COLS, int32)], n) == map_level(unpacked, tiles, rank)


@SETTINGS
@given(nested_streams(0, 2), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.booleans(), st.data())
def test_trim(sample, rows, n, pieces, padding, data):
    rank, nested = sample
    row = iter(range(0, 100000, 10))
    height = lambda: pieces * rows if padding else data.draw(st.integers(0, 3 * rows))  # noqa: E731
    tiles = map_level(lambda vector: [(next(row), height()) for _ in vector], nested, rank)
    counts = map_level(lambda vector: [data.draw(st.integers(0, h)) for _, h in vector], tiles, rank)
    given_ = map_level(lambda vector: [blocks(first, h, rows, n) for first, h in vector], tiles, rank)
    pairs = [[(first, h - c if padding else c) for (first, h), c in zip(ts, cs, strict=True)]
             for ts, cs in zip(flat([tiles], rank), flat([counts], rank), strict=True)]
    expected = iter(pairs)
    result = map_level(lambda vector: [blocks(f, kept, rows, n) for f, kept in next(expected)], tiles, rank)
    # An empty vector has no tile, but a bare stop reads as one without rows of tiles.
    result = map_level(lambda vector: vector or ([[[]]] if rank else []), result, rank)

    tokens = [tokens_of(given_, rank + 2, ragged("rho")), TokenStream.from_nested(counts, rank, U32)]
    if not padding:
        found = apply(lambda x, c: ops.trim_rows(x, c, rows), tokens, [Tile(ragged("rho"), COLS, int32), U32], n)
        assert found == result
        return
    outer = tuple(ragged(f"d{k}") for k in range(rank + 1))
    with Program("p") as program:
        x = ops.input_stream("x", Tile(rows, COLS, int32), (*outer, pieces, n))
        out = ops.trim_rows(x, ops.input_stream("c", U32, outer), rows, padding=True)
    values = run(program, {"x": tokens[0], "c": tokens[1]})
    measure_symbols(program, values)
    assert lists(values[out.name].check()) == result
    for seed in range(3):
        assert lists(in_steps(out.producer, tokens, {}, Random(seed))[0][0]) == result


def test_same_as_the_functions_that_become_them():
    """concat_rows, split_rows and set_offset on whole tiles that are one row of tiles each."""
    ctx = Context(Numerics(), {}, {}, {})
    rng = np.random.default_rng(1)
    with Program("p"):
        rows = ops.input_stream("rows", Tile(1, COLS, int32), (ragged("g"), ragged("m"), 1))
        joined = ops.accum(fn.concat_rows(), ops.flatten(rows, 0, 1), rank=1)
        packed = ops.pack_rows(rows, 9)
        tiles = ops.input_stream("tiles", Tile(ragged("r"), COLS, int32), (ragged("a"), ragged("b"), 1, 1))
        whole = ops.input_stream("whole", Tile(ragged("r"), COLS, int32), (ragged("a"), ragged("b")))
        split = ops.flat_map(fn.split_rows(), whole)
        unpacked = ops.unpack_rows(tiles)
        counts = ops.input_stream("counts", U32, (ragged("a"), ragged("b")))
        offset = ops.map(fn.set_offset(), whole, counts)
        trimmed = ops.trim_rows(tiles, counts, 9)

    def tokens(text, data, rank):
        layout = parse_tokens(text, rank)
        return TokenStream(rank, layout.stop, layout.empty, data)

    data = rng.integers(-99, 99, (5, 1, COLS), np.int32)
    [a] = packed.producer.interpret(ctx, [tokens("1 S1 1 S1 1 S2 S2 1 S1 1 S2 D", data, 2)])
    [b] = joined.producer.interpret(ctx, [tokens("1 1 1 S1 S1 1 1 S1 D", data, 1)])
    assert [t.tolist() for t in a.data] == [t.tolist() for t in b.data] and (a.stop - 1).tolist() == [1, 1, 1]
    heights = [2, 0, 3, 0, 0, 4, 1]  # a vector that ends with tiles of no row, one of nothing else
    data = [rng.integers(-99, 99, (h, COLS), np.int32) for h in heights]
    small, large = "1 1 1 1 S1 1 S1 1 S1 S1 1 S1 D", "1 S2 1 S2 1 S2 1 S3 1 S3 1 S3 S3 1 S3 D"
    [a] = unpacked.producer.interpret(ctx, [tokens(large, data, 3)])
    [b] = split.producer.interpret(ctx, [tokens(small, data, 1)])
    assert np.array_equal(a.data, b.data) and np.array_equal(a.empty, b.empty)
    assert (a.stop - 1).tolist() == b.stop.tolist()
    counted = parse_tokens("1 0 3 0 S1 0 S1 2 S1 S1 0 S1 D", 1, U32)
    [a] = trimmed.producer.interpret(ctx, [tokens(large, data, 3), counted])
    [b] = offset.producer.interpret(ctx, [tokens(small, data, 1), counted])
    assert [t.tolist() for t in a.data] == [t.tolist() for t in b.data]


INT = scalar(int32)


def stream(*shape, type_=INT):
    return ops.input_stream(f"in{len(Program.current().operators)}", type_, shape)


def test_shapes():
    m, rho = ragged("m"), ragged("rho")
    row = Tile(1, 4, bf16)
    with Program("p"):
        out = ops.pack_rows(stream(3, 8, 2, type_=row), 4)
        assert out.type == Tile(4, 4, bf16) and out.shape == (3, 2, 2)
        out = ops.pack_rows(stream(3, 9, 2, type_=row), 4)
        assert isinstance(out.type.rows, Ragged) and out.shape[::2] == (3, 2) and isinstance(out.shape[1], Ragged)
        again = ops.pack_rows(stream(3, 9, 2, type_=row), 4)
        assert (again.type, again.shape) == (out.type, out.shape)  # streams that are treated alike agree
        assert ops.pack_rows(stream(3, 9, 2, type_=row), 2).type != out.type
        assert isinstance(ops.pack_rows(stream(dynamic("D"), 2, type_=row), 4).shape[0], Ragged)
        out = ops.unpack_rows(stream(3, 2, 5, type_=Tile(4, 4, bf16)))
        assert out.type == row and out.shape == (24, 5)
        out = ops.unpack_rows(stream(7, 3, m, 5, type_=Tile(rho, 4, bf16)))
        assert out.shape[::2] == (7, 5) and isinstance(out.shape[1], Ragged) and out.shape[1] not in (m, rho)
        # The rows of one tile of one row tile are not a dimension of the stream.
        assert ops.unpack_rows(stream(1, 1, 5, type_=Tile(rho, 4, bf16))).shape[0] != rho
        out = ops.trim_rows(stream(7, 3, 2, 5, type_=Tile(4, 4, bf16)), stream(7, 3, type_=U32), 4, padding=True)
        assert out.shape[:2] == (7, 3) and out.shape[3] == 5
        assert isinstance(out.shape[2], Ragged) and isinstance(out.type.rows, Ragged) and out.type.cols == 4
        assert out.producer.total == 8 and out.producer.describe() == "tiles of 4 rows, padding"


def test_refused_when_made():
    row, square, counts = Tile(1, 4, bf16), Tile(4, 4, bf16), (2, 3)
    with Program("p"):
        with pytest.raises(TypeMismatch, match=r"pack_rows 'p0' \(test_rows.py:\d+\): .*Tile\(4, 4, bf16\) vs tiles of "
                                               r"1 row; fix: .*unpack_rows"):
            ops.pack_rows(stream(3, 2, type_=square), 4, name="p0")
        with pytest.raises(ShapeMismatch, match=r"rank of 'in\d+': 0 vs at least 1"):
            ops.pack_rows(stream(3, type_=row), 4)
        with pytest.raises(ShapeMismatch, match=r"innermost dimension .*: n vs static"):
            ops.pack_rows(stream(3, ragged("n"), type_=row), 4)
        with pytest.raises(BadParameter, match="rows: 0 vs"):
            ops.pack_rows(stream(3, 2, type_=row), 0)
        with pytest.raises(ShapeMismatch, match=r"rank of .*: 1 vs at least 2"):
            ops.unpack_rows(stream(3, 2, type_=square))
        with pytest.raises(TypeMismatch, match="vs a tile of static columns"):
            ops.unpack_rows(stream(3, 2, 2, type_=Tile(4, ragged("c"), bf16)))
        tiles = stream(*counts, 2, 5, type_=square)
        with pytest.raises(TypeMismatch, match="tiles of 2 rows, all but a last one; fix: give rows=4"):
            ops.trim_rows(tiles, stream(*counts, type_=U32), 2)
        with pytest.raises(TypeMismatch, match=r"count .*int32\) vs Tile\(1, 1, u32\).*cast"):
            ops.trim_rows(tiles, stream(*counts), 4)
        with pytest.raises(ShapeMismatch, match=r"shape of count .*\[2\] vs \[2, 3\]"):
            ops.trim_rows(tiles, stream(2, type_=U32), 4)
        with pytest.raises(ShapeMismatch, match="vs a static number of rows"):
            ops.trim_rows(stream(*counts, ragged("R"), 5, type_=Tile(ragged("rho"), 4, bf16)),
                          stream(*counts, type_=U32), 4, padding=True)
        with pytest.raises(BadParameter, match="padding: 1 vs True or False"):
            ops.trim_rows(tiles, stream(*counts, type_=U32), 4, padding=1)


def refused(make, error, match, *inputs, n=2):
    """The operator's error for ``inputs``: (SPEC text, rank, heights of the tiles), or counts as text and rank."""
    ctx = Context(Numerics(), {}, {}, {})
    types = [Tile(ragged("rho") if len(given_) == 3 else 1, COLS, int32) for given_ in inputs]
    with Program("p"):
        streams, tokens = [], []
        for k, (text, rank, *rest) in enumerate(inputs):
            shape = tuple(ragged(f"d{i}") for i in range(rank + (not rest)))
            if rest:
                layout = parse_tokens(text, rank)
                data = data_pack([np.ones((h, COLS), np.int32) for h in rest[0]])
                tokens.append(TokenStream(rank, layout.stop, layout.empty, data))
                rows = 1 if make is pack_two else types[k].rows
                streams.append(ops.input_stream(f"x{k}", Tile(rows, COLS, int32), (*shape, n)))
            else:
                tokens.append(parse_tokens(text, rank, U32))
                streams.append(ops.input_stream(f"x{k}", U32, shape))
        operator = make(*streams).producer
    with pytest.raises(error, match=match):
        operator.interpret(ctx, tokens)


def pack_two(x):
    return ops.pack_rows(x, 2)


def trim_two(x, c):
    return ops.trim_rows(x, c, 2)


def test_refused_at_run_time():
    broken = StreamProtocolError
    refused(pack_two, broken, "row 1: 1 tiles vs 2", ("1 1 S1 1 S2 D", 2, [1] * 3))
    refused(pack_two, broken, "row 0: 3 tiles vs 2", ("1 1 1 S2 D", 2, [1] * 3))
    refused(pack_two, broken, "row 1: no tiles, stop 2", ("1 1 S1 S2 D", 2, [1] * 2))
    refused(pack_two, broken, "row 0: no tiles, stop 1", ("S1 1 1 S2 D", 2, [1] * 2))
    refused(pack_two, broken, "row 2: no tiles, stop 2", ("1 1 S1 1 1 S1 S2 D", 2, [1] * 4))
    refused(ops.unpack_rows, broken, "row 0: tiles of 1 and 2 rows", ("1 1 S3 D", 3, [2, 1]))
    refused(ops.unpack_rows, broken, "row 0: 1 tiles vs 2", ("1 S3 D", 3, [2]))
    refused(ops.unpack_rows, broken, "row 0: no tiles, stop 2", ("S2 1 1 S3 D", 3, [2, 2]))
    refused(ops.unpack_rows, broken, "row 1: no tiles, stop 3", ("1 1 S1 S3 D", 3, [0, 0]))
    refused(trim_two, broken, "tile 1: 4 rows vs a tile of 3",
            ("1 1 S2 1 1 S1 1 1 S3 D", 3, [2, 2, 2, 2, 1, 1]), ("1 4 S1 D", 1))
    refused(trim_two, broken, "tile 0: made of tiles of 1, 2 rows vs 2 in all but the last",
            ("1 1 S1 1 1 S3 D", 3, [1, 1, 2, 2]), ("1 S1 D", 1))
    refused(trim_two, broken, "tile 0: made of tiles of 3 rows", ("1 1 S3 D", 3, [3, 3]), ("1 S1 D", 1))
    refused(trim_two, broken, "tiles of 1 and 2 rows", ("1 1 S3 D", 3, [1, 2]), ("1 S1 D", 1))
    refused(trim_two, broken, "tile 0: a row without tiles", ("S1 1 1 S3 D", 3, [1, 1]), ("1 S1 D", 1))
    refused(trim_two, MisalignedStreams, r"tile 0: element with stop 2 on 'x0' \(beat 1\) vs element with stop 1",
            ("1 1 S2 1 1 S3 D", 3, [1] * 4), ("1 S1 D", 1))
    refused(trim_two, MisalignedStreams, "tile 1: done on 'x0'.* vs element with stop 1",
            ("1 1 S3 D", 3, [1] * 2), ("1 S1 1 S1 D", 1))
    refused(trim_two, MisalignedStreams, "tile 0: bare stop 3 on 'x0'.* vs element with stop 1",
            ("S3 D", 3, []), ("1 S1 D", 1))
    refused(trim_two, MisalignedStreams, "tile 0: element with stop 3 on 'x0'.* vs bare stop 1",
            ("1 1 S3 D", 3, [1, 1]), ("S1 D", 1))
    exact = lambda x, c: ops.trim_rows(x, c, 2, True)  # noqa: E731
    with Program("p"):
        x = ops.input_stream("x", Tile(2, COLS, int32), (3, 2, 2))
        operator = exact(x, ops.input_stream("c", U32, (3,))).producer
    layout = parse_tokens("1 1 S2 D", 2)
    tokens = TokenStream(2, layout.stop, layout.empty, np.ones((2, 2, COLS), np.int32))
    with pytest.raises(broken, match="tile 0: 2 rows vs 4"):
        operator.interpret(Context(Numerics(), {}, {}, {}), [tokens, parse_tokens("1 D", 0, U32)])


def test_flags_of_whole_tensors():
    with Program("p"):
        data, flags = ops.reshape(stream(ragged("a"), 2, 3), 4, dim=2, pad=9, flag_rank=2)
        assert flags.shape == data.shape[:2] and flags.type == scalar(bool_)
        one = ops.reshape(stream(ragged("a"), 2, 3), 4, dim=2, pad=9, flag_rank=1)[1]
        with pytest.raises(BadParameter, match="flag_rank: 2 vs at most dim 1"):
            ops.reshape(stream(ragged("a"), 2, 3), 4, dim=1, pad=9, flag_rank=2)
        with pytest.raises(ShapeMismatch, match=r"share a flag: \[r\] vs static"):
            ops.reshape(stream(4, ragged("r")), 2, dim=1, flag_rank=1)
    tokens = parse_tokens("1 2 3 S1 4 5 6 S2 1 2 3 S1 4 5 6 S2 D", 2)
    ctx = Context(Numerics(), {}, {}, {})
    [made, told] = data.producer.interpret(ctx, [tokens])
    assert told.check() == parse_tokens("0 0 1 1 S1 D", 1, scalar(bool_)) and made.elements == 24
    assert one.producer.interpret(ctx, [tokens])[1] == parse_tokens(
        "0 0 S1 0 0 S1 1 1 S1 1 1 S2 D", 2, scalar(bool_))
    [found] = in_steps(flags.producer, [tokens], {}, Random(1))[0][1:]
    assert found == told
    with pytest.raises(StreamProtocolError, match="beat 0: a bare stop 1 vs the 2 static dimensions"):
        data.producer.interpret(ctx, [parse_tokens("S1 1 2 3 S2 D", 2)])
