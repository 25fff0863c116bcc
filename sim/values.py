"""Control values of elements: what the model knows of an element's value.

On a link of at most ``sim.selectors.BITS`` bits it is the data bits themselves, the sign of an int64 being bit 63; a
tuple's first member is lowest. Wider selectors: `sim.selectors`. Elements that steer nothing, such as the tiles of a
matmul, have the value 0, and `sim.steering` refuses programs in which such a value would steer something.

The arithmetic of scalars that addresses and counts are made by is here.
"""

from typing import Any

from step_lang.types import DType, Selector, Tile

from .compiled import compiled
from .selectors import selected

__all__ = ["INDEX", "NO_OPERATION", "operate", "operation_of", "passes", "selector_index", "sign_of"]

NO_OPERATION, ADD, SUB, MUL, MAX, CAST, INDEX = range(7)

_BINARY = {"add": ADD, "sub": SUB, "mul": MUL, "scale": MUL, "max": MAX}

_INTEGERS = ("int8", "int32", "u32", "bool")


def _is_integer(type_: Any) -> bool:
    return isinstance(type_, Tile) and (type_.rows, type_.cols) == (1, 1) and type_.dtype.name in _INTEGERS


def operation_of(function: Any, in_types: Any, out_type: Any) -> int:
    """What `operate` has to do for ``function`` of a map unit; NO_OPERATION where it does not compute values."""
    if function.name == "selector_index" and isinstance(in_types[0], Selector):
        return INDEX
    if not all(map(_is_integer, (*in_types, out_type))):
        return NO_OPERATION
    return CAST if function.name == "cast" else _BINARY.get(function.name, NO_OPERATION)


def passes(unit: Any, graph: Any, port: int) -> tuple[int]:
    """``value_inputs`` (`sim.steering`) of units whose outputs are what comes in at port 0."""
    return (0,)


def sign_of(dtype: DType) -> int:
    """The bits of an integer type, negative where it has no sign: the form in which `operate` takes them."""
    return dtype.bits if dtype.name.startswith("int") else -dtype.bits


@compiled
def number(pattern, form):
    """The integer that a bit pattern of a type stands for, whose ``form`` is by `sign_of`."""
    bits = abs(form)
    n = pattern & ((1 << bits) - 1)
    if form > 0 and (n >> (bits - 1)) & 1 == 1:
        n -= 1 << bits
    return n


@compiled
def operate(operation, a, b, form, out_form):
    """Bit pattern of the result of ``operation`` on patterns ``a`` and ``b`` of ``form``."""
    bits = abs(out_form)
    x = number(a, form)
    y = number(b, form)
    if operation == ADD:
        n = x + y
    elif operation == SUB:
        n = x - y
    elif operation == MUL:
        n = x * y   # modulo 2**64, of which the low bits are kept
    elif operation == MAX:
        n = max(x, y)
    elif operation == CAST:
        most = (1 << (bits - 1)) - 1 if out_form > 0 else (1 << bits) - 1
        least = -most - 1 if out_form > 0 else 0
        n = min(max(x, least), most)
    else:
        n = 0
    return n & ((1 << bits) - 1)


@compiled
def selector_index(net, value, width):
    """The set bit of a selector on a link of ``width`` bits; -1 unless exactly one is."""
    found = -1
    for k in range(width):
        if selected(net, value, width, k):
            if found >= 0:
                return -1
            found = k
    return found
