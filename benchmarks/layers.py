"""The paper's three optimisations on RTL: ``python benchmarks/layers.py --data DIR [moe] [attention]``.

A mixture-of-experts layer of Mixtral's routing (64 tokens, 8 experts, two for each token) by static and dynamic tiling
and on fewer regions than experts; attention of 16 requests under three schedules. Each program runs with the link
depths that ``size-fifos`` finds for full throughput (or ``--depth``). RTL is compared with the interpreter bit for bit
and with the model in cycles; a Markdown table and a JSON file grow row by row, so that what an interrupted run has
finished stays.

``--data`` is a directory with the traces of the paper's artifact (``traces/expert_routing/mixtral_b64``,
``traces/kv_lengths/b16``); without it routing and lengths are made. ``--model`` leaves RTL out.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from examples import attention, moe  # noqa: E402
from sim.prediction import predict  # noqa: E402
from sim.sizing import size_fifos  # noqa: E402
from step_hw.cli.measure import expect, measure  # noqa: E402
from step_hw.design import Design  # noqa: E402
from step_lang.hwconfig import HardwareConfig  # noqa: E402

LENGTHS = {"low": "conv_stdev0174_1845_1860", "high": "conv_stdev1226_0075_0090",
           "higher": "conv_stdev1455_0821_0836"}
"""Traces of KV-cache lengths by how much they vary (deviation 174, 1,226 and 1,455 tokens)."""

ATTENTION: dict[str, Any] = {"k_per_cycle": 2, "memory": {"channels": 4, "burst_bytes": 128, "interval": 1}}
"""Attention's hardware: operators that multiply a tile in four cycles as the paper's do, which at T = 8 are cells two
products deep, and a memory that feeds four regions at once (512 bytes a cycle). ``--products 1`` makes a request, whose
length is the trace's over 16, take as long as in the paper."""

COLUMNS = {"program": "program", "cycles": "cycles", "model_cycles": "model", "error": "error",
           "bit_exact": "bit-exact", "offchip_bytes": "off-chip bytes", "traffic_exact": "= expression",
           "peak_bytes": "scratchpad peak, bytes", "matmul_units": "matrix units", "utilisation": "their utilisation",
           "fifo_beats": "FIFO beats more"}
"""Columns of the table by their names in the JSON file."""


@dataclass(frozen=True)
class Case:
    """A program with its parameters; ``asked`` are those that its input streams depend on."""

    name: str
    module: ModuleType
    parameters: dict[str, Any]
    asked: dict[str, Any] = field(default_factory=dict)

    def design(self, hw: HardwareConfig, seed: int) -> tuple[Design, dict[str, Any]]:
        """The design and its tensors."""
        program = self.module.build(**self.parameters)
        streams = self.module.streams(program, seed, **self.asked)
        return self.named(Design(program, hw, streams)), self.module.inputs(program, seed)

    def named(self, design: Design) -> Design:
        """``design``, its netlist named so that coarse and interleaved attention, which differ in registers and in what
        the host says, are one build."""
        if self.module is attention and self.parameters["schedule"] != "dynamic":
            design.graph.name = "attention_static"
        return design


def cases(what: set[str], data: Path | None, small: bool) -> Iterator[Case]:
    """The table's rows."""
    if "moe" in what:
        sizes = {"batch": 8, "experts": 4, "hidden": 8, "intermediate": 16, "tile_f": 8} if small else {}
        trace = {"trace": str(data / "traces/expert_routing/mixtral_b64")} if data and not small else {}
        experts = sizes.get("experts", 8)
        for rows in (2, 4) if small else (8, 16, 32):
            yield Case(f"MoE, static N = {rows}", moe, {**sizes, "tiling": "static", "tile_rows": rows}, trace)
        for regions in (experts >> k for k in range(experts.bit_length())):
            yield Case(f"MoE, dynamic, {regions} regions", moe, {**sizes, "regions": regions}, trace)
    if "attention" in what:
        sizes = ({"batch": 6, "regions": 2, "queries": 4, "dim": 8, "kv_tile": 4, "capacity": 16} if small
                 else {"kv_tile": 8})
        for variation, name in LENGTHS.items():
            asked: dict[str, Any] = {"factor": 64 * 8 if small else 16}
            if data:
                asked["trace"] = str(data / f"traces/kv_lengths/b16/{name}.npy")
            for schedule in ("coarse", "interleaved", "dynamic"):
                yield Case(f"attention, {variation} variation, {schedule}", attention,
                           {**sizes, "schedule": schedule}, asked)
            if not data:
                return


def hardware(case: Case, tile: int, products: int = 0) -> HardwareConfig:
    """The configuration that a case runs on; ``products``: how deep attention's cells are, 0 for `ATTENTION`'s."""
    hw = HardwareConfig(tile=tile)
    if case.module is not attention:
        return hw
    memory = dataclasses.replace(hw.memory, **ATTENTION["memory"])
    return dataclasses.replace(hw, k_per_cycle=min(tile, products or ATTENTION["k_per_cycle"]), memory=memory)


def sized(case: Case, hw: HardwareConfig, seed: int, tolerance: float) -> tuple[Design, dict[str, Any], int]:
    """The design with links deep enough for full throughput, its tensors, and the beats that they hold more."""
    design, tensors = case.design(hw, seed)
    depths = size_fifos(design, tolerance=tolerance).full
    return case.named(Design(design.program, depths.apply(hw), design.inputs)), tensors, depths.beats


def matmul_units(design: Design) -> list[str]:
    """Names of the physical operators that are matrix units."""
    return [op.name for op in design.lowered.program.operators
            if op.uses_compute and op.fn.name == "matmul"]  # type: ignore[attr-defined]


def run(case: Case, hw: HardwareConfig, arguments: argparse.Namespace) -> dict[str, Any]:
    """One row."""
    began = time.perf_counter()
    if arguments.depth:
        design, tensors = case.design(dataclasses.replace(hw, link_depth=arguments.depth), arguments.seed)
        beats = (arguments.depth - hw.link_depth) * len(design.graph.links)
    else:
        design, tensors, beats = sized(case, hw, arguments.seed, arguments.tolerance)
    if arguments.model:
        prediction = predict(design.graph, design.hw)
        expected = expect(design, tensors, prediction.arbitration)
        numbers: dict[str, Any] = {"cycles": prediction.cycles, "model_cycles": prediction.cycles,
                                   "peak_frames": prediction.peak_frames, "bit_exact": None, "error": None}
        offchip = prediction.offchip_bytes
    else:
        from rtl_tests.cosim import build_rtl

        build = build_rtl(design, arguments.simulator, native=arguments.simulator == "verilator")
        found = measure(design, tensors, build, arguments.simulator, {})
        expected, numbers, offchip = found.expected, found.as_json(), found.rtl.offchip_bytes
        numbers["cycles"] = numbers.pop("rtl_cycles")
    units = matmul_units(design)
    flops = sum(expected.lowered.rows[name]["flops"] for name in units)
    most = len(units) * 2 * hw.tile**2 * int(hw.k_per_cycle or hw.tile)
    frame = {unit.name: -(-unit.params["payload"].data_bits // 8) for unit in design.graph.units
             if unit.kind == "scratchpad"}
    return {
        "program": case.name, "parameters": {**case.parameters, **case.asked}, "tile": hw.tile, **numbers,
        "offchip_bytes": offchip, "traffic_exact": offchip == int(expected.costs.offchip_bytes),
        "peak_bytes": sum(n * frame[name] for name, n in numbers["peak_frames"].items()),
        "matmul_units": len(units), "matmul_flops": flops, "utilisation": flops / (most * numbers["cycles"]),
        "fifo_beats": beats, "wall_seconds": time.perf_counter() - began}


def table(rows: list[dict[str, Any]]) -> str:
    """The rows in Markdown, and below it who is faster than whom."""
    def show(name: str, value: Any) -> str:
        if value is None:
            return "-"
        if isinstance(value, bool):
            return "yes" if value else "NO"
        return f"{value:.2%}" if name in ("error", "utilisation") else f"{value:,}" if isinstance(value, int) else value

    lines = ["| " + " | ".join(COLUMNS.values()) + " |", "|---|" + "---:|" * (len(COLUMNS) - 1)]
    lines += ["| " + " | ".join(show(name, row[name]) for name in COLUMNS) + " |" for row in rows]
    cycles = {row["program"]: row["cycles"] for row in rows}
    for name, dynamic in cycles.items():
        if name.endswith(", dynamic"):
            ratios = [f"{cycles[name.replace('dynamic', other)] / dynamic:.2f}x over {other}"
                      for other in ("coarse", "interleaved") if name.replace("dynamic", other) in cycles]
            lines += ["", f"{name}: {', '.join(ratios)}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the cases and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=["moe", "attention", []], help="which tables (default: both)")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name has TEXT, such as 'static N = 8'")
    parser.add_argument("--data", type=Path, help="directory that holds traces/")
    parser.add_argument("--tile", type=int, default=8)
    parser.add_argument("--products", type=int, default=0, metavar="K",
                        help="attention's cells fold K products a cycle (default: 2)")
    parser.add_argument("--simulator", choices=["verilator", "icarus"], default="verilator")
    parser.add_argument("--model", action="store_true", help="the model only, without RTL")
    parser.add_argument("--small", action="store_true", help="small layers, for a quick look")
    parser.add_argument("--tolerance", type=float, default=0.01, help="share of the cycles that sizing may lose")
    parser.add_argument("--depth", type=int, metavar="BEATS",
                        help="make every link as deep, instead of sizing each: programs of one structure then share a "
                             "netlist, of which there is one build")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, default=Path("build/layers"))
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for case in cases(set(arguments.what or ["moe", "attention"]), arguments.data, arguments.small):
        if arguments.only not in case.name:
            continue
        rows.append(run(case, hardware(case, arguments.tile, arguments.products), arguments))
        print(f"{case.name}: {rows[-1]['cycles']:,} cycles, {rows[-1]['wall_seconds']:.0f} s", file=sys.stderr)
        (arguments.output / "layers.json").write_text(json.dumps(rows, indent=1))
        (arguments.output / "layers.md").write_text(table(rows))
    print(table(rows), end="")


if __name__ == "__main__":
    main()
