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
    assert bound.memory == elements * 2 / 128
    assert bound.compute == 64 * 256 * 512 / 16**3
    assert bound.busiest in ("gate_matmul", "up_matmul", "down_matmul")
    assert bound.cycles == bound.memory and bound.bound == "memory"


def test_narrow_dot_products_make_it_compute_bound():
    bound = roofline(matmul.build(m=32, k=32, n=32), HardwareConfig(tile=4, k_per_cycle=1))
    assert bound.compute == 32**3 / (4 * 4 * 1)
    assert (bound.bound, bound.busiest, bound.cycles) == ("compute", "matmul", bound.compute)


@pytest.mark.parametrize(
    ("memory", "peak"),
    [
        (MemoryConfig(), 128),
        (MemoryConfig(channels=1), 32),
        (MemoryConfig(interval=1), 256),
        (MemoryConfig(model="banked", tccd=4), 64),
    ],
)
def test_memory_bound_follows_the_bandwidth(memory, peak):
    with Program("copy") as p:
        ops.linear_offchip_store(
            ops.linear_offchip_load(p.tensor("x", (64, 64), bf16), (16, 16)), p.tensor("y", (64, 64), bf16)
        )
    bound = roofline(p, HardwareConfig(memory=memory))
    assert (bound.memory, bound.compute, bound.busiest) == (2 * 64 * 64 * 2 / peak, 0.0, "-")


def test_peaks():
    hw = HardwareConfig(tile=8, k_per_cycle=4, rows_per_cycle=2)
    assert peak_flops("matmul", hw, None) == 2 * 8 * 8 * 4
    assert peak_flops("silu", hw, None) == 2 * 8
    assert peak_flops("silu", hw, 64) == 64
    assert peak_flops("row_sum", hw, None) == 64


def test_sizes_known_at_run_time_are_given_by_name():
    from step_lang import dynamic, scalar, u32

    n = dynamic("n")
    with Program("p") as p:
        ref = ops.input_stream("ref", scalar(u32), (n,))
        x = p.tensor("x", (16, 16), bf16)
        tiles = ops.linear_offchip_load(x, (16, 16), ref=ref)
        ops.linear_offchip_store(tiles, p.tensor("y", (16 * 9, 16), bf16))
    few, many = (roofline(p, HardwareConfig(), {"n": count}).memory for count in (1, 9))
    assert many - few == 8 * (2 * 16 * 16 * 2 + 4) / 128
