"""What the compute units (map, accum, scan) share: the join that walks an element's steps, the token that travels
beside a datapath, the position inside a vector state, the state memory, and masking of rows that are not valid."""

from collections.abc import Mapping, Sequence

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, ValueLike, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from step_lang.errors import BadParameter
from step_lang.fn.base import Function
from step_lang.timing import Timing, compute_timing, rows_operand
from step_lang.types import Tile

from .beat import STOP_WIDTH
from .functions.base import Datapath, Fold, fold, tile_layout, type_key, width_of
from .unit import ErrorCode, Unit

__all__ = [
    "INDEX_WIDTH", "ComputeUnit", "FoldState", "FoldUnit", "Position", "Token", "check_timing", "function_key",
    "masked",
]

INDEX_WIDTH = 12
"""Bits of an inner dimension's size: vector states of up to 4095 elements a dimension."""


def function_key(function: Function, in_types: Sequence[Tile], out_type: Tile) -> str:
    """Short text that tells a function on physical tiles apart in module names."""
    flags = "".join(f"_{name}" for name, value in function.params.items() if value is True)
    return "_".join([function.name + flags, *map(type_key, in_types), type_key(out_type)])


def check_timing(stated: Timing, latency: int, interval: int) -> None:
    """The hardware is what ``step_lang.timing`` states; a difference is a defect of ours, not of the user."""
    built = Timing(latency, interval)
    if built != stated:
        raise AssertionError(f"hardware has {built}, step_lang.timing states {stated}")


def masked(tile: Value, rows: ValueLike, type_: Tile) -> Value:
    """``tile``, of ``type_``, with zeros in its rows from ``rows`` on."""
    width = len(tile) // int(type_.rows)
    return Cat(tile.word_select(i, width) & (rows > i).replicate(width) for i in range(int(type_.rows)))


class Token(data.StructLayout):
    """What travels beside a datapath's pipeline: one step of an element (``first`` .. ``last``), or an empty beat."""

    def __init__(self, rows_width: int, step_width: int):
        super().__init__({"rows": rows_width, "stop": STOP_WIDTH, "empty": 1, "done": 1, "step": step_width, "last": 1})


class ComputeUnit(Unit):
    """Base of units with a datapath: all inputs are joined; an element is walked step by step at the links' heads."""

    def _front(self, m: Module, interval: int, rows_port: int, en: Value, wrong: Value | None = None,
               refuses: int = ErrorCode.NONE) -> tuple[Value, Value]:
        """The join. Returns (valid, token) of the step that enters the pipeline when ``en``. Elements that are
        ``wrong`` do not, and set the error code ``refuses``."""
        ins = self.ins
        head = ins[0].payload
        token = Signal(Token(len(ins[rows_port].payload.rows), bits_for(interval - 1)), name="front")
        present = Signal()
        agree = Signal()
        refused = Signal()
        valid = Signal()
        step = Signal(range(max(interval, 2)))
        agreement = Const(1)
        for other in ins[1:]:
            agreement &= ((other.payload.stop == head.stop) & (other.payload.empty == head.empty)
                          & (other.payload.done == head.done))
        waiting = Const(1)
        for i in ins:
            waiting &= i.valid
        m.d.comb += [
            present.eq(waiting & (self.error == ErrorCode.NONE)),
            agree.eq(agreement),
            refused.eq(0 if wrong is None else ~head.empty & wrong),
            valid.eq(present & agree & ~refused),
            token.rows.eq(ins[rows_port].payload.rows),
            token.stop.eq(head.stop),
            token.empty.eq(head.empty),
            token.done.eq(head.done),
            token.step.eq(step),
            token.last.eq(head.empty | (step == interval - 1)),
        ]
        m.d.comb += [i.ready.eq(valid & en & token.last) for i in ins]
        if interval > 1:
            with m.If(valid & en):
                m.d.sync += step.eq(Mux(token.last, 0, step + 1))
        with m.If(present & ~agree):
            m.d.sync += self.error.eq(ErrorCode.MISALIGNED)
        with m.Elif(present & refused):
            m.d.sync += self.error.eq(refuses)
        return valid, token

    def _pipe(self, m: Module, stages: int, en: Value, valid: Value, token: Value) -> tuple[Value, Value, Value]:
        """(valid, token) ``stages`` registers later; all of them advance on ``en``. Third, ``moving``: the pipeline's
        data have to advance with its tokens, because there is a valid one that does not leave."""
        moving = Const(0)
        for i in range(stages):
            moving |= valid
            next_valid = Signal(name=f"valid{i + 1}")
            next_token = Signal.like(token, name=f"token{i + 1}", reset_less=True)
            with m.If(en):
                m.d.sync += [next_valid.eq(valid), next_token.eq(token)]
            valid, token = next_valid, next_token
        return valid, token, moving

    def _connect(self, m: Module, name: str, path: Datapath, en: Value, step: Value) -> None:
        """Place ``path`` behind the input heads."""
        m.submodules[name] = path
        m.d.comb += [path.en.eq(en), path.step.eq(step)]
        m.d.comb += [operand.eq(i.payload.data) for operand, i in zip(path.operands, self.ins, strict=True)]
        m.d.comb += [getattr(path, register).eq(getattr(self.cfg, register)) for register in path.cfg_widths]


class Position(wiring.Component):
    """Walks the elements of an inner tensor of n1 x n0 elements, ``inner`` (0, 1, 2) of whose dimensions are used.

    With ``opens`` a size of 0 is an open one, of the outermost dimension used: ``close`` says where the tensor ends.

    Members: ``n1``, ``n0``, ``inner`` In (configuration); ``close`` In, only with ``opens``; ``next`` In, goes on;
    ``index`` Out, 0 .. entries - 1; ``last`` Out, last element of the tensor; ``stop`` Out, dimensions of the tensor
    that end here; ``over`` Out, the tensor goes on beyond ``entries``.
    """

    def __init__(self, entries: int, opens: bool = False):
        self.entries = entries
        self.opens = opens
        super().__init__({
            "n1": In(INDEX_WIDTH), "n0": In(INDEX_WIDTH), "inner": In(2), "next": In(1),
            "index": Out(range(max(entries, 2))), "last": Out(1), "stop": Out(2), "over": Out(1),
            **({"close": In(1)} if opens else {}),
        })

    def elaborate(self, platform):
        m = Module()
        i1 = Signal(INDEX_WIDTH)
        i0 = Signal(INDEX_WIDTH)
        ends = Signal(2)
        goes_on = [index + 1 != size for index, size in ((i0, self.n0), (i1, self.n1))]
        if self.opens:
            goes_on = [more & ~((size == 0) & self.close) for more, size in zip(goes_on, (self.n0, self.n1))]
        m.d.comb += [
            ends.eq(Mux(goes_on[0], 0, Mux(goes_on[1], 1, 2))),
            self.last.eq(ends == 2),
            self.stop.eq(Mux(ends < self.inner, ends, self.inner)),
            self.over.eq((self.index == self.entries - 1) & ~self.last),
        ]
        with m.If(self.next):
            m.d.sync += [self.index.eq(Mux(self.last, 0, self.index + 1)), i0.eq(Mux(ends == 0, i0 + 1, 0))]
            with m.If(ends != 0):
                m.d.sync += i1.eq(Mux(ends == 1, i1 + 1, 0))
        return m


class FoldState(wiring.Component):
    """State memory of a fold: one read-modify-write a cycle, and a second port that reads.

    The state of ``entries`` tiles is kept in a memory with asynchronous read. A write takes effect in the next cycle.

    Members
    -------
    index, step : In, entry and step of the element being folded; first : In, it starts from ``init``
    contribution : In; write : In; rows : In, valid rows of the element
    differs : Out, the entry has other valid rows; only with ``compares``
    read_index : In; read_data, read_rows : Out, another entry

    ``max_rows``: most valid rows of an entry; where it is None no rows are kept (``rows``, ``read_rows`` are absent).
    """

    def __init__(self, fold: Fold, width: int, max_rows: int | None, entries: int, init: int,
                 compares: bool = False):
        self.fold = fold
        self.entries = entries
        self.init = init
        self.width = width
        self.max_rows = max_rows
        self.compares = compares
        index = range(max(entries, 2))
        super().__init__({
            "index": In(index), "step": In(range(max(fold.contribution.interval, 2))), "first": In(1),
            "contribution": In(len(fold.contribution.result)), "write": In(1),
            "read_index": In(index), "read_data": Out(width),
            **({"rows": In(bits_for(max_rows)), "read_rows": Out(bits_for(max_rows))} if max_rows else {}),
            **({"differs": Out(1)} if compares else {}),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.combine = combine = self.fold.combine
        slices = self.fold.slices
        part = self.width // slices
        if self.max_rows:
            self._keep_rows(m)
        if self.entries == 1:
            old = state = Signal(self.width, reset_less=True)
            m.d.comb += self.read_data.eq(state)
            with m.If(self.write):
                m.d.sync += state.word_select(self.step if slices > 1 else 0, part).eq(combine.result)
        else:
            m.submodules.state = state = Memory(shape=unsigned(self.width), depth=self.entries, init=[])
            write = state.write_port(granularity=part if slices > 1 else None)
            read = state.read_port(domain="comb")
            drain = state.read_port(domain="comb")
            old = read.data
            m.d.comb += [
                read.addr.eq(self.index), drain.addr.eq(self.read_index), self.read_data.eq(drain.data),
                write.addr.eq(self.index), write.data.eq(combine.result.replicate(slices)),
                write.en.eq(self.write << self.step if slices > 1 else self.write),
            ]
        # A sliced state starts anew slice by slice, an unsliced one with the element's first step.
        fresh = self.first if slices > 1 else self.first & (self.step == 0)
        old = Array(old[i * part:(i + 1) * part] for i in range(slices))[self.step] if slices > 1 else old
        m.d.comb += [
            combine.en.eq(self.write),
            combine.operand0.eq(Mux(fresh, Const(self.init & ((1 << part) - 1), part), old)),
            combine.operand1.eq(self.contribution),
        ]
        return m

    def _keep_rows(self, m: Module) -> None:
        rows = Array(Signal(len(self.rows), name=f"rows{i}", reset_less=True) for i in range(self.entries))
        with m.If(self.write):
            m.d.sync += rows[self.index].eq(self.rows)
        m.d.comb += self.read_rows.eq(rows[self.read_index])
        if self.compares:
            m.d.comb += self.differs.eq(rows[self.index] != self.rows)


class FoldUnit(ComputeUnit):
    """Base of ``accum`` and ``scan``; see there for parameters and registers."""

    keeps_rows = True
    """Whether the counts of valid rows are kept with the state."""
    opens = False
    """Whether an inner size may be open."""
    registers: Mapping[str, int] = {"rank": STOP_WIDTH, "inner": 2, "n1": INDEX_WIDTH, "n0": INDEX_WIDTH}

    def __init__(self, function: Function, in_types: Sequence[Tile], out_type: Tile, *, tile: int, rows_per_cycle: int,
                 k_per_cycle: int, entries: int = 1, init: int = 0, masked: bool = False):
        if entries < 1:
            raise BadParameter(f"{self.kind} state: {entries} entries vs at least 1")
        bits = out_type.dtype.bits
        if not 0 <= init < 1 << bits:
            raise BadParameter(f"{self.kind} init: pattern {init:#x} vs {bits} bits of {out_type.dtype}")
        self.function = function
        self.in_types = tuple(in_types)
        self.out_type = out_type
        self.rows_per_cycle = rows_per_cycle
        self.k_per_cycle = k_per_cycle
        self.entries = entries
        self.init = init
        self.masked = masked
        self.timing = compute_timing(self.kind, {
            "function": function, "in_types": self.in_types, "out_type": out_type, "tile": tile,
            "rows_per_cycle": rows_per_cycle, "k_per_cycle": k_per_cycle})
        self.fold = fold(function, self.in_types, out_type, rows_per_cycle=rows_per_cycle, k_per_cycle=k_per_cycle)
        check_timing(self.timing, self.fold.contribution.latency + 1, self.fold.contribution.interval)
        self.width = width_of(out_type)
        self.max_rows = int(out_type.rows) if (self.keeps_rows or masked) and out_type.rows != 1 else None
        self.compares = masked and self.max_rows is not None and not function.resizes
        self.init_tile = init * (((1 << self.width) - 1) // ((1 << bits) - 1))
        super().__init__([tile_layout(t) for t in in_types], [tile_layout(out_type)], state_width=3,
                         cfg=self.registers)

    @property
    def module_name(self) -> str:
        return (f"{self.kind}_{function_key(self.function, self.in_types, self.out_type)}"
                f"_r{self.rows_per_cycle}k{self.k_per_cycle}_e{self.entries}_i{self.init:x}{'_m' * self.masked}")

    def dependencies(self) -> dict[str, str]:
        return self.fold.contribution.dependencies() | self.fold.combine.dependencies()

    def _fold(self, m: Module, en: Value) -> tuple[Value, Value, Position, FoldState]:
        """Join, contribution pipeline, position and state. Returns what stands before the state: (valid, token,
        position, state); the unit drives ``position.next`` and ``state.write``."""
        path = self.fold.contribution
        valid, head = self._front(m, path.interval, rows_operand(self.in_types, self.out_type), en)
        valid, token, moving = self._pipe(m, path.latency, en, valid, head)
        self._connect(m, "contribution", path, en & moving, head.step)
        m.submodules.position = position = Position(self.entries, self.opens)
        m.submodules.state = state = FoldState(
            self.fold, self.width, self.max_rows, self.entries, self.init_tile, self.compares)
        m.d.comb += [
            *self._sizes(position),
            state.index.eq(position.index),
            state.step.eq(token.step),
            state.contribution.eq(path.result),
        ]
        if self.max_rows:
            m.d.comb += state.rows.eq(token.rows)
        return valid, token, position, state

    def _sizes(self, position: Position) -> list:
        """Connect a position to the configuration."""
        return [position.n1.eq(self.cfg.n1), position.n0.eq(self.cfg.n0), position.inner.eq(self.cfg.inner)]

    def _check(self, m: Module, valid: Value, token: Value, position: Position, started: Value,
               unfit: Value | None = None) -> Value:
        """Raise an error for a token that the configured shape does not allow here; such a token goes no further.

        ``started``: a fold has begun and not closed; ``unfit``: what the unit itself has to say against the element or
        bare stop.
        """
        inside = position.index != 0
        bare_shape = inside | (token.stop <= self.cfg.inner)
        shape = Mux(position.last, token.stop < self.cfg.inner, token.stop != position.stop)
        if unfit is not None:
            bare_shape, shape = bare_shape | unfit, shape | unfit
        wrong = Signal(range(16))
        with m.If(token.done):
            with m.If(started | inside):
                m.d.comb += wrong.eq(ErrorCode.STOP_RANGE)
        with m.Elif(token.empty):
            with m.If(bare_shape):
                m.d.comb += wrong.eq(ErrorCode.SHAPE)
        with m.Else():
            with m.If(position.over):
                m.d.comb += wrong.eq(ErrorCode.EXHAUSTED)
            with m.If(shape):
                m.d.comb += wrong.eq(ErrorCode.SHAPE)
        with m.If(valid & (wrong != ErrorCode.NONE) & (self.error == ErrorCode.NONE)):
            m.d.sync += self.error.eq(wrong)
        return wrong != ErrorCode.NONE
