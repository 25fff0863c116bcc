"""Options and output that commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from step_hw.design import Design
from step_lang.errors import BuildError, ConfigError, TensorError
from step_lang.hwconfig import HardwareConfig

from .program_file import ProgramFile, parse_settings

__all__ = ["calibration_constants", "configuration", "console", "design_of", "load_tensors", "program_options", "step",
           "table_of", "write_json", "write_pictures"]

console = Console(stderr=True, highlight=False)
"""Progress and notes; results go to standard output."""


def program_options(command: Callable) -> Callable:
    """PROGRAM, --set, --config, --json and -o."""
    for decorate in reversed((
            click.argument("program", metavar="PROGRAM.py[:function]"),
            click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of the program's builder."),
            *config_options(),
            click.option("-o", "--output", type=click.Path(path_type=Path), default=None, metavar="DIR", help="Where to write files."),
            json_option())):
        command = decorate(command)
    return command


def config_options() -> tuple[Callable, ...]:
    """--config and --hw."""
    return (click.option("--config", type=click.Path(path_type=Path), default=None, metavar="HW.toml",
                         help="Hardware configuration (default: T = 16 and all other defaults)."),
            click.option("--hw", "overrides", multiple=True, metavar="SECTION.KEY=VALUE",
                         help="One key of the hardware configuration, on top of --config."))


def json_option() -> Callable:
    """--json."""
    return click.option("--json", "json_path", type=click.Path(path_type=Path), default=None, metavar="FILE",
                        help="Write every number printed, as JSON.")


def configuration(path: Path | None, overrides: Sequence[str] = ()) -> HardwareConfig:
    """The hardware configuration of --config and --hw. Raises `ConfigError`."""
    import tomllib

    import tomli_w

    text = ""
    if path is not None:
        HardwareConfig.load(path)  # errors in the file are told as the file's
        text = path.read_text()
    document = tomllib.loads(text)
    for pair in overrides:
        key, equals, value = pair.partition("=")
        *sections, name = key.split(".")
        if not equals or not sections:
            raise ConfigError(f"--hw {pair}: {pair!r} vs section.key=value, such as tile.size=8")
        table = document
        for section in sections:
            table = table.setdefault(section, {})
            if not isinstance(table, dict):
                raise ConfigError(f"--hw {pair}: {section!r} is a value vs a section")
        table[name] = parse_settings([f"v={value}"])["v"]
    return HardwareConfig.from_toml(tomli_w.dumps(document), "--hw" if overrides else str(path or "defaults"))


def design_of(program: str, settings: Sequence[str], config: Path | None, overrides: Sequence[str] = ()) -> tuple[ProgramFile, Design]:
    """The program file and its design."""
    file = ProgramFile.open(program, parse_settings(settings))
    hw = configuration(config, overrides)
    built = file.build()
    return file, Design(built, hw, file.stream_inputs(built))


def load_tensors(file: ProgramFile, design: Design, seed: int, given: Sequence[str]) -> dict[str, np.ndarray]:
    """The program file's inputs, with ``--tensor name=file.npy`` in their place. Raises `TensorError`."""
    tensors = file.tensors(design.program, seed)
    for pair in given:
        name, equals, path = pair.partition("=")
        if not equals or name not in design.program.tensors:
            raise TensorError(f"--tensor {pair}: {name!r} vs one of {', '.join(design.program.tensors)}",
                              fix="give --tensor name=file.npy")
        try:
            array = np.load(path)
        except (OSError, ValueError) as error:
            raise TensorError(f"--tensor {pair}: {path!r} vs a readable .npy file ({error})") from None
        wanted = np.dtype(design.program.tensors[name].dtype.numpy)
        # .npy files cannot say bfloat16: its bits travel as uint16 or as two opaque bytes.
        raw = array.dtype.kind == "V" or array.dtype == np.uint16
        tensors[name] = array.view(wanted) if raw and array.dtype.itemsize == wanted.itemsize else array
    return tensors


def calibration_constants(path: Path | None, hw: HardwareConfig) -> tuple[dict[str, int], str]:
    """Constants of a calibration file and a word on where they are from. Raises `CalibrationError`."""
    from sim.calibration import Calibration

    if path is None:
        return {}, "the units' stated timing (no calibration file)"
    return Calibration.load(path, hw).constants, f"calibration {path}"


def write_pictures(design: Design, directory: Path) -> list[Path]:
    """``program.svg`` and ``lowered.svg``. Raises `BuildError` when the directory is not writable."""
    from step_lang import draw

    try:
        directory.mkdir(parents=True, exist_ok=True)
        draw(design.program, directory / "program.svg")
        draw(design.lowered.program, directory / "lowered.svg")
    except OSError as error:
        raise BuildError(f"output directory {directory}: {error.strerror} vs a writable place", fix="choose another with -o") from error
    return [directory / "program.svg", directory / "lowered.svg"]


def write_json(path: Path | None, document: Mapping[str, Any]) -> None:
    """Write atomically, if a path was given."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".part")
        partial.write_text(json.dumps(document, indent=1) + "\n")
        partial.replace(path)
    except OSError as error:
        raise BuildError(f"JSON file {path}: {error.strerror} vs a writable place") from error


@contextmanager
def step(what: str):
    """A line that says what takes its time, while it does."""
    if console.is_terminal:
        with console.status(what):
            yield
    else:
        console.print(f"{what} ...", style="dim")
        yield


def table_of(title: str, rows: Sequence[tuple[str, str]]) -> Table:
    """A two-column table."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    for name, value in rows:
        table.add_row(name, value)
    return table
