"""The clock gate: a clock that ticks only in cycles that are enabled."""

from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.lib.wiring import In, Out

from .cell import Cell

__all__ = ["ClockGate"]


class ClockGate(Cell):
    """``gated`` rises with ``clk`` at the end of every cycle in which ``en`` is high, and stands still in all others.

    The enable is held in a register on the falling edge, so it is stable while the clock is high. It has to settle in
    the first half of the cycle: **whoever drives the design changes its inputs after a rising edge only**, and never on
    a falling one. A simulator does no work for registers and logic behind a clock that stands still, which is what
    makes idle arrays free.

    On a chip, replace this module by the technology's integrated clock gating cell (ICG: latch on the low phase, AND):
    ``clk`` to its clock, ``en`` to its functional enable, ``gated`` to its output; tie a test enable to scan enable. On
    an FPGA use a clock buffer with enable (``en`` registered inside, same edge). Clock tree synthesis has to balance
    ``gated`` with ``clk``: registers on the two clocks exchange data in both directions without a synchroniser.
    """

    arguments = ()

    def __init__(self):
        super().__init__({"en": In(1), "gated": Out(1)}, clocked=True)

    @property
    def module_name(self):
        return "clock_gate"

    def elaborate(self, platform):
        m = Module()
        falling = ClockDomain("falling", clk_edge="neg", reset_less=True)
        falling.clk = self.clk
        m.domains += falling
        enabled = Signal()
        m.d.falling += enabled.eq(self.en)
        m.d.comb += self.gated.eq(self.clk & enabled)
        return m
