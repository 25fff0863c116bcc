"""Accum and scan by the shape of their state: two inner dimensions, an open one, tiles of fewer rows than there is room
for. Folds of the groups, in order; what has another shape than its fold is an error, and goes no further."""

from functools import partial

from amaranth.hdl import Cat, Mux, Signal

from step_hw.unit import ErrorCode
from step_lang import fn
from step_lang.types import Tile, int8

from ..case import Case
from ..faults import Fault
from ..fold_faults import BARE_CLOSES_NOTHING, DRAIN, INIT_LOST, NOT_BEGUN, STAGE_MOVES
from ..harness import Harness

__all__ = ["CASES"]

INIT = 5


def _harness(module, kind: str, inner: int, sizes: tuple[int, int], rows: int = 1, hollow: bool = False) -> Harness:
    """Of states of up to ``sizes`` (n1, n0) tiles of ``rows`` rows, masked where there are several. A state of one
    inner dimension is an open one; of two, its registers are any up to ``sizes``, 2 at most."""
    tile = Tile(rows, 1, int8)
    entries = sizes[0] * sizes[1]
    unit = getattr(module, kind.capitalize())(
        fn.add(), (tile,), tile, tile=rows, rows_per_cycle=rows, k_per_cycle=1, entries=entries, init=INIT,
        masked=rows > 1)
    is_open = inner == 1
    h = Harness(unit, {"inner": inner} | ({"n1": 1, "n0": 0} if is_open else {}) | (
        {"hollow": int(hollow)} if kind == "accum" else {}))
    m, i, p, b = h.m, unit.in0, unit.in0.payload, unit.cfg.rank
    rank = h.constant("rank", 4)
    h.assume("dimensions", (b != 0) & (rank >= b + inner))
    if not is_open:
        h.assume("sizes", (unit.cfg.n1 != 0) & (unit.cfg.n1 <= sizes[0]) & (unit.cfg.n0 != 0)
                 & (unit.cfg.n0 <= sizes[1]))
    h.legal(0, rank)
    if not is_open and inner:
        h.assume("small numbers", p.data < 2)    # what is folded matters less than where, and takes longer

    # Where an element stands in its tensor.
    fused, closes = ~p.empty, Signal()
    at1, at0 = Signal(range(sizes[0])), Signal(range(sizes[1]))
    place, ends = Signal(range(max(2, entries))), Signal()
    started = Signal()                  # the fold goes on: its tensors' size and the rows of its tiles are known
    m.d.comb += closes.eq(~p.done & (p.stop >= b + inner))
    size = Signal.like(place)
    if is_open:
        m.d.comb += ends.eq(p.stop >= inner)
        misplaced = Mux(started, ends != (place == size), ~ends & (place == entries - 1))
    else:
        row_ends = at0 + 1 == unit.cfg.n0
        m.d.comb += ends.eq(row_ends & (at1 + 1 == unit.cfg.n1))
        wanted = Mux(ends, inner, row_ends & (inner != 0))
        misplaced = Mux(ends, p.stop < inner, p.stop != wanted)
    heights = [Signal(range(rows + 1), name=f"height{k}") for k in range(entries)]
    states = [[Signal(8, name=f"state{k}_{r}") for r in range(rows)] for k in range(entries)]
    if rows > 1:
        uneven = started & Cat((place == k) & (p.rows != height) for k, height in enumerate(heights)).any()
    else:
        uneven = 0
    nothing = closes & ~started         # the group is empty
    bare_misfits = (place != 0) | (p.stop <= inner) | (nothing & (p.stop == b) if hollow else nothing & int(is_open))
    misfits = Signal()
    m.d.comb += misfits.eq(i.valid & ~p.done & Mux(fused, misplaced | uneven, bare_misfits))
    accepted = Signal()
    m.d.comb += accepted.eq(i.valid & i.ready & ~misfits)
    if kind == "accum":
        h.prove("what does not fit stays", ~i.ready | ~misfits)
    h.prove("nothing is taken after an error", ~i.ready | (unit.error == 0))
    element = accepted & fused
    with m.If(element):
        m.d.sync += place.eq(Mux(ends, 0, place + 1))
        if not is_open:
            m.d.sync += at0.eq(Mux(row_ends, 0, at0 + 1))
            with m.If(row_ends):
                m.d.sync += at1.eq(Mux(ends, 0, at1 + 1))
    with m.If(accepted & closes):
        m.d.sync += started.eq(0)
    with m.Elif(element & ends):
        m.d.sync += [started.eq(1), size.eq(place)]

    sums = [[Signal(8, name=f"sum{k}_{r}") for r in range(rows)] for k in range(entries)]
    for k in range(entries):
        here = fused & (place == k)
        for r, (state, total) in enumerate(zip(states[k], sums[k])):
            begun = started | (k < place)
            m.d.comb += total.eq(Mux(begun, state, INIT) + Mux(here, p.data.word_select(r, 8), 0))
            with m.If(element & here):
                m.d.sync += state.eq(total)
        with m.If(element & here):
            m.d.sync += heights[k].eq(p.rows)

    owed = h.owes(0, unit.timing.latency + 2 + 2 * entries)

    def masked(tile_rows, valid):
        return Cat(row & (r < valid).replicate(8) for r, row in enumerate(tile_rows)) if rows > 1 else tile_rows[0]

    def beat(name, data, valid, stop):
        made = Signal(unit.output_layouts[0], name=name)
        m.d.comb += [made.data.eq(data), made.rows.eq(valid), made.stop.eq(stop)]
        return made

    if kind == "scan":
        result = Signal(unit.output_layouts[0])
        m.d.comb += result.eq(p)
        for k in range(entries):
            with m.If(fused & (place == k)):
                m.d.comb += result.data.eq(masked(sums[k], p.rows))
        owed.append(accepted, result)
        h.grammatical(0, rank)
    else:
        last = Mux(fused, place, size) if is_open else unit.cfg.n1 * unit.cfg.n0 - 1
        for k in range(entries):
            # Of a group of nothing ``init``, one row of it.
            valid = Mux(fused & (place == k), p.rows, Mux(started | (k < place), heights[k], 1)) if rows > 1 else 1
            inner_stop = 0 if is_open else (unit.cfg.n0 == 1) | (k % 2 == 1)
            owed.append(accepted & closes & (k <= last) & ~(nothing & ~fused & int(hollow)), beat(
                f"result{k}", masked(sums[k], valid), valid, Mux(k == last, p.stop - b, inner_stop)))
        if hollow:
            bare = Signal(unit.output_layouts[0])
            m.d.comb += [bare.empty.eq(1), bare.stop.eq(p.stop - b)]
            owed.append(accepted & nothing & ~fused, bare)
        owed.append(accepted & p.done, p)
        h.grammatical(0, rank - b)
    owed.close(stall=4)
    code = Signal(4)
    with m.If(misfits):
        m.d.sync += code.eq(Mux(fused & ~started & int(is_open), ErrorCode.EXHAUSTED, ErrorCode.SHAPE))
    h.prove("the right error", unit.error == code)
    h.moves(stall=4)
    return h


_ACCUM = "step_hw.units.accum"
_SCAN = "step_hw.units.scan"
_COMPUTE = "step_hw.compute"

_PLACE = (
    Fault("rows of the state do not end", "i0.eq(Mux(ends == 0, i0 + 1, 0))", "i0.eq(i0 + 1)", _COMPUTE),
    Fault("inner stops are not looked at", "token.stop < self.cfg.inner, token.stop != position.stop)",
          "token.stop < self.cfg.inner, 0)", _COMPUTE),
)
_TWO = (
    *_PLACE, NOT_BEGUN, *DRAIN,
    Fault("inner stops do not leave", "Mux(drain.last, drain_stop, drain.stop)", "Mux(drain.last, drain_stop, 0)"),
    INIT_LOST,
)
_OPEN = (
    NOT_BEGUN, *DRAIN,
    Fault("the drain goes as far as the tensor before", "drain_size.eq(Mux(element, position.index, size))",
          "drain_size.eq(size)"),
    Fault("a tensor of another size is folded", "(is_open & (position.last != (position.index == size)) | differs)",
          "differs"),
    Fault("more than there is room for", "self.over.eq((self.index == self.entries - 1) & ~self.last)",
          "self.over.eq(0)", _COMPUTE),
    Fault("a smaller tensor does not wait for the drain", "(free | ~(closing | token.done))", "(free | ~token.done)"),
)
_MASKED = (
    NOT_BEGUN, *DRAIN,
    Fault("rows that are not valid leave", "entry = masked(entry, entry_rows, self.out_type)", "pass"),
    Fault("an empty group leaves all rows", "init &= (1 << (self.width // int(self.out_type.rows))) - 1", "pass"),
    Fault("tiles of other rows are folded", "differs = state.differs if self.compares else Const(0)",
          "differs = Const(0)"),
    Fault("rows are those of the last tile", "Mux(drain_init, init_rows, entry_rows)",
          "Mux(drain_init, init_rows, token.rows)"),
)
_EMPTY_OPEN = Fault("an empty group of an open state leaves", "Mux(self.cfg.hollow, token.stop == rank, is_open)",
                    "self.cfg.hollow & (token.stop == rank)")
_SCAN_SHARED = (
    NOT_BEGUN,
    STAGE_MOVES,
    BARE_CLOSES_NOTHING,
)
_SCAN_MASKED = (
    *_SCAN_SHARED,
    Fault("rows that are not valid leave", "masked(state.read_data, out.rows, self.out_type) if self.masked else", ""),
    Fault("tiles of other rows are folded", "unfit = ~token.empty & started & state.differs if self.compares else None",
          "unfit = None"),
)

CASES = (
    Case("accum, masked", _ACCUM, partial(_harness, kind="accum", inner=0, sizes=(1, 1), rows=2), 9, None, 5, _MASKED),
    Case("accum, open state of up to 2 elements", _ACCUM, partial(_harness, kind="accum", inner=1, sizes=(1, 2)),
         9, None, 0, (*_OPEN, _EMPTY_OPEN)),
    Case("accum, hollow, open state of up to 2 elements", _ACCUM,
         partial(_harness, kind="accum", inner=1, sizes=(1, 2), hollow=True), 9, None, 0, _OPEN),
    Case("accum, masked, open state of up to 2 elements", _ACCUM,
         partial(_harness, kind="accum", inner=1, sizes=(1, 2), rows=2), 8, None, 0, (*_MASKED[1:-3], *_OPEN[3:])),
    Case("accum, state of up to 2 x 2 elements", _ACCUM, partial(_harness, kind="accum", inner=2, sizes=(2, 2)),
         9, None, 0, _TWO),
    Case("scan, masked", _SCAN, partial(_harness, kind="scan", inner=0, sizes=(1, 1), rows=2), 9, None, 0,
         _SCAN_MASKED),
    Case("scan, state of up to 2 x 2 elements", _SCAN, partial(_harness, kind="scan", inner=2, sizes=(2, 2)),
         9, None, 0, (*_PLACE, *_SCAN_SHARED)),
)
