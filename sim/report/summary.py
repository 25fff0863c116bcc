"""A run in a terminal."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from .findings import findings
from .record import STATES, Run

__all__ = ["facts", "summary"]

MOST = 12
"""Units that are listed."""


def facts(run: Run) -> list[tuple[str, str]]:
    """The numbers of a run by name."""
    made = [
        ("cycles", f"{run.cycles:,} (first off-chip read to last off-chip write)"),
        ("roofline", f"{run.bound:,.0f} cycles, "
                     f"{'memory' if run.memory_bound >= run.compute_bound else 'compute'} bound: "
                     f"{run.bound / max(1, run.cycles):.1%} reached"),
        ("off-chip", f"{run.read_bytes:,} B read, {run.write_bytes:,} B written: {run.memory_share:.1%} of "
                     f"{run.bandwidth:g} B/cycle"),
        ("compute", f"{run.flops:,} FLOPs: {run.compute_share:.1%} of {run.peak_flops:,} FLOPs/cycle"),
        ("on-chip", f"{run.onchip_required:,} B required"
                    + (f"; buffers at their fullest {sum(n for n, _ in run.onchip_peak.values()):,} B"
                       if run.onchip_peak else "")),
    ]
    return made


def summary(run: Run) -> Group:
    """Numbers, what limits the design, and the units that work or wait most."""
    numbers = Table(show_header=False, box=None, padding=(0, 2))
    numbers.add_column(style="bold")
    numbers.add_column()
    for name, value in facts(run):
        numbers.add_row(name, value)
    parts: list[Text | Table] = [Text(f"{run.program.name}: {run.simulator}", style="italic"), numbers,
                                 Text("what limits this design", style="italic")]
    for found in findings(run)[:4]:
        parts.append(Text(f"  {found.title}. {found.text}"))
        parts += [Text(f"    try: {what}") for what in found.tries]
    table = Table(box=None, padding=(0, 2))
    table.add_column("unit")
    for state in STATES:
        table.add_column(state, justify="right")
    for unit in sorted(run.units, key=lambda unit: -unit.states["busy"])[:MOST]:
        table.add_row(unit.name, *(f"{unit.share(state):.1%}" for state in STATES))
    more = len(run.units) - MOST
    parts += [Text("units that work most" + (f" (of {len(run.units)})" if more > 0 else ""), style="italic"), table]
    return Group(*parts)
