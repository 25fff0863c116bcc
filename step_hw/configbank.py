"""The configuration bank: every register of a netlist behind one write bus, every status word behind one read port."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ADDRESS_WIDTH", "WORD", "ConfigBank", "Field", "StatusBank", "assign_addresses"]

ADDRESS_WIDTH = 16
"""Bits of an address; addresses count words."""

WORD = 32
"""Bits of a word; a wider register takes several, lowest first."""


@dataclass(frozen=True)
class Field:
    """A register or status value: dotted name, first address, width in bits."""

    name: str
    address: int
    width: int

    @property
    def words(self) -> int:
        return -(-self.width // WORD)

    @property
    def port(self) -> str:
        """Name of its port."""
        return self.name.replace(".", "__")

    def writes(self, value: int) -> list[tuple[int, int]]:
        """(address, data) words that hold ``value``."""
        return [(self.address + i, value >> (WORD * i) & (1 << WORD) - 1) for i in range(self.words)]


def assign_addresses(names_and_widths: Sequence[tuple[str, int]], first: int = 0) -> list[Field]:
    """Addresses one after the other from ``first`` on."""
    fields, address = [], first
    for name, width in names_and_widths:
        fields.append(Field(name, address, width))
        address += fields[-1].words
    if address > 1 << ADDRESS_WIDTH:
        raise ValueError(f"{address} words do not fit {ADDRESS_WIDTH} address bits")
    return fields


class ConfigBank(wiring.Component):
    """Registers, 0 after reset, one output each; a cycle with ``valid`` writes word ``addr``."""

    def __init__(self, fields: Sequence[Field]):
        self.fields = tuple(fields)
        super().__init__({"valid": In(1), "addr": In(ADDRESS_WIDTH), "data": In(WORD)}
                         | {field.port: Out(field.width) for field in fields})

    def elaborate(self, platform):
        m = Module()
        for field in self.fields:
            register = getattr(self, field.port)
            for i in range(field.words):
                with m.If(self.valid & (self.addr == field.address + i)):
                    m.d.sync += register[WORD * i:WORD * (i + 1)].eq(self.data)
        return m


class StatusBank(wiring.Component):
    """``data`` is word ``addr`` of the values at the inputs in the same cycle, 0 where there is none."""

    def __init__(self, fields: Sequence[Field]):
        self.fields = tuple(fields)
        super().__init__({"addr": In(ADDRESS_WIDTH), "data": Out(WORD)}
                         | {field.port: In(field.width) for field in fields})

    def elaborate(self, platform):
        m = Module()
        selected = Signal(WORD)
        m.d.comb += self.data.eq(selected)
        with m.Switch(self.addr):
            for field in self.fields:
                value = getattr(self, field.port)
                for i in range(field.words):
                    with m.Case(field.address + i):
                        m.d.comb += selected.eq(value[WORD * i:WORD * (i + 1)])
        return m
