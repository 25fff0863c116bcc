"""The hardware of step-hw: units, netlist and Verilog."""
