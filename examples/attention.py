"""Attention of a batch of requests at decode, the paper's figures 14, 15, 16 and 21: each request has a KV cache of its
own length, and regions of the hardware that work on different requests at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from examples.data import random_tensor, selector_bits
from examples.models import sizes as sizes_of
from step_lang import Program, Selector, Stream, Tensor, bf16, fn, ops, ragged, scalar, u32
from step_lang.dims import Shape
from step_lang.errors import BadParameter

__all__ = ["SCHEDULES", "SMALL", "SWEEPS", "Memory", "Served", "build", "inputs", "known_schedule",
           "load_lengths", "random_lengths", "reference", "request_streams", "serve", "streams"]

SCHEDULES = ("coarse", "interleaved", "queued", "dynamic")

SMALL = {"queries": 8, "head_dim": 64}
"""Sizes where no model and nothing else is given: those of the paper's experiments."""

_PAPER = {"capacity": 6464, "kv_tile": 32, "regions": 4, "block": 16, "factor": 1, "compute_bw": 2048}

SWEEPS = {
    "schedules": [{"schedule": schedule} for schedule in SCHEDULES if schedule != "queued"],
    "fig14": [{"schedule": schedule, "batch": 64, **_PAPER} for schedule in SCHEDULES],
    "fig15": [{"schedule": schedule, "batch": 16, **_PAPER} for schedule in SCHEDULES],
}
"""Parameter sets by name for ``step-hw validate --sweep``. Those of the paper's figures, to which a trace of lengths
belongs, are too large for RTL."""

OLD, NEW = {0}, {1}
"""Selectors of ``order``: what is in the cache comes before what is new."""


@dataclass(frozen=True)
class Memory:
    """The tensors, queries of a request, tiles of the cache in rows, tiles of the cache that a request may have,
    FLOPs/cycle of an operator (None: the hardware's default); ``by_rows``: ``q`` and ``out`` are read and written one
    query at a time, as others of the program do that use them."""

    q: Tensor
    k_new: Tensor
    v_new: Tensor
    k_cache: Tensor
    v_cache: Tensor
    mask: Tensor
    out: Tensor
    queries: int
    kv_tile: int
    tiles: int
    compute_bw: int | None = None
    by_rows: bool = False

    @staticmethod
    def of(p: Program, requests: int, queries: int, dim: int, kv_tile: int, capacity: int,
           compute_bw: int | None, by_rows: bool = False) -> Memory:
        """The tensors of ``requests`` requests, declared. Raises `BadParameter` for a capacity without whole tiles."""
        if kv_tile < 1 or capacity < 1 or capacity % kv_tile:
            raise BadParameter(f"capacity: {capacity} vs a multiple of kv_tile {kv_tile}")
        return Memory(
            q=p.tensor("q", (requests * queries, dim), bf16),
            k_new=p.tensor("k_new", (requests, dim), bf16), v_new=p.tensor("v_new", (requests, dim), bf16),
            k_cache=p.tensor("k_cache", (requests * capacity, dim), bf16),
            v_cache=p.tensor("v_cache", (requests * capacity, dim), bf16),
            mask=p.tensor("mask", (capacity, kv_tile), bf16), out=p.tensor("out", (requests * queries, dim), bf16),
            queries=queries, kv_tile=kv_tile, tiles=capacity // kv_tile, compute_bw=compute_bw, by_rows=by_rows)

    @property
    def map(self) -> Callable[..., Stream]:
        return partial(ops.map, compute_bw=self.compute_bw)

    @property
    def accum(self) -> Callable[..., Stream]:
        return partial(ops.accum, compute_bw=self.compute_bw)


@dataclass(frozen=True)
class _Requests:
    """What a region is told of its requests ``[D]``: number, tokens in the cache, full tiles, rows of the last tile;
    and ``[D, 2]`` the order in which a tile, and the tiles, are put together. It is as much for a long request as for a
    short one, so that no request waits for its turn while another is told. ``query`` ``[D, 1]``: its
    queries, where they were loaded before it was known which region would serve it."""

    number: Stream
    length: Stream
    full: Stream
    rows: Stream
    order: Stream
    query: Stream | None = None


def build(batch: int = 16, regions: int = 4, schedule: str = "dynamic", queries: int | None = None,
          dim: int | None = None, kv_tile: int = 32, capacity: int = 512, ahead: int = 2, trace: str = "",
          factor: int = 16, block: int = 0, compute_bw: int | None = None, model: str = "") -> Program:
    """``out[batch * queries, dim]``: for each request, exp(q k^T) v over its tokens and the new one, each row divided
    by its sum; the new key and value are in the cache afterwards, rows behind them are zero.

    Parameters
    ----------
    schedule : which region serves a request. ``"coarse"``: blocks of requests; ``"interleaved"``: round robin;
        ``"queued"``: round robin too, but requests leave one queue in order, so that a region with a long one keeps
        the others from theirs;
        ``"dynamic"``: the first that has completed one, after a round-robin start with ``ahead`` requests for each:
        one in work, the others so that it need not wait.
    block : coarse: requests of a block; regions that are left without any are not built. 0: as many blocks as regions.
    model : whose KV head it is (``models.toml``): queries and dim that are not given are its, else those of `SMALL`.
    queries, dim : queries that share the KV head, and their size.
    kv_tile, capacity : tokens in a tile of the cache, and the most that a request may have, the new one included.
    compute_bw : FLOPs/cycle of each operator that computes; None: the hardware's default.
    trace, factor : lengths of requests (see `streams`); the program is the same for all.
    """
    sizes = sizes_of(model, {"queries": queries, "head_dim": dim}, SMALL)
    with Program(f"attention_{known_schedule(schedule)}") as p:
        memory = Memory.of(p, batch, sizes["queries"], sizes["head_dim"], kv_tile, capacity, compute_bw)
        completed = p.tensor("completed", (batch, 1), u32)
        served = serve(memory, batch, regions, schedule, ahead, block)
        ops.linear_offchip_store(served.done, completed, name="store_completed")
        served.close()
    return p


def known_schedule(schedule: str) -> str:
    """``schedule`` if it is one. Raises `BadParameter`."""
    if schedule not in SCHEDULES:
        raise BadParameter(f"schedule: {schedule!r} vs one of {', '.join(SCHEDULES)}")
    return schedule


@dataclass(frozen=True)
class Served:
    """``done``: the numbers of the ``requests``, each when it is complete; ``region``: which one completed it;
    ``free``: the feedback that the regions' next requests wait for, to be closed; None: there is none."""

    requests: int
    done: Stream
    region: Stream
    free: Any

    def close(self) -> None:
        """Lead what is completed back to where requests are given out, if the schedule is dynamic."""
        if self.free is not None:
            # Who has completed one is free for another, but for the last, to whom there is nothing to give.
            keep = ops.input_stream("keep", Selector(1), (self.requests,))
            self.free.connect(ops.partition(self.region.assume((self.requests,)), keep, rank=0, name="to_dispatch")[0])


def serve(memory: Memory, requests: int, regions: int, schedule: str, ahead: int = 2, block: int = 0,
          gate: Callable[[int, str], Stream] | None = None) -> Served:
    """The requests through the regions, inside of a program; parameters are those of `build`. ``gate(count, suffix)``:
    a stream ``[count]`` that a region's (dynamic: all) requests wait for, whose values do not matter."""
    if not 1 <= regions <= requests:
        raise BadParameter(f"regions: {regions} vs 1..{requests}, the requests")
    if ahead < 1:
        raise BadParameter(f"ahead: {ahead} vs at least 1 request for each region")
    if block and known_schedule(schedule) == "coarse" and not 0 < requests <= block * regions:
        raise BadParameter(f"block: {block} of {requests} requests vs {regions} regions, one block each",
                           fix="raise block, or leave it out")
    free = None
    if schedule == "dynamic":
        free = ops.feedback(Selector(regions), (ragged("free"),), name="free")
        parts = _split(_requests("", requests, gate), _turns(requests, regions, min(requests, regions * ahead), free))
    elif schedule == "queued":
        whole = _requests("", requests, gate)
        query = _queries("", whole, memory)
        parts = _split(replace(whole, query=query), ops.input_stream("turn", Selector(regions), (requests,)))
    else:
        parts = [_requests(f"{r}", len(mine), gate)
                 for r, mine in enumerate(_shares(schedule, requests, regions, block))]
    finished = [_region(r, part, memory) for r, part in enumerate(parts)]
    done, region = ops.eager_merge(finished, name="completions")
    return Served(requests, done.assume((requests,)), region, free)


def _requests(suffix: str, count: int, gate: Callable[[int, str], Stream] | None) -> _Requests:
    """Requests as the host gives them."""
    number, length, full, rows = (ops.input_stream(f"{name}{suffix}", scalar(u32), (count,))
                                  for name in ("number", "length", "full", "rows"))
    if gate is not None:
        number = ops.expand(number, gate(count, suffix), rank=0, name=f"ready{suffix}")
    return _Requests(number, length, full, rows, ops.input_stream(f"order{suffix}", Selector(2), (count, 2)))


def _turns(batch: int, regions: int, started: int, free: Stream) -> Stream:
    """Whose turn it is: the first ``started`` times round robin, then of regions that get free."""
    start = ops.input_stream("start", Selector(regions), (started,))
    either = ops.input_stream("either", Selector(2), (batch,))
    turns = ops.reassemble([start, free], either, rank=0, name="turns").assume((batch, 1))
    return ops.flatten(turns, 0, 1, name="turn")


def _split(whole: _Requests, turn: Stream) -> list[_Requests]:
    """Requests to the region whose turn it is."""
    regions = turn.type.n  # type: ignore[union-attr]
    parts = {name: ops.partition(stream, turn, rank=stream.rank, name=f"{name}_to_regions")
             for name, stream in vars(whole).items() if stream is not None}
    return [_Requests(**{name: streams[r] for name, streams in parts.items()}) for r in range(regions)]


def _region(r: int, requests: _Requests, memory: Memory) -> Stream:
    """The numbers of the requests, each when all that is to be written for it has been."""
    count = requests.number.shape[0]
    # A request's cache begins at tile number * tiles; a tile's row of the mask is how many tokens its first one has
    # behind it.
    first = ops.flat_map(fn.affine_addresses(shape=(1,), scale=memory.tiles), requests.number, name=f"first{r}")
    used = ops.flat_map(fn.affine_addresses(shape=(1,), base=1), requests.full, name=f"used{r}")
    shown = _ranges(f"shown{r}", requests.length, used, -memory.kv_tile, (count, ragged(f"tiles{r}")))
    old = _ranges(f"old{r}", first, requests.full, 1, (count, ragged(f"full{r}")))
    end = ops.map(fn.add(), first, requests.full, name=f"end{r}")

    keys, keys_written = _cache(f"k{r}", memory.k_cache, memory.k_new, old, end, shown.shape, requests, memory)
    values, values_written = _cache(f"v{r}", memory.v_cache, memory.v_new, old, end, shown.shape, requests, memory)
    query = _queries(f"{r}", requests, memory) if requests.query is None else requests.query
    query = ops.expand(query, shown, rank=1, name=f"q_again{r}")
    mask = ops.random_offchip_load(shown, memory.mask, (1, memory.kv_tile), name=f"load_mask{r}")

    score = memory.map(fn.matmul(transpose_b=True), query, keys, name=f"qk{r}")
    power = memory.map(fn.exp(), memory.map(fn.cast(bf16), score, name=f"qk_cast{r}"), name=f"exp{r}")
    power = memory.map(fn.mul(), power, mask, name=f"masked{r}")
    weighted = memory.accum(fn.matmul(), power, values, rank=1, name=f"pv{r}")
    total = memory.accum(fn.row_sum(), power, rank=1, name=f"sum{r}")
    out = memory.map(fn.div(), memory.map(fn.cast(bf16), weighted, name=f"pv_cast{r}"),
                     memory.map(fn.cast(bf16), total, name=f"sum_cast{r}"), name=f"divide{r}")
    if memory.by_rows:
        out = ops.flat_map(fn.split_rows(rows=1), ops.repeat(out, 1, name=f"out_once{r}"), name=f"out_rows{r}")
        out_written = ops.random_offchip_store(_rows_of(f"out{r}", requests, memory), out, memory.out, rank=1,
                                               name=f"store_out{r}")
    else:
        out_written = ops.random_offchip_store(requests.number, out, memory.out, name=f"store_out{r}")
    done = requests.number
    for written in (keys_written, values_written, out_written):
        done = ops.expand(done, written, rank=0, name=f"{written.name}_done")
    return done


def _queries(suffix: str, requests: _Requests, memory: Memory) -> Stream:
    """The queries of each request, ``[D, 1]``: as they are repeated for its tiles."""
    size = memory.q.shape[1]
    if memory.by_rows:
        rows = ops.random_offchip_load(_rows_of(f"q{suffix}", requests, memory), memory.q, (1, size),
                                       name=f"load_q{suffix}")
        query = memory.accum(fn.concat_rows(), rows, rank=1, name=f"q_packed{suffix}")
    else:
        query = ops.random_offchip_load(requests.number, memory.q, (memory.queries, size), name=f"load_q{suffix}")
    return ops.repeat(query, 1, name=f"q_once{suffix}")


def _rows_of(name: str, requests: _Requests, memory: Memory) -> Stream:
    """Addresses ``[D, queries]`` of each request's rows of ``q`` and ``out``."""
    return ops.flat_map(fn.affine_addresses(shape=(memory.queries,), scale=memory.queries),
                        ops.repeat(requests.number, 1, name=f"{name}_number"), name=f"{name}_places")


def _ranges(name: str, start: Stream, count: Stream, stride: int, shape: Shape) -> Stream:
    """For each request its addresses ``[D, t]``: start, start + stride, .. ."""
    pairs = ops.repeat(ops.zip(start, count, name=f"{name}_range"), 1, name=f"{name}_ranges")
    return ops.flat_map(fn.address_range(stride=stride), pairs, name=name).assume(shape)


def _cache(name: str, cache: Tensor, new: Tensor, old: Stream, end: Stream, shape: Shape, requests: _Requests,
           memory: Memory) -> tuple[Stream, Stream]:
    """A request's tiles of ``cache`` (``shape`` is ``[D, t]``): those at ``old``, which are full, then that at ``end``
    with the row of ``new`` behind its valid ones; and the acknowledgement ``[D]`` that this one is back in memory."""
    count, size = requests.number.shape[0], cache.shape[1]
    tile = (memory.kv_tile, size)
    last = ops.random_offchip_load(end, cache, tile, name=f"load_{name}_last")
    valid = memory.map(fn.set_offset(), last, requests.rows, name=f"{name}_valid")
    rows = ops.flat_map(fn.split_rows(rows=1), ops.repeat(valid, 1, name=f"{name}_once"), name=f"{name}_rows")
    row = ops.random_offchip_load(requests.number, new, (1, size), name=f"load_new_{name}")
    row = ops.repeat(row, 1, name=f"new_{name}")
    both = ops.reassemble([rows, row], requests.order, rank=1, name=f"{name}_append")
    padded, _ = ops.reshape(ops.flatten(both, 0, 2, name=f"{name}_appended"), chunk=memory.kv_tile, pad=0,
                            name=f"{name}_padded")
    packed = memory.accum(fn.concat_rows(), padded.assume((count, 1, memory.kv_tile)), rank=1, name=f"{name}_packed")
    written = ops.random_offchip_store(end, ops.flatten(packed, 0, 1, name=f"{name}_back"), cache, name=f"store_{name}")
    full = ops.random_offchip_load(old, cache, tile, name=f"load_{name}")
    tiles = ops.reassemble([full, packed], requests.order, rank=1, name=f"{name}_join")
    return ops.flatten(tiles, 0, 2, name=f"{name}_tiles").assume(shape), written


def _shares(schedule: str, batch: int, regions: int, block: int) -> list[list[int]]:
    """Numbers of the requests of each region that has any."""
    if schedule == "interleaved":
        return [list(range(r, batch, regions)) for r in range(regions)]
    if block:
        return [list(range(first, min(first + block, batch))) for first in range(0, batch, block)]
    return [part.tolist() for part in np.array_split(np.arange(batch), regions)]


# Data


def _tile(program: Program) -> tuple[int, int]:
    """Tokens in a tile of the cache, and the most that a request may have."""
    return program.tensors["mask"].shape[1], program.tensors["mask"].shape[0]


def inputs(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    """Random queries, keys and values, the scores of order 1. All rows of the cache have contents; those behind a
    request's tokens are what earlier requests left there."""
    tensors = {name: random_tensor(name, program.tensors[name].shape, bf16, seed)
               for name in ("k_new", "v_new", "k_cache", "v_cache")}
    q = program.tensors["q"]
    tensors["q"] = random_tensor("q", q.shape, bf16, seed, q.shape[1] ** -0.5)
    kv_tile, capacity = _tile(program)
    # Row i is the mask of a tile whose first token has i tokens behind it.
    tensors["mask"] = (np.arange(kv_tile)[None] <= np.arange(capacity)[:, None]).astype(bf16.numpy)
    return tensors


def load_lengths(path: str | Path, batch: int, factor: int = 1) -> list[int]:
    """KV-cache lengths of a trace: a .npy file of at least ``batch`` integers, each divided by ``factor``, or a
    directory, whose first one it is.

    Raises `BadParameter`.
    """
    if Path(path).is_dir():
        path = next(iter(sorted(Path(path).glob("*.npy"))), Path(path))
    try:
        found = np.asarray(np.load(path))
    except (OSError, ValueError, EOFError) as error:
        raise BadParameter(f"trace of lengths: '{path}' vs a .npy file ({error})") from None
    if found.ndim != 1 or found.dtype.kind not in "iu" or len(found) < batch or factor < 1:
        raise BadParameter(f"trace of lengths '{path}': {found.dtype} of shape {list(found.shape)} over {factor} vs at "
                           f"least {batch} integers over at least 1")
    return [int(n) // factor for n in found[:batch]]


def streams(program: Program, seed: int = 0, trace: str = "", factor: int = 16) -> dict[str, Any]:
    """Requests of the lengths in ``trace`` divided by ``factor``, or of random ones, a few much longer than most."""
    batch, capacity = program.tensors["k_new"].shape[0], _tile(program)[1]
    return request_streams(program, load_lengths(trace, batch, factor) if trace
                           else random_lengths(batch, capacity, seed))


def random_lengths(batch: int, capacity: int, seed: int = 0) -> list[int]:
    """Lengths of ``batch`` requests where no trace says, a few much longer than most, all below ``capacity``."""
    made = np.random.default_rng([seed, batch]).lognormal(np.log(capacity / 8), 0.9, batch)
    return [min(int(n), capacity - 1) for n in made]


def request_streams(program: Program, lengths: Sequence[int]) -> dict[str, Any]:
    """Values of ``program``'s input streams for requests with ``lengths[i]`` tokens in their caches.

    Raises `BadParameter` for a length that leaves no room for one more token.
    """
    batch = program.tensors["k_new"].shape[0]
    kv_tile, capacity = _tile(program)
    if len(lengths) != batch or not all(0 <= n < capacity for n in lengths):
        raise BadParameter(f"lengths: {len(lengths)} of {min(lengths)}..{max(lengths)} vs {batch} of 0..{capacity - 1}",
                           fix="raise capacity, or divide the lengths by a larger factor")

    def told(suffix: str, numbers: Sequence[int]) -> dict[str, Any]:
        mine = [lengths[i] for i in numbers]
        return {f"number{suffix}": list(numbers), f"length{suffix}": mine,
                f"full{suffix}": [n // kv_tile for n in mine], f"rows{suffix}": [n % kv_tile for n in mine],
                f"order{suffix}": [[OLD, NEW]] * len(mine)}

    schedule = program.name.rpartition("_")[2]
    if schedule == "queued":
        regions = selector_bits(program, "turn")
        return {**told("", range(batch)), "turn": [{i % regions} for i in range(batch)]}
    if schedule != "dynamic":
        counts = [op.output.shape[0] for op in program.operators
                  if op.kind == "input_stream" and op.name.startswith("number")]
        numbers = np.arange(batch)
        shares = ([part.tolist() for part in np.split(numbers, np.cumsum(counts)[:-1])] if schedule == "coarse"
                  else [numbers[r::len(counts)].tolist() for r in range(len(counts))])
        return {name: value for r, numbers in enumerate(shares) for name, value in told(f"{r}", numbers).items()}
    started, regions = int(program.operator("start").output.shape[0]), selector_bits(program, "start")
    return {**told("", range(batch)), "start": [{i % regions} for i in range(started)],
            "either": [{0}] * started + [{1}] * (batch - started),
            "keep": [{0}] * (batch - started) + [set()] * started}


def reference(program: Program, tensors: dict[str, np.ndarray], lengths: Sequence[int]) -> np.ndarray:
    """``out`` in float64."""
    capacity = _tile(program)[1]
    q, k, v, k_new, v_new = (tensors[name].astype(np.float64) for name in ("q", "k_cache", "v_cache", "k_new", "v_new"))
    queries = len(q) // len(lengths)
    outputs = []
    for i, n in enumerate(lengths):
        keys = np.vstack([k[i * capacity:i * capacity + n], k_new[i:i + 1]])
        values = np.vstack([v[i * capacity:i * capacity + n], v_new[i:i + 1]])
        powers = np.exp(q[i * queries:(i + 1) * queries] @ keys.T)
        outputs.append(powers @ values / powers.sum(axis=1, keepdims=True))
    return np.vstack(outputs)
