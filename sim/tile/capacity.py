"""Whether a machine's memory holds a program's tensors."""

from __future__ import annotations

import math

from step_lang.errors import HardwareTooSmall
from step_lang.memory_config import MemoryConfig
from step_lang.program import Program

__all__ = ["check_capacity"]


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
