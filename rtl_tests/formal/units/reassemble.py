"""Reassemble: for each selector one chunk of every selected input, whole, served in rotation; stops of the groups."""

from functools import partial

from amaranth.hdl import Array, Cat, Mux, Signal

from step_hw.beat import BeatLayout

from ..case import Case
from ..faults import Fault
from ..grants import rotation
from ..harness import Harness

__all__ = ["CASES"]

LAYOUT = BeatLayout(1)


def _harness(module, n: int) -> Harness:
    unit = module.Reassemble(LAYOUT, n, n)
    h = Harness(unit)
    m, ins, selector, o, a = h.m, unit.ins[:n], unit.ins[n], unit.out0, unit.cfg.rank
    s = selector.payload
    outer = h.constant("selector_rank", 4)
    h.assume("levels are left", a + 1 + outer <= 15)
    sources = [h.legal(k, a) for k in range(n)]
    groups = h.legal(n, outer)
    chunk_there = Cat(i.valid & ~i.payload.done for i in ins)
    done_there = Cat(i.valid & i.payload.done for i in ins)

    served = Signal(n)                  # inputs of this group that have been served; at the end, done has been taken
    serving, server = Signal(), Signal(range(max(2, n)))
    ended = Signal()                    # done has left
    wanted = Signal(n)
    m.d.comb += wanted.eq(Mux(selector.valid & ~s.empty, s.data, 0) & ~served)
    # An input that is selected and has ended: the streams are out of step.
    short = Signal()
    m.d.comb += short.eq(~serving & (wanted & done_there).any())
    waiting = Signal(n)
    m.d.comb += waiting.eq(Mux(short, 0, wanted & chunk_there))
    granted, index = unit.grant_valid, unit.grant_index
    h.prove("a grant when somebody waits and nobody is served", granted == (~serving & waiting.any()))
    h.prove("a grant for one who waits", ~granted | waiting.bit_select(index, 1))
    now = Mux(granted, index, server)
    busy = serving | granted
    own = Cat(busy & (now == k) for k in range(n))
    heads = Array(i.payload for i in ins)
    head, there = heads[now], (Cat(i.valid for i in ins) & own).any()
    last = head.stop == a
    closes = last & ~(wanted & ~own).any()
    nothing = selector.valid & ~s.done & (s.empty | (s.data == 0))
    finishing = selector.valid & s.done
    fires = o.valid & o.ready
    over = Signal()
    m.d.comb += over.eq(finishing & (ended | fires) & (served | done_there).all())
    rotation(h, n, waiting, granted, index, over)

    p = o.payload
    h.prove("offers what is there", o.valid == Mux(busy, there, Mux(
        nothing, s.empty | unit.cfg.hollow, finishing & ~ended)))
    h.prove("beats of the served input", ~o.valid | ~busy | (
        (Cat(p.data, p.rows, p.empty, p.done) == Cat(head.data, head.rows, head.empty, 0))
        & (p.stop == Mux(closes, a + 1 + s.stop, head.stop))))
    h.prove("an empty group is a bare stop", ~o.valid | busy | ~nothing | (
        (Cat(p.data, p.rows) == 0) & p.empty & ~p.done & (p.stop == a + 1 + s.stop)))
    h.prove("done with the selectors'", ~o.valid | busy | nothing | p.done)
    h.prove("a selector leaves with its group", ~selector.valid | (selector.ready == Mux(
        s.done, over, fires & Mux(busy, closes, nothing))))
    for k, i in enumerate(ins):
        h.prove(f"in{k} leaves when it is out", ~i.valid | (i.ready == Mux(
            finishing & ~busy, i.payload.done & ~served[k], own[k] & fires)))
    with m.If(granted):
        m.d.sync += server.eq(index)
    m.d.sync += serving.eq(busy & ~(fires & last))
    with m.If(selector.valid & selector.ready):
        m.d.sync += [served.eq(0), ended.eq(0)]
    with m.Elif(finishing):
        m.d.sync += [served.eq(served | done_there), ended.eq(ended | fires)]
    with m.Elif(busy & fires & last):
        m.d.sync += served.eq(served | own)

    out = h.grammatical(0, a + 1 + outer)
    broken = Signal(4)
    with m.If(nothing & ~s.empty & ~unit.cfg.hollow):
        m.d.sync += broken.eq(8)
    with m.Elif(short | finishing & (chunk_there & ~served).any()):
        m.d.sync += broken.eq(1)
    h.prove("the right error", unit.error == broken)
    h.moves()

    h.invariant("state", (h.peek("served", n) == served) & (h.peek("sent") == ended) & (h.peek("locked") == serving))
    h.invariant("whom", ~serving | (h.peek("current", len(server)) == server) & (server < n)
                & wanted.bit_select(server, 1))
    h.invariant("a group has its selector", ~(serving | served.any() | ended) | selector.valid & ~nothing)
    h.invariant("done only at the end", ~ended | finishing)
    h.invariant("nobody is served at the end", ~serving | ~finishing)
    h.invariant("served were selected", finishing | ((served & ~Mux(selector.valid, s.data, 0)) == 0))
    h.invariant("somebody is left", ~served.any() | finishing | wanted.any())
    at_open, at_inside = Array(g.open for g in sources)[server], Array(g.inside for g in sources)[server]
    h.invariant("a chunk that has not begun is at the head", ~serving | at_inside | Array(
        i.valid & ~i.payload.done for i in ins)[server])
    for k, g in enumerate(sources):
        h.invariant(f"in{k} between chunks", serving & (server == k) | ~g.inside & (~g.open | (a == 0)))
    middle = serving & at_inside                        # of a chunk
    later = middle | served.any() & ~finishing          # than a group's first beat
    h.invariant("the output is in a group where the selector is", out.inside == (groups.inside | later))
    h.invariant("the output's vector", out.open == Mux(a == 0, later, middle & at_open))
    return h


FAULTS = (
    Fault("a group closes with every chunk", "last.eq(ends & ~left.any())", "last.eq(ends)"),
    Fault("an input is served twice", "served.eq(served | arbiter.chosen)", "served.eq(served)"),
    Fault("the group's stop is one lower", "closing.eq(rank + 1 + s.stop)", "closing.eq(rank + s.stop)"),
    Fault("a selector leaves with the first chunk", "selector.ready.eq(over | fires & (hollow | there & last))",
          "selector.ready.eq(over | fires & (hollow | there & ends))"),
    Fault("a chunk ends with its first beat", "arbiter.finish.eq(there & fires & ends)",
          "arbiter.finish.eq(there & fires)"),
    Fault("done leaves twice", "m.d.comb += [o.valid.eq(~sent)", "m.d.comb += [o.valid.eq(1)"),
    Fault("an input's done is taken twice", "i.payload.done & ~served[k])", "i.payload.done)"),
    Fault("the rotation skips one", "first.eq(self.turn + 1)", "first.eq(self.turn + 2)", "step_hw.arbiter"),
)

CASES = tuple(Case(f"reassemble, {n} inputs", "step_hw.units.reassemble", partial(_harness, n=n), 12, 2, 6, FAULTS)
              for n in (2, 3))
