"""Who is served next where several inputs wait: the rotating priority of the hardware, and traces of it.

SPEC section 2, ties and order. Order is timing, which the interpreter does not know. It takes the grants that hardware
or model recorded and replays them, or uses index order; either way it reports the grants it used.

A **trace** is a list of input numbers, one for each chunk that the operator let through, in that order:

* ``eager_merge``: the source of every chunk, so what its selector output says
* ``reassemble``: for each selector in turn, its selected inputs, each once, in the order in which they were served
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .errors import ArbitrationError, BadParameter

if TYPE_CHECKING:
    from .operator import Operator
    from .program import Program

__all__ = ["Arbiter", "check_traces", "rotating_priority"]


def rotating_priority(waiting: Sequence[bool], last: int | None) -> int | None:
    """The input that the rotating priority serves: the first that waits, searching upwards from the one after
    ``last`` (the input served last; None before the first grant, which searches from input 0), wrapping round.
    None if nobody waits.

    A grant lasts for one whole chunk. Each `reassemble` group is served by the same rule, its selected and not yet
    served inputs being those that can wait.
    """
    n = len(waiting)
    first = 0 if last is None else last + 1
    return next((i % n for i in range(first, first + n) if waiting[i % n]), None)


class Arbiter:
    """The grants of one operator in one run of the interpreter: from ``trace``, or in index order.

    ``grants`` are those given so far.
    """

    def __init__(self, operator: Operator, trace: Sequence[int] | None = None):
        self.operator = operator
        self.trace = None if trace is None else [_input_number(operator, i, value) for i, value in enumerate(trace)]
        self.grants: list[int] = []

    @property
    def wanted(self) -> int | None:
        """The input that the trace names next; None without trace or at its end."""
        if self.trace is None or len(self.grants) >= len(self.trace):
            return None
        return self.trace[len(self.grants)]

    def next(self, candidates: Sequence[int], what: str) -> int:
        """Grant one of ``candidates`` (ascending, at least one), which ``what`` describes in messages. Raises
        `ArbitrationError` where the trace ends or names another input."""
        choice = candidates[0]
        if self.trace is not None:
            position = len(self.grants)
            if position >= len(self.trace):
                raise ArbitrationError(
                    f"arbitration trace: ends after {position} grants vs {what} {_show(candidates)} to be served",
                    operator=self.operator, fix="give the grants of the same program, inputs and tensors")
            choice = self.trace[position]
            if choice not in candidates:
                raise ArbitrationError(
                    f"arbitration trace, grant {position}: input {choice} vs {what} {_show(candidates)}",
                    operator=self.operator, fix="give the grants of the same program, inputs and tensors")
        self.grants.append(choice)
        return choice

    def finish(self) -> None:
        """Raise `ArbitrationError` if the trace has grants left."""
        if self.trace is not None and len(self.trace) > len(self.grants):
            position = len(self.grants)
            raise ArbitrationError(
                f"arbitration trace, grant {position}: input {self.trace[position]} vs nothing left to serve "
                f"({len(self.trace)} grants given, {position} used)", operator=self.operator,
                fix="give the grants of the same program, inputs and tensors")


def _show(candidates: Sequence[int]) -> str:
    return ", ".join(map(str, candidates))


def _input_number(operator: Operator, position: int, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArbitrationError(f"arbitration trace, grant {position}: {value!r} vs the number of an input",
                               operator=operator)
    return int(value)


def check_traces(program: Program, traces: Any) -> None:
    """Raise `BadParameter` for a trace of an operator that does not exist or does not arbitrate."""
    known = [op.name for op in program.operators if op.arbitrates]
    for name in traces:
        if name not in known:
            raise BadParameter(f"arbitration trace of '{name}' vs the operators that arbitrate: "
                               f"{', '.join(known) or 'none'}", source=program.source)
