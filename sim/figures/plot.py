"""Plots of figures as SVG, the same bytes for the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["COLORS", "draw"]

COLORS = {"static": "#4c72b0", "dynamic": "#dd8452", "other": "#55a868", "paper": "#808080", "more": "#8172b3"}


def draw(figure: Any, sketch: Any, path: Path, panels: int = 1) -> None:
    """Have ``sketch(figure, axes)`` draw into ``panels`` axes side by side, and write them to ``path``."""
    import matplotlib

    # Text as text and a salt of our own: identifiers in the file do not change from run to run.
    with matplotlib.rc_context({"svg.hashsalt": "step-hw", "svg.fonttype": "none", "font.size": 9}):
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        made = Figure(figsize=(5.2 * panels, 3.8), layout="constrained")
        canvas = FigureCanvasSVG(made)
        axes = [made.add_subplot(1, panels, k + 1) for k in range(panels)]
        made.suptitle(f"Figure {figure.number}: {figure.title}")
        sketch(figure, axes)
        canvas.print_svg(path, metadata={"Date": None})
