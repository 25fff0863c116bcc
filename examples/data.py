"""Random tensors for programs."""

from __future__ import annotations

import zlib

import numpy as np

from step_lang import Program

__all__ = ["random_tensors"]


def random_tensors(program: Program, seed: int = 0, spread: dict[str, float] | None = None) -> dict[str, np.ndarray]:
    """Contents for every tensor that ``program`` reads, by name: normally distributed with deviation ``spread[name]``
    (default 1) for floats, small integers for integers. The same seed gives the same bits."""
    tensors = {}
    for tensor in sorted({t for op in program.operators for t in op.tensors_read}, key=lambda tensor: tensor.name):
        generator = np.random.default_rng([seed, zlib.crc32(tensor.name.encode())])
        if tensor.dtype.is_float:
            values: np.ndarray = generator.standard_normal(tensor.shape) * (spread or {}).get(tensor.name, 1.0)
        else:
            values = generator.integers(0 if tensor.dtype.name in ("u32", "bool") else -8, 8, tensor.shape)
        tensors[tensor.name] = values.astype(tensor.dtype.numpy)
    return tensors
