"""What streams disagree in where an operator raised its error code: what a person reads of it at tile fidelity."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from step_lang.errorcodes import ErrorCode, code_name

from ..selectors import BITS
from .engine import TileRun, operator_modules
from .functions import sizes_fit
from .network import BASE, COLS, COUNT, DONE, EMPTY, HEAD, PUSHED, ROWS, TOKEN, VALUE

__all__ = ["disagreement"]


class _Beat(NamedTuple):
    """The token at the head of a channel: the stream's name, how many came before, token, sizes and control value."""

    stream: str
    number: int
    token: int
    rows: int
    cols: int
    value: int

    @property
    def done(self) -> bool:
        return self.token & DONE != 0

    def __str__(self) -> str:
        if self.done:
            return f"the end of '{self.stream}', after {self.number} beats"
        stop = f"stop {self.token & 15}"
        if self.token & EMPTY:
            return f"a bare {stop}, beat {self.number} of '{self.stream}'"
        sizes = "" if (self.rows, self.cols) in ((0, 0), (1, 1)) else f" of {self.rows} x {self.cols}"
        return f"an element{sizes} with {stop}, beat {self.number} of '{self.stream}'"


def disagreement(run: TileRun, unit: int, code: int) -> str:
    """``"a vs b"`` of the operator ``unit`` that raised ``code`` (`ErrorCode`), from the tokens that it has before it;
    the code's name where these do not tell."""
    graph, kind = run.graph, run.graph.kinds[unit]
    op: Any = graph.operators[unit]
    beats = _beats(run, unit)
    told = None
    if code == ErrorCode.MISALIGNED:
        told = _misaligned(op, _pairs(run, op, beats))
    elif code == ErrorCode.ADDRESS_RANGE and kind == "streamify" and beats[0]:
        size = int(run.net.buffers[beats[0].value, 2])
        told = (f"view of shape {list(op.view_shape)} with stride {list(op.view_stride)} vs the {size} elements of the "
                f"buffer that beat {beats[0].number} of '{beats[0].stream}' refers to")
    elif code == ErrorCode.ADDRESS_RANGE and beats[0] and hasattr(op, "grid"):
        told = f"address {beats[0].value} vs 0..{math.prod(op.grid) - 1}, the tiles of tensor '{op.tensor.name}'"
    elif code == ErrorCode.ADDRESS_RANGE and kind == "flat_map" and beats[0]:
        told = f"address {_address(run, unit, op.fn, beats[0].value)} vs 0..{2**32 - 1}"
    elif code == ErrorCode.EXHAUSTED and kind == "bufferize" and beats[0]:
        told = (f"a buffer that beat {beats[0].number} of '{beats[0].stream}' no longer fits into vs its scratchpad's "
                f"{run.graph.machine.frames} tiles")
    elif code == ErrorCode.SHAPE and kind in ("map", "accum", "scan"):
        told = _sizes(run, unit, op, beats)
    elif code == ErrorCode.OVERFLOW:
        tiles = math.prod(op.grid)
        told = f"tile {tiles} of tensor '{op.tensor.name}' is stored vs its tiles 0..{tiles - 1}"
    elif code == ErrorCode.SELECTOR and beats[-1]:
        told = _selector(run, op, beats[-1])
    elif kind == "reshape" and code in (ErrorCode.PROTOCOL, ErrorCode.SHAPE):
        position = int(run.st[unit, operator_modules()[kind].POSITION])
        told = f"dimension {op.dim} of '{op.inputs[0].name}' ends after {position} of a chunk vs chunk {op.chunk}"
    elif code in (ErrorCode.PROTOCOL, ErrorCode.STOP_RANGE):
        current = getattr(operator_modules()[kind], "CURRENT", None)
        beat = beats[0 if current is None else int(run.st[unit, current])]
        if beat and code == ErrorCode.PROTOCOL:
            told = f"{beat}, inside a chunk vs whole chunks of rank {op.rank}"
        elif beat:
            told = f"{beat} vs stops of at most {op.rank} in a chunk of that rank"
    return told or f"{kind} '{graph.names[unit]}' raises {code_name(code)} vs streams that agree"


def _address(run: TileRun, unit: int, fn: Any, value: int) -> int:
    """What a flat_map of addresses is about to make."""
    piece = int(run.st[unit, operator_modules()["flat_map"].PIECE])
    if fn.name == "address_range":
        return (value & 2**32 - 1) + piece * int(fn.params["stride"])
    at = np.unravel_index(piece, fn.params["shape"])
    return int(fn.params["base"] + value * fn.params["scale"] + np.dot(at, fn.params["stride"]))


def _sizes(run: TileRun, unit: int, op: Any, beats: Sequence[_Beat | None]) -> str | None:
    """Tiles that do not fit one another, a state, or a count of rows."""
    first, other = beats[0], beats[-1]
    if first is None or other is None:
        return None
    if op.fn.name == "set_offset":
        return f"{other.value} rows, beat {other.number} of '{other.stream}' vs {first}"
    if op.fn.name == "append_row":
        return f"one row more than {first} vs capacity {op.fn.params['capacity']}"
    if len(beats) == 2 and not sizes_fit.py_func(run.graph.par[unit], *first[3:5], *other[3:5]):
        return f"{first} vs {other}"
    module = operator_modules()[op.kind]
    rows, cols = (int(run.st[unit, place]) for place in (module.STATE_ROWS, module.STATE_COLS))
    return f"{first} vs a state of {rows} x {cols}, as of the elements before it in its group"


def _beats(run: TileRun, unit: int) -> list[_Beat | None]:
    """What each input has at its head."""
    net, found = run.net, []
    for c in run.graph.ins[unit]:
        if c < 0:
            continue
        channel = net.channels[c]
        place = net.places[channel[BASE] + channel[HEAD]]
        found.append(_Beat(run.graph.channels[c].name, int(channel[PUSHED] - channel[COUNT]),
                           *(int(place[which]) for which in (TOKEN, ROWS, COLS, VALUE))) if channel[COUNT] else None)
    return found


def _pairs(run: TileRun, op: Any, beats: Sequence[_Beat | None]) -> list[tuple[_Beat, _Beat]]:
    """The beats that are to agree: each two of an operator's inputs; of a reassemble those that its selector names, or
    all at its end, with the selector."""
    if op.kind != "reassemble":
        return list(itertools.combinations(filter(None, beats), 2))
    *streams, selector = beats
    if selector is None:
        return []
    named = range(len(streams)) if selector.done else _bits(run, op, selector)
    return [(beat, selector) for beat in (streams[k] for k in named if k < len(streams)) if beat]


def _misaligned(op: Any, pairs: Sequence[tuple[_Beat, _Beat]]) -> str | None:
    """The pair that differs most: one is the end, other tokens, other sizes."""
    for differ in (lambda a, b: a.done != b.done, lambda a, b: a.token != b.token, lambda a, b: a[3:5] != b[3:5]):
        for a, b in pairs:
            if differ(a, b):
                chunks = f" (chunks of rank {op.rank})" if op.kind in ("partition", "reassemble", "expand") else ""
                return f"{a} vs {b}{chunks}"
    return None


def _bits(run: TileRun, op: Any, beat: _Beat) -> list[int]:
    """The bits that are set in a selector."""
    width = op.inputs[-1].type.n
    words = [beat.value] if width <= BITS else run.net.heap[beat.value:beat.value - (-width // BITS)].tolist()
    return [k for k in range(width) if words[k // BITS] >> k % BITS & 1]


def _selector(run: TileRun, op: Any, beat: _Beat) -> str:
    if op.kind == "map":  # selector_index
        named = ", ".join(map(str, _bits(run, op, beat)))
        return f"beat {beat.number} of '{beat.stream}' names streams {{{named}}} vs exactly one"
    streams = len(op.outputs) if op.kind == "partition" else len(op.inputs) - 1
    beyond = [k for k in _bits(run, op, beat) if k >= streams]
    named = f"names stream {beyond[0]} vs streams 0..{streams - 1}" if beyond else "names no stream vs at least one"
    return f"beat {beat.number} of '{beat.stream}' {named}"
