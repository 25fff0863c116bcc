"""What a worker does: one point, from its parameters to its row, by way of the store."""

from __future__ import annotations

import contextlib
import resource
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from filelock import FileLock

from step_lang.errors import BuildError, StepError, SweepError
from step_lang.hwconfig import HardwareConfig
from step_lang.program import Program

from ..dispatch import cache_directory
from ..tile.machine import RooflineMachine
from .content import model_hash
from .evaluate import Case, Model, Scalar, prepare
from .points import Point
from .store import Store

__all__ = ["Builder", "Outcome", "Task", "work"]

Builder: TypeAlias = Callable[[Mapping[str, Any]], tuple[Program, Mapping[str, Any]]]
"""Builds a program and the values of its input streams from its parameters; can be pickled, and called anywhere."""


@dataclass(frozen=True)
class Task:
    """A point on its way to a worker.

    index : its row
    hw : its hardware, or why there is none
    model : `model_hash` of the process that asks; a worker of another version refuses
    cache : directory of the store, seen from the process that asks
    """

    index: int
    point: Point
    builder: Builder
    hw: HardwareConfig | RooflineMachine | str
    constants: Mapping[str, int]
    fidelity: str
    model: str
    cache: str


@dataclass(frozen=True)
class Outcome:
    """A finished point.

    numbers : as of `sim.sweep.evaluate.NUMBERS`; empty for one that is refused
    error : why it is refused, else None
    key, entry : under which key the store keeps it, and what; empty for what is refused before it has a content
    cached : whether it came from there
    worker_bytes : the most memory that its worker has taken so far
    failed : whether ``error`` is no refusal but a fault, of step-hw or of what the program file makes; it is not kept
    """

    index: int
    numbers: dict[str, Scalar]
    error: str | None
    key: str = ""
    entry: dict[str, Any] = field(default_factory=dict)
    cached: bool = False
    worker_bytes: int = 0
    failed: bool = False


def work(task: Task) -> Outcome:
    """Evaluate a point, or take it from the store. What it raises is the point's outcome, so that one point cannot end
    a sweep; a `SweepError`, which is no single point's, is raised, and so is an `ImportError`."""
    try:
        return _work(task)
    except (SweepError, ImportError):
        raise
    except Exception as error:
        return Outcome(task.index, {}, _fault(error), worker_bytes=_peak_memory(), failed=True)


def _work(task: Task) -> Outcome:
    if task.model != model_hash():
        raise SweepError("model of a worker: another version of step-hw vs the one that asks",
                         fix="restart the workers with this one's sources")
    began = time.perf_counter()
    try:
        if isinstance(task.hw, str):
            return Outcome(task.index, {}, task.hw)
        program, streams = task.builder(task.point.parameters)
        model = prepare(Case(program, task.hw, streams, task.constants), task.fidelity)
    except SweepError:
        raise
    except StepError as error:
        return Outcome(task.index, {}, str(error))
    store = Store(task.cache)
    entry = store.get(model.content)
    if entry is not None and entry.get("places") in (None, model.places):
        return Outcome(task.index, entry["numbers"], entry["error"], model.content, entry, True, _peak_memory())
    preparing = time.perf_counter() - began
    _warm_up(model)
    began = time.perf_counter()
    try:
        numbers = model.run()
        entry = {"numbers": {**numbers, "wall_seconds": preparing + time.perf_counter() - began}, "error": None}
    except StepError as error:
        entry = {"numbers": {}, "error": str(error), "places": model.places}
    with contextlib.suppress(BuildError):  # the process that asks keeps it too, and says what is wrong
        store.put(model.content, entry)
    return Outcome(task.index, entry["numbers"], entry["error"], model.content, entry, False, _peak_memory())


def _fault(error: Exception) -> str:
    """What an exception that is no `StepError` says, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'without a message'}{place}"


def _peak_memory() -> int:
    """The most memory that this process has taken, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


_compiled: list[frozenset[str]] = []
"""Kinds of units that the engines loaded in this process serve."""


def _warm_up(model: Model) -> None:
    """Compile the model, or load it compiled. Workers that start together would all compile the same; here one does,
    and the others load it."""
    if any(model.kinds <= kinds for kinds in _compiled):
        return
    directory = cache_directory()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with FileLock(directory / "engine.lock"), contextlib.suppress(StepError):  # `run` raises it again
            model.warm_up()
    except OSError as error:
        raise SweepError(f"cache {directory}: {error.strerror or error} vs a place that can be written",
                         fix="make room, or set STEP_HW_CACHE to another directory") from None
    _compiled.append(model.kinds)
