"""pytest plugin (``-p rtl_tests.mutants.hook``) that seeds the fault named by ``STEP_HW_FAULT`` while its module is
imported."""

from __future__ import annotations

import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest

from .fault import Fault, find

__all__ = ["UNUSED", "VARIABLE"]

VARIABLE = "STEP_HW_FAULT"
"""Environment variable with the name of the fault; without it nothing is done."""

UNUSED = 99
"""Exit status of a run that never imported the faulty module."""


class _FaultyLoader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, fault: Fault):
        super().__init__(fullname, path)
        self.fault = fault

    def get_code(self, fullname: str) -> CodeType:
        # Neither read from nor written to the byte code cache.
        return compile(self.fault.apply(Path(self.path).read_text()), self.path, "exec", dont_inherit=True)


class _FaultFinder(MetaPathFinder):
    def __init__(self, fault: Fault):
        self.fault = fault
        self.used = False

    def find_spec(self, fullname, path, target=None) -> ModuleSpec | None:
        if fullname != self.fault.module:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None:
            spec.loader = _FaultyLoader(fullname, spec.origin, self.fault)
            self.used = True
        return spec


_finder: _FaultFinder | None = None

if VARIABLE in os.environ:
    _fault = find(os.environ[VARIABLE])
    if _fault.module in sys.modules:
        raise RuntimeError(f"{_fault.module} was imported before the fault could be seeded")
    _finder = _FaultFinder(_fault)
    sys.meta_path.insert(0, _finder)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if _finder is not None and not _finder.used:
        session.exitstatus = UNUSED
