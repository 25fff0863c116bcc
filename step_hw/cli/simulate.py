"""``step-hw simulate``: the performance model's word on a program."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Group
from rich.table import Table

from step_lang.errors import RtlError
from step_lang.metrics import DEFAULT_COMPUTE_BW
from step_lang.roofline import allocated_flops, roofline

from .machines import MACHINE, check_fidelity, machine_from
from .options import (
    calibration_constants,
    calibration_option,
    design_of,
    load_tensors,
    note_warnings,
    program_options,
    seed_option,
    show,
    step,
    table_of,
    titled,
    write_json,
)
from .program_file import ProgramFile, parse_settings

__all__ = ["simulate"]

SHOWN = 12
"""Units that tile fidelity shows."""

_FULLEST = 4
"""Scratchpads that are named."""


@click.command()
@program_options
@calibration_option
@seed_option
@click.option("--stalls/--no-stalls", default=True, show_default=True, help="Where each unit's cycles went.")
@click.option(
    "--fidelity",
    type=click.Choice(["beat", "tile"]),
    default="beat",
    show_default=True,
    help="beat: every physical tile, RTL to the cycle. tile: logical tiles, for models of full size.",
)
@click.option(
    "--machine",
    default="hardware",
    show_default=True,
    metavar=MACHINE,
    help="For tile fidelity: the hardware of --config, the paper's roofline machine, or one with other numbers; "
    "--hw then takes its keys, such as roofline.compute_bw.",
)
def simulate(
    program: str,
    settings: tuple[str, ...],
    config: Path | None,
    overrides: tuple[str, ...],
    output: Path | None,
    json_path: Path | None,
    calibration: Path | None,
    seed: int,
    stalls: bool,
    fidelity: str,
    machine: str,
) -> None:
    """Predict cycles, traffic, peaks and stalls without RTL."""
    check_fidelity(fidelity, machine, config, calibration)
    if fidelity == "tile":
        simulate_tiles(program, settings, config, overrides, seed, machine, json_path, output, stalls)
        return
    from sim.prediction import predict
    from step_lang import metrics

    file, design = design_of(program, settings, config, overrides, seed)
    constants, where = calibration_constants(calibration, design.hw)
    costs, symbols = metrics(design.program), {}
    if set(costs.symbols) - {DEFAULT_COMPUTE_BW}:  # sizes that only the run knows
        symbols = design.interpret(load_tensors(file, design, seed, ()), lowered=False).symbols
        costs = costs.substitute(symbols)
    note_warnings(design)
    try:
        with step("stepping the model"):
            result = predict(design.graph, design.hw, constants)
    except RtlError:
        # Which value was wrong, and in which operator of the program, the interpreter can say.
        if not design.arbitrates:
            design.interpret(load_tensors(file, design, seed, ()), lowered=False)
        raise
    bound = roofline(design.program, design.hw, symbols)
    write_json(
        json_path or (output / "prediction.json" if output else None),
        {
            "program": design.program.name,
            "parameters": file.parameters,
            "tile": design.hw.tile,
            "constants": constants,
            "onchip_bytes": int(costs.onchip_bytes),
            "flops": int(costs.flops),
            "symbolic_offchip_bytes": int(costs.offchip_bytes),
            "roofline_cycles": bound.cycles,
            **result.as_json(),
        },
    )
    show(
        table_of(
            f"{design.program.name} on T = {design.hw.tile}, predicted from {where}",
            [
                ("cycles", f"{result.cycles:,} (first off-chip read to last off-chip write)"),
                (
                    "roofline",
                    f"{bound.cycles:,.0f} cycles, {bound.bound} bound: {bound.cycles / result.cycles:.1%} reached",
                ),
                ("off-chip", f"{result.offchip_read_bytes:,} B read, {result.offchip_write_bytes:,} B written"),
                (
                    "on-chip",
                    f"{int(costs.onchip_bytes):,} B required; scratchpads at their fullest: "
                    + _fullest(result.peak_frames),
                ),
                ("model", f"{result.wall_seconds:.3f} s"),
                *(("warning", text) for text in design.graph.warnings),
            ],
        )
    )
    if stalls:
        show(stall_table(result.stalls, result.total_cycles))


def simulate_tiles(
    program: str,
    settings: tuple[str, ...],
    config: Path | None,
    overrides: tuple[str, ...],
    seed: int,
    machine_name: str,
    json_path: Path | None,
    output: Path | None,
    busiest: bool,
) -> None:
    """Predict at tile fidelity."""
    from sim.tile import BeatMachine, predict

    file = ProgramFile.open(program, parse_settings(settings))
    machine = machine_from(machine_name, config, overrides)
    built = file.build()
    streams = file.stream_inputs(built, seed)
    with step("stepping the model") as tell:
        result = predict(built, machine, streams,
                         progress=lambda events, cycle: tell(f"{events:,} events, cycle {cycle:,}"))
    allocated = result.allocated_compute
    if isinstance(machine, BeatMachine):  # its units count tiles, not FLOPs
        allocated = allocated_flops(built, machine.hw)
    utilisation = result.flops / (allocated * result.cycles) if allocated else 0.0
    write_json(
        json_path or (output / "prediction.json" if output else None),
        {
            "program": built.name,
            "parameters": file.parameters,
            "fidelity": "tile",
            "machine": machine_name,
            "symbolic_offchip_bytes": int(result.costs.offchip_bytes),
            **result.as_json(),
            "allocated_compute": allocated,
            "compute_utilisation": utilisation,
        },
    )
    rows = [
        ("cycles", f"{result.cycles:,} (first off-chip read to last off-chip write)"),
        (
            "off-chip",
            f"{result.offchip_read_bytes:,} B read, {result.offchip_write_bytes:,} B written, "
            f"{result.memory_utilisation:.1%} of the bandwidth",
        ),
        ("on-chip", f"{result.onchip_bytes:,} B required"),
        ("compute", f"{result.flops:,} FLOPs, {utilisation:.1%} of {allocated:,} a cycle"),
    ]
    rows.append(("model", f"{result.events:,} events in {result.wall_seconds:.3f} s"))
    show(table_of(f"{built.name} at tile fidelity, machine: {machine_name}", rows))
    if busiest:
        table = Table(box=None, padding=(0, 2))
        table.add_column("unit")
        table.add_column("busy", justify="right")
        most = sorted(result.busy.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]
        for unit, cycles in most:
            table.add_row(unit, f"{cycles / max(result.total_cycles, 1):.1%}")
        show(titled("the busiest units", table))


def _fullest(frames: dict[str, int]) -> str:
    """The fullest scratchpads; --json has all."""
    most = sorted(frames.items(), key=lambda item: (-item[1], item[0]))
    told = ", ".join(f"{name} {n} frames" for name, n in most[:_FULLEST])
    return (told or "none used") + (f" and {len(most) - _FULLEST} more" if len(most) > _FULLEST else "")


def stall_table(stalls: dict[str, dict[str, int]], total: int) -> Group:
    """Share of cycles that each unit was busy, starved of input, blocked by its output or waiting for memory."""
    table = Table(box=None, padding=(0, 2))
    names = list(next(iter(stalls.values()), {}))
    table.add_column("unit")
    for name in names:
        table.add_column(name, justify="right")
    for unit, counts in stalls.items():
        table.add_row(unit, *(f"{counts[name] / max(total, 1):.1%}" for name in names))
    return titled("where each unit's cycles went", table)
