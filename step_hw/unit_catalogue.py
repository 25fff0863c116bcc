"""One unit of every kind and of every function that has hardware, as a netlist for tiles of T x T holds them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from amaranth.hdl import UnusedElaboratable

from step_lang import fn
from step_lang.fn.base import Function
from step_lang.memory_config import MemoryConfig
from step_lang.types import Selector, Tile, bf16, fp32, int8, int32

from .beat import BeatLayout
from .functions.base import tile_layout
from .hbm.system import MemorySystem
from .link import LinkFIFO
from .unit import Unit
from .units.accum import Accum
from .units.bufferize import Bufferize
from .units.eager_merge import EagerMerge
from .units.expand import Expand
from .units.flat_map import FlatMap
from .units.flatten import Flatten
from .units.fork import Fork
from .units.input import Input
from .units.load import Load
from .units.map import Map
from .units.pack_rows import PackRows
from .units.partition import Partition
from .units.promote import Promote
from .units.random_load import RandomLoad
from .units.random_store import RandomStore
from .units.reassemble import Reassemble
from .units.repeat import Repeat
from .units.reshape import Reshape
from .units.scan import Scan
from .units.scratchpad import Scratchpad, ScratchpadShape
from .units.store import Store
from .units.streamify import Streamify
from .units.trim_rows import TrimRows
from .units.unpack_rows import UnpackRows
from .units.zip import Zip

__all__ = ["unit_catalogue"]

# Units are made to be listed; those whose Verilog is asked for are converted.
warnings.simplefilter("ignore", UnusedElaboratable)

_SCALAR = BeatLayout(32)


def unit_catalogue(tile: int) -> Mapping[str, Unit]:
    """Name to unit, bf16 tiles where nothing else is said: a row of cells per function (a function of whole rows: all
    products of a row), a state of one tile or, where so named, four, four ways of routing, rows of up to 8 tiles,
    links of two beats, a scratchpad of 32 frames, loads with 8 elements in flight, a memory of two channels whose burst
    is a tile's row, or 8 bytes."""
    layout = tile_layout(Tile(tile, tile, bf16))
    row = tile_layout(Tile(1, tile, bf16))
    size = tile * tile * 2
    shape = ScratchpadShape(32, 8, 4, layout)
    both = replace(shape, owners=2)
    simple = MemoryConfig(channels=2, burst_bytes=max(8, 2 * tile), capacity_bytes=1 << 14)
    banked = MemoryConfig(model="banked", channels=2, burst_bytes=simple.burst_bytes, capacity_bytes=1 << 14, banks=4,
                          row_bytes=64 * simple.burst_bytes, queue=4)
    units: dict[str, Unit] = {
        "link": LinkFIFO(layout, 2),
        "fork": Fork(layout, 2),
        "zip": Zip([layout, layout]),
        "flatten": Flatten(layout),
        "repeat": Repeat(layout),
        "expand": Expand(layout, _SCALAR),
        "expand of references": Expand(shape.reference_layout, _SCALAR, replace(shape, uses_bits=24), 1),
        "promote": Promote(layout),
        "reshape": Reshape(layout),
        "partition": Partition(layout, 4, 4),
        "partition of references": Partition(shape.reference_layout, 4, 4, shape, (1, 1, 1, 1)),
        "reassemble": Reassemble(layout, 4, 4),
        "eager_merge": EagerMerge(layout, 4),
        "pack_rows": PackRows(row, layout, 8),
        "unpack_rows": UnpackRows(layout, row, 8),
        "trim_rows": TrimRows(layout, layout),
        "partition of references of two scratchpads": Partition(both.reference_layout, 4, 4, both, (1, 1, 1, 1)),
        "bufferize": Bufferize(shape),
        "scratchpad": Scratchpad(shape),
        "scratchpad, two readers": Scratchpad(shape, 2),
        "scratchpad, two readers, a router": Scratchpad(shape, 2, 1),
        "streamify": Streamify(shape),
        "streamify at two scratchpads": Streamify(both),
        "streamify with reference": Streamify(shape, _SCALAR),
        "load": Load(layout, memory=simple, element_bytes=size, window=8),
        "load with reference": Load(layout, memory=simple, element_bytes=size, window=8, reference=_SCALAR),
        "random load": RandomLoad(layout, address=_SCALAR, memory=simple, element_bytes=size, window=8),
        "input": Input(_SCALAR, memory=simple, element_bytes=4, window=8, tokens=32),
        "random store": RandomStore(_SCALAR, layout, memory=simple, element_bytes=size),
        "random store without acknowledgements": RandomStore(_SCALAR, layout, memory=simple, element_bytes=size,
                                                             acknowledges=False),
        "flat_map affine_addresses": FlatMap(fn.affine_addresses((1,)), _SCALAR),
        "flat_map address_range": FlatMap(fn.address_range(), BeatLayout(64)),
        "flat_map counter": FlatMap(fn.counter(), _SCALAR),
        "store": Store(layout, memory=simple, element_bytes=size),
        "hbm, simple": _memory(simple, size),
        "hbm, banked": _memory(banked, size),
    }
    units |= {f"map {name}": _unit(Map, function, types, tile) for name, function, types in _mapped(tile)}
    units |= {f"accum {name}": _unit(Accum, function, types, tile) for name, function, types in _folded(tile)}
    units |= {"accum add, 4 tiles": _unit(Accum, fn.add(), (Tile(tile, tile, bf16),), tile, entries=4)}
    units |= {"scan add": _unit(Scan, fn.add(), (Tile(tile, tile, bf16),), tile)}
    units |= {f"{kind.kind} add, dynamic rows": _unit(kind, fn.add(), (Tile(tile, tile, bf16),) * operands, tile,
                                                      masked=True)
              for kind, operands in ((Map, 2), (Accum, 1), (Scan, 1))}
    return units


def _memory(memory: MemoryConfig, size: int) -> MemorySystem:
    return MemorySystem(memory, [(size, 8), (4, 8)], [size])


def _mapped(tile: int) -> list[tuple[str, Function, tuple[Tile | Selector, ...]]]:
    """Functions under `map`."""
    square = {dtype: Tile(tile, tile, dtype) for dtype in (bf16, fp32, int8, int32)}
    found: list[tuple[str, Function, tuple[Tile | Selector, ...]]] = [
        ("matmul", fn.matmul(), (square[bf16],) * 2),
        ("matmul transpose_b", fn.matmul(transpose_b=True), (square[bf16],) * 2),
        ("matmul int8", fn.matmul(), (square[int8],) * 2),
    ]
    for function in (fn.add(), fn.sub(), fn.mul(), fn.max()):
        found += [(f"{function.name}{'' if dtype is bf16 else f' {dtype}'}", function, (square[dtype],) * 2)
                  for dtype in (bf16, fp32, int32)]
    found += [("div", fn.div(), (square[bf16],) * 2)]
    found += [(function.name, function, (square[bf16],)) for function in (
        fn.exp(), fn.silu(), fn.gelu(), fn.sigmoid(), fn.rsqrt(), fn.reciprocal(), fn.row_sum(), fn.row_max(),
        fn.scale(constant=0.5), fn.last())]
    found += [("selector_index", fn.selector_index(), (Selector(8),))]
    found += [(f"cast {source} to {target}", fn.cast(dtype=str(target)), (square[source],))
              for source, target in ((bf16, fp32), (fp32, bf16), (int32, bf16), (bf16, int8))]
    return found


def _folded(tile: int) -> list[tuple[str, Function, tuple[Tile, ...]]]:
    """Functions under `accum`."""
    return [
        ("matmul", fn.matmul(), (Tile(tile, tile, bf16),) * 2),
        ("matmul int8", fn.matmul(), (Tile(tile, tile, int8),) * 2),
        ("add", fn.add(), (Tile(tile, tile, bf16),)),
        ("mul", fn.mul(), (Tile(tile, tile, bf16),)),
        ("max", fn.max(), (Tile(tile, tile, bf16),)),
        ("row_max", fn.row_max(), (Tile(tile, tile, bf16),)),
        ("row_sum", fn.row_sum(), (Tile(tile, tile, bf16),)),
        ("last", fn.last(), (Tile(tile, tile, bf16),)),
    ]


def _unit(kind: Any, function: Function, types: tuple[Tile | Selector, ...], tile: int, **more: int) -> Unit:
    result = function.result_type(*types) if kind is Map else function.state_type(*types)
    return kind(function, types, result, tile=tile, rows_per_cycle=1, k_per_cycle=tile, **more)
