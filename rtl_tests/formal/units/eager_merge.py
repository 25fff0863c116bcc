"""Eager merge: chunks whole, each input's in order, one name beside each; nobody waits for more than n - 1 others."""

from amaranth.hdl import Array, Cat, Mux, Signal

from step_hw.beat import BeatLayout

from ..case import Case
from ..faults import Fault
from ..grants import rotation
from ..harness import Harness

__all__ = ["CASES"]

LAYOUT = BeatLayout(1)


def _harness(module, n: int, selector: bool) -> Harness:
    unit = module.EagerMerge(LAYOUT, n, selector)
    h = Harness(unit)
    m, ins, rank = h.m, unit.ins, unit.cfg.rank
    sources = [h.legal(k, rank) for k in range(n)]
    presents = Cat(i.valid & ~i.payload.done for i in ins)
    all_done = Cat(i.valid & i.payload.done for i in ins).all()

    # The chunk being served, by the grants alone.
    serving, server = Signal(), Signal(range(max(2, n)))
    now = Mux(unit.grant_valid, unit.grant_index, server)
    busy = serving | unit.grant_valid
    payloads = Array(i.payload for i in ins)
    valids = Array(i.valid for i in ins)
    readies = Array(i.ready for i in ins)
    head = payloads[now]
    last = head.stop == rank
    leaves = valids[now] & readies[now] & busy
    with m.If(unit.grant_valid):
        m.d.sync += server.eq(unit.grant_index)
    m.d.sync += serving.eq(busy & ~(leaves & last))
    h.prove("a grant when somebody waits and nobody is served", unit.grant_valid == (~serving & presents.any()))
    h.prove("a grant for one who waits", ~unit.grant_valid | presents.bit_select(unit.grant_index, 1))
    over = Signal()
    m.d.comb += over.eq(all_done & ins[0].ready)
    rotation(h, n, presents, unit.grant_valid, unit.grant_index, over)

    # Outputs: the served input's beats, and its name once a chunk; all of it in step.
    outs = unit.outs
    fires = Cat(o.valid & o.ready for o in outs)
    got = Signal(len(outs))
    have = Signal(len(outs))
    m.d.comb += have.eq(got | fires)
    data = outs[0]
    ending = ~serving & all_done
    h.prove("beats of the served input", ~data.valid | Mux(
        ending, data.payload.done, busy & valids[now] & (data.payload.as_value() == head.as_value())))
    h.prove("each beat once", ~(got[0] & data.valid))
    for k, i in enumerate(ins):
        served = busy & (now == k)
        # A chunk's last beat leaves when data and name are out, another when the data are.
        complete = have[0] if not selector else have[0] & (have[1] | ~last)
        h.prove(f"in{k} leaves when it is out", ~i.valid | (i.ready == Mux(ending, have.all(), served & complete)))
    m.d.sync += got[0].eq(have[0] & ~Mux(ending, over, leaves))
    if selector:
        name = outs[1]
        m.d.sync += got[1].eq(have[1] & ~Mux(ending, over, leaves & last))
        h.prove("the source's name", ~name.valid | Mux(
            ending, name.payload.done, busy & (name.payload.data == (1 << now)) & (name.payload.stop == 0)
            & ~name.payload.empty & (name.payload.rows == 1)))
        h.prove("each chunk named once", ~(got[1] & name.valid))
        h.grammatical(1, 0)
        h.within("the name leaves", busy & ~got[1] & name.ready & ~name.valid)
    merged = h.grammatical(0, rank)
    h.no_error()
    h.moves()
    h.within("the beat leaves", busy & valids[now] & ~got[0] & data.ready & ~data.valid)

    # For induction
    h.invariant("locked", (h.peek("locked") == serving) & (h.peek("taken") == got[0]))
    if selector:
        h.invariant("named", h.peek("named") == got[1])
        h.invariant("a name out is a chunk's", ~got[1] | serving | all_done)
    h.invariant("current", ~serving | (h.peek("current", len(server)) == server) & (server < n))
    h.invariant("a beat out is at the head", ~got[0] | Mux(serving, valids[server], all_done))
    gone = got[0]
    at = Array([s.open for s in sources])[server], Array([s.inside for s in sources])[server]
    h.invariant("a chunk that has not begun is at the head", ~serving | at[1] | valids[server] & ~payloads[server].done)
    # (Where a chunk is an element, nothing depends on ``open``.)
    h.invariant("the output is where the served input is", ~serving | Mux(
        gone, merged.behind_states(*at, payloads[server]),
        ((merged.open == at[0]) | (rank == 0)) & (merged.inside == at[1])))
    for k, s in enumerate(sources):
        h.invariant(f"in{k} between chunks", serving & (server == k) | ~s.open & ~s.inside | (rank == 0) & ~s.inside)
    h.invariant("the output between chunks", serving | ~merged.inside & (~merged.open | (rank == 0)))
    return h


FAULTS = (
    Fault("done inside the rotation", "later.eq(waiting & (Const(-1, n) << first)[:n])", "later.eq(0)",
          "step_hw.arbiter"),
    Fault("the lock ends a beat early", "arbiter.finish.eq(accept & ends)", "arbiter.finish.eq(accept)"),
    Fault("a chunk's name is sent for every beat", "named.eq(has_name & ~arbiter.finish & ~over & int(self.selector))",
          "named.eq(0)"),
    Fault("the beat is sent twice while its name waits", "(ended | there & ~wrong) & ~taken",
          "(ended | there & ~wrong)"),
    Fault("accepted before the name is out", "accept.eq(there & has_data & (has_name | ~ends))",
          "accept.eq(there & has_data)"),
    Fault("the priority does not start anew", "arbiter.clear.eq(over)", "arbiter.clear.eq(0)"),
    Fault("the next search begins at the same input", "first.eq(self.turn + 1)", "first.eq(self.turn)",
          "step_hw.arbiter"),
    Fault("done as soon as one is done", "ended.eq(~arbiter.locked & dones.all())",
          "ended.eq(~arbiter.locked & dones.any())"),
)

CASES = (
    Case("eager_merge, 2 inputs", "step_hw.units.eager_merge", lambda module: _harness(module, 2, True), 16, 1, 8,
         FAULTS),
    Case("eager_merge, 3 inputs, no selector", "step_hw.units.eager_merge",
         lambda module: _harness(module, 3, False), 16, 1, 8, tuple(f for f in FAULTS if "name" not in f.what)),
)
