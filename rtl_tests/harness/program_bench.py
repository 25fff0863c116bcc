"""cocotb twin of native_main.cpp: the same protocol, the same files, on any simulator."""

import os
import struct
from pathlib import Path

import cocotb
from cocotb.handle import Immediate
from cocotb.triggers import Timer

__all__ = ["program_bench"]


class _Clock:
    """Inputs are set before `settle`; outputs are sampled between `settle` and `rise`."""

    def __init__(self, dut):
        self._clk = dut.clk
        self._half = Timer(5, "ns")

    async def settle(self) -> None:
        self._clk.set(Immediate(0))
        await self._half

    async def rise(self) -> None:
        self._clk.set(Immediate(1))
        await self._half

    async def step(self) -> None:
        await self.settle()
        await self.rise()


def _bits(handle) -> int:
    text = str(handle.value)
    try:
        return int(text, 2)
    except ValueError:
        raise AssertionError(f"{handle._name} is {text[:80]}") from None


def _ones(word: int) -> list[int]:
    found = []
    while word:
        low = word & -word
        found.append(low.bit_length() - 1)
        word ^= low
    return found


@cocotb.test()
async def program_bench(dut) -> None:
    """One run, as the plusargs say."""
    work = Path(os.environ["STEP_HW_PROGRAM"])
    links = int(os.environ["STEP_HW_LINKS"])
    arguments = dict(word[1:].split("=", 1) for word in cocotb.argv if word.startswith("+step_") and "=" in word)
    quiet_limit, max_cycles = int(arguments["step_quiet"]), int(arguments["step_max_cycles"])
    recording = arguments["step_records"] == "1"
    busy, dump = getattr(dut, "mem_busy", None), getattr(dut, "dump", None)
    grant_valid = getattr(dut, "grant_valid", None)
    grants = bytearray()
    clock = _Clock(dut)

    await Timer(1, "ns")  # Icarus 11 breaks on inputs written at time 0
    for name in ("cfg_valid", "cfg_addr", "cfg_data", "start", "status_addr"):
        getattr(dut, name).set(Immediate(0))
    if dump is not None:
        dump.set(Immediate(0))
    dut.rst.set(Immediate(1))
    await clock.step()
    await clock.step()
    dut.rst.set(Immediate(0))
    for line in (work / "config.txt").read_text().splitlines():
        address, value = (int(word, 16) for word in line.split())
        dut.cfg_valid.set(Immediate(1))
        dut.cfg_addr.set(Immediate(address))
        dut.cfg_data.set(Immediate(value))
        await clock.step()
    dut.cfg_valid.set(Immediate(0))
    await clock.step()

    transfers, blocked = [0] * links, [0] * links
    cycle = quiet = 0
    reason = None
    dut.start.set(Immediate(1))
    with open(work / "records.bin", "wb") as records:
        while True:
            await clock.settle()
            valid, ready = _bits(dut.probe_valid), _bits(dut.probe_ready)
            fires = valid & ready
            for link in _ones(valid & ~ready):
                blocked[link] += 1
            if fires:
                stop, empty, done = _bits(dut.probe_stop), _bits(dut.probe_empty), _bits(dut.probe_done)
                for link in _ones(fires):
                    transfers[link] += 1
                    if recording:
                        flags = empty >> link & 1 | (done >> link & 1) << 1
                        records.write(struct.pack("<IHBB", cycle, link, stop >> 4 * link & 15, flags))
            if grant_valid is not None and (given := _bits(grant_valid)):
                index = _bits(dut.grant_index)
                for unit in _ones(given):
                    grants += struct.pack("<IHBB", cycle, unit, index >> 8 * unit & 255, 0)
            quiet = 0 if fires or (busy is not None and _bits(busy)) else quiet + 1
            if _bits(dut.error_any):
                reason = "error"
            elif _bits(dut.finished):
                reason = "finished"
            elif quiet >= quiet_limit:
                reason = "deadlock"
            elif cycle + 1 >= max_cycles:
                reason = "max_cycles"
            if reason is not None:
                break
            await clock.rise()
            dut.start.set(Immediate(0))
            cycle += 1

    state_digits = 8 * -(-len(dut.unit_state) // 32)
    lines = [f"reason {reason}", f"cycles {cycle}"]
    lines += [f"link {i} {transfers[i]} {blocked[i]} {valid >> i & 1} {ready >> i & 1}" for i in range(links)]
    lines.append(f"unit_state {_bits(dut.unit_state):0{state_digits}x}")
    await clock.rise()
    dut.start.set(Immediate(0))
    if dump is not None:
        dump.set(Immediate(1))
        await clock.step()
        dump.set(Immediate(0))
    for line in (work / "status.txt").read_text().split():
        dut.status_addr.set(Immediate(int(line, 16)))
        await clock.step()
        await clock.settle()
        lines.append(f"status {int(line, 16):x} {_bits(dut.status_data):08x}")
        await clock.rise()
    if grant_valid is not None:
        (work / "grants.bin").write_bytes(grants)
    (work / "result.txt").write_text("\n".join(lines) + "\n")
