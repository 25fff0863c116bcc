"""Load to store through the memory system: the data arrive, RTL and model agree to the cycle, counters are exact."""

import numpy as np
import pytest

from rtl_tests.memory_rig import MemoryRig, Port, view
from rtl_tests.model_bench import ModelCase, assert_model_equals_rtl
from step_hw.beat import BeatLayout
from step_hw.hbm.image import MemoryImage
from step_lang.memory_config import MemoryConfig
from step_lang.unitgraph import TensorPlacement

T = 4
TILE = BeatLayout(16 * T * T, T)


def _copy(simulator, tmp_path, memory, tile, element_bytes, grid, dtype):
    """Copy one tensor; returns (tensor, what arrived, model run, RTL run)."""
    rig = MemoryRig(memory, [Port("load", tile, element_bytes, to=0)], [Port("store", tile, element_bytes)])
    rng = np.random.default_rng(1)
    shape = (grid[0] * T, grid[1] * T)
    tensor = rng.integers(0, 1 << 16, shape).astype(dtype)
    n = grid[0] * grid[1]
    size = -(-n * element_bytes // memory.alignment) * memory.alignment
    source = TensorPlacement("a", memory.alignment, n * element_bytes, element_bytes, grid)
    target = TensorPlacement("b", memory.alignment + size, n * element_bytes, element_bytes, grid)
    image = MemoryImage(memory)
    image.put(source, tensor)
    image.get(target, shape, dtype)
    image.write(tmp_path / "in")
    cfg = rig.cfg_for(view(source.base, n, grid, (grid[1], 1)), view(target.base, n, (n,), (1,)))
    [(model, rtl)] = assert_model_equals_rtl(
        simulator,
        rig,
        [ModelCase("copy", cfg=cfg)],
        add_units=rig.add_units,
        agents="rtl_tests.memory_rig:agents",
        plusargs=[f"+hbm_load={tmp_path}/in", f"+hbm_dump={tmp_path}/out", f"+hbm_dump_lines={image.used_lines}"],
    )
    return tensor, MemoryImage.read(memory, tmp_path / "out").get(target, shape, dtype), model, rtl


LAYOUTS = [
    # element bytes, type, channels, burst bytes
    (32, np.uint16, 2, 128),  # four elements in a burst, which has more bytes than Verilator unrolls a loop
    (64, np.uint32, 4, 32),  # an element on half of the channels
    pytest.param(32, np.uint16, 4, 64, marks=pytest.mark.deep),  # two elements in a burst
    pytest.param(32, np.uint16, 2, 8, marks=pytest.mark.deep),  # two bursts on every channel
    pytest.param(64, np.uint32, 2, 8, marks=pytest.mark.deep),
    pytest.param(32, np.uint16, 4, 32, marks=pytest.mark.deep),
    pytest.param(64, np.uint32, 4, 64, marks=pytest.mark.deep),
]


@pytest.mark.parametrize(("element_bytes", "dtype", "channels", "burst_bytes"), LAYOUTS)
def test_copy(simulator, tmp_path, element_bytes, dtype, channels, burst_bytes):
    memory = MemoryConfig(channels=channels, burst_bytes=burst_bytes, capacity_bytes=1 << 13)
    tile = BeatLayout(8 * element_bytes, T)
    tensor, arrived, model, rtl = _copy(simulator, tmp_path, memory, tile, element_bytes, (3, 5), dtype)
    assert (tensor == arrived).all()
    note = rtl.notes[0]
    hbm = model.st[2]
    assert note["finished"] == model.cycles - 1
    assert (note["read_bytes"], note["write_bytes"]) == (15 * element_bytes,) * 2 == (hbm[0], hbm[1])
    assert (note["first_read_cycle"] + 1, note["last_write_cycle"] + 1) == (hbm[2] - 1, hbm[3] - 1)
