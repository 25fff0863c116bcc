"""The stop-token grammar of a link (SPEC section 1, docs/DESIGN.md section 2) as a state machine."""

from amaranth.hdl import Module, Mux, Signal, Value

__all__ = ["Grammar"]


class Grammar:
    """Follows a stream of rank ``rank`` (a Value).

    Attributes
    ----------
    legal : Signal
        What the stream offers in this cycle may come here. Meaningful while it is valid.
    open : Signal
        The last beat closed no vector: no bare stop may follow.
    inside : Signal
        The last beat's stop was below the rank: done may not follow.
    begun : Signal
        Some beat has come, and no done since.
    """

    def __init__(self, m: Module, name: str, stream, rank):
        self.rank = rank
        self.max_rows = stream.payload.shape().max_rows
        self.legal, self.open, self.inside, self.begun = (
            Signal(name=f"{name}_{what}") for what in ("legal", "open", "inside", "begun"))
        beat = stream.payload
        m.d.comb += self.legal.eq(self.accepts(beat))
        with m.If(stream.valid & stream.ready):
            m.d.sync += [self.open.eq(self.opens(beat)), self.inside.eq(self.enters(beat)), self.begun.eq(~beat.done)]

    def accepts(self, beat) -> Value:
        """``beat`` may come next."""
        hollow = (beat.data == 0) & (beat.rows == 0)
        return Mux(beat.done, beat.empty & (beat.stop == 0) & hollow & ~self.inside, (beat.stop <= self.rank) & Mux(
            beat.empty, (beat.stop != 0) & hollow & ~self.open, beat.rows <= self.max_rows))

    @staticmethod
    def opens(beat) -> Value:
        """``open`` after ``beat``."""
        return ~beat.empty & (beat.stop == 0)

    def enters(self, beat) -> Value:
        """``inside`` after ``beat``."""
        return ~beat.done & (beat.stop < self.rank)

    def like(self, other: "Grammar") -> Value:
        """Both streams are at the same place."""
        return (self.open == other.open) & (self.inside == other.inside) & (self.begun == other.begun)

    def behind(self, other: "Grammar", beat) -> Value:
        """This stream has had ``beat`` and else is where ``other`` is."""
        return ((self.open == self.opens(beat)) & (self.inside == self.enters(beat)) & (self.begun == ~beat.done)
                & other.accepts(beat))

    def behind_states(self, open_: Value, inside: Value, beat) -> Value:
        """As `behind`, of a stream of the same rank that is ``open_`` and ``inside``."""
        may = Mux(beat.done, ~inside, ~beat.empty | ~open_)
        return (self.open == self.opens(beat)) & (self.inside == self.enters(beat)) & may
