"""Operators on random ragged streams against nested lists, computed independently."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from step_lang import Numerics, Program, TokenStream, fn, int32, ops, ragged, scalar
from step_lang.interpreter import Context, measure_symbols
from step_lang.tests.nested import flat, map_level, nested_streams, tensors
from step_lang.tests.test_worked_examples import run

SETTINGS = settings(max_examples=150, deadline=None)


def apply(operate, *samples, shapes=None):
    """Tokens and the stream of what ``operate`` makes of (rank, nested) samples; also checks shapes at run time."""
    with Program("p") as program:
        streams = [ops.input_stream(f"x{i}", scalar(int32), shapes[i] if shapes else
                                    tuple(ragged(f"x{i}d{k}") for k in range(rank + 1)))
                   for i, (rank, _) in enumerate(samples)]
        out = operate(*streams)
    out = out[0] if isinstance(out, tuple) else out
    values = run(program, {f"x{i}": TokenStream.from_nested(nested, rank) for i, (rank, nested) in enumerate(samples)})
    symbols = measure_symbols(program, values)
    tokens = values[out.name]
    assert int(out.elements.subs(symbols)) == tokens.elements
    return tokens


@SETTINGS
@given(nested_streams(1), st.data())
def test_flatten(sample, data):
    rank, nested = sample
    lo = data.draw(st.integers(0, rank - 1))
    hi = data.draw(st.integers(lo + 1, rank))
    expected = map_level(lambda vector: flat(vector, hi - lo), nested, rank - hi)
    assert apply(lambda x: ops.flatten(x, lo, hi), sample).to_nested() == expected


@SETTINGS
@given(nested_streams(), st.integers(1, 4))
def test_reshape_dim_0(sample, chunk):
    rank, nested = sample

    def split(vector):
        return [(vector[i:i + chunk] + [7] * chunk)[:chunk] for i in range(0, len(vector), chunk)]

    expected = map_level(split, nested, rank)
    # An empty vector has no chunk, which a stream shows as one bare stop: [[]] for the nested lists.
    if rank:
        expected = map_level(lambda chunks: chunks or [[]], expected, rank)
    assert apply(lambda x: ops.reshape(x, chunk, pad=7), sample).to_nested() == expected


@SETTINGS
@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 3), st.integers(1, 4), st.booleans())
def test_reshape_above_dim_0(outer, size, inner, chunk, top):
    nested = np.arange(outer * size * inner).reshape(outer, size, inner)
    if top:
        nested = nested.reshape(outer * size, inner)
        size *= outer
    chunks = -(-size // chunk)
    padded = np.full((*nested.shape[:-2], chunks * chunk, inner), 7)
    padded[..., :size, :] = nested
    expected = padded.reshape(*nested.shape[:-2], chunks, chunk, inner).tolist()
    sample = (nested.ndim - 1, nested.tolist())
    assert apply(lambda x: ops.reshape(x, chunk, dim=1, pad=7), sample, shapes=[nested.shape]).to_nested() == expected


@SETTINGS
@given(nested_streams())
def test_promote(sample):
    _, nested = sample
    assert apply(ops.promote, sample).to_nested() == ([nested] if nested else [])


@SETTINGS
@given(nested_streams(), st.integers(1, 3))
def test_repeat(sample, n):
    rank, nested = sample
    expected = map_level(lambda vector: [[v] * n for v in vector] or ([[]] if rank else []), nested, rank)
    assert apply(lambda x: ops.repeat(x, n), sample).to_nested() == expected


@SETTINGS
@given(nested_streams(1), st.data())
def test_expand(sample, data):
    rank, nested = sample
    b = data.draw(st.integers(1, rank))
    counter = iter(range(1000))

    def labelled(tensor, depth):
        """The value stream, ones in the inner b dimensions, and the expected result."""
        if depth == 0:
            value = next(counter)
            ones = value
            for _ in range(b):
                ones = [ones]
            return ones, map_level(lambda vector: [value] * len(vector), tensor, b - 1)
        pairs = [labelled(inner, depth - 1) for inner in tensor]
        return [ones for ones, _ in pairs], [full for _, full in pairs]

    ones, expected = labelled(nested, rank + 1 - b)
    outer = tuple(ragged(f"o{k}") for k in range(rank + 1 - b))
    shapes = [outer + (1,) * b, outer + tuple(ragged(f"i{k}") for k in range(b))]
    assert apply(lambda x, ref: ops.expand(x, ref, rank=b), (rank, ones), sample, shapes=shapes).to_nested() == expected


@SETTINGS
@given(nested_streams(1), st.data())
def test_accum_and_scan(sample, data):
    rank, nested = sample
    b = data.draw(st.integers(1, rank))
    init = data.draw(st.integers(-5, 5))
    expected = map_level(lambda tensor: init + sum(flat(tensor, b - 1)), nested, rank + 1 - b)
    assert apply(lambda x: ops.accum(fn.add(), x, rank=b, init=init), sample).to_nested() == expected

    def running(tensor):
        total = iter(np.cumsum([init, *flat(tensor, b - 1)]).tolist()[1:])
        return map_level(lambda vector: [next(total) for _ in vector], tensor, b - 1)

    expected = map_level(running, nested, rank + 1 - b)
    assert apply(lambda x: ops.scan(fn.add(), x, rank=b, init=init), sample).to_nested() == expected


@SETTINGS
@given(st.lists(st.integers(0, 4), max_size=4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2))
def test_accum_and_scan_inner(groups, n1, n0, c):
    inner = (n1, n0)[2 - c:]
    numbers = np.random.default_rng(len(groups)).integers(-9, 9, (sum(groups), *inner))
    split = np.split(numbers, np.cumsum(groups)[:-1]) if groups else []
    tokens, running, folded = [], [], []
    for group in split:
        tokens.append(group.tolist())
        running.append((3 + np.cumsum(group, axis=0)).tolist())
        folded.append((3 + group.sum(axis=0)).tolist())
    shape = (ragged("g"), ragged("n"), *inner)
    sample = (c + 1, tokens)
    result = apply(lambda x: ops.accum(fn.add(), x, rank=1, inner=c, init=3), sample, shapes=[shape])
    assert result.to_nested() == folded
    result = apply(lambda x: ops.scan(fn.add(), x, rank=1, inner=c, init=3), sample, shapes=[shape])
    assert result == TokenStream.from_nested(running, c + 1)


@SETTINGS
@given(nested_streams(1, 3), st.integers(1, 3), st.data())
def test_bufferize_and_streamify(sample, times, data):
    rank, nested = sample
    shape = tuple(ragged(f"d{k}") for k in range(rank + 1))
    result = apply(lambda x: ops.streamify(ops.bufferize(x, rank=1), repeat=times), sample, shapes=[shape])
    expected = map_level(lambda vector: [vector] * times, nested, rank)
    assert result.to_nested() == expected
    # By reference: any number of passes, of a tensor of any rank c, for each buffer.
    c = data.draw(st.integers(1, 2))
    passes = map_level(lambda _: data.draw(tensors(c - 1, 3).filter(len) if c == 2 else tensors(0, 3)), nested, rank)
    passes = [p for p in passes] if nested else []
    ref_shape = shape[:rank] + tuple(ragged(f"p{k}") for k in range(c))
    result = apply(lambda x, ref: ops.streamify(ops.bufferize(x, rank=1), ref), sample, (rank - 1 + c, passes),
                   shapes=[shape, ref_shape])

    def expect(buffers, refs, depth):
        if depth == 0:
            # An empty reference vector has no pass: one bare stop, nested lists [[]].
            return map_level(lambda vector: [buffers for _ in vector] or [[]], refs, c - 1)
        return [expect(b, r, depth - 1) for b, r in zip(buffers, refs)]

    assert result.to_nested() == expect(nested, passes, rank)


@SETTINGS
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_rank_2_buffers_and_affine_views(outer, d1, d0, times, columns):
    nested = np.arange(outer * d1 * d0).reshape(outer, d1, d0)
    sample = (2, nested.tolist())
    result = apply(lambda x: ops.streamify(ops.bufferize(x, rank=2), repeat=times), sample, shapes=[nested.shape])
    assert result.to_nested() == np.repeat(nested[:, None], times, axis=1).tolist()
    transposed = apply(lambda x: ops.streamify(ops.bufferize(x, rank=2), repeat=times, shape=(d0, d1), stride=(1, d0)),
                       sample, shapes=[nested.shape])
    assert transposed.to_nested() == np.repeat(nested.swapaxes(1, 2)[:, None], times, axis=1).tolist()


@SETTINGS
@given(nested_streams(0, 2), st.integers(1, 3), st.integers(1, 3))
def test_load_once_for_each_reference(sample, rows, cols):
    rank, nested = sample
    assume(nested)
    with Program("p") as program:
        tensor = program.tensor("t", (rows, cols), int32)
        ref = ops.input_stream("x0", scalar(int32), tuple(ragged(f"d{k}") for k in range(rank + 1)))
        out = ops.linear_offchip_load(tensor, (1, 1), ref=ref)
    grid = np.arange(rows * cols, dtype=np.int32).reshape(rows, cols)
    ctx = Context(Numerics(), {"t": grid}, {"x0": nested}, {})
    (tokens,) = out.producer.interpret(ctx, ref.producer.interpret(ctx, []))
    expected = map_level(lambda vector: [grid.tolist() for _ in vector] or [[[]]], nested, rank)
    assert tokens.check().to_nested() == expected
    assert ctx.offchip_read_bytes == 4 * len(flat(nested, rank)) * (1 + rows * cols)
