"""Bufferize: what it refuses, and its waits; the values and stops it stores are tested through test_streamify."""

import pytest

from rtl_tests.harness import DONE, Beat, beats
from rtl_tests.memory_tile import LAYOUT, MemoryTile
from rtl_tests.model_bench import ModelCase
from rtl_tests.test_streamify import registers, run
from step_hw.unit import ErrorCode
from step_hw.units.scratchpad import ScratchpadShape

SHAPE = ScratchpadShape(8, 2, 2, LAYOUT)


def case(name, text, rank=1, error=0, repeat=1, **more):
    stream = beats(text) if isinstance(text, str) else text
    cfg = {"rank": rank, "uses": 1, **registers(0, {"n": rank, "c": 1, "repeat": repeat})}
    return ModelCase(name, {"in0": stream}, cfg, error=error, **more)


def elements(count: int, stop: int = 1) -> list[Beat]:
    return [Beat(i + 1, 1, stop if i == count - 1 else 0) for i in range(count)]


def test_errors(simulator):
    """A buffer larger than the scratchpad, irregular inner vectors, a stream that ends inside a buffer."""
    cases = [
        case("larger than all", [*elements(9), DONE], error=ErrorCode.EXHAUSTED),
        case("larger, after others", [*elements(3), *elements(8), *elements(9), DONE], error=ErrorCode.EXHAUSTED),
        case("larger, while another is read", [*elements(5), *elements(9), DONE], repeat=9, error=ErrorCode.EXHAUSTED),
        case("empty inner vector after elements", "1 2 S1 S1 3 4 S2 D", 2, ErrorCode.SHAPE),
        case("empty inner vector at the end", "1 2 S1 S2 D", 2, ErrorCode.SHAPE),
        case("empty inner vector before elements", "S1 3 4 S2 D", 2, ErrorCode.SHAPE),
        case("ends inside a buffer", "1 2 D", 1, ErrorCode.PROTOCOL),
        case("ends inside an empty buffer", "S1 D", 2, ErrorCode.PROTOCOL),
    ]
    run(simulator, MemoryTile(SHAPE), cases)


def test_hollow(simulator):
    """Where buffers are never empty a bare stop goes on, for any number of passes; one that would be an empty buffer,
    or is inside of one, is an error."""
    def hollow(name, text, rank=1, error=0, **more):
        made = case(name, text, rank, error, repeat=2, **more)
        return ModelCase(name, made.inputs, made.cfg | {"hollow": 1}, error=error, expected=made.expected,
                         ready=made.ready)

    one = beats("1 2 S1 1 2 S2 S3 S4 3 S1 3 S3 S3 D", rows=1)
    two = beats("S4 1 S1 2 S2 1 S1 2 S4 D", rows=1)
    cases = [
        hollow("rank 1", "1 2 S1 S2 S3 3 S2 S2 D", expected={"out0": one}),
        hollow("rank 1, output waits", "1 2 S1 S2 S3 3 S2 S2 D", expected={"out0": one}, ready={"out0": [0, 0, 1]}),
        hollow("rank 2", "S3 1 S1 2 S3 D", 2, expected={"out0": two}),
        hollow("nothing", "D", expected={"out0": [DONE]}),
        hollow("an empty buffer", "1 S1 S1 D", 1, ErrorCode.SHAPE),
        hollow("an empty vector of a buffer", "S1 1 S2 D", 2, ErrorCode.SHAPE),
        hollow("a bare stop inside a buffer", "1 S1 S3 D", 2, ErrorCode.SHAPE),
    ]
    run(simulator, MemoryTile(SHAPE), cases)


def test_waits_are_no_errors(simulator):
    """Buffers that fit alone but not together: each waits until the pages of the one before are back."""
    stream = [*elements(8), *elements(8), *elements(7), *elements(1), *elements(8), DONE]
    expected = [beat for n in (8, 8, 7, 1, 8) for beat in elements(n, 2)]
    [(_, rtl)] = run(simulator, MemoryTile(SHAPE),
                     [case("waits", stream, expected={"out0": [*expected, DONE]}, ready={"out0": [1, 0]})])
    assert rtl.notes[0].no_page and rtl.notes[0].peak == SHAPE.pages


@pytest.mark.parametrize("wrong", [(7, 2, 2), (8, 3, 2), (8, 2, 0), (1, 1, 1), (1 << 23, 1, 2)])
def test_shapes_refused(wrong):
    """The message holds the value that is wrong."""
    with pytest.raises(ValueError, match="|".join(map(str, wrong))):
        ScratchpadShape(*wrong, LAYOUT)


