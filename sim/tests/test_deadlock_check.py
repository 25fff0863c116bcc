"""The static check against the model: what it says deadlocks, does, and nothing else that it can see."""

import dataclasses
import itertools

import pytest

from examples import matmul, softmax, swiglu
from sim.prediction import predict
from sim.sizing import size_fifos
from sim.tests.test_sizing import fork_joins
from step_hw.design import Design
from step_lang import Program, Selector, bf16, fn, int32, ops, ragged, scalar
from step_lang.deadlock_check import check_deadlock
from step_lang.errors import DeadlockError
from step_lang.hwconfig import HardwareConfig

T = 2
HW = HardwareConfig(tile=T)
NUMBER = scalar(int32)


def findings(design: Design):
    found = check_deadlock(design.lowered.program, design.graph)
    assert [str(finding) for finding in found] == [w for w in design.graph.warnings if "scratchpad holds one" not in w]
    return found


def runs(design: Design) -> bool:
    try:
        predict(design.graph, design.hw)
    except DeadlockError:
        return False
    return True


def slow_branch(tiles, n: int, kind: str):
    """The branch that needs more than one tile before its first."""
    if kind == "fold":
        return ops.repeat(ops.accum(fn.max(), tiles, rank=1, name="fold"), n, name="back")
    if kind == "fold of all":
        whole = ops.accum(fn.max(), tiles, rank=2, name="fold")
        return ops.repeat(ops.repeat(whole, 2), n, name="back")
    if kind == "buffer":
        return ops.streamify(ops.bufferize(tiles, rank=1, name="keep"), repeat=1, name="again")
    assert kind == "scan"
    return ops.scan(fn.add(), tiles, rank=1, name="running")


def fast_branch(tiles, kind: str):
    """The branch that holds what passes meanwhile."""
    if kind == "link":
        return tiles
    if kind == "maps":
        return ops.map(fn.exp(), ops.map(fn.scale(2.0), tiles, name="twice"), name="power")
    if kind == "buffer":
        return ops.streamify(ops.bufferize(tiles, rank=1, name="hold"), repeat=1, name="held")
    assert kind == "flatten"
    return ops.reshape(ops.flatten(tiles, 0, 1, name="flat"), tiles.shape[-1], name="split")[0]


def branches(n: int, slow: str, fast: str, depth: int) -> Design:
    with Program("branches") as p:
        x, y = (p.tensor(name, (2 * T, n * T), bf16) for name in "xy")
        tiles = ops.linear_offchip_load(x, (T, T), shape=(1, 2, n), stride=(0, n, 1), name="load_x")
        one, other = slow_branch(tiles, n, slow), fast_branch(tiles, fast)
        one, other = (ops.flatten(s, 1, 2) if len(s.shape) > 3 else s for s in (one, other))
        ops.linear_offchip_store(ops.map(fn.max(), one, other, name="join"), y, name="store_y")
    return Design(p, HardwareConfig(tile=T, link_depth=depth))


@pytest.mark.parametrize("slow, fast", list(itertools.product(
    ("fold", "fold of all", "buffer", "scan"), ("link", "maps", "buffer", "flatten"))))
def test_says_what_the_model_says(slow, fast):
    seen = set()
    for n, depth in itertools.product((1, 2, 3, 4, 5, 6, 7, 9, 12), (2, 3, 5)):
        design = branches(n, slow, fast, depth)
        found, ends = findings(design), runs(design)
        assert bool(found) != ends, f"n = {n}, depth = {depth}: {list(map(str, found))}"
        seen.add(ends)
    if slow.startswith("fold") and fast != "buffer":
        assert seen == {True, False}


def test_a_fork_join_is_told_with_its_line_and_a_fix_that_fixes_it():
    for n in (4, 8, 30):
        design = fork_joins(n)
        [finding] = findings(design)
        assert finding.certain and finding.place.startswith("map 's0_0_join' of s0_0_join (test_sizing.py:")
        assert f"'s0_0_back' takes {n} before its first element" in finding.text
        assert "'load_x0__to__s0_0_join', which holds 2 beats of 'load_x0'" in finding.text
        assert finding.fix == f"give load_x0__to__s0_0_join {n - 1} beats in [link.depths], or run step-hw size-fifos"
        assert size_fifos(design).deadlock_free.depths == {"load_x0__to__s0_0_join": n - 1}
        fixed = Design(design.program, dataclasses.replace(HW, link_depths={"load_x0__to__s0_0_join": n - 1}))
        assert findings(fixed) == [] and runs(fixed)


def test_one_finding_for_each_of_many_joins():
    found = findings(fork_joins(6, stages=5, width=3))
    assert len(found) == 15
    assert len({finding.fix for finding in found}) == 15


@pytest.mark.parametrize("design", [
    Design(swiglu.build(16, 16, 32, 8, 8), HardwareConfig(tile=4)), Design(swiglu.build(), HardwareConfig()),
    Design(softmax.build(16, 64, 4), HardwareConfig(tile=4)), Design(softmax.build(), HardwareConfig()),
    Design(matmul.build(16, 32, 16, 8, 8, 8), HardwareConfig(tile=4)),
    Design(matmul.build(dtype="int8"), HardwareConfig()),
], ids=lambda design: f"{design.program.name}, T = {design.hw.tile}")
def test_no_false_alarm(design):
    assert findings(design) == []


def test_ragged_folds_are_told_as_such():
    with Program("p") as p:
        numbers = ops.input_stream("numbers", NUMBER, (3, ragged("n")))
        total = ops.accum(fn.add(), numbers, rank=1, name="total")
        again = ops.expand(ops.repeat(total, 1), numbers, rank=1, name="again")
        ops.linear_offchip_store(ops.map(fn.sub(), numbers, again, name="join"), p.tensor("y", (64, 1), int32))

    def build(n, **more):
        hw = dataclasses.replace(HW, **more)
        return Design(p, hw, {"numbers": [list(range(n))] * 3})

    found = findings(build(2))
    assert {finding.certain for finding in found} == {False}
    assert any("join" in f.place and "known at run time only" in f.text and "deadlock where n is more than 3" in f.text
               for f in found)
    assert all("size-fifos" in finding.fix for finding in found)
    assert runs(build(3)) and not runs(build(4))


def looped(body, rank: int = 0, n: int = 1, hw: HardwareConfig = HW, start_outside: bool = True) -> Design:
    """A loop over vectors of n numbers."""
    with Program("loop") as p:
        shape = (ragged("again"), n)[:1 + rank]
        start = ops.input_stream("start", NUMBER, (1, n)[:1 + rank])
        control = ops.input_stream("control", Selector(2), (3,))
        again = ops.feedback(NUMBER, shape, name="again")
        either = ops.reassemble([start, again] if start_outside else [again, again], control, rank=rank, name="either")
        y = body(ops.flatten(either.assume((3, 1, n)[:2 + rank]), rank, rank + 1, name="flat"))
        (back,) = ops.partition(y, ops.input_stream("keep", Selector(1), (3,)), rank=rank, name="back")
        again.connect(back)
        ops.linear_offchip_store(y, p.tensor("y", (3 * n, 1), int32), name="store_y")
        if not start_outside:
            ops.linear_offchip_store(start, p.tensor("s", (n, 1), int32), name="store_s")
    values = [list(range(n))] if rank else [1]
    return Design(p, hw, {"start": values, "control": [{0}, {1}, {1}], "keep": [{0}, {0}, set()]})


def twice(x):
    return ops.map(fn.add(), x, x, name="twice")


def test_a_loop_with_room_for_its_chunk():
    seen = set()
    for n in (1, 4, 8, 12, 13, 14, 15, 16, 17, 24):
        for depth in (2, 3):
            design = looped(twice, 1, n, dataclasses.replace(HW, link_depth=depth))
            found, ends = findings(design), runs(design)
            assert bool(found) != ends, f"n = {n}, depth = {depth}: {list(map(str, found))}"
            seen.add(ends)
            if found:
                [finding] = found
                assert finding.place.startswith("reassemble 'either' of either (test_deadlock_check.py:")
                assert f"loop through 'again': chunks of {n} beats vs room for" in finding.text
                deeper = int(finding.fix.split("give again ")[1].split()[0])
                fixed = dataclasses.replace(HW, link_depth=depth, link_depths={"again": deeper})
                assert runs(Design(design.program, fixed, design.inputs))
                less = dataclasses.replace(fixed, link_depths={"again": deeper - 1})
                assert not runs(Design(design.program, less, design.inputs))
    assert seen == {True, False}


def test_a_loop_without_a_first_token():
    design = looped(twice, start_outside=False)
    [finding] = findings(design)
    assert finding.certain and finding.place.startswith("feedback 'again' (test_deadlock_check.py:")
    assert "loop through 'again' without an initial token: either, " in finding.text
    assert "first tokens from elsewhere" in finding.fix
    assert not runs(design)
    assert findings(looped(twice)) == [] and runs(looped(twice))
