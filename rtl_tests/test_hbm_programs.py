"""What language and mapping promise the memory units: views that stay inside, bases at lines, no race for a tensor."""

import pytest

from examples import matmul, softmax, swiglu
from step_lang import Program, fp32, ops, scalar, u32
from step_lang.errors import ProgramError, ViewOutOfRange
from step_lang.hwconfig import HardwareConfig
from step_lang.lowering import lower
from step_lang.mapping import build_unit_graph
from step_lang.memory_config import MemoryConfig

MEMORIES = [
    MemoryConfig(),
    MemoryConfig(channels=8, burst_bytes=128),
    MemoryConfig(channels=1, burst_bytes=4),
    MemoryConfig(model="banked", channels=2, burst_bytes=32),
]


def _programs():
    yield matmul.build(8, 8, 8, 4, 4, 4)
    yield softmax.build(8, 8, 4)
    yield swiglu.build(8, 16, 16, tile_b=4, tile_f=8)


@pytest.mark.parametrize("memory", MEMORIES, ids=lambda memory: memory.key)
@pytest.mark.parametrize("tile", [2, 4])
def test_bases_are_at_lines_and_tensors_apart(memory, tile):
    """What the units cannot use (the bits of the base within a line) is 0 in every unit of every example."""
    hw = HardwareConfig(tile=tile, memory=memory)
    for program in _programs():
        graph = build_unit_graph(lower(program, hw), hw, {})
        placed = sorted(graph.tensors.values(), key=lambda placement: placement.base)
        assert placed
        for placement in placed:
            assert placement.base % memory.alignment == 0
            assert placement.nbytes >= placement.grid[0] * placement.grid[1] * placement.element_bytes
        for one, other in zip(placed, placed[1:]):  # noqa: RUF007
            assert one.base + one.nbytes <= other.base
        bases = {unit.config["base"] for unit in graph.units if unit.kind in ("load", "store", "input")}
        assert bases == {placement.base for placement in placed}


def _tensor(program, name="t"):
    return program.tensor(name, (4, 4), fp32)


@pytest.mark.parametrize(("shape", "stride", "low"), [((3,), (-1,), -2), ((2, 2), (2, -1), -1), ((2, 2), (-2, 1), -2)])
def test_a_negative_stride_leaves_the_tensor(shape, stride, low):
    """A view begins at index 0, so a negative stride reaches below it: an error when the operator is made, of loads and
    stores."""
    with Program("negative") as p:
        with pytest.raises(ViewOutOfRange, match=rf"indices {low}\.\..* vs tiles of tensor 't' 0\.\.3"):
            ops.linear_offchip_load(_tensor(p), (2, 2), shape=shape, stride=stride)
        source = ops.linear_offchip_load(_tensor(p, "s"), (2, 2))
        with pytest.raises(ViewOutOfRange, match=rf"indices {low}\.\..* vs tiles of tensor 'd' 0\.\.3"):
            ops.linear_offchip_store(source, _tensor(p, "d"), shape=shape, stride=stride)


def _read(p, tensor, how):
    if how == "linear":
        tiles = ops.linear_offchip_load(tensor, (2, 2))
    else:
        tiles = ops.random_offchip_load(ops.input_stream("from", scalar(u32), (4,)), tensor, (2, 2))
    ops.linear_offchip_store(tiles, p.tensor("read", (2, 8), fp32))


def _write(p, tensor, how):
    tiles = ops.linear_offchip_load(_tensor(p, "other"), (2, 2), shape=(4,), stride=(1,))
    if how == "linear":
        ops.linear_offchip_store(tiles, tensor)
        return
    written = ops.random_offchip_store(ops.input_stream("to", scalar(u32), (4,)), tiles, tensor)
    written.optional = True


@pytest.mark.parametrize("reads", ["linear", "random"])
@pytest.mark.parametrize("writes", ["linear", "random"])
def test_a_tensor_is_not_read_and_written(reads, writes):
    """Ports are served in an order of their own, so which value a read would see is undefined. Only random accesses,
    which a program can put in order by what the store acknowledges, may share a tensor."""
    with Program("race") as p:
        tensor = _tensor(p)
        _read(p, tensor, reads)
        _write(p, tensor, writes)
    if (reads, writes) == ("random", "random"):
        p.check()
    else:
        with pytest.raises(ProgramError, match=rf"tensor 't': written here vs read by {reads}_offchip_load"):
            p.check()
