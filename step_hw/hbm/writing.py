"""Requests of the units that write: an element's bursts, to every channel that they lie on."""

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.utils import exact_log2

__all__ = ["request_writes", "written_channels"]


def written_channels(port, group: Value) -> Value:
    """Channels of an element of this group, a bit each."""
    return Const((1 << port.elements.span) - 1, port.memory.channels) << (group * port.elements.span)


def request_writes(m: Module, unit, wanted: Value, index: Value, data: Value) -> tuple[Signal, Signal, Signal]:
    """While ``wanted``, ask for ``data`` to be written as element ``index`` of the tensor at ``unit.cfg.base``: every
    channel as soon as it has room (``unit.mem``, of signature ``unit.port``).

    Returns (``accept``: the last channel takes it in this cycle; ``outside``: the index is beyond ``unit.cfg.limit``
    elements, or the base within a line, so that nothing is asked; ``group`` of the element).
    """
    memory, elements = unit.memory, unit.port.elements
    bursts = elements.bursts
    group_bits, share_bits = exact_log2(elements.groups), exact_log2(elements.per_burst)
    line_bits = exact_log2(memory.alignment)
    group = Signal(max(1, group_bits))
    line = Signal(32)
    outside = Signal()
    asked = Signal()
    accept = Signal()
    taken, took, targets = (Signal(memory.channels, name=n) for n in ("taken", "took", "targets"))
    m.d.comb += [
        group.eq((index >> share_bits)[:group_bits]),
        line.eq((unit.cfg.base >> line_bits) + (index >> (group_bits + share_bits)) * bursts),
        # A negative index is a large one; a base within a line would be another element's.
        outside.eq((index >= unit.cfg.limit) | unit.cfg.base[:line_bits].any()),
        targets.eq(written_channels(unit.port, group)),
        asked.eq(wanted & ~outside),
        unit.mem.data.eq(data),
    ]
    for c in range(memory.channels):
        req = getattr(unit.mem, f"req{c}")
        m.d.comb += [
            req.valid.eq(asked & targets[c] & ~taken[c]),
            req.payload.line.eq(line),
            req.payload.position.eq(index[:share_bits]),
            took[c].eq(req.valid & req.ready),
        ]
    m.d.comb += accept.eq(asked & (taken | took | ~targets).all())
    m.d.sync += taken.eq(Mux(accept, 0, taken | took))
    return accept, outside, group
