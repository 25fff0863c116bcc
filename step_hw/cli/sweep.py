"""``step-hw sweep``: the model over every combination of parameters, or a search for the best of them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from step_lang.errors import BadParameter, BuildError, StepError, SweepError

from .machines import MACHINE, check_fidelity
from .options import (
    calibration_option,
    console,
    json_option,
    make_directory,
    seed_option,
    show,
    titled,
    whole_file,
    write_json,
)
from .program_file import ProgramFile

if TYPE_CHECKING:
    from sim.sweep.pareto import Objective
    from sim.sweep.points import Point

__all__ = ["sweep"]

_SHOWN = 40
"""Rows of a table that is printed whole; of a longer one only the front is."""


_LEAST_MEMORY = 512 << 20

_PATIENCE = 120.0
"""Seconds without any worker after which a sweep ends. Jobs of a batch system may queue for longer."""

_TOLD = 160
"""Characters of an error in the printed table; the files have it whole."""


@click.command()
@click.argument("program", metavar="PROGRAM.py[:function]")
@click.option("--set", "settings", multiple=True, metavar="NAME=V1,V2",
              help="A parameter of the program's builder and the values it takes.")
@click.option("--hw", "overrides", multiple=True, metavar="SECTION.KEY=V1,V2",
              help="A key of the hardware configuration and the values it takes, on top of --config.")
@click.option("--sweep", "sweep_name", default=None, metavar="NAME",
              help="Combine with a list of parameter sets in the program file's SWEEPS.")
@click.option("--config", type=click.Path(path_type=Path), default=None, metavar="HW.toml",
              help="Hardware configuration (default: T = 16 and all other defaults).")
@calibration_option
@seed_option
@click.option("--fidelity", default="beat", show_default=True, metavar="NAME", help="Of the model.")
@click.option("--machine", default="hardware", show_default=True, metavar=MACHINE,
              help="At tile fidelity: the hardware of --config, the paper's roofline machine, or one with other "
                   "numbers; --hw then takes its keys, such as roofline.compute_bw.")
@click.option("--objectives", default="cycles,onchip_bytes", show_default=True, metavar="NAMES",
              help="Numbers that the Pareto front is of; less is better, or more with max:NAME.")
@click.option("--search", "budget", default=None, type=click.IntRange(1), metavar="N",
              help="Look for the front with N points, chosen by what earlier ones gave, instead of all.")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1), help="Processes on this machine.")
@click.option("--memory", default="2GiB", show_default=True, metavar="SIZE",
              help="Of each of these processes; one that takes more is ended.")
@click.option("--scheduler", default=None, metavar="ADDRESS", help="Use a running Dask scheduler, such as tcp://HOST:8786.")
@click.option("--cluster", type=click.Path(path_type=Path), default=None, metavar="PROFILE.toml",
              help="Start workers as jobs of a batch system (docs/SWEEP.md).")
@click.option("--wait", "patience", default=None, type=click.FloatRange(1), metavar="SECONDS",
              help="How long to wait while there are no workers (default: 120; without limit with --cluster).")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=None, metavar="DIR",
              help="Where to write files (default: build/sweep_<program file>).")
@json_option
def sweep(
    program: str,
    settings: tuple[str, ...],
    overrides: tuple[str, ...],
    sweep_name: str | None,
    config: Path | None,
    calibration: Path | None,
    seed: int,
    fidelity: str,
    machine: str,
    objectives: str,
    budget: int | None,
    workers: int,
    memory: str,
    scheduler: str | None,
    cluster: Path | None,
    patience: float | None,
    output: Path | None,
    json_path: Path | None,
) -> None:
    """Model every combination of parameters of PROGRAM and hardware.

    --set and --hw take one value or several, separated by commas. A point that the model refuses, or that fails, is a
    row with its error. Finished points are kept by content in the cache: the same command again evaluates only the
    others. Writes rows.jsonl (a line a finished point, at once), and in the order of the points sweep.parquet,
    sweep.csv, sweep.json and pareto.svg.
    """
    from sim.sweep.cluster import Profile, connect, watched
    from sim.sweep.content import model_hash
    from sim.sweep.evaluate import FIDELITIES, numbers_of
    from sim.sweep.pareto import objectives_of
    from sim.sweep.run import run
    from sim.sweep.search import search
    from sim.sweep.store import Store
    from sim.sweep.table import rows_of
    from sim.sweep.work import Outcome, Task

    from .program_source import ProgramSource
    from .sweep_points import axes_of, grid_of, hardware_of

    began = time.perf_counter()
    if fidelity not in FIDELITIES:
        raise BadParameter(f"--fidelity: {fidelity!r} vs one of {', '.join(FIDELITIES)}")
    check_fidelity(fidelity, machine, config, calibration)
    if patience is None and not cluster:
        patience = _PATIENCE
    if scheduler and cluster:
        raise BadParameter("--scheduler and --cluster: both vs one of them")
    _check_memory(memory)
    wanted = objectives_of(objectives, fidelity)
    profile = Profile.load(cluster) if cluster else None
    file = ProgramFile.open(program)
    grid = grid_of(file, axes_of(settings, overrides, machine), sweep_name)
    points = grid.points()
    hardware = hardware_of(points, machine, config, calibration)
    store, source = Store(), ProgramSource.of(file, seed)
    store.clean()
    tasks = [Task(i, point, source, hw, constants, fidelity, model_hash(), str(store.directory))
             for i, (point, (hw, constants)) in enumerate(zip(points, hardware, strict=True))]
    output = make_directory(output or Path("build") / f"sweep_{file.path.stem}")
    files = _Files(output, json_path)
    files.remove()
    outcomes: list[Outcome] = []
    finish = {"grid": len(grid), "objectives": [objective.name for objective in wanted], "fidelity": fidelity,
              "machine": machine, "program": file.path.stem, "seed": seed}

    def result(complete: bool) -> dict[str, Any]:
        rows = rows_of(points, outcomes, wanted, numbers_of(fidelity))
        kept = sum(outcome.cached for outcome in outcomes)
        return {**finish, "points": len(rows), "evaluated": len(rows) - kept, "from_cache": kept,
                "refused": sum(row["error"] is not None for row in rows),
                "failed": sum(outcome.failed for outcome in outcomes),
                "searched": budget is not None, "saved": len(grid) - len(rows) if complete else 0, "complete": complete,
                "worker_peak_bytes": max((outcome.worker_bytes for outcome in outcomes), default=0),
                "wall_seconds": time.perf_counter() - began, "rows": rows}

    total = min(budget or len(grid), len(grid))
    try:
        with (
            connect(min(workers, total), memory, scheduler, profile) as client,
            Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                     TextColumn("left"), TimeRemainingColumn(), console=console) as progress,
            watched(client, progress.console.print, patience=patience) as watch,
            files.jsonl.open("wb", buffering=0) as lines,  # nothing that could fail is left for closing it
        ):
            bar = progress.add_task("points", total=total)

            def finished(outcome: Outcome) -> None:
                outcomes.append(outcome)
                row = {**points[outcome.index].columns, **outcome.numbers, "error": outcome.error}
                line = f"{json.dumps(row)}\n".encode()
                try:
                    written = lines.write(line)
                except OSError as error:
                    raise BuildError(f"rows {files.jsonl}: {error.strerror} vs room for them") from None
                if written != len(line):
                    raise BuildError(f"rows {files.jsonl}: {written} bytes of a line of {len(line)} vs room for it")
                progress.advance(bar)

            if budget is None:
                run(client, tasks, store, finished, watch.check)
            else:
                search(grid, wanted, budget, seed, lambda positions: [
                    {**outcome.numbers, "error": outcome.error}
                    for outcome in run(client, [tasks[position] for position in positions], store, finished,
                                       watch.check)])
    except BaseException as error:
        if outcomes:
            with suppress(StepError):  # the first error is the one to tell
                _write(files, result(complete=False), wanted)
        told = f"{len(outcomes)} of {total} points finished, in {output}; the same command goes on from there"
        if isinstance(error, KeyboardInterrupt):
            error.args = (told,)
        elif isinstance(error, StepError) and outcomes:
            error.message = f"{error.message}; {told}"
        raise
    document = result(complete=True)
    _write(files, document, wanted)
    _print(document, wanted, points)
    console.print("written: " + ", ".join(map(str, files.written(wanted))))
    if document["refused"] == len(document["rows"]):
        raise SweepError(f"all {len(points)} points are refused, the first one: {document['rows'][0]['error']}")


def _check_memory(text: str) -> None:
    from dask.utils import parse_bytes

    try:
        size = parse_bytes(text)
    except ValueError:
        raise BadParameter(f"--memory: {text!r} vs a size such as 2GiB") from None
    if size < _LEAST_MEMORY:
        raise BadParameter(f"--memory: {text} vs at least 512MiB, which a worker takes before it has a point")


class _Files:
    """What a sweep writes, and where."""

    def __init__(self, directory: Path, json_path: Path | None):
        self.jsonl, self.parquet, self.csv, self.svg = (
            directory / name for name in ("rows.jsonl", "sweep.parquet", "sweep.csv", "pareto.svg"))
        self.json = json_path or directory / "sweep.json"

    def remove(self) -> None:
        """An older sweep's numbers must not be taken for this one's."""
        for path in (self.jsonl, self.parquet, self.csv, self.json, self.svg):
            path.unlink(missing_ok=True)

    def written(self, objectives: Sequence[Objective]) -> list[Path]:
        """All of them; there is no picture of a single objective."""
        return [self.jsonl, self.parquet, self.csv, self.json, *([self.svg] if len(objectives) > 1 else [])]


def _write(files: _Files, document: dict[str, Any], objectives: Sequence[Objective]) -> None:
    """All files but the lines, each whole or not at all. Raises `BuildError`."""
    from sim.sweep.table import draw_front, write_csv, write_parquet

    rows = document["rows"]
    for path, what, write in ((files.parquet, "table", write_parquet), (files.csv, "table", write_csv)):
        with whole_file(path, what) as partial:
            write(rows, partial)
    write_json(files.json, document)
    if len(objectives) > 1:
        with whole_file(files.svg, "picture") as partial:
            draw_front(rows, objectives, document["program"], partial)


def _print(document: dict[str, Any], objectives: Sequence[Objective], points: Sequence[Point]) -> None:
    rows = document["rows"]
    all_shown = len(rows) <= _SHOWN
    shown = rows if all_shown else [row for row in rows if row["pareto"]]
    parameters = list(rows[0])[: len(points[0].columns)]
    numbers = list(dict.fromkeys([*(objective.name for objective in objectives), "cycles", "onchip_bytes",
                                  "offchip_read_bytes", "offchip_write_bytes", "compute_utilisation"]))
    table = Table(box=None, padding=(0, 2))
    for name in (*parameters, *numbers, ""):
        table.add_column(name, justify="right")
    for row in shown:
        told = "front" if row["pareto"] else "" if row["error"] is None else _told(row["error"])
        table.add_row(*(str(row[name]) for name in parameters), *(_number(row[name]) for name in numbers), told)
    front = sum(row["pareto"] for row in rows)
    searched = (f"searched: {document['points']} of the grid's {document['grid']} points, {document['saved']} saved "
                f"({document['saved'] / document['grid']:.0%})")
    show(
        titled(f"{document['program']}: {'all points' if all_shown else 'the Pareto front'}", table),
        f"points: {len(rows)}, of which {document['from_cache']} from the cache, {document['refused']} refused"
        + (f", {document['failed']} of them by a fault, to be evaluated again by the same command"
           if document["failed"] else ""),
        *([searched] if document["searched"] else []),
        f"Pareto front of {', '.join(document['objectives'])}: {front} points",
        f"time: {document['wall_seconds']:.1f} s; a worker took {document['worker_peak_bytes'] / 1e6:,.0f} MB at most",
    )


def _told(error: str) -> str:
    line = (error.splitlines() or [""])[0]
    return "refused: " + (line if len(line) <= _TOLD else f"{line[:_TOLD]} ...")


def _number(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}"
