"""The mixture-of-experts programs: bit for bit what their definition says, however rows are tiled and experts share
regions, and the traffic that their expressions say."""


import numpy as np
import pytest

from examples import moe, simplified_moe
from examples.routing import MIXTRAL_B64, TRACE_COUNTS, choose_experts, expert_counts, load_experts, spread_counts
from step_lang import BadParameter, Numerics, interpret, metrics
from step_lang import numerics as num
from step_lang.tests.traces import trace_path

GROUP = 4
NUMERICS = Numerics(group=GROUP)

SMALL = {"batch": 12, "experts": 8, "hidden": 8, "intermediate": 16, "tile_f": 8}
MANY = {"batch": 10, "experts": 16, "top_k": 3, "hidden": 8, "intermediate": 8, "tile_f": 4, "idle": 6}
ONE = {"batch": 1, "experts": 4, "hidden": 8, "intermediate": 8, "tile_f": 8}
TILINGS = [{"tiling": "static", "tile_rows": rows} for rows in (1, 2, 4, 8)] + [{"tiling": "dynamic"}]


def made(parameters, module=moe, seed=0):
    """Program, tensors, input streams."""
    program = module.build(**parameters)
    asked = {name: parameters[name] for name in ("idle", "trace") if name in parameters}
    return program, module.inputs(program, seed), module.streams(program, seed, **asked)


def matmul(a, b):
    return NUMERICS.matmul(a[None], b[None])[0]


def bf16(x):
    return num.cast(x, "bf16")


def layer(program, tensors, streams, served, tile_f):
    """``y`` by the definitions of the numbers: token by token, expert by expert in the order ``served``, one list a
    token. F is folded in tiles of ``tile_f``, of which a group of products may be a part."""
    x = tensors["x"]
    y = np.zeros_like(x)
    for t, (chosen, order) in enumerate(zip(streams["choice"], served, strict=True)):
        experts = [next(iter(c)) for c in chosen]
        total = np.zeros((1, x.shape[1]), dtype=x.dtype)
        assert sorted(order) == sorted(experts)
        for e in order:
            gate, up, down = moe.expert_weights(program, tensors, e)
            row = x[t:t + 1]
            h = num.mul(num.unary("silu", bf16(matmul(row, gate))), bf16(matmul(row, up)))
            out = np.zeros((1, 1, x.shape[1]), dtype=np.float32)
            for f in range(0, h.shape[1], tile_f):
                out = NUMERICS.matmul(h[None, :, f:f + tile_f], down[None, f:f + tile_f], out)
            score = tensors["scores"][t * len(experts) + experts.index(e)]
            total = num.add(total, num.mul(bf16(out[0]), score[None]))
        y[t] = total[0]
    return y


def by_token(grants, streams):
    """The grants of the reassembly as one list a token."""
    grants = list(grants)
    return [[grants.pop(0) for _ in chosen] for chosen in streams["choice"]]


def exact_traffic(program, result):
    return metrics(program).substitute(result.symbols).offchip_bytes == result.offchip_bytes


def token_counts(streams, experts):
    return expert_counts(np.array([[next(iter(e)) for e in row] for row in streams["choice"]]), experts)


def weight_bytes(parameters, streams):
    """What the packed tiles of all experts read of their weights."""
    counts = token_counts(streams, parameters["experts"])
    rows = parameters["tile_rows"] if parameters["tiling"] == "static" else max(counts)
    return int(sum(-(-counts // rows))) * 3 * parameters["hidden"] * parameters["intermediate"] * 2


@pytest.mark.parametrize("regions", [8, 4, 2, 1])
@pytest.mark.parametrize("tiling", TILINGS, ids=lambda t: t["tiling"] + str(t.get("tile_rows", "")))
def test_all_tilings_and_regions(tiling, regions):
    parameters = {**SMALL, **tiling, "regions": regions}
    program, tensors, streams = made(parameters)
    result = interpret(program, tensors, streams, NUMERICS)
    served = by_token(result.arbitration["from_experts"], streams)
    assert result.tensors["y"].tobytes() == layer(program, tensors, streams, served, SMALL["tile_f"]).tobytes()
    reference = moe.reference(program, tensors, streams)
    assert np.abs(result.tensors["y"].astype(np.float64) - reference).max() < 0.02 * np.abs(reference).max()
    assert exact_traffic(program, result)
    rows = sum(result.rows[name]["offchip_read_bytes"] for name in result.rows if name.startswith(
        ("load_gate", "load_up", "load_down")))
    assert rows == weight_bytes(parameters, streams)


def test_one_layer_whatever_the_program():
    """With two experts a token the order of the sum does not show: all programs give the same bits."""
    outputs = set()
    for tiling in TILINGS:
        for regions in (8, 4, 2, 1):
            program, tensors, streams = made({**SMALL, **tiling, "regions": regions})
            outputs.add(interpret(program, tensors, streams, NUMERICS).tensors["y"].tobytes())
    assert len(outputs) == 1


@pytest.mark.parametrize("regions", [16, 4, 1])
@pytest.mark.parametrize("tiling", [{"tiling": "static", "tile_rows": 4}, {"tiling": "dynamic"}],
                         ids=lambda t: t["tiling"])
def test_idle_experts(tiling, regions):
    """Of 16 experts 6 get no token: no tile, no weights, and no trace in the result."""
    program, tensors, streams = made({**MANY, **tiling, "regions": regions})
    idle = np.flatnonzero(token_counts(streams, 16) == 0).tolist()
    assert len(idle) == 6
    result = interpret(program, tensors, streams, NUMERICS)
    served = by_token(result.arbitration["from_experts"], streams)
    assert result.tensors["y"].tobytes() == layer(program, tensors, streams, served, MANY["tile_f"]).tobytes()
    assert exact_traffic(program, result)
    for e in idle:
        assert len(result.streams[f"pack{e}"]) == 0 and len(result.streams[f"weigh{e}"]) == 0
        if regions == 16:
            assert result.rows[f"load_gate{e}"]["offchip_read_bytes"] == 0


@pytest.mark.parametrize("regions", [4, 2])
@pytest.mark.parametrize("tiling", TILINGS[2:], ids=lambda t: t["tiling"] + str(t.get("tile_rows", "")))
def test_one_token(tiling, regions):
    program, tensors, streams = made({**ONE, **tiling, "regions": regions})
    result = interpret(program, tensors, streams, NUMERICS)
    served = by_token(result.arbitration["from_experts"], streams)
    assert result.tensors["y"].tobytes() == layer(program, tensors, streams, served, ONE["tile_f"]).tobytes()
    assert exact_traffic(program, result)


def test_order_of_arrival_is_replayed():
    """Three experts a token, tiles merged in another order and results taken in another order: what the grants say."""
    program, tensors, streams = made({**MANY, "tiling": "static", "tile_rows": 2, "regions": 4})
    first = interpret(program, tensors, streams, NUMERICS)
    rng = np.random.default_rng(5)
    grants = {name: rng.permutation(trace).tolist() for name, trace in first.arbitration.items()
              if name != "from_experts"}
    served = [rng.permutation(order).tolist() for order in by_token(first.arbitration["from_experts"], streams)]
    grants["from_experts"] = [e for order in served for e in order]
    again = interpret(program, tensors, streams, NUMERICS, arbitration=grants)
    assert again.arbitration == grants != first.arbitration
    assert again.tensors["y"].tobytes() == layer(program, tensors, streams, served, MANY["tile_f"]).tobytes()
    assert again.tensors["y"].tobytes() != first.tensors["y"].tobytes()
    assert again.offchip_bytes == first.offchip_bytes


def test_dynamic_tiling_moves_fewest_bytes():
    moved = {}
    for tiling in TILINGS:
        program, tensors, streams = made({**SMALL, **tiling})
        result = interpret(program, tensors, streams, NUMERICS)
        moved[tiling.get("tile_rows", "dynamic")] = result.offchip_bytes
    # Tiles of as many rows as the busiest expert has tokens read what dynamic tiles read, smaller ones more.
    assert moved[1] > moved[2] > moved[4] > moved["dynamic"]
    assert moved[8] == moved["dynamic"] + (token_counts(streams, 8).max() > 8) * 3 * 8 * 16 * 2


def test_merged_tiles_need_room_for_the_largest():
    """A stream of tiles of several experts has rows of its own, which are measured as the most that one has."""
    program, tensors, streams = made({**SMALL, "tiling": "dynamic", "regions": 1}, seed=1)
    result = interpret(program, tensors, streams, NUMERICS)
    counts = token_counts(streams, 8)
    assert counts[0] < counts.max()
    row = next(row for row in metrics(program).substitute(result.symbols).rows if row.name == "down_matmul0")
    hidden, tile_f = SMALL["hidden"], SMALL["tile_f"]
    assert row.onchip_bytes == 16 * tile_f * 2 + tile_f * hidden * 2 + int(counts.max()) * hidden * 4


# Experts that every token has, and sizes of models


@pytest.mark.parametrize("tiling", [{"tiling": "static", "tile_rows": 5}, {"tiling": "static", "tile_rows": 4}, {}],
                         ids=str)
@pytest.mark.parametrize("regions", [8, 2])
def test_shared_experts(tiling, regions):
    """Two of them are one of twice the F; without them the layer is the one it was."""
    parameters = {**SMALL, **tiling, "regions": regions}
    plain, tensors, streams = made(parameters)
    y = interpret(plain, tensors, streams, NUMERICS).tensors["y"]
    program, tensors, streams = made({**parameters, "shared_experts": 2})
    result = interpret(program, tensors, streams, NUMERICS)
    gate, up, down = moe.expert_weights(program, tensors, None)
    assert gate.shape == up.shape == (8, 32) and down.shape == (32, 8)
    shared = np.concatenate([swiglu(row[None], gate, up, down, 8) for row in tensors["x"]])
    assert result.tensors["y"].tobytes() == num.add(y, shared).tobytes()
    reference = moe.reference(program, tensors, streams)
    assert np.abs(result.tensors["y"].astype(np.float64) - reference).max() < 0.02 * np.abs(reference).max()
    assert exact_traffic(program, result)


def swiglu(row, gate, up, down, tile_f):
    """One token through one expert, by the definitions of the numbers."""
    h = num.mul(num.unary("silu", bf16(matmul(row, gate))), bf16(matmul(row, up)))
    out = np.zeros((1, 1, row.shape[1]), dtype=np.float32)
    for f in range(0, h.shape[1], tile_f):
        out = NUMERICS.matmul(h[None, :, f:f + tile_f], down[None, f:f + tile_f], out)
    return bf16(out[0])


@pytest.mark.parametrize("tiling", [{"tiling": "static", "tile_rows": 2}, {}], ids=str)
@pytest.mark.parametrize("groups, regions", [(2, 16), (4, 4), (16, 16)])
def test_groups_of_experts(tiling, groups, regions):
    """The same experts found in two steps: sums of a group first, then of the groups."""
    parameters = {**MANY, **tiling, "regions": regions}
    whole, _, plain = made(parameters)
    program, tensors, streams = made({**parameters, "groups": groups})
    assert moe.chosen_experts(program, streams) == moe.chosen_experts(whole, plain)
    result = interpret(program, tensors, streams, NUMERICS)
    reference = moe.reference(program, tensors, streams)
    assert np.array_equal(reference, moe.reference(whole, tensors, plain))
    assert np.abs(result.tensors["y"].astype(np.float64) - reference).max() < 0.02 * np.abs(reference).max()
    assert exact_traffic(program, result)


def test_more_experts_than_a_selector_has_bits():
    program = moe.build(model="deepseek-v3", batch=8)
    program.check()
    assert program.operator("route").output.type.n == 2 and program.operator("route_1").output.type.n == 128
    assert "down255" in program.tensors and program.tensors["down_shared"].shape == (2048, 7168)
    streams = moe.streams(program)
    assert sum(map(len, streams["route_0"])) + sum(map(len, streams["route_1"])) == 8 * 8
    assert all(max(selector) < 128 for selector in streams["route_1"])


def test_dense_layer():
    """One expert that every token has."""
    program, tensors, streams = made({"batch": 5, "experts": 1, "top_k": 1, "hidden": 8, "intermediate": 8,
                                      "tile_f": 4})
    result = interpret(program, tensors, streams, NUMERICS)
    assert result.tensors["y"].tobytes() == layer(program, tensors, streams, [[0]] * 5, 4).tobytes()


@pytest.mark.parametrize("parameters", [p for name in ("fig9", "fig10", "fig12", "fig13") for p in moe.SWEEPS[name]
                                        if p.get("tile_rows", 32) == 32 and p.get("regions", 8) == 8], ids=str)
def test_full_size(parameters):
    """Whole layers, as logical programs: sizes of the model, FLOPs/cycle of every operator, tokens of its traces."""
    program = moe.build(**parameters)
    program.check()
    experts, top_k, hidden, intermediate = (8, 2, 4096, 14336) if "mixtral" in parameters["model"] else (
        128, 8, 2048, 768)
    tile_f, regions = parameters.get("tile_f", 64), parameters.get("regions", experts)
    assert program.tensors["gate0"].shape == (experts // regions * intermediate // tile_f * hidden, tile_f)
    assert f"down{regions}" not in program.tensors and f"down{regions - 1}" in program.tensors
    computing = {op.compute_bw for op in program.operators
                 if op.kind in ("map", "accum") and not op.name.startswith("expert")}
    assert computing == {parameters["compute_bw"]}
    batch = parameters.get("batch", 64)
    counts = token_counts(moe.streams(program), experts)
    assert tuple(counts.tolist()) == TRACE_COUNTS[batch, top_k, experts]


def test_counts_of_the_traces():
    """Each token has different experts, so no expert more tokens than there are."""
    for (batch, top_k, experts), counts in TRACE_COUNTS.items():
        assert len(counts) == experts and sum(counts) == batch * top_k and max(counts) <= batch


@pytest.mark.parametrize("name", ["mixtral_b64", "mixtral_b1024", "qwen_b64", "qwen_b1024"])
def test_counts_are_those_of_the_traces(name):
    path = trace_path(f"expert_routing/{name}")
    batch, (experts, top_k) = int(name.partition("_b")[2]), (8, 2) if name.startswith("mixtral") else (128, 8)
    chosen = load_experts(path, batch, top_k, experts)
    assert tuple(expert_counts(chosen, experts).tolist()) == TRACE_COUNTS[batch, top_k, experts]


def test_model_sizes_and_given_ones():
    program = moe.build(model="deepseek-v2-lite", batch=4, experts=16, top_k=3)
    assert program.operator("choice").output.shape == (4, 3) and "down16" not in program.tensors
    assert program.tensors["down_shared"].shape == (2 * 1408, 2048)
    program = moe.build(model="llama-3-8b", batch=4)
    assert program.tensors["down0"].shape == (14336, 4096) and "down1" not in program.tensors


# Simplified MoE


@pytest.mark.parametrize("route", [
    None,                                            # as many as chance says
    [{0}] * 10,                                      # one expert idle
    [{0}, {1}] * 5,                                  # a tile of 4 rows and one of 1
    [{1}, {0, 1}, {0}, set(), {1}, {1}, {1}, {0}, {0, 1}, {1}],
], ids=["random", "idle", "even", "multi_hot"])
def test_simplified_moe(route):
    program, tensors, streams = made({}, simplified_moe)
    streams["route"] = route or streams["route"]
    result = interpret(program, tensors, streams, NUMERICS)
    expected = np.zeros_like(result.tensors["y"])
    for t, chosen in enumerate(streams["route"]):
        for e in sorted(chosen):
            row = bf16(matmul(tensors["x"][t:t + 1], tensors[f"w{e}"]))
            expected[t:t + 1] = num.add(expected[t:t + 1], row)
    assert result.tensors["y"].tobytes() == expected.tobytes()
    assert np.abs(expected.astype(np.float64) - simplified_moe.reference(tensors, streams)).max() < 0.03
    assert exact_traffic(program, result)
    tiles = [-(-sum(e in chosen for chosen in streams["route"]) // 4) for e in range(2)]
    read = [result.rows[f"load_w{e}"]["offchip_read_bytes"] for e in range(2)]
    assert read == [64 * 256 * 2 * n for n in tiles]


# Who serves whom


def test_made_routing_has_the_counts_asked_for():
    for seed in range(3):
        chosen = choose_experts(MIXTRAL_B64, 64, 2, seed)
        assert expert_counts(chosen, 8).tolist() == list(MIXTRAL_B64)
        assert all(len(set(row)) == 2 for row in chosen.tolist())
    assert (choose_experts(MIXTRAL_B64, 64, 2, 0) != choose_experts(MIXTRAL_B64, 64, 2, 1)).any()
    # Counts that leave no choice: expert 0 serves every token.
    assert expert_counts(choose_experts([5, 3, 2], 5, 2), 3).tolist() == [5, 3, 2]
    for batch, top_k, experts, idle in ((64, 8, 128, 68), (1, 2, 4, 0), (9, 3, 3, 0), (10, 3, 16, 13)):
        counts = spread_counts(batch, top_k, experts, idle)
        assert sum(counts) == batch * top_k and max(counts) <= batch and sum(n == 0 for n in counts) >= idle
        choose_experts(counts, batch, top_k)


def test_the_default_routing_is_mixtral_s():
    program = moe.build()
    assert token_counts(moe.streams(program), 8).tolist() == list(MIXTRAL_B64)


@pytest.mark.parametrize("tiling", [*TILINGS[3:], {"tiling": "static", "tile_rows": 16},
                                    {"tiling": "static", "tile_rows": 32}, {"regions": 4}, {"regions": 2},
                                    {"regions": 1}], ids=str)
def test_mixtral_trace(tiling):
    """The real routing: bit-exact, and its counts are those that the generator reproduces."""
    path = trace_path("expert_routing/mixtral_b64")
    assert expert_counts(load_experts(path, 64, 2, 8), 8).tolist() == list(MIXTRAL_B64)
    program, tensors, streams = made({**tiling, "hidden": 16, "intermediate": 32, "tile_f": 16, "trace": path})
    result = interpret(program, tensors, streams, NUMERICS)
    served = by_token(result.arbitration["from_experts"], streams)
    assert result.tensors["y"].tobytes() == layer(program, tensors, streams, served, 16).tobytes()
    assert exact_traffic(program, result)


def test_qwen_trace():
    """128 experts, of which 68 idle, on 8 regions."""
    path = trace_path("expert_routing/qwen_b64")
    program, tensors, streams = made({"experts": 128, "top_k": 8, "hidden": 8, "intermediate": 8, "tile_f": 4,
                                      "regions": 8, "trace": path})
    result = interpret(program, tensors, streams, NUMERICS)
    served = by_token(result.arbitration["from_experts"], streams)
    assert result.tensors["y"].tobytes() == layer(program, tensors, streams, served, 4).tobytes()
    assert exact_traffic(program, result)


# Mistakes


@pytest.mark.parametrize("parameters, text", [
    ({"tiling": "best"}, "tiling: 'best' vs 'static' or 'dynamic'"),
    ({"regions": 3}, "regions: 3 vs a divisor of the 8 experts"),
    ({"regions": 16}, "regions: 16 vs a divisor of the 8 experts"),
    ({"tile_f": 48}, "tile_f: 48 vs a divisor of intermediate 128"),
    ({"groups": 3}, "groups: 3 of 8 experts vs a divisor, at most 128 experts each"),
    ({"model": "deepseek-v3", "groups": 1}, "groups: 1 of 256 experts vs a divisor, at most 128 experts each"),
    ({"groups": 4, "regions": 2}, "regions: 2 vs a divisor of the 8 experts, a multiple of the 4 groups"),
    ({"model": "mixtral"}, "model: 'mixtral' vs mixtral-8x7b, "),
    ({"top_k": 9}, r"top_k, shared_experts: 9, 0 vs 1\.\.8, at least 0"),
])
def test_wrong_parameters(parameters, text):
    with pytest.raises(BadParameter, match=text):
        moe.build(**parameters)


def test_wrong_routing(tmp_path):
    np.savez(tmp_path / "trace.npz", data=np.array([[0, 1], [2, 2]]))
    np.savez(tmp_path / "other.npz", experts=np.zeros((2, 2), dtype=int))
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "below.npz", data=np.array([[0, 1], [-1, 2]]))
    trace, below = str(tmp_path / "trace.npz"), tmp_path / "below.npz"
    for call, text in (
            (lambda: load_experts(trace, 2, 2, 3), "one expert twice vs 2 different ones"),
            (lambda: load_experts(trace, 4, 2, 3), r"shape \[2, 2\] vs integers of \[batch, top_k\] = \[4, 2\]"),
            (lambda: load_experts(trace, 2, 2, 2), r"expert 2 vs experts 0\.\.1"),
            (lambda: load_experts(below, 2, 2, 3), r"expert -1 vs experts 0\.\.2"),
            (lambda: load_experts(tmp_path / "other.npz", 2, 2, 3), "vs a .npz file with key 'data'"),
            (lambda: load_experts(tmp_path / "text.npz", 2, 2, 3), "vs a .npz file with key 'data'"),
            (lambda: load_experts(tmp_path / "none.npz", 2, 2, 3), "vs a .npz file with key 'data'"),
            (lambda: choose_experts([3, 1], 2, 2), "each expert at most 2"),
            (lambda: spread_counts(4, 2, 4, 3), r"idle experts: 3 vs 0\.\.2")):
        with pytest.raises(BadParameter, match=text):
            call()
