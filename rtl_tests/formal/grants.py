"""Rotating priority as a property of the grants: who is next, and that nobody starves."""

from amaranth.hdl import Cat, Mux, Signal

from .harness import Harness

__all__ = ["rotation"]


def rotation(h: Harness, n: int, waiting, granted, index, over) -> None:
    """Grants (``granted``, ``index``) of ``n`` inputs of which ``waiting`` may be served: each goes to the first that
    waits, beginning after the one served last (after ``over``, with input 0); an input that waits whenever a grant
    falls is served within n grants."""
    m = h.m
    after = Signal(range(max(2, n)))       # where the search begins
    m.d.sync += after.eq(Mux(over, 0, Mux(granted, Mux(index == n - 1, 0, index + 1), after)))
    distance = [Signal(range(2 * n), name=f"distance{k}") for k in range(n)]
    m.d.comb += [d.eq(Mux(k >= after, k - after, k + n - after)) for k, d in enumerate(distance)]
    nearer = Cat(Cat((waiting[j] & (distance[j] < distance[k])) for j in range(n)).any() for k in range(n))
    h.prove("the first that waits is served", ~granted | ~nearer.bit_select(index, 1))

    who = h.constant("starving", range(max(2, n)))
    h.assume("one of the inputs", who < n)
    passed = Signal(range(n + 2))           # grants that went to others while it waited
    waits = waiting.bit_select(who, 1)
    with m.If(granted):
        m.d.sync += passed.eq(Mux(waits & (index != who), Mux(passed > n, passed, passed + 1), 0))
    with m.If(over):
        m.d.sync += passed.eq(0)
    h.prove("nobody starves", ~granted | ~waits | (index == who) | (passed < n - 1))
    first = h.peek("first", len(after)) if n > 1 else after
    h.invariant("where the search begins", (first == after) & (after < n))
    own = Mux(who >= after, who - after, who + n - after)
    h.invariant("nearer with every grant", passed + own <= n - 1)
