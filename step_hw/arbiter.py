"""Rotating priority among inputs whose chunks are served whole."""

from amaranth.hdl import Cat, Const, Module, Signal

__all__ = ["ChunkArbiter"]


class ChunkArbiter:
    """Twin of ``step_lang.arbitration.rotating_priority``, as registers and logic in ``m``.

    A grant falls in the first cycle in which somebody waits and nobody is served; it lasts until ``finish``, taken or
    not, so that what is offered downstream does not change.

    Parameters
    ----------
    m : Module
    waiting : Value
        A bit for each input that may be served; looked at only while nobody is.

    Attributes
    ----------
    finish : Signal, to be driven
        The last beat of the chunk leaves in this cycle.
    clear : Signal, to be driven
        The stream ends: the next search begins at input 0.
    locked : Signal
        A chunk is being served since an earlier cycle.
    serving : Signal
        ``locked``, or a grant falls in this cycle.
    granted : Signal
        A grant falls in this cycle.
    turn : Signal
        The input served; meaningful while ``serving``. ``chosen`` is the same one-hot.
    """

    def __init__(self, m: Module, waiting):
        n = len(waiting)
        index = range(max(2, n))
        self.finish, self.clear = Signal(), Signal()
        self.locked, self.serving, self.granted = (Signal(name=name) for name in ("locked", "serving", "granted"))
        self.turn, self.chosen = Signal(index), Signal(n)
        first = Signal(index)       # where the next search begins
        current = Signal(index)     # whom a lock holds
        later, candidates = Signal(n), Signal(n)
        m.d.comb += [
            later.eq(waiting & (Const(-1, n) << first)[:n]),
            candidates.eq(waiting),
            self.granted.eq(~self.locked & waiting.any()),
            self.serving.eq(self.locked | self.granted),
            self.chosen.eq(Cat(self.serving & (self.turn == k) for k in range(n))),
        ]
        with m.If(later.any()):
            m.d.comb += candidates.eq(later)
        with m.If(self.locked):
            m.d.comb += self.turn.eq(current)
        with m.Else():
            for k in reversed(range(n)):
                with m.If(candidates[k]):
                    m.d.comb += self.turn.eq(k)
        with m.If(self.granted):
            m.d.sync += [self.locked.eq(1), current.eq(self.turn), first.eq(self.turn + 1)]
            with m.If(self.turn == n - 1):
                m.d.sync += first.eq(0)
        with m.If(self.finish):
            m.d.sync += self.locked.eq(0)
        with m.If(self.clear):
            m.d.sync += first.eq(0)
