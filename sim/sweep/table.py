"""Rows of a sweep as Parquet, CSV and JSON, and as a picture of their Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from step_lang.errors import BadParameter

from .evaluate import NUMBERS
from .pareto import Objective, front
from .points import Point
from .work import Outcome

if TYPE_CHECKING:
    import pyarrow

__all__ = ["column_names", "draw_front", "rows_of", "table_of_rows", "write_csv", "write_parquet"]


def column_names(point: Point) -> dict[str, str]:
    """Columns of a point's parameters by parameter; one that has the name of a number gets ``set.`` before it."""
    taken = {*NUMBERS, "pareto", "error"}
    return {name: f"set.{name}" if name in taken else name for name in point.columns}


def rows_of(points: Sequence[Point], outcomes: Sequence[Outcome], objectives: Sequence[Objective],
            numbers: Sequence[str] = tuple(NUMBERS)) -> list[dict[str, Any]]:
    """A row for each outcome, in order: its point's parameters, ``numbers`` of `NUMBERS` (None where it is refused),
    ``pareto`` (whether it is on the front) and ``error``. ``points`` are by the outcomes' index."""
    rows: list[dict[str, Any]] = []
    for outcome in sorted(outcomes, key=lambda outcome: outcome.index):
        point = points[outcome.index]
        names = column_names(point)
        rows.append({**{names[name]: value for name, value in point.columns.items()},
                     **{name: outcome.numbers.get(name) for name in numbers},
                     "pareto": False, "error": outcome.error})
    for i in front(rows, objectives):
        rows[i]["pareto"] = True
    return rows


def table_of_rows(rows: Sequence[Mapping[str, Any]]) -> pyarrow.Table:
    """The rows as an Arrow table. A parameter's column has the type of its values: booleans, ints, floats (ints among
    them too), else texts."""
    import pyarrow

    names = list(dict.fromkeys(name for row in rows for name in row))
    tail = [*NUMBERS, "pareto", "error"]
    names = [name for name in names if name not in tail] + [name for name in tail if name in names]
    kinds = {int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_(), str: pyarrow.string()}
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        kind = {**NUMBERS, "pareto": bool, "error": str}.get(name) or _kind(values)
        columns[name] = pyarrow.array([None if value is None else kind(value) for value in values], kinds[kind])
    return pyarrow.table(columns)


def _kind(values: Sequence[Any]) -> type:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int} and any(abs(value) >= 1 << 63 for value in values if value is not None):
        return str
    for kind in (bool, int, float):
        if kinds == {kind}:
            return kind
    return float if kinds == {int, float} else str


def write_parquet(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """The same rows give the same bytes. Raises `OSError`."""
    from pyarrow import parquet

    parquet.write_table(table_of_rows(rows), path, compression="zstd")


def write_csv(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """The same rows give the same bytes. Raises `OSError`."""
    from pyarrow import csv

    csv.write_csv(table_of_rows(rows), path)


def draw_front(rows: Sequence[Mapping[str, Any]], objectives: Sequence[Objective], title: str, path: Path) -> None:
    """SVG of all rows without error over the first two objectives, those on the front marked and joined; the same rows
    give the same bytes. Raises `BadParameter` for fewer than two objectives, `OSError`."""
    import matplotlib

    if len(objectives) < 2:
        raise BadParameter(f"picture of a front: {len(objectives)} objective vs at least two")
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "step-hw"  # the same bytes for the same rows
    from matplotlib import pyplot

    across, up = objectives[:2]
    good = [row for row in rows if row["error"] is None]
    best = sorted((row for row in good if row["pareto"]), key=lambda row: (across.cost(row), up.cost(row)))
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    axes.scatter([r[across.name] for r in good if not r["pareto"]], [r[up.name] for r in good if not r["pareto"]],
                 s=18, color="#4c72b0", alpha=0.6, label=f"{len(good) - len(best)} other points")
    axes.plot([r[across.name] for r in best], [r[up.name] for r in best], color="#dd8452", marker="o", markersize=5,
              drawstyle="steps-post" if len(objectives) == 2 else "default",
              linestyle="-" if len(objectives) == 2 else "none", label=f"Pareto front, {len(best)} points")
    for axis, values in ((axes.xaxis, [r[across.name] for r in good]), (axes.yaxis, [r[up.name] for r in good])):
        numbers = np.array(values, dtype=float)
        if len(numbers) and numbers.min() > 0 and numbers.max() > 20 * numbers.min():
            (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
    axes.set_xlabel(across.name + (" (more is better)" if across.maximise else ""))
    axes.set_ylabel(up.name + (" (more is better)" if up.maximise else ""))
    axes.set_title(title)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)
