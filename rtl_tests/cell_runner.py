"""Runs cells on Verilator over many vectors in one process: exhaustive checks in seconds.

Several cells share one bench top. Each port takes a whole number of 32-bit words of the top's ``in`` or ``out``; cells
that share an input port's name share its words, so one set of vectors serves all cells of a kind.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from amaranth.hdl import Value
from amaranth.lib.wiring import In

from rtl_tests.harness.build import build
from step_hw.cells.cell import Cell, modules_of

__all__ = ["CellBench", "cell_bench", "icarus_bench"]

MAIN = Path(__file__).with_name("cell_main.cpp")


@dataclass(frozen=True)
class CellBench:
    """A compiled bench: the command that runs it, and ``inputs`` and ``outputs``, port (of outputs ``cell.port``) to
    (first word, bits)."""

    command: tuple[str | Path, ...]
    inputs: Mapping[str, tuple[int, int]]
    outputs: Mapping[str, tuple[int, int]]

    def run(self, **vectors: np.ndarray) -> dict[str, np.ndarray]:
        """One vector a clock cycle. Ports of up to 32 bits take and give ``[n]`` uint32, wider ones ``[n, words]``.

        An output is what it shows in the cycle of its vector: a pipeline's result belongs to an earlier one.
        """
        count = len(next(iter(vectors.values())))
        assert set(vectors) == set(self.inputs), f"vectors for {sorted(vectors)}, inputs are {sorted(self.inputs)}"
        packed = np.zeros((count, _words(self.inputs)), dtype="<u4")
        for port, values in vectors.items():
            first, bits = self.inputs[port]
            words = -(-bits // 32)
            packed[:, first : first + words] = values.reshape(count, words)
        with tempfile.TemporaryDirectory() as directory:
            source, result = Path(directory, "in.bin"), Path(directory, "out.bin")
            packed.tofile(source)
            arguments = [f"+in={source}", f"+out={result}"] if self.command[0] == "vvp" else [source, result]
            subprocess.run([*self.command, *arguments], check=True, timeout=300, stdout=subprocess.DEVNULL)
            raw = np.fromfile(result, dtype="<u4").reshape(count, _words(self.outputs))
        found = {}
        for port, (first, bits) in self.outputs.items():
            words = -(-bits // 32)
            found[port] = raw[:, first] if words == 1 else raw[:, first : first + words]
        return found


def _words(ports: Mapping[str, tuple[int, int]]) -> int:
    # At least three words, so that Verilator gives the port an array and the driver needs one form only.
    return max(3, *(first + -(-bits // 32) for first, bits in ports.values()))


def _bench_text(cells: Sequence[Cell], inputs: dict, outputs: dict, registered: bool) -> str:
    instances = []
    for cell in cells:
        connections = [".clk(clk)"] if cell.clocked else []
        for port, member in cell.signature.members.items():
            if port == "clk":
                continue
            bits = len(Value.cast(getattr(cell, port)))
            table, key, bus = (inputs, port, "held") if member.flow is In else (
                outputs, f"{cell.module_name}.{port}", "out")
            if key not in table:
                table[key] = (sum(-(-b // 32) for _, b in table.values()), bits)
            elif table[key][1] != bits:
                table[key] = (table[key][0], max(bits, table[key][1]))
            connections.append(f".{port}({bus}[{table[key][0] * 32} +: {bits}])")
        instances.append(f"  {cell.module_name} {cell.module_name}_i ({', '.join(connections)});")
    ports = f"input clk, input [{_words(inputs) * 32 - 1}:0] in, output [{_words(outputs) * 32 - 1}:0] out"
    width = f"[{_words(inputs) * 32 - 1}:0]"
    held = f"  wire {width} held = in;\n"
    if registered:
        held = f"  reg {width} held;\n  always @(posedge clk) held <= in;\n"
    return f"module cell_bench({ports});\n{held}" + "\n".join(instances) + "\nendmodule\n"


def _sources(cells: Sequence[Cell], registered: bool) -> tuple[dict[str, str], dict, dict]:
    inputs: dict[str, tuple[int, int]] = {}
    outputs: dict[str, tuple[int, int]] = {}
    # Inputs of one name share words, so the widest decides their place: two passes.
    _bench_text(cells, inputs, outputs, registered)
    first = 0
    for port, (_, bits) in list(inputs.items()):
        inputs[port] = (first, bits)
        first += -(-bits // 32)
    text = _bench_text(cells, inputs, outputs, registered)
    return {f"{name}.v": body for name, body in modules_of(*cells).items()} | {"cell_bench.v": text}, inputs, outputs


def cell_bench(*cells: Cell, registered: bool = False, opt: str = "quick") -> CellBench:
    """Compile (or find) a bench of ``cells``. ``registered`` puts a register on the same clock before all inputs."""
    sources, inputs, outputs = _sources(cells, registered)
    made = build("verilator", sources, "cell_bench", vpi=False, main=MAIN, trace=False, opt=opt,
                 arguments=["-CFLAGS", f"-DIN_WORDS={_words(inputs)} -DOUT_WORDS={_words(outputs)}"])
    return CellBench((made.executable,), inputs, outputs)


_ICARUS_MAIN = """
module cell_main;
  reg clk = 1;
  reg [{inputs}-1:0] in = 0;
  wire [{outputs}-1:0] out;
  integer source, result, i, got;
  reg [31:0] word;
  reg [8*4096-1:0] path;
  cell_bench bench (.clk(clk), .in(in), .out(out));
  initial begin
    if ($value$plusargs("in=%s", path)) source = $fopen(path, "rb");
    if ($value$plusargs("out=%s", path)) result = $fopen(path, "wb");
    got = 4;
    while (got == 4) begin
      for (i = 0; i < {inputs} / 32 && got == 4; i = i + 1) begin
        got = $fread(word, source);
        in[32 * i +: 32] = {{word[7:0], word[15:8], word[23:16], word[31:24]}};
      end
      if (got == 4) begin
        #1 clk = 0;
        #1 for (i = 0; i < {outputs} / 32; i = i + 1) $fwrite(result, "%u", out[32 * i +: 32]);
        clk = 1;
        #1;
      end
    end
    $fclose(result);
    $finish;
  end
endmodule
"""


def icarus_bench(directory: Path, *cells: Cell, registered: bool = False) -> CellBench:
    """The same bench on Icarus, compiled into ``directory``: slow, to compare simulators."""
    sources, inputs, outputs = _sources(cells, registered)
    sources["cell_main.v"] = _ICARUS_MAIN.format(inputs=_words(inputs) * 32, outputs=_words(outputs) * 32)
    for name, text in sources.items():
        (directory / name).write_text(text)
    design = directory / "bench.vvp"
    subprocess.run(["iverilog", "-g2012", "-s", "cell_main", "-o", design, *(directory / name for name in sources)],
                   check=True)
    return CellBench(("vvp", design), inputs, outputs)
