"""What the proofs of loads and stores share: a memory of two channels, tensors in it, and faults of the loops."""

from step_lang.memory_config import MemoryConfig

from .faults import Fault
from .harness import Harness

__all__ = ["COUNTER", "LOOPS_GO_ON", "MEMORY", "assume_base"]

MEMORY = MemoryConfig(channels=2, burst_bytes=4, capacity_bytes=64)

COUNTER = "step_hw.hbm.affine"
LOOPS_GO_ON = Fault("inner loops go on from where they were",
                    "m.d.sync += [rounds[k].eq(rounds[k] + 1), starts[k].eq(moved)]",
                    "m.d.sync += [rounds[k].eq(rounds[k] + 1), starts[k].eq(starts[k] + strides[k])]", COUNTER)


def assume_base(h: Harness) -> None:
    """The tensor begins in the lower half of the memory, where all channels do."""
    base = h.unit.cfg.base
    h.assume("the tensor is at a line of the memory", (base[:3] == 0) & (base < 32))
