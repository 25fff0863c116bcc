"""Commands run in this process or as a process of their own, and the programs they are run on."""

from __future__ import annotations

import io
import os
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from step_hw.cli import main

__all__ = ["COPY", "FORK_JOIN", "MERGE", "T4", "Outcome", "environment", "step_hw", "write"]

T4 = ("--hw", "tile.size=4")

COPY = """
from step_lang import Program, bf16, ops

SWEEPS = {"sizes": [{"rows": 1}, {"rows": 2}, {"rows": 4}], "nothing": []}


def build(rows: int = 2, cols: int = 4, t: int = 4):
    with Program("copy") as p:
        x = p.tensor("x", (rows * t, cols * t), bf16)
        y = p.tensor("y", (rows * t, cols * t), bf16)
        ops.linear_offchip_store(ops.linear_offchip_load(x, (t, t), name="load_x"), y, name="store_y")
    return p
"""
"""From memory to memory: one netlist at T = 4 for all sizes, that of the fitted micro-benchmarks."""

FORK_JOIN = """
from step_lang import Program, bf16, fn, ops


def build(n: int = 8, t: int = 4):
    with Program("fork_join") as p:
        x = p.tensor("x", (2 * t, n * t), bf16)
        y = p.tensor("y", (2 * t, n * t), bf16)
        tiles = ops.linear_offchip_load(x, (t, t), shape=(2, n), stride=(n, 1), name="load_x")
        largest = ops.accum(fn.max(), tiles, rank=1, name="fold")
        back = ops.repeat(largest, n, name="back")
        ops.linear_offchip_store(ops.map(fn.max(), tiles, back, name="join"), y, name="store_y")
    return p
"""
"""``join`` wants a tile of x and the fold of all n tiles: the link to it must hold what passes meanwhile."""


MERGE = """
from step_lang import Program, bf16, fn, ops


def build(t: int = 2):
    with Program("merge_two") as p:
        streams = []
        for name, n in (("a", 2), ("b", 4)):
            x = p.tensor(name, (n * t, t), bf16)
            streams.append(ops.linear_offchip_load(x, (t, t), shape=(n,), stride=(1,), name=f"load_{name}"))
        late = ops.map(fn.exp(), streams[0], name="late")
        merged, _ = ops.eager_merge([late, streams[1]], name="merge")
        ops.linear_offchip_store(merged, p.tensor("y", (6 * t, t), bf16), name="store_y")
    return p
"""
"""Tiles of two tensors in order of arrival, which is not index order."""


@dataclass
class Outcome:
    """What a command left."""

    code: int
    out: str
    err: str


def write(directory: Path, text: str, name: str = "program.py") -> str:
    """A program file; its path."""
    path = directory / name
    path.write_text(text)
    return str(path)


def step_hw(*arguments: object) -> Outcome:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as request:
            code = int(request.code or 0)
    return Outcome(code, out.getvalue(), err.getvalue())


def environment(**more: str) -> dict[str, str]:
    """For ``python -m step_hw`` as a process of its own, in any directory."""
    root = str(Path(__file__).resolve().parents[2])
    paths = [root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}
