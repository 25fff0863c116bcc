"""Map: applies a function to every element."""

from collections.abc import Sequence

from amaranth.hdl import Module, Signal

from step_lang.fn.base import Function
from step_lang.timing import compute_timing, rows_operand
from step_lang.types import Tile

from ..compute import ComputeUnit, check_timing, function_key, masked
from ..functions import datapath, tile_layout

__all__ = ["Map"]


class Map(ComputeUnit):
    """Hardware of ``step_lang.ops.map``: join of the inputs, a function's pipeline, one output.

    The pipeline advances as a whole and stalls only when its last stage holds a beat that the output does not take.
    Stops pass unchanged; bare stops and done travel in order and take a stage like any beat. Inputs whose stop,
    empty or done differ raise MISALIGNED; a selector that ``selector_index`` does not take raises SELECTOR.

    Parameters (``UnitSpec.params`` of kind "map")
    ----------------------------------------------
    function : step_lang.fn.base.Function
    in_types, out_type : physical tiles (``Tile`` of static size: T x T, T x 1, 1 x T or 1 x 1), or a selector
    tile : T
    rows_per_cycle : rows an elementwise function serves a cycle; divides the result's rows or exceeds them
    k_per_cycle : products a cycle of ``matmul`` and ``row_sum``; divides the depth or exceeds it
    masked : the rows of the result that are not valid are zeros (where tiles have fewer rows than there is room for)

    Registers (``UnitSpec.config``): those of the function: ``constant`` (bit pattern of the element type) for
    ``scale``; none for the others.

    Latency and interval: ``step_lang.timing.compute_timing("map", params)``.
    ``state``: bit 0, the last stage holds a beat; bit 1, an input is walked.
    """

    kind = "map"

    def __init__(self, function: Function, in_types: Sequence[Tile], out_type: Tile, *, tile: int, rows_per_cycle: int,
                 k_per_cycle: int, masked: bool = False):
        self.function = function
        self.in_types = tuple(in_types)
        self.out_type = out_type
        self.rows_per_cycle = rows_per_cycle
        self.k_per_cycle = k_per_cycle
        self.masked = masked
        self.path = datapath(function, self.in_types, out_type, rows_per_cycle=rows_per_cycle, k_per_cycle=k_per_cycle)
        self.timing = compute_timing(self.kind, {
            "function": function, "in_types": self.in_types, "out_type": out_type, "tile": tile,
            "rows_per_cycle": rows_per_cycle, "k_per_cycle": k_per_cycle})
        check_timing(self.timing, self.path.latency, self.path.interval)
        super().__init__([tile_layout(t) for t in in_types], [tile_layout(out_type)], state_width=2,
                         cfg=self.path.cfg_widths)

    @property
    def module_name(self) -> str:
        return (f"map_{function_key(self.function, self.in_types, self.out_type)}"
                f"_r{self.rows_per_cycle}k{self.k_per_cycle}{'_m' * self.masked}")

    def dependencies(self) -> dict[str, str]:
        return self.path.dependencies()

    def elaborate(self, platform):
        m = Module()
        o = self.out0
        en = Signal()
        wrong = self.path.wrong if self.path.refuses else None
        valid, token = self._front(m, self.path.interval, rows_operand(self.in_types, self.out_type), en, wrong,
                                   self.path.refuses)
        last_valid, last, moving = self._pipe(m, self.path.latency, en, valid, token)
        self._connect(m, "path", self.path, en & moving, token.step)
        result = self.path.result
        if self.masked:
            result = masked(result, last.rows, self.out_type)
        m.d.comb += [
            en.eq(~o.valid | o.ready),
            # The steps before the last only prepare the result.
            o.valid.eq(last_valid & last.last),
            o.payload.data.eq(result & (~last.empty).replicate(len(result))),
            o.payload.rows.eq(last.rows),
            o.payload.stop.eq(last.stop),
            o.payload.empty.eq(last.empty),
            o.payload.done.eq(last.done),
            self.state.eq(o.valid | valid << 1),
        ]
        return m
