"""What a unit owes at an output: the beats that should leave, in order."""

from collections.abc import Sequence

from amaranth.hdl import Module, Mux, Signal, Value

__all__ = ["Owed"]


class Owed:
    """A queue written as a list that shifts, with nothing of a unit's pointers.

    In a cycle first `append` and `amend` act, in the order of the calls; what then stands in front is what may leave;
    with ``leaves`` it does.

    Parameters
    ----------
    m : Module
    layout : payload
    depth : entries, one more than a unit can owe at a time

    Attributes
    ----------
    stored, count : entries and how many of them hold since an earlier cycle.
    """

    def __init__(self, m: Module, name: str, layout, depth: int):
        self.m, self.name, self.layout, self.depth = m, name, layout, depth
        self.stored = [Signal(layout, name=f"{name}_{k}") for k in range(depth)]
        self.count = Signal(range(depth + 1), name=f"{name}_count")
        self.entries: Sequence = self.stored
        self.level: Value = self.count
        self.overflow: Value = Signal(name=f"{name}_overflow")
        self._made = 0

    def _fresh(self) -> tuple[list, Signal]:
        self._made += 1
        entries = [Signal(self.layout, name=f"{self.name}_{k}_{self._made}") for k in range(self.depth)]
        level = Signal(range(self.depth + 1), name=f"{self.name}_level_{self._made}")
        self.m.d.comb += [level.eq(self.level), *(new.eq(old) for new, old in zip(entries, self.entries))]
        return entries, level

    def append(self, condition, beat) -> None:
        """Where ``condition``, one more beat is owed."""
        entries, level = self._fresh()
        with self.m.If(condition):
            self.m.d.comb += level.eq(self.level + 1)
            for k, entry in enumerate(entries):
                with self.m.If(self.level == k):
                    self.m.d.comb += entry.eq(beat)
            with self.m.If(self.level == self.depth):
                self.m.d.comb += self.overflow.eq(1)
        self.entries, self.level = entries, level

    def amend(self, condition, stop) -> Value:
        """Where ``condition``, the last beat gets ``stop``. Value: there was one."""
        there = self.level != 0
        entries, level = self._fresh()
        with self.m.If(condition):
            for k, entry in enumerate(entries):
                with self.m.If(self.level == k + 1):
                    self.m.d.comb += entry.stop.eq(stop)
        self.entries, self.level = entries, level
        return there

    @property
    def front(self):
        """The beat that is to leave next; meaningful where ``level`` is not 0."""
        return self.entries[0]

    def leave(self, leaves) -> None:
        """Close the list: where ``leaves``, the beat in front goes in this cycle."""
        self.m.d.sync += self.count.eq(Mux(leaves & (self.level != 0), self.level - 1, self.level))
        for k, stored in enumerate(self.stored):
            after = self.entries[k + 1] if k + 1 < self.depth else self.entries[k]
            self.m.d.sync += stored.eq(Mux(leaves, after, self.entries[k]))
