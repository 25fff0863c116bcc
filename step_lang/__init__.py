"""The STeP language: types, shapes, operators, functions, programs, metrics, interpreter and lowering.

    from step_lang import Program, bf16, fn, ops
"""

from . import errors, fn, ops
from .dims import dynamic, ragged
from .errors import *  # noqa: F403
from .interpreter import Result, interpret
from .metrics import Metrics, metrics
from .numerics import Numerics
from .operator import Operator
from .picture import draw
from .program import Program, Tensor
from .stream import Stream
from .tokens import Buffer, TokenStream, format_tokens, parse_tokens
from .types import DTYPES, BufferRef, DType, Selector, Tile, Tuple, bf16, bool_, fp16, fp32, int8, int32, scalar, u32

__all__ = [
    "Buffer", "BufferRef", "DTYPES", "DType", "Metrics", "Numerics", "Operator", "Program", "Result", "Selector",
    "Stream", "Tensor", "Tile", "TokenStream", "Tuple", "bf16", "bool_", "draw", "dynamic", "fn", "format_tokens",
    "fp16", "fp32", "int32", "int8", "interpret", "metrics", "ops", "parse_tokens", "ragged", "scalar", "u32",
    *errors.__all__,
]
