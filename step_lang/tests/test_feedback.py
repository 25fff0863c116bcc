"""Loops: every operator inside one, dynamic parallelization against an event simulation, and loops that stop."""

import heapq

import numpy as np
import pytest

from step_lang import (
    ArbitrationError,
    DeadlockError,
    MisalignedStreams,
    Program,
    ProgramError,
    Selector,
    ShapeMismatch,
    StepError,
    TypeMismatch,
    UnconnectedStream,
    ViewOutOfRange,
    bool_,
    dynamic,
    fn,
    int32,
    interpret,
    ops,
    parse_tokens,
    ragged,
    scalar,
    u32,
)

U32 = scalar(u32)


def loop(body, count, started=1):
    """A program that applies ``body`` to ``started`` numbers from outside, then to its own results, ``count`` times in
    all; ``body(x, shape)`` gets a stream of ``shape`` [1, N]. Returns program and the stream of results."""
    with Program("loop") as p:
        start = ops.input_stream("start", U32, (started,))
        control = ops.input_stream("control", Selector(2), (1, count))
        fb = ops.feedback(U32, (ragged("again"),), name="fb")
        x = ops.accum(fn.add(), ops.reassemble([start, fb], control, rank=0, name="either"), rank=1)
        y = body(x)
        (again,) = ops.partition(y, ops.input_stream("keep", Selector(1), (1, count)), rank=0, num_consumers=1)
        fb.connect(again)
        ops.linear_offchip_store(y, p.tensor("y", (count, 1), u32))
    return p, y


def run_loop(body, count, values, tensors=None, **options):
    p, _ = loop(body, count, len(values))
    inputs = {"start": values, "control": [[{0}] * len(values) + [{1}] * (count - len(values))],
              "keep": [[{0}] * (count - len(values)) + [set()] * len(values)]}
    return interpret(p, tensors or {}, {**inputs, **options})


def tensor(name, size):
    return Program.current().tensor(name, (size, 1), u32)


def partition_and_reassemble(x):
    pairs = ops.repeat(x, 2)
    choice = ops.input_stream("choice", Selector(2), (1, 6))
    a, b = ops.partition(pairs, choice, rank=1)
    return ops.accum(fn.add(), ops.reassemble([a, b], choice, rank=1), rank=2)


def store_then_load(x):
    memory = tensor("memory", 64)
    ack = ops.random_offchip_store(x, ops.map(fn.add(), x, x), memory)
    return ops.random_offchip_load(ops.map(fn.mul(), x, ops.map(fn.cast(u32), ack)), memory, (1, 1))


def through_buffers(x):
    buffers = ops.bufferize(ops.repeat(x, 2), rank=1)
    twice = ops.streamify(buffers, repeat=2)
    by_reference = ops.streamify(buffers, ops.repeat(x, 1))
    return ops.map(fn.add(), ops.accum(fn.add(), twice, rank=2), ops.accum(fn.add(), by_reference, rank=2))


def merged(x):
    # Into two streams, twice each, and back: the merged order is that of index, so both copies are together.
    copies = ops.partition(ops.repeat(x, 1), ops.input_stream("choice", Selector(2), (1, 6)), rank=1)
    data, source = ops.eager_merge([ops.accum(fn.add(), c, rank=1) for c in copies])
    back = ops.partition(data, source, rank=0)
    return ops.accum(fn.add(), ops.reassemble(back, ops.input_stream("again", Selector(2), (1, 6)), rank=0), rank=1)


BODIES = {
    "map": (lambda x: ops.map(fn.add(), x, x), lambda v: 2 * v),
    "repeat_accum": (lambda x: ops.accum(fn.add(), ops.repeat(x, 3), rank=1), lambda v: 3 * v),
    "expand": (lambda x: ops.accum(fn.add(), ops.expand(ops.repeat(x, 1), ops.repeat(x, 3), rank=1), rank=1),
               lambda v: 3 * v),
    "scan_within": (lambda x: ops.accum(fn.add(), ops.scan(fn.add(), ops.repeat(x, 2), rank=1), rank=1),
                    lambda v: 3 * v),
    "reshape": (lambda x: ops.accum(fn.add(), ops.reshape(ops.repeat(x, 3), 2, pad=5)[0], rank=2),
                lambda v: 3 * v + 5),
    "flatten": (lambda x: ops.accum(fn.add(), ops.flatten(ops.repeat(ops.repeat(x, 2), 2), 0, 1), rank=1),
                lambda v: 4 * v),
    "flatten_above": (lambda x: ops.accum(fn.add(), ops.flatten(ops.repeat(ops.repeat(ops.repeat(x, 2), 2), 2), 1, 2),
                                          rank=2), lambda v: 8 * v),
    "zip_address_range": (
        lambda x: ops.accum(fn.add(), ops.flat_map(fn.address_range(), ops.zip(ops.repeat(x, 1), ops.repeat(x, 1))),
                            rank=1), lambda v: v * v + v * (v - 1) // 2),
    "counter": (lambda x: ops.accum(fn.add(), ops.flat_map(fn.counter(), ops.repeat(x, 2)), rank=1),
                lambda v: v * (v - 1)),
    "buffers": (through_buffers, lambda v: 6 * v),
    "load": (lambda x: ops.random_offchip_load(x, tensor("table", 8), (1, 1)), lambda v: (3 * v + 2) % 8),
    "load_by_reference": (lambda x: ops.accum(fn.add(), ops.linear_offchip_load(tensor("table", 8), (1, 1), ref=x),
                                              rank=2), lambda v: sum(range(8))),
    "store_then_load": (store_then_load, lambda v: 2 * v),
    "partition_reassemble": (partition_and_reassemble, None),
    "eager_merge": (merged, lambda v: v),
}


@pytest.mark.parametrize("name", BODIES)
def test_operators_in_a_loop(name):
    body, once = BODIES[name]
    count, start = (4, 3) if name in ("counter", "zip_address_range") else (6, 1)
    tensors, options = {}, {}
    if "load" in name and name != "store_then_load":
        tensors["table"] = np.array([(3 * v + 2) % 8 for v in range(8)], dtype=np.uint32).reshape(8, 1)
    if name == "partition_reassemble":
        options["choice"] = [[{0}, {1}, {0, 1}, {1}, {0, 1}, {0}]]
    if name == "eager_merge":
        options["choice"] = options["again"] = [[{0}, {1}, {1}, {0}, {0}, {1}]]
    result = run_loop(body, count, [start], tensors, **options)
    expected, value = [], start
    for step in range(count):
        value = once(value) if once else 2 * value * (2 if step in (2, 4) else 1)
        expected.append(value % 2**32)
    assert result.tensors["y"].ravel().tolist() == expected
    if "load" in name:
        each = 4 * (8 if name == "load_by_reference" else 1)
        load = next(row for row in result.rows if row.startswith(("random_offchip_load", "linear_offchip_load")))
        assert result.rows[load]["offchip_read_bytes"] == each * count


def test_scan_over_the_whole_loop():
    # Each number is the sum of all before it: the state must leave after every element, long before its group closes.
    result = run_loop(lambda x: ops.scan(fn.add(), x, rank=1), 8, [1])
    assert result.tensors["y"].ravel().tolist() == [2**k for k in range(8)]
    # One call an element, although an open group is computed again with each step.
    assert result.rows["scan_0"]["flops"] == 8


def test_promote_in_a_loop_holds_one_token():
    def body(x):
        (one,) = ops.partition(x, ops.input_stream("all", Selector(1), (1, 6)), rank=0)
        y = ops.flatten(ops.promote(ops.promote(one)), 1, 2).assume((1, 6))
        return ops.map(fn.add(), y, y)

    result = run_loop(body, 6, [1, 10], all=[[{0}] * 6])
    assert result.tensors["y"].ravel().tolist() == [2, 20, 4, 40, 8, 80]
    with pytest.raises(DeadlockError, match="nothing ever came from 'partition_1'"):
        run_loop(body, 6, [1], all=[[{0}] * 6])


@pytest.mark.parametrize("rank, text, taken", [
    (1, "1 2 S1 3 S1", 3),      # every stop vanishes: nothing to wait for
    (2, "1 2 S1", 1),           # a bare S2 may follow, and closes what 2 ends
    (2, "1 2", 2),              # no bare stop follows an element without a stop
    (2, "1 S2", 1),
    (2, "1 S1 S1", 0),          # the bare S1 vanishes, and 1 waits on
    (2, "1 S1 S1 S2", 3),
    (2, "S1 S1", 2),
])
def test_flatten_holds_what_may_have_to_take_a_stop(rank, text, taken):
    with Program("p"):
        x = ops.input_stream("x", U32, tuple(ragged(f"d{k}") for k in range(rank + 1)))
        operator = ops.flatten(x, 0, 1).producer
    end = " D" if rank == 1 else " 9 S2 D"  # to be a whole stream
    tokens = parse_tokens(text + end, rank, U32)
    tokens = tokens.cut(0, len(tokens) - (rank == 2))
    assert operator.ready([tokens], [False]) == [taken]


def parallel(requests, regions):
    """Requests to whichever region has completed one: round-robin start, then in order of completion."""
    with Program("parallel") as p:
        start = ops.input_stream("start", Selector(regions), (min(regions, requests),))
        control = ops.input_stream("control", Selector(2), (requests,))
        work = ops.input_stream("work", U32, (requests,))
        fb = ops.feedback(Selector(regions), (ragged("free"),), name="fb")
        turns = ops.reassemble([start, fb], control, rank=0).assume((requests, 1))
        parts = ops.partition(work, ops.flatten(turns, 0, 1), rank=0, name="dispatch")
        results = []
        for part in parts:
            numbers = ops.flat_map(fn.counter(), ops.repeat(part, 1))
            results.append(ops.accum(fn.add(), numbers, rank=1))
        data, source = ops.eager_merge(results, name="completions")
        source.assume((requests,))
        data.assume((requests,))
        (free,) = ops.partition(source, ops.input_stream("keep", Selector(1), (requests,)), rank=0)
        fb.connect(free)
        ops.linear_offchip_store(data, p.tensor("sums", (requests, 1), u32))
        for i, part in enumerate(parts):
            ops.linear_offchip_store(part, p.tensor(f"region{i}", (requests, 1), u32))
    return p


def parallel_inputs(work, regions):
    n, first = len(work), min(regions, len(work))
    return {"start": [{i} for i in range(first)], "control": [{0}] * first + [{1}] * (n - first), "work": work,
            "keep": [{0}] * (n - first) + [set()] * first}


@pytest.mark.parametrize("requests, regions", [(64, 4), (16, 1), (9, 8), (3, 4)])
def test_dynamic_parallelization(requests, regions):
    rng = np.random.default_rng(requests)
    work = rng.integers(0, 40, requests).tolist()
    p = parallel(requests, regions)
    result = interpret(p, {}, parallel_inputs(work, regions))
    assert sorted(result.tensors["sums"].ravel().tolist()) == sorted(n * (n - 1) // 2 for n in work)
    assert len(result.arbitration["completions"]) == requests
    again = interpret(p, {}, parallel_inputs(work, regions), arbitration=result.arbitration)
    assert all(np.array_equal(again.tensors[name], result.tensors[name]) for name in result.tensors)
    assert again.arbitration == result.arbitration

    # A machine in which a request takes as many cycles as its number: who completes when decides who gets what.
    grants, given, sums = [], [[] for _ in range(regions)], []
    running = []
    for request in range(min(regions, requests)):
        heapq.heappush(running, (work[request] + 1, request, request))
        given[request].append(work[request])
    waiting = list(range(min(regions, requests), requests))
    while running:
        time, request, region = heapq.heappop(running)
        grants.append(region)
        sums.append(work[request] * (work[request] - 1) // 2)
        if waiting:
            request = waiting.pop(0)
            given[region].append(work[request])
            heapq.heappush(running, (time + work[request] + 1, request, region))
    replayed = interpret(p, {}, parallel_inputs(work, regions), arbitration={"completions": grants})
    assert replayed.tensors["sums"].ravel().tolist() == sums
    for i, expected in enumerate(given):
        assert replayed.tensors[f"region{i}"].ravel().tolist() == expected + [0] * (requests - len(expected))
    if regions == 4 and requests == 64:
        assert grants != result.arbitration["completions"]


# Mistakes


def message(error, call):
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text and "test_feedback.py:" in text
    return text


def test_a_loop_without_a_first_token():
    p, _ = loop(lambda x: ops.map(fn.add(), x, x), 4)
    inputs = {"start": [1], "control": [[{1}] * 4], "keep": [[{0}] * 4]}
    text = message(DeadlockError, lambda: interpret(p, {}, inputs))
    assert text.startswith("feedback 'fb' (test_feedback.py:") and "without an initial token" in text
    assert "'partition_0'" in text and "either for fb" in text and "; fix: " in text


def test_a_loop_that_needs_more_tokens_than_it_has():
    p, _ = loop(lambda x: ops.map(fn.add(), x, x), 4)
    inputs = {"start": [1], "control": [[{0}, {1}, {1}, {1}]], "keep": [[{0}, set(), set(), set()]]}
    text = message(DeadlockError, lambda: interpret(p, {}, inputs))
    assert "feedback 'fb'" in text and "stops after 1 tokens" in text and "either for fb" in text


def test_tokens_left_in_a_loop():
    p, _ = loop(lambda x: ops.map(fn.add(), x, x), 4)
    inputs = {"start": [1], "control": [[{0}, {1}, {1}, {1}]], "keep": [[{0}] * 4]}
    text = message(MisalignedStreams, lambda: interpret(p, {}, inputs))
    assert "reassemble 'either'" in text and "stream 'fb' (input 1): 1 chunks vs 0" in text


def test_a_loop_that_asks_a_stream_that_has_ended():
    p, _ = loop(lambda x: ops.map(fn.add(), x, x), 4)
    inputs = {"start": [1], "control": [[{0}, {1}, {0}, {1}]], "keep": [[{0}] * 3 + [set()]]}
    text = message(MisalignedStreams, lambda: interpret(p, {}, inputs))
    assert "selector beat 1 on 'control' names input 0 vs 'start', which ends after 0 chunks" in text
    assert "counted from beats 1, 0, 1 of its inputs" in text


def test_an_address_outside_the_tensor_in_a_loop():
    tensors = {"table": np.array([[1], [2], [9], [0]] * 2, dtype=np.uint32)}
    text = message(ViewOutOfRange, lambda: run_loop(BODIES["load"][0], 6, [0], tensors))
    assert text.startswith("random_offchip_load 'random_offchip_load_0' (test_feedback.py:")
    assert "address 9 of element 0 vs" in text and "counted from beats 3 of" in text


def test_a_feedback_fed_by_itself():
    with Program("p") as p:
        fb = ops.feedback(U32, (ragged("d"),), name="fb")
        fb.connect(fb)
    # It ends nowhere and begins nowhere.
    text = message(DeadlockError, lambda: interpret(p, {}, {}))
    assert "feedback 'fb'" in text and "without an initial token" in text


def test_a_feedback_outside_of_any_loop():
    with Program("p") as p:
        fb = ops.feedback(U32, (3,))
        ops.linear_offchip_store(ops.map(fn.add(), fb, fb), p.tensor("y", (3, 1), u32))
        ops.feedback_connect(fb, ops.input_stream("x", U32, (3,)))
    assert interpret(p, {}, {"x": [1, 2, 3]}).tensors["y"].ravel().tolist() == [2, 4, 6]


def test_connections():
    with Program("other"):
        foreign = ops.input_stream("foreign", U32, (3,))
    with Program("p") as p:
        fb = ops.feedback(U32, (3,), name="fb")
        x = ops.input_stream("x", U32, (3,))
        ops.map(fn.add(), fb, fb)
        assert "never connected" in message(UnconnectedStream, p.check)
        assert "'other' vs 'p'" in message(UnconnectedStream, lambda: fb.connect(foreign))
        assert "vs a Stream" in message(TypeMismatch, lambda: fb.connect((x,)))
        flags = ops.input_stream("flags", scalar(bool_), (3,))
        assert "Tile(1, 1, bool) vs Tile(1, 1, u32)" in message(TypeMismatch, lambda: fb.connect(flags))
        for shape in ((4,), (3, 1), (ragged("r"),), (dynamic("D"),)):
            y = ops.input_stream(f"y{len(p.operators)}", U32, shape)
            assert "[3]" in message(ShapeMismatch, lambda y=y: fb.connect(y))
        fb.connect(x)
        assert "connected twice: 'x' vs 'x'" in message(ProgramError, lambda: fb.connect(x))
        assert "at least one dimension" in message(StepError, lambda: ops.feedback(U32, ()))
        assert "vs a data type" in message(TypeMismatch, lambda: ops.feedback(int32, (3,)))


def test_a_cycle_without_feedback_cannot_be_built():
    with Program("p") as p:
        x = ops.input_stream("x", U32, (3,))
        y = ops.map(fn.add(), x, x)
        x.producer.inputs.append(y)
        y.consumers.append(x.producer)
        assert "a cycle without a feedback" in message(ProgramError, p.topological)


def test_traces_in_a_loop():
    work = [5, 1, 3, 2, 4, 6]
    p, inputs = parallel(6, 2), parallel_inputs(work, 2)
    used = interpret(p, {}, inputs).arbitration

    def error(grants):
        return message(ArbitrationError, lambda: interpret(p, {}, inputs, arbitration={"completions": grants}))

    good = used["completions"]
    assert "ends after 5 grants" in error(good[:-1])
    assert "grant 6: input 0 vs nothing left" in error([*good, 0])
    # Region 0 has one request at a time and a request takes a grant: region 1's first one is never served.
    assert error([0, 0, 0, 0, 0, 0]).startswith("eager_merge 'completions'")
    assert "grant 5: input 0 vs the inputs with a chunk, 1" in error([0, 0, 0, 0, 0, 0])
    assert "grant 2: input 7 vs the inputs with a chunk, 0, 1" in error([0, 1, 7])
