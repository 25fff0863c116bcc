"""``step-hw generate``: Verilog of a program."""

from __future__ import annotations

from pathlib import Path

import click

from .options import design_of, program_options, show, step, table_of, write_json, write_pictures

__all__ = ["generate"]


@click.command()
@program_options
def generate(
    program: str,
    settings: tuple[str, ...],
    config: Path | None,
    overrides: tuple[str, ...],
    output: Path | None,
    json_path: Path | None,
) -> None:
    """Write Verilog, registers and pictures of PROGRAM.

    verilog/*.v (compile order in files.f), registers.txt (address and data of every configuration write), manifest.json
    (units, links, register names), hw.toml, program.svg and lowered.svg go to -o (default: build/<program>). The same
    input gives the same bytes.
    """
    _, design = design_of(program, settings, config, overrides)
    output = output or Path("build") / design.program.name
    with step("lowering and writing Verilog"):
        written = design.write(output) + write_pictures(design, output)
    lines = sum(text.count("\n") for text in design.verilog.files.values())
    facts = {
        "program": design.program.name,
        "tile": design.hw.tile,
        "units": len(design.graph.units),
        "links": len(design.graph.links),
        "modules": len(design.verilog.modules),
        "verilog_lines": lines,
        "registers": len(design.verilog.register_map),
        "files": [str(path) for path in written],
        "warnings": list(design.graph.warnings),
    }
    write_json(json_path, facts)
    show(
        table_of(
            f"{design.program.name} on T = {design.hw.tile}",
            [
                ("units / links", f"{facts['units']} / {facts['links']}"),
                (
                    "Verilog",
                    f"{facts['modules']} modules, {lines:,} lines, top {design.verilog.top}, in {output / 'verilog'}",
                ),
                ("registers", f"{output / 'registers.txt'}, named in {output / 'manifest.json'}"),
                ("pictures", f"{output / 'program.svg'}, {output / 'lowered.svg'}"),
                *(("warning", text) for text in design.graph.warnings),
            ],
        )
    )
