"""Row trimmer: the first rows of every chunk; the last block that leaves ends as the chunk does, whatever follows."""

from amaranth.hdl import Cat, Mux, Signal

from step_hw.beat import BeatLayout

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]

HEIGHT = 2
MOST = 15
"""Largest count, and most rows of a chunk where the register says them."""


def _harness(module) -> Harness:
    """Of tiles of up to 2 rows, that leave as tiles of up to 4."""
    unit = module.TrimRows(BeatLayout(HEIGHT, HEIGHT), BeatLayout(2 * HEIGHT, 2 * HEIGHT))
    h = Harness(unit)
    m, data, counts, cfg = h.m, unit.in0, unit.in1, unit.cfg
    d, c = data.payload, counts.payload
    rank = h.constant("rank", 4)
    h.assume("rows of a tile", (cfg.rows != 0) & (cfg.rows <= HEIGHT) & (cfg.total <= MOST) & (rank <= 13))
    h.legal(0, rank + 2)
    h.legal(1, rank)
    present = data.valid & counts.valid
    accepted = data.valid & data.ready
    ends, closes = d.stop != 0, d.stop >= 2
    inside, begun = Signal(), Signal()      # a block, a chunk that has had one
    height = Signal(range(HEIGHT + 1))      # rows of the block's tiles
    start = Signal(8)                       # rows of the chunk before this block
    total = Signal(8)                       # rows that are to leave of the chunk
    m.d.comb += total.eq(Mux(cfg.total == 0, c.data, cfg.total - c.data))
    h.assume("a count for every chunk", ~present | (d.done == c.done) & (d.empty == c.empty)
             & (~closes | (d.stop == c.stop + 2)) & (c.data <= MOST) & (d.empty | (cfg.total == 0)
                                                                         | (c.data <= cfg.total)))
    h.assume("blocks are whole, and only above a chunk is nothing", ~present | Mux(
        d.empty, ~inside & ~begun & (d.done | (d.stop >= 3)),
        (~inside | (d.rows == height)) & (d.rows <= cfg.rows) & (~ends | closes | (d.rows == cfg.rows))
        & (~closes | (total <= start + d.rows))))
    with m.If(accepted):
        m.d.sync += [inside.eq(~d.empty & ~ends), height.eq(d.rows), begun.eq(~d.empty & ~closes & (begun | ends))]
        with m.If(ends):
            m.d.sync += start.eq(Mux(closes, 0, start + d.rows))

    stays = ~d.empty & (~begun | (start < total))   # of this block something leaves, if only its emptiness
    last = total <= start + d.rows                  # and of the chunk no more
    waits = Signal()                                # the last beat leaves when the chunk closes
    with m.If(accepted & ends):
        m.d.sync += waits.eq(~closes & (waits | stays & last))
    owed = h.owes(0, 3)
    owed.amend(accepted & waits & closes, d.stop, "a chunk's stop finds its last beat")
    beat, bare = Signal(unit.layout), Signal(unit.layout, name="bare")
    rows = Signal(range(HEIGHT + 1))
    m.d.comb += [
        rows.eq(Mux(last, total - start, d.rows)), beat.rows.eq(rows), beat.stop.eq(d.stop),
        beat.data.eq(Cat(d.data[k] & (k < rows) for k in range(HEIGHT))),
        bare.empty.eq(1), bare.done.eq(d.done), bare.stop.eq(d.stop),
    ]
    owed.append(accepted & stays, beat)
    owed.append(accepted & d.empty, bare)
    owed.close(held=waits)
    h.prove("the count leaves with its chunk", ~counts.valid | (counts.ready == (accepted & (closes | d.done))))
    h.grammatical(0, rank + 2)
    h.no_error()
    h.moves()
    return h


FAULTS = (
    Fault("the last beat does not wait", "holds.eq(~d.empty & ends & ~closes & enough & ~dropping)", "holds.eq(0)"),
    Fault("a row too many", "keep.eq(Mux(enough, now, d.rows))", "keep.eq(d.rows)"),
    Fault("what is dropped leaves", "emits.eq(Mux(dropping, closes, ~holds))", "emits.eq(~holds)"),
    Fault("rows that left are not counted", "begun.eq(1), left.eq(now - keep)]", "begun.eq(1), left.eq(now)]"),
    Fault("the count stays", "counts.ready.eq(goes & (closes | d.done))", "counts.ready.eq(goes & d.done)"),
    Fault("leaves without being taken", "goes.eq(good & (~emits | o.ready))", "goes.eq(good)"),
    Fault("the held beat's rows are the closing one's", "o.payload.rows.eq(Mux(dropping, held_rows,",
          "o.payload.rows.eq(Mux(0, held_rows,"),
)

CASES = (Case("trim_rows", "step_hw.units.trim_rows", _harness, 12, None, 5, FAULTS),)
