"""Programs and tasks of the sweep's tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.dispatch import cache_directory
from sim.sweep.content import model_hash
from sim.sweep.points import Axis, Grid
from sim.sweep.work import Task
from step_lang import Program, bf16, ops
from step_lang.errors import BadParameter
from step_lang.hwconfig import HardwareConfig
from step_lang.memory_config import MemoryConfig

__all__ = ["HW", "Copy", "copy_program", "fresh_cache", "tasks_of"]

T = 4
HW = HardwareConfig(tile=T)


def copy_program(rows: int = 1, cols: int = 1) -> Program:
    """From memory to memory, ``rows x cols`` tiles. Raises `BadParameter` for 13 rows."""
    if rows == 13:
        raise BadParameter("rows: 13 vs a number that brings luck")
    with Program("copy") as p:
        x, y = (p.tensor(name, (rows * T, cols * T), bf16) for name in "xy")
        ops.linear_offchip_store(ops.linear_offchip_load(x, (T, T), name="load_x"), y, name="store_y")
    return p


@dataclass(frozen=True)
class Copy:
    """Builder of `copy_program` that can be sent to workers."""

    def __call__(self, parameters: Mapping[str, Any]) -> tuple[Program, Mapping[str, Any]]:
        return copy_program(**parameters), {}


def tasks_of(cache: Path, rows: tuple[int, ...], intervals: tuple[int, ...] = (2,)) -> list[Task]:
    """Tasks for `copy_program` of all ``rows`` on memories of all ``intervals``."""
    grid = Grid((Axis("rows", rows), Axis("memory.interval", intervals, True)))
    memories = {interval: HardwareConfig(tile=T, memory=MemoryConfig(interval=interval)) for interval in intervals}
    return [Task(i, point, Copy(), memories[point.hardware["memory.interval"]], {}, "beat", model_hash(), str(cache))
            for i, point in enumerate(grid.points())]


def fresh_cache(directory: Path) -> dict[str, str]:
    """Environment with a cache of its own that has the usual one's compiled engines and hashes of sources: both take
    long."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("engine", "sources"):
        usual = cache_directory() / name
        usual.mkdir(parents=True, exist_ok=True)
        (directory / name).symlink_to(usual.resolve())
    return {"STEP_HW_CACHE": str(directory)}
