"""A deadlock is told as the cycle of units that wait for one another, with the fix."""

from step_lang.deadlock import deadlock_report, waiting_cycle
from step_lang.unitgraph import LinkSpec, Payload, UnitGraph, UnitSpec


def graph(*links: tuple[str, str, str], depth: int = 2, kinds: dict[str, tuple[str, dict]] | None = None) -> UnitGraph:
    """Units and links from (link, source unit, destination unit); ``""`` is the bench's side."""
    names = list(dict.fromkeys(name for _, source, destination in links for name in (source, destination) if name))
    names += [name for name in kinds or {} if name not in names]
    units = []
    for i, name in enumerate(names):
        kind, params = (kinds or {}).get(name, ("map", {}))
        units.append(UnitSpec(i, kind, name, params={
            k: names.index(v) if isinstance(v, str) else tuple((names.index(pad), port) for pad, port in v)
            for k, v in params.items()}))
    made = UnitGraph(units, [])
    for i, (name, source, destination) in enumerate(links):
        ends: list[tuple[int, int] | None] = []
        for unit, side in ((source, "outputs"), (destination, "inputs")):
            if not unit:
                ends.append(None)
                continue
            ports = getattr(units[names.index(unit)], side)
            ends.append((names.index(unit), len(ports)))
            ports.append(i)
        made.links.append(LinkSpec(i, name, Payload(8, 1), depth, ends[0], ends[1]))
    return made


# x goes to fold, which answers only after a whole vector, and past it to join, which waits for the answer.
FORK_JOIN = graph(
    ("x", "load", "fork"),
    ("to_fold", "fork", "fold"),
    ("to_join", "fork", "join"),
    ("sum", "fold", "join"),
    ("y", "join", "store"),
)


def test_fork_join_names_the_full_link_and_the_fix():
    report = deadlock_report(FORK_JOIN, [2, 0, 2, 0, 0])
    assert report.splitlines() == [
        "deadlock: 3 units wait for one another",
        "  fork writes to to_join (2/2, full), waits for join",
        "  join reads from sum (0/2, empty), waits for fold",
        "  fold reads from to_fold (0/2, empty), waits for fork",
        "  fix: give to_join more than 2 beats in [link.depths]; step-hw size-fifos finds the depths",
    ]


def test_what_hangs_behind_the_cycle_is_no_part_of_it():
    cycle = waiting_cycle(FORK_JOIN, [2, 0, 2, 0, 0])
    assert {wait.waiter for wait in cycle} == {"fork", "join", "fold"}
    assert [wait.holder for wait in cycle] == [wait.waiter for wait in cycle[1:] + cycle[:1]]


def test_a_half_full_link_holds_nobody_up():
    assert waiting_cycle(FORK_JOIN, [2, 0, 1, 0, 0]) == []
    assert (
        deadlock_report(FORK_JOIN, [2, 0, 1, 0, 0]) == "deadlock: no unit moves, beats wait on x (2/2), to_join (1/2)"
    )


def test_nothing_anywhere():
    assert deadlock_report(FORK_JOIN, [0] * 5).endswith("no link: a stream never ended")


def test_the_shortest_cycle_with_a_full_link_is_told():
    both = graph(("a", "p", "q"), ("b", "q", "p"), ("c", "q", "r"), ("d", "r", "s"), ("e", "s", "q"))
    assert [wait.link for wait in waiting_cycle(both, [2, 2, 2, 2, 2])] == ["a", "b"]
    # p and q wait on empty links, a shorter cycle than q, r, s, but only the latter has a link that could be deeper.
    assert sorted(wait.link for wait in waiting_cycle(both, [0, 0, 2, 2, 2])) == ["c", "d", "e"]


def test_a_loop_of_empty_links_needs_a_token():
    loop = graph(("there", "p", "q"), ("back", "q", "p"))
    report = deadlock_report(loop, [0, 0])
    assert "p reads from back (0/2, empty), waits for q" in report
    assert report.endswith("fix: the loop needs an initial token")


def test_links_at_the_boundary_are_the_benchs():
    assert waiting_cycle(graph(("in0", "", "p"), ("out0", "p", "")), [0, 2]) == []


BUFFERED = graph(
    ("data", "load", "fill"),
    ("ref", "fill", "read"),
    ("count", "load", "read"),
    ("out", "read", "store"),
    kinds={
        "fill": ("bufferize", {"scratchpad": "pad"}),
        "read": ("streamify", {"ports": (("pad", 0),)}),
        "pad": ("scratchpad", {}),
    },
)


def test_room_in_a_scratchpad():
    # load feeds fill (whose scratchpad has no room) and read's count, which never comes.
    report = deadlock_report(BUFFERED, [2, 1, 0, 0])
    assert report.splitlines()[1:] == [
        "  load writes to data (2/2, full), waits for fill",
        "  fill finds no room in pad, waits for read",
        "  read reads from count (0/2, empty), waits for load",
        "  fix: give data more than 2 beats in [link.depths]; step-hw size-fifos finds the depths",
    ]


def test_room_in_one_of_several_scratchpads():
    """A reader of both holds up who fills either."""
    met = graph(
        ("a", "load", "fill_a"), ("b", "load", "fill_b"), ("ref_a", "fill_a", "merge"), ("ref_b", "fill_b", "merge"),
        ("refs", "merge", "read"), ("count", "load", "read"), ("out", "read", "store"),
        kinds={"fill_a": ("bufferize", {"scratchpad": "pad_a"}), "fill_b": ("bufferize", {"scratchpad": "pad_b"}),
               "read": ("streamify", {"ports": (("pad_a", 0), ("pad_b", 0))}),
               "pad_a": ("scratchpad", {}), "pad_b": ("scratchpad", {})})
    for full, link in enumerate("ab"):
        fill = [0] * 7
        fill[full], fill[4] = 2, 1
        assert f"  fill_{link} finds no room in pad_{link}, waits for read" in deadlock_report(met, fill).splitlines()


def test_a_scratchpad_holds_up_only_who_has_something_to_put_in():
    assert waiting_cycle(BUFFERED, [0, 0, 0, 0]) == []
    report = deadlock_report(BUFFERED, [1, 0, 0, 0])
    assert "fill finds no room in pad, waits for read" in report
    assert report.endswith("fix: raise scratchpad.frames or scratchpad.references in the hardware configuration")
