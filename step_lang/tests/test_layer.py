"""Queries, keys and values, and whole layers: values against float64, traffic against its expressions, whole models
layer after layer."""

import numpy as np
import pytest

from examples import attention, layer, qkv
from examples.models import model
from examples.routing import expert_counts
from step_lang import BadParameter, Numerics, interpret, metrics

NUMERICS = Numerics(group=4)


def close(got, reference):
    """Within 2% of the largest value: what bf16 between the parts leaves of float64."""
    return np.abs(got.astype(np.float64) - reference).max() < 0.02 * np.abs(reference).max()


def exact_traffic(program, result):
    return metrics(program).substitute(result.symbols).offchip_bytes == result.offchip_bytes


@pytest.mark.parametrize("tiles", [{}, {"tile_b": 4}, {"tile_b": 2, "tile_n": 8}, {"tile_n": 192}], ids=str)
def test_qkv(tiles):
    program = qkv.build(batch=8, **tiles)
    tensors = qkv.inputs(program)
    result = interpret(program, tensors, {}, NUMERICS)
    assert close(result.tensors["qkv"], qkv.reference(tensors))
    assert exact_traffic(program, result)
    # The weights once for each tile of tokens.
    times = 8 // tiles.get("tile_b", 8)
    assert result.rows["load_w_qkv"]["offchip_read_bytes"] == times * 64 * 12 * 16 * 2


def test_qkv_of_a_model():
    program = qkv.build(model="qwen3-30b-a3b", compute_bw=4096)
    assert program.tensors["w_qkv"].shape == (2048, (32 + 2 * 4) * 128)
    assert program.operator("qkv_matmul").compute_bw == 4096


@pytest.mark.parametrize("tiles, text", [({"tile_b": 3}, "tile_b: 3 vs a divisor of 64, the tokens"),
                                         ({"tile_n": 5}, "tile_n: 5 vs a divisor of 192, the columns")])
def test_wrong_tiles(tiles, text):
    with pytest.raises(BadParameter, match=text):
        qkv.build(**tiles)


LENGTHS = [4, 0, 31, 9]
WAYS = [
    {},
    {"schedule": "interleaved"},
    {"schedule": "queued"},
    {"schedule": "coarse", "attention_regions": 4, "block": 3, "tiling": "static", "tile_rows": 2, "regions": 2},
    {"shared_experts": 2, "tile_b": 2},
    {"shared_experts": 1, "tiling": "static", "tile_rows": 2, "projection": False},
    {"heads": 6, "kv_heads": 2, "head_dim": 4, "experts": 6, "top_k": 3, "attention_regions": 1, "regions": 1},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_layer(way):
    program = layer.build(**way)
    program.check()
    heads = way.get("kv_heads", 2)
    lengths = [n for n in LENGTHS for _ in range(heads)]
    streams = {**layer.streams(program), **attention.request_streams(program, lengths)}
    tensors = layer.inputs(program)
    result = interpret(program, tensors, streams, NUMERICS)
    assert close(result.tensors["y"], layer.reference(program, tensors, streams, LENGTHS))
    assert exact_traffic(program, result)


def test_parts_follow_one_another():
    """Attention reads what was made in this graph, not what memory held: other contents change nothing."""
    program = layer.build()
    streams, tensors = layer.streams(program), layer.inputs(program)
    first = interpret(program, tensors, streams, NUMERICS).tensors["y"]
    for name in ("q", "k_new", "v_new", "out", "h"):
        tensors[name] = np.full_like(tensors[name], 3.0)
    assert interpret(program, tensors, streams, NUMERICS).tensors["y"].tobytes() == first.tobytes()
    tensors["w_qkv"] = -tensors["w_qkv"]
    assert interpret(program, tensors, streams, NUMERICS).tensors["y"].tobytes() != first.tobytes()


def test_a_layer_of_a_model():
    program = layer.build(model="qwen3-30b-a3b", batch=64, tile_f=64, capacity=6464, kv_tile=32, attention_regions=4,
                          compute_bw=4096, attention_bw=2048)
    program.check()
    shapes = {name: tensor.shape for name, tensor in program.tensors.items()}
    assert shapes["q"] == (64 * 32, 128) and shapes["k_cache"] == (64 * 4 * 6464, 128) and shapes["y"] == (64, 2048)
    assert program.operator("qk0").compute_bw == 2048 and program.operator("up_matmul127").compute_bw == 4096
    streams = layer.streams(program)
    assert len(streams["number"]) == 256 and streams["kind"] == [[{0}] * 32 + [{1}] * 4 + [{2}] * 4]
    assert streams["length"][:8] == [streams["length"][0]] * 4 + [streams["length"][4]] * 4


@pytest.mark.parametrize("parameters", [layer.SWEEPS["fig17"][i] for i in (0, 4, 9)], ids=str)
def test_full_size(parameters):
    program = layer.build(**parameters)
    program.check()
    found = model(parameters["model"])
    assert program.tensors["k_new"].shape == (64 * found.kv_heads, 128)
    assert f"down{found.experts - 1}" in program.tensors and "w_o" not in program.tensors


OWN = """[own]
source = "a test"
layers = 5
hidden = 16
experts = 4
top_k = 2
intermediate = 16
heads = 4
kv_heads = 2
head_dim = 8
vocabulary = 10
dense_layers = 2
dense_intermediate = 32
billions = 1
"""


def counts(streams, experts):
    return expert_counts(np.array([[next(iter(e)) for e in row] for row in streams["choice"]]), experts).tolist()


def test_layers_of_a_whole_model(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    graphs = list(layer.layers(str(path), seed=1, batch=8))
    assert len(graphs) == model(str(path)).layers == 5
    programs = [program for program, _ in graphs]
    assert programs[0] is programs[1] and programs[2] is programs[3] is programs[4] is not programs[0]
    assert programs[0].tensors["gate0"].shape == (4 * 16, 8)  # dense: one expert, F = 32 in tiles of 8
    assert counts(graphs[0][1], 1) == [8]
    busy = [counts(streams, 4) for _, streams in graphs[2:]]
    assert len({tuple(c) for c in busy}) > 1 and len({tuple(sorted(c)) for c in busy}) == 1
    for program, streams in (graphs[0], graphs[4]):
        tensors = layer.inputs(program)
        result = interpret(program, tensors, streams, NUMERICS)
        lengths = attention.random_lengths(8, 32, seed=1)
        assert close(result.tensors["y"], layer.reference(program, tensors, streams, lengths))


def test_layers_take_the_traces_of_a_directory(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(OWN.replace("dense_layers = 2\ndense_intermediate = 32\n", ""))
    for number, experts in enumerate(([0, 1], [2, 3])):
        np.savez(tmp_path / f"{number}.npz", data=np.tile(experts, (8, 1)))
    found = [counts(streams, 4) for _, streams in layer.layers(str(path), trace=str(tmp_path), batch=8)]
    assert found == [[8, 8, 0, 0]] + 4 * [[0, 0, 8, 8]]


@pytest.mark.parametrize("parameters, text", [
    ({"kv_heads": 3}, "kv_heads: 3 vs a divisor of the 4 heads"),
    ({"schedule": "best"}, "schedule: 'best' vs one of coarse, interleaved, queued, dynamic"),
    ({"tile_b": 3}, "tile_b: 3 vs a divisor of 4, the tokens"),
    ({"tile_f": 5}, "tile_f: 5 vs a divisor of intermediate 16"),
    ({"capacity": 30}, "capacity: 30 vs a multiple of kv_tile 8"),
])
def test_wrong_parameters(parameters, text):
    with pytest.raises(BadParameter, match=text):
        layer.build(**parameters)
