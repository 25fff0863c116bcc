"""Running the operators of a cycle: token by token, as each one's inputs grow.

Outside of cycles the interpreter runs each operator once, on whole streams. The operators of a cycle are visited in
turn instead; each goes as far as the beats it has allow (`Operator.step`), until none can go on. Streams grow by
appending only, so the result does not depend on the order of visits, except where operators arbitrate: there, without
a trace, the order of visits (that of the program) with index order decides, which is deterministic too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import networkx as nx

from .errors import ArbitrationError, DeadlockError, StepError
from .operator import Operator
from .program import Program
from .tokens import TokenStream, concat_tokens, data_empty

if TYPE_CHECKING:
    from .interpreter import Context

__all__ = ["components", "run_cycle"]


def components(program: Program) -> list[list[Operator]]:
    """Operators grouped into strongly connected components, in the order in which these can run. A group of one is an
    operator outside of cycles."""
    order = program.topological()
    if not any(op.breaks_cycle for op in order):
        return [[op] for op in order]
    position = {id(op): i for i, op in enumerate(order)}
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(order)))
    graph.add_edges_from((position[id(s.producer)], position[id(op)]) for op in order for s in op.inputs)
    groups = nx.condensation(graph)
    members = nx.get_node_attributes(groups, "members")
    sequence = nx.lexicographical_topological_sort(groups, key=lambda group: min(members[group]))
    return [[order[i] for i in sorted(members[group])] for group in sequence]


class _Process:
    """An operator while its cycle runs: the beats of each input that it has not taken, and whether that ends there."""

    def __init__(self, operator: Operator):
        self.operator = operator
        self.pending = [TokenStream(s.rank, [], [], data_empty(s.type)) for s in operator.inputs]
        self.taken = [0] * len(operator.inputs)
        self.done = [False] * len(operator.inputs)
        self.outputs: list[list[TokenStream]] = [[] for _ in operator.outputs]
        self.beats = 0  # beats put out
        self.ended = False
        self.changed = True

    def receive(self, port: int, tokens: TokenStream | None) -> None:
        """More beats on an input; None for done."""
        self.changed = True
        if tokens is None:
            self.done[port] = True
        else:
            self.pending[port] = concat_tokens([self.pending[port], tokens]) if len(self.pending[port]) else tokens

    def left(self) -> list[int]:
        return [len(tokens) for tokens in self.pending]

    @property
    def complete(self) -> bool:
        return self.ended and all(self.done) and not any(self.left())

    def advance(self, ctx: Context) -> list[TokenStream]:
        """Go as far as the inputs allow; new beats of each output, [] for none."""
        self.changed = False
        try:
            taken, outputs = self.operator.step(ctx, self.pending, self.done)
        except StepError as error:
            if any(self.taken) and not isinstance(error, ArbitrationError):  # grants are counted from the first
                error.message += f" (in a loop: counted from beats {', '.join(map(str, self.taken))} of its inputs)"
            raise
        self.taken = [before + n for before, n in zip(self.taken, taken)]
        self.pending = [tokens.cut(n, len(tokens)) if n else tokens for tokens, n in zip(self.pending, taken)]
        for kept, tokens in zip(self.outputs, outputs):
            if len(tokens):
                kept.append(tokens)
                self.beats += len(tokens)
        return outputs


def run_cycle(ctx: Context, operators: list[Operator], values: Mapping[str, TokenStream],
              account: Callable[[Operator, Callable[[], Any]], Any]) -> dict[str, TokenStream]:
    """Run the operators of one cycle on the streams ``values`` from outside of it; their outputs by stream name.
    ``account(operator, step)`` calls ``step`` and books what it costs. Raises `DeadlockError` for a loop that stops
    before it is done."""
    processes = [_Process(op) for op in operators]
    by_operator = {id(op): process for op, process in zip(operators, processes)}
    users: dict[tuple[int, int], list[tuple[_Process, int]]] = {}
    for process in processes:
        for port, stream in enumerate(process.operator.inputs):
            if id(stream.producer) in by_operator:
                users.setdefault((id(stream.producer), stream.index), []).append((process, port))
            else:
                process.receive(port, values[stream.name])
                process.receive(port, None)
    while any(process.changed for process in processes):
        for process in processes:
            if not process.changed:
                continue
            op = process.operator
            for index, tokens in enumerate(account(op, partial(process.advance, ctx))):
                for user, port in users.get((id(op), index), []) if len(tokens) else []:
                    user.receive(port, tokens)
            if not process.ended and op.finished(process.left(), process.done):
                process.ended = True
                for index in range(len(op.outputs)):
                    for user, port in users.get((id(op), index), []):
                        user.receive(port, None)
    _check_complete(ctx, processes)
    return {stream.name: concat_tokens([TokenStream(stream.rank, [], [], data_empty(stream.type)), *parts])
            for process in processes for stream, parts in zip(process.operator.outputs, process.outputs)}


def _check_complete(ctx: Context, processes: list[_Process]) -> None:
    waiting = [process for process in processes if not process.complete]
    if not waiting:
        return
    for process in waiting:
        try:
            process.operator.stuck(ctx, process.pending, process.done)
        except StepError as error:
            raise error.at(process.operator) from None
    for process in waiting:
        if process.operator.breaks_cycle and not process.beats:
            raise DeadlockError(
                f"loop without an initial token: nothing ever came from '{process.operator.inputs[0].name}' vs "
                f"at least one token to start with; waiting: {_describe(waiting)}", operator=process.operator,
                fix="take the loop's first tokens from elsewhere (reassemble with a selector that names another stream "
                    "first)")
    first = next((p for p in waiting if p.operator.breaks_cycle), waiting[0])
    raise DeadlockError(f"loop stops after {first.beats} tokens vs running to the end; waiting: {_describe(waiting)}",
                        operator=first.operator, fix="make the loop's streams end: drop the last tokens (partition), "
                                                     "give as many selectors as there are tokens")


def _describe(waiting: list[_Process]) -> str:
    """What the operators of a stopped loop wait for."""
    words = []
    for process in waiting:
        starved = [stream.name for stream, tokens, done in zip(process.operator.inputs, process.pending, process.done)
                   if not done and not len(tokens)]
        if starved and not process.operator.breaks_cycle:
            words.append(f"{process.operator.name} for {' and '.join(starved)}")
    shown = words[:4] + [f"{len(words) - 4} more"] * (len(words) > 4)
    return ", ".join(shown) if shown else "nobody"
