"""Configuration registers of the hardware units: names and widths in bits.

The netlist checks that the units have exactly these.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "AFFINE_LOOPS", "COLUMNS_WIDTH", "GENERATION_WIDTH", "INNER_WIDTH", "REGISTERS", "ROWS_WIDTH", "STOP_WIDTH",
    "STREAMIFY_LOOPS", "USES_WIDTH", "WIDE_USES_WIDTH"]

STOP_WIDTH = 4
"""Bits of a stop level."""

AFFINE_LOOPS = 6
"""Loops of the view of a load, store or input."""

STREAMIFY_LOOPS = 4
"""Loops of the view of a streamify."""

USES_WIDTH = 8
"""Bits of a count of uses of a buffer, as the program's structure says it."""

WIDE_USES_WIDTH = 24
"""Bits of a count of uses where references are copied as often as a stream says: each copy is in a link, or held."""

GENERATION_WIDTH = 2
"""Bits of a reference that tell buffers of one number apart: a reference used after its buffer was freed is found up to
three buffers later."""

INNER_WIDTH = 12
"""Bits of an inner size of an accum or scan."""

COLUMNS_WIDTH = 13
"""Bits of a count of a row's tiles, of which ``rows.columns`` are the most."""

ROWS_WIDTH = 5
"""Bits of a count of a physical tile's rows."""

_VIEW = {"base": 32, "limit": 32, "dims": 3,
         **{f"{name}{k}": 32 for name in ("count", "stride") for k in range(AFFINE_LOOPS)}}

_FOLD = {"rank": STOP_WIDTH, "inner": 2, "n1": INNER_WIDTH, "n0": INNER_WIDTH}

REGISTERS: Mapping[str, Mapping[str, int]] = {
    "load": _VIEW,
    "store": _VIEW,
    "random_load": {"base": 32, "limit": 32},
    "random_store": {"base": 32, "limit": 32, "inner": STOP_WIDTH},
    "input": {**_VIEW, "regular": 1},
    "bufferize": {"rank": STOP_WIDTH, "uses": USES_WIDTH, "hollow": 1},
    "streamify": {"n": STOP_WIDTH, "c": STOP_WIDTH, "repeat": 24, "affine": 1,
                  **{f"{name}{k}": 24 for name in ("count", "stride") for k in range(STREAMIFY_LOOPS)}},
    "accum": {**_FOLD, "hollow": 1},
    "scan": _FOLD,
    "flatten": {"lo": STOP_WIDTH, "hi": STOP_WIDTH, "rank": STOP_WIDTH},
    "promote": {"rank": STOP_WIDTH},
    "reshape": {"dim": STOP_WIDTH, "flag_rank": STOP_WIDTH, "chunk": 32, "inner1": 32, "inner0": 32},
    "repeat": {"n": 32},
    "expand": {"b": STOP_WIDTH},
    "partition": {"rank": STOP_WIDTH},
    "reassemble": {"rank": STOP_WIDTH, "hollow": 1},
    "eager_merge": {"rank": STOP_WIDTH},
    "pack_rows": {"n": COLUMNS_WIDTH, "rows": ROWS_WIDTH},
    "unpack_rows": {"n": COLUMNS_WIDTH},
    "trim_rows": {"rows": ROWS_WIDTH, "total": 32},
}
"""Registers by unit kind. Kinds that are not here have none; a function may add its own (``scale``: ``constant``)."""
