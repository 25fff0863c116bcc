"""TrimRows: the first rows of tiles that several tiles of fewer rows make up."""

from amaranth.hdl import Cat, Module, Mux, Signal

from ..beat import BeatLayout
from ..unit import ErrorCode, Unit
from .pack_rows import ROWS_WIDTH
from .repeat import COUNT_WIDTH

__all__ = ["TrimRows"]


class TrimRows(Unit):
    """Hardware of ``step_lang.ops.trim_rows``: ``in0`` tiles, ``in1`` counts, ``out0`` what is left. Latency 0, one
    input beat a cycle.

    Parameters
    ----------
    source, layout : BeatLayout
        Of the input and of the output, equally wide rows; ``layout`` has at least as many.

    ========== ===== =================================================================================
    register   width meaning
    ========== ===== =================================================================================
    rows       5     rows of every tile of a chunk but those of its last row of tiles
    total      32    0: count says how many rows are left; else rows of a whole chunk: how many are not
    ========== ===== =================================================================================

    ``left`` rows of the chunk are still to leave. The block (a row of tiles) that has the last of them ends with the
    chunk's stop: where that is not its own, its last beat is held until the chunk's end, the blocks between being
    dropped. Rows that do not survive leave as zeros. The count leaves with its chunk's last beat.

    Errors: PROTOCOL when the stream ends inside a chunk, or for a bare stop inside a block; MISALIGNED when counts and
    chunks disagree in stop, emptiness or done, or tiles of a block have different counts of rows; SHAPE for a count
    above the chunk's rows, for an empty block, and for tiles of other than ``rows`` rows before the last block.
    """

    kind = "trim_rows"

    def __init__(self, source: BeatLayout, layout: BeatLayout):
        if source.max_rows > layout.max_rows or (
                source.data_width * layout.max_rows != layout.data_width * source.max_rows):
            raise ValueError(f"tiles of {source.max_rows} rows and {source.data_width} bits do not fit "
                             f"{layout.max_rows} rows and {layout.data_width} bits")
        self.source, self.layout = source, layout
        super().__init__([source, BeatLayout(32)], [layout], cfg={"rows": ROWS_WIDTH, "total": COUNT_WIDTH},
                         state_width=2)

    @property
    def module_name(self) -> str:
        return f"trim_rows_{self.source.key}_{self.layout.key}"

    def elaborate(self, platform):
        m = Module()
        data, counts, o, cfg = self.in0, self.in1, self.out0, self.cfg
        d, c = data.payload, counts.payload
        width = self.source.data_width // self.source.max_rows
        within = Signal()                   # inside a block
        height = Signal.like(d.rows)        # rows of its tiles
        begun = Signal()                    # the chunk has had a block
        left = Signal(COUNT_WIDTH)          # rows still to leave, once begun
        dropping = Signal()                 # the last beat to leave is held
        held = Signal(self.layout.data_width, reset_less=True)
        held_rows = Signal.like(o.payload.rows, reset_less=True)

        now, keep = Signal(COUNT_WIDTH), Signal.like(d.rows)
        (present, hollow, ends, closes, unfinished, differ, misshapen, good, enough, holds, emits, goes) = (
            Signal(name=name) for name in (
                "present", "hollow", "ends", "closes", "unfinished", "differ", "misshapen", "good", "enough", "holds",
                "emits", "goes"))
        kept = Cat(Mux(k < keep, d.data.word_select(k, width), 0) for k in range(self.source.max_rows))
        m.d.comb += [
            present.eq(data.valid & counts.valid),
            hollow.eq(d.empty & ~d.done & (begun | (d.stop < 3))),  # a block without tiles
            ends.eq(d.stop != 0),
            closes.eq(d.stop >= 2),
            now.eq(Mux(begun, left, Mux(cfg.total == 0, c.data, cfg.total - c.data))),
            enough.eq(now <= d.rows),
            keep.eq(Mux(enough, now, d.rows)),
            unfinished.eq(d.empty & within | d.done & begun),
            differ.eq((d.empty != c.empty) | (d.done != c.done) | (closes & (d.stop != c.stop + 2))
                      | (~d.empty & within & (d.rows != height))),
            misshapen.eq(~d.empty & (
                ((cfg.total != 0) & (c.data > cfg.total))
                | (d.rows > cfg.rows)
                | ((d.rows != cfg.rows) & ends & ~closes)
                | (closes & ~enough))),
            good.eq(present & ~unfinished & ~hollow & ~differ & ~misshapen),
            holds.eq(~d.empty & ends & ~closes & enough & ~dropping),
            emits.eq(Mux(dropping, closes, ~holds)),
            o.valid.eq(good & emits),
            goes.eq(good & (~emits | o.ready)),
            data.ready.eq(goes),
            counts.ready.eq(goes & (closes | d.done)),
            o.payload.stop.eq(d.stop),
            o.payload.empty.eq(d.empty),
            o.payload.done.eq(d.done),
            o.payload.data.eq(Mux(dropping, held, Mux(d.empty, 0, kept))),
            o.payload.rows.eq(Mux(dropping, held_rows, Mux(d.empty, 0, keep))),
            self.state.eq(Cat(begun, dropping)),
        ]
        with m.If(goes):
            m.d.sync += [within.eq(~d.empty & ~ends), height.eq(d.rows)]
            with m.If(holds):
                m.d.sync += [dropping.eq(1), held.eq(kept), held_rows.eq(keep)]
            with m.If(closes):
                m.d.sync += [begun.eq(0), dropping.eq(0)]
            with m.Elif(ends):
                m.d.sync += [begun.eq(1), left.eq(now - keep)]

        with m.If(present & unfinished):
            m.d.sync += self.error.eq(ErrorCode.PROTOCOL)
        with m.Elif(present & differ & ~hollow):
            m.d.sync += self.error.eq(ErrorCode.MISALIGNED)
        with m.Elif(present & (hollow | misshapen)):
            m.d.sync += self.error.eq(ErrorCode.SHAPE)
        return m
