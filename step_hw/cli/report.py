"""``step-hw report``: a run to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from step_hw.design import Design
from step_hw.run_record import RunRecord
from step_lang import metrics
from step_lang.errors import BadParameter, BuildError
from step_lang.metrics import DEFAULT_COMPUTE_BW

from .machines import MACHINE, check_fidelity, machine_from
from .options import (
    calibration_constants,
    calibration_option,
    config_options,
    design_of,
    json_option,
    load_tensors,
    make_directory,
    note_warnings,
    seed_option,
    show,
    step,
    whole_file,
    write_json,
)
from .program_file import ProgramFile, parse_settings

if TYPE_CHECKING:
    from sim.report import Run

__all__ = ["report"]


@click.command()
@click.argument("program", metavar="[PROGRAM.py[:function]]", required=False)
@click.option("--run", "directory", type=click.Path(path_type=Path), default=None, metavar="DIR",
              help="A run on RTL in place of a program: the directory 'run' that 'step-hw cosim' wrote.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of the program's builder.")
@click.option("--fidelity", type=click.Choice(["beat", "tile"]), default="beat", show_default=True,
              help="tile: logical tiles, for programs of full size.")
@click.option("--machine", default="hardware", show_default=True, metavar=MACHINE,
              help="At tile fidelity: the hardware of --config, the paper's roofline machine, or one with other "
                   "numbers; --hw then takes its keys, such as roofline.compute_bw.")
@config_options
@calibration_option
@seed_option
@click.option("-o", "--output", type=click.Path(path_type=Path), default=None, metavar="DIR",
              help="Where to write files (default: build/<program>).")
@json_option
def report(
    program: str | None,
    directory: Path | None,
    settings: tuple[str, ...],
    fidelity: str,
    machine: str,
    config: Path | None,
    overrides: tuple[str, ...],
    calibration: Path | None,
    seed: int,
    output: Path | None,
    json_path: Path | None,
) -> None:
    """Show what a run did, what limits it and what to try.

    Runs PROGRAM in the model, or takes a run on RTL that 'step-hw cosim' recorded (--run). Writes report.html, one page
    that needs no network (graph with shapes and utilisation, where cycles went, roofline, memory over time), and
    trace.json, a timeline for ui.perfetto.dev or chrome://tracing, to -o.
    """
    from sim.report import findings, report_html, summary, trace_json

    if (program is None) == (directory is None):
        raise BadParameter("step-hw report: PROGRAM.py vs --run DIR", fix="give one of the two")
    if directory is not None:
        if settings or config or overrides or calibration or fidelity != "beat" or machine != "hardware" or seed:
            raise BadParameter("--run: a recorded run vs options that make another run",
                               fix="give --run, -o and --json only")
        run, facts = _recorded(directory)
    else:
        assert program is not None
        check_fidelity(fidelity, machine, config, calibration)
        if fidelity == "tile":
            run, facts = _tile(program, settings, config, overrides, machine, seed)
        else:
            run, facts = _beat(program, settings, config, overrides, calibration, seed)
    output = make_directory(output or Path("build") / run.program.name)
    with step("drawing"):
        for name, text in (("report.html", report_html(run, facts)), ("trace.json", trace_json(run))):
            with whole_file(output / name, "report") as partial:
                partial.write_text(text, encoding="utf-8", newline="\n")
    write_json(json_path, {
        "program": run.program.name, "simulator": run.simulator, "cycles": run.cycles, "total_cycles": run.total_cycles,
        "offchip_read_bytes": run.read_bytes, "offchip_write_bytes": run.write_bytes, "flops": run.flops,
        "roofline_cycles": run.bound, "memory_utilisation": run.memory_share, "compute_utilisation": run.compute_share,
        "findings": [{"kind": f.kind, "title": f.title, "text": f.text, "try": list(f.tries)} for f in findings(run)],
        "units": {unit.name: dict(unit.states) for unit in run.units}, "busy": run.busy_of_operators()})
    show(summary(run), f"page: {output / 'report.html'}", f"timeline: {output / 'trace.json'}, for ui.perfetto.dev")


def _beat(program: str, settings: tuple[str, ...], config: Path | None, overrides: tuple[str, ...],
          calibration: Path | None, seed: int) -> tuple[Run, dict[str, str]]:
    from sim.prediction import predict
    from sim.report import run_of_beats

    file, design = design_of(program, settings, config, overrides, seed)
    constants, where = calibration_constants(calibration, design.hw)
    costs, symbols = metrics(design.program), {}
    if set(costs.symbols) - {DEFAULT_COMPUTE_BW}:  # sizes that only the run knows
        with step("interpreting, for sizes that only a run knows"):
            symbols = design.interpret(load_tensors(file, design, seed, ()), lowered=False).symbols
        costs = costs.substitute(symbols)
    note_warnings(design)
    with step("stepping the model"):
        prediction = predict(design.graph, design.hw, constants, trace=True)
    return (run_of_beats(design.lowered, design.graph, design.hw, costs, symbols, prediction),
            _parameters(file) | {"timing": where})


def _tile(program: str, settings: tuple[str, ...], config: Path | None, overrides: tuple[str, ...], machine: str,
          seed: int) -> tuple[Run, dict[str, str]]:
    from sim.report import run_of_tiles
    from sim.tile import predict

    file = ProgramFile.open(program, parse_settings(settings))
    made = machine_from(machine, config, overrides)
    built = file.build()
    with step("running the model") as tell:
        prediction = predict(built, made, file.stream_inputs(built, seed), record=True,
                             progress=lambda events, cycle: tell(f"{events:,} events, cycle {cycle:,}"))
    return run_of_tiles(prediction), _parameters(file)


def _recorded(directory: Path) -> tuple[Run, dict[str, str]]:
    from sim.prediction import predict
    from sim.report import run_of_transfers
    from step_lang.errors import StepError

    record, program = RunRecord.load(directory, _program)
    if record.beats is None or record.blocked is None:
        raise BuildError(f"run record {directory}: without beats vs beats.npz of 'step-hw cosim'",
                         fix="run step-hw cosim again")
    for name, type_ in _NUMBERS.items():
        value = record.numbers.get(name)
        if not isinstance(value, type_) or (isinstance(value, int) and value < 0):
            raise BuildError(f"run record {directory}: {name} {value!r} in run.json vs that of 'step-hw cosim'",
                             fix="run step-hw cosim again")
    design = Design(program, record.hardware, record.streams)
    with step("interpreting, for sizes that only a run knows"):
        symbols = design.interpret(record.tensors, lowered=False, arbitration=record.arbitration).symbols
    links = len(design.graph.links)
    if len(record.blocked) != links:
        raise BuildError(f"run record {directory}: {len(record.blocked)} links vs the {links} of the program now",
                         fix="run step-hw cosim again")
    prediction = None
    try:
        with step("stepping the model, for what RTL does not tell"):
            prediction = predict(design.graph, design.hw, trace=True)
    except StepError:  # what the model refuses, RTL has run all the same
        pass
    facts = {"recorded from": record.file} | {name: str(value) for name, value in record.parameters.items()}
    return run_of_transfers(design.lowered, design.graph, design.hw, metrics(program).substitute(symbols), symbols,
                            record.beats, record.blocked, record.numbers, record.numbers["simulator"],
                            prediction), facts


_NUMBERS = {"cycles": int, "total_cycles": int, "start_cycle": int, "offchip_read_bytes": int,
            "offchip_write_bytes": int, "peak_frames": dict, "simulator": str}
"""What a page is made of, of the numbers of a record."""


def _program(path: Path, function: str, parameters: dict[str, Any]) -> Any:
    return ProgramFile.open(f"{path}:{function}", parameters).build()


def _parameters(file: ProgramFile) -> dict[str, str]:
    return {name: str(value) for name, value in file.parameters.items()}
