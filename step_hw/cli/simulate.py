"""``step-hw simulate``: the performance model's word on a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from step_lang.roofline import roofline

from .options import calibration_constants, design_of, program_options, step, table_of, write_json

__all__ = ["simulate"]


@click.command()
@program_options
@click.option("--calibration", type=click.Path(path_type=Path), default=None, metavar="FILE", help="Written by 'step-hw calibrate'.")
@click.option("--stalls/--no-stalls", default=True, help="Where each unit spent its cycles.")
def simulate(program: str, settings: tuple[str, ...], config: Path | None, overrides: tuple[str, ...], output: Path | None,
             json_path: Path | None, calibration: Path | None, stalls: bool) -> None:
    """Predict cycles, traffic, peaks and stalls of PROGRAM without RTL."""
    from sim.prediction import predict
    from step_lang import metrics

    _, design = design_of(program, settings, config, overrides)
    constants, where = calibration_constants(calibration, design.hw)
    with step("stepping the model"):
        result = predict(design.graph, design.hw, constants)
    symbols = {str(k): v for k, v in getattr(design, "symbols", {}).items()}
    costs = metrics(design.program).substitute(symbols)
    bound = roofline(design.program, design.hw, symbols)
    out = Console(highlight=False)
    out.print(table_of(f"{design.program.name} on T = {design.hw.tile}, predicted from {where}", [
        ("cycles", f"{result.cycles:,} (first off-chip read to last off-chip write)"),
        ("roofline", f"{bound.cycles:,.0f} cycles, {bound.bound} bound: {bound.cycles / result.cycles:.1%} reached"),
        ("off-chip", f"{result.offchip_read_bytes:,} B read, {result.offchip_write_bytes:,} B written"),
        ("on-chip", f"{costs.onchip_bytes} B by SPEC section 5; peak frames "
                    + (", ".join(f"{name} {n}" for name, n in result.peak_frames.items()) or "none")),
        ("model", f"{result.wall_seconds:.3f} s"),
        *(("warning", text) for text in design.graph.warnings)]))
    if stalls:
        out.print(stall_table(result.stalls, result.total_cycles))
    document: dict[str, Any] = {"program": design.program.name, "onchip_bytes": int(costs.onchip_bytes), "flops": int(costs.flops),
                                "roofline_cycles": bound.cycles, "constants": constants, **result.as_json()}
    write_json(json_path or (output / "prediction.json" if output else None), document)


def stall_table(stalls: dict[str, dict[str, int]], total: int) -> Table:
    """Share of cycles that each unit was busy, starved of input, blocked by its output or waiting for memory."""
    table = Table(title="where each unit's cycles went", title_justify="left", box=None, padding=(0, 2))
    names = list(next(iter(stalls.values()), {}))
    table.add_column("unit")
    for name in names:
        table.add_column(name, justify="right")
    for unit, counts in stalls.items():
        table.add_row(unit, *(f"{counts[name] / max(total, 1):.1%}" for name in names))
    return table
