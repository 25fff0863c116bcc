"""Sigmoid, silu and gelu: one datapath, x (or 1) over 1 + 2**-y."""

from amaranth.hdl import Cat, Const, Module, Mux, signed
from amaranth.lib.wiring import In, Out

from step_lang.numerics.tables import GELU_CUBIC, GELU_LINEAR, LOG2E

from .cell import Cell
from .exp2 import exponent, power_of_two
from .floats import BF16, divide, round_pack, unpack, wire

__all__ = ["Bf16Logistic"]


class Bf16Logistic(Cell):
    """``out = s * sigmoid(u(a))``; combinational: s = a and u = a (silu), s = 1 (sigmoid), or u GELU's cubic (gelu).

    Parameters
    ----------
    function : str
        ``silu``, ``sigmoid`` or ``gelu``.
    """

    twin = "step_lang.numerics.UNARY['silu'], ['sigmoid'], ['gelu']"

    def __init__(self, function: str):
        if function not in ("silu", "sigmoid", "gelu"):
            raise ValueError(f"a logistic cell computes silu, sigmoid or gelu, not {function}")
        self.function = function
        self.arguments = (function,)
        super().__init__({"a": In(16), "out": Out(16)})

    @property
    def module_name(self):
        return f"bf16_{self.function}"

    def elaborate(self, platform):
        m = Module()
        x = unpack(m, "x", self.a, BF16)
        scaled = self.function != "sigmoid"
        limit = 131 if self.function == "gelu" else 134
        y = exponent(m, x, self._factor(m, x), limit)
        mant, power = power_of_two(m, wire(m, "minus_y", -y, signed(21)))
        # 1 + 2**-y and, over it, s (for a < 0 times 2**-y), both in units of 2**-15.
        depth = wire(m, "depth", (-power)[:9])
        denominator = wire(m, "denominator", (1 << 15) + (mant >> Mux(depth > 17, 17, depth)[:5]))
        factor = x.mant if scaled else Const(128, 8)
        numerator = wire(m, "numerator", factor * Mux(x.sign, mant, 1 << 15))
        # The quotient of 24 and 17 bits is below 2**9, so the first digit weighs 2**8 and the last 2**-5.
        quotient, rest = divide(m, "quotient", numerator, Cat(Const(0, 8), denominator), 13)
        nothing = wire(m, "nothing", x.sign & (x.exp >= limit))
        magnitude = wire(m, "result", Mux(nothing, 0, Cat(rest, quotient)))
        exp = wire(m, "exp", (x.exp if scaled else 127) - 6 + Mux(x.sign, power, 0), signed(11))
        sign = x.sign if scaled else Const(0, 1)
        finite = round_pack(m, "finite", sign, magnitude, exp, BF16)
        if scaled:
            finite = Mux(x.inf & ~x.sign, BF16.inf, finite)
        m.d.comb += self.out.eq(Mux(x.nan, BF16.nan, finite))
        return m

    def _factor(self, m, x):
        if self.function != "gelu":
            return Const(LOG2E)
        square = wire(m, "square", x.mant * x.mant)
        cubic = wire(m, "cubic", square * GELU_CUBIC)
        down = wire(m, "square_down", 274 - Cat(Const(0, 1), x.exp), signed(11))
        moved = wire(m, "square_moved", cubic >> Mux(down > 62, 62, down)[:6])
        return wire(m, "factor", Mux(down < 0, 0, moved) + GELU_LINEAR)
