"""``step-hw validate``: the model against RTL, over one configuration or a sweep of them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import click
import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from step_hw.design import Design
from step_lang.errors import RtlError, StepError
from step_lang.interpreter import check_tensors

from .measure import measure
from .options import (
    calibration_constants,
    calibration_option,
    configuration,
    console,
    make_directory,
    program_options,
    seed_option,
    show,
    simulator_option,
    step,
    titled,
    whole_file,
    write_json,
)
from .program_file import ProgramFile, parse_settings

__all__ = ["validate"]


@click.command()
@program_options
@click.option(
    "--sweep", "sweep_name", default=None, metavar="NAME", help="A list of parameter sets in the program file's SWEEPS."
)
@simulator_option
@calibration_option
@click.option("--explain", "wants_explanation", is_flag=True, help="Show the first beat where RTL and model part.")
@seed_option
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="Simulations at a time.")
def validate(
    program: str,
    settings: tuple[str, ...],
    config: Path | None,
    overrides: tuple[str, ...],
    output: Path | None,
    json_path: Path | None,
    sweep_name: str | None,
    simulator: str,
    calibration: Path | None,
    wants_explanation: bool,
    seed: int,
    jobs: int,
) -> None:
    """Compare the model with RTL, over one run or a sweep.

    Compares bits and traffic too. Writes rows.jsonl (a line a finished run, at once), validate.json and validate.svg to
    -o (default: build/validate_<program>).
    """
    from rtl_tests.cosim import build_rtl

    began = time.perf_counter()
    file = ProgramFile.open(program, parse_settings(settings))
    hw = configuration(config, overrides)
    constants, where = calibration_constants(calibration, hw)
    cases = [_case(file, hw, point, seed) for point in (file.sweep(sweep_name) if sweep_name else [{}])]
    name = cases[0].design.program.name
    output = make_directory(output or Path("build") / f"validate_{name}")
    result = json_path or output / "validate.json"
    for old in (result, output / "validate.svg", output / "rows.jsonl"):
        old.unlink(missing_ok=True)  # an older run's numbers must not be taken for this one's
    with step("lowering and writing Verilog"):
        netlists = {tuple(case.design.verilog.files.items()) for case in cases}
    console.print(
        f"{_count(len(cases), 'configuration')}, {_count(len(netlists), 'netlist')}; model constants: {where}"
    )
    with step(f"compiling with {simulator} (minutes at T = 16 the first time, cached after)"):
        for case in cases:
            case.build = build_rtl(case.design, simulator, native=simulator == "verilator")
    with step("loading the model"):
        load_seconds = _load_model(cases[0], constants)
    rows, explanations = _run(cases, output / "rows.jsonl", simulator, constants, wants_explanation, jobs)
    totals = _totals(rows) | {"model_load_seconds": load_seconds, "wall_seconds": time.perf_counter() - began}
    write_json(
        result,
        {
            "program": name,
            "tile": hw.tile,
            "simulator": simulator,
            "seed": seed,
            "constants": constants,
            "rows": rows,
            **totals,
        },
    )
    _plot(rows, output / "validate.svg")
    _print(rows, totals)
    show(*(f"\n{text}" for text in explanations))
    console.print(f"written: {output / 'rows.jsonl'}, {result}, {output / 'validate.svg'}")
    for row in rows:
        if not row["bit_exact"]:
            raise RtlError(f"RTL differs from the interpreter for {_named(row['parameters'])}: {row['differences'][0]}")
        if not row["traffic_exact"]:
            raise RtlError(
                f"off-chip traffic for {_named(row['parameters'])}: RTL "
                f"{row['offchip_read_bytes'] + row['offchip_write_bytes']} B vs {row['symbolic_offchip_bytes']} B "
                "by the symbolic expression"
            )


@dataclass
class _Case:
    """One configuration to run."""

    parameters: dict[str, Any]
    design: Design
    tensors: Mapping[str, np.ndarray]
    build: Any = None


def _case(file: ProgramFile, hw: Any, point: dict[str, Any], seed: int) -> _Case:
    program = file.build(**point)
    tensors = file.tensors(program, seed, **point)
    check_tensors(program, tensors)  # before anything long begins
    return _Case({**file.parameters, **point}, Design(program, hw, file.stream_inputs(program, seed, **point)), tensors)


def _load_model(case: _Case, constants: Mapping[str, int]) -> float:
    """Compile the model's engine, or load it compiled, and run it once, so that rows have the model's own time; the
    seconds it took."""
    from sim.prediction import predict

    began = time.perf_counter()
    with suppress(StepError):  # a program that ends badly says so in its row, with its parameters
        predict(case.design.graph, case.design.hw, constants)
    return time.perf_counter() - began


def _run(
    cases: list[_Case], path: Path, simulator: str, constants: Mapping[str, int], wants_explanation: bool, jobs: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows and explanations in order of ``cases``. Every row is in ``path`` as soon as it is known, so that an
    interrupted sweep leaves its finished rows."""
    from rtl_tests.explain import explain

    stopping = Event()

    def one(case: _Case) -> tuple[dict[str, Any], str]:
        found = measure(
            case.design,
            case.tensors,
            case.build,
            simulator,
            constants,
            trace=wants_explanation,
            go_on=lambda: not stopping.is_set(),
        )
        text = ""
        if wants_explanation and found.prediction is not None:
            text = explain(case.design, found.rtl, found.prediction, case.tensors, constants, simulator).text
        return {"parameters": case.parameters, **found.as_json()}, text

    found: dict[int, tuple[dict[str, Any], str]] = {}
    with (
        Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
        ) as progress,
        ThreadPoolExecutor(jobs) as pool,
        path.open("w") as finished,
    ):
        task = progress.add_task("RTL runs", total=len(cases))
        waiting = {pool.submit(one, case): i for i, case in enumerate(cases)}
        try:
            for done in as_completed(waiting):
                i = waiting[done]
                try:
                    found[i] = done.result()
                except StepError as error:
                    if cases[i].parameters:
                        error.message = f"{_named(cases[i].parameters)}: {error.message}"
                    raise
                finished.write(json.dumps(found[i][0]) + "\n")
                finished.flush()
                progress.advance(task)
        except BaseException as error:
            stopping.set()
            _end(list(waiting))
            if isinstance(error, KeyboardInterrupt):
                error.args = (
                    f"{len(found)} of {_count(len(cases), 'row')} finished, in {path}; finished builds are kept",
                )
            raise
    return [found[i][0] for i in range(len(cases))], [
        f"{_named(cases[i].parameters)}: {found[i][1]}" for i in range(len(cases)) if found[i][1]
    ]


def _end(futures: list[Future]) -> None:
    """Stop what runs, so that no simulation outlives the command."""
    from rtl_tests.harness.process import end_children

    for future in futures:
        future.cancel()
    while not all(future.done() for future in futures):
        end_children()
        time.sleep(0.02)


def _totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    from sim.calibration import Comparison, summary

    efficiency = np.array([row["roofline_efficiency"] for row in rows])
    return summary([Comparison(str(row["parameters"]), row["rtl_cycles"], row["model_cycles"]) for row in rows]) | {
        "roofline_geomean": float(np.exp(np.log(efficiency).mean())),
        "roofline_worst": float(efficiency.min()),
        "bit_exact": all(row["bit_exact"] for row in rows),
        "traffic_exact": all(row["traffic_exact"] for row in rows),
        "simulation_seconds": sum(row["simulation_seconds"] for row in rows),
        "model_seconds": sum(row["model_seconds"] for row in rows),
    }


def _named(parameters: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in parameters.items()) or "default parameters"


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _print(rows: list[dict[str, Any]], totals: dict[str, Any]) -> None:
    table = Table(box=None, padding=(0, 2))
    for column in ("parameters", "RTL cycles", "model", "error", "roofline", "off-chip bytes", "bit-exact"):
        table.add_column(column, justify="left" if column in ("parameters", "bit-exact") else "right")
    for row in rows:
        table.add_row(
            _named(row["parameters"]),
            f"{row['rtl_cycles']:,}",
            f"{row['model_cycles']:,}",
            f"{row['error']:+.2%}",
            f"{row['roofline_efficiency']:.1%}",
            f"{row['offchip_read_bytes'] + row['offchip_write_bytes']:,}{'' if row['traffic_exact'] else ' (!)'}",
            "yes" if row["bit_exact"] else f"NO: {row['differences'][0]}",
        )
    show(
        titled("model against RTL", table),
        f"model: Pearson {totals['pearson']:.6f}, mean abs error {totals['mape']:.3%}, worst {totals['max_error']:.3%}",
        f"roofline / RTL: geometric mean {totals['roofline_geomean']:.3f}, worst {totals['roofline_worst']:.3f}",
        f"time: RTL {totals['simulation_seconds']:.1f} s, model {totals['model_seconds']:.2f} s "
        f"(and {totals['model_load_seconds']:.2f} s to load it), all {totals['wall_seconds']:.0f} s",
    )


def _plot(rows: list[dict[str, Any]], path: Path) -> None:
    """RTL and model cycles of every configuration, with the roofline bound."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "step-hw"  # the same bytes for the same rows
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(max(6.0, 0.55 * len(rows) + 2), 4))
    x = np.arange(len(rows))
    axes.bar(x - 0.2, [r["rtl_cycles"] for r in rows], 0.4, label="RTL", color="#4c72b0")
    axes.bar(x + 0.2, [r["model_cycles"] for r in rows], 0.4, label="model", color="#dd8452")
    axes.scatter(x, [r["roofline_cycles"] for r in rows], marker="_", s=300, color="black", label="roofline bound")
    axes.set_xticks(
        x, [",".join(str(v) for v in r["parameters"].values()) or "-" for r in rows], rotation=45, ha="right"
    )
    axes.set_xlabel(", ".join(rows[0]["parameters"]) or "configuration")
    axes.set_ylabel("cycles")
    axes.legend()
    figure.tight_layout()
    with whole_file(path, "picture") as partial:
        figure.savefig(partial, format="svg", metadata={"Date": None})
    pyplot.close(figure)
