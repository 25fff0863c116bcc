"""Arithmetic cells: combinational or pipelined, each the bit-exact twin of a definition in `step_lang.numerics`."""
