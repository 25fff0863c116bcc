"""How the time of tile fidelity grows with a layer: ``python -m benchmarks.growth``.

A mixture-of-experts layer of Mixtral-8x7B's sizes on the paper's machine, once warm; batch, experts and intermediate
size each grow alone. Each row has the median CPU seconds of a prediction (lowering to units, the run, the costs) and
the exponent of its growth from the first row of its group: 1 is linear. The batch grows within the tiles of an expert.
"""

from __future__ import annotations

import math
import statistics
import time

from rich.console import Console
from rich.table import Table

from examples import moe
from sim.tile import RooflineMachine
from sim.tile import predict as predict_tiles

__all__ = ["main"]

MIXTRAL = {"batch": 64, "experts": 8, "top_k": 2, "hidden": 4096, "intermediate": 14336}
GROWS = {"batch": (64, 256, 1024, 4096), "experts": (8, 32, 128), "intermediate": (14336, 28672, 57344, 114688)}
RUNS = 5


def _measure(tiling: dict[str, object], **sizes: int) -> tuple[float, int]:
    program = moe.build(**MIXTRAL | sizes, **tiling)
    streams = moe.streams(program, seed=1)
    events = predict_tiles(program, RooflineMachine(), streams).events
    seconds = []
    for _ in range(RUNS):
        began = time.process_time()
        predict_tiles(program, RooflineMachine(), streams)
        seconds.append(time.process_time() - began)
    return statistics.median(seconds), events


def main() -> None:
    """Print the table."""
    table = Table("tiling", "grows", "to", "events", "seconds", "exponent")
    for tiling in ({"tiling": "dynamic"}, {"tiling": "static", "tile_rows": 32}):
        for name, values in GROWS.items():
            first = None
            for value in values:
                seconds, events = _measure(tiling, **{name: value})
                first = first or (value, seconds)
                exponent = "" if value == first[0] else f"{math.log(seconds / first[1], value / first[0]):.2f}"
                table.add_row(str(tiling["tiling"]), name, f"{value:,}", f"{events:,}", f"{seconds:.3f}", exponent)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
