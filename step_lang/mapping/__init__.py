"""Mapping: a lowered program becomes a graph of hardware units (docs/DESIGN.md, sections 1 and 4)."""

from __future__ import annotations

from collections.abc import Mapping

from step_lang.deadlock_check import check_deadlock
from step_lang.errors import ConfigError, StepError, UnknownFunction
from step_lang.hwconfig import HardwareConfig
from step_lang.lowering import LoweredProgram
from step_lang.tokens import TokenStream
from step_lang.unitgraph import UnitGraph

from .builder import Builder
from .operators import MAPPERS
from .registers import REGISTERS

__all__ = ["REGISTERS", "build_unit_graph"]


def build_unit_graph(lowered: LoweredProgram, hw: HardwareConfig,
                     inputs: Mapping[str, TokenStream] | None = None) -> UnitGraph:
    """The hardware units of ``lowered``, their links and the contents of their configuration registers.

    Which units there are, and their parameters, depends on the program's structure and on ``hw`` only; counts, strides
    and addresses are in the registers, so that programs that differ in tile sizes share one netlist.

    Parameters
    ----------
    inputs : physical tokens of input streams whose shape is not static (`LoweredProgram.physical_inputs`).

    Raises `HardwareTooSmall` naming operator, need, what there is and the key to change; `UnknownFunction` for a
    function or operator without hardware.
    """
    if lowered.tile != hw.tile:
        raise ConfigError(f"program lowered to T = {lowered.tile} vs tile.size = {hw.tile}")
    builder = Builder(lowered.program, hw, dict(inputs or {}))
    for op in lowered.program.topological():
        if op.kind not in MAPPERS:
            raise UnknownFunction(f"operator kind '{op.kind}' vs those with hardware: {', '.join(MAPPERS)}",
                                  operator=op)
        try:
            MAPPERS[op.kind].build(builder, op)
        except StepError as error:
            raise error.at(op) from None
    builder.unit("hbm", "hbm", None, {
        "memory": hw.memory, "read_ports": list(builder.read_ports), "write_ports": list(builder.write_ports)})
    graph = builder.finish()
    graph.warnings += map(str, check_deadlock(lowered.program, graph))
    return graph
