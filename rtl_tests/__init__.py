"""Test benches of the hardware, and the harness that runs them on Icarus and on Verilator."""
