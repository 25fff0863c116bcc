"""What a program costs on paper: SPEC section 5, as SymPy expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy

from .program import Program

__all__ = ["DEFAULT_COMPUTE_BW", "Metrics", "OperatorMetrics", "metrics"]

DEFAULT_COMPUTE_BW = sympy.Symbol("compute_bw", integer=True, positive=True)
"""FLOPs/cycle of an operator that does not say: the hardware's default."""


@dataclass(frozen=True)
class OperatorMetrics:
    """One operator's costs: bytes, FLOPs, FLOPs/cycle."""

    name: str
    kind: str
    offchip_read_bytes: Any
    offchip_write_bytes: Any
    onchip_bytes: Any
    flops: Any
    allocated_compute: Any

    def substitute(self, values: Mapping[Any, Any]) -> OperatorMetrics:
        """The same with values for symbols, by symbol or by name."""
        return self._substitute(_by_name(values))

    def _substitute(self, values: Mapping[str, Any]) -> OperatorMetrics:
        return OperatorMetrics(self.name, self.kind, *(
            _substitute(value, values) for value in (
                self.offchip_read_bytes, self.offchip_write_bytes, self.onchip_bytes, self.flops,
                self.allocated_compute)))


@dataclass(frozen=True)
class Metrics:
    """A program's costs, summed over ``rows``, one for each operator in order of creation."""

    rows: tuple[OperatorMetrics, ...]

    def _sum(self, field: str) -> sympy.Expr:
        return sympy.Add(*(getattr(row, field) for row in self.rows))

    @property
    def offchip_read_bytes(self) -> sympy.Expr:
        return self._sum("offchip_read_bytes")

    @property
    def offchip_write_bytes(self) -> sympy.Expr:
        return self._sum("offchip_write_bytes")

    @property
    def offchip_bytes(self) -> sympy.Expr:
        return self.offchip_read_bytes + self.offchip_write_bytes

    @property
    def onchip_bytes(self) -> sympy.Expr:
        return self._sum("onchip_bytes")

    @property
    def flops(self) -> sympy.Expr:
        return self._sum("flops")

    @property
    def operational_intensity(self) -> sympy.Expr:
        """FLOPs a byte of off-chip traffic; 0 for a program without traffic."""
        return self.flops / self.offchip_bytes if self.offchip_bytes != 0 else sympy.Integer(0)

    @property
    def allocated_compute(self) -> sympy.Expr:
        """FLOPs/cycle of all operators that compute; the symbol ``compute_bw`` for those that do not say."""
        return self._sum("allocated_compute")

    @property
    def symbols(self) -> tuple[sympy.Symbol, ...]:
        """Symbols of the expressions, sorted by name."""
        found: set[sympy.Symbol] = set()
        for row in self.rows:
            for value in (row.offchip_read_bytes, row.offchip_write_bytes, row.onchip_bytes, row.flops,
                          row.allocated_compute):
                found |= value.free_symbols
        return tuple(sorted(found, key=lambda symbol: symbol.name))

    def substitute(self, symbols: Mapping[Any, Any]) -> Metrics:
        """The same with values for symbols, by symbol or by name (such as a `Result`'s ``symbols``)."""
        by_name = _by_name(symbols)
        return Metrics(tuple(row._substitute(by_name) for row in self.rows))


def _by_name(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {key if isinstance(key, str) else key.name: number for key, number in values.items()}


def _substitute(value: sympy.Expr, by_name: Mapping[str, Any]) -> sympy.Expr:
    if value.is_Number:  # most are, and to ask each for its symbols takes longer
        return value
    known = {symbol: sympy.sympify(by_name[symbol.name]) for symbol in value.free_symbols if symbol.name in by_name}
    return value.xreplace(known) if known else value


def metrics(program: Program) -> Metrics:
    """Costs of ``program``: off-chip traffic, on-chip requirement, FLOPs and allocated compute, per operator."""
    rows = []
    for op in program.operators:
        compute = 0
        if op.uses_compute:
            compute = DEFAULT_COMPUTE_BW if op.compute_bw is None else op.compute_bw
        rows.append(OperatorMetrics(op.name, op.kind, *map(sympy.sympify, (
            op.offchip_read(), op.offchip_write(), op.onchip(), op.flops(), compute))))
    return Metrics(tuple(rows))
