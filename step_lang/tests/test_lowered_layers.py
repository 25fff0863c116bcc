"""The mixture-of-experts, attention and whole-layer programs over physical tiles: the same tokens and bits on every
stream."""

import pytest

from examples import attention, layer, moe, qkv, simplified_moe
from step_lang.tests.lowered import assert_lowered_equals

MOE = {"batch": 6, "experts": 4, "hidden": 8, "intermediate": 16, "tile_f": 8}
ATTENTION = {"batch": 4, "regions": 2, "queries": 4, "dim": 8, "kv_tile": 4, "capacity": 12}


def agree(module, tile, parameters, **asked):
    program = module.build(**parameters)
    assert_lowered_equals(program, tile, module.inputs(program), module.streams(program, **asked))


@pytest.mark.parametrize("tile", [4, 16])   # at T = 16 a packed tile of 4 rows is a part of a physical one
def test_simplified_moe(tile):
    agree(simplified_moe, tile, {})


@pytest.mark.parametrize("regions", [4, 2, 1])
@pytest.mark.parametrize("tiling", [{"tiling": "static", "tile_rows": 4}, {"tiling": "static", "tile_rows": 8},
                                    {"tiling": "dynamic"}], ids=str)
def test_moe(tiling, regions):
    agree(moe, 4, {**MOE, **tiling, "regions": regions})


@pytest.mark.parametrize("regions", [16, 4])
def test_idle_experts(regions):
    agree(moe, 2, {**MOE, "experts": 16, "idle": 6, "regions": regions}, idle=6)


@pytest.mark.parametrize("tiling", [{"tiling": "static", "tile_rows": 4}, {"tiling": "dynamic"}], ids=str)
def test_one_token(tiling):
    agree(moe, 4, {**MOE, **tiling, "batch": 1})


@pytest.mark.parametrize("more", [{"shared_experts": 2, "tiling": "static", "tile_rows": 4},
                                  {"shared_experts": 1, "batch": 8}, {"groups": 2}], ids=str)
def test_shared_experts_and_groups(more):
    agree(moe, 4, {**MOE, **more})


def test_qkv():
    program = qkv.build(batch=8, hidden=8, heads=4, kv_heads=2, head_dim=4, tile_b=4)
    assert_lowered_equals(program, 4, qkv.inputs(program), {})


@pytest.mark.parametrize("way", [{}, {"tiling": "static", "projection": False, "tile_b": 4, "batch": 8}], ids=str)
def test_layer(way):
    agree(layer, 4, {**way, "schedule": "interleaved"})


@pytest.mark.parametrize("schedule", ["coarse", "interleaved"])
@pytest.mark.parametrize("lengths", [[3, 8, 5, 11], [0, 4, 0, 1]], ids=str)
def test_attention(schedule, lengths):
    program = attention.build(**ATTENTION, schedule=schedule)
    assert_lowered_equals(program, 4, attention.inputs(program), attention.request_streams(program, lengths))


def test_attention_with_cache_tiles_of_several_physical_ones():
    """Valid rows of a tile are one or two tiles of T = 4, other numbers of them in each region."""
    program = attention.build(**{**ATTENTION, "kv_tile": 8, "capacity": 16, "schedule": "interleaved"})
    streams = attention.request_streams(program, [7, 1, 13, 2])
    assert_lowered_equals(program, 4, attention.inputs(program), streams)
