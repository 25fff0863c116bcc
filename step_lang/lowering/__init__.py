"""Lowering: a program over logical tiles becomes an equivalent program over T x T tiles (docs/DESIGN.md, section 6)."""

from __future__ import annotations

from typing import Any

from step_lang.errors import BadParameter, StepError, UnknownFunction
from step_lang.hwconfig import TILES
from step_lang.program import Program

from .context import LoweredProgram, Lowering, Placed
from .holds import find_holds
from .layout import Layout, Order, Referenced, RowTiled, Tiled, Whole, raise_tokens
from .orders import Preferences, choose_orders
from .rules import RULES

__all__ = ["Layout", "LoweredProgram", "Placed", "Referenced", "RowTiled", "Tiled", "Whole", "lower", "raise_tokens",
           "stream_orders"]


def lower(program: Program, hw) -> LoweredProgram:
    """Lower ``program`` for ``hw``, a `HardwareConfig` or a tile size T.

    Raises `TileDoesNotDivide` for a tile that T does not divide, `UnknownFunction` for an operator or function that
    has no rule.
    """
    tile = hw if isinstance(hw, int) else hw.tile
    if tile not in TILES:
        raise BadParameter(f"physical tile size: {tile!r} vs one of {', '.join(map(str, TILES))}",
                           source=program.source)
    program.check()
    order = program.topological()
    for op in order:
        if op.kind not in RULES:
            raise UnknownFunction(f"operator kind '{op.kind}' vs those that lowering knows: {', '.join(RULES)}",
                                  operator=op)
    ctx = Lowering(program, tile, stream_orders(program), find_holds(program))
    begin = [(getattr(RULES[op.kind], "begin", None), op) for op in order]
    owners: dict[str, str] = {}
    with ctx.out:
        for step, op in [*begin, *((RULES[op.kind].lower, op) for op in order)]:
            if step is None:
                continue
            with ctx.out.sourced(op.source):
                try:
                    step(ctx, op)
                except StepError as error:
                    raise error.at(op) from None
            owners |= {made.name: op.name for made in ctx.out.operators[len(owners):]}
    ctx.out.check()
    return LoweredProgram(ctx.out, program, tile, ctx.placed, owners)


def stream_orders(program: Program) -> dict[str, Order]:
    """In which order, by stream name, the physical tiles of each tile of ``program`` travel; of operators without a
    rule all streams share one."""
    preferences = []
    for op in program.topological():
        rule: Any = RULES.get(op.kind)
        preferences.append(rule.preferences(op) if hasattr(rule, "preferences")
                           else Preferences([[*op.inputs, *op.outputs]]))
    return choose_orders(program, preferences)
