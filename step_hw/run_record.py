"""A run on files: what went into it and what came out, so that it can be repeated elsewhere and later."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from step_lang import Program, TokenStream
from step_lang.errors import BuildError, TensorError
from step_lang.hwconfig import HardwareConfig
from step_lang.types import Tile, Tuple, Type

__all__ = ["RunRecord"]

_VERSION = 1


@dataclass
class RunRecord:
    """One run of a program.

    source, function, parameters : text of the program file, its builder, and what it was given
    file : name of the program file
    beside : text of the modules that it imported from its folder, by path below it
    hardware : the configuration it ran on
    tensors, streams : off-chip inputs and values of input streams, by name
    arbitration : grants of each operator that arbitrates, by its name
    outputs : stored tensors by name
    numbers : cycles, bytes and whatever else was measured (JSON)
    beats : int64 [n, 3] of (cycle, link, token) of every beat, cycles and tokens as the model's (`sim.network`)
    blocked : cycles in which a beat waited for room in each link. None in records of older versions
    """

    file: str
    source: str
    function: str
    parameters: dict[str, Any]
    hardware: HardwareConfig
    tensors: dict[str, np.ndarray]
    streams: dict[str, TokenStream]
    arbitration: dict[str, list[int]]
    outputs: dict[str, np.ndarray]
    numbers: dict[str, Any] = field(default_factory=dict)
    beside: dict[str, str] = field(default_factory=dict)
    beats: np.ndarray | None = None
    blocked: np.ndarray | None = None

    def save(self, directory: Path) -> Path:
        """Write ``run.json``, the program file, ``hw.toml``, ``run.npz`` and, of a run with beats, ``beats.npz`` into
        ``directory``, which is made. Raises `BuildError`."""
        arrays: dict[str, np.ndarray] = {}
        for kind, group in (("tensor", self.tensors), ("output", self.outputs)):
            arrays |= {f"{kind}.{name}": _plain(array) for name, array in group.items()}
        for name, tokens in self.streams.items():
            arrays |= {f"stop.{name}": tokens.stop, f"empty.{name}": tokens.empty}
            parts = tokens.data if isinstance(tokens.data, tuple) else (tokens.data,)
            arrays |= {f"data{i}.{name}": _plain(np.asarray(part)) for i, part in enumerate(parts)}
        document = {
            "version": _VERSION, "program": self.file, "function": self.function, "parameters": self.parameters,
            "sha256": _digest(self.source), "hardware_sha256": _digest(self.hardware.to_toml()),
            "beside": {path: _digest(text) for path, text in self.beside.items()},
            "streams": sorted(self.streams),
            "arbitration": self.arbitration, "numbers": self.numbers,
        }
        try:
            directory.mkdir(parents=True, exist_ok=True)
            with (directory / "run.npz.part").open("wb") as file:
                np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
            for path, text in {**self.beside, self.file: self.source}.items():
                (directory / path).parent.mkdir(parents=True, exist_ok=True)
                (directory / path).write_text(text)
            (directory / "hw.toml").write_text(self.hardware.to_toml())
            (directory / "run.npz.part").replace(directory / "run.npz")
            (directory / "beats.npz").unlink(missing_ok=True)   # an older run's
            if self.beats is not None and self.blocked is not None:
                with (directory / "beats.npz.part").open("wb") as file:
                    # Differences of cycles are small numbers, which compress well.
                    np.savez_compressed(file, delta=np.diff(self.beats[:, 0], prepend=0).astype(np.uint32),
                                        link=self.beats[:, 1].astype(np.uint16),
                                        token=self.beats[:, 2].astype(np.uint32), blocked=self.blocked)
                (directory / "beats.npz.part").replace(directory / "beats.npz")
            # Last: a directory with run.json holds all of the run.
            (directory / "run.json.part").write_text(json.dumps(document, indent=1) + "\n")
            (directory / "run.json.part").replace(directory / "run.json")
        except OSError as error:
            raise BuildError(f"run record {directory}: {error.strerror} vs a writable place",
                             fix="choose another with -o") from error
        return directory

    @classmethod
    def load(cls, directory: Path, program_of: Any) -> tuple[RunRecord, Program]:
        """The record in ``directory`` and its program, which ``program_of(path, function, parameters)`` builds.

        Raises `BuildError` that names the file for a directory without a whole record, `TensorError` for one whose
        program file or configuration was changed since or whose arrays are not those of the program.
        """
        document = _document(directory)
        with _told(directory, document["program"]):
            source = (directory / document["program"]).read_text()
        beside = {}
        for path in document["beside"]:
            with _told(directory, path):
                beside[path] = (directory / path).read_text()
        with _told(directory, "run.npz"), np.load(directory / "run.npz") as file:
            arrays = {name: file[name] for name in file.files}
        with _told(directory, "beats.npz"):
            beats, blocked = _beats(directory / "beats.npz")
        expected = {document["program"]: document["sha256"], **document["beside"]}
        texts = {document["program"]: source, **beside}
        if "hardware_sha256" in document:   # records of the same version from before have none
            with _told(directory, "hw.toml"):
                texts["hw.toml"] = (directory / "hw.toml").read_text()
            expected["hw.toml"] = document["hardware_sha256"]
        for path, text in texts.items():
            if _digest(text) != expected[path]:
                raise TensorError(f"run record {directory}: {path} was changed since vs what ran",
                                  fix="restore it, or run step-hw cosim again")
        program = program_of(directory / document["program"], document["function"], document["parameters"])
        types = {stream.name: stream for stream in program.streams}
        streams = {}
        for name in document["streams"]:
            if name not in types or f"stop.{name}" not in arrays:
                raise TensorError(f"run record {directory}: stream '{name}' vs the program's {', '.join(types)}")
            type_ = types[name].type
            members: Sequence[Type] = type_.members if isinstance(type_, Tuple) else (type_,)
            parts = [_typed(arrays[f"data{i}.{name}"], member) for i, member in enumerate(members)]
            streams[name] = TokenStream(types[name].rank, arrays[f"stop.{name}"], arrays[f"empty.{name}"],
                                        tuple(parts) if isinstance(type_, Tuple) else parts[0])
        groups: dict[str, dict[str, np.ndarray]] = {"tensor": {}, "output": {}}
        for key, array in arrays.items():
            kind, _, name = key.partition(".")
            if kind in groups:
                if name not in program.tensors:
                    raise TensorError(f"run record {directory}: tensor '{name}' vs the program's "
                                      f"{', '.join(program.tensors)}")
                groups[kind][name] = array.view(program.tensors[name].dtype.numpy)
        hardware = HardwareConfig.load(directory / "hw.toml")
        arbitration = {name: list(grants) for name, grants in document["arbitration"].items()}
        return cls(document["program"], source, document["function"], document["parameters"], hardware,
                   groups["tensor"], streams, arbitration, groups["output"], document["numbers"], beside, beats,
                   blocked), program

    def differences(self, tensors: Mapping[str, np.ndarray]) -> list[str]:
        """Stored tensors that are not, bit for bit, what ``tensors`` say."""
        return [f"tensor '{name}': recorded vs repeated" for name, recorded in self.outputs.items()
                if name not in tensors or recorded.tobytes() != tensors[name].tobytes()]


_KEYS = {"version": int, "program": str, "function": str, "parameters": dict, "sha256": str, "streams": list,
         "arbitration": dict, "numbers": dict, "beside": dict}
"""What ``run.json`` has at least."""


def _document(directory: Path) -> dict[str, Any]:
    """``run.json``, whole and of this version. Raises `BuildError`."""
    with _told(directory, "run.json"):
        document = json.loads((directory / "run.json").read_text())
        if not isinstance(document, dict):
            raise ValueError("not an object")
        if document.get("version", _VERSION) != _VERSION:
            raise BuildError(f"run record {directory}: version {document['version']} vs {_VERSION}",
                             fix="run step-hw cosim again")
        document.setdefault("beside", {})
        for key, type_ in _KEYS.items():
            if not isinstance(document.get(key), type_):
                raise ValueError(f"without '{key}', {type_.__name__}")
    return document


@contextmanager
def _told(directory: Path, name: str) -> Iterator[None]:
    """Raises `BuildError` for the file ``name`` of a record when it is missing or damaged."""
    try:
        yield
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "damaged" + (
            f" ({error})" if isinstance(error, ValueError) and name.endswith(".json") else "")
        raise BuildError(f"run record {directory}: {name}: {reason} vs the file that step-hw cosim wrote",
                         fix="give the directory 'run' of a whole run, or run step-hw cosim again") from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _beats(path: Path) -> tuple[np.ndarray | None, np.ndarray | None]:
    if not path.exists():
        return None, None
    with np.load(path) as file:
        columns = (np.cumsum(file["delta"], dtype=np.int64), file["link"], file["token"])
        return np.stack([column.astype(np.int64) for column in columns], axis=1), file["blocked"]


def _plain(array: np.ndarray) -> np.ndarray:
    """.npz files cannot say bfloat16: its bits travel as uint16."""
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array


def _typed(array: np.ndarray, type_: Type) -> np.ndarray:
    return array.view(type_.dtype.numpy) if isinstance(type_, Tile) and array.dtype != type_.dtype.numpy else array
