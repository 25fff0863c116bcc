"""``step-hw calibrate``: micro-benchmarks on RTL tell what the units do not state."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from .options import (
    check_place,
    config_options,
    configuration,
    console,
    json_option,
    make_directory,
    show,
    step,
    titled,
    write_json,
)

__all__ = ["calibrate"]


@click.command()
@click.argument(
    "output", type=click.Path(path_type=Path), default=Path("calibration.toml"), metavar="[CALIBRATION.toml]"
)
@config_options
@json_option
def calibrate(output: Path, config: Path | None, overrides: tuple[str, ...], json_path: Path | None) -> None:
    """Fit the model to this hardware by micro-benchmarks on RTL.

    The file is for --calibration of the other commands, with the same --config and --hw.
    """
    from rtl_tests.calibrate import calibrate as measure
    from sim.calibration import summary

    hw = configuration(config, overrides)
    make_directory(output.parent)
    check_place(output, "calibration file")
    with step(f"calibrating T = {hw.tile} on RTL"):
        result = measure(hw, lambda name: console.print(f"  {name}", style="dim"))
    result.save(output)
    write_json(
        json_path,
        {
            "hardware": result.hardware,
            "constants": result.constants,
            "file": str(output),
            "fitted": [vars(row) | {"error": row.error} for row in result.fitted],
            "held_out": [vars(row) | {"error": row.error} for row in result.held_out],
            **summary(result.held_out),
        },
    )
    table = Table(box=None, padding=(0, 2))
    for column in ("program", "RTL cycles", "model cycles", "error", ""):
        table.add_column(column, justify="right" if "cycles" in column or column == "error" else "left")
    for note, rows in (("fitted", result.fitted), ("held out", result.held_out)):
        for row in rows:
            table.add_row(row.name, f"{row.rtl_cycles:,}", f"{row.model_cycles:,}", f"{row.error:+.2%}", note)
    show(
        titled(f"calibration of T = {hw.tile}", table),
        "constants: " + ", ".join(f"{name} = {value}" for name, value in result.constants.items()),
        f"written to {output}",
    )
