"""Small programs that calibration measures: some to fit to, others to report the error on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from step_lang import Program, bf16, fn, ops
from step_lang.hwconfig import HardwareConfig

__all__ = ["FITTED", "HELD_OUT", "Microbenchmark"]


@dataclass(frozen=True)
class Microbenchmark:
    """A named program of a size that follows T."""

    name: str
    build: Callable[[HardwareConfig], Program]


def _copy(rows: int, cols: int) -> Callable[[HardwareConfig], Program]:
    def build(hw: HardwareConfig) -> Program:
        """``rows x cols`` tiles from memory to memory: the read path, the write path and their sharing of channels."""
        t = hw.tile
        with Program("copy") as p:
            x = p.tensor("x", (rows * t, cols * t), bf16)
            y = p.tensor("y", (rows * t, cols * t), bf16)
            ops.linear_offchip_store(ops.linear_offchip_load(x, (t, t), name="load_x"), y, name="store_y")
        return p

    return build


def _add(hw: HardwareConfig) -> Program:
    """Two loads that meet in an elementwise unit."""
    t = hw.tile
    with Program("two_loads") as p:
        x = p.tensor("x", (4 * t, 8 * t), bf16)
        w = p.tensor("w", (4 * t, 8 * t), bf16)
        y = p.tensor("y", (4 * t, 8 * t), bf16)
        total = ops.map(
            fn.add(),
            ops.linear_offchip_load(x, (t, t), name="load_x"),
            ops.linear_offchip_load(w, (t, t), name="load_w"),
            name="add",
        )
        ops.linear_offchip_store(total, y, name="store_y")
    return p


def _reload(hw: HardwareConfig) -> Program:
    """Each tile read three times by a strided view, folded on chip, stored once."""
    t = hw.tile
    with Program("reload") as p:
        x = p.tensor("x", (8 * t, t), bf16)
        y = p.tensor("y", (8 * t, t), bf16)
        tiles = ops.linear_offchip_load(x, (t, t), shape=(8, 3), stride=(1, 0), name="load_x")
        ops.linear_offchip_store(ops.accum(fn.max(), tiles, rank=1, name="fold"), y, name="store_y")
    return p


def _matmul(hw: HardwareConfig) -> Program:
    """A small matrix product: buffers and dot array at work."""
    t = hw.tile
    with Program("product") as p:
        a = p.tensor("a", (4 * t, 2 * t), bf16)
        b = p.tensor("b", (2 * t, 2 * t), bf16)
        c = p.tensor("c", (4 * t, 2 * t), bf16)
        rows = ops.linear_offchip_load(a, (2 * t, 2 * t), shape=(2,), stride=(1,), name="load_a")
        weights = ops.linear_offchip_load(b, (2 * t, 2 * t), shape=(2,), stride=(0,), name="load_b")
        out = ops.map(fn.cast(dtype="bf16"), ops.map(fn.matmul(), rows, weights, name="product"), name="cast")
        ops.linear_offchip_store(out, c, name="store_c")
    return p


FITTED = (
    Microbenchmark("copy_1", _copy(1, 1)),
    Microbenchmark("copy_16", _copy(4, 4)),
    Microbenchmark("copy_128", _copy(16, 8)),
)
"""What constants are fitted to: one netlist serves all."""

HELD_OUT = (Microbenchmark("two_loads", _add), Microbenchmark("reload", _reload), Microbenchmark("product", _matmul))
"""What the error is reported on."""
