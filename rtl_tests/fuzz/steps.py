"""What random programs are made of: sources of streams, and steps that make new streams of those that there are.

A step gives the new streams that are still to be used. One that does not fit raises `Unfit` or any `StepError`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from examples.data import random_tensor
from step_lang import Selector, Stream, Tile, TokenStream, bf16, fn, fp32, int8, int32, ops, ragged, scalar, u32
from step_lang.dims import is_static
from step_lang.types import BufferRef, Tuple, bool_

from .kitchen import MOST, Kitchen
from .recipe import Choices, Unfit

__all__ = ["OFTEN", "SOURCES", "STEPS", "store"]


# Sources


def _scalars(k: Kitchen, choose: Choices) -> list[Stream]:
    """A stream of numbers of one to three dimensions, the inner ones ragged, some of them empty."""
    rank, dtype = choose.number(2), choose.one_of((int32, u32, u32, bf16, fp32, int8, bool_))
    limit = {"u32": 4, "bool": 2}.get(dtype.name, 100)

    def level(depth: int) -> list:
        size = choose.number(3)
        return [choose.number(limit - 1) if depth == 0 else level(depth - 1)
                for _ in range(max(1, size) if 0 < depth < rank else size)]

    if rank and choose.yes(3):
        sizes = [choose.number(3, 1) for _ in range(rank + 1)]
        grid = np.array([choose.number(limit - 1) for _ in range(int(np.prod(sizes)))]).reshape(sizes)
        return [k.input(scalar(dtype), sizes, grid.tolist())]
    values = level(rank)
    name = k.name("r")
    shape = (len(values), *(ragged(f"{name}_{i}") for i in range(rank)))
    return [k.input(scalar(dtype), shape, TokenStream.from_nested(values, rank, scalar(dtype)))]


def _load(k: Kitchen, choose: Choices) -> list[Stream]:
    """Tiles of one or two physical tiles a side, or one row or column of them, read in order or by a view."""
    rows, cols = (choose.one_of((k.tile, 1, 2 * k.tile)) for _ in range(2))
    grid = choose.number(3, 1), choose.number(2, 1)
    dtype = choose.one_of((bf16, int32, fp32, int8, u32))
    size = rows * grid[0], cols * grid[1]
    view: dict[str, Any] = {}
    if choose.yes():
        shape = [choose.number(3, 1) for _ in range(choose.number(2, 1))]
        view = {"shape": shape, "stride": [choose.number((grid[0] * grid[1] - 1) // (2 * n)) for n in shape]}
    ref = k.pick(choose) if k.live and choose.yes(3) else None
    tensor = k.tensor(size, dtype, special=choose.yes(3))
    return [ops.linear_offchip_load(tensor, (rows, cols), ref=ref, **view)]


def _tiles(k: Kitchen, choose: Choices) -> list[Stream]:
    """Tiles that the host gives, in vectors of any length."""
    rows, cols = (choose.one_of((k.tile, 1, 2 * k.tile)) for _ in range(2))
    type_ = Tile(rows, cols, choose.one_of((bf16, int8, fp32, int32, u32)))
    counts = [choose.number(3) for _ in range(choose.number(3))]
    name = k.name("v")
    values = [[random_tensor(f"{name}_{i}_{j}", (rows, cols), type_.dtype) for j in range(n)]
              for i, n in enumerate(counts)]
    return [k.input(type_, (len(counts), ragged(f"{name}_0")), TokenStream.from_nested(values, 1, type_))]


def _selectors(k: Kitchen, choose: Choices) -> list[Stream]:
    """One-hot selectors; as numbers, or to be routed."""
    bits = choose.number(4, 1)
    chosen = [{choose.number(bits - 1)} for _ in range(choose.number(5))]
    stream = k.input(Selector(bits), (len(chosen),), chosen)
    return [stream] if choose.yes(3) else [ops.map(fn.selector_index(), stream)]


def _gather(k: Kitchen, choose: Choices) -> list[Stream]:
    """Tiles at random addresses."""
    rows, cols, count = choose.one_of((k.tile, 1)), choose.one_of((k.tile, 1, 2 * k.tile)), choose.number(4, 1)
    tensor = k.tensor((rows * count, cols), choose.one_of((bf16, int32, fp32, int8, u32)))
    values = [[choose.number(count - 1) for _ in range(choose.number(3))] for _ in range(choose.number(3))]
    shape = (len(values), ragged(k.name("r")))
    addresses = k.input(scalar(u32), shape, TokenStream.from_nested(values, 1, scalar(u32)))
    return [ops.random_offchip_load(addresses, tensor, (rows, cols))]


def store(k: Kitchen, stream: Stream, view: Choices | None = None) -> None:
    """Store what is left over, by a view of ``view``'s choice; what was not stored stays zero."""
    if isinstance(stream.type, Selector):
        stream = ops.partition(stream, k.selectors(Choices((1,) * MOST), stream, 0, 1), rank=0, num_consumers=1)[0]
        stream = ops.linear_offchip_load(k.tensor((1, 1), int32), (1, 1), ref=stream, shape=(1,), stride=(1,))
    if isinstance(stream.type, BufferRef):
        stream = ops.streamify(stream, repeat=1)
    if isinstance(stream.type, Tuple):
        stream = ops.flat_map(fn.address_range(), stream)
    if isinstance(stream.type, Tile) and not is_static(stream.type.rows):
        stream = ops.flat_map(fn.split_rows(rows=1, drop_padding=True), stream)
    if stream.type == scalar(bool_):
        stream = ops.map(fn.cast(dtype="int32"), stream)
    k.taste()
    type_ = stream.type
    assert isinstance(type_, Tile), f"{stream.name} of {type_} has no use"
    rows = int(type_.rows)
    static = all(map(is_static, stream.shape))
    count = max(1, int(np.prod(stream.shape)) if static else 3 * MOST)
    if view is None or not static or stream.rank == 0 or 0 in stream.shape:
        tensor = k.program.tensor(k.name("y"), (rows * count, int(type_.cols)), type_.dtype)
        ops.linear_offchip_store(stream, tensor)
        return
    # The places of the dimensions in another order, and perhaps further apart.
    order = sorted(range(stream.rank + 1), key=lambda i: view.number(11))
    stride, step = [0] * len(order), view.number(2, 1)
    for i in order:
        stride[i] = step
        step *= int(stream.shape[i])
    tensor = k.program.tensor(k.name("y"), (rows * step, int(type_.cols)), type_.dtype)
    ops.linear_offchip_store(stream, tensor, shape=tuple(map(int, stream.shape)), stride=tuple(stride))


# Steps: each gives the new live streams


def _is_tile(stream: Stream) -> bool:
    return isinstance(stream.type, Tile)


def _is_whole(stream: Stream) -> bool:
    """Tiles whose size is known."""
    return isinstance(stream.type, Tile) and is_static(stream.type.rows)


def _moves(stream: Stream) -> bool:
    """What routing takes."""
    return isinstance(stream.type, (Tile, BufferRef))


def _is_scalar(stream: Stream) -> bool:
    return isinstance(stream.type, Tile) and stream.type == scalar(stream.type.dtype)


def _is_float(stream: Stream) -> bool:
    return isinstance(stream.type, Tile) and stream.type.dtype.is_float


def _is_number(stream: Stream) -> bool:
    return stream.type == scalar(u32)


def _pay(choose: Choices) -> int | None:
    """compute_bw."""
    return choose.one_of((None, None, 1, 16))


def _unary(k: Kitchen, choose: Choices) -> list[Stream]:
    function = choose.one_of((lambda: fn.scale(constant=2), fn.exp, fn.silu, fn.gelu, fn.sigmoid, fn.rsqrt,
                              fn.reciprocal, lambda: fn.scale(constant=-0.3), fn.last, lambda: fn.scale(constant=-3)))()
    fits = _is_tile if function.name == "last" or function.params.get("constant") == -3 else (
        _is_float if function.name == "scale" else _is_bf16)
    found = [stream for stream in k.live if fits(stream)]
    if not found:  # of another type
        return [ops.map(function, ops.map(fn.cast(dtype="bf16"), k.pick(choose, _is_tile)))]
    return [ops.map(function, k.pick(choose, fits), compute_bw=_pay(choose))]


def _reduce(k: Kitchen, choose: Choices) -> list[Stream]:
    return [ops.map(choose.one_of((fn.row_sum, fn.row_max))(), k.pick(choose, _is_tile))]


def _cast(k: Kitchen, choose: Choices) -> list[Stream]:
    dtype = choose.one_of(("fp32", "bf16", "int32", "int8", "u32"))
    return [ops.map(fn.cast(dtype=dtype), k.pick(choose, _is_tile))]


def _binary(k: Kitchen, choose: Choices) -> list[Stream]:
    function = choose.one_of((fn.add, fn.sub, fn.mul, fn.max, fn.div))
    stream = k.pick(choose, _is_tile)
    if function is fn.div and not _is_bf16(stream):
        stream = ops.map(fn.cast(dtype="bf16"), stream)
    same = [s for s in k.live if s is not stream and s.type == stream.type and s.shape == stream.shape]
    if same and choose.yes():
        other = choose.one_of(same)
    else:
        other = _operand(k, choose, stream)
    pair = (other, stream) if choose.yes(3) else (stream, other)
    return [ops.map(function(), *pair, compute_bw=_pay(choose))]


def _operand(k: Kitchen, choose: Choices, stream: Stream) -> Stream:
    """The stream itself, or a tile, a row, a column or a number for each of its tiles."""
    assert isinstance(stream.type, Tile)
    rows = int(stream.type.rows) if is_static(stream.type.rows) else 1
    kind = choose.number(4)
    if kind == 0:
        return stream
    shape = (1 if kind in (2, 4) else rows, 1 if kind in (3, 4) else int(stream.type.cols))
    dtype = stream.type.dtype
    loaded = ops.linear_offchip_load(k.tensor(shape, dtype, special=choose.yes(3)), shape, ref=stream, shape=(1,),
                                     stride=(1,))
    return ops.flatten(loaded, 0, 1).assume(stream.shape)


def _is_bf16(stream: Stream) -> bool:
    return isinstance(stream.type, Tile) and stream.type.dtype == bf16


def _weights(k: Kitchen, choose: Choices, stream: Stream) -> tuple[Stream, bool]:
    """A tile that the tiles of ``stream`` can be multiplied by, for each of them, and whether it is transposed."""
    assert isinstance(stream.type, Tile)
    shape = int(stream.type.cols), choose.one_of((k.tile, 1, 2 * k.tile))
    transposed = choose.yes()
    shape = shape[::-1] if transposed else shape
    loaded = ops.linear_offchip_load(k.tensor(shape, stream.type.dtype, special=choose.yes(4)), shape, ref=stream,
                                     shape=(1,), stride=(1,))
    return ops.flatten(loaded, 0, 1).assume(stream.shape), transposed


def _matmul(k: Kitchen, choose: Choices) -> list[Stream]:
    stream = k.pick(choose, lambda s: isinstance(s.type, Tile) and s.type.dtype in (bf16, int8) and not _is_scalar(s))
    weights, transposed = _weights(k, choose, stream)
    function = fn.matmul(transpose_b=transposed)
    if stream.rank and choose.yes():
        return [_folded(ops.accum(function, stream, weights, rank=choose.number(stream.rank, 1)))]
    return [ops.map(function, stream, weights)]


def _folded(result: Stream) -> Stream:
    # An empty vector between is an element of the result: a dimension of its own.
    return result.assume([d if isinstance(d, int) else ragged(f"q_{result.name}_{i}")
                          for i, d in enumerate(result.shape)])


def _accum(k: Kitchen, choose: Choices) -> list[Stream]:
    stream = k.pick(choose, lambda s: _is_tile(s) and s.rank > 0)
    function = choose.one_of((fn.add, fn.max, fn.mul, fn.row_max, fn.row_sum, fn.last))
    rank = choose.number(stream.rank, 1)
    init = choose.one_of((None, None, 1, 3))
    return [_folded(ops.accum(function(), stream, rank=rank, init=init, compute_bw=_pay(choose)))]


def _scan(k: Kitchen, choose: Choices) -> list[Stream]:
    stream = k.pick(choose, lambda s: _is_tile(s) and s.rank > 0)
    function = choose.one_of((fn.add, fn.max, fn.mul, fn.last))
    rank = choose.number(stream.rank, 1)
    return [ops.scan(function(), stream, rank=rank, init=choose.one_of((None, None, 2)), compute_bw=_pay(choose))]


def _flatten(k: Kitchen, choose: Choices) -> list[Stream]:
    stream = k.pick(choose, lambda s: s.rank > 0)
    low = choose.number(stream.rank - 1)
    return [ops.flatten(stream, low, choose.number(stream.rank, low + 1))]


def _reshape(k: Kitchen, choose: Choices) -> list[Stream]:
    stream = k.pick(choose, _is_tile)
    data, flags = ops.reshape(stream, choose.number(3, 1), dim=choose.one_of((0, 0, 1)),
                              pad=choose.one_of((1, None)))
    return [data, flags] if choose.yes(3) else [data]


def _promote(k: Kitchen, choose: Choices) -> list[Stream]:
    return [ops.promote(k.pick(choose))]


def _repeat(k: Kitchen, choose: Choices) -> list[Stream]:
    return [ops.repeat(k.pick(choose), choose.number(3, 1))]


def _expand(k: Kitchen, choose: Choices) -> list[Stream]:
    stream = k.pick(choose, lambda s: _is_tile(s) and s.rank > 0)
    rank = choose.number(stream.rank, 1)
    one = _folded(ops.accum(choose.one_of((fn.max, fn.last))(), stream, rank=rank))
    for _ in range(rank):
        one = ops.repeat(one, 1)
    return [ops.expand(one.assume((*stream.shape[:-rank], *(1,) * rank)), stream, rank=rank)]


def _ranges(k: Kitchen, choose: Choices) -> list[Stream]:
    """Pairs of numbers become ranges of addresses: the use of a tuple that hardware has."""
    start = k.pick(choose, _is_number) if any(map(_is_number, k.live)) else _counts(k, choose)
    count = k.pick(choose, lambda s: _is_number(s) and s.rank == start.rank) if start in k.live else start
    _require_small(k, count)
    pairs = ops.zip(start, count)
    return [pairs] if choose.yes(4) else [ops.flat_map(fn.address_range(stride=choose.one_of((1, 3))), pairs)]


def _counts(k: Kitchen, choose: Choices) -> Stream:
    """A vector of small numbers."""
    numbers = [choose.number(3) for _ in range(choose.number(4))]
    return k.input(scalar(u32), (len(numbers),), numbers)


def _require_small(k: Kitchen, stream: Stream) -> None:
    """Raise `Unfit` for counts that would make too many elements."""
    if int(np.asarray(k.values[stream.name].data, dtype=np.int64).sum()) > MOST:
        raise Unfit


def _references(k: Kitchen, choose: Choices) -> list[Stream]:
    """Buffers, for routing and shape operators to hand on."""
    stream = k.pick(choose, lambda s: _is_whole(s) and s.rank > 0)
    return [ops.bufferize(stream, rank=choose.number(stream.rank, 1))]


def _viewed(k: Kitchen, choose: Choices) -> list[Stream]:
    """Buffers read by an affine view; of rows of elements by columns, however many rows there are."""
    stream = k.pick(choose, lambda s: _is_whole(s) and s.rank > 0 and is_static(s.shape[-1]) and s.shape[-1] > 0)
    passes = choose.number(2, 1)
    if stream.rank > 1 and choose.yes():
        width = int(stream.shape[-1])
        return [ops.streamify(ops.bufferize(stream, rank=2), repeat=passes, shape=(width, None), stride=(1, width))]
    rank = 2 if stream.rank > 1 and is_static(stream.shape[-2]) and choose.yes() else 1
    size = int(np.prod(stream.shape[-rank:]))
    shape = [choose.number(3, 1) for _ in range(choose.number(2, 1))]
    stride = [choose.number(max(0, (size - 1) // (len(shape) * n))) for n in shape]
    return [ops.streamify(ops.bufferize(stream, rank=rank), repeat=passes, shape=tuple(shape), stride=tuple(stride))]


def _buffered(k: Kitchen, choose: Choices) -> list[Stream]:
    stream = k.pick(choose, _is_whole)
    stream = ops.promote(stream) if stream.rank < 1 else stream
    return [ops.streamify(ops.bufferize(stream, rank=choose.number(stream.rank, 1)), repeat=choose.number(3, 1))]


def _by_reference(k: Kitchen, choose: Choices) -> list[Stream]:
    """Passes over buffers for each element of another stream, or of one with a number of passes for each."""
    stream = k.pick(choose, lambda s: _is_whole(s) and s.rank > 0)
    buffers = ops.bufferize(stream, rank=choose.number(stream.rank, 1))
    k.taste()
    if buffers.name in k.unsteady or choose.yes():
        return [ops.streamify(buffers, ops.repeat(_ones(k, buffers), choose.number(3, 1)))]
    return [ops.streamify(buffers, _some_each(k, choose, buffers))]


def _some_each(k: Kitchen, choose: Choices, stream: Stream) -> Stream:
    """Up to three elements for each of ``stream``."""
    if stream.name in k.unsteady:
        raise Unfit
    tokens = k.values[stream.name]
    stop: list[int] = []
    empty: list[bool] = []
    for own, bare in zip(tokens.stop.tolist(), tokens.empty.tolist(), strict=True):
        count = 0 if bare else choose.number(3)
        stop += [0] * max(0, count - 1) + [own + 1]
        empty += [False] * count if count else [True]
    data = np.ones((len(stop) - sum(empty), 1, 1), dtype=np.uint32)
    return k.input(scalar(u32), (*stream.shape, ragged(k.name("r"))), TokenStream(stream.rank + 1, stop, empty, data))


def _copied_buffers(k: Kitchen, choose: Choices) -> list[Stream]:
    """References as often as another stream says, to one reader or two."""
    stream = k.pick(choose, lambda s: _is_whole(s) and s.rank > 0)
    buffers = ops.bufferize(stream, rank=choose.number(stream.rank, 1))
    k.taste()
    copies = ops.expand(ops.repeat(buffers, 1), _some_each(k, choose, buffers), rank=1)
    return [ops.streamify(copies, repeat=choose.number(2, 1)) for _ in range(choose.number(2, 1))]


def _met_buffers(k: Kitchen, choose: Choices) -> list[Stream]:
    """Buffers of two or three bufferizes in one stream, to one reader or to one for each."""
    stream = k.pick(choose, lambda s: _is_whole(s) and s.rank > 0)
    streams = [stream] + [k.pick(choose, lambda s: s.type == stream.type and s.rank == stream.rank and _is_whole(s))
                          for _ in range(choose.number(2, 1))]
    inner = choose.number(stream.rank, 1)
    merged, sources = ops.eager_merge([ops.bufferize(each, rank=inner) for each in streams])
    if choose.yes():
        return [ops.streamify(part, repeat=1) for part in ops.partition(merged, sources, rank=merged.rank)]
    return [ops.streamify(merged, repeat=choose.number(2, 1))]


def _routed_buffers(k: Kitchen, choose: Choices) -> list[Stream]:
    """Buffers to two or three readers."""
    stream = k.pick(choose, lambda s: _is_whole(s) and s.rank > 0)
    buffers = ops.bufferize(stream, rank=choose.number(stream.rank, 1))
    k.taste()
    rank = choose.number(buffers.rank)
    parts = ops.partition(buffers, k.selectors(choose, buffers, rank, choose.number(3, 2)), rank=rank)
    return [ops.streamify(part, repeat=choose.number(2, 1)) for part in parts]


def _ones(k: Kitchen, stream: Stream) -> Stream:
    """A stream of ones of the structure of ``stream``."""
    if stream.name in k.unsteady:
        raise Unfit
    tokens = k.values[stream.name]
    data = np.ones((tokens.elements, 1, 1), dtype=np.uint32)
    return k.input(scalar(u32), stream.shape, TokenStream(tokens.rank, tokens.stop, tokens.empty, data))


def _count(k: Kitchen, choose: Choices) -> list[Stream]:
    """Numbers become counters, ranges or grids of addresses."""
    stream = k.pick(choose, _is_number) if any(map(_is_number, k.live)) else _counts(k, choose)
    _require_small(k, stream)
    function = choose.one_of((fn.counter(), fn.affine_addresses((2,), (1,)), fn.affine_addresses((1, 2), (0, 3)),
                              fn.affine_addresses((2, 1, 2), (5, 0, 1), scale=3, base=1)))
    return [ops.flat_map(function, stream)]


def _partition(k: Kitchen, choose: Choices) -> list[Stream]:
    """Chunks to two or three streams."""
    stream = k.pick(choose)
    rank, bits = choose.number(stream.rank), choose.number(3, 2)
    return list(ops.partition(stream, k.selectors(choose, stream, rank, bits), rank=rank))


def _there_and_back(k: Kitchen, choose: Choices) -> list[Stream]:
    """Chunks to two or three streams, something done to one of them, and back by the same selectors."""
    stream = k.pick(choose, _moves)
    rank, bits = choose.number(stream.rank), choose.number(3, 2)
    selector = k.selectors(choose, stream, rank, bits, some=rank > 0)
    parts = list(ops.partition(stream, selector, rank=rank))
    for i in range(bits):
        if choose.yes() and _is_tile(stream):
            parts[i] = ops.map(fn.max(), parts[i], parts[i])
    return [ops.reassemble(parts, selector, rank=rank)]


def _interleave(k: Kitchen, choose: Choices) -> list[Stream]:
    """Chunks of two streams, collected in groups that the host chooses, each of them once."""
    one = k.pick(choose, _moves)
    other = k.pick(choose, lambda s: s is not one and s.type == one.type and s.rank == one.rank)
    if {one.name, other.name} & k.unsteady:
        raise Unfit
    if one.rank > 1 and choose.yes(3):
        one, other = (ops.flatten(s, s.rank - 1, s.rank) for s in (one, other))
        k.taste()
    # A chunk of rank 0 is an element; above, one ends with the stop of the outermost dimension, or with the stream.
    left = [k.values[s.name].elements if s.rank == 0 else int((k.values[s.name].stop >= s.rank).sum())
            for s in (one, other)]
    groups: list[set[int]] = []
    while any(left):
        group = {i for i in range(2) if left[i] and choose.yes()} or {0 if left[0] else 1}
        for i in group:
            left[i] -= 1
        groups.append(group)
        if one.rank == 0 and choose.yes(4):
            groups.append(set())
    selector = k.input(Selector(2), (len(groups),), groups)
    return [ops.reassemble([one, other], selector, rank=one.rank)]


def _merge(k: Kitchen, choose: Choices) -> list[Stream]:
    """Two or three streams in order of arrival; parted again by the selectors of the merge, or these as numbers."""
    stream = k.pick(choose, _moves)
    other = k.pick(choose, lambda s: s.type == stream.type and s.rank == stream.rank)
    if other is stream and _is_tile(stream):
        other = ops.map(fn.max(), stream, stream)
    streams = [stream, other]
    parted = choose.yes()
    if choose.yes(3):
        streams.append(k.pick(choose, lambda s: s.type == stream.type and s.rank == stream.rank))
    data, sources = ops.eager_merge(streams)
    if parted:
        return [data, *ops.partition(data, sources, rank=data.rank)]
    if choose.yes():
        return [data, ops.map(fn.selector_index(), sources)]
    return [data]


def _merge_parts(k: Kitchen, choose: Choices) -> list[Stream]:
    """Chunks to two streams and together again as they come."""
    stream = k.pick(choose, _is_tile)
    rank = choose.number(stream.rank)
    parts = ops.partition(stream, k.selectors(choose, stream, rank, 2), rank=rank)
    if not all(map(is_static, stream.shape[stream.rank + 1 - rank:])):
        raise Unfit
    data, _ = ops.eager_merge(list(parts))
    return [data]


def _scatter(k: Kitchen, choose: Choices) -> list[Stream]:
    """Tiles to places that the host gives, with acknowledgements or without, for each or for chunks of them; read back
    behind these, where no place is given twice."""
    data = k.pick(choose, _is_whole)
    if data.name in k.unsteady:
        raise Unfit
    assert isinstance(data.type, Tile)
    tokens = k.values[data.name]
    inner = 0
    while inner < data.rank and is_static(data.shape[-1 - inner]) and data.shape[-1 - inner] > 0:
        inner += 1
    rank = min(choose.number(2), inner)
    places, back = max(1, tokens.elements) + choose.number(2), choose.yes()
    if back:
        order = sorted(range(places), key=lambda i: choose.number(11))[:tokens.elements]
    else:
        order = [choose.number(places - 1) for _ in range(tokens.elements)]
    rows, cols = int(data.type.rows), int(data.type.cols)
    tensor = k.tensor((rows * places, cols), data.type.dtype)
    given = np.array(order, dtype=np.uint32).reshape(-1, 1, 1)
    addresses = k.input(scalar(u32), data.shape, tokens.with_data(given))
    ack = ops.random_offchip_store(addresses, data, tensor, rank=rank)
    if not back:
        return [ack] if choose.yes() else []
    k.taste()
    ones = ops.map(fn.cast(dtype="u32"), ack)
    chunk = int(np.prod(data.shape[data.rank + 1 - rank:], dtype=int))
    again = k.input(scalar(u32), ack.shape, k.values[ack.name].with_data(given[chunk - 1::chunk]))
    return [ops.random_offchip_load(ops.map(fn.mul(), again, ones), tensor, (rows, cols))]


def _stored(k: Kitchen, choose: Choices) -> list[Stream]:
    """Stored through a view."""
    stream = k.pick(choose, lambda s: _is_whole(s) and all(map(is_static, s.shape)))
    store(k, stream, choose)
    return []


def _joined(k: Kitchen, choose: Choices) -> list[Stream]:
    """Tiles of a vector of static length joined, side by side or one below the other."""
    stream = k.pick(choose, lambda s: _is_whole(s) and not _is_scalar(s) and s.rank > 0 and is_static(s.shape[-1]))
    function = choose.one_of((fn.concat_rows, fn.concat_cols))
    return [ops.accum(function(), stream, rank=1)]


def _split(k: Kitchen, choose: Choices) -> list[Stream]:
    """Tiles split into rows, or into tiles of fewer rows."""
    stream = k.pick(choose, lambda s: _is_tile(s) and not _is_scalar(s))
    rows = choose.one_of((1, k.tile))
    return [ops.flat_map(fn.split_rows(rows=rows, drop_padding=rows == 1 or choose.yes()), stream)]


def _dynamic(k: Kitchen, choose: Choices) -> list[Stream]:
    """Tiles of dynamic rows: of each tile as many as the host says, or rows packed."""
    if choose.yes():
        rows = k.pick(choose, lambda s: isinstance(s.type, Tile) and s.type.rows == 1 and not _is_scalar(s))
        return [ops.accum(fn.concat_rows(), rows if rows.rank else ops.promote(rows), rank=1)]
    stream = k.pick(choose, lambda s: _is_whole(s) and not _is_scalar(s))
    if stream.name in k.unsteady:
        raise Unfit
    tokens = k.values[stream.name]
    assert isinstance(stream.type, Tile)
    counts = [choose.number(int(stream.type.rows)) for _ in range(tokens.elements)]
    rows = k.input(scalar(u32), stream.shape, tokens.with_data(np.array(counts, dtype=np.uint32).reshape(-1, 1, 1)))
    return [ops.map(fn.set_offset(padding=choose.yes()), stream, rows)]


def _loaded(k: Kitchen, choose: Choices) -> list[Stream]:
    return _load(k, choose)


def _packed(k: Kitchen, choose: Choices) -> list[Stream]:
    """Rows packed into tiles, of as many rows as there are or of a few with padding, something done to each tile, and
    split into rows again."""
    if choose.yes():
        rows = k.pick(choose, lambda s: isinstance(s.type, Tile) and s.type.rows == 1 and not _is_scalar(s))
    else:
        shape = choose.number(5, 1), choose.number(2, 1) * k.tile
        rows = ops.linear_offchip_load(k.tensor(shape, bf16), (1, shape[1]), shape=shape[:1], stride=(1,))
        if choose.yes():
            k.taste()
            rows = ops.partition(rows, k.selectors(choose, rows, 0, 1), rank=0, num_consumers=1)[0]
    flags = None
    if choose.yes():
        rows, flags = ops.reshape(rows, choose.number(2, 1) * k.tile, pad=0)
    elif rows.rank == 0:
        rows = ops.promote(rows)
    tiles = ops.accum(fn.concat_rows(), rows, rank=1)
    if choose.yes():
        tiles = ops.map(fn.max(), tiles, tiles)
    if choose.yes() and _is_float(tiles):
        tiles = ops.map(fn.mul(), tiles, ops.map(fn.cast(dtype=tiles.type.dtype.name), ops.map(fn.row_sum(), tiles)))
    if choose.yes() and _is_bf16(tiles):
        weights, transposed = _weights(k, choose, tiles)
        tiles = ops.map(fn.matmul(transpose_b=transposed), tiles, weights)
    if flags is not None:
        padding = ops.accum(fn.add(), ops.map(fn.cast(dtype="u32"), flags), rank=1)
        tiles = ops.map(fn.set_offset(padding=True), tiles, padding)
    return [ops.flat_map(fn.split_rows(rows=1, drop_padding=True), tiles)]


def _loop(k: Kitchen, choose: Choices) -> list[Stream]:
    """Numbers that go round a loop, one or two at a time, until so many have passed."""
    started = choose.number(2, 1)
    count = started + choose.number(4, 1)
    start = k.input(scalar(u32), (started,), [choose.number(2, 1) for _ in range(started)])
    control = k.input(Selector(2), (1, count), [[{0}] * started + [{1}] * (count - started)])
    keep = k.input(Selector(1), (1, count), [[{0}] * (count - started) + [set()] * started])
    back = ops.feedback(scalar(u32), (ragged(k.name("r")),))
    x = ops.accum(fn.add(), ops.reassemble([start, back], control, rank=0), rank=1)
    for _ in range(choose.number(2)):
        x = choose.one_of((
            lambda: ops.map(fn.add(), x, x),  # noqa: B023
            lambda: ops.accum(fn.add(), ops.repeat(x, 2), rank=1),  # noqa: B023
            lambda: ops.accum(fn.add(), ops.streamify(ops.bufferize(ops.repeat(x, 2), rank=1), repeat=2),  # noqa: B023
                              rank=2)))()
    (again,) = ops.partition(x, keep, rank=0, num_consumers=1)
    back.connect(again)
    return [ops.map(fn.max(), x, x)]


def _tile_loop(k: Kitchen, choose: Choices) -> list[Stream]:
    """Tiles that go round a loop."""
    started = choose.number(2, 1)
    count = started + choose.number(3, 1)
    rows, cols = choose.one_of((k.tile, 1)), choose.one_of((k.tile, 2 * k.tile))
    start = ops.linear_offchip_load(k.tensor((started * rows, cols), bf16), (rows, cols))
    start = ops.flatten(start, 0, 1)
    control = k.input(Selector(2), (1, count), [[{0}] * started + [{1}] * (count - started)])
    keep = k.input(Selector(1), (1, count), [[{0}] * (count - started) + [set()] * started])
    back = ops.feedback(start.type, (ragged(k.name("r")),))
    x = ops.accum(fn.add(), ops.reassemble([start, back], control, rank=0), rank=1)
    if choose.yes():
        x = ops.map(choose.one_of((lambda: fn.scale(constant=2), fn.silu))(), x)
    (again,) = ops.partition(x, keep, rank=0, num_consumers=1)
    back.connect(again)
    return [ops.map(fn.max(), x, x)]


def _dispatch(k: Kitchen, choose: Choices) -> list[Stream]:
    """Vectors of numbers to be summed, each given to whichever region has completed one (dynamic parallelization)."""
    requests, regions = choose.number(5, 1), choose.number(3, 1)
    first = min(requests, regions)
    lengths = [choose.number(3) for _ in range(requests)]
    values = [[choose.number(9) for _ in range(n)] for n in lengths]
    work = k.input(scalar(int32), (requests, ragged(k.name("r"))), values)
    start = k.input(Selector(regions), (first,), [{i} for i in range(first)])
    control = k.input(Selector(2), (requests,), [{0}] * first + [{1}] * (requests - first))
    keep = k.input(Selector(1), (requests,), [{0}] * (requests - first) + [set()] * first)
    free = ops.feedback(Selector(regions), (ragged(k.name("r")),))
    turns = ops.reassemble([start, free], control, rank=0).assume((requests, 1))
    parts = ops.partition(work, ops.flatten(turns, 0, 1), rank=1)
    sums = [ops.accum(fn.add(), ops.repeat(part, 2), rank=2) for part in parts]
    data, source = ops.eager_merge(sums)
    (again,) = ops.partition(source.assume((requests,)), keep, rank=0, num_consumers=1)
    free.connect(again)
    return [data]


Made = Callable[[Kitchen, Choices], list[Stream]]

SOURCES: dict[str, Made] = {
    "scalars": _scalars, "load": _load, "gather": _gather, "tiles": _tiles, "selectors": _selectors}
"""Sources by name."""

STEPS: dict[str, Made] = {
    "unary": _unary, "binary": _binary, "reduce": _reduce, "cast": _cast, "matmul": _matmul, "accum": _accum,
    "scan": _scan, "flatten": _flatten, "reshape": _reshape, "promote": _promote, "repeat": _repeat,
    "expand": _expand, "buffered": _buffered, "by_reference": _by_reference, "routed_buffers": _routed_buffers,
    "copied_buffers": _copied_buffers, "met_buffers": _met_buffers, "references": _references, "viewed": _viewed,
    "partition": _partition, "there_and_back": _there_and_back, "interleave": _interleave, "merge": _merge,
    "merge_parts": _merge_parts, "loaded": _loaded, "packed": _packed,
    "dynamic": _dynamic, "split": _split, "joined": _joined, "scatter": _scatter, "stored": _stored, "loop": _loop,
    "tile_loop": _tile_loop, "dispatch": _dispatch, "count": _count, "ranges": _ranges,
}
"""Steps by name."""

OFTEN = ("binary", "unary", "unary", "matmul", "scan", "accum", "packed", "dynamic", "routed_buffers",
         "there_and_back", "scatter", "ranges", "count")
"""Steps that are chosen twice as often."""
