"""The mixture-of-experts, attention, softmax and whole-layer programs in the model: on every link as many beats as the
interpreter has tokens there, so every count, address and selector that steers them is what it should be."""

import pytest

from examples import attention, layer, moe, qkv, ragged_softmax
from sim.prediction import predict
from step_hw.design import Design
from step_lang.hwconfig import HardwareConfig

MOE = {"batch": 8, "experts": 4, "hidden": 8, "intermediate": 16, "tile_f": 8}
ATTENTION = {"batch": 6, "regions": 2, "queries": 4, "dim": 8, "kv_tile": 4, "capacity": 16}
CASES = {
    "moe_static": (moe, {**MOE, "tiling": "static", "tile_rows": 4}),
    "moe_part_of_a_tile": (moe, {**MOE, "tiling": "static", "tile_rows": 2}),
    "moe_static_shared": (moe, {**MOE, "tiling": "static", "tile_rows": 4, "regions": 2}),
    "moe_dynamic_shared": (moe, {**MOE, "regions": 1}),
    "moe_every_token_s_expert": (moe, {**MOE, "tiling": "static", "tile_rows": 4, "shared_experts": 2}),
    "moe_groups": (moe, {**MOE, "groups": 2}),
    "attention_interleaved": (attention, {**ATTENTION, "schedule": "interleaved"}),
    "attention_dynamic": (attention, {**ATTENTION, "schedule": "dynamic"}),
    "qkv": (qkv, {"batch": 8, "hidden": 8, "heads": 4, "kv_heads": 2, "head_dim": 4, "tile_b": 4}),
    "layer_dynamic": (layer, {}),
    "layer_static": (layer, {"schedule": "interleaved", "tiling": "static", "projection": False}),
    "ragged_softmax": (ragged_softmax, {"blocks": 4, "tile_rows": 4, "tile_cols": 4, "capacity": 9}),
}


@pytest.mark.parametrize("name", CASES)
def test_beats_and_traffic(name):
    module, parameters = CASES[name]
    program = module.build(**parameters)
    hw = HardwareConfig(tile=4, link_depth=64)  # no need to size: none of these programs holds more
    design = Design(program, hw, module.streams(program) if hasattr(module, "streams") else {})
    prediction = predict(design.graph, hw)
    result = design.interpret(module.inputs(program), arbitration=prediction.arbitration)
    assert prediction.offchip_bytes == result.offchip_bytes
    for link in design.graph.links:
        if link.stream in result.streams:
            assert prediction.beats[link.name] == len(result.streams[link.stream]) + 1, link.name
