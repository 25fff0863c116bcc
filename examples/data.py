"""Random tensors for programs."""

from __future__ import annotations

import zlib

import numpy as np

from step_lang import DType, Program, Selector
from step_lang.errors import BadParameter

__all__ = ["check_sizes", "random_tensor", "random_tensors", "selector_bits"]


def check_sizes(**sizes: int) -> None:
    """Raise `BadParameter` for a size below 1, before anything is divided by it."""
    for name, size in sizes.items():
        if size < 1:
            raise BadParameter(f"{name}: {size} vs an int of at least 1")


def random_tensor(name: str, shape: tuple[int, ...], dtype: DType, seed: int = 0, spread: float = 1.0) -> np.ndarray:
    """Normally distributed floats with deviation ``spread``, or small integers. The same name and seed give the same
    bits."""
    generator = np.random.default_rng([seed, zlib.crc32(name.encode())])
    if dtype.is_float:
        values: np.ndarray = generator.standard_normal(shape) * spread
    else:
        values = generator.integers(0 if dtype.name in ("u32", "bool") else -8, 8, shape)
    return values.astype(dtype.numpy)


def random_tensors(program: Program, seed: int = 0, spread: dict[str, float] | None = None) -> dict[str, np.ndarray]:
    """Contents for every tensor that ``program`` reads, by name, as of `random_tensor`; ``spread`` is by name too."""
    read = sorted({t for op in program.operators for t in op.tensors_read}, key=lambda tensor: tensor.name)
    return {t.name: random_tensor(t.name, t.shape, t.dtype, seed, (spread or {}).get(t.name, 1.0)) for t in read}


def selector_bits(program: Program, name: str) -> int:
    """Bits of the selectors of the operator ``name``."""
    type_ = program.operator(name).output.type
    assert isinstance(type_, Selector)
    return type_.n
