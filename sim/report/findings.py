"""What limits a design, and what to try: rules over the numbers of a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .record import Run, Unit

__all__ = ["RULES", "Finding", "findings"]

HIGH = 0.8
"""Share from which on something counts as in use all the time."""
SOME = 0.25
"""Share from which on waiting is worth a word."""


@dataclass(frozen=True)
class Finding:
    """``kind``: the rule's name; ``title``, ``text`` with the numbers, ``tries``; ``weight``: the share of cycles that
    it is about, by which findings are sorted."""

    kind: str
    title: str
    text: str
    tries: tuple[str, ...]
    weight: float


def findings(run: Run) -> list[Finding]:
    """What the rules find, the weightiest first; never empty."""
    made = [found for rule in RULES for found in [rule(run)] if found is not None]
    return sorted(made, key=lambda found: -found.weight)


def _percent(share: float) -> str:
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}"


def memory_bound(run: Run) -> Finding | None:
    """The memory moves bytes most of the time."""
    if run.memory_share < HIGH:
        return None
    movers = sorted((cost for cost in run.costs if cost.offchip_bytes), key=lambda cost: -cost.offchip_bytes)[:3]
    most = ", ".join(f"{cost.name} {_percent(cost.offchip_bytes / max(1, run.offchip_bytes))}" for cost in movers)
    return Finding(
        "memory_bound", "Bound by off-chip memory",
        f"{run.offchip_bytes:,} bytes in {run.cycles:,} cycles are {_percent(run.memory_share)} of the "
        f"{run.bandwidth:g} bytes a cycle that the memory can move. Most of it: {most}.",
        ("Move fewer bytes: larger tiles, so that what is loaded is used more often; tiles of dynamic rows in place of "
         "padded ones; keep in an on-chip buffer what is loaded again.",
         f"Or a wider memory: {run.knobs['bandwidth']}."), run.memory_share)


def compute_bound(run: Run) -> Finding | None:
    """A unit that computes works most of the time."""
    unit = max((u for u in run.units if u.category == "compute"), key=lambda u: u.share("busy"), default=None)
    if unit is None or unit.share("busy") < HIGH:
        return None
    return Finding(
        "compute_bound", f"Bound by {unit.name}",
        f"{unit.kind} {unit.name} works in {_percent(unit.share('busy'))} of all cycles"
        f"{f' for {unit.operator}' if unit.operator not in ('', unit.name) else ''}; everything that computes does "
        f"{_percent(run.compute_share)} of what it could.",
        (f"Give it more: {run.knobs['compute']}.",
         "Or split its work over several operators (partition, then reassemble)."), unit.share("busy"))


def _shown(run: Run, chain: Sequence[int], arrow: str) -> str:
    names = [run.units[u].name for u in chain]
    return arrow.join(names if len(names) <= 6 else [*names[:3], "…", *names[-2:]])


def _late(run: Run, u: int) -> list[int]:
    """From ``u`` upstream along the inputs that come last (whose source waits least for room, is not done early, and
    gives more than a few elements), to a unit that does not mostly wait for input."""
    sources: dict[int, list[int]] = {}
    for link in run.links:
        if link.source is not None and link.destination is not None:
            sources.setdefault(link.destination, []).append(link.source)
    chain = [u]
    while True:
        unit = run.units[chain[-1]]
        waits = unit.share("starved") > max(unit.share("busy"), unit.share("blocked"), unit.share("memory"))
        more = [s for s in sources.get(chain[-1], []) if s not in chain]
        if not more or not (waits or unit.kind == "fork"):
            return chain
        few = 0.1 * max(run.units[s].moved for s in more)
        chain.append(min(more, key=lambda s: run.units[s].share("blocked") + run.units[s].share("idle")
                                             + (run.units[s].moved < few)))


def _held_up(run: Run, first: int, chain: Sequence[int]) -> set[int]:
    """``chain``, and all upstream of ``first`` that waits for room, one behind the other."""
    found, open_ = {*chain, first}, [first]
    while open_:
        u = open_.pop()
        more = {link.source for link in run.links if link.destination == u and link.source is not None
                and run.units[link.source].share("blocked") >= SOME} - found
        found |= more
        open_ += sorted(more)
    return found


def late_results(run: Run) -> Finding | None:
    """What is stored waits for what comes last."""
    stores = [u for u, unit in enumerate(run.units) if unit.kind.endswith("store") and unit.share("starved") >= 0.5]
    if not stores:
        return None
    chain = _late(run, max(stores, key=lambda u: run.units[u].offchip_bytes))
    if len(chain) < 2:
        return None
    # The one on the way that has most to do, or to wait for from memory: the others wait for it.
    at = max(range(1, len(chain)),
             key=lambda i: run.units[chain[i]].share("busy") + run.units[chain[i]].share("memory"))
    chain = chain[:at + 1]
    store, end = run.units[chain[0]], run.units[chain[-1]]
    state = max(("busy", "memory"), key=end.share)
    if state == "memory" and run.memory_share >= HIGH:
        return None   # as `memory_bound` says
    load = end.offchip_bytes > 0
    tries = {
        "busy": f"Fewer bytes through {end.name}, or the same earlier ({run.knobs['window']})." if load else
                f"Make {end.name} faster ({run.knobs['compute']}), or give it less to do.",
        "memory": f"Have {end.name} ask earlier or for more at a time ({run.knobs['window']}).",
    }
    what = {"busy": "works", "memory": "waits for the memory"}
    more = () if end.share(state) >= 0.5 else (
        "Nothing on the way has much to do: it is long, not narrow. Let more elements be on it at a time: smaller "
        "tiles, several regions, deeper links.",)
    return Finding(
        "late_results", f"Results wait for {end.name}",
        f"{store.name} waits for input in {_percent(store.share('starved'))} of all cycles. Upstream, along the inputs "
        f"that come last: {_shown(run, chain, ' ← ')}. {end.name} {what[state]} in {_percent(end.share(state))} of "
        "them, more than any other there.", (tries[state], *more), 0.4 * store.share("starved"))


def blocked_chain(run: Run) -> Finding | None:
    """A unit waits for room most of the time: who does not take what it gives? (A load that does is only early.)"""
    fed = {link.destination for link in run.links}
    blocked = [u for u, unit in enumerate(run.units) if unit.share("blocked") >= SOME and u in fed]
    if not blocked:
        return None
    first = max(blocked, key=lambda u: run.units[u].share("blocked"))
    chain, follow = [first], {u: sorted({link.destination for link in run.links
                                          if link.source == u and link.destination is not None}) for u in blocked}
    while chain[-1] in follow:
        users = [u for u in follow[chain[-1]] if u not in chain]
        if not users:
            break
        chain.append(max(users, key=lambda u: (run.units[u].share("blocked"), run.units[u].share("busy"))))
    end = run.units[chain[-1]]
    shown = _shown(run, chain, " → ")
    begin = run.units[first]
    text = (f"{begin.name} waits for room at its output in {_percent(begin.share('blocked'))} of all cycles "
            f"({len(blocked)} of {len(run.units)} units do so in a quarter of them or more). Downstream: {shown}. ")
    state = max(("busy", "starved", "memory", "blocked"), key=end.share)
    share = _percent(end.share(state))
    if state == "busy":
        return Finding("blocked_behind_busy", f"{end.name} sets the pace",
                       text + f"{end.name} works in {share} of them.",
                       (f"Make {end.name} faster ({run.knobs['compute']}), or give it less to do.",),
                       begin.share("blocked"))
    if state == "memory":
        return Finding("blocked_behind_memory", f"{end.name} waits for the memory",
                       text + f"{end.name} waits for the memory in {share} of them.",
                       (f"More bandwidth ({run.knobs['bandwidth']}), or fewer bytes.",), begin.share("blocked"))
    if state == "starved" and not _held_up(run, first, chain[:-1]) & set(_late(run, chain[-1])[1:]):
        return None   # what is blocked is early; nothing that is late is held up by it
    depths = [link.depth for link in run.links if link.source == first]
    tries = [f"Deeper links ({run.knobs['depth']}, {min(depths, default=0)} now)"
             + (f"; {run.knobs['size_fifos']} finds the least depths with full throughput." if run.knobs["size_fifos"]
                else ".")]
    if end.kind in ("bufferize", "streamify") or any(run.units[u].kind == "bufferize" for u in chain):
        tries.append(f"Buffers that may be live at a time: {run.knobs['references']}"
                     + (f", and their size: {run.knobs['buffers']}." if run.knobs["buffers"] else "."))
    what = "its other input" if state == "starved" else "room, too"
    return Finding("blocked_behind_waiting", f"{begin.name} is blocked while {end.name} waits",
                   text + f"{end.name} does not work either: it waits for {what} in {share} of all cycles.",
                   tuple(tries), begin.share("blocked"))


def load_latency(run: Run) -> Finding | None:
    """Loads wait for the memory, which is not in use all the time."""
    loads = [u for u in run.units if u.offchip_bytes and u.category == "memory" and u.share("memory") >= SOME
             and not u.kind.endswith("store")]
    if not loads or run.memory_share >= HIGH:
        return None
    large = [u for u in loads if u.offchip_bytes >= 0.05 * run.offchip_bytes]
    worst = max(large or loads, key=lambda u: u.share("memory"))
    return Finding(
        "load_latency", "Loads wait for a memory that has time",
        f"{worst.name} waits for the memory in {_percent(worst.share('memory'))} of all cycles"
        f"{f' ({len(loads)} loads do so in a quarter or more)' if len(loads) > 1 else ''}, while the memory moves "
        f"{_percent(run.memory_share)} of what it can.",
        (f"More elements in flight: {run.knobs['window']}.",
         "Load what is needed early: a load without a reference runs ahead; buffer it until it is used.",
         f"A shorter latency: {run.knobs['latency']}."),
        worst.share("memory") * (1 - run.memory_share) * (1 if large else 0.5))


def imbalance(run: Run) -> Finding | None:
    """Operators that do the same for several experts, regions or heads have unequal work."""
    groups: dict[tuple[str, str], list[Unit]] = {}
    for unit in run.units:
        if unit.category == "compute" and re.search(r"\d", unit.name):
            groups.setdefault((re.sub(r"\d+", "#", unit.name), unit.kind), []).append(unit)
    best: tuple[float, float, str, list[Unit]] | None = None
    for (name, _), members in sorted(groups.items()):
        work = np.array([unit.states["busy"] for unit in members], dtype=float)
        if len(members) < 2 or work.max() == 0:
            continue
        ratio, lost = work.max() / work.mean(), (work.max() - work.mean()) / max(1, run.total_cycles)
        if ratio >= 1.5 and lost >= 0.05 and (best is None or lost > best[1]):
            best = ratio, lost, name, members
    if best is None:
        return None
    ratio, lost, name, members = best
    ordered = sorted(members, key=lambda unit: -unit.states["busy"])
    return Finding(
        "imbalance", f"Unequal work among the {len(members)} {name}",
        f"{ordered[0].name} works in {ordered[0].states['busy']:,} cycles, {ratio:.1f} times the mean; "
        f"{ordered[-1].name} in {ordered[-1].states['busy']:,}.",
        ("Give work to whichever is free (eager_merge and partition, as examples/attention.py with schedule=dynamic).",
         "Or let fewer of them serve all in turn (examples/moe.py with regions)."), lost)


def idle_compute(run: Run) -> Finding | None:
    """Most of what computes is not used."""
    computing = [unit for unit in run.units if unit.category == "compute"]
    if len(computing) < 2 or run.compute_share >= 0.3 or not run.peak_flops:
        return None
    busy = sum(unit.share("busy") >= 0.3 for unit in computing)
    return Finding(
        "idle_compute", "Compute that is mostly idle",
        f"{run.flops:,} FLOPs in {run.cycles:,} cycles are {_percent(run.compute_share)} of the {run.peak_flops:,} a "
        f"cycle that all units can do; {busy} of {len(computing)} units that compute work in 30% of the cycles or "
        "more.",
        ("Share units: time-multiplexed regions (examples/moe.py with regions), smaller compute_bw of those that "
         "wait.",), 0.2 * (1 - run.compute_share))


def fill_and_drain(run: Run) -> Finding | None:
    """Much of the run goes by before the first store or after the last load."""
    writes = next((curve for curve in run.curves if curve.name == "off-chip write"), None)
    if writes is None or not np.any(writes.values):
        return None
    first = int(np.flatnonzero(writes.values)[0]) * writes.width
    share = (first - run.begin) / max(1, run.cycles)
    if share < SOME:
        return None
    return Finding(
        "fill_and_drain", "A long way to the first result",
        f"The first element is stored about {first - run.begin:,} cycles after the first is read: "
        f"{_percent(share)} of the run.",
        ("More, smaller steps: tiles or groups that give a result earlier, so that loads, compute and stores "
         "overlap.",),
        0.6 * share)


def full_buffers(run: Run) -> Finding | None:
    """A buffer was full."""
    full = [name for name, (most, size) in run.onchip_peak.items() if size and most >= size]
    if not full:
        return None
    share = max((unit.share("blocked") for unit in run.units if unit.kind == "bufferize"), default=0.0)
    return Finding("full_buffers", "Scratchpads that were full",
                   f"{', '.join(full[:4])}{' and others' if len(full) > 4 else ''}: full at some time. The bufferize "
                   f"that waits most does so in {_percent(share)} of all cycles.",
                   (f"Larger ones: {run.knobs['buffers']}.",), max(0.02, share))


def near_the_bound(run: Run) -> Finding | None:
    """What is left above the roofline bound."""
    if not run.bound:
        return None
    share = run.bound / max(1, run.cycles)
    by = "the memory's bandwidth" if run.memory_bound >= run.compute_bound else f"the compute of {run.busiest}"
    text = (f"No schedule of this program on this machine takes fewer than {run.bound:,.0f} cycles, by {by}; it takes "
            f"{run.cycles:,}: {_percent(share)} reached.")
    if share >= 0.9:
        return Finding("near_the_bound", "As fast as this program can be here", text,
                       ("Only another program (fewer bytes, fewer FLOPs) or another machine is faster.",), 0.5 * share)
    return Finding("off_the_bound", "Time is lost above the bound", text,
                   ("See what the other points say: neither memory nor compute explains all of it.",),
                   0.3 * (1 - share))


RULES: tuple[Callable[[Run], Finding | None], ...] = (
    memory_bound, compute_bound, blocked_chain, late_results, load_latency, imbalance, idle_compute, fill_and_drain,
    full_buffers, near_the_bound)
"""All rules; a rule that has nothing to say returns None."""
