"""A unit with a fault in its source: what shows that a proof can fail."""

import importlib
import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

__all__ = ["Fault", "faulty_module"]

_numbers = itertools.count()


@dataclass(frozen=True)
class Fault:
    """``what`` a person calls it; ``old`` becomes ``new``, once, in the source of ``module``."""

    what: str
    old: str
    new: str
    module: str = ""


@contextmanager
def faulty_module(fault: Fault, module: str) -> Iterator[ModuleType]:
    """``module`` with the fault in it or in ``fault.module``, which it imports, as a module of its own beside the right
    one; within the context ``fault.module`` is the faulty one for all who import it. Raises `ValueError` where the
    source does not have ``old`` exactly once."""
    place = fault.module or module
    text = _source(place)
    if text.count(fault.old) != 1:
        raise ValueError(f"fault {fault.what!r}: {place} has {fault.old!r} {text.count(fault.old)} times, not once")
    faulty = _load(place, text.replace(fault.old, fault.new))
    if place == module:
        yield faulty
        return
    good = importlib.import_module(place)
    sys.modules[place] = faulty
    try:
        yield _load(module, _source(module))
    finally:
        sys.modules[place] = good


def _source(module: str) -> str:
    file = importlib.import_module(module).__file__
    assert file is not None
    return Path(file).read_text()


def _load(module: str, text: str) -> ModuleType:
    """A module of its own from ``text``, where ``module`` stands."""
    good = importlib.import_module(module)
    name = f"{module}_copy{next(_numbers)}"
    made = ModuleType(name)
    made.__package__, made.__file__ = good.__package__, good.__file__
    sys.modules[name] = made    # dataclasses ask for their module by name
    try:
        exec(compile(text, str(good.__file__), "exec"), made.__dict__)
    finally:
        del sys.modules[name]
    return made
