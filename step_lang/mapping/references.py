"""Where the references of a bufferize go: who reads its buffers, and how many uses each reference has.

Whoever gets a reference holds one of its buffer's uses, and the last use frees the buffer. Where a stream of references
forks, each branch's uses add up; a streamify ends one use. A router makes of the one that it holds as many as it hands
on, which only it can count, so it tells the scratchpad: a partition those of the outputs that its selector names, an
expand those of each copy. Bufferizes whose references meet are a family: each reader and router of one has a port at
the scratchpads of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from step_lang.errors import UnknownFunction
from step_lang.operator import Operator
from step_lang.stream import Stream
from step_lang.types import BufferRef

__all__ = ["Family", "family_of", "most_uses", "uses"]

_ROUTERS = ("partition", "expand")
"""Operators that hand references on as often as other data say."""

_PASSING = (*_ROUTERS, "reassemble", "eager_merge", "flatten", "promote", "repeat")
"""Operators that hand references on as they are."""


def _ways(stream: Stream) -> Iterator[tuple[Operator, int]]:
    """Each use of ``stream`` by an operator and port that reads or hands on what it refers to."""
    for op in dict.fromkeys(stream.consumers):
        for port, its in enumerate(op.inputs):
            # At other ports a reference only says that there is an element: as a pass request it ends there.
            if its is stream and (op.kind in _PASSING or op.kind == "streamify") and (
                    port == 0 or op.kind not in ("streamify", "expand")):
                yield op, port


def _reached(stream: Stream, found: list[Operator]) -> list[Operator]:
    """``found``, and those that can get the references of ``stream`` too, in the order of a walk along the streams."""
    for op, _ in _ways(stream):
        if op not in found:
            found.append(op)
            if op.kind != "streamify":
                for output in op.outputs:
                    if isinstance(output.type, BufferRef):
                        _reached(output, found)
    return found


def uses(stream: Stream) -> int:
    """Uses that a reference on ``stream`` has."""
    return sum(1 if op.kind in ("streamify", *_ROUTERS) else _factor(op) * uses(op.outputs[0])
               for op, _ in _ways(stream))


def most_uses(stream: Stream) -> int:
    """The most uses that the references to one buffer can have at a time, whatever the selectors; of what an expand
    hands on, those of the value that it keeps and of one copy."""
    total = 0
    for op, _ in _ways(stream):
        if op.kind == "streamify":
            total += 1
        elif op.kind == "partition":
            total += max(1, sum(most_uses(output) for output in op.outputs))
        elif op.kind == "expand":
            total += 1 + most_uses(op.outputs[0])
        else:
            total += _factor(op) * most_uses(op.outputs[0])
    return total


def _factor(op: Operator) -> int:
    return op.n if op.kind == "repeat" else 1  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Family:
    """Bufferizes whose references meet, in program order, with all that read or route their references."""

    bufferizes: tuple[Operator, ...]
    readers: tuple[Operator, ...]
    routers: tuple[Operator, ...]

    @property
    def copies(self) -> bool:
        """Whether references are copied as often as a stream says, so that only links bound their uses."""
        return any(op.kind == "expand" for op in self.routers)


def family_of(stream: Stream) -> Family:
    """The family of the bufferizes whose references are on ``stream``. Raises `UnknownFunction` where references pass
    an operator that is not known to hand them on as they are."""
    found = _bufferizes(stream)
    while True:
        reached: list[Operator] = []
        for bufferize in found:
            _reached(bufferize.output, reached)
        more = [b for op in reached for its in _handed(op) for b in _bufferizes(its) if b not in found]
        if not more:
            break
        found += dict.fromkeys(more)
    order = found[0].program.operators.index
    return Family(tuple(sorted(found, key=order)), tuple(op for op in reached if op.kind == "streamify"),
                  tuple(op for op in reached if op.kind in _ROUTERS))


def _handed(op: Operator) -> list[Stream]:
    """Inputs whose references ``op`` reads or hands on."""
    if op.kind in ("streamify", "expand"):
        return op.inputs[:1]
    return [stream for stream in op.inputs if isinstance(stream.type, BufferRef)]


def _bufferizes(stream: Stream) -> list[Operator]:
    """Where the references on ``stream`` come from."""
    found: list[Operator] = []
    todo = [stream]
    while todo:
        its = todo.pop(0)
        producer = its.producer
        if producer.kind == "bufferize":
            found += [producer] if producer not in found else []
        elif producer.kind in _PASSING:
            todo += _handed(producer)
        else:
            raise UnknownFunction(
                f"references that pass {producer.kind} '{producer.name}' vs through {', '.join(_PASSING)} only, by "
                "which their uses can be counted", operator=next(iter(its.consumers), producer),
                fix="hand references on by those only, or bufferize behind it")
    return found
