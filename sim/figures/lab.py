"""Runs the points of figures at tile fidelity, each once: results are kept on disk by content."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import step_lang
from step_lang.errors import RtlError

from ..dispatch import cache_directory
from ..tile.accounting import ACCOUNTINGS, allocated_compute, onchip_bytes
from ..tile.engine import serve_all_kinds
from ..tile.machine import PAPER_MEMORY, RooflineMachine
from ..tile.prediction import predict

__all__ = ["Lab", "Measured", "Point"]


@dataclass(frozen=True)
class Point:
    """A run: ``build(**parameters)`` of a program's ``module`` on a `RooflineMachine` with these ``machine`` settings;
    its input streams are what the function ``streams``, as ``module:name``, makes of the program and ``given``."""

    module: str
    parameters: Mapping[str, Any]
    machine: Mapping[str, Any]
    streams: str
    given: Any

    def inputs(self) -> list[Any]:
        """All that the result depends on besides the sources."""
        return [self.module, dict(self.parameters), dict(self.machine), asdict(PAPER_MEMORY), self.streams, self.given]


@dataclass(frozen=True)
class Measured:
    """What a figure needs of a run. ``onchip``: bytes by accounting; ``allocated``: FLOPs/cycle of operators that
    compute on tiles; ``grants``: of each operator that arbitrates how often it served each input."""

    cycles: int
    offchip_bytes: int
    onchip: Mapping[str, int]
    flops: int
    allocated: int
    memory_utilisation: float
    peak_buffer_bytes: int
    grants: Mapping[str, list[int]] = field(repr=False)

    @property
    def utilisation(self) -> float:
        """FLOPs over what the allocated compute could have done."""
        return self.flops / (self.allocated * self.cycles)


class Lab:
    """Runs points. ``on_point`` is called after each one; ``finished`` counts points, ``reused`` those from disk."""

    def __init__(self, on_point: Callable[[], None] | None = None, directory: Path | None = None):
        self.directory = (directory or cache_directory()) / "figures"
        self.finished = self.reused = 0
        self._on_point = on_point or (lambda: None)

    def run(self, point: Point) -> Measured:
        """The result of ``point``. Raises `RtlError` where traffic is not what the symbolic expression says."""
        return Measured(**self.keep(point.inputs(), lambda: asdict(_run(point))))

    def keep(self, inputs: Any, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What ``compute`` returns, kept by ``inputs`` and by the sources of language, model and programs. JSON can
        hold both."""
        key = hashlib.sha256(json.dumps([inputs, _sources()], sort_keys=True).encode()).hexdigest()
        path = self.directory / f"{key}.json"
        found = _load(path)
        if found is None:
            serve_all_kinds()
            found = compute()
            _save(path, found)
        else:
            self.reused += 1
        self.finished += 1
        self._on_point()
        return found


def _run(point: Point) -> Measured:
    module = importlib.import_module(point.module)
    program = module.build(**point.parameters)
    place, name = point.streams.split(":")
    streams = getattr(importlib.import_module(place), name)(program, point.given)
    prediction = predict(program, RooflineMachine(**point.machine), streams)
    expected = int(prediction.costs.offchip_bytes)
    if prediction.offchip_bytes != expected:
        raise RtlError(f"off-chip traffic of {program.name} {dict(point.parameters)}: {prediction.offchip_bytes} B at "
                       f"tile fidelity vs {expected} B by the symbolic expression")
    return Measured(
        cycles=prediction.cycles, offchip_bytes=prediction.offchip_bytes,
        onchip={name: onchip_bytes(prediction, name) for name in ACCOUNTINGS},
        flops=prediction.flops, allocated=allocated_compute(prediction),
        memory_utilisation=prediction.memory_utilisation,
        peak_buffer_bytes=sum(prediction.peak_buffer_bytes.values()),
        grants={name: [grants.count(k) for k in range(max(grants, default=-1) + 1)]
                for name, grants in prediction.arbitration.items()})


def _load(path: Path) -> dict[str, Any] | None:
    """A kept result; None where there is none, or a damaged one."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        document = json.loads(path.read_text())
        body: dict[str, Any] = document["result"]
        if document["digest"] == _digest(body):
            return body
    return None


def _save(path: Path, body: dict[str, Any]) -> None:
    """Whole or not at all; a cache that cannot be written is no error."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "w") as file:
                json.dump({"digest": _digest(body), "result": body}, file)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


@cache
def _sources() -> str:
    """Hash of what results depend on: language, model and programs."""
    digest = hashlib.sha256()
    root = Path(step_lang.__file__).parent.parent
    for directory in ("step_lang", "sim", "examples"):
        for path in sorted((root / directory).rglob("*.py")):
            parts = path.relative_to(root).parts
            if "tests" in parts or parts[:2] in (("sim", "figures"), ("sim", "sweep")):
                continue
            digest.update("/".join(parts).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()
