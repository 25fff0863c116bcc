"""UnpackRows: the valid rows of tiles, one by one."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib.memory import Memory

from ..beat import STOP_WIDTH, BeatLayout
from ..unit import ErrorCode, Unit
from .pack_rows import COLUMNS_WIDTH

__all__ = ["UnpackRows"]


class UnpackRows(Unit):
    """Hardware of ``step_lang.ops.unpack_rows``: ``in0`` tiles of several rows, ``out0`` tiles of one. Latency 1 from
    the last tile of a block to its first row, one row's tile a cycle sustained: one bank fills while the other drains.

    Parameters
    ----------
    layout, row : BeatLayout
        Of the input (up to ``max_rows`` rows) and of the output (one of them).
    columns : int
        Most tiles of a row, a power of two. Memory: two banks of as many tiles of ``layout``.

    ========== ===== ===================================================
    register   width meaning
    ========== ===== ===================================================
    n          13    tiles of a block, 1 to ``columns``
    ========== ===== ===================================================

    Rows end with 1, the last of a vector, which a block of stop s >= 3 closes, with s - 1. That block may have no row:
    so the last beat of a block that ends lower leaves when a block with rows, the vector's end or done is seen. A block
    without rows takes a bank only where the vector has no row at all and leaves as a bare stop.

    Errors: MISALIGNED for tiles of a block with different counts of rows; SHAPE for a block of other than n tiles, an
    empty one included; PROTOCOL when the stream ends inside a block, or for a bare stop there.
    """

    kind = "unpack_rows"

    def __init__(self, layout: BeatLayout, row: BeatLayout, columns: int):
        if row.max_rows != 1 or layout.data_width != layout.max_rows * row.data_width:
            raise ValueError(f"tiles of {layout.max_rows} rows and {layout.data_width} bits do not give rows of "
                             f"{row.data_width} bits, {row.max_rows} to a beat")
        if columns < 2 or columns & (columns - 1):
            raise ValueError(f"the tiles of a row are at most a power of two from 2 on, not {columns}")
        self.row, self.layout, self.columns = row, layout, columns
        super().__init__([layout], [row], cfg={"n": COLUMNS_WIDTH}, state_width=2)

    @property
    def module_name(self) -> str:
        return f"unpack_rows_{self.layout.key}_n{self.columns}"

    def elaborate(self, platform):
        m = Module()
        i, o, n = self.in0, self.out0, self.cfg.n
        beat, height = i.payload, self.layout.max_rows
        m.submodules.banks = banks = Memory(shape=unsigned(self.layout.data_width), depth=2 * self.columns, init=[])
        write, read = banks.write_port(), banks.read_port(domain="comb")

        # The bank that fills
        filling = Signal()
        at = Signal(range(self.columns))    # tiles that the current block has
        rows = Signal(range(height + 1))    # of each of them
        begun = Signal()                    # the vector has had a block
        filled = Signal()                   # the vector has had a row
        # What is in a bank that is full
        full = Signal(2)
        counts = Array(Signal(range(height + 1), name=f"count{k}") for k in range(2))    # 0: a bare stop
        closing = Array(Signal(STOP_WIDTH, name=f"closing{k}") for k in range(2))
        known = Signal(2)                   # whether closing cannot change any more
        # The bank that drains
        draining = Signal()
        row = Signal(range(height))
        sent = Signal(range(self.columns))

        (bare, hollow, ends, closes, unfinished, uneven, misshapen, good, accept, takes, completes, begins, coming,
         passes) = (Signal(name=name) for name in (
             "bare", "hollow", "ends", "closes", "unfinished", "uneven", "misshapen", "good", "accept", "takes",
             "completes", "begins", "coming", "passes"))
        m.d.comb += [
            bare.eq(beat.empty & ~beat.done),
            hollow.eq(~beat.empty & (beat.rows == 0)),
            ends.eq(beat.stop != 0),
            closes.eq(beat.stop >= 3),
            unfinished.eq(beat.empty & (at != 0)),
            uneven.eq(~beat.empty & (at != 0) & (beat.rows != rows)),
            misshapen.eq(Mux(bare, ~closes | begun, ~beat.done & (ends != (at + 1 == n)))),
            good.eq(i.valid & ~unfinished & ~uneven & ~misshapen),
            # Whether the beat needs a bank.
            takes.eq(Mux(hollow, closes & ~filled, ~beat.done)),
            i.ready.eq(good & Mux(beat.done, passes & o.ready, ~takes | ~full.bit_select(filling, 1))),
            accept.eq(i.valid & i.ready & ~beat.done),
            completes.eq(accept & takes & ends),
            begins.eq(~beat.empty & ~hollow & (at == 0)),
            # What the last row before it waits for: its stop stays 1.
            coming.eq(good & (begins | beat.done)),
            passes.eq(good & beat.done & (full == 0)),
            write.addr.eq(Cat(at, filling)),
            write.data.eq(beat.data),
            write.en.eq(accept & takes & ~bare),
        ]
        with m.If(accept):
            m.d.sync += [
                at.eq(Mux(ends, 0, at + 1)),
                rows.eq(beat.rows),
                begun.eq(~closes),
                filled.eq(~closes & (filled | ~hollow)),
            ]
            with m.If(begins):
                m.d.sync += known.bit_select(~filling, 1).eq(1)
            with m.If(hollow & closes & filled):    # the last row, which is still there, ends the vector
                m.d.sync += [known.bit_select(~filling, 1).eq(1), closing[~filling].eq(beat.stop - 1)]
        with m.If(completes):
            m.d.sync += [
                filling.eq(~filling),
                counts[filling].eq(beat.rows),
                closing[filling].eq(Mux(closes, beat.stop - 1, 1)),
                known.bit_select(filling, 1).eq(closes),
            ]
        with m.If(i.valid & beat.done & i.ready):
            m.d.sync += [begun.eq(0), filled.eq(0)]

        count = Signal(range(height + 1))
        present, none, last_tile, last, leaves, drained = (Signal(name=name) for name in (
            "present", "none", "last_tile", "last", "leaves", "drained"))
        m.d.comb += [
            present.eq(full.bit_select(draining, 1)),
            count.eq(counts[draining]),
            none.eq(count == 0),
            last_tile.eq(none | (sent + 1 == n)),
            last.eq(none | (last_tile & (row + 1 == count))),
            read.addr.eq(Cat(sent, draining)),
            o.valid.eq((present & (~last | known.bit_select(draining, 1) | coming)) | passes),
            o.payload.empty.eq(passes | none),
            o.payload.done.eq(passes),
            leaves.eq(o.valid & o.ready & ~passes),
            drained.eq(leaves & last),
            self.state.eq(full),
        ]
        with m.If(~passes):
            m.d.comb += o.payload.stop.eq(Mux(last, closing[draining], last_tile))
            with m.If(~none):
                m.d.comb += [
                    o.payload.data.eq(read.data.word_select(row, self.row.data_width)),
                    o.payload.rows.eq(1),
                ]
        with m.If(leaves):
            m.d.sync += sent.eq(Mux(last_tile, 0, sent + 1))
            with m.If(last_tile):
                m.d.sync += row.eq(Mux(last, 0, row + 1))
            with m.If(last):
                m.d.sync += draining.eq(~draining)
        m.d.sync += full.eq((full | (completes << filling)) & ~(drained << draining))

        with m.If(i.valid & unfinished):
            m.d.sync += self.error.eq(ErrorCode.PROTOCOL)
        with m.Elif(i.valid & uneven):
            m.d.sync += self.error.eq(ErrorCode.MISALIGNED)
        with m.Elif(i.valid & misshapen):
            m.d.sync += self.error.eq(ErrorCode.SHAPE)
        return m
