"""All proofs, in the order of docs/FORMAL.md."""

from importlib import import_module

from .case import Case

__all__ = ["UNITS", "cases"]

UNITS = ("link", "fork", "zip", "flatten", "repeat", "expand", "promote", "reshape", "arbiter", "partition",
         "reassemble", "eager_merge", "map", "folds", "fold_shapes", "flat_map", "pack_rows", "unpack_rows",
         "trim_rows", "memory", "streamify", "loads", "stores")
"""Files of ``units/``."""


def cases() -> list[Case]:
    """Every proof."""
    return [case for name in UNITS for case in import_module(f"{__package__}.units.{name}").CASES]
