"""What `model_bench` asks of the simulator and what it answers: plain data; its process loads no model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rtl_tests.harness.beats import Beat

__all__ = ["ModelCase", "RtlRun"]


@dataclass
class ModelCase:
    """One run, for model and RTL.

    inputs : beats of each input port.
    cfg : configuration registers.
    starts : per input port, the earliest cycle of each beat; default 0 (offered without pause).
    ready : per output port, 0/1 for each cycle, repeating; default always.
    values : per input port, what the model carries as control value; default the beat's data.
    expected : per output port, the beats that RTL must give; a port left out is not compared.
    runs : dones that end the run at each output; default as many as ``in0`` brings (1 without inputs).
    error : sticky error code that both must raise, in the same cycle.
    after_error : cycles that RTL runs on from there, for a test that looks at what still leaves.
    max_cycles : bound on the model's run.
    """

    name: str
    inputs: Mapping[str, Sequence[Beat]] = field(default_factory=dict)
    cfg: Mapping[str, int] = field(default_factory=dict)
    starts: Mapping[str, Sequence[int]] = field(default_factory=dict)
    ready: Mapping[str, Sequence[int]] = field(default_factory=dict)
    values: Mapping[str, Sequence[int]] = field(default_factory=dict)
    expected: Mapping[str, Sequence[Beat]] = field(default_factory=dict)
    runs: int | None = None
    error: int = 0
    after_error: int = 1
    max_cycles: int = 100_000


@dataclass
class RtlRun:
    """What RTL did: beats and cycles of every port (outputs as taken by the sink), writes into the links behind outputs
    (``pushes``), first cycle with an error and its code, and what the extra agents left in ``notes``."""

    beats: dict[str, list[Beat]]
    stamps: dict[str, list[int]]
    pushes: dict[str, list[int]]
    error_cycle: int | None
    error: int
    notes: list = field(default_factory=list)
