"""``step-hw size-fifos``: how deep a program's links must be."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .options import (
    calibration_constants,
    calibration_option,
    console,
    design_of,
    make_directory,
    program_options,
    seed_option,
    show,
    step,
    table_of,
    titled,
    whole_file,
    write_json,
)

if TYPE_CHECKING:
    from sim.sizing import Depths, Sizing
    from step_hw.design import Design

__all__ = ["size_fifos"]


@click.command("size-fifos")
@program_options
@calibration_option
@seed_option
@click.option("--tolerance", default=0.0, show_default=True, type=click.FloatRange(0, 1, max_open=True),
              help="Share of the cycles that full throughput may lose, such as 0.01.")
def size_fifos(
    program: str,
    settings: tuple[str, ...],
    config: Path | None,
    overrides: tuple[str, ...],
    output: Path | None,
    json_path: Path | None,
    calibration: Path | None,
    seed: int,
    tolerance: float,
) -> None:
    """Find the least FIFO depths for PROGRAM and its input sizes.

    Two goals: no deadlock, and the cycles of unbounded FIFOs. Each is proven by running the model with every deepened
    link one beat shallower. Writes deadlock_free.toml and full_throughput.toml, the hardware configuration with the
    found [link.depths], for --config of the other commands, to -o (default: build/<program>).
    """
    from sim.sizing import size_fifos as find

    began = time.perf_counter()
    _, design = design_of(program, settings, config, overrides, seed)
    constants, where = calibration_constants(calibration, design.hw)
    with step("lowering"):
        links = len(design.graph.links)
    with Progress(TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"),
                  TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("sizing", note="")

        def report(phase: str, settled: int, of: int, runs: int) -> None:
            progress.update(task, description=phase, completed=settled, total=max(of, 1),
                            note=f"{settled}/{of} links, {runs} runs")

        found = find(design, calibration=constants, tolerance=tolerance, report=report)
    output = make_directory(output or Path("build") / design.program.name)
    files = {"deadlock_free": found.deadlock_free, "full_throughput": found.full}
    for name, depths in files.items():
        with whole_file(output / f"{name}.toml", "configuration") as partial:
            partial.write_text(depths.apply(design.hw).to_toml())
    write_json(json_path, {"program": design.program.name, "tile": design.hw.tile, "links": links, "seed": seed,
                           "constants": constants, **found.as_json(), "wall_seconds": time.perf_counter() - began})
    show(_summary(design, found, where),
         *_goal("no deadlock", design, found.deadlock_free, output / "deadlock_free.toml"),
         *_goal("full throughput", design, found.full, output / "full_throughput.toml"))


def _summary(design: Design, found: Sizing, where: str) -> Any:
    default = f"all links {found.default} deep"
    rows = [
        ("unbounded",
         f"{found.unbounded_cycles:,} cycles ({found.unbounded_total_cycles:,} in all), model from {where}"),
        (default, found.default_deadlock.splitlines()[0] if found.default_total_cycles is None
         else f"{found.default_total_cycles:,} cycles in all"),
        *((f"least for {goal}", f"{depths.cycles:,} cycles ({depths.total_cycles:,} in all), {len(depths.depths)} of "
           f"{len(design.graph.links)} links deeper, {depths.beats:,} beats, {depths.bits:,} data bits more")
          for goal, depths in (("no deadlock", found.deadlock_free), ("full throughput", found.full))),
        ("tolerance", f"{found.tolerance:.2%} of the cycles"),
        ("model runs", f"{found.runs}"),
    ]
    if found.capped:
        rows.append(("note", f"full at the most that can be configured: {', '.join(found.capped)}"))
    return table_of(f"{design.program.name} on T = {design.hw.tile}: FIFO depths", rows)


def _goal(goal: str, design: Design, depths: Depths, path: Path) -> list[Any]:
    if not depths.proof:
        return [f"{goal}: no link deeper than {design.hw.link_depth}; written: {path}"]
    table = Table(box=None, padding=(0, 2))
    table.add_column("link")
    table.add_column("depth", justify="right")
    table.add_column("with one less")
    for proof in depths.proof:
        table.add_row(proof.link, str(proof.depth), proof.outcome)
    return [titled(f"{goal}; written: {path}", table)]
