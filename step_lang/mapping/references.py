"""Where the references of a bufferize go: who reads its buffers, and how many uses each reference has.

Whoever gets a reference holds one of its buffer's uses, and the last use frees the buffer. Where a stream of references
forks, each branch's uses add up; a streamify ends one use; a partition makes of the one that it holds those of the
outputs that its selector names, which only it can count, so it tells the scratchpad.
"""

from __future__ import annotations

from collections.abc import Iterator

from step_lang.errors import UnknownFunction
from step_lang.operator import Operator
from step_lang.stream import Stream
from step_lang.types import BufferRef

__all__ = ["bufferize_of", "most_uses", "readers", "routers", "uses"]

_PASSING = ("partition", "reassemble", "eager_merge", "flatten", "promote", "repeat")
"""Operators that hand references on as they are."""


def _ways(stream: Stream) -> Iterator[tuple[Operator, int]]:
    """Each use of ``stream`` by an operator and port that reads or hands on what it refers to."""
    for op in dict.fromkeys(stream.consumers):
        for port, its in enumerate(op.inputs):
            # At other ports a reference only says that there is an element: as a pass request it ends there.
            if its is stream and (op.kind in _PASSING or (op.kind == "streamify" and port == 0)):
                yield op, port


def _reached(stream: Stream, kind: str) -> list[Operator]:
    found: list[Operator] = []
    for op, _ in _ways(stream):
        found += [op] if op.kind == kind and op not in found else []
        if op.kind != "streamify":
            for output in op.outputs:
                if isinstance(output.type, BufferRef):
                    found += [other for other in _reached(output, kind) if other not in found]
    return found


def readers(stream: Stream) -> list[Operator]:
    """Streamifies that can get the references of ``stream``, in program order of their streams."""
    return _reached(stream, "streamify")


def routers(stream: Stream) -> list[Operator]:
    """Partitions that can get the references of ``stream``."""
    return _reached(stream, "partition")


def uses(stream: Stream) -> int:
    """Uses that a reference on ``stream`` has."""
    return sum(1 if op.kind in ("streamify", "partition") else _factor(op) * uses(op.outputs[0])
               for op, _ in _ways(stream))


def most_uses(stream: Stream) -> int:
    """The most uses that the references to one buffer can have at a time, whatever the selectors."""
    total = 0
    for op, _ in _ways(stream):
        if op.kind == "streamify":
            total += 1
        elif op.kind == "partition":
            total += max(1, sum(most_uses(output) for output in op.outputs))
        else:
            total += _factor(op) * most_uses(op.outputs[0])
    return total


def _factor(op: Operator) -> int:
    return op.n if op.kind == "repeat" else 1  # type: ignore[attr-defined]


def bufferize_of(op: Operator) -> Operator:
    """The bufferize whose references reach ``op`` at its first port. Raises `UnknownFunction` where they come from
    several, or through an operator that copies them as often as other data say."""
    found: list[Operator] = []
    todo = [op.inputs[0]]
    while todo:
        producer = todo.pop(0).producer
        if producer.kind == "bufferize":
            found += [producer] if producer not in found else []
        elif producer.kind in _PASSING:
            todo += [stream for stream in producer.inputs if isinstance(stream.type, BufferRef)]
        else:
            raise UnknownFunction(
                f"references that pass {producer.kind} '{producer.name}' vs through {', '.join(_PASSING)} only, by "
                "which their uses can be counted", operator=op,
                fix="read each buffer as often as the other stream says by streamify(ref=...)")
    if len(found) > 1:
        raise UnknownFunction(
            "buffers of " + " and ".join(f"bufferize '{b.name}'" for b in found) + " vs those of one: each keeps its "
            "buffers in a scratchpad of its own, and a read port belongs to one", operator=op,
            fix="read each by its own streamify and merge what they give, or merge first and bufferize then")
    return found[0]
