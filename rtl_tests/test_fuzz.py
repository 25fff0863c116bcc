"""Random programs: every layer gives the same bits, the same tokens, the same traffic, the same cycles."""

from collections import Counter

import pytest

from rtl_tests.fuzz import Recipe, check, cook, fuzz, hardware_of, program_of
from rtl_tests.harness.build import installed
from rtl_tests.harness.run import default_seed
from step_lang import fn, ops

PHYSICAL = {"pack_rows", "trim_rows", "unpack_rows"}
"""Operators that lowering makes."""

NO_HARDWARE = {"append_row"}
"""Functions that no lowered program has."""


def test_the_same_recipe_is_the_same_program():
    recipe = Recipe((("load", (1, 0, 2)), ("scalars", (1, 1, 2, 3))), (("accum", (1,)), ("partition", (0, 1, 1))))
    assert str(cook(recipe)) == str(cook(recipe))


#: Programs in which layers once parted, as hypothesis shrank them.
FOUND = {
    "flags of a reshape of tiles": Recipe(
        (("load", ()),), (("reshape", (0, 0, 0, 0, 2)), ("there_and_back", ()))),
    "empty groups through a sum along rows": Recipe(
        (("load", ()),), (("there_and_back", ()), ("accum", ()), ("reduce", (0, 1)), ("accum", ()))),
    "nothing chosen, so that the stores end before the loads": Recipe(
        (("load", ()),), (("binary", ()), ("there_and_back", ()))),
    "empty vectors of tiles that are repeated": Recipe(
        (("load", (1, 2, 2, 1)),), (("by_reference", (0, 0, 0, 1, 0, 2)), ("repeat", (0, 1)))),
    "a tile of one row split into rows": Recipe(
        (("load", (1, 0, 2, 1, 0, 1)),), (("packed", (1, 0, 0, 1, 1)),)),
    "no rows to pack, so that no tile has a size": Recipe(
        (("tiles", (1,)),), (("dynamic", (1,)),)),
    "no tiles to fold, so that no state has a size": Recipe(
        (("tiles", ()),), (("dynamic", ()), ("accum", ()))),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    assert not check(FOUND[name])


def test_refused_by_all():
    """A group without tiles of dynamic rows has no size: interpreter, model and RTL stop the lowered program."""
    recipe = Recipe((("gather", (0, 0, 0, 0, 1)),), (("dynamic", ()), ("accum", ())))
    simulators = [] if installed("icarus") else ["icarus"]
    assert check(recipe, simulators).startswith("StreamProtocolError: accum 'accum_0'")


def occurring(programs: int, number: int) -> Counter:
    """Programs in which each operator kind, function, element type and kind of stream occurs."""
    found: Counter = Counter()

    def one(recipe):
        made = cook(recipe, hardware_of(recipe).tile)
        streams = [(stream, stream.type) for stream in made.program.streams]
        shapes = [stream.shape for stream, _ in streams]
        operators = {op.kind for op in made.program.operators}
        functions = {f"fn.{op.fn.name}" for op in made.program.operators if hasattr(op, "fn")}
        types = {type(type_).__name__ for _, type_ in streams}
        elements = {type_.dtype.name for _, type_ in streams if hasattr(type_, "dtype")}
        kinds = {name for name, holds in {
            "dynamic tiles": any(not isinstance(getattr(type_, "rows", 1), int) for _, type_ in streams),
            "ragged": any(not isinstance(dim, int) for shape in shapes for dim in shape),
            "empty": any(0 in shape for shape in shapes) or any(
                bool(getattr(tokens, "empty", [False])[:].any()) for tokens in made.inputs.values()
                if hasattr(tokens, "empty")),
            "T = 4": hardware_of(recipe).tile == 4,
            "banked": hardware_of(recipe).memory.model == "banked",
            "extreme numbers": bool(made.special),
        }.items() if holds}
        found.update(operators | functions | types | elements | kinds)

    for its in range(number, number + programs):
        program_of(its, one, shrink=False)
    return found


def test_every_operator_occurs():
    """Each of SPEC's operators and functions that hardware has, each type, and each kind of program, often enough."""
    found = occurring(300, default_seed() + 2000)
    operators = {*ops.CLASSES} - PHYSICAL
    others = {"int8", "int32", "u32", "bf16", "fp32", "bool", "Selector", "Tuple", "BufferRef", "dynamic tiles",
              "ragged", "empty", "T = 4", "banked", "extreme numbers"}
    rare = {name: found[name] for name in operators | others if found[name] < 6}
    assert not rare, f"of 300 programs so few have these: {rare}"
    missing = {f"fn.{name}" for name in fn.names() if name not in NO_HARDWARE} - {*found}
    assert not missing


def test_layers_agree():
    assert fuzz(24, default_seed())["ran"] >= 24


def test_rtl_agrees():
    reason = installed("icarus")
    if reason:
        pytest.skip(reason)
    assert fuzz(6, default_seed() + 1000, ["icarus"])["ran"] >= 6


@pytest.mark.deep
@pytest.mark.parametrize("part", range(10))
def test_500_programs(both_simulators, part):
    assert fuzz(50, default_seed() + 10000 + 50 * part, both_simulators)["ran"] >= 50


@pytest.mark.deep
def test_2000_programs_without_rtl():
    said = fuzz(2000, default_seed() + 20000)
    assert said["ran"] >= 2000
    assert said.total() < 2400, f"many are refused: {said}"
