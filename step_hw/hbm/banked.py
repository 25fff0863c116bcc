"""The ``banked`` timing model of a channel: banks with open rows, JEDEC-style timings, refresh, an out-of-order
scheduler.

Rules, which ``sim.banked`` follows step by step:

* A queue holds the bursts taken and not yet served, oldest first. Lines of a channel fill a row of a bank, then the
next bank.
* Column command: the oldest burst whose row is open and whose timers have run out. Its data come ``cl + bl`` cycles
later.
* Row command, at most one a cycle beside it, for the oldest burst that can have one; only the oldest burst of a bank
asks:
  activate if the bank is closed, precharge if another row is open (not in the cycle of a column command to the bank).
* Every ``trefi`` cycles a refresh is due: nothing else starts, open rows are closed together, then the refresh closes
  the channel for ``trfc`` cycles.
"""

import itertools

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from step_lang.memory_config import MemoryConfig

__all__ = ["BankedTiming"]


class _Timer:
    """Cycles until something is allowed: ``free`` when none are left; `after` holds it for n cycles from now, or
    longer."""

    def __init__(self, name: str, longest: int):
        self.count = Signal(range(max(2, longest)), name=name)
        self.free = self.count == 0
        self._loads: list = []

    def after(self, condition, cycles: int) -> None:
        """In a cycle with ``condition``: not free before ``cycles`` cycles from now."""
        self._loads.append((condition, cycles - 1))

    def elaborate(self, m: Module) -> None:
        """Count down, or take the longest hold asked for."""
        left = Mux(self.free, 0, self.count - 1)
        for condition, cycles in self._loads:
            held = Mux(condition, cycles, 0)
            left = Mux(held > left, held, left)
        m.d.sync += self.count.eq(left)


class BankedTiming(wiring.Component):
    """Same members as ``SimpleTiming``, and what a checker of timings wants to see.

    Members
    -------
    command : Out({column, row, column_bank, row_bank, column_line, row_line})
        What is done in this cycle: ``column`` 0 nothing, 1 read, 2 write; ``row`` 0 nothing, 1 activate, 2 precharge,
        3 precharge all, 4 refresh; the banks, and the lines of the bursts that asked for it.
    """

    def __init__(self, memory: MemoryConfig, burst: data.StructLayout):
        self.memory = memory
        self.burst = burst
        self.column_bits = exact_log2(memory.row_bytes // memory.burst_bytes)
        self.bank_bits = exact_log2(memory.banks)
        super().__init__(
            {
                "start": In(1),
                "req": In(stream.Signature(burst)),
                "resp": Out(wiring.Signature({"valid": Out(1), "payload": Out(burst)})),
                "busy": Out(1),
                "command": Out(
                    data.StructLayout(
                        {
                            "column": 2,
                            "row": 3,
                            "column_bank": max(1, self.bank_bits),
                            "row_bank": max(1, self.bank_bits),
                            "column_line": burst["line"].width,
                            "row_line": burst["line"].width,
                        }
                    )
                ),
            }
        )

    def elaborate(self, platform):
        m = Module()
        c = self.memory
        longest = (
            max(
                c.trcd,
                c.trp,
                c.tras,
                c.trtp,
                c.cwl + c.bl + c.twr,
                c.cwl + c.bl + c.twtr,
                c.trrd,
                c.tfaw,
                c.trfc,
                c.tccd,
                c.cl + c.bl,
            )
            + 1
        )
        row_bits = max(1, self.burst["line"].width - self.column_bits - self.bank_bits)

        # Banks.
        is_open = Signal(c.banks)
        rows = Array(Signal(row_bits, name=f"row{b}") for b in range(c.banks))
        to_activate, to_column, to_precharge = (
            [_Timer(f"{name}{b}", longest) for b in range(c.banks)]
            for name in ("to_activate", "to_column", "to_precharge")
        )
        to_read, to_write, to_any_activate = (
            _Timer(name, longest) for name in ("to_read", "to_write", "to_any_activate")
        )
        window = [_Timer(f"activates{i}", longest) for i in range(4)]
        eldest = Signal(2)
        free = [Signal(c.banks, name=f"free_{name}") for name in ("activate", "column", "precharge")]
        for signal, timers in zip(free, (to_activate, to_column, to_precharge), strict=True):
            m.d.comb += signal.eq(Cat(timer.free for timer in timers))

        # The queue, entry 0 the oldest; what each entry could do now.
        level = Signal(range(c.queue + 1))
        entries = [Signal(self.burst, name=f"entry{i}") for i in range(c.queue)]
        bank = [Signal(max(1, self.bank_bits), name=f"bank_of{i}") for i in range(c.queue)]
        row = [Signal(row_bits, name=f"row_of{i}") for i in range(c.queue)]
        column_ok, activate_ok, precharge_ok = (
            Signal(c.queue, name=n) for n in ("column_ok", "activate_ok", "precharge_ok")
        )
        due = Signal()
        serve = Signal()
        served = Signal(range(max(2, c.queue)))
        act = Signal()
        pre = Signal()
        turn = Signal(range(max(2, c.queue)))
        serve_bank = Signal(max(1, self.bank_bits))
        row_bank = Signal(max(1, self.bank_bits))
        columns, activates, precharges = [], [], []
        for i, entry in enumerate(entries):
            valid, opened, hit, leads = (Signal(name=f"{n}{i}") for n in ("valid", "opened", "hit", "leads"))
            place = entry.line >> self.column_bits
            m.d.comb += [
                bank[i].eq(place[: self.bank_bits]),
                row[i].eq(place >> self.bank_bits),
                valid.eq((level > i) & ~due),
                opened.eq(is_open.bit_select(bank[i], 1)),
                hit.eq(opened & (rows[bank[i]] == row[i])),
                leads.eq(~Cat(bank[j] == bank[i] for j in range(i)).any() if i else 1),
            ]
            columns.append(valid & hit & free[1].bit_select(bank[i], 1) & Mux(entry.write, to_write.free, to_read.free))
            activates.append(
                valid
                & leads
                & ~opened
                & free[0].bit_select(bank[i], 1)
                & to_any_activate.free
                & Array(timer.free for timer in window)[eldest]
            )
            precharges.append(
                valid & leads & opened & ~hit & free[2].bit_select(bank[i], 1) & ~(serve & (serve_bank == bank[i]))
            )
        m.d.comb += [
            column_ok.eq(Cat(columns)),
            activate_ok.eq(Cat(activates)),
            precharge_ok.eq(Cat(precharges)),
            serve.eq(column_ok.any()),
        ]
        for i in reversed(range(c.queue)):
            with m.If(column_ok[i]):
                m.d.comb += [served.eq(i), serve_bank.eq(bank[i])]
            with m.If(activate_ok[i] | precharge_ok[i]):
                m.d.comb += [turn.eq(i), row_bank.eq(bank[i]), act.eq(activate_ok[i]), pre.eq(precharge_ok[i])]
        chosen = Signal(self.burst)
        m.d.comb += chosen.eq(Array(entries)[served])
        read = Signal()
        write = Signal()
        m.d.comb += [read.eq(serve & ~chosen.write), write.eq(serve & chosen.write)]

        # Refresh.
        running = Signal()
        since = Signal(range(max(2, c.trefi)))
        close_all = Signal()
        refresh = Signal()
        m.d.comb += [
            close_all.eq(due & is_open.any() & (free[2] | ~is_open).all()),
            refresh.eq(due & ~is_open.any() & free[0].all()),
        ]
        if c.trefi:
            with m.If(self.start):
                m.d.sync += [running.eq(1), since.eq(0)]
            with m.Elif(running):
                m.d.sync += since.eq(Mux(since == c.trefi - 1, 0, since + 1))
                with m.If(since == c.trefi - 1):
                    m.d.sync += due.eq(1)
            with m.If(refresh):
                m.d.sync += due.eq(0)

        # What commands do to banks and timers.
        opening = Signal(c.banks)
        closing = Signal(c.banks)
        m.d.comb += [opening.eq(act << row_bank), closing.eq(Mux(close_all, is_open, pre << row_bank))]
        m.d.sync += is_open.eq((is_open | opening) & ~closing)
        for b in range(c.banks):
            with m.If(opening[b]):
                m.d.sync += rows[b].eq(Array(row)[turn])
            here = serve_bank == b
            to_activate[b].after(closing[b], c.trp)
            to_activate[b].after(refresh, c.trfc)
            to_column[b].after(opening[b], c.trcd)
            to_precharge[b].after(opening[b], c.tras)
            to_precharge[b].after(read & here, c.trtp)
            to_precharge[b].after(write & here, c.cwl + c.bl + c.twr)
        to_any_activate.after(act, c.trrd)
        to_read.after(serve, c.tccd)
        to_read.after(write, c.cwl + c.bl + c.twtr)
        to_write.after(serve, c.tccd)
        to_write.after(read, max(1, c.cl + c.bl - c.cwl))
        for i, timer in enumerate(window):
            timer.after(act & (eldest == i), c.tfaw)
        with m.If(act):
            m.d.sync += eldest.eq(eldest + 1)
        for timer in [*to_activate, *to_column, *to_precharge, to_read, to_write, to_any_activate, *window]:
            timer.elaborate(m)

        # Queue update: the entry served goes, those behind it move up, a new one joins at the end.
        accept = Signal()
        m.d.comb += [self.req.ready.eq(level != c.queue), accept.eq(self.req.valid & self.req.ready)]
        m.d.sync += level.eq(level + accept - serve)
        for i, entry in enumerate(entries):
            behind = entries[i + 1] if i + 1 < c.queue else entry
            with m.If(serve & (served <= i) if i < c.queue - 1 else serve):
                m.d.sync += entry.eq(behind)
            with m.If(accept & (level - serve == i)):
                m.d.sync += entry.eq(self.req.payload)

        # A read's data leave cl + bl cycles after its command, the last of them spent in the storage.
        under_way = [Signal(1 + self.burst.size, name=f"stage{i}") for i in range(max(1, c.cl + c.bl - 1))]
        m.d.sync += under_way[0].eq(Cat(read, chosen))
        for before, after in itertools.pairwise(under_way):
            m.d.sync += after.eq(before)
        m.d.comb += [
            Cat(self.resp.valid, self.resp.payload).eq(under_way[-1]),
            self.busy.eq((level != 0) | Cat(stage[0] for stage in under_way).any()),
            self.command.eq(
                Cat(
                    Mux(serve, 1 + chosen.write, 0)[:2],
                    Mux(refresh, 4, Mux(close_all, 3, Mux(pre, 2, act)))[:3],
                    serve_bank,
                    row_bank,
                    chosen.line,
                    Array(entries)[turn].line,
                )
            ),
        ]
        return m
