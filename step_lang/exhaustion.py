"""What a person reads when a scratchpad has no room left, in RTL and model alike: from what a bufferize shows."""

from __future__ import annotations

from collections.abc import Mapping

from .errorcodes import code_name, fix_of
from .errors import RtlError
from .unitgraph import UnitGraph, UnitSpec

__all__ = ["WAITS_PAGE", "WAITS_REFERENCE", "exhausted_scratchpads", "unit_error"]

WAITS_PAGE, WAITS_REFERENCE = 1, 2
"""Bits of what a bufferize waits for."""


def _place(unit: UnitSpec) -> str:
    return f"unit '{unit.name}' ({unit.origin})" if unit.origin else f"unit '{unit.name}'"


def _size(graph: UnitGraph, unit: UnitSpec) -> str:
    pad = graph.units[unit.params["scratchpad"]].params
    pages = pad["frames"] // pad["page_frames"]
    return f"its scratchpad's {pad['frames']} tiles ({pages} pages of {pad['page_frames']})"


def unit_error(graph: UnitGraph, unit: UnitSpec, code: int, how: str, filled: Mapping[int, int]) -> RtlError:
    """The error of a unit that raised ``code``. ``how``: ``"raised {} by cycle 12"``, the code's name to be put in;
    ``filled``: elements in the open buffer of each bufferize, by unit index."""
    text = f"{_place(unit)} {how.format(code_name(code))}"
    if unit.kind == "bufferize" and code_name(code) == "EXHAUSTED":
        pad = graph.units[unit.params["scratchpad"]].params
        return RtlError(
            f"{text}: a buffer of {filled[unit.index]} tiles so far, and more to come, vs {_size(graph, unit)}",
            fix=f"raise scratchpad.frames above {pad['frames']} in the hardware configuration, or buffer less")
    return RtlError(text, fix=fix_of(code))


def exhausted_scratchpads(graph: UnitGraph, filled: Mapping[int, int], waits: Mapping[int, int]) -> dict[int, str]:
    """Each bufferize (by unit index) that finds no room, and what it lacks. ``waits``: bits of `WAITS_PAGE` and
    `WAITS_REFERENCE`."""
    found = {}
    for unit in graph.units:
        if unit.kind != "bufferize" or not waits[unit.index]:
            continue
        begun = f"has a buffer of {filled[unit.index]} tiles so far" if filled[unit.index] else "begins a buffer"
        lacks = []
        if waits[unit.index] & WAITS_PAGE:
            lacks.append(f"a page: all of {_size(graph, unit)} are taken")
        if waits[unit.index] & WAITS_REFERENCE:
            references = graph.units[unit.params["scratchpad"]].params["references"]
            lacks.append(f"a reference: all {references} of its scratchpad are taken")
        found[unit.index] = f"{_place(unit)} {begun} and needs {' and '.join(lacks)}"
    return found
