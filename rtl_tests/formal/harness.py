"""A unit with free surroundings: what is assumed of them and what is to hold."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, UnusedElaboratable, Value, unsigned

from step_hw.beat import BeatLayout
from step_hw.unit import Unit

from .grammar import Grammar
from .queue import Owed

__all__ = ["STALL", "Harness"]

# A harness may be made for the names of its properties alone.
warnings.simplefilter("ignore", UnusedElaboratable)

STALL = 3
"""Cycles in which a unit may do nothing although everything it could want is there, before it counts as stuck."""


class Harness:
    """Module ``m`` with ``unit`` in it, every input of which is free.

    Inputs keep valid and payload until they are taken, come and stall as they please; outputs are taken as they
    please; registers are constant, those in ``fixed`` of the value given there or any of the shape given there. That,
    and what `assume` adds, is assumed. On every output is to hold: ``valid`` does not drop and the payload does not
    change before the beat is taken.

    Names in the transition system: see `solver`.
    """

    def __init__(self, unit: Unit, fixed: Mapping[str, int | Shape] | None = None):
        self.unit = unit
        self.m = Module()
        self.m.submodules.unit = unit
        self.ports: list[Value] = []
        self.labels: list[str] = []
        if unit.cfg_widths:
            given = {name: unsigned(width) for name, width in unit.cfg_widths.items()} | dict(fixed or {})
            for name, value in given.items():
                self.m.d.comb += getattr(unit.cfg, name).eq(
                    value if isinstance(value, int) else self.constant(name, value))
        for k, port in enumerate(unit.ins):
            self.drive(f"in{k}", port)
        for k, port in enumerate(unit.outs):
            self.watch(f"out{k}", port)

    # Free values

    def any(self, name: str, shape: Any = 1) -> Signal:
        """A value of the surroundings' choice in every cycle."""
        return self._input(f"any__{name}", shape)

    def constant(self, name: str, shape: Any = 1) -> Signal:
        """A value of the surroundings' choice, the same in every cycle."""
        return self._input(f"constant__{name}", shape)

    def peek(self, name: str, shape: Any = 1) -> Signal:
        """The unit's wire or register ``name``: for invariants, which tie it to the reference model."""
        return self._input(f"peek__{name}", shape)

    def _input(self, name: str, shape: Any) -> Signal:
        made = Signal(shape, name=name)
        self.ports.append(Value.cast(made))
        return made

    # Statements

    def assume(self, label: str, condition) -> None:
        """The surroundings see to it that ``condition``."""
        self._output("assume", label, condition)

    def prove(self, label: str, condition) -> None:
        """The unit sees to it that ``condition``, in every cycle."""
        self._output("prove", label, condition)

    def invariant(self, label: str, condition) -> None:
        """``condition`` holds too, and helps induction."""
        self._output("invariant", label, condition)

    def show(self, name: str, value) -> None:
        """``value`` is to be seen in a trace."""
        self._output("show", name, value, one=False)

    def _output(self, kind: str, label: str, value, one: bool = True) -> None:
        value = Value.cast(value)
        name = f"{kind}__{label.replace(' ', '_')}"
        if name in self.labels:
            raise ValueError(f"{name} twice")
        self.labels.append(name)
        made = Signal(1 if one else len(value), name=name)
        self.m.d.comb += made.eq(value.bool() if one else value)
        self.ports.append(made)

    # Streams

    def drive(self, name: str, port) -> None:
        """Free beats at an input, kept until they are taken."""
        valid = self.any(f"{name}__valid")
        payload = self.any(f"{name}__payload", port.payload.shape())
        self.m.d.comb += [port.valid.eq(valid), port.payload.eq(payload)]
        self.assume(f"{name} keeps its beat", self._kept(name, port))
        self._show_stream(name, port)

    def watch(self, name: str, port) -> None:
        """An output that is taken as it pleases, and keeps its beat."""
        self.m.d.comb += port.ready.eq(self.any(f"{name}__ready"))
        self.prove(f"{name} keeps its beat", self._kept(name, port))
        self._show_stream(name, port)

    def _kept(self, name: str, port) -> Value:
        waits = Signal(name=f"{name}_waits")
        beat = Signal(port.payload.shape(), name=f"{name}_kept")
        self.m.d.sync += [waits.eq(port.valid & ~port.ready), beat.eq(port.payload)]
        return ~waits | (port.valid & (Value.cast(beat) == Value.cast(port.payload)))

    def _show_stream(self, name: str, port) -> None:
        payload = "payload" if isinstance(port.payload.shape(), BeatLayout) else "bits"
        self.show(f"{name}__valid", port.valid)
        self.show(f"{name}__ready", port.ready)
        self.show(f"{name}__{payload}", Value.cast(port.payload))

    def legal(self, k: int, rank) -> Grammar:
        """Input ``k`` is a stream of this rank."""
        port = self.unit.ins[k]
        grammar = Grammar(self.m, f"in{k}", port, rank)
        self.assume(f"in{k} is a stream", ~port.valid | grammar.legal)
        return grammar

    def arrives(self, k: int = 0) -> Signal:
        """A beat is at the head of input ``k`` for the first time: what comes of it is known then."""
        port = self.unit.ins[k]
        seen, arrives = Signal(), Signal()
        self.m.d.sync += seen.eq(port.valid & ~port.ready)
        self.m.d.comb += arrives.eq(port.valid & ~seen)
        return arrives

    def grammatical(self, k: int, rank, when=1) -> Grammar:
        """Output ``k`` is to be a stream of this rank."""
        port = self.unit.outs[k]
        grammar = Grammar(self.m, f"out{k}", port, rank)
        self.prove(f"out{k} is a stream", ~port.valid | ~Value.cast(when) | grammar.legal)
        return grammar

    def no_error(self) -> None:
        """No error is raised."""
        self.prove("no error", self.unit.error == 0)

    def moves(self, stall: int = STALL, inputs=None) -> None:
        """Whenever all inputs (or those of the mask ``inputs``) offer a beat and all outputs are free, something moves
        or an error is raised within ``stall`` cycles."""
        unit = self.unit
        wanted = Cat(i.valid for i in unit.ins) if inputs is None else Cat(
            i.valid | ~inputs[k] for k, i in enumerate(unit.ins))
        all_there = Signal()
        moved = Signal()
        self.m.d.comb += [
            all_there.eq(wanted.all() & Cat(o.ready for o in unit.outs).all() & (unit.error == 0)),
            moved.eq(Cat(p.valid & p.ready for p in [*unit.ins, *unit.outs]).any()),
        ]
        self.within("something moves", all_there & ~moved, stall)

    def within(self, label: str, waits, stall: int = STALL) -> None:
        """``waits`` does not last for more than ``stall`` cycles in a row."""
        count = Signal(range(stall + 2), name=f"stall_{label.replace(' ', '_')}")
        self.m.d.sync += count.eq(Mux(waits, Mux(count > stall, count, count + 1), 0))
        self.prove(label, count <= stall)

    def owes(self, k: int, depth: int, layout=None) -> "OwedOutput":
        """Beats that output ``k`` is to send, in order, and nothing else."""
        return OwedOutput(self, k, Owed(self.m, f"owed{k}", layout or self.unit.output_layouts[k], depth))


class OwedOutput:
    """The queue ``queue`` of what output ``k`` of a harness is to send. Call `close` when all has been appended."""

    def __init__(self, harness: Harness, k: int, queue: Owed):
        self.harness, self.k, self.queue = harness, k, queue

    def append(self, condition, beat) -> None:
        """See `Owed.append`."""
        self.queue.append(condition, beat)

    def amend(self, condition, stop, label: str) -> None:
        """See `Owed.amend`; ``label`` says what has gone wrong when the beat has left already."""
        there = self.queue.amend(condition, stop)
        self.harness.prove(label, ~condition | there)

    def close(self, held=0, stall: int = STALL, same: Callable | None = None) -> None:
        """The beat that leaves is the one in front; a beat in front that is not ``held`` (the unit may wait for the
        next one) leaves within ``stall`` cycles in which it could. ``same``: of (sent, owed), default equal bits."""
        harness, queue = self.harness, self.queue
        port = harness.unit.outs[self.k]
        leaves = port.valid & port.ready
        equal = (same or (lambda sent, owed: Value.cast(sent) == Value.cast(owed)))(port.payload, queue.front)
        queue.leave(leaves)
        harness.prove(f"out{self.k} sends what it owes", ~leaves | (queue.level != 0) & equal)
        harness.prove(f"out{self.k} loses nothing", ~queue.overflow)
        harness.within(f"out{self.k} leaves", (queue.count != 0) & port.ready & ~port.valid & ~Value.cast(held), stall)
