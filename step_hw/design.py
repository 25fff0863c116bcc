"""A program on a hardware configuration, in every form it takes on its way to Verilog."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from step_lang import Numerics, Program, Result, TokenStream, interpret
from step_lang.errors import BuildError, HardwareTooSmall
from step_lang.hwconfig import HardwareConfig
from step_lang.lowering import LoweredProgram, lower
from step_lang.mapping import build_unit_graph
from step_lang.unitgraph import UnitGraph

from .netlist import Verilog, build_netlist, manifest, register_image

__all__ = ["Design"]


@dataclass
class Design:
    """A checked program, lowered for ``hw``; unit graph and Verilog are made when asked for.

    inputs : values of the program's input streams (nested lists or `TokenStream`), by stream name
    """

    program: Program
    hw: HardwareConfig
    inputs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.program.check()
        self._check_memory()

    def _check_memory(self) -> None:
        """Raise for tensors that cannot fit, before anything of their size is made. Their place, which is more, is
        checked by the unit graph."""
        total = 0
        for tensor in self.program.tensors.values():
            total += math.prod(tensor.shape) * tensor.dtype.bytes
            if total > self.hw.memory.capacity_bytes:
                raise HardwareTooSmall(f"off-chip memory for '{tensor.name}': {total} bytes vs "
                                       f"{self.hw.memory.capacity_bytes}", operator=tensor,
                                       fix="raise memory.capacity_bytes in the hardware configuration")

    @cached_property
    def lowered(self) -> LoweredProgram:
        """The program over T x T tiles."""
        return lower(self.program, self.hw)

    @cached_property
    def physical_inputs(self) -> dict[str, TokenStream]:
        """Input streams as the lowered program takes them."""
        return self.lowered.physical_inputs(self.inputs)

    @cached_property
    def graph(self) -> UnitGraph:
        """Hardware units, links and register contents."""
        return build_unit_graph(self.lowered, self.hw, self.physical_inputs)

    @cached_property
    def verilog(self) -> Verilog:
        """One module per distinct unit; the same for programs that differ in register contents only."""
        return build_netlist(self.graph)

    @property
    def registers(self) -> list[tuple[int, int]]:
        """(address, data) writes that load the program."""
        return register_image(self.graph, self.verilog)

    @property
    def numerics(self) -> Numerics:
        """The arithmetic of this hardware: dot products fold ``k_per_cycle`` products at a time."""
        return Numerics(group=int(self.hw.k_per_cycle or self.hw.tile))

    def interpret(self, tensors: Mapping[str, np.ndarray], *, lowered: bool = True,
                  arbitration: Mapping[str, Sequence[int]] | None = None) -> Result:
        """Exact values and tokens of the lowered (default) or the logical program on this hardware's arithmetic.
        ``arbitration``: grants by operator name, as a run of RTL or model recorded them; the same for both programs."""
        if lowered:
            return interpret(self.lowered.program, tensors, self.physical_inputs, self.numerics,
                             arbitration=arbitration)
        return interpret(self.program, tensors, self.inputs, self.numerics, arbitration=arbitration)

    @property
    def arbitrates(self) -> bool:
        """Whether the order of some streams is timing, so that results are exact only given the grants of a run."""
        return any(op.arbitrates for op in self.program.operators)

    def write(self, directory: Path) -> list[Path]:
        """Write Verilog, manifest, register image and configuration; paths in order.

        ``verilog/*.v`` one module each, ``verilog/files.f`` in compile order, ``manifest.json``, ``registers.txt``
        (``address data`` in hex), ``hw.toml``. Raises `BuildError` when the directory is not writable.
        """
        files = {f"verilog/{name}": text for name, text in self.verilog.files.items()}
        files["verilog/files.f"] = "".join(f"{name}\n" for name in self.verilog.files)
        files["manifest.json"] = manifest(self.graph, self.verilog)
        files["registers.txt"] = "".join(f"{address:04x} {data:08x}\n" for address, data in self.registers)
        files["hw.toml"] = self.hw.to_toml()
        written = []
        try:
            for name, text in files.items():
                path = directory / name
                path.parent.mkdir(parents=True, exist_ok=True)
                partial = path.with_name(path.name + ".part")
                partial.write_text(text)
                partial.replace(path)
                written.append(path)
        except OSError as error:
            raise BuildError(f"output directory {directory}: {error.strerror} vs a writable place",
                             fix="choose another with -o") from error
        return written
