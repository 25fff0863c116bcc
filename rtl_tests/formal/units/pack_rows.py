"""Row packer: blocks of rows in order, tiles of a block side by side, one row of zeros for an empty group."""

from functools import partial

from amaranth.hdl import Cat, Mux, Signal

from step_hw.beat import BeatLayout

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]

HEIGHT = COLUMNS = 2


def _harness(module, rows: int) -> Harness:
    """Of blocks of ``rows`` rows."""
    unit = module.PackRows(BeatLayout(1), BeatLayout(HEIGHT, HEIGHT), COLUMNS)
    h = Harness(unit, {"rows": rows})
    m, i, p, n = h.m, unit.in0, unit.in0.payload, unit.cfg.n
    rank = h.constant("rank", 4)
    h.assume("tiles of a row", (n != 0) & (n <= COLUMNS) & (rank != 0))
    h.legal(0, rank)
    accepted = i.valid & i.ready
    at = Signal(range(COLUMNS))     # tiles of the row so far
    inside = Signal()               # the group has a row
    h.assume("rows are whole, and only a group is empty", ~i.valid | p.done | Mux(
        p.empty, (p.stop >= 2) & ~inside, (p.stop != 0) == (at + 1 == n)))
    with m.If(accepted):
        m.d.sync += [at.eq(Mux(p.stop != 0, 0, at + ~p.empty)), inside.eq(~p.done & (p.stop < 2))]

    block = [[Signal(name=f"tile{r}_{k}") for k in range(COLUMNS)] for r in range(HEIGHT)]
    count = Signal(range(HEIGHT + 1))   # whole rows of the block
    ends = accepted & (p.stop != 0)
    full = ends & ((p.stop >= 2) | (count + 1 == rows))
    rest = i.valid & p.done & (count != 0)     # what done finds open
    for r, row in enumerate(block):
        for k, tile in enumerate(row):
            with m.If(accepted & ~p.empty & (count == r) & (at == k)):
                m.d.sync += tile.eq(p.data)
    with m.If(full | rest):
        m.d.sync += count.eq(0)
    with m.Elif(ends):
        m.d.sync += count.eq(count + 1)

    owed = h.owes(0, 2 * COLUMNS + 2)
    valid_rows = Mux(rest, count, Mux(p.empty, 0, count + 1))
    for k in range(COLUMNS):
        beat = Signal(unit.layout, name=f"beat{k}")
        parts = []
        for r, row in enumerate(block):
            fresh = (count == r) & (at == k) & ~rest & ~p.empty
            parts.append(Mux(r < valid_rows, Mux(fresh, p.data, row[k]), 0))
        m.d.comb += [
            beat.data.eq(Cat(part[0] for part in parts)),
            beat.rows.eq(Mux(valid_rows == 0, 1, valid_rows)),
            beat.stop.eq(Mux(k + 1 == n, Mux(rest, 1, p.stop), 0)),
        ]
        owed.append((full | rest) & (k < n), beat)
    done = Signal(unit.layout)
    m.d.comb += [done.empty.eq(1), done.done.eq(1)]
    owed.append(accepted & p.done, done)
    owed.close()
    h.grammatical(0, rank)
    h.no_error()
    h.moves()
    return h


FAULTS = (
    Fault("a block is one row longer", "last_row.eq(row + 1 == self.cfg.rows)", "last_row.eq(row == self.cfg.rows)"),
    Fault("a group does not end its block", "completes.eq((accept & ends & (group | last_row))",
          "completes.eq((accept & ends & last_row)"),
    Fault("done overtakes a block", "passes.eq(i.valid & beat.done & ~unfinished & (row == 0) & (full == 0))",
          "passes.eq(i.valid & beat.done & ~unfinished & (row == 0))"),
    Fault("a full bank is written", "~full.bit_select(filling, 1)))", "1))"),
    Fault("an empty group shows what was there", "counts[filling].eq(Mux(bare, 0, row + ~beat.done))",
          "counts[filling].eq(row + ~beat.done)"),
    Fault("every tile closes the row", "o.payload.stop.eq(Mux(last, closing[draining], 0))",
          "o.payload.stop.eq(closing[draining])"),
    Fault("a bank drains for ever", "& ~(drained << draining))", ")"),
)

CASES = tuple(Case(f"pack_rows, {rows} to a block", "step_hw.units.pack_rows", partial(_harness, rows=rows), 9, None, 6,
                   FAULTS) for rows in (2,))
