"""Whether a machine's memories hold what a program keeps in them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from step_lang.errors import HardwareTooSmall, StepError
from step_lang.hwconfig import HardwareConfig
from step_lang.lowering import lower
from step_lang.mapping.limits import check_columns, check_rows, check_states
from step_lang.mapping.registers import STOP_WIDTH
from step_lang.mapping.scratchpads import check_buffer
from step_lang.memory_config import MemoryConfig
from step_lang.program import Program

__all__ = ["check_capacity", "check_ranks", "check_units"]

_CHECKS: dict[str, tuple[Callable[[Any, HardwareConfig], Any], ...]] = {
    "bufferize": (check_buffer,), "accum": (check_states,), "scan": (check_states,),
    "pack_rows": (check_columns, check_rows), "unpack_rows": (check_columns,), "trim_rows": (check_rows,)}
"""By the kind of an operator of a lowered program."""

MOST_RANK = (1 << STOP_WIDTH) - 1
"""Tokens have as many bits for a stop as hardware has."""


def check_capacity(program: Program, memory: MemoryConfig) -> None:
    """Raise `HardwareTooSmall` for tensors whose bytes are more than the memory has. At beat fidelity their places in
    memory count, which are a little more."""
    total = 0
    for tensor in program.tensors.values():
        total += math.prod(tensor.shape) * tensor.dtype.bytes
        if total > memory.capacity_bytes:
            whole = sum(math.prod(t.shape) * t.dtype.bytes for t in program.tensors.values())
            raise HardwareTooSmall(f"off-chip memory for '{tensor.name}': {total} bytes vs {memory.capacity_bytes}",
                                   operator=tensor,
                                   fix=f"set memory.capacity_bytes to at least {1 << (whole - 1).bit_length()}")


def check_ranks(program: Program) -> None:
    """Raise `HardwareTooSmall` for a stream with more dimensions than a token can say the end of."""
    for stream in program.streams:
        if stream.rank > MOST_RANK:
            raise HardwareTooSmall(f"stream '{stream.name}': rank {stream.rank} vs at most {MOST_RANK}",
                                   operator=stream.producer, fix="flatten outer dimensions")


def check_units(program: Program, hw: HardwareConfig) -> None:
    """Raise `HardwareTooSmall` for what the units of the lowered program do not hold: a buffer of known size, the
    program's own or one of lowering's, its scratchpad; states their accumulator; a row of tiles the bank of a row
    unit. Of a program that cannot be lowered, which tile fidelity follows all the same, nothing is known."""
    try:
        lowered = lower(program, hw).program
    except StepError:
        return
    for op in lowered.operators:
        for check in _CHECKS.get(op.kind, ()):
            check(op, hw)
