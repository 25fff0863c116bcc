"""selector_index: which bit of a one-hot selector is set."""

from amaranth.hdl import Cat, Module, Signal

from step_lang.types import Selector, Type

from ..unit import ErrorCode
from .base import Datapath, width_of

__all__ = ["SelectorIndex", "datapath"]


class SelectorIndex(Datapath):
    """An encoder and the result register; refuses a selector in which no bit or more than one is set. Latency 1."""

    refuses = ErrorCode.SELECTOR

    def __init__(self, selector: Selector, result: Type):
        super().__init__([width_of(selector)], width_of(result), latency=1)

    def elaborate(self, platform):
        m = Module()
        selector = self.operand0
        index = Signal(range(max(2, len(selector))))
        result = Signal(len(self.result), name="register", reset_less=True)
        # Bit b of the index: is the set bit one of those whose number has bit b?
        m.d.comb += [
            index.eq(Cat(Cat(bit for k, bit in enumerate(selector) if k >> b & 1).any() for b in range(len(index)))),
            self.wrong.eq((selector == 0) | (selector & (selector - 1)).any()),
            self.result.eq(result),
        ]
        with m.If(self.en):
            m.d.sync += result.eq(index)
        return m


def datapath(function, in_types, out_type, *, rows_per_cycle, k_per_cycle):
    """``selector_index`` in a map unit."""
    return SelectorIndex(in_types[0], out_type)
