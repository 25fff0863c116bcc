"""partition, reassemble and eager_merge on random ragged streams against nested lists, their traces, their mistakes;
and every operator run in steps against the same operator run whole."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from step_lang import (
    ArbitrationError,
    BadParameter,
    MisalignedStreams,
    Numerics,
    Program,
    Selector,
    ShapeMismatch,
    StreamProtocolError,
    TokenStream,
    TypeMismatch,
    fn,
    int32,
    interpret,
    ops,
    parse_tokens,
    ragged,
    scalar,
)
from step_lang.arbitration import rotating_priority
from step_lang.dims import Ragged
from step_lang.interpreter import Context, measure_symbols
from step_lang.tests.nested import flat, map_level, nested_streams, tensors
from step_lang.tests.test_worked_examples import run
from step_lang.tokens import concat_tokens, data_empty
from step_lang.types import Tile
from step_lang.worked_examples import EXAMPLES

SETTINGS = settings(max_examples=150, deadline=None)
I32 = scalar(int32)


def inputs_of(*samples):
    """Input streams x0, x1, .. of (type, rank, nested) in the current program, and their tokens."""
    streams, tokens = [], {}
    for i, (type_, rank, nested) in enumerate(samples):
        shape = tuple(ragged(f"x{i}d{k}") for k in range(rank + 1))
        streams.append(ops.input_stream(f"x{i}", type_, shape))
        tokens[f"x{i}"] = TokenStream.from_nested(nested, rank, type_)
    return streams, tokens


def evaluate(program, outputs, tokens, arbitration=None):
    """Tokens of ``outputs``, all shapes having been checked at run time."""
    values = run(program, tokens, arbitration)
    symbols = measure_symbols(program, values)
    for stream in outputs:
        assert int(stream.elements.subs(symbols)) == values[stream.name].elements
    return [values[stream.name] for stream in outputs]


def subsets(n, least=0):
    return st.sets(st.integers(0, n - 1), min_size=least)


# partition


@SETTINGS
@given(nested_streams(), st.integers(1, 4), st.data())
def test_partition(sample, consumers, data):
    rank, nested = sample
    b = data.draw(st.integers(0, rank))
    selectors = map_level(lambda level: [data.draw(subsets(consumers)) for _ in level], nested, rank - b)
    chosen, chunks = flat(selectors, rank - b), flat(nested, rank - b)
    with Program("p") as program:
        (x, _), tokens = inputs_of((I32, rank, nested), (Selector(consumers), rank - b, selectors))
        select = ops.input_stream("select", Selector(consumers), x.shape[:rank + 1 - b])
        outputs = ops.partition(x, select, rank=b)
    tokens["select"] = tokens["x1"]
    for i, found in enumerate(evaluate(program, outputs, tokens)):
        expected = [chunk for chunk, bits in zip(chunks, chosen, strict=True) if i in bits]
        assert found == TokenStream.from_nested(expected, b)


def test_partition_of_empty_vectors_above_the_chunk():
    """A selector stream's bare stop and the data's, which both came from one empty vector, agree."""
    with Program("p") as program:
        x = ops.input_stream("x", I32, (ragged("a"), ragged("r")))
        select = ops.input_stream("select", Selector(2), x.shape)
        outputs = ops.partition(ops.repeat(x, 2), select, rank=1)
    tokens = {"x": parse_tokens("1 S1 S1 2 S1 D", 1), "select": parse_tokens("{1} S1 S1 {0,1} S1 D", 1, Selector(2))}
    assert evaluate(program, outputs, tokens) == [parse_tokens("2 2 S1 D"), parse_tokens("1 1 S1 2 2 S1 D")]


def test_partitions_by_one_selector_agree():
    with Program("p") as program:
        x = ops.input_stream("x", I32, (4,))
        select = ops.input_stream("select", Selector(2), (4,))
        first = ops.partition(x, select, rank=0)
        second = ops.partition(ops.repeat(x, 3), select, rank=1)
        for i in range(2):  # shapes are checked as the program is built
            total = ops.map(fn.add(), first[i], ops.accum(fn.add(), second[i], rank=1))
            ops.linear_offchip_store(total, program.tensor(f"y{i}", (4, 1), int32))
    result = interpret(program, {}, {"x": [1, 2, 3, 4], "select": [{0}, {1}, set(), {0, 1}]})
    assert result.tensors["y0"].ravel().tolist() == [4, 16, 0, 0]
    assert result.tensors["y1"].ravel().tolist() == [8, 16, 0, 0]


# reassemble


@SETTINGS
@given(nested_streams(0, 2), st.integers(0, 2), st.integers(1, 4), st.data())
def test_reassemble(sample, a, inputs, data):
    rank, nested = sample
    selectors = map_level(lambda level: [data.draw(subsets(inputs, least=min(a, 1))) for _ in level], nested, rank)
    streams = [[] for _ in range(inputs)]
    grants, by_index = [], []

    def group(bits):
        order = data.draw(st.permutations(sorted(bits)))
        chunks = {i: data.draw(tensors(a - 1, 3) if a == 1 else tensors(1, 3).filter(len)) if a else
                  data.draw(st.integers(-9, 9)) for i in sorted(bits)}
        for i, chunk in chunks.items():
            streams[i].append(chunk)
        grants.extend(order)
        by_index.append([chunks[i] for i in sorted(bits)])
        return [chunks[i] for i in order]

    wrapped: list = []
    for _ in range(a + 1):
        wrapped = [wrapped]  # one bare stop reads as one of everything below

    expected = map_level(lambda level: [group(bits) for bits in level] or (wrapped if rank else []), selectors, rank)
    with Program("p") as program:
        (*xs, select), tokens = inputs_of(*((I32, a, chunks) for chunks in streams),
                                          (Selector(inputs), rank, selectors))
        out = ops.reassemble(xs, select, rank=a, name="r")
    (found,) = evaluate(program, [out], tokens, {"r": grants})
    assert found.rank == rank + 1 + a and found.to_nested() == expected
    groups = iter(by_index)
    expected = map_level(lambda level: [next(groups) for _ in level] or (wrapped if rank else []), selectors, rank)
    (found,) = evaluate(program, [out], tokens)
    assert found.to_nested() == expected


# eager_merge


@SETTINGS
@given(st.integers(0, 2), st.integers(1, 4), st.data())
def test_eager_merge(a, inputs, data):
    streams = [data.draw(tensors(a, 3)) for _ in range(inputs)]
    order = data.draw(st.permutations([i for i, chunks in enumerate(streams) for _ in chunks]))
    with Program("p") as program:
        xs, tokens = inputs_of(*((I32, a, chunks) for chunks in streams))
        out, select = ops.eager_merge(xs, name="m")
    heads = [iter(chunks) for chunks in streams]
    merged, sources = evaluate(program, [out, select], tokens, {"m": order})
    assert merged == TokenStream.from_nested([next(heads[i]) for i in order], a)
    assert sources.to_nested() == [{i} for i in order]
    merged, sources = evaluate(program, [out, select], tokens)
    assert merged == TokenStream.from_nested([chunk for chunks in streams for chunk in chunks], a)
    assert sources.to_nested() == [{i} for i, chunks in enumerate(streams) for _ in chunks]


def test_merged_dimension():
    with Program("p"):
        xs = [ops.input_stream(f"x{i}", I32, (n, 4)) for i, n in enumerate((2, 3))]
        data, select = ops.eager_merge(xs)
        assert data.shape == (5, 4) and select.shape == (5,) and select.type == Selector(2)
        y = ops.input_stream("y", I32, (ragged("r"), 4))
        assert ops.eager_merge([*xs, y])[0].shape[0] not in (5, y.shape[0])


# Together


@SETTINGS
@given(st.integers(1, 5), st.integers(0, 6), st.data())
def test_experts(experts, tokens, data):
    """Every token to some experts and their results added: as without routing."""
    chosen = [data.draw(subsets(experts)) for _ in range(tokens)]
    with Program("moe") as program:
        x = ops.input_stream("x", I32, (tokens,))
        select = ops.input_stream("select", Selector(experts), (tokens,))
        rows = []
        for i, part in enumerate(ops.partition(x, select, rank=0)):
            rows.append(ops.map(fn.add(), part, part) if i % 2 else part)
        y = ops.accum(fn.add(), ops.reassemble(rows, select, rank=0), rank=1)
        ops.linear_offchip_store(y, program.tensor("y", (max(tokens, 1), 1), int32))
    values = [data.draw(st.integers(-99, 99)) for _ in range(tokens)]
    result = interpret(program, {}, {"x": values, "select": chosen})
    expected = [sum(v * (1 + i % 2) for i in bits) for v, bits in zip(values, chosen)]
    assert result.tensors["y"].ravel().tolist()[:tokens] == expected
    assert result.arbitration == {"reassemble_0": [i for bits in chosen for i in sorted(bits)]}
    again = interpret(program, {}, {"x": values, "select": chosen}, arbitration=result.arbitration)
    assert np.array_equal(again.tensors["y"], result.tensors["y"])


def test_128_bits():
    rng = random.Random(5)
    chosen = [set(rng.sample(range(128), rng.randint(1, 128))) for _ in range(20)]
    with Program("wide") as program:
        (x, select), tokens = inputs_of((I32, 0, list(range(20))), (Selector(128), 0, chosen))
        select = ops.input_stream("select", Selector(128), x.shape)
        parts = ops.partition(x, select, rank=0)
        merged, source = ops.eager_merge(parts)
        back = ops.reassemble(parts, select, rank=0)
    tokens["select"] = tokens["x1"]
    merged, source, back = evaluate(program, [merged, source, back], tokens)
    assert back.to_nested() == [[k] * len(bits) for k, bits in enumerate(chosen)]
    assert source.to_nested() == [{i} for i in range(128) for bits in chosen if i in bits]
    assert merged.to_nested() == [k for i in range(128) for k, bits in enumerate(chosen) if i in bits]


def test_tiles_of_several_sizes_and_buffers_are_routed():
    """Dynamic tiles and references pass through routing."""
    with Program("p") as program:
        x = ops.input_stream("x", Tile(1, 2, int32), (4, ragged("r")))
        select = ops.input_stream("select", Selector(2), (4,))
        tiles = ops.accum(fn.concat_rows(), x, rank=1)
        back = ops.reassemble(ops.partition(tiles, select, rank=0), select, rank=0)
        buffers = ops.partition(ops.bufferize(x, rank=1), select, rank=0)
        again = ops.streamify(ops.eager_merge(buffers)[0], repeat=1)
    groups = [[[1, 2]], [[3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]], [[13, 14]]]
    nested = [[[row] for row in group] for group in groups]
    tokens = {"x": TokenStream.from_nested([[np.array(row, np.int32) for row in group] for group in nested], 1,
                                           Tile(1, 2, int32)),
              "select": parse_tokens("{1} {0} {0,1} {1} D", 0, Selector(2))}
    back, again = evaluate(program, [back, again], tokens)
    assert [[tile.tolist() for tile in group] for group in back.to_nested()] == [
        [groups[0]], [groups[1]], [groups[2]] * 2, [groups[3]]]
    order = [1, 2, 0, 2, 3]
    assert [[row.tolist() for (vector,) in [chunk] for row in vector] for chunk in again.to_nested()] == [
        [[row] for row in groups[k]] for k in order]


# Steps


def in_steps(operator, inputs, arbitration, rng):
    """Outputs of ``operator`` with its inputs arriving a few beats at a time."""
    ctx = Context(Numerics(), {}, {}, arbitration)
    arrived, taken = [0] * len(inputs), [0] * len(inputs)
    made = [[TokenStream(s.rank, [], [], data_empty(s.type))] for s in operator.outputs]
    finished = False
    said = [False] * len(inputs)  # whether done has arrived
    while not finished:
        port = rng.randrange(len(inputs))
        said[port] = arrived[port] == len(inputs[port])
        arrived[port] = min(len(inputs[port]), arrived[port] + rng.randint(1, 3))
        windows = [tokens.cut(first, last) for tokens, first, last in zip(inputs, taken, arrived)]
        used, outputs = operator.step(ctx, windows, said)
        for parts, tokens in zip(made, outputs):
            parts.append(tokens)
        taken = [t + u for t, u in zip(taken, used)]
        finished = all(said) and operator.finished([a - t for a, t in zip(arrived, taken)], said)
    return [concat_tokens(parts) for parts in made], ctx.flops


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_steps_give_what_the_whole_gives(example):
    program, _ = example.build()
    traces = example.traces
    whole, values, costs = Context(Numerics(), {}, {}, traces), {}, {}
    for i, tokens in enumerate(example.input_tokens()):
        values[f"x{i}"] = tokens
    for op in program.topological():
        if op.inputs:
            before = whole.flops
            for stream, tokens in zip(op.outputs, op.interpret(whole, [values[s.name] for s in op.inputs])):
                values[stream.name] = tokens
            costs[op.name] = whole.flops - before
            if op.arbitrates:
                traces = {**traces, op.name: whole.arbiter(op).grants}
    for op in program.operators:
        for seed in range(20) if op.inputs else []:
            found, flops = in_steps(op, [values[s.name] for s in op.inputs], traces, random.Random(seed))
            assert found == [values[s.name] for s in op.outputs] and flops == costs[op.name]


@SETTINGS
@given(nested_streams(1), st.integers(0, 3), st.data())
def test_steps_of_shape_operators(sample, choice, data):
    rank, nested = sample
    with Program("p") as program:
        (x,), tokens = inputs_of((I32, rank, nested))
        lo = data.draw(st.integers(0, rank - 1))
        hi = data.draw(st.integers(lo + 1, rank))
        out = (ops.flatten(x, lo, hi), ops.reshape(x, 1 + lo, pad=7)[0], ops.scan(fn.add(), x, rank=hi),
               ops.promote(x))[choice]
    values = run(program, tokens)
    found, _ = in_steps(out.producer, [tokens["x0"]], {}, random.Random(data.draw(st.integers(0, 99))))
    assert found[0] == values[out.name]


@SETTINGS
@given(st.lists(st.integers(1, 4), max_size=4), st.integers(0, 99))
def test_steps_of_scan_over_inner_dimensions(groups, seed):
    nested = [[[k + 10 * n, 7 - n] for n in range(size)] for k, size in enumerate(groups)]
    with Program("p") as program:
        x = ops.input_stream("x", I32, (ragged("g"), ragged("n"), 2))
        out = ops.scan(fn.add(), x, rank=1, inner=1)
    tokens = TokenStream.from_nested(nested, 2)
    found, flops = in_steps(out.producer, [tokens], {}, random.Random(seed))
    assert found[0] == run(program, {"x": tokens})[out.name] and flops == 2 * sum(groups)


# The rotating priority


def test_rotating_priority():
    assert rotating_priority([True, True, True], None) == 0
    assert [rotating_priority([True, True, True], last) for last in range(3)] == [1, 2, 0]
    assert rotating_priority([True, False, False], 0) == 0
    assert rotating_priority([False, True, False], 1) == 1
    assert rotating_priority([True, False, True], 0) == 2
    assert rotating_priority([False, False], 1) is None


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), max_size=40), st.integers(0, 3))
def test_rotating_priority_starves_nobody(rounds, always):
    last, waited = None, 0
    for waiting in rounds:
        waiting[always] = True
        last = rotating_priority(waiting, last)
        assert waiting[last]
        waited = 0 if last == always else waited + 1
        assert waited < 4


# Mistakes


def message(error, call):
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text and "test_routing.py:" in text
    return text


PARTITION = [
    (MisalignedStreams, "1 2 S1 3 S1 D", "{0} D", "chunk 1 of rank 1: element with stop 1 on 'x' (beat 2) vs done on"),
    (MisalignedStreams, "1 2 S1 D", "{0} {1} D", "chunk 1 of rank 1: done on 'x' (beat 2) vs element with stop 0 on"),
    (BadParameter, "1 2 S1 3 S1 D", "{0} {1,4} D",
     "selector 1 on 'select': bit 4 vs 3 consumers; fix: select among 0..2"),
]


@pytest.mark.parametrize("error, x, select, expected", PARTITION)
def test_partition_mistakes(error, x, select, expected):
    with Program("p") as program:
        data = ops.input_stream("x", I32, (ragged("a"), ragged("r")))
        selector = ops.input_stream("select", Selector(5), (ragged("a"),))
        for i, part in enumerate(ops.partition(data, selector, rank=1, num_consumers=3, name="route")):
            ops.linear_offchip_store(part, program.tensor(f"y{i}", (9, 1), int32))
    inputs = {"x": parse_tokens(x, 1), "select": parse_tokens(select, 0, Selector(5))}
    text = message(error, lambda: interpret(program, {}, inputs))
    assert text.startswith("partition 'route' (test_routing.py:") and expected in text


def test_partition_out_of_step_above_the_chunk():
    with Program("p") as program:
        x = ops.input_stream("x", I32, (2, 2))
        select = ops.input_stream("select", Selector(1), (2, 2))
        (out,) = ops.partition(x, select, rank=0)
        ops.linear_offchip_store(out, program.tensor("y", (9, 1), int32))
    good = "1 2 S1 3 4 S1 D"
    for stream, bad, expected in (
            (good, "{0} S1 {0} {0} {0} S1 D",
             "chunk 0 of rank 0: element with stop 0 on 'x' (beat 0) vs element with stop 1 on 'select'"),
            (good, "{0} {0} S1 S1 {0} {0} S1 D",
             "chunk 2 of rank 0: element with stop 0 on 'x' (beat 2) vs bare stop 1 on 'select'"),
            ("1 2 S1 3 S1 D", "{0} {0} S1 S1 D",
             "chunk 2 of rank 0: element with stop 1 on 'x' (beat 2) vs bare stop 1 on 'select'"),
            ("1 2 S1 S1 D", "{0} {0} S1 {0} S1 D",
             "chunk 2 of rank 0: bare stop 1 on 'x' (beat 2) vs element with stop 1 on 'select'")):
        inputs = {"x": parse_tokens(stream), "select": parse_tokens(bad, 1, Selector(1))}
        assert expected in message(MisalignedStreams, lambda inputs=inputs: interpret(program, {}, inputs))


def test_partition_of_a_chunk_without_a_selector():
    with Program("p"):
        x = ops.input_stream("x", I32, (ragged("a"), ragged("n"), ragged("r")))
        select = ops.input_stream("select", Selector(1), x.shape[:2])
        (out,) = ops.partition(x, select, rank=1)
    for text in ("1 S2 D", "1 S1 2 S2 D"):
        with pytest.raises(MisalignedStreams, match=r"chunk 0 of rank 1: element with .* vs bare stop 1 on"):
            out.producer.interpret(Context(Numerics(), {}, {}, {}),
                                   [parse_tokens(text), parse_tokens("S1 D", 1, Selector(1))])


def test_a_stream_that_ends_inside_a_chunk():
    broken = TokenStream(1, [0, 1, 0], [False] * 3, parse_tokens("1 2 3 D").data)
    with Program("p"):
        x, y = (ops.input_stream(name, I32, (ragged("a"), ragged("r"))) for name in "xy")
        select = ops.input_stream("select", Selector(1), (ragged("a"),))
        one = ops.input_stream("one", Selector(1), (1,))
        routed = (ops.partition(x, select, rank=1)[0], ops.reassemble([x], one), ops.eager_merge([x, y])[0])
    ctx = Context(Numerics(), {}, {}, {})
    good, bits = parse_tokens("1 2 S1 D"), parse_tokens("{0} D", 0, Selector(1))
    for out, inputs in zip(routed, ([broken, bits], [broken, bits], [good, broken])):
        with pytest.raises(StreamProtocolError, match="ends 1 beats into chunk 1 vs whole chunks of rank 1"):
            out.producer.interpret(ctx, inputs)


REASSEMBLE = [
    (MisalignedStreams, ["1 S1 D", "D"], "{0} {0} D",
     "selector beat 1 on 'select' names input 0 vs 'x0', which ends after 1"),
    (MisalignedStreams, ["1 S1 D", "2 S1 D"], "{0} D", "stream 'x1' (input 1): 1 chunks vs 0"),
    (StreamProtocolError, ["1 S1 D", "D"], "{0} {} D", "selector beat 1 on 'select': no bit set vs at least one"),
    (BadParameter, ["1 S1 D", "D"], "{0} {2} D", "selector 1 on 'select': bit 2 vs 2 streams; fix: select among 0..1"),
]


@pytest.mark.parametrize("error, streams, select, expected", REASSEMBLE)
def test_reassemble_mistakes(error, streams, select, expected):
    with Program("p") as program:
        xs = [ops.input_stream(f"x{i}", I32, (ragged(f"a{i}"), ragged("r"))) for i in range(2)]
        selector = ops.input_stream("select", Selector(3), (ragged("n"),))
        ops.linear_offchip_store(ops.reassemble(xs, selector, rank=1, name="join"), program.tensor("y", (9, 1), int32))
    inputs = {f"x{i}": parse_tokens(text, 1) for i, text in enumerate(streams)}
    inputs["select"] = parse_tokens(select, 0, Selector(3))
    text = message(error, lambda: interpret(program, {}, inputs))
    assert text.startswith("reassemble 'join' (test_routing.py:") and expected in text


def test_traces_that_do_not_fit():
    with Program("p") as program:
        x, y = (ops.input_stream(name, I32, (ragged(name),)) for name in "xy")
        select = ops.input_stream("select", Selector(2), (2,))
        merged, _ = ops.eager_merge([x, y], name="merge")
        joined = ops.reassemble([x, y], select, name="join")
        ops.linear_offchip_store(merged, program.tensor("merged", (9, 1), int32))
        ops.linear_offchip_store(joined, program.tensor("joined", (9, 1), int32), name="store")
    inputs = {"x": [1], "y": [2, 3], "select": [{1}, {0, 1}]}

    def replay(**traces):
        return interpret(program, {}, inputs, arbitration=traces)

    result = replay(merge=[1, 0, 1], join=[1, 1, 0])
    assert result.tensors["merged"].ravel().tolist()[:3] == [2, 1, 3]
    assert result.tensors["joined"].ravel().tolist()[:3] == [2, 3, 1]
    assert result.arbitration == {"merge": [1, 0, 1], "join": [1, 1, 0]}
    assert replay().arbitration == {"merge": [0, 1, 1], "join": [1, 0, 1]}

    def error(**traces):
        return message(ArbitrationError, lambda: replay(**traces))

    assert error(merge=[0, 0, 1]).startswith("eager_merge 'merge' (test_routing.py:")
    assert "grant 1: input 0 vs the inputs with a chunk, 1" in error(merge=[0, 0, 1])
    assert "ends after 2 grants vs the inputs with a chunk, 1" in error(merge=[0, 1])
    assert "grant 3: input 1 vs nothing left to serve (4 grants given, 3 used)" in error(merge=[0, 1, 1, 1])
    assert "grant 0: input 2 vs" in error(merge=[2]) and "grant 0: input -1 vs" in error(merge=[-1])
    assert "grant 1: 'x' vs the number of an input" in error(merge=[0, "x"])
    assert error(join=[0, 1, 1]).startswith("reassemble 'join' (test_routing.py:")
    assert "grant 0: input 0 vs selector beat 0, whose inputs 1" in error(join=[0, 1, 1])
    assert "grant 2: input 1 vs selector beat 1, whose inputs 0" in error(join=[1, 1, 1])
    assert "ends after 2 grants vs selector beat 1, whose inputs 0" in error(join=[1, 1])
    assert "grant 3: input 0 vs nothing left" in error(join=[1, 1, 0, 0])
    assert "trace of 'store' vs the operators that arbitrate: merge, join" in message(
        BadParameter, lambda: replay(store=[0]))


def test_mistakes_at_construction():
    with Program("p"):
        x = ops.input_stream("x", I32, (4, 3))
        y = ops.input_stream("y", I32, (4, 5))
        z = ops.input_stream("z", I32, (4,))
        select = ops.input_stream("select", Selector(2), (4,))

        def partition(*args, error=TypeMismatch, **options):
            return message(error, lambda: ops.partition(*args, **options))

        assert "[4] vs [4, 3]" in partition(x, select, rank=0, error=ShapeMismatch)
        assert "2 vs the stream's rank 1" in partition(x, select, rank=2, error=BadParameter)
        assert "Selector(2) vs Selector(3)" in partition(x, select, rank=1, num_consumers=3)
        assert "Tile(1, 1, int32) vs Selector(1)" in partition(x, z, rank=1)
        assert "0 vs an int" in partition(x, select, rank=1, num_consumers=0, error=BadParameter)

        def reassemble(*args, error=ShapeMismatch, **options):
            return message(error, lambda: ops.reassemble(*args, **options))

        assert "chunks of 'x' and 'y': [3] vs [5]" in reassemble([x, y], select)
        assert "rank of 'z': 0 vs 1" in reassemble([x, z], select)
        assert "rank of 'x': 1 vs 0" in reassemble([x, x], select, rank=0)
        assert "Selector(2) vs Selector(3)" in reassemble([x, x, x], select, error=TypeMismatch)
        assert "0 vs at least 1" in reassemble([], select, error=BadParameter)
        assert "types of 'z' and 'select'" in reassemble([z, select], select, error=TypeMismatch)

        def merge(*args, error=ShapeMismatch):
            return message(error, lambda: ops.eager_merge(*args))

        assert "chunks of 'x' and 'y': [3] vs [5]" in merge([x, y])
        assert "chunks of 'x' and 'z': [3] vs []" in merge([x, z])
        assert "chunks of 'z' and 'x': [] vs [3]" in merge([z, x])
        assert "types of 'z' and 'select'" in merge([z, select], error=TypeMismatch)
        assert "0 vs 1..128" in merge([], error=BadParameter)


def test_types_of_buffers_that_meet():
    """A ragged outermost dimension takes any; the dimensions below are the same for all."""
    with Program("p") as p:
        def kept(*shape, rank):
            return ops.bufferize(ops.input_stream(f"x{len(p.operators)}", I32, (2, *shape)), rank=rank)

        three, five, ragged_ = (kept(n, rank=1) for n in (3, 5, ragged("R")))
        assert ops.eager_merge([three, three])[0].type == three.type
        (dim,) = ops.eager_merge([three, ragged_])[0].type.shape
        assert isinstance(dim, Ragged) and dim != ragged("R")
        assert "BufferRef(Tile(1, 1, int32), [3]) vs BufferRef(Tile(1, 1, int32), [5])" in message(
            TypeMismatch, lambda: ops.eager_merge([three, five]))
        rows = [kept(n, m, rank=2) for n, m in ((ragged("R"), 2), (ragged("Q"), 2), (ragged("R"), 3))]
        (_, inner) = ops.eager_merge(rows[:2])[0].type.shape
        assert inner == 2
        assert "[R, 2]) vs BufferRef(Tile(1, 1, int32), [R, 3])" in message(
            TypeMismatch, lambda: ops.eager_merge([rows[0], rows[2]]))
        assert "[3]) vs BufferRef(Tile(1, 1, int32), [R, 2])" in message(
            TypeMismatch, lambda: ops.eager_merge([three, rows[0]]))
