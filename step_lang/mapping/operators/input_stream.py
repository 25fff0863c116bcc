"""An input unit: values off-chip, stops by counters (static shape) or from its token memory."""

from __future__ import annotations

import math

import numpy as np

from step_lang.dims import is_static
from step_lang.errors import HardwareTooSmall
from step_lang.tokens import Data, data_length
from step_lang.types import Selector, Tile, Tuple, Type

from ..builder import Builder
from ..registers import AFFINE_LOOPS
from ._offchip import view_registers

KIND = "input_stream"

DONE_TOKEN = 1 << 5 | 1 << 4
"""Token memory entry of done: stop in bits 0..3, empty 4, done 5."""


def control_values(data: Data, type_: Type) -> list[int] | None:
    """What the elements say to units that they steer, as the bits of a link: selectors, integer scalars such as
    addresses and counts, and tuples of these, a first member lowest; None for data."""
    if isinstance(type_, Selector):
        return [int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little") for row in np.asarray(data)]
    if isinstance(type_, Tuple):
        values, at = [0] * data_length(data), 0
        for member, kind in zip(data, type_.members):
            found = control_values(member, kind)
            if found is None or not isinstance(kind, Tile):
                return None
            values = [value | bits << at for value, bits in zip(values, found)]
            at += kind.dtype.bits
        return values
    if isinstance(type_, Tile) and (type_.rows, type_.cols) == (1, 1) and not type_.dtype.is_float:
        return [int(value) & (1 << type_.dtype.bits) - 1 for value in np.asarray(data).reshape(-1)]
    return None


def build(builder: Builder, op) -> None:
    stream, hw = op.output, builder.hw
    given = builder.inputs.get(op.name)
    shape = stream.shape
    regular = all(is_static(dim) for dim in shape) and len(shape) <= AFFINE_LOOPS
    tokens: list[int] = []
    if regular:
        count = math.prod(shape)
    else:
        # The tokens are the run's: those given, or, for a netlist without data, room for as many as the memory holds.
        count = hw.input_tokens if given is None else given.elements
        if given is not None:
            tokens = [int(s) | int(e) << 4 for s, e in zip(given.stop, given.empty)]
        tokens.append(DONE_TOKEN)
        if len(tokens) > hw.input_tokens:
            raise HardwareTooSmall(f"tokens of input stream '{op.name}': {len(tokens)} vs {hw.input_tokens}",
                                   operator=op, fix="raise input.tokens in the hardware configuration")
    place = builder.place_input(stream, count, op)
    view = (tuple(shape), tuple(math.prod(shape[i + 1:]) for i in range(len(shape)))) if regular else ((count,), (1,))
    unit = builder.unit("input", op.name, op, {
        "element_bytes": place.element_bytes, "window": hw.load_window, "port": len(builder.read_ports), "ref": False,
        "memory": hw.memory, "token_memory": hw.input_tokens, "tokens": tokens,
        "values": None if given is None else control_values(given.data, stream.type),
    }, {**view_registers(op, place, *view, limit=count), "regular": int(regular)})
    builder.read_ports.append((place.element_bytes, hw.load_window))
    builder.connect(unit, [], op.outputs)
