"""cocotb twin of native_main.cpp: the same protocol, the same files, on any simulator.

With the instance names of all links in ``STEP_HW_PAYLOADS`` it notes every payload too (``payloads.txt``, a line a
link), which needs a simulator that shows what lies below the top.
"""

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


def _field(handle, link: int, width: int = 1) -> int:
    """One link's part of a probe; those of links that move nothing may be unknown."""
    text = str(handle.value)
    part = text[len(text) - (link + 1) * width:len(text) - link * width]
    try:
        return int(part, 2)
    except ValueError:
        raise AssertionError(f"{handle._name} of link {link}, which moves a beat, is {part}") from None


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
    payloads: list[list[str]] = [[] for _ in range(links)]
    words = [getattr(dut, name).in0__payload for name in os.environ.get("STEP_HW_PAYLOADS", "").split()]

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
                for link in _ones(fires):
                    transfers[link] += 1
                    if words:
                        payloads[link].append(f"{_bits(words[link]):x}")
                    if recording:
                        flags = _field(dut.probe_empty, link) | _field(dut.probe_done, link) << 1
                        stop = _field(dut.probe_stop, link, 4)
                        records.write(struct.pack("<IHBB", cycle, link, stop, flags))
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
    (work / "payloads.txt").write_text("".join(" ".join(each) + "\n" for each in payloads) if words else "")
    (work / "result.txt").write_text("\n".join(lines) + "\n")
