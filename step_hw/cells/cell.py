"""The cell: a block of arithmetic that is converted to Verilog once and instantiated by name many times.

Amaranth writes a fresh module for every submodule instance, so a unit that holds hundreds of equal cells refers to them
as ``Instance`` of one module (:func:`place`), and the netlist writer adds the module's text once (:func:`verilog_of`).
"""

import re
from functools import cache

from amaranth.hdl import ClockDomain, ClockSignal, Instance, Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from step_hw.verilog import module_text

__all__ = ["Cell", "modules_of", "place", "verilog_of"]


class Cell(wiring.Component):
    """Base of all cells.

    Ports are plain signals. A cell with registers (``clocked``) has a port ``clk``, its only clock: every register
    advances with every edge, and has no reset. Whoever uses the cell gates that clock (:class:`.clock_gate.ClockGate`)
    and keeps track of which stages are valid.

    Parameters
    ----------
    members : mapping of port name to member
    clocked : bool
    """

    #: The definition in ``step_lang.numerics`` that the cell equals bit for bit.
    twin: str = ""

    #: Most cells are converted in one object and placed by others, which Amaranth would call unused.
    _MustUse__silence = True

    def __init__(self, members, clocked: bool = False):
        self.clocked = clocked
        if clocked:
            members = {"clk": In(1), **members}
        super().__init__(members)

    def clock_domain(self, m: Module) -> None:
        """Give ``m`` its sync domain: the port ``clk``, no reset."""
        domain = ClockDomain("sync", reset_less=True, local=True)
        domain.clk = self.clk
        m.domains += domain

    @property
    def module_name(self) -> str:
        """Verilog module name: a function of the cell's parameters only."""
        raise NotImplementedError(f"{type(self).__name__}.module_name")

    def dependencies(self) -> dict[str, str]:
        """Cells that this one instantiates: module name to text."""
        return {}


@cache
def _converted(cell_type, arguments) -> str:
    cell = cell_type(*arguments)
    text = module_text(cell, cell.module_name)
    # Two hints that let Verilator compile the cell once for all its instances: it stays a module, and its inputs stay
    # variables of their own (otherwise every instance's code names its parent's signals, so no two are equal; 256
    # dot product cells then take minutes to compile and run from memory instead of from the instruction cache).
    text = re.sub(r"^\);\n", ");\n  /*verilator no_inline_module*/\n", text, count=1, flags=re.M)
    return re.sub(r"^(  input (?:\[\d+:0\] )?(?!clk\b)\w+)(,?)$", r"\1 /*verilator public_flat_rd*/\2", text,
                  flags=re.M)


def verilog_of(cell: Cell) -> tuple[str, str]:
    """(module name, Verilog text) of one cell, without what it depends on; converted once per set of parameters."""
    return cell.module_name, _converted(type(cell), cell.arguments)


def modules_of(*cells: Cell) -> dict[str, str]:
    """Module name to text of the cells and all they depend on."""
    found: dict[str, str] = {}
    for cell in cells:
        found.update(cell.dependencies())
        name, text = verilog_of(cell)
        found[name] = text
    return found


def place(m: Module, cell: Cell, name: str, **ports: Value) -> Instance:
    """Instantiate ``cell`` as ``name`` in ``m``; ``ports`` connects its ports, outputs may be left out.

    A clocked cell gets the clock of ``m``'s sync domain unless ``clk`` is given.
    """
    unknown = set(ports) - set(cell.signature.members)
    if unknown:
        raise ValueError(f"{cell.module_name} has no port {', '.join(sorted(unknown))}")
    if cell.clocked:
        ports.setdefault("clk", ClockSignal())
    connections = {}
    for port, member in cell.signature.members.items():
        if port in ports:
            connections[("i_" if member.flow is In else "o_") + port] = ports[port]
        elif member.flow is In:
            raise ValueError(f"input {port} of {cell.module_name} is not connected")
    instance = Instance(cell.module_name, **connections)
    m.submodules[name] = instance
    return instance
