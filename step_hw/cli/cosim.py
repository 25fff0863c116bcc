"""``step-hw cosim``: a program on RTL, against the interpreter and the model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from step_hw.design import Design
from step_hw.run_record import RunRecord
from step_lang import Program
from step_lang.errors import RtlError
from step_lang.host_streams import host_tokens

from .measure import Measurement, expect, measure
from .options import (
    calibration_constants,
    calibration_option,
    console,
    design_of,
    load_tensors,
    note_warnings,
    program_options,
    seed_option,
    show,
    simulator_option,
    step,
    table_of,
    whole_file,
    write_json,
    write_pictures,
)
from .program_file import ProgramFile

__all__ = ["cosim", "run"]


@click.command()
@program_options
@simulator_option
@calibration_option
@seed_option
@click.option(
    "--tensor", "given", multiple=True, metavar="NAME=FILE.npy", help="An input tensor in place of a random one."
)
@click.option(
    "--waves", type=click.Path(path_type=Path), default=None, metavar="FILE.fst", help="Write a waveform (slower)."
)
def cosim(**options: Any) -> None:
    """Simulate PROGRAM on RTL; compare bits and cycles.

    Every stored tensor and every token of every link is compared with the interpreter, the cycle count with the model
    (but where values from tensors or of floats steer the program: these the model does not have).
    Writes Verilog, pictures, the stored tensors and result.json to -o (default: build/<program>), and the directory
    run, from which 'step-hw replay' repeats the run: program, inputs, the order in which streams were merged, results.
    """
    run(**options)


def run(
    program: str,
    settings: tuple[str, ...] = (),
    config: Path | None = None,
    overrides: tuple[str, ...] = (),
    output: Path | None = None,
    json_path: Path | None = None,
    simulator: str = "verilator",
    calibration: Path | None = None,
    seed: int = 0,
    given: tuple[str, ...] = (),
    waves: Path | None = None,
) -> None:
    """The command. Raises `RtlError` when RTL differs from the interpreter."""
    from rtl_tests.cosim import build_rtl

    began = time.perf_counter()
    file, design = design_of(program, settings, config, overrides, seed)
    tensors = load_tensors(file, design, seed, given)
    constants, where = calibration_constants(calibration, design.hw)
    output = output or Path("build") / design.program.name
    result = json_path or output / "result.json"
    with step("lowering and writing Verilog"):
        design.write(output)
        pictures = write_pictures(design, output)
    note_warnings(design)
    result.unlink(missing_ok=True)  # an older run's numbers must not be taken for this one's
    with step("interpreting the program and its lowered form"):
        expected = expect(design, tensors)
    with step(f"compiling with {simulator} (minutes at T = 16 the first time, cached after)"):
        build = build_rtl(design, simulator, native=simulator == "verilator", trace=waves is not None)
    console.print("simulating RTL ...", style="dim")
    found = measure(
        design, tensors, build, simulator, constants, expected=expected, progress=console.is_terminal, waves=waves,
        needs_model=False,
    )
    stored = [_save(output / f"{name}.npy", tensor) for name, tensor in found.rtl.tensors.items()]
    record = _record(file, design, tensors, found, simulator).save(output / "run")
    numbers = found.as_json()
    write_json(
        result,
        {
            "program": design.program.name,
            "parameters": file.parameters,
            "tile": design.hw.tile,
            "simulator": simulator,
            "seed": seed,
            "constants": constants,
            "cycles": numbers.pop("rtl_cycles"),
            **numbers,
            "wall_seconds": time.perf_counter() - began,
        },
    )
    show(
        _table(
            design,
            found,
            simulator,
            where,
            [
                ("pictures", ", ".join(map(str, pictures))),
                ("Verilog", str(output / "verilog")),
                ("stored", ", ".join(map(str, stored)) or "nothing"),
                ("numbers", str(result)),
                ("recorded", f"{record}, for step-hw replay and report"),
                *([("waveform", str(found.rtl.native.waves))] if found.rtl.native.waves else []),
                *(("warning", text) for text in design.graph.warnings),
            ],
        )
    )
    if not found.verdict.bit_exact:
        raise RtlError(f"RTL of '{design.program.name}' differs from the interpreter: {found.verdict.differences[0]}",
                       fix=_unordered(design.program))


def _unordered(program: Program) -> str | None:
    """Where the program may be at fault: tensors whose accesses only its author can order."""
    written = [(tensor.name, op) for op in program.operators for tensor in op.tensors_written]
    names = {name for name, op in written for other in program.operators if other is not op
             for tensor in (*other.tensors_read, *other.tensors_written) if tensor.name == name}
    if not names:
        return None
    found = ", ".join(f"'{name}'" for name in sorted(names))
    return (f"make what reads or overwrites tensor {found} wait for the acknowledgement of the store that it needs: "
            "the interpreter has an order of its own")


def _record(file: ProgramFile, design: Design, tensors: dict[str, np.ndarray], found: Measurement,
            simulator: str) -> RunRecord:
    """What ``step-hw replay`` and ``step-hw report`` need."""
    streams = host_tokens(design.program, design.inputs)
    numbers = found.as_json() | {"cycles": found.rtl.cycles, "start_cycle": found.rtl.start_cycle,
                                 "simulator": simulator}
    return RunRecord(file.path.name, file.path.read_text(), file.function, file.parameters, design.hw, tensors,
                     streams, found.rtl.arbitration, found.rtl.tensors, numbers, file.beside, found.rtl.beats,
                     found.rtl.native.blocked)


def _table(design: Design, found: Measurement, simulator: str, where: str, more: list[tuple[str, str]]) -> Any:
    rtl, bound, costs = found.rtl, found.expected.bound, found.expected.costs
    traffic = (
        "equals the symbolic expression"
        if found.traffic_exact
        else f"differs from the symbolic {int(costs.offchip_bytes):,} B"
    )
    return table_of(
        f"{design.program.name} on T = {design.hw.tile}, {simulator}",
        [
            ("cycles", f"{rtl.cycles:,} (first off-chip read to last off-chip write)"),
            ("model", "none: values steer the program that the model does not compute" if found.prediction is None
             else f"{found.prediction.cycles:,} cycles ({found.error:+.2%}), from {where}"),
            ("roofline", f"{bound.cycles:,.0f} cycles, {bound.bound} bound: {bound.cycles / rtl.cycles:.1%} reached"),
            ("off-chip", f"{rtl.offchip_read_bytes:,} B read, {rtl.offchip_write_bytes:,} B written: {traffic}"),
            (
                "on-chip",
                f"{int(costs.onchip_bytes):,} B required; scratchpads at their fullest: "
                + (", ".join(f"{name} {n} frames" for name, n in rtl.peak_frames.items()) or "none used"),
            ),
            (
                "bit-exact",
                "yes: RTL = lowered program = program, every tensor and every token of every link" + _unfinished(found)
                if found.verdict.bit_exact
                else "NO: " + "; ".join(found.verdict.differences),
            ),
            (
                "simulated",
                f"in {rtl.native.wall_seconds:.1f} s "
                f"({rtl.total_cycles / max(rtl.native.wall_seconds, 1e-9):,.0f} cycles/s)",
            ),
            *more,
        ],
    )


def _unfinished(found: Measurement) -> str:
    links = found.verdict.unfinished
    return f"; but what no reassemble chose, on its way with the last store: {', '.join(links)}" if links else ""


def _save(path: Path, tensor: np.ndarray) -> Path:
    """Write a .npy file; it cannot say bfloat16, whose bits travel as uint16."""
    plain = tensor.view(np.uint16) if tensor.dtype.kind == "V" or tensor.dtype.name == "bfloat16" else tensor
    with whole_file(path, "tensor file") as partial, partial.open("wb") as file:
        np.save(file, plain)
    return path
