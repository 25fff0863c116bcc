"""``step-hw validate``: the model against RTL, over one configuration or a sweep of them."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from step_hw.design import Design
from step_lang.errors import RtlError
from step_lang.roofline import roofline

from .options import calibration_constants, configuration, console, program_options, step, write_json
from .program_file import ProgramFile, parse_settings

__all__ = ["validate"]


@click.command()
@program_options
@click.option("--sweep", "sweep_name", default=None, metavar="NAME", help="A parameter sweep listed in the program's SWEEPS.")
@click.option("--simulator", type=click.Choice(["verilator", "icarus"]), default="verilator", show_default=True)
@click.option("--calibration", type=click.Path(path_type=Path), default=None, metavar="FILE", help="Written by 'step-hw calibrate'.")
@click.option("--explain", "wants_explanation", is_flag=True, help="Show the first beat where RTL and model part.")
@click.option("--seed", default=0, show_default=True, help="Of the program's random inputs.")
@click.option("--jobs", default=2, show_default=True, help="Simulations at a time.")
def validate(program: str, settings: tuple[str, ...], config: Path | None, overrides: tuple[str, ...], output: Path | None,
             json_path: Path | None, sweep_name: str | None, simulator: str, calibration: Path | None, wants_explanation: bool,
             seed: int, jobs: int) -> None:
    """Run PROGRAM on RTL and in the model; compare bits, traffic and cycles."""
    from rtl_tests.cosim import build_rtl
    from sim.calibration import Comparison, summary

    file = ProgramFile.open(program, parse_settings(settings))
    hw = configuration(config, overrides)
    constants, where = calibration_constants(calibration, hw)
    points = file.sweep(sweep_name) if sweep_name else [{}]
    designs = []
    for point in points:
        built = file.build(**point)
        designs.append((point, Design(built, hw, file.stream_inputs(built, seed))))
    output = output or Path("build") / f"validate_{designs[0][1].program.name}"
    output.mkdir(parents=True, exist_ok=True)
    netlists = {tuple(design.verilog.files.items()) for _, design in designs}
    console.print(f"{len(designs)} configurations, {len(netlists)} netlist{'s' if len(netlists) > 1 else ''}; constants: {where}")
    began = time.perf_counter()
    with step(f"compiling with {simulator} (cached by content)"):
        for _, design in designs:
            build_rtl(design, simulator, native=simulator == "verilator")
    rows: dict[int, dict[str, Any]] = {}
    explanations: list[str] = []
    with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
                  console=console) as progress, ThreadPoolExecutor(max(1, jobs)) as pool, \
            (output / "rows.jsonl").open("w") as finished:
        task = progress.add_task("RTL runs", total=len(designs))
        waiting = {pool.submit(_row, file, design, point, simulator, constants, seed, wants_explanation): i
                   for i, (point, design) in enumerate(designs)}
        try:
            for done in as_completed(waiting):
                row, explanation = done.result()
                rows[waiting[done]] = row
                # Written at once, so that an interrupted sweep leaves its finished rows.
                finished.write(json.dumps(row) + "\n")
                finished.flush()
                progress.advance(task)
                if explanation:
                    explanations.append(explanation)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    ordered = [rows[i] for i in range(len(designs))]
    totals = summary([Comparison(str(r["parameters"]), r["rtl_cycles"], r["model_cycles"]) for r in ordered])
    efficiency = np.array([r["roofline_efficiency"] for r in ordered])
    totals |= {"roofline_geomean": float(np.exp(np.log(efficiency).mean())), "roofline_worst": float(efficiency.min()),
               "bit_exact": all(r["bit_exact"] for r in ordered), "traffic_exact": all(r["traffic_exact"] for r in ordered),
               "model_seconds": sum(r["model_seconds"] for r in ordered), "wall_seconds": time.perf_counter() - began}
    _print(ordered, totals)
    for text in explanations:
        Console(highlight=False).print(text)
    document = {"program": designs[0][1].program.name, "tile": hw.tile, "simulator": simulator, "seed": seed, "constants": constants,
                "rows": ordered, **totals}
    write_json(json_path or output / "validate.json", document)
    _plot(ordered, output / "validate.svg")
    console.print(f"written: {json_path or output / 'validate.json'}, {output / 'validate.svg'}")
    if not (totals["bit_exact"] and totals["traffic_exact"]):
        bad = next(r for r in ordered if not (r["bit_exact"] and r["traffic_exact"]))
        raise RtlError(f"RTL differs from the interpreter for {bad['parameters']}: {(bad['differences'] or ['traffic'])[0]}")


def _row(file: ProgramFile, design: Design, point: dict[str, Any], simulator: str, constants: dict[str, int], seed: int,
         wants_explanation: bool) -> tuple[dict[str, Any], str]:
    from rtl_tests.cosim import check, run_rtl
    from rtl_tests.explain import explain
    from sim.prediction import predict
    from step_lang import metrics

    tensors = file.tensors(design.program, seed)
    rtl = run_rtl(design, tensors, simulator=simulator, native=simulator == "verilator")
    expected = design.interpret(tensors)
    verdict = check(design, rtl, expected)
    prediction = predict(design.graph, design.hw, constants, trace=wants_explanation)
    symbolic = int(metrics(design.program).offchip_bytes.subs(design.interpret(tensors, lowered=False).symbols))
    bound = roofline(design.program, design.hw)
    row = {
        "parameters": {**file.parameters, **point}, "rtl_cycles": rtl.cycles, "model_cycles": prediction.cycles,
        "error": (prediction.cycles - rtl.cycles) / rtl.cycles, "bit_exact": verdict.bit_exact, "differences": verdict.differences,
        "offchip_read_bytes": rtl.offchip_read_bytes, "offchip_write_bytes": rtl.offchip_write_bytes,
        "symbolic_offchip_bytes": symbolic, "traffic_exact": rtl.offchip_bytes == symbolic == prediction.offchip_bytes,
        "roofline_cycles": bound.cycles, "roofline_efficiency": bound.cycles / rtl.cycles,
        "peak_frames": rtl.peak_frames, "model_peak_frames": prediction.peak_frames,
        "simulation_seconds": rtl.native.wall_seconds, "model_seconds": prediction.wall_seconds,
    }
    text = explain(design, rtl, prediction, tensors, constants).text if wants_explanation else ""
    return row, f"\n{row['parameters'] or design.program.name}: {text}" if text else ""


def _print(rows: list[dict[str, Any]], totals: dict[str, Any]) -> None:
    table = Table(title="model against RTL", title_justify="left", box=None, padding=(0, 2))
    for column in ("parameters", "RTL cycles", "model", "error", "roofline", "off-chip bytes", "bit-exact"):
        table.add_column(column, justify="left" if column in ("parameters", "bit-exact") else "right")
    for row in rows:
        table.add_row(" ".join(f"{k}={v}" for k, v in row["parameters"].items()), f"{row['rtl_cycles']:,}", f"{row['model_cycles']:,}",
                      f"{row['error']:+.2%}", f"{row['roofline_efficiency']:.1%}",
                      f"{row['offchip_read_bytes'] + row['offchip_write_bytes']:,}{'' if row['traffic_exact'] else ' (!)'}",
                      "yes" if row["bit_exact"] else f"NO: {row['differences'][0]}")
    out = Console(highlight=False)
    out.print(table)
    out.print(f"Pearson {totals['pearson']:.6f}, mean abs error {totals['mape']:.3%}, worst {totals['max_error']:.3%}; roofline/RTL "
              f"geometric mean {totals['roofline_geomean']:.3f}, worst {totals['roofline_worst']:.3f}; model {totals['model_seconds']:.2f} s, "
              f"all {totals['wall_seconds']:.0f} s")


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
    axes.set_xticks(x, [",".join(str(v) for v in r["parameters"].values()) or "-" for r in rows], rotation=45, ha="right")
    axes.set_xlabel(", ".join(rows[0]["parameters"]) or "configuration")
    axes.set_ylabel("cycles")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
