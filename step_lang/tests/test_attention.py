"""Attention over caches of different lengths: bit for bit what its definition says under every schedule."""


import numpy as np
import pytest

from examples import attention
from step_lang import BadParameter, Numerics, ViewOutOfRange, interpret, metrics
from step_lang import numerics as num
from step_lang.tests.traces import trace_path

NUMERICS = Numerics(group=4)

SMALL = {"batch": 6, "regions": 2, "queries": 4, "dim": 8, "kv_tile": 4, "capacity": 24}
LENGTHS = [5, 0, 8, 23, 3, 11]
"""Within a tile, no tokens at all, whole tiles, a full cache but for the new token, one token short of a tile."""


def made(parameters, lengths=None, seed=0):
    program = attention.build(**parameters)
    streams = attention.streams(program, seed) if lengths is None else attention.request_streams(program, lengths)
    return program, attention.inputs(program, seed), streams


def bf16(x):
    return num.cast(x, "bf16")


def serve(tensors, lengths, kv_tile):
    """``out`` and the caches afterwards, request by request and tile by tile, by the definitions of the numbers."""
    k, v = tensors["k_cache"].copy(), tensors["v_cache"].copy()
    capacity, queries = len(k) // len(lengths), len(tensors["q"]) // len(lengths)
    outputs = []
    for i, n in enumerate(lengths):
        first, last = i * capacity, i * capacity + n // kv_tile * kv_tile
        for cache, new in ((k, "k_new"), (v, "v_new")):
            cache[first + n] = tensors[new][i]
            cache[first + n + 1:last + kv_tile] = 0
        q = tensors["q"][None, i * queries:(i + 1) * queries]
        total = np.zeros((1, queries, 1), dtype=np.float32)
        weighted = np.zeros((1, queries, q.shape[2]), dtype=np.float32)
        for row in range(first, last + 1, kv_tile):
            score = bf16(NUMERICS.matmul(q, k[None, row:row + kv_tile].swapaxes(1, 2)))
            valid = (np.arange(row, row + kv_tile) <= first + n).astype(q.dtype)
            power = num.mul(num.unary("exp", score), np.broadcast_to(valid, score.shape))
            weighted = NUMERICS.matmul(power, v[None, row:row + kv_tile], weighted)
            total = NUMERICS.matmul(power, np.ones((1, kv_tile, 1), dtype=q.dtype), total)
        outputs.append(num.div(bf16(weighted), bf16(total))[0])
    return np.vstack(outputs), k, v


def check(program, tensors, lengths, result):
    kv_tile = program.tensors["mask"].shape[1]
    out, k, v = serve(tensors, lengths, kv_tile)
    for name, expected in (("out", out), ("k_cache", k), ("v_cache", v)):
        assert result.tensors[name].tobytes() == expected.tobytes(), name
    reference = attention.reference(program, tensors, lengths)
    assert np.abs(out.astype(np.float64) - reference).max() < 0.02 * np.abs(reference).max()
    assert sorted(result.tensors["completed"].ravel().tolist()) == list(range(len(lengths)))
    assert metrics(program).substitute(result.symbols).offchip_bytes == result.offchip_bytes
    tiles = sum(n // kv_tile + 1 for n in lengths)
    read = sum(row["offchip_read_bytes"] for name, row in result.rows.items()
               if name.startswith(("load_k", "load_v")))
    assert read == 2 * tiles * kv_tile * tensors["q"].shape[1] * 2


@pytest.mark.parametrize("schedule", attention.SCHEDULES)
@pytest.mark.parametrize("changes", [{}, {"regions": 1}, {"regions": 6}, {"regions": 4}], ids=str)
def test_schedules(schedule, changes):
    program, tensors, streams = made({**SMALL, **changes, "schedule": schedule}, LENGTHS)
    check(program, tensors, LENGTHS, interpret(program, tensors, streams, NUMERICS))


@pytest.mark.parametrize("schedule", attention.SCHEDULES)
@pytest.mark.parametrize("length", [0, 1, 3, 4, 7])
def test_one_request(schedule, length):
    program, tensors, streams = made({**SMALL, "batch": 1, "regions": 1, "schedule": schedule}, [length])
    check(program, tensors, [length], interpret(program, tensors, streams, NUMERICS))


def test_no_request_has_tokens():
    program, tensors, streams = made(SMALL, [0] * 6)
    check(program, tensors, [0] * 6, interpret(program, tensors, streams, NUMERICS))


def test_which_region_serves_whom():
    """Requests of each region, from what the regions load, and the order of completion."""
    orders = {"coarse": [[0, 1, 2], [3, 4, 5]], "interleaved": [[0, 2, 4], [1, 3, 5]]}
    for schedule, expected in orders.items():
        program, tensors, streams = made({**SMALL, "schedule": schedule}, LENGTHS)
        result = interpret(program, tensors, streams, NUMERICS)
        assert [result.streams[f"number{r}"].to_nested() for r in range(2)] == expected


def test_queued_requests_leave_one_queue_round_robin():
    program, tensors, streams = made({**SMALL, "schedule": "queued"}, LENGTHS)
    result = interpret(program, tensors, streams, NUMERICS)
    check(program, tensors, LENGTHS, result)
    assert [result.streams[f"number_to_regions_{r}"].to_nested() for r in range(2)] == [[0, 2, 4], [1, 3, 5]]
    loads = [op.name for op in program.operators if op.name.startswith("load_q")]
    assert loads == ["load_q"]  # once, before it is known who serves whom


@pytest.mark.parametrize("ahead", [1, 2, 9])
def test_dynamic_schedule_follows_completions(ahead):
    """Region 1 completes all but the first requests it and region 0 began with; it is given those that follow."""
    program, tensors, streams = made({**SMALL, "schedule": "dynamic", "ahead": ahead}, LENGTHS)
    first = interpret(program, tensors, streams, NUMERICS)
    check(program, tensors, LENGTHS, first)
    if ahead > 1:
        return
    grants = {"completions": [1, 1, 1, 1, 1, 0]}
    again = interpret(program, tensors, streams, NUMERICS, arbitration=grants)
    check(program, tensors, LENGTHS, again)
    assert again.streams["number_to_regions_0"].to_nested() == [0]
    assert again.streams["number_to_regions_1"].to_nested() == [1, 2, 3, 4, 5]
    assert again.tensors["completed"].ravel().tolist() == [1, 2, 3, 4, 5, 0]
    assert first.arbitration["completions"] == [0, 1] * 3


def test_made_lengths_fit():
    program, tensors, streams = made({"batch": 16, "queries": 4, "dim": 8, "kv_tile": 8, "capacity": 64})
    lengths = streams["length"]
    assert max(lengths) > 3 * sorted(lengths)[8] / 2 and max(lengths) < 64
    check(program, tensors, lengths, interpret(program, tensors, streams, NUMERICS))


@pytest.mark.parametrize("schedule", attention.SCHEDULES)
def test_trace(schedule):
    path = trace_path("kv_lengths/b16/conv_stdev1226_0075_0090.npy")
    lengths = attention.load_lengths(path, 16, 16)
    assert 0 in lengths  # a request of 2 tokens, divided by 16
    program = attention.build(queries=4, dim=8, kv_tile=8, schedule=schedule)
    tensors, streams = attention.inputs(program), attention.streams(program, trace=path)
    check(program, tensors, lengths, interpret(program, tensors, streams, NUMERICS))


@pytest.mark.parametrize("block, expected", [(4, [[0, 1, 2, 3], [4, 5]]), (3, [[0, 1, 2], [3, 4, 5]]),
                                             (6, [[0, 1, 2, 3, 4, 5]]), (5, [[0, 1, 2, 3, 4], [5]])])
def test_blocks(block, expected):
    """Coarse blocks of a given size; a region without a block is left out."""
    program, tensors, streams = made({**SMALL, "regions": 3, "schedule": "coarse", "block": block}, LENGTHS)
    result = interpret(program, tensors, streams, NUMERICS)
    check(program, tensors, LENGTHS, result)
    numbers = [name for name in result.streams if name.startswith("number")]
    assert [result.streams[name].to_nested() for name in numbers] == expected


@pytest.mark.parametrize("name", ["fig14", "fig15"])
def test_full_size(name):
    """The paper's sizes; blocks of 16 of 16 requests leave one region with all of them."""
    for parameters in attention.SWEEPS[name]:
        program = attention.build(**parameters)
        program.check()
        assert program.tensors["k_cache"].shape == (parameters["batch"] * 6464, 64)
        assert program.tensors["q"].shape == (parameters["batch"] * 8, 64)
        # All but what adds up addresses.
        assert {op.compute_bw for op in program.operators
                if op.kind in ("map", "accum") and not op.name.startswith("end")} == {2048}
        regions = 1 if (name, parameters["schedule"]) == ("fig15", "coarse") else 4
        assert sum(op.name.startswith("qk_cast") for op in program.operators) == regions


def test_head_of_a_model():
    program = attention.build(model="mixtral-8x7b", capacity=64)
    assert program.tensors["q"].shape == (16 * 4, 128)
    assert attention.build(model="mixtral-8x7b", queries=2, capacity=64).tensors["q"].shape == (16 * 2, 128)


def test_lengths_of_a_directory(tmp_path):
    np.save(tmp_path / "b.npy", np.arange(4))
    np.save(tmp_path / "a.npy", np.arange(4) * 10)
    assert attention.load_lengths(tmp_path, 3) == [0, 10, 20]


# Mistakes


@pytest.mark.parametrize("parameters, text", [
    ({"schedule": "best"}, "schedule: 'best' vs one of coarse, interleaved, queued, dynamic"),
    ({"regions": 17}, r"regions: 17 vs 1\.\.16, the requests"),
    ({"kv_tile": 24}, "capacity: 512 vs a multiple of kv_tile 24"),
    ({"ahead": 0}, "ahead: 0 vs at least 1 request for each region"),
    ({"schedule": "coarse", "block": 3}, "block: 3 of 16 requests vs 4 regions, one block each"),
    ({"schedule": "not one"}, "schedule: 'not one' vs one of"),
    ({"model": "gpt"}, "model: 'gpt' vs mixtral-8x7b, "),
])
def test_wrong_parameters(parameters, text):
    with pytest.raises(BadParameter, match=text):
        attention.build(**parameters)


def test_wrong_lengths(tmp_path):
    program = attention.build(**SMALL)
    with pytest.raises(BadParameter, match=r"lengths: 6 of 0\.\.24 vs 6 of 0\.\.23"):
        attention.request_streams(program, [*LENGTHS[:5], 24])
    np.save(tmp_path / "few.npy", np.arange(3))
    np.save(tmp_path / "floats.npy", np.zeros(6))
    (tmp_path / "text.npy").write_text("no array")
    for name, text in (("few", r"int64 of shape \[3\] over 1 vs at least 6 integers"),
                       ("floats", r"float64 of shape \[6\] over 1 vs at least 6 integers"),
                       ("text", "vs a .npy file"), ("none", "vs a .npy file")):
        with pytest.raises(BadParameter, match=text):
            attention.load_lengths(tmp_path / f"{name}.npy", 6)


@pytest.mark.parametrize("schedule", attention.SCHEDULES)
def test_a_request_that_does_not_exist(schedule):
    """What the host says of a request is checked where it is used: an address behind the last request."""
    program, tensors, streams = made({**SMALL, "schedule": schedule}, LENGTHS)
    streams["number" if schedule in ("queued", "dynamic") else "number1"][-1] = 6
    first = r"load_q.*'q'" if schedule == "queued" else r"load_new_k\d.*'k_new'"
    with pytest.raises(ViewOutOfRange, match=first.replace(".*", ".*address 6 .* vs tiles of tensor ") + r" 0\.\.5"):
        interpret(program, tensors, streams, NUMERICS)
