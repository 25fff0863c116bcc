"""Streams and expected results for the benches of the compute units: map, accum, scan."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

import numpy as np

from rtl_tests.harness import Beat, bare, from_beats, random_stream, to_beats
from step_hw.units.accum import Accum
from step_hw.units.map import Map
from step_hw.units.scan import Scan
from step_lang import ops
from step_lang.dims import ragged
from step_lang.fn.base import Function
from step_lang.interpreter import Context
from step_lang.numerics import Numerics
from step_lang.program import Program
from step_lang.timing import Timing
from step_lang.types import Tile

__all__ = ["MASKED_BINS", "FoldConfig", "MapConfig", "aligned_streams", "check_timing", "dressed", "fold_config",
           "inner_streams", "interpreted", "masked_bins", "random_tile", "split_streams", "unit_of"]

_SPECIAL_BF16 = (0x0000, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x7F81, 0x0001, 0x8001, 0x007F, 0x0080, 0x7F7F, 0xFF7F,
                 0x3F80, 0xBF80)
_SPECIAL_FP32 = (*(pattern << 16 for pattern in _SPECIAL_BF16), 0x00000001, 0x807FFFFF, 0x7F7FFFFF, 0x3F800001,
                 0x7F800001)


def _pattern(rng: Random, dtype) -> int:
    """Bits of one element: any pattern, a special one, or (floating point) one of moderate size, where sums meet."""
    if not dtype.is_float or rng.random() < 0.2:
        return rng.getrandbits(dtype.bits)
    if rng.random() < 0.15:
        return rng.choice(_SPECIAL_BF16 if dtype.bits == 16 else _SPECIAL_FP32)
    fraction = 7 if dtype.bits == 16 else 23
    return rng.getrandbits(1) << (dtype.bits - 1) | rng.randint(118, 136) << fraction | rng.getrandbits(fraction)


@dataclass(frozen=True)
class MapConfig:
    """Elaboration parameters of one unit under test, and its function's registers."""

    name: str
    function: Function
    in_types: tuple[Tile, ...]
    out_type: Tile
    tile: int = 2
    rows_per_cycle: int = 16
    k_per_cycle: int = 16
    cfg: Mapping[str, int] = field(default_factory=dict)
    dynamic: tuple[int, ...] = ()
    """Operands with a dynamic number of rows; the unit masks its result where there are any."""

    @property
    def params(self) -> dict:
        """``UnitSpec.params``."""
        return {"function": self.function, "in_types": self.in_types, "out_type": self.out_type, "tile": self.tile,
                "rows_per_cycle": self.rows_per_cycle, "k_per_cycle": self.k_per_cycle, "masked": bool(self.dynamic)}

    @property
    def group(self) -> int:
        """Products summed before a rounding."""
        return min(self.k_per_cycle, int(self.in_types[0].cols))


@dataclass(frozen=True)
class FoldConfig(MapConfig):
    """As `MapConfig`, for accum and scan: ``entries`` of state, ``init`` pattern, and the shapes it is tried with:
    pairs of (dimensions folded, inner sizes, the outermost 0 where it is open)."""

    entries: int = 4
    init: int = 0
    shapes: tuple[tuple[int, tuple[int, ...]], ...] = ((1, ()), (2, ()), (1, (3,)), (2, (2, 2)))

    @property
    def params(self) -> dict:
        return {**super().params, "entries": self.entries, "init": self.init}


def random_tile(rng: Random, type_: Tile, rows: int | None = None) -> Beat:
    """An element of random patterns; rows from ``rows`` on are zero."""
    full, cols, bits = int(type_.rows), int(type_.cols), type_.dtype.bits
    valid = full if rows is None else rows
    word = 0
    for i in range(valid * cols):
        word |= _pattern(rng, type_.dtype) << (i * bits)
    return Beat(word, valid)


def inner_streams(outer: Sequence[Beat], sizes: tuple[int, ...], fold_rank: int = 1,
                  lengths: Iterator[int] | None = None) -> list[Beat]:
    """Every element of ``outer`` becomes a tensor of ``sizes`` (outermost first); stops above it rise by its rank. The
    outermost size may be 0: open, the next of ``lengths`` for each group; a group ends with a stop >= ``fold_rank``."""
    n0 = sizes[-1] if len(sizes) == 2 else 0
    opened = next(lengths) if lengths else 1
    made: list[Beat] = []
    for beat in outer:
        if beat.empty:
            made.append(beat if beat.done else bare(beat.stop + len(sizes)))
        else:
            outermost = sizes[:1] if sizes[:1] != (0,) else (opened,)
            total = int(np.prod((*outermost, *sizes[1:]))) if sizes else 1
            made += [Beat(0, 1, int(n0 > 0 and (i + 1) % n0 == 0)) for i in range(total)]
            made[-1] = Beat(0, 1, beat.stop + len(sizes))
        if lengths and (beat.done or beat.stop >= fold_rank):
            opened = next(lengths)
    return made


def aligned_streams(rng: Random, types: Sequence[Tile], rank: int, max_len: int = 3, streams: int = 2,
                    dynamic: Sequence[int] = ()) -> list[list[Beat]]:
    """Beats of each port: ``streams`` random streams of ``rank``; ports ``dynamic`` have random counts of rows."""
    shape: list[Beat] = []
    for _ in range(streams):
        shape += random_stream(rng, rank, lambda: Beat(0, 1), max_len)
    rows = [rng.randint(0, max(int(type_.rows) for type_ in types)) for _ in shape] if dynamic else None
    return dressed(rng, shape, types, rows, dynamic)


def dressed(rng: Random, shape: Sequence[Beat], types: Sequence[Tile], rows: Sequence[int] | None = None,
            dynamic: Sequence[int] | None = None) -> list[list[Beat]]:
    """The stops of ``shape`` with random elements for each port, of ``rows`` valid rows beat by beat (None: all) on
    ports ``dynamic`` (None: all)."""
    ports: list[list[Beat]] = [[] for _ in types]
    for i, beat in enumerate(shape):
        for k, (port, type_) in enumerate(zip(ports, types, strict=True)):
            count = rows[i] if rows is not None and (dynamic is None or k in dynamic) else None
            port.append(beat if beat.empty else random_tile(rng, type_, count)._replace(stop=beat.stop))
    return ports


MASKED_BINS = ("no valid row", "some valid rows", "all rows valid")


def masked_bins(port: Sequence[Beat], config: MapConfig) -> list[str]:
    """`MASKED_BINS` that the beats of the first operand hit."""
    rows = int(config.in_types[0].rows)
    return sorted({{0: MASKED_BINS[0], rows: MASKED_BINS[2]}.get(beat.rows, MASKED_BINS[1])
                   for beat in port if not beat.empty})


def split_streams(beats: Sequence[Beat]) -> list[list[Beat]]:
    """Done-terminated streams, one after another."""
    found: list[list[Beat]] = [[]]
    for beat in beats:
        found[-1].append(beat)
        if beat.done:
            found.append([])
    return found[:-1]


def interpreted(kind: str, config: MapConfig, ports: Sequence[Sequence[Beat]], rank: int, *, fold_rank: int = 1,
                sizes: tuple[int, ...] = (), hollow: bool = False) -> list[Beat]:
    """What the interpreter makes of the streams that ``ports`` carry, one after another; ``rank`` is the streams'."""
    made: list[Beat] = []
    rows = ragged("rows")
    types = [Tile(rows, type_.cols, type_.dtype) if k in config.dynamic else type_
             for k, type_ in enumerate(config.in_types)]
    for each in zip(*(split_streams(port) for port in ports), strict=True):
        inner = tuple(size or ragged("open") for size in sizes)
        shape = tuple(ragged(f"d{k}") for k in range(rank + 1 - len(sizes))) + inner
        with Program("bench"):
            inputs = [ops.input_stream(f"x{i}", type_, shape) for i, type_ in enumerate(types)]
            if kind == "map":
                out = ops.map(config.function, *inputs)
            else:
                options = {"hollow": True} if hollow else {}
                out = getattr(ops, kind)(config.function, *inputs, rank=fold_rank, inner=len(sizes), **options)
        context = Context(Numerics(group=config.group), {}, {}, {})
        tokens = [from_beats(beats, type_, rank) for beats, type_ in zip(each, config.in_types, strict=True)]
        (result,) = out.producer.interpret(context, tokens)
        made += to_beats(result, config.out_type)
    return made


def fold_config(rank: int, sizes: tuple[int, ...], hollow: bool = False) -> dict[str, int]:
    """Registers of accum and scan (which has no ``hollow``); an open size is 0."""
    n1, n0 = (1, 1, *sizes)[-2:]
    return {"rank": rank, "inner": len(sizes), "n1": n1, "n0": n0, **({"hollow": 1} if hollow else {})}


def unit_of(kind: str, config: MapConfig):
    """The unit of ``kind`` with these parameters."""
    return {"map": Map, "accum": Accum, "scan": Scan}[kind](**config.params)


def check_timing(result, timing: Timing, elements: int) -> None:
    """The first ``elements`` beats in and out of an undisturbed run: latency and interval are the stated ones, and the
    first element, which found the unit idle, was accepted with its last step."""
    taken, given = result.stamps["in0"][:elements], result.stamps["out0"][:elements]
    assert taken[0] == timing.interval - 1
    assert [b - a for a, b in pairwise(taken)] == [timing.interval] * (elements - 1)
    assert [out - at for at, out in zip(taken, given, strict=True)] == [timing.latency] * elements
