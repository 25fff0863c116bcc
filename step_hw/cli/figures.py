"""``step-hw figures``: the paper's evaluation, its claims beside ours."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .options import console, json_option, make_directory, show, titled, whole_file, write_json

__all__ = ["figures"]


@click.command()
@click.argument("numbers", nargs=-1, type=int, metavar="[NUMBER]...")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("build/figures"), show_default=True,
              metavar="DIR", help="Where to write CSV and SVG files.")
@click.option("--data", type=click.Path(path_type=Path), default=None, metavar="DIR",
              help="The paper's traces: expert_routing and kv_lengths (default: generated ones).")
@json_option
def figures(numbers: tuple[int, ...], output: Path, data: Path | None, json_path: Path | None) -> None:
    """Make figures of the paper's evaluation.

    Default: all of them, each with its claims beside ours.

    For each figure NN writes figureNN.csv, figureNN_claims.csv and figureNN.svg. Runs are kept by content in
    $STEP_HW_CACHE: a command that was interrupted goes on where it stopped, finished figures stay.
    """
    from sim.figures import Lab, Traces, figure_module, figure_numbers
    from sim.figures.plot import draw
    from sim.figures.table import write_claims, write_rows

    wanted = list(dict.fromkeys(numbers)) or figure_numbers()
    modules = {number: figure_module(number) for number in wanted}
    traces = Traces(data)
    output = make_directory(output)
    documents: list[dict[str, Any]] = []
    with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                  console=console) as progress:
        task = progress.add_task("runs", total=sum(module.points() for module in modules.values()))
        lab = Lab(lambda: progress.advance(task))
        try:
            for number, module in modules.items():
                progress.update(task, description=f"figure {number}")
                began = time.perf_counter()
                figure = module.make(lab, traces)
                stem = f"figure{number:02d}"
                for suffix, what, write in (
                        (".csv", "table", write_rows), ("_claims.csv", "table of claims", write_claims),
                        (".svg", "plot", lambda f, path, m=module: draw(f, m.sketch, path, m.PANELS))):
                    with whole_file(output / f"{stem}{suffix}", what) as partial:
                        write(figure, partial)
                documents.append(figure.as_json() | {"wall_seconds": time.perf_counter() - began})
                show(_claims_table(documents[-1]), *(f"  {note}" for note in figure.notes), "")
        except KeyboardInterrupt as error:
            error.args = (f"{len(documents)} of {len(wanted)} figures finished, in {output}; {lab.finished} runs are "
                          "kept for the next time",)
            raise
    write_json(json_path, {"data": str(data or ""), "figures": documents})
    seconds = sum(document["wall_seconds"] for document in documents)
    console.print(f"written: {output} ({len(documents)} figures, {lab.finished} runs, {lab.reused} of them known "
                  f"before, {seconds:.1f} s)")


def _claims_table(document: dict[str, Any]) -> Any:
    table = Table(box=None, padding=(0, 2))
    for name in ("claim", "paper", "ours", "ours / paper", "within the bar"):
        table.add_column(name, justify="left" if name in ("claim", "within the bar") else "right")
    for claim in document["claims"]:
        within = {None: "", True: "yes", False: "no"}[claim["within"]]
        bar = "" if claim["bar"] is None or claim["within"] is None else f" ({claim['bar']:.0%})"
        why = f": {claim['why']}" if claim["why"] else ""
        bound = "<= " if claim["at_most"] else ">= " if claim["at_least"] else ""
        table.add_row(claim["what"], bound + _number(claim["paper"]), _number(claim["ours"]),
                      " - ".join(f"{ratio:.3f}" for ratio in claim["ratios"]), within + bar + why)
    return titled(f"figure {document['figure']}: {document['title']} ({document['wall_seconds']:.1f} s)", table)


def _number(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return " - ".join(_number(part) for part in value)
    return f"{value:.3g}"
