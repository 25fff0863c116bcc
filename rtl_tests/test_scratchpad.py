"""Scratchpad by its ports: pages and references given and given back in random order, against a software twin."""

import os
import pickle
import tempfile
from pathlib import Path
from random import Random

import cocotb
import pytest
from cocotb.handle import Immediate
from cocotb.triggers import Timer

from rtl_tests.harness import run_cocotb
from rtl_tests.harness.build import build
from rtl_tests.harness.links import Clocking
from rtl_tests.memory_tile import LAYOUT
from rtl_tests.pad_reference import PadEvents, PadReference
from step_hw.units.scratchpad import Scratchpad, ScratchpadShape

pytestmark = pytest.mark.long

READERS = 3


class Twin:
    """What is where: contents of each buffer, which pages it has, and how often it is still to be released.

    Moves at random: fill and close buffers, read any element of any complete buffer, end uses of buffers in any order,
    make more of one use as a router does. Pages in use are those of a `PadReference` in every cycle.
    """

    def __init__(self, dut, shape: ScratchpadShape, seed: int):
        self.dut, self.shape, self.rng = dut, shape, Random(seed)
        self.open: tuple[int, int] | None = None   # reference and size of the buffer being filled
        self.contents: dict[int, list[int]] = {}
        self.pages: dict[int, list[int]] = {}
        self.uses: dict[int, int] = {}
        self.due: list[int | None] = [None] * READERS   # value that each read port shows from now on
        self.full = self.freed = self.routed = self.stale = 0
        self.reference = PadReference(shape.pages, shape.references)
        self.old: list[int] = []   # references to buffers that were freed, oldest first

    def number(self, reference: int) -> int:
        return reference & (1 << self.shape.number_bits) - 1

    def set(self, name: str, value: int) -> None:
        getattr(self.dut, name).set(Immediate(value))

    def get(self, name: str) -> int:
        return int(str(getattr(self.dut, name).value), 2)

    def clear(self) -> None:
        for name in ("claim", "take", "write", "close"):
            self.set(f"write__{name}", 0)
        for k in range(READERS):
            self.set(f"read{k}__request", 0)
            self.set(f"read{k}__release", 0)
        self.set("route0__change", 0)

    def drive(self, cycle: int) -> None:
        self.clear()
        self._requests()
        self.releases: list[int] = []
        for k in range(READERS):
            ready = [r for r, left in self.uses.items() if left > self.releases.count(r)]
            wanted = self.wanted[k]
            if wanted is not None and self.uses[wanted[0]] <= self.releases.count(wanted[0]):
                self.wanted[k] = wanted = None
                self.set(f"read{k}__request", 0)
            if wanted is None and ready and self.rng.random() < 0.3:
                chosen = self.rng.choice(ready)
                reading = sum(w is not None and w[0] == chosen for w in self.wanted)
                if self.uses[chosen] - self.releases.count(chosen) > 1 or not reading:
                    self.releases.append(chosen)
                    self.set(f"read{k}__ref", chosen)
                    self.set(f"read{k}__release", 1)
        self._route()

    def _route(self) -> None:
        """A router replaces one use of a buffer that nobody else ends now; or looks at a reference that was freed."""
        self.changed: tuple[int, int] | None = None
        self.set("route0__ref", 0)
        self.looked = None
        ready = [r for r in self.uses if r not in self.releases and all(w is None or w[0] != r for w in self.wanted)]
        if ready and self.rng.random() < 0.15:
            self.changed = (self.rng.choice(ready), self.rng.choice([0, 1, 2, 3]))
            self.set("route0__ref", self.changed[0])
            self.set("route0__uses", self.changed[1])
            self.set("route0__change", 1)
            self.looked = self.changed[0]
        elif self.old and self.rng.random() < 0.5:
            self.looked = self.old[-1]
            self.set("route0__ref", self.looked)

    def _requests(self) -> None:
        self.wanted: list[tuple[int, int] | None] = []
        for k in range(READERS):
            choices = [r for r, words in self.contents.items() if r in self.uses and words]
            if not choices or self.rng.random() < 0.4:
                self.wanted.append(None)
                continue
            r = self.rng.choice(choices)
            index = self.rng.randrange(len(self.contents[r]))
            self.wanted.append((r, index))
            self.set(f"read{k}__ref", r)
            self.set(f"read{k}__index", index)
            self.set(f"read{k}__request", 1)

    def sample(self, cycle: int) -> None:
        if self.looked is not None:
            assert self.get("route0__live") == (self.looked in self.uses), f"live of {self.looked}, cycle {cycle}"
            self.stale += self.looked not in self.uses
        for k, value in enumerate(self.due):
            if value is not None:
                assert self.get(f"read{k}__frame") == value, f"reader {k}, cycle {cycle}"
        granted = [k for k in range(READERS) if self.get(f"read{k}__grant")]
        wanted = [k for k in range(READERS) if self.wanted[k] is not None]
        assert len(granted) == min(1, len(wanted)) and set(granted) <= set(wanted), f"{granted} of {wanted} granted"
        for k in granted:
            asked = self.wanted[k]
            assert asked is not None
            r, index = asked
            assert self.get(f"read{k}__length") == len(self.contents[r]) and self.get(f"read{k}__live")
            self.due[k] = self.contents[r][index]
        reference = self.reference
        assert (self.get("used"), self.get("peak")) == (reference.used, reference.peak), f"cycle {cycle}"
        self.events = PadEvents(ended=[self.number(r) for r in self.releases])
        if self.changed is not None:
            self.events.ended.append(self.number(self.changed[0]))
            self.events.made.append((self.number(self.changed[0]), self.changed[1]))
        self._write()
        reference.step(self.events)
        if self.changed is not None:
            self.uses[self.changed[0]] += self.changed[1]
            self.releases.append(self.changed[0])
            self.routed += 1
        for r in self.releases:
            self.uses[r] -= 1
            if self.uses[r] == 0:
                del self.uses[r], self.contents[r], self.pages[r]
                self.old.append(r)
                self.freed += 1

    def _write(self) -> None:
        """One element into the open buffer, decided in mid-cycle by what the scratchpad offers, as bufferize does."""
        rng, shape = self.rng, self.shape
        if rng.random() < 0.2:
            return
        if self.open is None:
            if not self.get("write__ref_free") or not self.get("write__page_free"):
                return
            reference = self.get("write__ref")
            assert reference not in self.old[-2:], f"reference {reference} given again too soon"
            self.set("write__claim", 1)
            self.events.claim = self.number(reference)
            self.open = (reference, rng.randint(1, 3 * shape.page_frames))
            self.contents[reference], self.pages[reference] = [], []
        reference, size = self.open
        words = self.contents[reference]
        if len(words) % shape.page_frames == 0:
            if not self.get("write__page_free"):
                self.full += 1
                if len(words) == 0:
                    raise AssertionError("a buffer was opened without a page")
                self._close(reference, 0)   # ends here, so that the next can begin
                return
            page = self.get("write__page")
            self.events.take = (self.number(reference), page)
            self.pages[reference].append(page)
            self.set("write__take", 1)
            self.set("write__number", len(words) // shape.page_frames)
        word = rng.getrandbits(LAYOUT.data_width + 7)
        address = self.pages[reference][-1] * shape.page_frames + len(words) % shape.page_frames
        self.set("write__owner", reference)
        self.set("write__address", address)
        self.set("write__frame", word)
        self.set("write__write", 1)
        words.append(word)
        if len(words) == size:
            self._close(reference, 1)

    def _close(self, reference: int, written: int) -> None:
        uses = self.rng.randint(1, READERS)
        self.events.close = (self.number(reference), uses)
        self.set("write__owner", reference)
        self.set("write__length", len(self.contents[reference]))
        self.set("write__uses", uses)
        self.set("write__close", 1)
        self.uses[reference] = uses
        self.open = None


class _Settling(Clocking):
    """What an agent sets in mid-cycle reaches the registers' inputs before the clock rises."""

    async def between(self) -> None:
        await self.settle()


@cocotb.test()
async def random_order(dut) -> None:
    """Run by `test_random_order` in the simulator's process."""
    request = pickle.loads(Path(os.environ["STEP_HW_CASES"]).read_bytes())
    await Timer(1, "ns")
    clocking = _Settling(dut)
    twin = clocking.add(Twin(dut, request["shape"], request["seed"]))
    await clocking.reset()
    for _ in range(request["cycles"]):
        await clocking.step()
    found = {"freed": twin.freed, "fragmented": twin.reference.fragmented, "full": twin.full, "stale": twin.stale,
             "peak": twin.reference.peak, "routed": twin.routed}
    Path(os.environ["STEP_HW_RESULTS"]).write_bytes(pickle.dumps(found))


@pytest.mark.parametrize("sizes", [(16, 2, 5), (12, 4, 4), (6, 1, 7)])
def test_random_order(simulator, sizes):
    """Several readers, buffers freed in any order: no page or reference twice, contents intact, nothing lost."""
    shape = ScratchpadShape(*sizes, LAYOUT)
    unit = Scratchpad(shape, READERS, 1)
    built = build(simulator, {f"{name}.v": text for name, text in unit.modules().items()}, unit.module_name)
    with tempfile.TemporaryDirectory(prefix="step-hw-scratchpad-") as temporary:
        asked, answer = Path(temporary) / "cases.pickle", Path(temporary) / "results.pickle"
        asked.write_bytes(pickle.dumps({"shape": shape, "seed": 17, "cycles": 2500}))
        run_cocotb(built, "rtl_tests.test_scratchpad", testcase="random_order",
                   env={"STEP_HW_CASES": str(asked), "STEP_HW_RESULTS": str(answer)})
        found = pickle.loads(answer.read_bytes())
    # Pages that are lost, or never come back, would end all progress long before this.
    assert found["freed"] > 60 and found["fragmented"] > 5 and found["full"] > 5, found
    assert found["routed"] > 30 and found["stale"] > 100, found
    assert found["peak"] == shape.pages
