"""Softmax over rows of ragged length: a block of rows takes as many tiles as its longest row needs, is kept on-chip
while its maxima and sums are found, and leaves tile by tile."""

from __future__ import annotations

from typing import Any

import numpy as np

from examples.data import random_tensor
from step_lang import Program, Tile, bf16, fn, ops, ragged, scalar, u32
from step_lang.errors import BadParameter

__all__ = ["block_streams", "build", "inputs", "ragged_rows", "reference", "row_lengths", "streams"]


def build(blocks: int = 6, tile_rows: int = 16, tile_cols: int = 16, capacity: int = 32) -> Program:
    """``y``, the softmax of each row of ``x``: ``blocks`` blocks of ``tile_rows`` rows, one behind the other as tiles
    ``[tile_rows, tile_cols]``, ``capacity`` of them in all.

    ``tiles`` says how many tiles each block has, ``first`` where they begin. What is behind the end of a row is minus
    infinity in ``x`` and 0 in ``y``; where a whole tile would be, there is none.
    """
    with Program("ragged_softmax") as p:
        x = p.tensor("x", (capacity * tile_rows, tile_cols), bf16)
        y = p.tensor("y", (capacity * tile_rows, tile_cols), bf16)

        first = ops.input_stream("first", scalar(u32), (blocks,))
        count = ops.input_stream("tiles", scalar(u32), (blocks,))
        blocks_of = ops.repeat(ops.zip(first, count, name="range"), 1, name="ranges")
        place = ops.flat_map(fn.address_range(), blocks_of, name="place").assume((blocks, ragged("t")))

        tiles = ops.random_offchip_load(place, x, (tile_rows, tile_cols), name="load_x")
        kept = ops.bufferize(tiles, rank=1, name="keep_x")
        largest = ops.accum(fn.row_max(), tiles, rank=1, name="row_max")
        again = ops.streamify(kept, ref=largest, name="x_again").assume(place.shape)
        everywhere = ops.expand(ops.repeat(largest, 1, name="max_once"), place, rank=1, name="max_again")
        powers = ops.map(fn.exp(), ops.map(fn.sub(), again, everywhere, name="shift"), name="exp")

        kept = ops.bufferize(powers, rank=1, name="keep_exp")
        total = ops.map(fn.cast(bf16), ops.accum(fn.row_sum(), powers, rank=1, name="row_sum"), name="sum_cast")
        again = ops.streamify(kept, ref=total, name="exp_again").assume(place.shape)
        everywhere = ops.expand(ops.repeat(total, 1, name="sum_once"), place, rank=1, name="sum_again")
        ops.linear_offchip_store(ops.map(fn.div(), again, everywhere, name="divide"), y, name="store_y")
    return p


def _sizes(program: Program) -> tuple[int, int, int, int]:
    """Blocks, tiles that there is room for, rows and columns of a tile."""
    tile = program.operator("load_x").output.type
    assert isinstance(tile, Tile) and isinstance(tile.rows, int) and isinstance(tile.cols, int)
    room = program.tensors["x"].shape[0] // tile.rows
    return int(program.operator("tiles").output.shape[0]), room, tile.rows, tile.cols


def row_lengths(program: Program, seed: int = 0) -> np.ndarray:
    """Made lengths ``[blocks, tile_rows]``, a few blocks much longer than most, the last one empty."""
    blocks, room, rows, cols = _sizes(program)
    rng = np.random.default_rng([seed, blocks, rows])
    share = rng.lognormal(sigma=1.0, size=blocks)
    most = np.maximum(1, share / share.sum() * (room - blocks)).astype(np.int64) * cols
    lengths = rng.integers(1, most[:, None], (blocks, rows), endpoint=True)
    if blocks > 1:
        lengths[-1] = 0
    return lengths


def inputs(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    """Random rows of the lengths `row_lengths`."""
    return ragged_rows(program, row_lengths(program, seed), seed)


def streams(program: Program, seed: int = 0) -> dict[str, Any]:
    """Where the blocks of rows of the lengths `row_lengths` lie."""
    return block_streams(program, row_lengths(program, seed))


def ragged_rows(program: Program, lengths: Any, seed: int = 0) -> dict[str, np.ndarray]:
    """``x``: random rows of ``lengths`` (``[blocks, tile_rows]``), minus infinity behind them."""
    _, room, rows, cols = _sizes(program)
    x = random_tensor("x", (room, rows, cols), bf16, seed, 2.0)
    for block, first, count in _places(program, lengths):
        column = np.arange(count * cols).reshape(count, 1, cols)
        x[first:first + count][np.broadcast_to(column >= block[:, None], (count, rows, cols))] = -np.inf
    return {"x": x.reshape(room * rows, cols)}


def block_streams(program: Program, lengths: Any) -> dict[str, Any]:
    """Values of ``program``'s input streams for rows of ``lengths`` (``[blocks, tile_rows]``)."""
    places = _places(program, lengths)
    return {"first": [first for _, first, _ in places], "tiles": [count for _, _, count in places]}


def _places(program: Program, lengths: Any) -> list[tuple[np.ndarray, int, int]]:
    """For each block its rows' lengths, its first tile and how many it has.

    Raises `BadParameter` for other blocks than the program has, for more tiles than there is room for, and for a row
    without elements in a block that has some.
    """
    blocks, room, rows, cols = _sizes(program)
    lengths = np.asarray(lengths, dtype=np.int64)
    if lengths.shape != (blocks, rows):
        raise BadParameter(f"lengths: shape {list(lengths.shape)} vs [{blocks}, {rows}], the rows of each block")
    counts = -(-lengths.max(axis=1) // cols)
    if counts.sum() > room:
        raise BadParameter(f"lengths: {int(counts.sum())} tiles vs room for {room}", fix="raise capacity")
    if ((lengths < 1) & (counts[:, None] > 0)).any():
        raise BadParameter("lengths: a row of 0 elements vs at least 1 in a block that has any")
    return [(block, int(first), int(count))
            for block, first, count in zip(lengths, np.cumsum(counts) - counts, counts)]


def reference(program: Program, tensors: dict[str, np.ndarray], lengths: Any) -> list[np.ndarray]:
    """The softmax of each row in float64, block after block."""
    _, _, rows, cols = _sizes(program)
    found = []
    for block, first, count in _places(program, lengths):
        tiles = tensors["x"].reshape(-1, rows, cols)[first:first + count].astype(np.float64)
        for row, length in enumerate(block):
            x = tiles[:, row].reshape(-1)[:length]
            powers = np.exp(x - x.max(initial=-np.inf))
            found.append(powers / powers.sum())
    return found
