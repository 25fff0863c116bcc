"""Search for a run of a transition system that breaks a property (Bitwuzla).

Outputs say what is what: ``assume__<label>`` must be 1 in every cycle of a run, ``prove__<label>`` is to be 1 in every
cycle of every such run, and so is ``invariant__<label>``, which is there to help induction. Inputs
``constant__<name>`` have one value throughout. ``rst`` stays 0: a run begins in the initial state.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import bitwuzla
from bitwuzla import Kind, Option, Result

from .btor import Node, TransitionSystem

__all__ = ["Run", "Verdict", "bounded", "inductive", "replay"]

Word: TypeAlias = "int | bitwuzla.Term"
"""A value of a cycle: a number where it is known, else a bit vector of the solver."""


@dataclass(frozen=True)
class Run:
    """A run that breaks the properties ``failed`` in its last cycle: values of all inputs in each cycle."""

    failed: tuple[str, ...]
    inputs: list[dict[str, int]]


@dataclass(frozen=True)
class Verdict:
    """``holds`` up to ``depth`` cycles (or, after `inductive`, for ever, by ``depth`` cycles before); None: not decided
    in the time given. ``run``: where it does not, how."""

    holds: bool | None
    depth: int
    seconds: float
    run: Run | None = field(default=None, repr=False)


def bounded(system: TransitionSystem, depth: int, *, seconds: float = 600, helpers: bool = True) -> Verdict:
    """Whether all properties hold in the first ``depth`` cycles. ``helpers``: the invariants too."""
    began = time.monotonic()
    unrolled = _Unrolled(system, initial=True)
    for cycle in range(depth):
        unrolled.step()
        left = seconds - (time.monotonic() - began)
        found = unrolled.breaks(cycle, _labels(system, helpers), left)
        if not isinstance(found, bool):
            return Verdict(None if found is None else False, cycle, time.monotonic() - began, found)
    return Verdict(True, depth, time.monotonic() - began)


def inductive(system: TransitionSystem, depth: int, *, seconds: float = 600) -> Verdict:
    """Whether properties and invariants that held for k cycles, k <= ``depth``, hold in the next, whatever the state
    was: with `bounded` over k cycles, they hold for ever. The run of a verdict that is not so begins anywhere."""
    began = time.monotonic()
    unrolled = _Unrolled(system, initial=False)
    labels = _labels(system, True)
    found: Run | Literal[False] | None = None
    for k in range(depth + 1):
        unrolled.step()
        if k:
            found = unrolled.breaks(k, labels, seconds - (time.monotonic() - began))
            if found is False or found is None:
                return Verdict(True if found is False else None, k, time.monotonic() - began)
        unrolled.hold(k, labels)
    return Verdict(False, depth, time.monotonic() - began, found or None)


def replay(system: TransitionSystem, inputs: Sequence[dict[str, int]]) -> list[dict[str, int]]:
    """Values of all outputs and named wires in each cycle of a run from the initial state, by plain evaluation."""
    unrolled = _Unrolled(system, initial=True)
    made = []
    for given in inputs:
        values = unrolled.step(given)
        made.append({name: values[node] for name, node in (system.named | system.outputs).items() if node in values})
    return made


def _labels(system: TransitionSystem, helpers: bool) -> list[str]:
    kinds = ("prove__", "invariant__") if helpers else ("prove__",)
    return [name for name in system.outputs if name.startswith(kinds)]


class _Unrolled:
    """The cycles of a run, one after the other."""

    def __init__(self, system: TransitionSystem, initial: bool):
        self.system = system
        self.initial = initial
        self.terms = bitwuzla.TermManager()
        options = bitwuzla.Options()
        options.set(Option.PRODUCE_MODELS, True)
        self.limit = [float("inf")]
        self.solver = bitwuzla.Bitwuzla(self.terms, options)
        self.solver.configure_terminator(lambda: time.monotonic() > self.limit[0])
        self.constants: dict[str, Word] = {}
        self.cycles: list[dict[int, Word]] = []

    def step(self, given: dict[str, int] | None = None) -> dict[int, Word]:
        """One more cycle, with free inputs or those given; its assumptions are made."""
        before = self.cycles[-1] if self.cycles else None
        values: dict[int, Word] = {}
        names = {node: name for name, node in self.system.inputs.items()}
        for number in self.system.order:
            node = self.system.nodes[number]
            if node.op == "input":
                values[number] = self._input(names[number], node.width, given)
            elif node.op == "state":
                values[number] = self._state(number, node.width, before)
            elif node.op == "const":
                values[number] = node.numbers[0]
            else:
                values[number] = self._apply(node, [values[a] for a in node.args])
        self.cycles.append(values)
        if given is None:
            for name, output in self.system.outputs.items():
                if name.startswith("assume__"):
                    self._assert(values[output])
        return values

    def hold(self, cycle: int, labels: Iterable[str]) -> None:
        """From here on, ``labels`` are known to hold in ``cycle``."""
        for label in labels:
            self._assert(self.cycles[cycle][self.system.outputs[label]])

    def breaks(self, cycle: int, labels: Sequence[str], seconds: float) -> Run | Literal[False] | None:
        """A run in which one of ``labels`` is 0 in ``cycle``, the last; False: there is none (and they are held); None:
        not known in time."""
        words = {label: self.cycles[cycle][self.system.outputs[label]] for label in labels}
        wrong = [self._false(word) for word in words.values() if not _is(word, 1)]
        if wrong:
            self.limit[0] = time.monotonic() + seconds
            any_wrong = wrong[0] if len(wrong) == 1 else self.terms.mk_term(Kind.OR, wrong)
            result = self.solver.check_sat(any_wrong)
            if result == Result.UNKNOWN:
                return None
            if result == Result.SAT:
                failed = tuple(label for label, word in words.items() if self._number(word) == 0)
                inputs = [{name: self._number(values[node]) for name, node in self.system.inputs.items()}
                          for values in self.cycles]
                return Run(failed, inputs)
        self.hold(cycle, labels)
        return False

    def _number(self, word: Word) -> int:
        return word if isinstance(word, int) else int(self.solver.get_value(word).value(10))

    def _false(self, word: Word) -> bitwuzla.Term:
        return self.terms.mk_term(Kind.EQUAL, [self._term(word, 1), self.terms.mk_bv_zero(self.terms.mk_bv_sort(1))])

    def _assert(self, word: Word) -> None:
        if not _is(word, 1):
            self.solver.assert_formula(self.terms.mk_term(Kind.NOT, [self._false(word)]))

    def _free(self, width: int, name: str) -> bitwuzla.Term:
        return self.terms.mk_const(self.terms.mk_bv_sort(width), name)

    def _input(self, name: str, width: int, given: dict[str, int] | None) -> Word:
        if name in ("clk", "rst"):
            return 0
        if given is not None:
            return given[name]
        if name.startswith("constant__"):
            return self.constants.setdefault(name, self._free(width, name))
        return self._free(width, f"{name}@{len(self.cycles)}")

    def _state(self, number: int, width: int, before: dict[int, Word] | None) -> Word:
        if before is not None:
            return before[self.system.next[number]]
        if self.initial and number in self.system.init:
            start = self.system.nodes[self.system.init[number]]
            return start.numbers[0]
        return self._free(width, f"{self.system.states[number]}@0")

    def _term(self, word: Word, width: int) -> bitwuzla.Term:
        return self.terms.mk_bv_value(self.terms.mk_bv_sort(width), word) if isinstance(word, int) else word

    def _apply(self, node: Node, args: list[Word]) -> Word:
        widths = [self.system.nodes[a].width for a in node.args]
        if all(isinstance(a, int) for a in args):
            return _evaluate(node, args, widths)
        if node.op == "ite" and isinstance(args[0], int):
            return args[1] if args[0] else args[2]
        if node.op == "ite" and args[1] is args[2]:
            return args[1]
        full = (1 << node.width) - 1
        if node.op in ("and", "or"):
            dominant, neutral = (0, full) if node.op == "and" else (full, 0)
            for one, other in (args, reversed(args)):
                if isinstance(one, int) and one in (dominant, neutral):
                    return dominant if one == dominant else other
        if node.op in ("uext", "sext") and node.numbers[0] == 0:
            return args[0]
        if node.op == "slice" and node.width == widths[0]:
            return args[0]
        return self._make(node, [self._term(a, w) for a, w in zip(args, widths)])

    def _make(self, node: Node, args: list[bitwuzla.Term]) -> bitwuzla.Term:
        make = self.terms.mk_term
        if node.op in _COMPARE:
            kind, negated = _COMPARE[node.op]
            one, zero = (self._term(value, 1) for value in ((0, 1) if negated else (1, 0)))
            return make(Kind.ITE, [make(kind, args), one, zero])
        if node.op == "ite":
            return make(Kind.ITE, [make(Kind.EQUAL, [args[0], self._term(1, 1)]), args[1], args[2]])
        return make(_KINDS[node.op], args, list(node.numbers))


_KINDS = {
    "not": Kind.BV_NOT, "neg": Kind.BV_NEG, "redand": Kind.BV_REDAND, "redor": Kind.BV_REDOR, "redxor": Kind.BV_REDXOR,
    "and": Kind.BV_AND, "nand": Kind.BV_NAND, "or": Kind.BV_OR, "nor": Kind.BV_NOR, "xor": Kind.BV_XOR,
    "xnor": Kind.BV_XNOR, "add": Kind.BV_ADD, "sub": Kind.BV_SUB, "mul": Kind.BV_MUL, "sll": Kind.BV_SHL,
    "srl": Kind.BV_SHR, "sra": Kind.BV_ASHR, "concat": Kind.BV_CONCAT, "slice": Kind.BV_EXTRACT,
    "uext": Kind.BV_ZERO_EXTEND, "sext": Kind.BV_SIGN_EXTEND,
}
_COMPARE = {
    "eq": (Kind.EQUAL, False), "neq": (Kind.EQUAL, True), "ult": (Kind.BV_ULT, False), "ulte": (Kind.BV_ULE, False),
    "ugt": (Kind.BV_UGT, False), "ugte": (Kind.BV_UGE, False), "slt": (Kind.BV_SLT, False),
    "slte": (Kind.BV_SLE, False), "sgt": (Kind.BV_SGT, False), "sgte": (Kind.BV_SGE, False),
}


def _is(word: Word, value: int) -> bool:
    return isinstance(word, int) and word == value


def _signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


_NUMBERS: dict[str, Callable[..., int]] = {
    "not": lambda a: ~a, "neg": lambda a: -a, "and": lambda a, b: a & b, "nand": lambda a, b: ~(a & b),
    "or": lambda a, b: a | b, "nor": lambda a, b: ~(a | b), "xor": lambda a, b: a ^ b, "xnor": lambda a, b: ~(a ^ b),
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "eq": lambda a, b: a == b,
    "neq": lambda a, b: a != b, "ult": lambda a, b: a < b, "ulte": lambda a, b: a <= b, "ugt": lambda a, b: a > b,
    "ugte": lambda a, b: a >= b, "ite": lambda a, b, c: b if a else c, "redor": lambda a: a != 0,
    "redxor": lambda a: a.bit_count() & 1, "uext": lambda a: a, "srl": lambda a, b: a >> b,
}


def _evaluate(node: Node, args: Sequence[int], widths: Sequence[int]) -> int:
    """An operation on numbers."""
    op, width = node.op, node.width
    if op in ("slt", "slte", "sgt", "sgte"):
        a, b = (_signed(value, w) for value, w in zip(args, widths))
        value = int({"slt": a < b, "slte": a <= b, "sgt": a > b, "sgte": a >= b}[op])
    elif op == "redand":
        value = int(args[0] == (1 << widths[0]) - 1)
    elif op == "sext":
        value = _signed(args[0], widths[0])
    elif op == "sra":
        value = _signed(args[0], widths[0]) >> min(args[1], width)
    elif op == "sll":
        value = args[0] << args[1] if args[1] < width else 0
    elif op == "concat":
        value = args[0] << widths[1] | args[1]
    elif op == "slice":
        value = args[0] >> node.numbers[1]
    else:
        value = int(_NUMBERS[op](*args))
    return value & ((1 << width) - 1)
