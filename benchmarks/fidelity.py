"""Tile fidelity against beat fidelity, which is equal to RTL: cycles of `sim.tests.tile_workloads`, the error of each,
and the summary. ``python -m benchmarks.fidelity [--only TEXT]``."""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from sim.tests.tile_workloads import WORKLOADS, compare


def _ranks(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="workloads whose name has this text")
    wanted = parser.parse_args().only
    chosen = [workload for workload in WORKLOADS if wanted in workload.name]
    rows = [compare(workload) for workload in track(chosen, console=Console(stderr=True))]
    table = Table("workload", "beat", "tile", "error")
    for row in rows:
        table.add_row(row.name, f"{row.beat:,}", f"{row.tile:,}", f"{100 * row.error:+.1f}%")
    Console(width=100).print(table)
    errors = np.abs([row.error for row in rows])
    ranks = np.corrcoef(_ranks(np.array([r.beat for r in rows])), _ranks(np.array([r.tile for r in rows])))[0, 1]
    print(f"{len(rows)} workloads: mean absolute error {100 * errors.mean():.1f}%, worst {100 * errors.max():.1f}%, "
          f"rank correlation {ranks:.3f}")


if __name__ == "__main__":
    main()
