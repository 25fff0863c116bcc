"""Accum and scan: folds of the groups, in order, with the stops that are left; empty groups leave init, or, hollow, a
bare stop."""

from functools import partial

from amaranth.hdl import Mux, Signal

from step_lang import fn
from step_lang.types import Tile, int8

from ..case import Case
from ..faults import Fault
from ..fold_faults import BARE_CLOSES_NOTHING, DRAIN, INIT_LOST, NOT_BEGUN, STAGE_MOVES
from ..harness import Harness

__all__ = ["CASES"]

TILE = Tile(1, 1, int8)
INIT = 5


def _harness(module, kind: str, inner: int, hollow: bool = False) -> Harness:
    """Of states of one element (``inner`` 0) or of two (1)."""
    size = 2 if inner else 1
    unit = getattr(module, kind.capitalize())(
        fn.add(), (TILE,), TILE, tile=1, rows_per_cycle=1, k_per_cycle=1, entries=size, init=INIT)
    h = Harness(unit)
    m, i, p, b = h.m, unit.in0, unit.in0.payload, unit.cfg.rank
    rank = h.constant("rank", 4)
    registers = {"inner": inner, "n1": 1, "n0": size} | {
        name: int(hollow) for name in ("hollow",) if name in unit.cfg_widths}
    for name, value in registers.items():
        h.assume(name, getattr(unit.cfg, name) == value)
    h.assume("dimensions", (b != 0) & (rank >= b + inner))
    h.legal(0, rank)
    accepted = i.valid & i.ready

    # Every tensor of the state has its size, and an empty group has none.
    place = Signal(range(2))
    fused = ~p.empty
    ends = place == size - 1
    if inner:
        h.assume("tensors are whole", ~i.valid | Mux(
            fused, (p.stop != 0) == ends, (place == 0) & (p.done | (p.stop > 1))))
        with m.If(accepted & fused):
            m.d.sync += place.eq(~place)

    started = Signal()      # the fold of the state's first element, and so of all, goes on
    states = [Signal(8, name=f"state{k}") for k in range(size)]
    closes = Signal()
    m.d.comb += closes.eq(~p.done & (p.stop >= b + inner))
    sums = [Signal(8, name=f"sum{k}") for k in range(size)]
    for k, (state, total) in enumerate(zip(states, sums)):
        here = fused & (place == k)
        m.d.comb += total.eq(Mux(started | (k < place), state, INIT) + Mux(here, p.data, 0))
        with m.If(accepted & here):
            m.d.sync += state.eq(total)
    with m.If(accepted):
        with m.If(closes):
            m.d.sync += started.eq(0)
        with m.Elif(fused & ends):
            m.d.sync += started.eq(1)

    nothing = Signal()      # a group that leaves a bare stop
    vector = Signal()       # of groups, some of which have come
    with m.If(accepted):
        m.d.sync += vector.eq(~p.done & (p.stop <= b + inner))
    if hollow:
        m.d.comb += nothing.eq(closes & ~fused & ~started)
        h.assume("only a whole vector of groups is empty", ~i.valid | ~nothing | ~vector & (p.stop > b + inner))

    owed = h.owes(0, unit.timing.latency + 2 + 2 * size)

    def beat(name, data, stop):
        made = Signal(unit.output_layouts[0], name=name)
        m.d.comb += [made.data.eq(data), made.rows.eq(1), made.stop.eq(stop)]
        return made

    if kind == "scan":
        result = Signal(unit.output_layouts[0])
        m.d.comb += result.eq(p)
        with m.If(fused):
            m.d.comb += result.data.eq(Mux(place == 0, sums[0], sums[-1]))
        owed.append(accepted, result)
        h.grammatical(0, rank)
    else:
        for k, total in enumerate(sums):
            last = k == size - 1
            owed.append(accepted & closes & ~nothing, beat(f"result{k}", total, p.stop - b if last else 0))
        bare = Signal(unit.output_layouts[0])
        m.d.comb += [bare.empty.eq(1), bare.stop.eq(p.stop - b)]
        owed.append(accepted & nothing, bare)
        owed.append(accepted & p.done, p)
        h.grammatical(0, rank - b)
    owed.close(stall=4)
    h.no_error()
    h.moves(stall=4)
    return h


_SHARED = (
    NOT_BEGUN,
    Fault("a stop one lower closes", "closing.eq(token.stop >= ", "closing.eq(token.stop + 1 >= "),
)
_ACCUM = (
    *_SHARED,
    *DRAIN,
    INIT_LOST,
    Fault("done overtakes", "(free | ~(closing | token.done))", "(free | ~closing)"),
)
_HOLLOW = (
    Fault("an empty group leaves init", "drain_bare.eq(token.empty & ~token.done & ~started & self.cfg.hollow)",
          "drain_bare.eq(0)"),
    Fault("a bare stop drops the fold", "drain_bare.eq(token.empty & ~token.done & ~started & self.cfg.hollow)",
          "drain_bare.eq(token.empty & ~token.done & self.cfg.hollow)"),
    Fault("the stop is the fold's", "drain_stop.eq(token.stop - rank)", "drain_stop.eq(token.stop)"),
    Fault("a bare stop is not marked", "with m.Elif(drain_bare):", "with m.Elif(0):"),
)
_HOLLOW_DRAIN = Fault("a bare stop drains the state too", "drain_last.eq(drain_done | drain_bare | drain.last)",
                      "drain_last.eq(drain_done | drain.last)")
_SCAN = (
    *_SHARED,
    STAGE_MOVES,
    BARE_CLOSES_NOTHING,
)

CASES = (
    Case("accum", "step_hw.units.accum", partial(_harness, kind="accum", inner=0), 10, None, 6, _ACCUM),
    Case("accum, state of 2 elements", "step_hw.units.accum", partial(_harness, kind="accum", inner=1), 10, None, 6,
         _ACCUM),
    Case("accum, hollow", "step_hw.units.accum", partial(_harness, kind="accum", inner=0, hollow=True), 10, None, 6,
         _HOLLOW),
    Case("accum, hollow, state of 2 elements", "step_hw.units.accum",
         partial(_harness, kind="accum", inner=1, hollow=True), 10, None, 6, (*_HOLLOW, _HOLLOW_DRAIN)),
    Case("scan", "step_hw.units.scan", partial(_harness, kind="scan", inner=0), 10, None, 6, _SCAN),
    Case("scan, state of 2 elements", "step_hw.units.scan", partial(_harness, kind="scan", inner=1), 10, None, 6,
         _SCAN),
)
