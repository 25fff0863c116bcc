"""Model of ``step_hw/units/input.py``: a load without reference whose tokens may come from a list.

``unit.params["tokens"]``: the list (stop | empty << 4 | done << 5, ending with done), used when
``config["regular"]`` is 0.
"""

from . import load

KIND = "input"

pack = load.pack
step = load.step
value_inputs = load.value_inputs
