"""Timing rules of a DRAM channel, checked on a trace of commands; knows nothing of how a controller chooses.

Independent of ``step_hw.hbm.banked`` and of ``sim.banked``: rules are stated from command to command, in cycles.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from step_lang.memory_config import MemoryConfig

__all__ = ["RULES", "Command", "refresh_slack", "violations"]

RULES = (
    "tRCD", "tRP", "tRAS", "tRTP", "tWR", "tRRD", "tFAW", "tRFC", "tCCD", "tWTR", "bus", "tREFI",
    "bank open", "bank closed", "row", "one at a time",
)
"""Names that `violations` uses: the JEDEC timings, overlap on the data bus, and the state a command needs."""


@dataclass(frozen=True)
class Command:
    """One command: ``kind`` ACT, PRE, RD, WR, PREA (all banks) or REF; ``row`` of an ACT, RD or WR."""

    cycle: int
    kind: str
    bank: int = 0
    row: int = 0


def refresh_slack(memory: MemoryConfig) -> int:
    """Cycles from the time at which a refresh is due to the one in which it must have been given: the longest a bank
    can take to close, its precharge, and the same again for commands of the last cycle before."""
    closing = max(memory.tras, memory.trtp, memory.cwl + memory.bl + memory.twr)
    return closing + memory.trp + 4


class _Bank:
    def __init__(self):
        self.row: int | None = None
        self.at: dict[str, int] = {}


def violations(commands: Iterable[Command], memory: MemoryConfig, cycles: int) -> list[tuple[str, str]]:
    """(rule, message) of every breach in ``commands``, ordered by cycle, of a run of ``cycles`` cycles.

    Cycle 0 is the one from which refreshes are counted.
    """
    c, found = memory, []
    banks = [_Bank() for _ in range(c.banks)]
    acts: list[int] = []
    columns: list[Command] = []
    refreshes: list[int] = []
    rows_of: dict[int, int] = {}

    def need(rule: str, command: Command, since: int | None, cycles_apart: int, what: str) -> None:
        if since is not None and command.cycle - since < cycles_apart:
            found.append((rule, f"cycle {command.cycle}: {command.kind} of bank {command.bank} {command.cycle - since} "
                                f"cycles after {what} vs {rule}: {cycles_apart}"))

    def state(rule: str, command: Command, ok: bool, what: str) -> None:
        if not ok:
            found.append((rule, f"cycle {command.cycle}: {command.kind} of bank {command.bank}, {what}"))

    for command in commands:
        t, bank = command.cycle, banks[command.bank]
        last_ref = refreshes[-1] if refreshes else None
        need("tRFC", command, last_ref, c.trfc, "REF")
        if command.kind in ("RD", "WR"):
            state("bank open", command, bank.row is not None, "which is closed")
            state("row", command, bank.row is None or bank.row == command.row, f"row {command.row} vs {bank.row} open")
            need("tRCD", command, bank.at.get("ACT"), c.trcd, "ACT")
            need("tCCD", command, columns[-1].cycle if columns else None, c.tccd, "a column command")
            begins = t + (c.cl if command.kind == "RD" else c.cwl)
            for before in columns[-8:]:
                starts = before.cycle + (c.cl if before.kind == "RD" else c.cwl)
                state("bus", command, abs(begins - starts) >= c.bl, f"data from {begins} vs from {starts} of another")
            if command.kind == "RD":
                written = [w for w in columns[-64:] if w.kind == "WR"]
                if written:
                    need("tWTR", command, written[-1].cycle, c.cwl + c.bl + c.twtr, "WR (with its data)")
            columns.append(command)
            bank.at[command.kind] = t
            continue
        # Commands of the row bus.
        state("one at a time", command, rows_of.setdefault(t, 0) == 0, "beside another row command")
        rows_of[t] += 1
        if command.kind == "ACT":
            state("bank closed", command, bank.row is None, f"whose row {bank.row} is open")
            need("tRP", command, bank.at.get("PRE"), c.trp, "PRE")
            need("tRRD", command, acts[-1] if acts else None, c.trrd, "ACT of any bank")
            need("tFAW", command, acts[-4] if len(acts) >= 4 else None, c.tfaw, "the fourth ACT before")
            acts.append(t)
            bank.row, bank.at["ACT"] = command.row, t
        elif command.kind in ("PRE", "PREA"):
            for b in [bank] if command.kind == "PRE" else [b for b in banks if b.row is not None]:
                state("bank open", command, b.row is not None, "which is closed")
                need("tRAS", command, b.at.get("ACT"), c.tras, "ACT")
                need("tRTP", command, b.at.get("RD"), c.trtp, "RD")
                need("tWR", command, b.at.get("WR"), c.cwl + c.bl + c.twr, "WR (with its data)")
                b.row, b.at["PRE"] = None, t
        else:
            state("bank closed", command, all(b.row is None for b in banks), "with a row open")
            for b in banks:
                need("tRP", command, b.at.get("PRE"), c.trp, "PRE")
            refreshes.append(t)
    return found + _refreshes(refreshes, c, cycles)


def _refreshes(given: list[int], c: MemoryConfig, cycles: int) -> list[tuple[str, str]]:
    """One refresh in each interval, within the slack after it is due, and none before."""
    if not c.trefi:
        return [("tREFI", f"cycle {t}: REF, where none is due") for t in given]
    found, due = [], [k for k in range(c.trefi, cycles, c.trefi)]
    for k, at in enumerate(due):
        if k < len(given):
            if not at <= given[k] <= at + refresh_slack(c):
                found.append(("tREFI", f"refresh {k}: cycle {given[k]} vs {at}..{at + refresh_slack(c)}"))
        elif at + refresh_slack(c) < cycles:
            found.append(("tREFI", f"refresh {k}: not given by cycle {cycles} vs {at + refresh_slack(c)}"))
    return found + [("tREFI", f"cycle {t}: a refresh too many") for t in given[len(due):]]
