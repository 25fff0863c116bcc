"""The unit: one hardware block per operator, and how it becomes Verilog."""

from collections.abc import Mapping, Sequence

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .beat import BeatLayout, beat_signature
from .verilog import module_text

__all__ = ["ERROR_WIDTH", "ErrorCode", "Unit"]

ERROR_WIDTH = 4


class ErrorCode:
    """Sticky error codes that a unit can raise; the bench turns them into messages (``step_hw.errors``)."""

    NONE = 0
    MISALIGNED = 1      # streams of one operator disagree in stop, empty or done
    STOP_RANGE = 2      # a stop level the configuration does not allow at this point
    ADDRESS_RANGE = 3   # an address or tile index outside its tensor
    EXHAUSTED = 4       # a buffer larger than its scratchpad
    SHAPE = 5           # a static inner dimension does not have the configured size
    PROTOCOL = 6        # malformed beat (empty with data, done with a stop, ...)
    OVERFLOW = 7        # one tile more than the tensor holds
    SELECTOR = 8        # a selector names what does not exist, or nothing where something must be


class Unit(wiring.Component):
    """Base of all hardware units.

    Parameters
    ----------
    inputs, outputs : sequences of :class:`BeatLayout`
        One stream port each: ``in0, in1, ..``, ``out0, out1, ..``.
    cfg : mapping of register name to width
        Configuration registers, constant while the unit runs (ports ``cfg__<name>``).
    state_width : int
        Width of ``state``, a few bits for people and for ``validate --explain``.
    extra : mapping of port name to member
        Further ports (memory interfaces).

    Attributes
    ----------
    inputs, outputs : lists of the stream ports in order.
    error : Out(4)
        Sticky :class:`ErrorCode`.
    """

    kind: str = "unit"

    def __init__(self, inputs: Sequence[BeatLayout], outputs: Sequence[BeatLayout],
                 cfg: Mapping[str, int] | None = None, state_width: int = 1, extra: Mapping | None = None):
        self.input_layouts = tuple(inputs)
        self.output_layouts = tuple(outputs)
        self.cfg_widths = dict(cfg or {})
        members: dict = {f"in{i}": In(beat_signature(layout)) for i, layout in enumerate(inputs)}
        members |= {f"out{i}": Out(beat_signature(layout)) for i, layout in enumerate(outputs)}
        if self.cfg_widths:
            members["cfg"] = In(wiring.Signature({name: Out(width) for name, width in self.cfg_widths.items()}))
        members |= dict(extra or {})
        members["error"] = Out(ERROR_WIDTH)
        members["state"] = Out(state_width)
        super().__init__(members)

    @property
    def ins(self) -> list:
        """Input streams in order."""
        return [getattr(self, f"in{i}") for i in range(len(self.input_layouts))]

    @property
    def outs(self) -> list:
        """Output streams in order."""
        return [getattr(self, f"out{i}") for i in range(len(self.output_layouts))]

    @property
    def module_name(self) -> str:
        """Verilog module name: a function of kind and elaboration parameters only."""
        raise NotImplementedError(f"{type(self).__name__}.module_name")

    def dependencies(self) -> dict[str, str]:
        """Verilog of cells that this unit instantiates by name (``Instance``): module name to text."""
        return {}

    def modules(self) -> dict[str, str]:
        """All Verilog modules of this unit, its own last: module name to text."""
        found = dict(self.dependencies())
        found[self.module_name] = module_text(self, self.module_name)
        return found
