"""PackRows: rows, one by one, become tiles of several rows."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib.memory import Memory

from ..beat import STOP_WIDTH, BeatLayout
from ..unit import ErrorCode, Unit

__all__ = ["COLUMNS_WIDTH", "ROWS_WIDTH", "PackRows"]

COLUMNS_WIDTH = 13
"""Bits of a count of a row's tiles."""

ROWS_WIDTH = 5
"""Bits of a count of a tile's rows."""


class PackRows(Unit):
    """Hardware of ``step_lang.ops.pack_rows``: ``in0`` tiles of one row, ``out0`` tiles of several. Latency 1 from the
    beat that completes a block to the block's first tile, one beat a cycle sustained: one bank fills while the other
    drains.

    Parameters
    ----------
    row, layout : BeatLayout
        Of the input (one row) and of the output (as wide a row, up to ``max_rows`` of them).
    columns : int
        Most tiles of a row, a power of two. Memory: two banks of as many tiles of ``layout``.

    ========== ===== ===================================================
    register   width meaning
    ========== ===== ===================================================
    n          13    tiles of a row, 1 to ``columns``
    rows       5     rows of a full block, 1 to ``layout.max_rows``
    ========== ===== ===================================================

    A block is complete with its last row, with a row whose stop is at least 2, or when done is seen. A bare stop of at
    least 2 is a block of one row of zeros. ``rows`` of what leaves are the rows of the block, the others are zero.

    Errors: SHAPE for a row of other than n tiles, an empty one included; PROTOCOL when the stream ends inside a row, or
    for a bare stop there.
    """

    kind = "pack_rows"

    def __init__(self, row: BeatLayout, layout: BeatLayout, columns: int):
        if row.max_rows != 1 or layout.data_width != layout.max_rows * row.data_width:
            raise ValueError(f"rows of {row.data_width} bits, {row.max_rows} to a beat, do not make tiles of "
                             f"{layout.max_rows} rows and {layout.data_width} bits")
        if columns < 2 or columns & (columns - 1):
            raise ValueError(f"the tiles of a row are at most a power of two from 2 on, not {columns}")
        self.row, self.layout, self.columns = row, layout, columns
        super().__init__([row], [layout], cfg={"n": COLUMNS_WIDTH, "rows": ROWS_WIDTH}, state_width=2)

    @property
    def module_name(self) -> str:
        return f"pack_rows_{self.layout.key}_n{self.columns}"

    def elaborate(self, platform):
        m = Module()
        i, o, n = self.in0, self.out0, self.cfg.n
        beat, height, width = i.payload, self.layout.max_rows, self.row.data_width
        m.submodules.banks = banks = Memory(shape=unsigned(self.layout.data_width), depth=2 * self.columns, init=[])
        write, read = banks.write_port(granularity=width), banks.read_port(domain="comb")

        # The bank that fills
        filling = Signal()
        at = Signal(range(self.columns))    # tiles that the current row has
        row = Signal(range(height + 1))     # complete rows of the block
        inside = Signal()                   # the group has had a row
        # What is in a bank that is full
        full = Signal(2)
        counts = Array(Signal(range(height + 1), name=f"count{k}") for k in range(2))    # 0: an empty group
        closing = Array(Signal(STOP_WIDTH, name=f"closing{k}") for k in range(2))
        # The bank that drains
        draining = Signal()
        sent = Signal(range(self.columns))

        bare, ends, group, unfinished, misshapen, accept, last_row, completes, passes = (Signal(name=name) for name in (
            "bare", "ends", "group", "unfinished", "misshapen", "accept", "last_row", "completes", "passes"))
        m.d.comb += [
            bare.eq(beat.empty & ~beat.done),
            ends.eq(beat.stop != 0),
            group.eq(beat.stop >= 2),
            unfinished.eq(beat.empty & (at != 0)),
            misshapen.eq(Mux(bare, ~group | inside, ~beat.done & (ends != (at + 1 == n)))),
            i.ready.eq(~unfinished & ~misshapen & Mux(beat.done, passes & o.ready, ~full.bit_select(filling, 1))),
            accept.eq(i.valid & i.ready & ~beat.done),
            last_row.eq(row + 1 == self.cfg.rows),
            # Done closes an open block first, and leaves when both banks are empty.
            completes.eq((accept & ends & (group | last_row)) | (i.valid & beat.done & ~unfinished & (row != 0))),
            passes.eq(i.valid & beat.done & ~unfinished & (row == 0) & (full == 0)),
            write.addr.eq(Cat(at, filling)),
            write.data.eq(beat.data.replicate(height)),
            write.en.eq(Mux(accept & ~bare, 1 << row, 0)),
        ]
        with m.If(accept):
            m.d.sync += [at.eq(Mux(ends, 0, at + 1)), inside.eq(~group)]
            with m.If(ends):
                m.d.sync += row.eq(row + 1)
        with m.If(completes):
            m.d.sync += [
                filling.eq(~filling), row.eq(0),
                counts[filling].eq(Mux(bare, 0, row + ~beat.done)),
                closing[filling].eq(Mux(beat.done, 1, beat.stop)),
            ]
        with m.If(i.valid & beat.done & i.ready):
            m.d.sync += inside.eq(0)

        last, drained, count = Signal(), Signal(), Signal(range(height + 1))
        m.d.comb += [
            count.eq(counts[draining]),
            last.eq(sent + 1 == n),
            read.addr.eq(Cat(sent, draining)),
            o.valid.eq(full.bit_select(draining, 1) | passes),
            o.payload.empty.eq(passes),
            o.payload.done.eq(passes),
            drained.eq(o.valid & o.ready & ~passes & last),
            self.state.eq(full),
        ]
        with m.If(~passes):
            m.d.comb += [
                o.payload.data.eq(Cat(Mux(k < count, read.data.word_select(k, width), 0) for k in range(height))),
                o.payload.rows.eq(count | (count == 0)),
                o.payload.stop.eq(Mux(last, closing[draining], 0)),
            ]
        with m.If(o.valid & o.ready & ~passes):
            m.d.sync += sent.eq(Mux(last, 0, sent + 1))
            with m.If(last):
                m.d.sync += draining.eq(~draining)
        m.d.sync += full.eq((full | (completes << filling)) & ~(drained << draining))

        with m.If(i.valid & unfinished):
            m.d.sync += self.error.eq(ErrorCode.PROTOCOL)
        with m.Elif(i.valid & misshapen):
            m.d.sync += self.error.eq(ErrorCode.SHAPE)
        return m
