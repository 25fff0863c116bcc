"""Contents of one channel: the simulator's memory array.

The one module that is not meant for synthesis: it stands for the memory devices. On an FPGA or a chip a memory
controller takes its place, behind the same channel interface.
"""

__all__ = ["store_module"]

_TEMPLATE = """\
// Contents of one memory channel, for simulation only.
//   +hbm_load=PREFIX         contents at time 0 from PREFIX<channel>.hex ($readmemh); the rest is 0
//   +hbm_dump=PREFIX         where a cycle with `dump` set writes PREFIX<channel>.hex ($writememh)
//   +hbm_dump_lines=N        only the first N lines of it
module {name} #(parameter CHANNEL = 0) (
  input clk,
  input read_enable,
  input [{address}:0] read_line,
  output reg [{data}:0] read_data,
  input [{enable}:0] write_enable,
  input [{address}:0] write_line,
  input [{data}:0] write_data,
  input dump
);
  reg [{data}:0] mem [0:{last}];
  reg [{data}:0] merged;
  string prefix;
  integer i, dump_lines;
  initial begin
    for (i = 0; i <= {last}; i = i + 1) mem[i] = {width}'d0;
    if ($value$plusargs("hbm_load=%s", prefix)) $readmemh($sformatf("%s%0d.hex", prefix, CHANNEL), mem);
  end
  always @(posedge clk) begin
    if (read_enable) read_data <= mem[read_line];
    if (&write_enable) mem[write_line] <= write_data;
    else if (|write_enable) begin  // one write at the end: old Verilators take no delayed one in a long loop
      merged = mem[write_line];
      for (i = 0; i <= {enable}; i = i + 1)
        if (write_enable[i]) merged[8 * i +: 8] = write_data[8 * i +: 8];
      mem[write_line] <= merged;
    end
    if (dump) begin
      if (!$value$plusargs("hbm_dump_lines=%d", dump_lines)) dump_lines = {last} + 1;
      if ($value$plusargs("hbm_dump=%s", prefix))
        $writememh($sformatf("%s%0d.hex", prefix, CHANNEL), mem, 0, dump_lines - 1);
    end
  end
endmodule
"""


def store_module(burst_bytes: int, lines: int) -> tuple[str, str]:
    """(name, Verilog) of the contents of a channel of ``lines`` bursts."""
    name = f"hbm_store_b{burst_bytes}x{lines}"
    width = 8 * burst_bytes
    text = _TEMPLATE.format(
        name=name,
        address=(lines - 1).bit_length() - 1,
        data=width - 1,
        enable=burst_bytes - 1,
        last=lines - 1,
        width=width,
    )
    return name, text
