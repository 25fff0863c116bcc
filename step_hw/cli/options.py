"""Options and output that commands share."""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from step_hw.design import Design
from step_lang.errors import BuildError, ConfigError, TensorError
from step_lang.hwconfig import HardwareConfig
from step_lang.interpreter import check_tensors

from .program_file import ProgramFile, parse_settings, parse_value

__all__ = [
    "calibration_constants",
    "calibration_option",
    "check_place",
    "config_options",
    "configuration",
    "console",
    "design_of",
    "json_option",
    "load_tensors",
    "make_directory",
    "note_warnings",
    "program_options",
    "seed_option",
    "show",
    "simulator_option",
    "step",
    "table_of",
    "titled",
    "whole_file",
    "write_json",
    "write_pictures",
]

_UNWRAPPED = 1000
"""Columns of output that does not go to a terminal: no line is broken."""

_TELL_SECONDS = 10.0

_PLAIN: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
"""Brackets and colons in texts are what they are: names of files, ``[link.depths]``."""

console = Console(stderr=True, width=None if sys.stderr.isatty() else _UNWRAPPED, **_PLAIN)
"""Progress and notes; results go to standard output (`show`)."""


def show(*results: Any) -> None:
    """Print tables and texts to standard output: as wide as the terminal, or unwrapped where there is none."""
    if sys.stdout.isatty():
        Console(**_PLAIN).print(*results, sep="\n")
        return
    plain = Console(width=_UNWRAPPED, force_terminal=False, color_system=None, **_PLAIN)
    with plain.capture() as text:
        plain.print(*results, sep="\n")
    for line in text.get().splitlines():
        click.echo(line.rstrip())


def program_options(command: Callable) -> Callable:
    """PROGRAM, --set, --config, --json and -o."""
    for decorate in reversed(
        (
            click.argument("program", metavar="PROGRAM.py[:function]"),
            click.option(
                "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of the program's builder."
            ),
            config_options,
            click.option(
                "-o",
                "--output",
                type=click.Path(path_type=Path),
                default=None,
                metavar="DIR",
                help="Where to write files.",
            ),
            json_option,
        )
    ):
        command = decorate(command)
    return command


def config_options(command: Callable) -> Callable:
    """--config and --hw."""
    command = click.option(
        "--hw",
        "overrides",
        multiple=True,
        metavar="SECTION.KEY=VALUE",
        help="One key of the hardware configuration, on top of --config, such as tile.size=4.",
    )(command)
    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        default=None,
        metavar="HW.toml",
        help="Hardware configuration (default: T = 16 and all other defaults).",
    )(command)




def check_place(path: Path, what: str) -> None:
    """Raise `BuildError` for a file that can certainly not be written, before the run whose numbers it is to have."""
    reason = os.strerror(errno.EISDIR) if path.is_dir() else None
    above = next((p for p in path.absolute().parents if p.exists()), None)
    if reason is None and above is not None:
        if not above.is_dir():
            reason = os.strerror(errno.ENOTDIR)
        elif not os.access(above, os.W_OK):
            reason = os.strerror(errno.EACCES)
    if reason is not None:
        raise BuildError(f"{what} {path}: {reason} vs a writable place", fix="choose another place")


def _json_place(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    if path is not None:
        check_place(path, "JSON file")
    return path


json_option = click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path),
    default=None,
    callback=_json_place,
    metavar="FILE",
    help="Write every number printed, as JSON.",
)
calibration_option = click.option(
    "--calibration",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="Written by 'step-hw calibrate' (default: the timing that units state).",
)
simulator_option = click.option(
    "--simulator",
    type=click.Choice(["verilator", "icarus"]),
    default="verilator",
    show_default=True,
    help="icarus is slow: for small programs.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the program's random inputs.",
)


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
        table[name] = parse_value(value)
    return HardwareConfig.from_toml(tomli_w.dumps(document), "--hw" if overrides else str(path or "defaults"))


def design_of(
    program: str, settings: Sequence[str], config: Path | None, overrides: Sequence[str] = (), seed: int = 0
) -> tuple[ProgramFile, Design]:
    """The program file and its design; ``seed`` is that of input streams."""
    file = ProgramFile.open(program, parse_settings(settings))
    hw = configuration(config, overrides)
    built = file.build()
    return file, Design(built, hw, file.stream_inputs(built, seed))


def load_tensors(file: ProgramFile, design: Design, seed: int, given: Sequence[str]) -> dict[str, np.ndarray]:
    """The program file's inputs, with ``--tensor name=file.npy`` in their place. Raises `TensorError`."""
    tensors = file.tensors(design.program, seed)
    replaced = {tensor.name for op in design.program.operators if op.kind == "linear_offchip_store"
                for tensor in op.tensors_written}
    kept = [name for name in design.program.tensors if name not in replaced]
    for pair in given:
        name, equals, path = pair.partition("=")
        if not equals:
            raise TensorError(f"--tensor {pair}: {pair!r} vs name=file.npy")
        if name not in design.program.tensors:
            raise TensorError(
                f"--tensor {pair}: {name!r} vs one of {', '.join(kept)}",
                fix="give the name of a tensor that the program reads",
            )
        if name not in kept:
            raise TensorError(f"--tensor {pair}: contents of '{name}' vs what the program stores there",
                              fix=f"give the contents of one that it reads: {', '.join(kept) or 'none'}")
        try:
            array = np.load(path)
        except (OSError, ValueError, EOFError) as error:
            raise TensorError(f"--tensor {pair}: {path!r} vs a readable .npy file ({error})") from None
        if not isinstance(array, np.ndarray):
            raise TensorError(f"--tensor {pair}: an archive of arrays vs one array in a .npy file")
        wanted = np.dtype(design.program.tensors[name].dtype.numpy)
        # .npy files cannot say bfloat16: its bits travel as uint16 or as two opaque bytes.
        raw = array.dtype.kind == "V" or array.dtype == np.uint16
        tensors[name] = array.view(wanted) if raw and array.dtype.itemsize == wanted.itemsize else array
    check_tensors(design.program, tensors)  # before anything long begins
    return tensors


def calibration_constants(path: Path | None, hw: HardwareConfig) -> tuple[dict[str, int], str]:
    """Constants of a calibration file and a word on where they are from. Raises `CalibrationError`."""
    from sim.calibration import Calibration

    if path is None:
        return {}, "the units' stated timing (no calibration file)"
    return Calibration.load(path, hw).constants, f"calibration {path}"


def make_directory(directory: Path) -> Path:
    """The directory, made if need be. Raises `BuildError` when it cannot be."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(
            f"output directory {directory}: {error.strerror} vs a writable place", fix="choose another with -o"
        ) from error
    return directory


@contextmanager
def whole_file(path: Path, what: str) -> Iterator[Path]:
    """A path to write to that becomes ``path`` when all is written, so that no half a file is taken for a whole one.

    Raises `BuildError` that calls the file ``what`` when it cannot be written.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")  # another process may write the same file
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        partial.replace(path)
    except OSError as error:
        raise BuildError(
            f"{what} {path}: {error.strerror or error} vs a writable place", fix="choose another place"
        ) from error
    finally:
        try:
            partial.unlink(missing_ok=True)
        except OSError:  # the place itself is no directory
            pass


def write_pictures(design: Design, directory: Path) -> list[Path]:
    """``program.svg`` and ``lowered.svg``. Raises `BuildError` when the directory is not writable."""
    from step_lang import draw

    make_directory(directory)
    draw(design.program, directory / "program.svg")
    draw(design.lowered.program, directory / "lowered.svg")
    return [directory / "program.svg", directory / "lowered.svg"]


def write_json(path: Path | None, document: Mapping[str, Any]) -> None:
    """Write, if a path was given. Raises `BuildError` when it cannot be written."""
    if path is not None:
        with whole_file(path, "JSON file") as partial:
            partial.write_text(json.dumps(document, indent=1) + "\n")


def note_warnings(design: Design) -> None:
    """Say what may go wrong before a run begins, which may not end."""
    for text in design.graph.warnings:
        console.print(f"warning: {text}")


@contextmanager
def step(what: str) -> Iterator[Callable[[str], None]]:
    """A line that says what takes its time, while it does; what is yielded says how far it is. Where there is no
    terminal, that is told every `_TELL_SECONDS`."""
    if console.is_terminal:
        with console.status(what) as status, _compiling_told(lambda text: status.update(f"{what}: {text}")):
            yield lambda text: status.update(f"{what}: {text}")
        return
    console.print(f"{what} ...", style="dim")
    last = time.monotonic()

    def tell(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _TELL_SECONDS:
            last = time.monotonic()
            console.print(f"{what}: {text}", style="dim")

    with _compiling_told(lambda text: console.print(f"{what}: {text}", style="dim")):
        yield tell


@contextmanager
def _compiling_told(tell: Callable[[str], None]) -> Iterator[None]:
    """Has what the model's engine logs told: that it is compiled, which takes far longer than what follows."""
    handler = logging.Handler()
    handler.emit = lambda record: tell(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("sim.dispatch")
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def table_of(title: str, rows: Sequence[tuple[str, str]]) -> Group:
    """A title over two columns."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    for name, value in rows:
        table.add_row(name, value)
    return titled(title, table)


def titled(title: str, table: Table) -> Group:
    """``table`` under a line that its width does not break."""
    return Group(Text(title, style="italic"), table)
