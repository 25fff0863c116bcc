"""What accum and scan share at tile fidelity: rank, and the control value of a state."""

from __future__ import annotations

from typing import Any

from step_lang.errors import UnknownFunction

from ..compiled import compiled
from ..values import ADD, MAX, NO_OPERATION, operate, operation_of, sign_of
from .functions import FUNCTION_END, pack_function
from .network import NO_VALUE

__all__ = ["FOLD_END", "INIT", "RANK", "folded", "pack_fold"]

RANK, FOLD, FOLD_FORM, INIT, FOLD_END = range(FUNCTION_END, FUNCTION_END + 5)


def pack_fold(op: Any, unit: int, build: Any) -> None:
    """Function, rank, how control values fold, and that of the state before the first element."""
    if op.inner:
        raise UnknownFunction(f"{op.kind} with inner={op.inner} vs inner=0 at tile fidelity", operator=op,
                              fix="give it the program before lowering")
    pack_function(op, unit, build)
    par, types = build.par[unit], [stream.type for stream in op.inputs]
    par[[RANK, FOLD, INIT]] = op.rank, NO_OPERATION, NO_VALUE
    operation = operation_of(op.fn, [types[0], types[0]], op.output.type) if len(types) == 1 else NO_OPERATION
    if operation in (ADD, MAX):
        par[FOLD], par[FOLD_FORM] = operation, sign_of(types[0].dtype)
        par[INIT] = int(op.fn.initial(op.init, *types).reshape(-1)[0]) & ((1 << abs(int(par[FOLD_FORM]))) - 1)


@compiled
def folded(par, state, value):
    """Control value of the state after an element with ``value``."""
    if par[FOLD] == NO_OPERATION or state == NO_VALUE or value == NO_VALUE:
        return NO_VALUE
    return operate(par[FOLD], state, value, par[FOLD_FORM], par[FOLD_FORM])
