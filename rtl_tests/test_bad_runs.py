"""Programs that go wrong at run time: interpreter, model and RTL each say what, where and, where there is one, the fix.

Nothing hangs: each run ends with a `StepError` that names the operator (a unit of the same name in model and RTL) and
its line. What can be known when the program is built is refused then, which `step_lang/tests` check.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from examples.data import random_tensors
from rtl_tests.cosim import run_rtl
from sim.prediction import predict
from step_hw.design import Design
from step_lang import Program, Selector, Stream, Tile, bf16, fn, int32, ops, ragged, scalar, u32
from step_lang.errors import RtlError, StepError
from step_lang.hwconfig import HardwareConfig

T = 2
HW = HardwareConfig(tile=T, scratchpad_frames=8, page_frames=2)
R = ragged("r")


@dataclass
class BadRun:
    """A program with inputs that it must not have.

    build : makes the program; operator : the one that finds it out; said : what the interpreter says (None: it is a
    matter of hardware); code : what its unit raises in model and RTL
    """

    name: str
    build: Callable[[], None]
    inputs: dict[str, Any]
    operator: str
    said: str | None
    code: str
    unit: str = ""
    hw: HardwareConfig = field(default=HW)


def _numbers(name: str, *shape: Any) -> Stream:
    return ops.input_stream(name, scalar(int32), shape)


def _store(stream: Stream, positions: int = 16) -> None:
    tile = stream.type
    assert isinstance(tile, Tile)
    p = Program.current()
    y = p.tensor(f"y{len(p.tensors)}", (positions * int(tile.rows), int(tile.cols)), tile.dtype)
    ops.linear_offchip_store(stream, y, name=f"store{len(p.tensors)}")


def _partition(bits: int, rank: int = 0) -> None:
    x = _numbers("x", R, 2) if rank else _numbers("x", R)
    parts = ops.partition(x, ops.input_stream("to", Selector(bits), (R,)), rank=rank, num_consumers=2, name="route")
    for part in parts:
        _store(part)


def _reassemble(rank: int) -> None:
    shapes = [(ragged(f"r{i}"), 2) if rank else (ragged(f"r{i}"),) for i in range(2)]
    streams = [_numbers(f"x{i}", *shape) for i, shape in enumerate(shapes)]
    _store(ops.reassemble(streams, ops.input_stream("from", Selector(2), (R,)), rank=rank, name="gather"))


def _store_too_many() -> None:
    _store(_numbers("x", R), 2)


def _buffer() -> None:
    x = _numbers("x", 1, R)
    _store(ops.streamify(ops.bufferize(x, rank=1, name="keep"), repeat=1, name="back"))


def _zip() -> None:
    a, b = _numbers("a", R), _numbers("b", R)
    _store(ops.map(fn.add(), a, b, name="sum"))


def _random_load() -> None:
    x = Program.current().tensor("x", (4 * T, T), bf16)
    _store(ops.random_offchip_load(ops.input_stream("at", scalar(u32), (R,)), x, (T, T), name="lookup"))


def _random_store() -> None:
    p = Program.current()
    at = ops.input_stream("at", scalar(u32), (R,))
    acks = ops.random_offchip_store(at, _numbers("x", R), p.tensor("y", (4, 1), int32), name="scatter")
    _store(ops.map(fn.cast(dtype="int32"), acks))


def _trim() -> None:
    p = Program.current()
    tiles = ops.linear_offchip_load(p.tensor("x", (4, T), bf16), (4, T), shape=(1,), stride=(1,))
    left = ops.map(fn.set_offset(), tiles, ops.input_stream("n", scalar(u32), (1,)), name="trim")
    _store(ops.flat_map(fn.split_rows(rows=1), left))


CASES = [
    BadRun("selector beyond the consumers", lambda: _partition(4), {"x": [1, 2], "to": [{0}, {3}]},
           "route", "selector 1", "SELECTOR"),
    BadRun("selector shorter than the data", lambda: _partition(2), {"x": [1, 2, 3], "to": [{0}, {1}]},
           "route", "vs", "MISALIGNED"),
    BadRun("selector longer than the data", lambda: _partition(2), {"x": [1, 2], "to": [{0}, {1}, {1}]},
           "route", "vs", "MISALIGNED"),
    BadRun("no input named where a chunk is needed", lambda: _reassemble(1),
           {"x0": [[1, 2]], "x1": [[3, 4]], "from": [{0}, set(), {1}]}, "gather", "no bit", "SELECTOR"),
    BadRun("more chunks named than there are", lambda: _reassemble(0), {"x0": [1], "x1": [2], "from": [{0}, {0}]},
           "gather", "vs", "MISALIGNED"),
    BadRun("more elements than the tensor has", _store_too_many, {"x": [1, 2, 3]}, "store1", "3 vs 2", "OVERFLOW"),
    BadRun("a buffer larger than the scratchpad", _buffer, {"x": [list(range(9))]}, "keep", None, "EXHAUSTED"),
    BadRun("operands out of step", _zip, {"a": [1, 2, 3], "b": [1, 2]}, "sum", "vs", "MISALIGNED"),
    BadRun("address past the end of the tensor", _random_load, {"at": [0, 4]}, "lookup", "address 4", "ADDRESS_RANGE"),
    BadRun("store past the end of the tensor", _random_store, {"at": [3, 9], "x": [1, 2]}, "scatter", "address 9",
           "ADDRESS_RANGE"),
    BadRun("more valid rows than the tile has", _trim, {"n": [5]}, "trim", "5 rows vs", "SHAPE"),
]


def _design(case: BadRun) -> Design:
    with Program("bad") as p:
        case.build()
    return Design(p, case.hw, case.inputs)


def _message(error: BaseException) -> str:
    return str(error).replace("\n", " ")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_interpreter(case):
    """The logical and the lowered program refuse it with operator and line."""
    design = _design(case)
    tensors = random_tensors(design.program, 0)
    if case.said is None:
        design.interpret(tensors, lowered=False)
        return
    for lowered in (False, True):
        with pytest.raises(StepError) as found:
            design.interpret(tensors, lowered=lowered)
        text = _message(found.value)
        assert re.search(rf"'{case.operator}[^']*' \(test_bad_runs.py:\d+\)", text), text
        assert re.search(case.said, text), text


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_model_and_rtl(case):
    """One error code, of the operator's own unit, in both; the message has operator, line and fix."""
    design = _design(case)
    with pytest.raises(RtlError) as modelled:
        predict(design.graph, design.hw)
    with pytest.raises(RtlError) as measured:
        run_rtl(design, random_tensors(design.program, 0), simulator="icarus", native=False, max_cycles=20_000)
    for found, verb in ((modelled, "raises"), (measured, "raised")):
        text = _message(found.value)
        assert re.search(rf"\({case.operator}[^ ]* \(test_bad_runs.py:\d+\)\) {verb} {case.code} ", text), text
        assert "; fix: " in text, text
