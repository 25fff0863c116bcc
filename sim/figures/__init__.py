"""The paper's evaluation at tile fidelity: each figure as numbers, with the paper's claims beside ours.

A figure is a module ``figureNN`` with ``TITLE``, ``PANELS``, ``points()`` (runs it takes), ``make(lab, traces)`` and
``sketch(figure, axes)``.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from step_lang.errors import BadParameter

from .figure import Claim, Figure
from .lab import Lab, Measured, Point
from .traces import Traces

__all__ = ["Claim", "Figure", "Lab", "Measured", "Point", "Traces", "figure_module", "figure_numbers"]


def figure_numbers() -> list[int]:
    """The figures there are, by their number in the paper."""
    names = (info.name for info in pkgutil.iter_modules(__path__))
    return sorted(int(name.removeprefix("figure")) for name in names if name.removeprefix("figure").isdigit())


def figure_module(number: int) -> ModuleType:
    """The module of a figure. Raises `BadParameter` where there is none."""
    if number not in figure_numbers():
        raise BadParameter(f"figure {number} vs one of {', '.join(map(str, figure_numbers()))}")
    return importlib.import_module(f"{__name__}.figure{number:02d}")
