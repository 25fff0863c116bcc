"""The roofline bound, against sums done by hand."""

import pytest

from examples import matmul, swiglu
from step_lang import Program, bf16, ops
from step_lang.hwconfig import HardwareConfig
from step_lang.memory_config import MemoryConfig
from step_lang.roofline import peak_flops, roofline


def test_swiglu_of_the_paper():
    """Figure 8, tile (64, 256): weights once, x for each of two intermediate tiles; 128 B and a product a cycle."""
    bound = roofline(swiglu.build(tile_b=64, tile_f=256), HardwareConfig())
    elements = 64 * 256 * 2 + 3 * 256 * 512 + 64 * 256
    assert bound.memory == elements * 2 / 128 - 1   # the last burst's second cycle is not between first and last
    assert bound.compute == 64 * 256 * 512 / 16**3
    assert bound.busiest in ("gate_matmul", "up_matmul", "down_matmul")
    assert bound.cycles == bound.memory and bound.bound == "memory"


def test_narrow_dot_products_make_it_compute_bound():
    bound = roofline(matmul.build(m=32, k=32, n=32), HardwareConfig(tile=4, k_per_cycle=1))
    assert bound.compute == 32**3 / (4 * 4 * 1)
    assert (bound.bound, bound.busiest, bound.cycles) == ("compute", "matmul", bound.compute)


@pytest.mark.parametrize(
    ("memory", "cycles"),
    [
        (MemoryConfig(), (64 - 1) * 2 + 1),     # 64 bursts on each of four channels
        (MemoryConfig(channels=1), (256 - 1) * 2 + 1),
        (MemoryConfig(interval=1), 64),
        (MemoryConfig(model="banked", tccd=4), (64 - 16 - 1) * 4 + 1),     # 16 wait when the last one is taken
        (MemoryConfig(model="banked", channels=32), 8),     # all of them wait: one a cycle
    ],
)
def test_memory_bound_follows_the_bandwidth(memory, cycles):
    with Program("copy") as p:
        ops.linear_offchip_store(
            ops.linear_offchip_load(p.tensor("x", (64, 64), bf16), (16, 16)), p.tensor("y", (64, 64), bf16)
        )
    bound = roofline(p, HardwareConfig(memory=memory))
    assert (bound.memory, bound.compute, bound.busiest) == (cycles, 0.0, "-")


@pytest.mark.parametrize("memory", [MemoryConfig(), MemoryConfig(interval=5, channels=1),
                                    MemoryConfig(model="banked", tccd=3, queue=4)])
def test_what_memory_moves_in_the_least_cycles(memory):
    """A run that reaches the bound moves all that can be moved: 100%, not more."""
    assert (memory.least_cycles(0), memory.most_bytes(0)) == (0, 0)
    for lines in (1, 2, 7, 100):
        cycles = memory.least_cycles(lines * memory.alignment)
        assert memory.most_bytes(cycles) >= lines * memory.alignment > memory.most_bytes(cycles - 1)


def test_peaks():
    hw = HardwareConfig(tile=8, k_per_cycle=4, rows_per_cycle=2)
    assert peak_flops("matmul", hw, None) == 2 * 8 * 8 * 4
    assert peak_flops("silu", hw, None) == 2 * 8
    assert peak_flops("silu", hw, 64) == 64
    assert peak_flops("row_sum", hw, None) == peak_flops("row_sum", hw, 2) == 64
    assert peak_flops("silu", hw, 2) == 8   # a row of T is the least that a unit serves


def test_sizes_known_at_run_time_are_given_by_name():
    from step_lang import dynamic, scalar, u32

    n = dynamic("n")
    with Program("p") as p:
        ref = ops.input_stream("ref", scalar(u32), (n,))
        x = p.tensor("x", (16, 16), bf16)
        tiles = ops.linear_offchip_load(x, (16, 16), ref=ref)
        ops.linear_offchip_store(tiles, p.tensor("y", (16 * 9, 16), bf16))
    few, many = (roofline(p, HardwareConfig(), {"n": count}).memory for count in (1, 9))
    lines = [-(-count * (2 * 16 * 16 * 2 + 4) // 256) for count in (1, 9)]
    assert many - few == 2 * (lines[1] - lines[0])

