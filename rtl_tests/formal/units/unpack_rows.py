"""Row unpacker: the valid rows of every block, in order; a vector ends with its last row, whatever blocks follow."""

from amaranth.hdl import Mux, Signal

from step_hw.beat import BeatLayout

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]

HEIGHT = COLUMNS = 2


def _harness(module) -> Harness:
    unit = module.UnpackRows(BeatLayout(HEIGHT, HEIGHT), BeatLayout(1), COLUMNS)
    h = Harness(unit)
    m, i, p, n = h.m, unit.in0, unit.in0.payload, unit.cfg.n
    rank = h.constant("rank", 4)
    h.assume("tiles of a block", (n != 0) & (n <= COLUMNS) & (rank >= 2))
    h.legal(0, rank)
    accepted = i.valid & i.ready
    at = Signal(range(COLUMNS))             # tiles of the block so far
    height = Signal(range(HEIGHT + 1))      # rows of each of them
    begun, filled = Signal(), Signal()      # the vector has a block, a row
    h.assume("blocks are whole, and only a vector is empty", ~i.valid | p.done | Mux(
        p.empty, (p.stop >= 3) & ~begun, ((p.stop != 0) == (at + 1 == n)) & ((at == 0) | (p.rows == height))))
    closes = p.stop >= 3
    ends = accepted & ~p.empty & (p.stop != 0)
    some = p.rows != 0
    with m.If(accepted):
        m.d.sync += [
            at.eq(Mux(p.stop != 0, 0, at + ~p.empty)), height.eq(p.rows),
            begun.eq(~p.done & ~closes), filled.eq(~p.done & ~closes & (filled | ~p.empty & some)),
        ]
    tiles = [Signal(HEIGHT, name=f"tile{k}") for k in range(COLUMNS)]
    for k, tile in enumerate(tiles):
        with m.If(accepted & ~p.empty & (at == k)):
            m.d.sync += tile.eq(p.data)

    owed = h.owes(0, 2 * HEIGHT * COLUMNS + 2)
    vector_stop = Mux(closes, p.stop - 1, 1)
    owed.amend(ends & ~some & closes & filled, p.stop - 1, "a vector's stop finds its last row")
    for r in range(HEIGHT):
        for k in range(COLUMNS):
            beat = Signal(unit.row, name=f"beat{r}_{k}")
            data = Mux(at == k, p.data, tiles[k])
            m.d.comb += [
                beat.data.eq(data[r]), beat.rows.eq(1),
                beat.stop.eq(Mux(k + 1 != n, 0, Mux(p.rows == r + 1, vector_stop, 1))),
            ]
            owed.append(ends & (r < p.rows) & (k < n), beat)
    bare = Signal(unit.row)
    m.d.comb += [bare.empty.eq(1), bare.done.eq(p.done), bare.stop.eq(Mux(p.done, 0, p.stop - 1))]
    owed.append(accepted & p.empty | ends & ~some & closes & ~filled, bare)
    owed.close(held=filled & (owed.queue.count == 1))
    h.grammatical(0, rank - 1)
    h.no_error()
    h.moves(stall=COLUMNS + 2)
    return h


FAULTS = (
    Fault("the last row does not wait", "coming.eq(good & (begins | beat.done))", "coming.eq(1)"),
    Fault("a later block's end is lost", "closing[~filling].eq(beat.stop - 1)]", "closing[~filling].eq(1)]"),
    Fault("a vector without rows vanishes", "takes.eq(Mux(hollow, closes & ~filled, ~beat.done))",
          "takes.eq(Mux(hollow, 0, ~beat.done))"),
    Fault("rows that are not valid leave", "last.eq(none | (last_tile & (row + 1 == count)))",
          "last.eq(none | (last_tile & (row + 1 == height)))"),
    Fault("a full bank is written", "~takes | ~full.bit_select(filling, 1)))", "1))"),
    Fault("the vector's rows are forgotten", "filled.eq(~closes & (filled | ~hollow))", "filled.eq(~closes & ~hollow)"),
)

CASES = (Case("unpack_rows", "step_hw.units.unpack_rows", _harness, 8, None, 4, FAULTS),)
