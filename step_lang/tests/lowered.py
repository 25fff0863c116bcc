"""Runs a program and its lowered form and requires that they agree in everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from step_lang import Numerics, Program, interpret
from step_lang.lowering import LoweredProgram, lower

__all__ = ["assert_lowered_equals"]


def assert_lowered_equals(program: Program, tile: int, tensors: Mapping[str, np.ndarray] | None = None,
                          inputs: Mapping[str, Any] | None = None,
                          arbitration: Mapping[str, Sequence[int]] | None = None) -> LoweredProgram:
    """Lower ``program`` to ``tile`` and require: every logical stream seen through each of its physical streams equal
    in tokens and bits, every stored tensor equal, the same off-chip bytes, and the same grants."""
    numerics = Numerics(group=tile)
    logical = interpret(program, tensors or {}, inputs, numerics, arbitration=arbitration)
    lowered = lower(program, tile)
    physical = interpret(lowered.program, tensors or {}, lowered.physical_inputs(inputs or {}), numerics,
                         arbitration=arbitration)
    views = lowered.logical_streams(physical.streams)
    for stream in program.streams:
        for view in views.get(stream.name, []):
            assert view == logical.streams[stream.name], f"{stream.name}: {view} vs {logical.streams[stream.name]}"
        if stream.consumers:
            assert lowered.logical_view(stream.name, physical.stream(lowered.physical_name(stream.name))) == \
                logical.stream(stream)
    for name, tensor in logical.tensors.items():
        assert tensor.tobytes() == physical.tensors[name].tobytes(), name
    assert logical.offchip_bytes == physical.offchip_bytes
    assert logical.arbitration == physical.arbitration
    for stream in lowered.program.streams:
        for type_ in (stream.type,):
            rows, cols = getattr(type_, "rows", 1), getattr(type_, "cols", 1)
            dynamic = not isinstance(rows, int)     # at most T rows, which hardware checks
            assert (dynamic or rows <= tile) and cols in (1, tile), f"{stream.name} of {type_} is not physical"
            if dynamic:
                assert all(len(array) <= tile for array in physical.stream(stream).data), stream.name
    return lowered
