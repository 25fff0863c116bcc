"""Model of ``step_hw/units/random_load.py``: a load whose indices are the values of its input link."""

from . import load

KIND = "random_load"
STEERED_BY = (0,)


def pack(unit, graph, build):
    """``unit.params``: element_bytes, window, port, and for benches ``values``; registers base and limit."""
    par = build.par[unit.index]
    par[load.REF] = load.BY_ADDRESS
    par[load.TOKENS] = -1
    load.pack_window(unit, graph, build)


step = load.step
value_inputs = load.value_inputs
