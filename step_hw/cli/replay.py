"""``step-hw replay``: a recorded run once more, from its files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from step_hw.design import Design
from step_hw.run_record import RunRecord
from step_lang import Program
from step_lang.errors import RtlError

from .options import console, json_option, show, step, table_of, write_json
from .program_file import ProgramFile

__all__ = ["replay"]


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--simulator", type=click.Choice(["none", "verilator", "icarus"]), default="none", show_default=True,
              help="Simulate RTL again as well, and compare its cycles.")
@json_option
def replay(directory: Path, simulator: str, json_path: Path | None) -> None:
    """Repeat the run recorded in DIR.

    DIR is the directory 'run' that 'step-hw cosim' writes: program, inputs, the order in which streams were merged,
    results. The interpreter repeats it exactly; a difference is an error.
    """
    began = time.perf_counter()
    record, program = RunRecord.load(directory, _program)
    design = Design(program, record.hardware, record.streams)
    with step("interpreting the program and its lowered form with the recorded grants"):
        logical = design.interpret(record.tensors, lowered=False, arbitration=record.arbitration)
        lowered = design.interpret(record.tensors, arbitration=record.arbitration)
    found = record.differences(logical.tensors) + record.differences(lowered.tensors)
    numbers: dict[str, Any] = {"program": program.name, "bit_exact": not found, "differences": found,
                               "offchip_bytes": logical.offchip_bytes, "cycles": record.numbers.get("cycles")}
    rows = [("results", "the recorded bits" if not found else "; ".join(found)),
            ("off-chip", f"{logical.offchip_bytes:,} B"),
            ("recorded cycles", f"{record.numbers.get('cycles', 'unknown')}")]
    if simulator != "none":
        from rtl_tests.cosim import build_rtl, check, run_rtl

        with step(f"compiling with {simulator}"):
            build = build_rtl(design, simulator, native=simulator == "verilator")
        console.print("simulating RTL ...", style="dim")
        again = run_rtl(design, record.tensors, build, simulator=simulator, native=simulator == "verilator")
        verdict = check(design, again, lowered, logical)
        if again.cycles != record.numbers.get("cycles"):
            found.append(f"cycles: {record.numbers.get('cycles')} recorded vs {again.cycles} now")
        if again.arbitration != record.arbitration:
            found.append("grants: those recorded vs another order")
        found += verdict.differences
        numbers |= {"rtl_cycles": again.cycles, "bit_exact": not found, "differences": found}
        rows.append(("cycles now", f"{again.cycles:,}"))
    numbers["wall_seconds"] = time.perf_counter() - began
    write_json(json_path, numbers)
    show(table_of(f"{program.name}, recorded in {directory}", rows))
    if found:
        raise RtlError(f"run recorded in {directory}: {found[0]}")


def _program(path: Path, function: str, parameters: dict[str, Any]) -> Program:
    return ProgramFile.open(f"{path}:{function}", parameters).build()
