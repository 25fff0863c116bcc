"""Model of ``step_hw/hbm/banked.py``: one cycle of a channel's scheduler, by the same rules."""

import numpy as np

from .compiled import compiled
from .memory import ARRIVES, MISSING

__all__ = ["BANKED_PARAMETERS", "LEVEL", "banked_parameters", "banked_push", "banked_step", "banked_words"]

BANKED_PARAMETERS = (
    "banks",
    "queue",
    "bl",
    "tccd",
    "trcd",
    "trp",
    "tras",
    "trtp",
    "twr",
    "twtr",
    "trrd",
    "tfaw",
    "trfc",
    "trefi",
    "cl",
    "cwl",
    "columns",
)
(BANKS, QUEUE, BL, TCCD, TRCD, TRP, TRAS, TRTP, TWR, TWTR, TRRD, TFAW, TRFC, TREFI, CL, CWL, COLUMNS) = range(17)

# A channel's words: queue fill, refresh due, earliest cycle of a read, write, activate; of an activate by the
# four-activate window;
# then queue entries and banks. Times are cycles; 0 is "at once".
LEVEL, DUE, READ, WRITE, ACTIVATE, ELDEST, WINDOW, ENTRIES = 0, 1, 2, 3, 4, 5, 6, 10
BANK, ROW, IS_WRITE, SLOT, ENTRY_WORDS = 0, 1, 2, 3, 4
OPEN, OPEN_ROW, TO_ACTIVATE, TO_COLUMN, TO_PRECHARGE, BANK_WORDS = 0, 1, 2, 3, 4, 5


def banked_words(memory) -> int:
    """Heap words of a channel."""
    return ENTRIES + memory.queue * ENTRY_WORDS + memory.banks * BANK_WORDS


def banked_parameters(memory) -> np.ndarray:
    """Values of ``BANKED_PARAMETERS``."""
    values = [getattr(memory, name) for name in BANKED_PARAMETERS[:-1]]
    return np.array([*values, memory.row_bytes // memory.burst_bytes], dtype=np.int64)


@compiled
def banked_push(heap, t, at, line, is_write, slot):
    """A burst joins the queue. ``t``: offset of the parameters, ``at``: of the channel, ``slot``: of the read's
    window slot."""
    entry = at + ENTRIES + heap[at + LEVEL] * ENTRY_WORDS
    place = line // heap[t + COLUMNS]
    heap[entry + BANK] = place % heap[t + BANKS]
    heap[entry + ROW] = place // heap[t + BANKS]
    heap[entry + IS_WRITE] = is_write
    heap[entry + SLOT] = slot
    heap[at + LEVEL] += 1


@compiled
def banked_step(heap, t, at, now, since_start):
    """One cycle. Returns the cycle in which data of a read issued now arrive, 0 without a column command, -1 for a
    write."""
    banks = at + ENTRIES + heap[t + QUEUE] * ENTRY_WORDS
    n = heap[t + BANKS]
    if heap[t + TREFI] > 0 and since_start > 0 and since_start % heap[t + TREFI] == 0:
        heap[at + DUE] = 1
    if heap[at + DUE]:
        _refresh(heap, t, at, banks, n, now)
        return 0
    level = heap[at + LEVEL]
    if level == 0:
        return 0
    served = -1
    for i in range(level):
        e = at + ENTRIES + i * ENTRY_WORDS
        b = banks + heap[e + BANK] * BANK_WORDS
        if (
            heap[b + OPEN]
            and heap[b + OPEN_ROW] == heap[e + ROW]
            and now >= heap[b + TO_COLUMN]
            and now >= heap[at + (WRITE if heap[e + IS_WRITE] else READ)]
        ):
            served = i
            break
    served_bank = heap[at + ENTRIES + served * ENTRY_WORDS + BANK] if served >= 0 else -1
    seen = 0
    for i in range(level):
        e = at + ENTRIES + i * ENTRY_WORDS
        bit = 1 << heap[e + BANK]
        if seen & bit:
            continue  # an older burst speaks for this bank
        seen |= bit
        b = banks + heap[e + BANK] * BANK_WORDS
        if heap[b + OPEN] == 0:
            eldest = at + WINDOW + heap[at + ELDEST]
            if now >= heap[b + TO_ACTIVATE] and now >= heap[at + ACTIVATE] and now >= heap[eldest]:
                heap[b + OPEN] = 1
                heap[b + OPEN_ROW] = heap[e + ROW]
                heap[b + TO_COLUMN] = now + heap[t + TRCD]
                heap[b + TO_PRECHARGE] = max(heap[b + TO_PRECHARGE], now + heap[t + TRAS])
                heap[at + ACTIVATE] = now + heap[t + TRRD]
                heap[eldest] = now + heap[t + TFAW]
                heap[at + ELDEST] = (heap[at + ELDEST] + 1) % 4
                break
        elif heap[b + OPEN_ROW] != heap[e + ROW] and now >= heap[b + TO_PRECHARGE] and heap[e + BANK] != served_bank:
            heap[b + OPEN] = 0
            heap[b + TO_ACTIVATE] = now + heap[t + TRP]
            break
    if served < 0:
        return 0
    return _column(heap, t, at, banks, served, level, now)


@compiled
def _refresh(heap, t, at, banks, n, now):
    any_open = False
    ready = True
    closed_ready = True
    for i in range(n):
        b = banks + i * BANK_WORDS
        if heap[b + OPEN]:
            any_open = True
            ready &= now >= heap[b + TO_PRECHARGE]
        closed_ready &= now >= heap[b + TO_ACTIVATE]
    if any_open:
        if ready:
            for i in range(n):
                b = banks + i * BANK_WORDS
                if heap[b + OPEN]:
                    heap[b + OPEN] = 0
                    heap[b + TO_ACTIVATE] = now + heap[t + TRP]
    elif closed_ready:
        for i in range(n):
            heap[banks + i * BANK_WORDS + TO_ACTIVATE] = now + heap[t + TRFC]
        heap[at + DUE] = 0


@compiled
def _column(heap, t, at, banks, served, level, now):
    """Issue the column command of entry ``served`` and take it out of the queue."""
    e = at + ENTRIES + served * ENTRY_WORDS
    b = banks + heap[e + BANK] * BANK_WORDS
    result = -1
    if heap[e + IS_WRITE]:
        end = now + heap[t + CWL] + heap[t + BL]
        heap[b + TO_PRECHARGE] = max(heap[b + TO_PRECHARGE], end + heap[t + TWR])
        heap[at + WRITE] = max(heap[at + WRITE], now + heap[t + TCCD])
        heap[at + READ] = max(heap[at + READ], now + heap[t + TCCD], end + heap[t + TWTR])
    else:
        result = now + max(2, heap[t + CL] + heap[t + BL])
        heap[b + TO_PRECHARGE] = max(heap[b + TO_PRECHARGE], now + heap[t + TRTP])
        heap[at + READ] = max(heap[at + READ], now + heap[t + TCCD])
        heap[at + WRITE] = max(
            heap[at + WRITE], now + heap[t + TCCD], now + heap[t + CL] + heap[t + BL] - heap[t + CWL]
        )
        slot = heap[e + SLOT]
        heap[slot + MISSING] -= 1
        heap[slot + ARRIVES] = max(heap[slot + ARRIVES], result)
    for k in range(e, at + ENTRIES + (level - 1) * ENTRY_WORDS):
        heap[k] = heap[k + ENTRY_WORDS]
    heap[at + LEVEL] = level - 1
    return result
