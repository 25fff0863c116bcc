"""Reading and writing a simulator's signal as text of 0 and 1, the way cocotb does underneath.

cocotb's public values (`LogicArray`) cost a Python object per bit on payloads of thousands of bits, several times a
cycle. cocotb's handles keep the simulator's own text in ``_handle``; where a cocotb has it no more, the public way
is used.
"""

from collections.abc import Callable
from typing import Any

from cocotb.handle import Immediate

__all__ = ["UnknownBits", "reader", "unsigned", "writer"]


class UnknownBits(AssertionError):
    """A signal that must be 0 or 1 is X or Z."""


def reader(handle) -> Callable[[], str]:
    """Function that gives the signal's bits now, most significant first."""
    inner: Any = getattr(handle, "_handle", None)
    if hasattr(inner, "get_signal_val_binstr"):
        return inner.get_signal_val_binstr
    return lambda: str(handle.value)


def writer(handle) -> Callable[[str], None]:
    """Function that sets the signal at once to the bits given (as many as it has, most significant first)."""
    inner: Any = getattr(handle, "_handle", None)
    try:
        from cocotb.handle import _GPISetAction

        no_delay = _GPISetAction.NO_DELAY.value
        put = inner.set_signal_val_binstr
    except (ImportError, AttributeError):
        width = len(handle)
        return lambda bits: handle.set(Immediate(int(bits, 2) if width > 1 else bits))
    return lambda bits: put(no_delay, bits)


def unsigned(bits: str, what: str) -> int:
    """The number that ``bits`` are; `UnknownBits` names ``what`` if some are X or Z."""
    try:
        return int(bits, 2)
    except ValueError:
        shown = bits if len(bits) <= 40 else f"{bits[:20]}...{bits[-16:]}"
        raise UnknownBits(f"{what} is {shown}") from None
