"""reassemble: for each selector one chunk of every input it names, as a group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Shape
from ..errors import BadParameter, MisalignedStreams, ShapeMismatch, StreamProtocolError
from ..operator import Operator
from ..stream import Stream
from ..tokens import TokenStream, concat_tokens, data_empty
from ..types import Type
from ._chunks import Chunks, check_selector, common_inner, common_type, spread

__all__ = ["Reassemble", "reassemble"]


class Reassemble(Operator):
    """See `reassemble`. Inputs: the streams, then the selector."""

    kind = "reassemble"
    arbitrates = True

    def __init__(self, streams: Any, selector: Stream, rank: int | None, hollow: bool | None, name: str | None):
        self.rank: Any = rank
        self.hollow = hollow
        super().__init__([*(streams if isinstance(streams, (list, tuple)) else [streams]), selector], name)

    @property
    def streams(self) -> list[Stream]:
        return self.inputs[:-1]

    @property
    def selector(self) -> Stream:
        return self.inputs[-1]

    def infer(self) -> list[tuple[Type, Shape]]:
        if not self.streams:
            raise BadParameter("streams: 0 vs at least 1", operator=self)
        check_selector(self, self.selector, len(self.streams), "streams")
        self.rank = self.streams[0].rank if self.rank is None else self.positive("rank", self.rank, 0)
        for stream in self.streams:
            if stream.rank != self.rank:
                raise ShapeMismatch(f"rank of '{stream.name}': {stream.rank} vs {self.rank}, the chunks' rank",
                                    operator=self, fix="a rank-a stream of chunks has a + 1 dimensions")
        self.hollow = self.rank == 0 if self.hollow is None else bool(self.hollow)
        inner = common_inner(self, self.streams, (self.kind, self.name))
        group = self.program.fresh_ragged((self.kind, self.selector.name))
        return [(common_type(self, self.streams), (*self.selector.shape, group, *inner))]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        *streams, selector = inputs
        chunks = [Chunks(tokens, self.rank) for tokens in streams]
        self._check(selector, chunks)
        base = np.cumsum([0, *map(len, streams)])
        bare = base[-1]  # position of a bare beat behind all streams' beats, for groups without a chunk
        heads = [0] * len(streams)
        first: list[int] = []
        last: list[int] = []
        stops: list[int] = []  # of each chunk's last beat
        arbiter = ctx.arbiter(self)
        rows = iter(selector.data)
        for k, (s, empty) in enumerate(zip(selector.stop.tolist(), selector.empty.tolist())):
            due = [] if empty else np.flatnonzero(next(rows)).tolist()
            if not due:
                if not self.hollow and not empty:
                    raise StreamProtocolError(
                        f"selector beat {k} on '{self.selector.name}': no bit set vs at least one, whose chunk of rank "
                        f"{self.rank} closes the group", operator=self, fix="drop such groups before (partition)")
                first.append(bare)
                last.append(bare)
                stops.append(self.rank + 1 + s)
            while due:
                i = arbiter.next(due, f"selector beat {k}, whose inputs")
                due.remove(i)
                if heads[i] == len(chunks[i]):
                    raise MisalignedStreams(
                        f"selector beat {k} on '{self.selector.name}' names input {i} vs '{self.streams[i].name}', "
                        f"which ends after {heads[i]} chunks", operator=self,
                        fix="every stream has one chunk for each selector that names it")
                first.append(int(base[i] + chunks[i].first[heads[i]]))
                last.append(int(base[i] + chunks[i].last[heads[i]]))
                stops.append(self.rank if due else self.rank + 1 + s)
                heads[i] += 1
        for i, (head, found) in enumerate(zip(heads, chunks)):
            if head != len(found):
                raise MisalignedStreams(f"stream '{self.streams[i].name}' (input {i}): {len(found)} chunks vs {head} "
                                        f"that selectors on '{self.selector.name}' name", operator=self,
                                        fix="every stream has one chunk for each selector that names it")
        pool = concat_tokens([*streams, TokenStream(self.rank, [0], [True], data_empty(self.output.type))])
        out = pool.take(spread(np.array(first, dtype=np.int64), np.array(last, dtype=np.int64)), self.output.rank)
        stop = out.stop.astype(np.int64)
        ends = np.cumsum(np.array(last, dtype=np.int64) - np.array(first, dtype=np.int64) + 1) - 1
        stop[ends] = stops
        return [TokenStream(self.output.rank, stop, out.empty, out.data)]

    def _check(self, selector: TokenStream, chunks: Sequence[Chunks]) -> None:
        for i, found in enumerate(chunks):
            if found.rest:
                raise StreamProtocolError(f"stream '{self.streams[i].name}': ends {found.rest} beats into chunk "
                                          f"{len(found)} vs whole chunks of rank {self.rank}", operator=self)
        beyond = np.argwhere(selector.data[:, len(self.streams):])
        if len(beyond):
            k, bit = beyond[0].tolist()
            raise BadParameter(f"selector {k} on '{self.selector.name}': bit {len(self.streams) + bit} vs "
                               f"{len(self.streams)} streams", operator=self,
                               fix=f"select among 0..{len(self.streams) - 1}")

    def ready(self, inputs: Sequence[TokenStream], done: Sequence[bool]) -> list[int]:
        *streams, selector = inputs
        chunks = [Chunks(tokens, self.rank) for tokens in streams]
        needed = np.zeros(len(streams), dtype=np.int64)
        available = np.array([len(found) if not ends else 1 << 60 for found, ends in zip(chunks, done)])
        rows = iter(selector.data)
        groups = 0
        for empty in selector.empty.tolist():
            more = needed if empty else needed + next(rows)[:len(streams)]
            if (more > available).any():
                break
            needed = more
            groups += 1
        return [*(found.beats(min(int(n), len(found))) for found, n in zip(chunks, needed)), groups]

    def finished(self, left: Sequence[int], done: Sequence[bool]) -> bool:
        # Done leaves with the selector's: in a loop the streams may end only because this one has.
        return done[-1] and not left[-1]

    def describe(self) -> str:
        return f"rank {self.rank} from {len(self.streams)}"


def reassemble(streams: Sequence[Stream], selector: Stream, rank: int | None = None, *, hollow: bool | None = None,
               name: str | None = None) -> Stream:
    """For each selector, collect one chunk (a rank-a tensor) from every input whose bit is set, whole chunks in the
    order in which they arrive, as one group: the last element of its last chunk carries ``a + 1 + s``, s the selector's
    stop.

    Parameters
    ----------
    streams : of one type and of shapes ``[D^i, D_{a-1}..D_0]``.
    selector : any rank; one bit for each stream.
    rank : a, the streams' rank; given, it is checked.
    hollow : whether a selector without a bit leaves a bare stop, which says that the group is empty; None: where a = 0.
        Where a >= 1 that stop does not say which dimension is 0; lowering, which adds static dimensions, knows.

    Output ``[selector's dims, D_sel, D_{a-1}..D_0]``, D_sel ragged (`Stream.assume` replaces it by what is known). No
    bit set leaves a bare ``S_{a+1+s}`` when a = 0 and is a `StreamProtocolError` when a >= 1 (see ``hollow``). The
    output is done when the selector is; a chunk left then is an error. Order of arrival: see `step_lang.arbitration`.

    Raises `ShapeMismatch`, `TypeMismatch`; at run time `MisalignedStreams`, `BadParameter`, `ArbitrationError`.
    """
    return Reassemble(streams, selector, rank, hollow, name).output
