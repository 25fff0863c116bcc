"""A flat map unit for the functions that make addresses."""

from __future__ import annotations

from step_lang.errors import HardwareTooSmall, UnknownFunction

from ..builder import Builder
from ..registers import AFFINE_LOOPS

KIND = "flat_map"

WORD = 0xFFFFFFFF


def build(builder: Builder, op) -> None:
    registers = _REGISTERS.get(op.fn.name)
    if registers is None:
        raise UnknownFunction(f"function {op.fn.name!r} in flat_map vs those with hardware: "
                              f"{', '.join(sorted(_REGISTERS))}", operator=op)
    if op.compute_bw is not None:
        builder.warn(op, f"compute_bw {op.compute_bw} is not used: an address generator makes one address a cycle")
    unit = builder.unit("flat_map", op.name, op, {"function": op.fn}, registers(op))
    builder.connect(unit, op.inputs, op.outputs)


def _affine_addresses(op) -> dict[str, int]:
    shape, stride = (list(reversed(op.fn.params[name])) for name in ("shape", "stride"))
    if len(shape) > AFFINE_LOOPS:
        raise HardwareTooSmall(f"shape of {op.fn.name}: {len(shape)} dimensions vs {AFFINE_LOOPS} loops of an address "
                               "generator", operator=op, fix="give it fewer dimensions")
    config = {"base": _word(op, "base", op.fn.params["base"]), "scale": _word(op, "scale", op.fn.params["scale"]),
              "dims": len(shape)}
    for k in range(AFFINE_LOOPS):
        config[f"count{k}"] = shape[k] if k < len(shape) else 1
        config[f"stride{k}"] = _word(op, "stride", stride[k]) if k < len(shape) else 0
    return config


def _address_range(op) -> dict[str, int]:
    return {"stride": _word(op, "stride", op.fn.params["stride"])}


def _counter(op) -> dict[str, int]:
    return {}


_REGISTERS = {"address_range": _address_range, "affine_addresses": _affine_addresses, "counter": _counter}


def _word(op, name: str, value: int) -> int:
    """``value`` in two's complement. Raises `HardwareTooSmall`."""
    if not -(1 << 31) <= value < 1 << 31:
        raise HardwareTooSmall(f"{name} of {op.fn.name}: {value} vs {-(1 << 31)}..{(1 << 31) - 1}", operator=op)
    return value & WORD
