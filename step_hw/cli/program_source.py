"""A program file as a worker of a sweep gets it. Imports little: every worker waits for it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from step_lang import Program
from step_lang.errors import SweepError

from .program_file import ProgramFile

__all__ = ["ProgramSource"]


@dataclass(frozen=True)
class ProgramSource:
    """How a worker builds the program: the file by its absolute path and the hash of its text, the builder's name and
    the seed of input streams. Calling it builds."""

    path: str
    function: str
    digest: str
    seed: int

    @classmethod
    def of(cls, file: ProgramFile, seed: int) -> ProgramSource:
        return cls(str(file.path.resolve()), file.function, _digest(file.path), seed)

    def __call__(self, parameters: Mapping[str, Any]) -> tuple[Program, Mapping[str, Any]]:
        file = _opened(self)
        program = file.build(**parameters)
        return program, file.stream_inputs(program, self.seed, **parameters)


@lru_cache(maxsize=8)
def _opened(source: ProgramSource) -> ProgramFile:
    path = Path(source.path)
    if not path.is_file():
        raise SweepError(f"program file on a worker: {source.path!r} vs an existing file",
                         fix="put it where all workers see it")
    if _digest(path) != source.digest:
        raise SweepError(f"program file {path.name} on a worker: other text vs what the sweep began with",
                         fix="run the sweep again")
    return ProgramFile.open(f"{source.path}:{source.function}")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
