"""``step-hw cosim``: a program on RTL, against the interpreter and the model; ``step-hw demo``: the same on SwiGLU."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

from step_lang.errors import RtlError
from step_lang.roofline import roofline

from .options import (
    calibration_constants, console, design_of, load_tensors, program_options, step, table_of, write_json, write_pictures,
)

__all__ = ["cosim", "demo"]


@click.command()
@program_options
@click.option("--simulator", type=click.Choice(["verilator", "icarus"]), default="verilator", show_default=True)
@click.option("--calibration", type=click.Path(path_type=Path), default=None, metavar="FILE", help="Written by 'step-hw calibrate'.")
@click.option("--seed", default=0, show_default=True, help="Of the program's random inputs.")
@click.option("--tensor", "given", multiple=True, metavar="NAME=FILE.npy", help="An input tensor in place of a random one.")
@click.option("--waves", type=click.Path(path_type=Path), default=None, metavar="FILE", help="Write a waveform (slower).")
def cosim(program: str, settings: tuple[str, ...], config: Path | None, overrides: tuple[str, ...], output: Path | None,
          json_path: Path | None, simulator: str, calibration: Path | None, seed: int, given: tuple[str, ...],
          waves: Path | None) -> None:
    """Simulate PROGRAM on RTL; compare every bit with the interpreter and every cycle count with the model."""
    run(program, settings, config, overrides, output, json_path, simulator, calibration, seed, given, waves)


def run(program: str, settings: tuple[str, ...] = (), config: Path | None = None, overrides: tuple[str, ...] = (),
        output: Path | None = None, json_path: Path | None = None, simulator: str = "verilator",
        calibration: Path | None = None, seed: int = 0, given: tuple[str, ...] = (), waves: Path | None = None) -> dict[str, Any]:
    """The command; returns what ``--json`` writes."""
    from rtl_tests.cosim import build_rtl, check, run_rtl
    from sim.prediction import predict
    from step_lang import metrics

    began = time.perf_counter()
    file, design = design_of(program, settings, config, overrides)
    tensors = load_tensors(file, design, seed, given)
    constants, where = calibration_constants(calibration, design.hw)
    output = output or Path("build") / design.program.name
    native = simulator == "verilator"
    with step("lowering and writing Verilog"):
        design.write(output)
        pictures = write_pictures(design, output)
    with step("interpreting the program and its lowered form"):
        logical = design.interpret(tensors, lowered=False)
        expected = design.interpret(tensors)
    lowering_exact = all(np.array_equal(logical.tensors[n].view(np.uint8), expected.tensors[n].view(np.uint8)) for n in logical.tensors)
    with step(f"compiling with {simulator} (a minute or two at T = 16 the first time, cached after)"):
        build = build_rtl(design, simulator, native=native, trace=waves is not None)
    console.print("simulating RTL ...", style="dim")
    rtl = run_rtl(design, tensors, build, simulator=simulator, native=native, progress=console.is_terminal, waves=waves)
    verdict = check(design, rtl, expected)
    prediction = predict(design.graph, design.hw, constants)
    bound = roofline(design.program, design.hw)
    costs = metrics(design.program)
    exact = verdict.bit_exact and lowering_exact
    for name, tensor in rtl.tensors.items():
        np.save(output / f"{name}.npy", tensor if tensor.dtype.kind in "fiub" and tensor.dtype.itemsize != 2 else tensor.view(np.uint16))
    document = {
        "program": design.program.name, "parameters": file.parameters, "tile": design.hw.tile, "simulator": simulator, "seed": seed,
        "cycles": rtl.cycles, "total_cycles": rtl.total_cycles, "model_cycles": prediction.cycles,
        "error": (prediction.cycles - rtl.cycles) / rtl.cycles, "roofline_cycles": bound.cycles,
        "offchip_read_bytes": rtl.offchip_read_bytes, "offchip_write_bytes": rtl.offchip_write_bytes,
        "symbolic_offchip_bytes": int(costs.offchip_bytes.subs(logical.symbols)),
        "onchip_bytes": int(costs.onchip_bytes.subs(logical.symbols)), "flops": int(costs.flops.subs(logical.symbols)),
        "peak_frames": rtl.peak_frames, "bit_exact": exact, "differences": verdict.differences,
        "simulation_seconds": rtl.native.wall_seconds, "wall_seconds": time.perf_counter() - began,
    }
    traffic = "equals the symbolic expression" if rtl.offchip_bytes == document["symbolic_offchip_bytes"] else (
        f"differs from the symbolic {document['symbolic_offchip_bytes']:,} B")
    Console(highlight=False).print(table_of(f"{design.program.name} on T = {design.hw.tile}, {simulator}", [
        ("cycles", f"{rtl.cycles:,} (first off-chip read to last off-chip write)"),
        ("model", f"{prediction.cycles:,} cycles ({document['error']:+.2%}), from {where}"),
        ("roofline", f"{bound.cycles:,.0f} cycles, {bound.bound} bound: {bound.cycles / rtl.cycles:.1%} reached"),
        ("off-chip", f"{rtl.offchip_read_bytes:,} B read, {rtl.offchip_write_bytes:,} B written: {traffic}"),
        ("on-chip", "peak " + (", ".join(f"{n} {v} frames" for n, v in rtl.peak_frames.items()) or "none")),
        ("bit-exact", "yes: RTL = lowered program = program, every tensor and every token of every link" if exact else
         "NO: " + "; ".join(verdict.differences or ["the lowered program differs from the program"])),
        ("simulated", f"in {rtl.native.wall_seconds:.1f} s ({rtl.total_cycles / max(rtl.native.wall_seconds, 1e-9):,.0f} cycles/s)"),
        ("pictures", ", ".join(map(str, pictures))),
        ("Verilog", f"{output / 'verilog'}; results {', '.join(str(output / f'{n}.npy') for n in rtl.tensors)}"),
        *([("waveform", str(rtl.native.waves))] if rtl.native.waves else []),
        *(("warning", text) for text in design.graph.warnings)]))
    write_json(json_path or output / "result.json", document)
    if not exact:
        raise RtlError(f"RTL of '{design.program.name}' differs from the interpreter: {(verdict.differences or ['lowering'])[0]}")
    return document


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("build/demo"), show_default=True, metavar="DIR")
def demo(output: Path) -> None:
    """The paper's SwiGLU layer, 64 x 256 x 512 in tiles of (64, 256, 64), on T = 16 RTL."""
    import examples.swiglu

    run(str(Path(examples.swiglu.__file__)), ("batch=64", "hidden=256", "intermediate=512", "tile_b=64", "tile_f=64"), output=output)
