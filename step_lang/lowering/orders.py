"""Chooses col or row order for every logical stream, so that as few streams as possible have to be re-laid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from step_lang.program import Program
from step_lang.stream import Stream

from .layout import Order

__all__ = ["Preferences", "choose_orders"]


@dataclass
class Preferences:
    """What an operator's rule says about the orders of its streams.

    ``same`` : groups of streams that share one order because the rule changes stops only, or works tile by tile
    ``votes`` : (stream, order): anything else costs a buffer
    """

    same: list[list[Stream]] = field(default_factory=list)
    votes: list[tuple[Stream, Order]] = field(default_factory=list)


def choose_orders(program: Program, preferences: Iterable[Preferences]) -> dict[str, Order]:
    """Order by stream name: each group takes the order most of its votes ask for, ``"col"`` where they are equal."""
    parent = {stream.name: stream.name for stream in program.streams}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    votes: list[tuple[Stream, Order]] = []
    for preference in preferences:
        for group in preference.same:
            for stream in group[1:]:
                parent[root(stream.name)] = root(group[0].name)
        votes += preference.votes
    balance = {name: 0 for name in parent}
    for stream, order in votes:
        balance[root(stream.name)] += 1 if order == "col" else -1
    return {name: "col" if balance[root(name)] >= 0 else "row" for name in parent}
